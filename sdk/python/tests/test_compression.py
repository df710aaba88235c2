"""permessage-deflate: by default as `websockets` offers it, with contexts that are kept."""

import json

import pytest
import websockets.extensions.permessage_deflate as theirs

from playfield.websocket import NegotiationError, connect
from playfield.websocket.extensions.permessage_deflate import (
    ClientPerMessageDeflateFactory,
    enable_client_permessage_deflate,
)
from playfield.websocket.sync import connect as connect_sync

EXTENSIONS = "Sec-WebSocket-Extensions"
STATELESS = ClientPerMessageDeflateFactory(
    server_no_context_takeover=True, client_no_context_takeover=True
)


def message(number):
    return json.dumps({"op": "quote", "symbol": "BTCUSD", "venue": "somewhere", "number": number})


def test_the_offer_is_that_of_websockets(run, server):
    async def main(url):
        async with connect(url) as connection:
            assert connection.request.headers[EXTENSIONS] == (
                "permessage-deflate; client_max_window_bits"
            )
            answer = connection.response.headers[EXTENSIONS]
            assert "no_context_takeover" not in answer
        for extension in [STATELESS, theirs.ClientPerMessageDeflateFactory(True, True)]:
            async with connect(url, extensions=[extension]) as connection:
                answer = connection.response.headers[EXTENSIONS]
                assert answer.count("no_context_takeover") == 2
        small = ClientPerMessageDeflateFactory(server_max_window_bits=10, client_max_window_bits=9)
        async with connect(url, extensions=[small], compression=None) as connection:
            answer = connection.response.headers[EXTENSIONS]
            assert "server_max_window_bits=10" in answer and "client_max_window_bits=9" in answer
            for number in range(50):
                await connection.send(message(number) * 20)
                assert await connection.recv() == message(number) * 20

    run(main(server()))


def test_contexts_make_similar_messages_short(run, server):
    received = {}

    async def count(connection):
        """Echoes, and counts what came."""
        read = connection.protocol.receive_data
        path = connection.request.path

        def receive(data):
            received[path] = received.get(path, 0) + len(data)
            read(data)

        connection.protocol.receive_data = receive
        async for text in connection:
            await connection.send(text)

    async def main(url):
        for path, options in [("kept", {}), ("reset", {"extensions": [STATELESS]})]:
            async with connect(url + path, **options) as connection:
                for number in range(200):
                    await connection.send(message(number))
                assert [await connection.recv() for _ in range(200)] == [
                    message(number) for number in range(200)
                ]

    run(main(server(count)))
    plain = 200 * len(message(100))
    assert received["/kept"] * 2 < received["/reset"] and received["/kept"] * 3 < plain


def test_contexts_of_blocking_connections(server):
    url = server()
    for extensions in [None, [STATELESS]]:
        with connect_sync(url, extensions=extensions) as connection:
            connection.send_many([message(number) for number in range(100)])
            assert [connection.recv() for _ in range(100)] == [message(n) for n in range(100)]
            connection.send("x" * 500_000)
            assert connection.recv() == "x" * 500_000


def test_mistakes(run, server, script):
    from conftest import upgrade

    for extension in [object(), theirs.ServerPerMessageDeflateFactory()]:
        if getattr(extension, "name", None) != "permessage-deflate":
            with pytest.raises(ValueError, match="unsupported extension"):
                connect("ws://127.0.0.1:9", extensions=[extension])
    for wrong in [{"server_max_window_bits": 7}, {"client_max_window_bits": 8}]:
        with pytest.raises(ValueError):
            ClientPerMessageDeflateFactory(**wrong)
    with pytest.raises(ValueError):
        connect("ws://127.0.0.1:9", compression="zip")
    assert enable_client_permessage_deflate([STATELESS]) == [STATELESS]
    assert len(enable_client_permessage_deflate(None)) == 1

    async def main(url):
        with pytest.raises(NegotiationError):
            await connect(url, compression=None)

    # A server that compresses without being asked.
    run(main(script(lambda sock: upgrade(sock, b"Sec-WebSocket-Extensions: permessage-deflate\r\n"))))
