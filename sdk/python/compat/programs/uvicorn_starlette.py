"""uvicorn serves an application of Starlette, with the servers of `websockets`; the clients are this
package's."""

import asyncio
import threading

import playfield.websocket.replace  # noqa: F401  before the library

import uvicorn
import websockets
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from websockets.sync.client import connect


async def echo(socket):
    await socket.accept(subprotocol="echo")
    async for text in socket.iter_text():
        await socket.send_text(text)


application = Starlette(routes=[WebSocketRoute("/echo", echo)])


async def awaited(url):
    async with websockets.connect(url, subprotocols=["echo"]) as connection:
        assert connection.subprotocol == "echo"
        for text in ("hello", "x" * 100_000):
            await connection.send(text)
            assert await connection.recv() == text
    assert connection.close_code == 1000


assert websockets.connect.__module__.startswith("playfield.")
for implementation in ("websockets-sansio", "websockets"):
    config = uvicorn.Config(application, port=0, ws=implementation, log_level="error")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        threading.Event().wait(0.01)
    url = "ws://127.0.0.1:%d/echo" % server.servers[0].sockets[0].getsockname()[1]
    asyncio.run(awaited(url))
    with connect(url, subprotocols=["echo"]) as connection:
        connection.send("hello")
        assert connection.recv() == "hello"
    server.should_exit = True
    thread.join()
