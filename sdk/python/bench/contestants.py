"""The clients that are measured, and how each of them connects."""

import contextlib
import socket
import ssl

from workloads import Callbacks, differs, run_await, run_sync

_PLAIN = {"max_size": None, "ping_interval": None, "proxy": None}


class Target:
    """Where to connect to, and how."""

    def __init__(self, url, certificate=None, compressed=False):
        self.url = url
        self.certificate = certificate
        self.compressed = compressed
        self.compression = "deflate" if compressed else None
        self.context = certificate and ssl.create_default_context(cafile=certificate)
        self.session = None


class Contestant:
    """`style` is sync, await or callback; `package` is what has to be installed; `takes` says which
    of tls and deflate it can do."""

    package = "playfield"
    ours = False
    takes = ("tls", "deflate")
    # It speaks no WebSocket: what is left is the kernel and the interpreter.
    floor = False
    # Closing ends once the server has closed, too.
    waits_for_close = True


class Sync(Contestant):
    style = "sync"

    def operations(self, connection):
        return {"send": connection.send, "recv": connection.recv}

    def run(self, connection, work, messages, count, clock):
        run_sync(work, messages, count, clock, **self.operations(connection))

    def close(self, connection):
        connection.close()


class Playfield(Sync):
    name = "playfield"
    ours = True
    options = {}

    def connect(self, target):
        from playfield.websocket.sync import connect

        options = {**_PLAIN, **self.options, "compression": target.compression}
        # It trusts the certificates of SSL_CERT_FILE.
        return connect(target.url, **options)


class PlayfieldContext(Playfield):
    name = "playfield, ssl=context"
    takes = ("tls",)

    def connect(self, target):
        from playfield.websocket.sync import connect

        return connect(target.url, ssl=target.context, compression=None, **_PLAIN)


class PlayfieldSpin(Playfield):
    name = "playfield, spin_us=1000"
    options = {"spin_us": 1000}


class PlayfieldCork(Playfield):
    name = "playfield, cork()"

    def operations(self, connection):
        send = connection.send

        def send_window(messages):
            with connection.cork():
                for message in messages:
                    send(message)

        return {**super().operations(connection), "send_window": send_window}


class PlayfieldMany(Playfield):
    name = "playfield, send_many, recv_many"

    def operations(self, connection):
        recv_many = connection.recv_many

        def recv_window(messages):
            taken = 0
            while taken < len(messages):
                received = recv_many(len(messages) - taken)
                if received != messages[taken : taken + len(received)]:
                    raise differs(messages[taken])
                taken += len(received)

        return {
            **super().operations(connection),
            "send_window": connection.send_many,
            "recv_window": recv_window,
        }


class WebsocketRs(Sync):
    name = "websocket-rs"
    package = "websocket-rs"
    waits_for_close = False
    takes = ("tls",)

    def connect(self, target):
        # It trusts the certificates of SSL_CERT_FILE.
        from websocket_rs.sync.client import connect

        return connect(target.url)


class Websockets(Sync):
    name = "websockets"
    package = "websockets"

    def connect(self, target):
        from websockets.sync.client import connect

        return connect(target.url, ssl=target.context, compression=target.compression, **_PLAIN)


class WebsocketClient(Sync):
    name = "websocket-client"
    package = "websocket-client"
    takes = ("tls",)

    def connect(self, target):
        from websocket import create_connection

        nodelay = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)
        trusted = {"ca_certs": target.certificate} if target.certificate else None
        return create_connection(target.url, sockopt=nodelay, sslopt=trusted)

    def operations(self, connection):
        return {"send": connection.send_binary, "recv": connection.recv}


class RawSocket(Sync):
    """Frames that were made before, over a plain socket: the least that Python can do."""

    name = "plain socket, no WebSocket"
    package = None
    takes = ()
    floor = True

    def connect(self, target):
        host, port = target.url.removeprefix("ws://").rstrip("/").split(":")
        connection = socket.create_connection((host, int(port)))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="
        connection.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n{key}\r\n\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.recv(1)
        return connection

    def operations(self, connection):
        made, buffer = {}, memoryview(bytearray(2 << 20))
        expected = 0

        def send(message):
            nonlocal expected
            frame, _ = made.get(id(message), (None, None))
            if frame is None:
                size = len(message)
                if size < 126:
                    header = bytes([0x82, 0x80 | size])
                elif size < 65536:
                    header = b"\x82\xfe" + size.to_bytes(2, "big")
                else:
                    header = b"\x82\xff" + size.to_bytes(8, "big")
                # A mask of zeros leaves the payload as it is.
                frame = header + bytes(4) + message
                # It keeps the message, and so its id.
                made[id(message)] = frame, message
            expected = len(frame) - 4
            connection.sendall(frame)

        def recv():
            have = 0
            while have < expected:
                have += connection.recv_into(buffer[have:expected])
            payload = 2 if expected < 128 else 4 if expected < 65540 else 10
            return bytes(buffer[payload:expected])

        return {"send": send, "recv": recv}


