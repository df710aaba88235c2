"""Measures bots in the arena of the showcase: the processor's time for all, and the bytes of a patch.

Each bot flies to the nearest spark, which it looks for in the state every 150 ms; with ``--blind`` it
never reads the state. With several interpreters, each with a build of the package, they are measured
in turn, and the last column is the ratio to the first::

    python sdk/python/bench/bots.py tcp://127.0.0.1:7350 --python before/bin/python after/bin/python
"""

import argparse
import asyncio
import json
import math
import socket
import statistics
import struct
import subprocess
import sys
import time

#: Where `tcpi_bytes_received` is in what Linux says of a TCP socket.
BYTES_RECEIVED = 128

WARM_UP = 2.0


def received_bytes(client):
    sock = client._writer.transport.get_extra_info("socket")
    return struct.unpack_from("Q", sock.getsockopt(socket.IPPROTO_TCP, 11, 256), BYTES_RECEIVED)[0]


async def fly(room, number, is_blind):
    wander = float(number)
    while True:
        await asyncio.sleep(0.15)
        wander += 0.07
        angle = wander
        ship = None if is_blind else room.state.ships.get(room.player)
        if ship is not None:
            sparks = [(spark.x - ship.x, spark.y - ship.y) for spark in room.state.sparks.values()]
            x, y = min(sparks, key=lambda place: math.hypot(*place))
            angle = math.atan2(y, x) + math.sin(wander) * 0.4
        await room.send("Steer", {"angle": angle % math.tau})


async def measure(options):
    import playfield

    clients = [
        await playfield.connect(options.url, name=f"bot {number}") for number in range(options.bots)
    ]
    rooms = [await client.join_or_create("arena") for client in clients]
    flying = [
        asyncio.create_task(fly(room, number, options.blind)) for number, room in enumerate(rooms)
    ]
    await asyncio.sleep(WARM_UP)
    versions, received = [room.version for room in rooms], list(map(received_bytes, clients))
    cpu, begun = time.process_time(), time.monotonic()
    await asyncio.sleep(options.seconds)
    cpu, took = time.process_time() - cpu, time.monotonic() - begun
    patches = [room.version - before for room, before in zip(rooms, versions)]
    new_bytes = [received_bytes(client) - before for client, before in zip(clients, received)]
    # Each bot is in its copy, which has come this far, and none has failed.
    assert all(room.player in room.state.ships for room in rooms) and min(patches) > 0
    assert not any(task.done() for task in flying)
    for task in flying:
        task.cancel()
    await asyncio.gather(*(client.close() for client in clients))
    return {
        "cpu": cpu / took,
        "cpu_us_per_patch": 1e6 * cpu / sum(patches),
        "patches_per_second": sum(patches) / took / len(rooms),
        "bytes_per_patch": sum(new_bytes) / sum(patches),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("url")
    parser.add_argument("--bots", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--blind", action="store_true")
    parser.add_argument("--python", nargs="+", help="interpreters, each with a build of the package")
    options = parser.parse_args()
    if not options.python:
        print(json.dumps(asyncio.run(measure(options))))
        return
    how = [options.url, f"--bots={options.bots}", f"--seconds={options.seconds}"]
    how += ["--blind"] if options.blind else []
    found = {python: [] for python in options.python}
    for _ in range(options.rounds):
        for python, rows in found.items():
            rows.append(json.loads(subprocess.check_output([python, __file__, *how])))
    for name in found[options.python[0]][0]:
        columns = [[row[name] for row in rows] for rows in found.values()]
        texts = [f"{statistics.median(of):.4g} ({min(of):.4g}..{max(of):.4g})" for of in columns]
        ratio = statistics.median(columns[-1]) / statistics.median(columns[0])
        print(f"{name:20}", *texts, f"{ratio:.2f}", sep="  ")


if __name__ == "__main__":
    sys.exit(main())
