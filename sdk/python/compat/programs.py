"""Runs programs that were written for `websockets` with this package in its place.

    python programs.py [NAME...]

Each is a file in `programs`, and runs in an environment of its own, below `target/python-programs`,
against a scripted server on loopback. One that can't be installed is named, with the reason. Prints a
line for each; the status is 1 if one has failed.
"""

import asyncio
import itertools
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

from websockets.asyncio.server import serve
from websockets.datastructures import Headers
from websockets.http11 import Response

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = HERE.parent
ROOT = PACKAGE.parent.parent
ENVIRONMENTS = ROOT / "target" / "python-programs"

#: What each needs, and whether `websockets` stays beside this package, as its servers are used.
PROGRAMS = {
    "openai_realtime": (["openai"], False),
    "gql_subscription": (["gql"], False),
    "cdp_chromium": (["cdp-use"], False),
    "binance_streams": (["python-binance"], False),
    "uvicorn_starlette": (["uvicorn", "starlette", "websockets"], True),
}

#: How long one may take, in seconds.
TIMEOUT = 120


# The scripted server.


async def realtime(connection):
    if connection.request.headers["Authorization"] != "Bearer secret":
        await connection.close(1008, "no token")
        return

    async def tell(kind, **fields):
        await connection.send(json.dumps({"type": kind, "event_id": "event_1", **fields}))

    await tell("session.created", session={"type": "realtime", "object": "realtime.session"})
    part = {"response_id": "response_1", "item_id": "item_1", "output_index": 0, "content_index": 0}
    async for message in connection:
        assert json.loads(message)["type"] == "response.create"
        for delta in ("hel", "lo"):
            await tell("response.output_text.delta", delta=delta, **part)
        await tell("response.done", response={"id": "response_1", "object": "realtime.response"})


async def graphql(connection):
    async for message in connection:
        asked = json.loads(message)
        if asked["type"] == "connection_init":
            await connection.send(json.dumps({"type": "connection_ack"}))
        if asked["type"] != "subscribe":
            continue
        is_subscription = asked["payload"]["query"].startswith("subscription")
        for count in (1, 2, 3) if is_subscription else (1,):
            answer = {"type": "next", "id": asked["id"], "payload": {"data": {"count": count}}}
            await connection.send(json.dumps(answer))
        await connection.send(json.dumps({"type": "complete", "id": asked["id"]}))


STREAMS = itertools.count()


async def trades(connection):
    for number in (1, 2, 3):
        await connection.send(json.dumps({"e": "trade", "s": "BTCUSDT", "t": number}))
    # The first stream ends without a Close frame.
    if next(STREAMS) == 0:
        connection.transport.close()
    await connection.wait_closed()


async def handle(connection):
    path = connection.request.path.partition("?")[0]
    await {"/v1/realtime": realtime, "/graphql": graphql, "/ws/btcusdt@trade": trades}[path](
        connection
    )


def redirect(connection, request):
    if request.path.startswith("/v1/away/"):
        # Another name of the same address is another origin.
        port = connection.local_address[1]
        location = f"ws://localhost:{port}/v1/realtime"
        return Response(302, "Found", Headers({"Location": location, "Content-Length": "0"}))
    return None


def answer(connection, request, response):
    if token := request.headers.get("X-Token"):
        response.headers["X-Token"] = token


def subprotocol(connection, offered):
    return "graphql-transport-ws" if "graphql-transport-ws" in offered else None


def start_server():
    """The server's URL."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()

    async def start():
        return await serve(
            handle,
            "127.0.0.1",
            0,
            process_request=redirect,
            process_response=answer,
            select_subprotocol=subprotocol,
        )

    server = asyncio.run_coroutine_threadsafe(start(), loop).result(20)
    return "ws://127.0.0.1:%d/" % server.sockets[0].getsockname()[1]


# The programs.


def install(name, packages, keeps_websockets):
    """The Python of a program's environment; why it can't be made, if it can't."""
    folder = ENVIRONMENTS / name
    python = folder / "bin" / "python"
    done = folder / "installed"
    wanted = " ".join(packages)
    if done.exists() and done.read_text() == wanted:
        return python, None
    pip = [python, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    steps = [[sys.executable, "-m", "venv", "--clear", folder], [*pip, "install", *packages]]
    if not keeps_websockets:
        steps.append([*pip, "uninstall", "--yes", "websockets"])
    for step in steps:
        result = subprocess.run(step, capture_output=True, text=True)
        if result.returncode != 0:
            return None, (result.stderr.strip().splitlines() or ["?"])[-1]
    done.write_text(wanted)
    return python, None


def chromium():
    found = subprocess.run([ROOT / "scripts" / "chromium"], capture_output=True, text=True)
    return found.stdout.strip() or None, found.stderr.strip()


def run(name, url):
    """`ok`, `left out` or `failed`, and why."""
    packages, keeps_websockets = PROGRAMS[name]
    arguments = [url]
    if name == "cdp_chromium":
        program, why = chromium()
        if program is None:
            return "left out", why
        arguments.append(program)
    python, why = install(name, packages, keeps_websockets)
    if python is None:
        return "left out", f"it can't be installed: {why}"
    begun = time.monotonic()
    try:
        result = subprocess.run(
            [python, HERE / "programs" / f"{name}.py", *arguments],
            capture_output=True,
            text=True,
            timeout=TIMEOUT,
            env={**os.environ, "PYTHONPATH": str(PACKAGE)},
        )
    except subprocess.TimeoutExpired:
        return "failed", f"no end within {TIMEOUT} s"
    if result.returncode != 0:
        return "failed", result.stderr.strip()
    listed = [python, "-m", "pip", "--disable-pip-version-check", "list", "--format=json"]
    versions = {
        one["name"].lower().replace("_", "-"): one["version"]
        for one in json.loads(subprocess.run(listed, capture_output=True, text=True).stdout)
    }
    seconds = time.monotonic() - begun
    return "ok", ", ".join(f"{one} {versions[one]}" for one in packages) + f", {seconds:.1f} s"


def main():
    names = sys.argv[1:] or list(PROGRAMS)
    unknown = [name for name in names if name not in PROGRAMS]
    if unknown:
        sys.exit(f"there is no program {unknown[0]!r}: there are {', '.join(PROGRAMS)}")
    url = start_server()
    failed = False
    for name in names:
        word, why = run(name, url)
        failed = failed or word == "failed"
        print(f"{word}: {name}: {why}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
