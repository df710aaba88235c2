"""Measures WebSocket clients beside each other: one echo server, each client in a process of its
own, rounds interleaved, medians. `make bench-python` runs it."""

import argparse
import asyncio
import json
import os
import pathlib
import statistics
import subprocess
import sys

import clients
from drivers import Plan

ROOT = pathlib.Path(__file__).parents[3]
SERVER = ROOT / "target" / "release" / "examples" / "echo"
SIZES = [64, 512, 65536]


def pin(place):
    """Keeps this process on one processor: the server on the first, the clients on the last. On one
    and the same, they would not run at the same time."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, [sorted(os.sched_getaffinity(0))[place]])


def names():
    plain = [client.__name__ for client in clients.SYNC]
    loops = [f"{client.__name__}@{loop}" for loop in ("asyncio", "uvloop") for client in clients.ASYNC]
    return plain + loops


def measure(name, url, messages):
    """Runs one client here, and prints its results."""
    pin(-1)
    plan = Plan(SIZES, messages)
    function, _, loop = name.partition("@")
    client = getattr(clients, function)
    if not loop:
        client(url, plan)
    elif loop == "uvloop":
        import uvloop

        uvloop.run(client(url, plan))
    else:
        asyncio.run(client(url, plan))
    print(json.dumps(plan.results))


def measure_apart(name, url, messages):
    """Runs one client in its own process. Returns why it has no results, or its results."""
    command = [sys.executable, __file__, "--client", name, "--url", url, "--messages", str(messages)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    except subprocess.TimeoutExpired:
        return "no end within 600 s"
    if done.returncode != 0:
        return (done.stderr.strip().splitlines() or ["no reason"])[-1]
    return json.loads(done.stdout)


def table(results, work):
    """Medians, and ratios to the first client of the same kind: of this package."""
    print(f"\n{work}, µs per message (CPU of the client), ratio to ours\n")
    print("| client | " + " | ".join(f"{size} B" for size in SIZES) + " |")
    print("|---|" + "---|" * len(SIZES))
    for name in results:
        _, _, loop = name.partition("@")
        ours = "playfield_async@" + loop if loop else "playfield_sync"
        cells = []
        for size in SIZES:
            us = median(results, name, work, size, "us")
            cpu = median(results, name, work, size, "cpu_us")
            base = median(results, ours, work, size, "us") if ours in results else us
            cells.append(f"{us:.2f} ({cpu:.2f}) {us / base:.2f} ×")
        print(f"| {name} | " + " | ".join(cells) + " |")


def median(results, name, work, size, what):
    found = [one[what] for one in results[name] if (one["work"], one["size"]) == (work, size)]
    return statistics.median(found)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--client")
    parser.add_argument("--url")
    options = parser.parse_args()
    if options.client:
        measure(options.client, options.url, options.messages)
        return
    server = subprocess.Popen(
        [SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: pin(0),
    )
    results, missing = {}, {}
    try:
        url = f"ws://127.0.0.1:{server.stdout.readline().strip()}/"
        for number in range(options.rounds):
            for name in names() if number % 2 == 0 else reversed(names()):
                if name in missing:
                    continue
                found = measure_apart(name, url, options.messages)
                if isinstance(found, str):
                    missing[name] = found
                else:
                    results.setdefault(name, []).extend(found)
    finally:
        server.stdin.close()
        server.wait()
    results = {name: results[name] for name in names() if name in results and name not in missing}
    table(results, "rr")
    table(results, "pipelined")
    for name, why in missing.items():
        print(f"\nnot measured: {name}: {why}")


if __name__ == "__main__":
    main()
