"""What `websockets` offers to clients, this package has under the same names and modules."""

import importlib
import logging
import sys
import sysconfig

import pytest
import websockets
from conftest import ROOT

import playfield.websocket
from playfield.websocket import Headers, InvalidHeaderValue, MultipleValuesError, broadcast, exceptions

#: Modules of `websockets`, with what of them is not here.
MODULES = {
    "asyncio.client": (),
    "asyncio.connection": (),
    "client": ("ClientProtocol",),
    "datastructures": (),
    "exceptions": (),
    "extensions.permessage_deflate": (
        "PerMessageDeflate",
        "ServerPerMessageDeflateFactory",
        "enable_server_permessage_deflate",
    ),
    "frames": ("Frame",),
    "http11": ("SERVER",),
    "protocol": ("Protocol", "SEND_EOF"),
    "sync.client": (),
    "sync.connection": (),
    "typing": (),
    "version": ("commit", "tag"),
}

#: What is for servers, or for protocols without I/O.
OF_OTHERS = {
    "ClientProtocol",
    "Frame",
    "Protocol",
    "Router",
    "Server",
    "ServerConnection",
    "ServerProtocol",
    "basic_auth",
    "route",
    "serve",
    "unix_route",
    "unix_serve",
}


def names(module):
    return getattr(module, "__all__", None) or [name for name in vars(module) if name[0] != "_"]


@pytest.mark.parametrize("name", MODULES)
def test_each_module_has_the_names(name):
    theirs = importlib.import_module(f"websockets.{name}")
    ours = importlib.import_module(f"playfield.websocket.{name}")
    public = set(getattr(theirs, "__all__", ()))
    assert public <= set(vars(theirs))
    assert public - set(vars(ours)) == set(MODULES[name])
    for other in ("backoff", "process_exception"):
        if name == "client":
            assert hasattr(theirs, other) and hasattr(ours, other)


def test_the_package_has_the_names():
    assert set(websockets.__all__) - set(playfield.websocket.__all__) == OF_OTHERS
    for name in playfield.websocket.__all__:
        assert hasattr(playfield.websocket, name)
    assert playfield.websocket.__version__ == playfield.__version__


@pytest.mark.parametrize("name", websockets.exceptions.__all__)
def test_exceptions_are_subclasses(name):
    theirs, ours = getattr(websockets.exceptions, name), getattr(exceptions, name)
    assert issubclass(ours, theirs)
    # Without `websockets`, the same names stand in the same order.
    own = getattr(playfield.websocket._exceptions, name)
    bases = {base.__name__ for base in theirs.__mro__} & set(websockets.exceptions.__all__)
    assert {base.__name__ for base in own.__mro__} & set(websockets.exceptions.__all__) == bases


def test_values_are_the_same():
    from playfield.websocket.frames import CloseCode, Opcode
    from playfield.websocket.protocol import OPEN, State
    from playfield.websocket.typing import Data, Origin, Subprotocol
    from websockets import frames, protocol

    assert list(CloseCode) == list(frames.CloseCode) and list(Opcode) == list(frames.Opcode)
    assert list(State) == list(protocol.State) and OPEN is protocol.OPEN
    assert (Origin("o"), Subprotocol("s")) == ("o", "s") and Data == (str | bytes)


def test_headers():
    headers = Headers({"A": "1"}, b="2")
    headers["a"] = "3"
    assert headers.get_all("A") == ["1", "3"] and headers.get_all("none") == []
    assert headers["B"] == "2" and "b" in headers and "c" not in headers and 1 not in headers
    with pytest.raises(MultipleValuesError):
        headers["A"]
    with pytest.raises(KeyError):
        headers["c"]
    for text in ["x\r\nEvil: 1", "x\ny", "x\0"]:
        with pytest.raises(InvalidHeaderValue):
            headers["c"] = text
    theirs = websockets.Headers({"A": "1"}, b="2")
    theirs["a"] = "3"
    assert list(headers.raw_items()) == list(theirs.raw_items())
    assert headers.serialize() == theirs.serialize() and list(headers) == list(theirs)
    other = headers.copy()
    assert other == headers and len(other) == 2
    del other["a"]
    assert list(other.raw_items()) == [("b", "2")] and other != headers
    assert list(Headers(headers).raw_items()) == list(headers.raw_items())
    other.clear()
    assert not other and repr(headers).startswith("Headers([('A', '1')")


def test_a_message_to_many(run, server, caplog):
    async def main(url):
        connect = playfield.websocket.connect
        async with connect(url) as one, connect(url) as two, connect(url) as closed:
            await closed.close()
            broadcast([one, closed, two], "hello")
            assert [await one.recv(), await two.recv()] == ["hello", "hello"]
            broadcast([one], b"bytes", text=True)
            assert await one.recv() == "bytes"
            with pytest.raises(TypeError):
                broadcast([one], 1)
            fragments = two.send(slow())
            task = run_soon(fragments)
            while two._fragments is None:
                await asyncio.sleep(0)
            broadcast([two, one], "to one")
            assert await one.recv() == "to one" and "fragmented" in caplog.text
            with pytest.raises(Exception) as raised:
                broadcast([two, one], "again", raise_exceptions=True)
            assert "fragmented" in str(getattr(raised.value, "exceptions", [raised.value])[0])
            assert await one.recv() == "again"
            go.set()
            await task
            assert await two.recv() == "ab"

    import asyncio

    go = asyncio.Event()

    async def slow():
        yield "a"
        await go.wait()
        yield "b"

    def run_soon(awaitable):
        return asyncio.ensure_future(awaitable)

    with caplog.at_level(logging.WARNING):
        run(main(server()))


def test_connecting_again_and_again(server):
    from playfield.websocket.sync import reconnect, unix_reconnect

    async def once(connection):
        await connection.send("hello")

    url, seen = server(once), []
    for connection in reconnect(url):
        seen.append(connection.recv())
        if len(seen) == 3:
            break
    assert seen == ["hello"] * 3
    with reconnect(url) as connection:
        assert connection.recv() == "hello"
    # A reason that may pass is waited for; another raises.
    delays, tried = [], []
    once_more = iter([OSError("down"), KeyError("mistake")])

    def process(error):
        tried.append(error)
        return next(once_more) if len(tried) > 1 else None

    def no_delay():
        while True:
            delays.append(0)
            yield 0

    with pytest.raises(OSError, match="down"):
        for _ in reconnect("ws://127.0.0.1:9", process_exception=process, reconnect_delays=no_delay):
            raise AssertionError
    assert len(tried) == 2 and delays == [0]
    with pytest.raises(ValueError):
        unix_reconnect()


def test_the_module_is_not_declared_safe_without_the_interpreters_lock():
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert sys._is_gil_enabled()
    # Other builds do not say: PyO3 declares modules safe by default.
    source = (ROOT / "crates" / "python" / "src" / "lib.rs").read_text()
    assert "#[pymodule(gil_used = true)]" in source
