"""Type checkers find nothing wrong with the package, the programs of the documentation, and what
``generate python`` writes. They are skipped where they are not installed."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import GENERATED, ROOT

#: What a checker is to find wrong, at these lines.
WRONG = """
import playfield
import playfield.sync
from duel import Dealt, Play


def of_a_card(dealt: Dealt) -> None:
    print(dealt.nothing)  # wrong


def bot(client: playfield.sync.Client) -> None:
    room = client.join_or_create("duel", key=7)  # wrong
    room.request(Play(cards=[], face_down="yes"))  # wrong
    left: int = room.request(Play(cards=[], face_down=True), reply=int, timeout=1)
    text: str = room.request(Play(cards=[], face_down=True), reply=int)  # wrong
    room.on(Dealt, lambda dealt: print(dealt.to, dealt.form))  # wrong
    room.on_left(lambda why: print(why.code, left, text))
    room.on_left(lambda why: print(why.cod))  # wrong


async def waits(room: playfield.Room) -> None:
    await room.until(lambda state: state.round > 3)
    dealt = await room.request("Deal", reply=Dealt)
    print(dealt.to + "x")  # wrong
"""

#: Programs of the WebSocket clients, and what a checker is to find wrong in them.
WEBSOCKETS = """
import asyncio
import ssl

import playfield.websocket.exceptions
from playfield.websocket import (
    ClientConnection,
    ConnectionClosed,
    ConnectionClosedError,
    InvalidHandshake,
    InvalidStatus,
    ProxyError,
    WebSocketException,
    connect,
    unix_connect,
)
from playfield.websocket.sync import connect as connect_sync
from playfield.websocket.sync import reconnect


def handle(message: str | bytes) -> None: ...


def why(closed: ConnectionClosed) -> int | None:
    return closed.rcvd.code if closed.rcvd else None


async def client() -> None:
    context = ssl.create_default_context()
    try:
        async with connect(
            "wss://example.com",
            additional_headers={"Authorization": "Bearer x"},
            subprotocols=["chat"],
            ssl=context,
            max_size=None,
            max_queue=(16, 4),
            ping_interval=None,
        ) as connection:
            await connection.send("hello")
            handle(await connection.recv())
            text: str = await connection.recv(decode=True)
            binary: bytes = await connection.recv(decode=False)
            print(text, binary)
            round_trip: float = await (await connection.ping())
            print(round_trip, connection.protocol.state, connection.request.method)
            async for message in connection:
                handle(message)
    except ConnectionClosedError as closed:
        print(why(closed), closed.sent and closed.sent.reason)
    except ConnectionClosed as closed:
        print(why(closed), closed.nothing)  # wrong
    except InvalidStatus as refused:
        print(refused.response.status_code + 1, refused.response.headers["Server"])
    except (ProxyError, InvalidHandshake) as failed:
        print(failed.args)
    except playfield.websocket.exceptions.InvalidURI as failed:
        print(failed)
    except WebSocketException as failed:
        print(failed)


async def again() -> None:
    async for connection in connect("ws://localhost"):
        try:
            handle(await connection.recv())
        except ConnectionClosed:
            continue


async def keep() -> ClientConnection:
    return await connect("ws://localhost")


class Own(connect):
    def process_redirect(self, exc: Exception) -> Exception | str:
        return super().process_redirect(exc)


def blocking() -> None:
    with connect_sync("ws://localhost", legacy=True, open_timeout=None) as connection:
        connection.send("hello")
        text: str = connection.recv(timeout=5, decode=True)
        print(text, connection.socket.getpeername())
        for message in connection:
            handle(message)
    for connection in reconnect("ws://localhost", close_timeout=1):
        handle(connection.recv())
    for connection in connect_sync("ws://localhost", legacy=False):
        handle(connection.recv())


def mistakes() -> None:
    connect("ws://localhost", max_size="big")  # wrong
    connect("ws://localhost", additional_headers=7)  # wrong
    connect("ws://localhost", extra_headers={})  # wrong
    connect(7)  # wrong
    connect_sync("ws://localhost", max_size="big")  # wrong
    connect_sync("ws://localhost", extra_headers={})  # wrong
    reconnect("ws://localhost", max_queue="long")  # wrong
    unix_connect(7)  # wrong
    unused: int = connect_sync("ws://localhost").recv()  # wrong
    print(unused)


asyncio.run(client())
"""

MARKED = {"wrong.py": WRONG.lstrip("\n"), "websockets_client.py": WEBSOCKETS.lstrip("\n")}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """A folder with the programs, and the generated files that they import."""
    folder = tmp_path_factory.mktemp("programs")
    for path in GENERATED.glob("*.py"):
        shutil.copy(path, folder / path.name)
    # The guide's duel has another schema than that of the generator's tests.
    duel = (GENERATED / "duel.py").read_text()
    guide = "\n\n@_dataclasses.dataclass(frozen=True)\nclass %s:\n    %s: %s\n"
    duel += guide % ("Choose", "index", "int") + guide % ("Shown", "numbers", "_abc.Sequence[int]")
    (folder / "duel.py").write_text(duel)
    text = (ROOT / "docs" / "python.md").read_text()
    found = [
        part for part in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "main()" in part
    ]
    found += [
        part
        for part in re.findall(r"```python\n(.*?)```", text, re.DOTALL)
        if "sync.connect(" in part
    ]
    assert len(found) >= 4
    for number, program in enumerate(found):
        if "await play(table)" in program:
            play = "async def play(room: playfield.Room) -> None: ...\n\n"
            program = f"import asyncio\nimport playfield\n\n{play}{program}"
        (folder / f"program{number}.py").write_text(program)
    for name, program in MARKED.items():
        (folder / name).write_text(program)
    return folder


def are_marked(found, others):
    """Whether what a checker has found, ``(file, line)``, is what the programs mark, and no others."""
    marked = {
        (name, number)
        for name, program in MARKED.items()
        for number, line in enumerate(program.split("\n"), 1)
        if "# wrong" in line
    }
    assert others == [] and set(found) == marked


def test_mypy(programs):
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--cache-dir",
         str(programs / "cache"), "--follow-imports", "normal", str(programs)],
        env={**os.environ, "MYPYPATH": str(ROOT / "sdk" / "python")},
        cwd=programs, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    errors = [
        line
        for line in done.stdout.splitlines()
        if ": error: " in line and "/websocket/" not in line
    ]
    assert done.stderr == ""
    found = {line: tuple(line.split(":")[:2]) for line in errors}
    own = {line: (name, int(at)) for line, (name, at) in found.items() if name in MARKED}
    are_marked(own.values(), [line for line in errors if line not in own])


def test_pyright(programs):
    # The first brings its own program for Node.js; the other downloads it.
    beside = pathlib.Path(sys.executable).parent
    pyright = shutil.which("basedpyright", path=beside) or shutil.which("pyright")
    if pyright is None:
        pytest.skip("pyright is not installed")
    settings = {"extraPaths": [str(ROOT / "sdk" / "python")], "typeCheckingMode": "standard"}
    (programs / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [pyright, "--outputjson", "--pythonpath", sys.executable, "--project", str(programs)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    found = [
        one for one in json.loads(done.stdout)["generalDiagnostics"] if one["severity"] == "error"
    ]
    own = [one for one in found if os.path.basename(one["file"]) in MARKED]
    places = [(os.path.basename(one["file"]), one["range"]["start"]["line"] + 1) for one in own]
    are_marked(places, [one for one in found if one not in own])
