"""What each client is measured at. Every echo is compared with what was sent, byte for byte."""

import asyncio
import contextlib
import gc
import json
import random
import resource
import time

WINDOW = 100


def payloads(size, kind):
    """The messages of one window, all different: random bytes, or text that compresses well."""
    chance = random.Random(size)
    count = WINDOW if size <= 65536 else 4
    if kind == "binary":
        return [chance.randbytes(size) for _ in range(count)]
    words = ["north", "player", "score", "ready", "hello", "team", "castle", "river", "gold"]
    lines = [
        json.dumps({"id": number, "text": " ".join(chance.choices(words, k=8))})
        for number in range(200)
    ]
    made = []
    for _ in range(count):
        text = "\n".join(chance.choices(lines, k=1 + size // 40))
        made.append(text[:size].encode())
    return made


class Clock:
    """What the measured part has taken, and how many echoes were compared."""

    def __init__(self):
        # Of each message, window or iteration, in seconds.
        self.took = []
        self.cpu_seconds = 0.0
        self.verified = 0

    @contextlib.contextmanager
    def running(self):
        gc.collect()
        before = cpu_seconds()
        yield self.took.append
        self.cpu_seconds += cpu_seconds() - before


now = time.perf_counter


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def differs(sent):
    return AssertionError(f"the echo of a message of {len(sent)} bytes differs")


def cycle(messages, count):
    """`count` messages: the same ones again and again."""
    repeated = messages * -(-count // len(messages))
    return repeated[:count]


def windows(messages, count):
    return [cycle(messages, WINDOW)] * max(1, count // WINDOW)


def run_sync(work, messages, count, clock, send, recv, send_window=None, recv_window=None):
    """Sends `count` messages, one at a time or in windows. `recv_window` compares by itself."""
    if work == "rr":
        sequence = cycle(messages, count)
        with clock.running() as took:
            for message in sequence:
                begun = now()
                send(message)
                received = recv()
                took(now() - begun)
                if received != message:
                    raise differs(message)
        clock.verified += len(sequence)
        return
    sequence = windows(messages, count)
    with clock.running() as took:
        for window in sequence:
            begun = now()
            if send_window is not None:
                send_window(window)
            else:
                for message in window:
                    send(message)
            if recv_window is not None:
                recv_window(window)
            else:
                for message in window:
                    if recv() != message:
                        raise differs(message)
            took(now() - begun)
    clock.verified += len(sequence) * WINDOW


def connect_sync(contestant, target, messages, count, clock):
    """Connects and closes; what one message takes between is not measured."""
    sequence = cycle(messages, count)
    with clock.running() as took:
        for message in sequence:
            begun = now()
            connection = contestant.connect(target)
            connected = now() - begun
            operations = contestant.operations(connection)
            operations["send"](message)
            if operations["recv"]() != message:
                raise differs(message)
            begun = now()
            contestant.close(connection)
            took(connected + now() - begun)
    clock.verified += count


async def connect_await(contestant, target, messages, count, clock):
    """As `connect_sync`."""
    sequence = cycle(messages, count)
    with clock.running() as took:
        for message in sequence:
            begun = now()
            connection = await contestant.connect(target)
            connected = now() - begun
            operations = contestant.operations(connection)
            sending = operations["send"](message)
            if contestant.awaits_send:
                await sending
            if await operations["recv"]() != message:
                raise differs(message)
            begun = now()
            await contestant.close(connection)
            took(connected + now() - begun)
    clock.verified += count


async def run_await(work, messages, count, clock, send, recv, messages_of, awaits_send):
    """As `run_sync`, for `await recv()`; `iterate` takes messages that have arrived before."""
    if work == "iterate":
        await run_iterate(messages, count, clock, send, messages_of, awaits_send)
        return
    if work == "rr":
        sequence = cycle(messages, count)
        with clock.running() as took:
            for message in sequence:
                begun = now()
                if awaits_send:
                    await send(message)
                else:
                    send(message)
                received = await recv()
                took(now() - begun)
                if received != message:
                    raise differs(message)
        clock.verified += len(sequence)
        return
    sequence = windows(messages, count)
    with clock.running() as took:
        for window in sequence:
            begun = now()
            if awaits_send:
                for message in window:
                    await send(message)
            else:
                for message in window:
                    send(message)
            for message in window:
                if await recv() != message:
                    raise differs(message)
            took(now() - begun)
    clock.verified += len(sequence) * WINDOW


async def run_iterate(messages, count, clock, send, messages_of, awaits_send):
    sequence = cycle(messages, count)
    for message in sequence:
        sending = send(message)
        if awaits_send:
            await sending
    # They arrive in a tenth of this. A client keeps them where it likes: here or in the kernel.
    await asyncio.sleep(0.3)
    received = []
    keep = received.append
    with clock.running() as took:
        begun = now()
        async for message in messages_of():
            keep(message)
            if len(received) == count:
                break
        took(now() - begun)
    # aiohttp wraps messages.
    received = [getattr(message, "data", message) for message in received]
    for message, sent in zip(received, sequence, strict=True):
        if message != sent:
            raise differs(sent)
    clock.verified += count


class Callbacks:
    """As `run_await`, for clients that call `on_message`: the next message, or the next window, is
    sent by the callback that takes the last echo."""

    def __init__(self):
        self.send = None
        self.on_message = self._ignore

    def __call__(self, message):
        self.on_message(message)

    def _ignore(self, message):
        pass

    async def run(self, work, messages, count, clock):
        if work == "rr":
            groups = [[message] for message in cycle(messages, count)]
        else:
            groups = windows(messages, count)
        done = asyncio.get_running_loop().create_future()
        send = self.send
        remaining = iter(groups)
        expected, left, begun = iter(()), 0, 0.0

        def on_message(message):
            nonlocal left
            sent = next(expected)
            if message != sent and not done.done():
                done.set_exception(differs(sent))
            left -= 1
            if left == 0:
                took(now() - begun)
                go()

        def go():
            nonlocal expected, left, begun
            group = next(remaining, None)
            if group is None:
                done.set_result(None)
                return
            expected, left, begun = iter(group), len(group), now()
            for message in group:
                send(message)

        self.on_message = on_message
        with clock.running() as took:
            go()
            await done
        clock.verified += sum(map(len, groups))
