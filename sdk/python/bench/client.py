"""One client, in a process of its own. Reads a command a line, and answers each with a line."""

import asyncio
import gc
import importlib.metadata
import json
import logging
import os
import statistics
import sys
import warnings

import contestants
from workloads import Clock, connect_await, connect_sync, payloads

TOGETHER = 100


class Commands:
    def __init__(self):
        # Whatever a client prints must not end up among the answers.
        self.answers = os.fdopen(os.dup(1), "w")
        os.dup2(2, 1)
        self.payloads = {}

    def answer(self, **what):
        self.answers.write(json.dumps(what) + "\n")
        self.answers.flush()

    def __iter__(self):
        for line in sys.stdin:
            command = json.loads(line)
            key = command["size"], command["kind"]
            if key not in self.payloads:
                self.payloads[key] = payloads(*key)
            yield command["work"], self.payloads[key], command["count"]

    def measured(self, clock):
        """The median, which doesn't mind if another program takes the processor now and then."""
        count = clock.verified
        self.answer(
            us=statistics.median(clock.took) * len(clock.took) / count * 1e6,
            cpu_us=clock.cpu_seconds / count * 1e6,
            verified=clock.verified,
        )


def resident_bytes():
    gc.collect()
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def idle(contestant, target, count):
    """How much memory a connection takes that nobody uses."""
    connections = await asyncio.gather(*(contestant.connect(target) for _ in range(TOGETHER)))
    before = resident_bytes()
    while len(connections) < TOGETHER + count:
        connections += await asyncio.gather(*(contestant.connect(target) for _ in range(TOGETHER)))
    await asyncio.sleep(0)
    return (resident_bytes() - before) / (len(connections) - TOGETHER)


def sync(contestant, target, commands):
    connection = contestant.connect(target)
    commands.answer(ready=version(contestant))
    for work, messages, count in commands:
        clock = Clock()
        if work == "connect":
            connect_sync(contestant, target, messages, count, clock)
        else:
            contestant.run(connection, work, messages, count, clock)
        commands.measured(clock)
    contestant.close(connection)


async def asynchronous(contestant, target, commands):
    connection = await contestant.connect(target)
    commands.answer(ready=version(contestant))
    for work, messages, count in commands:
        if work == "idle":
            commands.answer(us=await idle(contestant, target, count), cpu_us=0, verified=0)
            # The connections end with the process.
            os._exit(0)
        clock = Clock()
        if work == "connect":
            await connect_await(contestant, target, messages, count, clock)
        else:
            await contestant.run(connection, work, messages, count, clock)
        commands.measured(clock)
    await contestant.close(connection)
    if target.session is not None:
        await target.session.close()


def version(contestant):
    return contestant.package and importlib.metadata.version(contestant.package)


def main():
    style, name, loop, target = json.loads(sys.argv[1])
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [sorted(os.sched_getaffinity(0))[-1]])
    commands = Commands()
    contestant = contestants.named(style, name)
    try:
        target = contestants.Target(**target)
        if style == "sync":
            sync(contestant, target, commands)
        elif loop == "uvloop":
            import uvloop

            uvloop.run(asynchronous(contestant, target, commands))
        else:
            asyncio.run(asynchronous(contestant, target, commands))
    except Exception as error:
        commands.answer(failed=f"{type(error).__name__}: {error}")
        os._exit(1)


if __name__ == "__main__":
    main()