class Await(Contestant):
    style = "await"
    awaits_send = True

    def operations(self, connection):
        return {
            "send": connection.send,
            "recv": connection.recv,
            "messages_of": connection.__aiter__,
        }

    async def run(self, connection, work, messages, count, clock):
        operations = self.operations(connection)
        await run_await(work, messages, count, clock, **operations, awaits_send=self.awaits_send)

    async def close(self, connection):
        await connection.close()


class PlayfieldAwait(Await):
    name = "playfield"
    ours = True

    async def connect(self, target):
        from playfield.websocket import connect

        options = {**_PLAIN, "max_queue": None, "compression": target.compression}
        # It trusts the certificates of SSL_CERT_FILE.
        return await connect(target.url, **options)


class PlayfieldContextAwait(PlayfieldAwait):
    name = "playfield, ssl=context"
    takes = ("tls",)

    async def connect(self, target):
        from playfield.websocket import connect

        options = {**_PLAIN, "max_queue": None, "compression": None}
        return await connect(target.url, ssl=target.context, **options)


class WebsocketRsAwait(Await):
    name = "websocket-rs"
    package = "websocket-rs"
    waits_for_close = False
    awaits_send = False

    async def connect(self, target):
        from websocket_rs import connect

        options = {"ssl_context": target.context} if target.context else {}
        return await connect(target.url, compression=target.compressed, **options)

    async def close(self, connection):
        connection.close()


class PicowsAwait(Await):
    name = "picows.websockets"
    package = "picows"

    async def connect(self, target):
        from picows.websockets import connect

        options = {**_PLAIN, "max_queue": None, "compression": target.compression}
        if target.context:
            options["ssl"] = target.context
        return await connect(target.url, **options)


class WebsocketsAwait(Await):
    name = "websockets"
    package = "websockets"

    async def connect(self, target):
        from websockets.asyncio.client import connect

        options = {**_PLAIN, "max_queue": None, "compression": target.compression}
        return await connect(target.url, ssl=target.context, **options)


class AiohttpAwait(Await):
    name = "aiohttp"
    package = "aiohttp"

    async def connect(self, target):
        from aiohttp import ClientSession, TCPConnector

        if target.session is None:
            target.session = ClientSession(connector=TCPConnector(limit=0))
        options = {"ssl": target.context} if target.context else {}
        compress = 15 if target.compressed else 0
        return await target.session.ws_connect(
            target.url, max_msg_size=0, compress=compress, **options
        )

    def operations(self, connection):
        return {
            "send": connection.send_bytes,
            "recv": connection.receive_bytes,
            "messages_of": connection.__aiter__,
        }


class Callback(Contestant):
    style = "callback"
    takes = ("tls",)

    async def run(self, connection, work, messages, count, clock):
        await self.callbacks.run(work, messages, count, clock)

    async def close(self, connection):
        await connection.close()


class PlayfieldCallback(Callback):
    name = "playfield, on_message"
    ours = True

    async def connect(self, target):
        from playfield.websocket import connect

        self.callbacks = Callbacks()
        # It trusts the certificates of SSL_CERT_FILE.
        connection = await connect(
            target.url, compression=None, on_message=self.callbacks, **_PLAIN
        )
        self.callbacks.send = connection.send
        return connection


class WebsocketRsCallback(Callback):
    name = "websocket-rs, on_message"
    package = "websocket-rs"

    async def connect(self, target):
        from websocket_rs import connect

        self.callbacks = Callbacks()
        options = {"ssl_context": target.context} if target.context else {}
        connection = await connect(target.url, on_message=self.callbacks, **options)
        self.callbacks.send = connection.send
        return connection

    async def close(self, connection):
        connection.close()


class PicowsCallback(Callback):
    name = "picows, on_ws_frame"
    package = "picows"

    async def connect(self, target):
        from picows import WSListener, WSMsgType, ws_connect

        callbacks = self.callbacks = Callbacks()
        binary = WSMsgType.BINARY

        class Listener(WSListener):
            def on_ws_frame(self, transport, frame):
                if frame.msg_type == binary:
                    callbacks(frame.get_payload_as_bytes())

        options = {"ssl_context": target.context} if target.context else {}
        transport, listener = await ws_connect(Listener, target.url, **options)
        send = transport.send
        callbacks.send = lambda message: send(binary, message)
        return transport, listener

    async def close(self, connection):
        with contextlib.suppress(Exception):
            connection[0].disconnect()


ALL = [
    Playfield(),
    PlayfieldSpin(),
    PlayfieldCork(),
    PlayfieldMany(),
    PlayfieldContext(),
    WebsocketRs(),
    WebsocketClient(),
    Websockets(),
    RawSocket(),
    PlayfieldAwait(),
    PlayfieldContextAwait(),
    WebsocketRsAwait(),
    PicowsAwait(),
    AiohttpAwait(),
    WebsocketsAwait(),
    PlayfieldCallback(),
    WebsocketRsCallback(),
    PicowsCallback(),
]


def named(style, name):
    return next(one for one in ALL if (one.style, one.name) == (style, name))
