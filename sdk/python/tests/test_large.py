"""Messages that are encoded in parts."""

import asyncio
import socket
import threading

import pytest
from conftest import upgrade

from playfield.websocket import connect, sync

OPTIONS = {"compression": None, "max_size": None, "proxy": None, "ping_interval": None}


def frames(sock):
    """The client's frames, ``(first byte, payload)``."""
    stream = sock.makefile("rb")
    while header := stream.read(2):
        length = header[1] & 127
        if length > 125:
            length = int.from_bytes(stream.read(2 if length == 126 else 8), "big")
        mask, payload = stream.read(4), stream.read(length)
        repeated = (mask * (length // 4 + 1))[:length]
        masked = int.from_bytes(payload, "big") ^ int.from_bytes(repeated, "big")
        yield header[0], masked.to_bytes(length, "big")


@pytest.mark.parametrize("size", [(256 << 10) + delta for delta in (0, 1, 300_001)])
def test_messages_around_the_limit(run, server, size):
    url = server(max_size=None)
    sent = [bytes([number]) * size for number in range(3)] + ["x" * size]

    async def main():
        async with connect(url, **OPTIONS) as connection:
            sending = [connection.send(message) for message in sent]
            assert [await connection.recv() for _ in sent] == sent
            await asyncio.gather(*sending)

    run(main())
    with sync.connect(url, **OPTIONS) as connection:
        for message in sent:
            connection.send(message)
            assert connection.recv(timeout=10) == message


@pytest.mark.parametrize("flavor", ["sync", "async"])
def test_a_pong_never_comes_inside_a_message(run, script, flavor):
    """So many pings come that pongs wait, while long messages are sent to a server that reads late."""
    got, pinged, read = [], threading.Event(), threading.Event()

    def flood(sock):
        upgrade(sock)
        pings = (b"\x89\x7d" + b"p" * 125) * 100
        sock.sendall(pings + b"\x81\x01a")
        assert pinged.wait(10)
        sock.sendall(pings)
        for byte, payload in frames(sock):
            got.append((byte, len(payload), payload[:1]))
            if byte == 0x82 and payload[:1] == b"\x03":
                sock.sendall(b"\x88\x02\x03\xe8")
                sock.shutdown(socket.SHUT_WR)
        read.set()

    messages = [bytes([number]) * (2 << 20) for number in range(4)]
    url = script(flood)
    if flavor == "sync":
        with sync.connect(url, **OPTIONS) as connection:
            assert connection.recv(timeout=10) == "a"
            pinged.set()
            for message in messages:
                connection.send(message)
            assert list(connection) == []
    else:

        async def main():
            async with connect(url, **OPTIONS) as connection:
                assert await connection.recv() == "a"
                for message in messages:
                    connection.send(message)
                pinged.set()
                assert [message async for message in connection] == []

        run(main())
    assert read.wait(10)
    whole = [frame for frame in got if frame[0] == 0x82]
    assert whole == [(0x82, 2 << 20, bytes([number])) for number in range(4)]
    assert {byte for byte, _, _ in got} == {0x82, 0x88, 0x8A}
