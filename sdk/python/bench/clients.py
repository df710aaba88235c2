"""The clients that are measured. Each is a function that is called with the URL and a driver."""

from drivers import drive_async, drive_callbacks, drive_sync

_PLAIN = {"compression": None, "max_size": None, "ping_interval": None, "proxy": None}


def playfield_sync(url, plan):
    from playfield.websocket.sync import connect

    with connect(url, **_PLAIN) as connection:
        drive_sync(plan, connection.send, connection.recv)


def playfield_sync_spin(url, plan):
    from playfield.websocket.sync import connect

    with connect(url, **_PLAIN, spin_us=1000) as connection:
        drive_sync(plan, connection.send, connection.recv)


def playfield_sync_cork(url, plan):
    from playfield.websocket.sync import connect

    with connect(url, **_PLAIN) as connection:
        drive_sync(plan, connection.send, connection.recv, connection.cork)


def websockets_sync(url, plan):
    from websockets.sync.client import connect

    with connect(url, **_PLAIN) as connection:
        drive_sync(plan, connection.send, connection.recv)


def websocket_client(url, plan):
    from websocket import create_connection

    connection = create_connection(url, sockopt=((6, 1, 1),))
    drive_sync(plan, connection.send_binary, connection.recv)
    connection.close()


def websocket_rs_sync(url, plan):
    from websocket_rs.sync.client import connect

    with connect(url) as connection:
        drive_sync(plan, connection.send, connection.recv)


async def playfield_async(url, plan):
    from playfield.websocket import connect

    async with connect(url, **_PLAIN, max_queue=None) as connection:
        await drive_async(plan, connection.send, connection.recv)


async def playfield_callback(url, plan):
    from playfield.websocket import connect

    async def start(on_message):
        connection = await connect(url, **_PLAIN, on_message=on_message)
        return connection.send

    await drive_callbacks(plan, start)


async def picows_async(url, plan):
    from picows.websockets import connect

    async with connect(url, **_PLAIN) as connection:
        await drive_async(plan, connection.send, connection.recv)


async def picows_callback(url, plan):
    from picows import WSListener, WSMsgType, ws_connect

    async def start(on_message):
        class Listener(WSListener):
            def on_ws_frame(self, transport, frame):
                on_message(frame.get_payload_as_bytes())

        transport, _ = await ws_connect(Listener, url)
        return lambda message: transport.send(WSMsgType.BINARY, message)

    await drive_callbacks(plan, start)


async def websockets_async(url, plan):
    from websockets.asyncio.client import connect

    async with connect(url, **_PLAIN, max_queue=None) as connection:
        await drive_async(plan, connection.send, connection.recv)


async def aiohttp_async(url, plan):
    from aiohttp import ClientSession

    async with ClientSession() as session:
        async with session.ws_connect(url, max_msg_size=0) as connection:
            await drive_async(plan, connection.send_bytes, connection.receive_bytes)


SYNC = [
    playfield_sync,
    playfield_sync_cork,
    playfield_sync_spin,
    websocket_rs_sync,
    websocket_client,
    websockets_sync,
]
ASYNC = [
    playfield_async,
    playfield_callback,
    picows_async,
    picows_callback,
    aiohttp_async,
    websockets_async,
]
