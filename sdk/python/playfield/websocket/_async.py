"""The asynchronous client."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import functools
import random
import socket
import time
import weakref
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Coroutine,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from typing import TYPE_CHECKING, Any, Literal

from .. import _playfield
from .._callbacks import plain_function
from .._limit import within
from . import _common, exceptions
from ._alternatives import checks_arguments
from ._common import Opening, Proxy, Response, State, Target
from .datastructures import HeadersLike
from .typing import DataLike, Limit, LoggerLike, PathLike

if TYPE_CHECKING:
    import ssl as _ssl

__all__ = ["ClientConnection", "connect", "process_exception", "unix_connect"]

_BYTES = 64 << 10

# What ``write_limit=None`` stands for: the default of asyncio's transports, in bytes.
_WRITE_LIMIT = 64 << 10


class _Pipe:
    """A socket during the opening handshake, in plaintext or in TLS."""

    def __init__(self, loop: asyncio.AbstractEventLoop, sock: socket.socket) -> None:
        self.loop = loop
        self.sock = sock
        self.tls: _common.Tls | None = None

    async def wrap(self, tls: _common.Tls) -> None:
        import ssl

        try:
            while not tls.handshake():
                await self._flush(tls)
                data = await self.loop.sock_recv(self.sock, _BYTES)
                if not data:
                    raise ssl.SSLEOFError(8, "the peer ended the TLS handshake")
                tls.feed(data)
        except ssl.SSLError:
            # The alert that tells the peer.
            with contextlib.suppress(OSError):
                await self._flush(tls)
            raise
        await self._flush(tls)
        self.tls = tls

    async def _flush(self, tls: _common.Tls) -> None:
        data = tls.outgoing()
        if not data:
            return
        try:
            await self.loop.sock_sendall(self.sock, data)
        except ConnectionError:
            # The peer has ended the connection. If it has said why in TLS, that is raised instead.
            with contextlib.suppress(ConnectionError):
                while data := await self.loop.sock_recv(self.sock, _BYTES):
                    _common.look_for_alert(tls, data)
            raise

    async def send(self, data: bytes) -> None:
        if self.tls is None:
            await self.loop.sock_sendall(self.sock, data)
            return
        self.tls.write(data)
        await self._flush(self.tls)

    async def recv(self) -> bytes:
        if self.tls is None:
            return await self.loop.sock_recv(self.sock, _BYTES)
        while (plain := self.tls.read()) is None:
            data = await self.loop.sock_recv(self.sock, _BYTES)
            if not data:
                return b""
            self.tls.feed(data)
        return plain


class Transport:
    """A view of a connection with the methods of a transport that make sense for it."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """``peername``, ``sockname``, ``ssl_object``, ``sslcontext``, ``peercert`` or ``cipher``.
        Without an ``ssl.SSLContext``, ``ssl_object`` is a view with the methods ``version``,
        ``cipher`` and ``getpeercert(binary_form=True)``, and there is no ``peercert``."""
        connection = self._connection
        tls = connection._tls_view()
        known: dict[str, Any] = {
            "peername": lambda: connection._remote,
            "sockname": lambda: connection._local,
        }
        if tls is not None:
            known["ssl_object"] = lambda: tls
            known["cipher"] = tls.cipher
        if tls is not None and connection._tls is None:
            known["sslcontext"] = lambda: tls.context
            known["peercert"] = tls.getpeercert
        return known[name]() if name in known else default

    def is_closing(self) -> bool:
        """Whether the connection is closed."""
        return self._connection._is_lost

    def close(self) -> None:
        """End the connection at once."""
        self._connection._abort()

    abort = close


class _Sending(Coroutine):
    """A message that is accepted, but not sent yet. A program need not await it."""

    def __init__(self, future: asyncio.Future) -> None:
        self._future = future
        self._steps: Any = None

    def send(self, value: Any) -> Any:
        if self._steps is None:
            self._steps = self._future.__await__()
        return self._steps.send(value)

    def throw(self, *error: Any) -> Any:
        if self._steps is None:
            self._steps = self._future.__await__()
        return self._steps.throw(*error)

    def close(self) -> None:
        if self._steps is not None:
            self._steps.close()

    def __await__(self):
        return self._future.__await__()


class ClientConnection(_common.Connected, _playfield.AsyncConnection):
    """A connection to a server, made by :func:`connect`.

    ``async for message in connection`` ends when the connection is closed without an error, and
    raises ``ConnectionClosedError`` otherwise. A canceled step ends that iteration and loses no
    message: iterate over the connection again. Use it from its event loop's thread only.
    """

    # Done once the connection is lost, if somebody waits for that.
    _waiter: asyncio.Future | None = None

    def _set_up(self, loop, sock, opening: Opening, options: dict) -> None:
        self.loop = loop
        self._asked, self._head = bytes(opening.handshake.request), opening.head
        self.logger = options.get("logger") or _common.LOGGER
        self.subprotocol = opening.handshake.subprotocol
        self.latency = 0.0
        self._local = sock.getsockname()
        try:
            self._remote = sock.getpeername()
        except OSError:
            self._remote = None  # The connection is lost already.
        self._ping_interval = options["ping_interval"]
        self._ping_timeout = options["ping_timeout"]
        self._close_timeout = options["close_timeout"]
        self._error: Exception | None = None
        self._timed_out: TimeoutError | None = None
        self._draining: list[asyncio.Future] = []
        self._pings: dict[bytes, tuple[asyncio.Future, float]] = {}
        # Done once the fragments of a message are sent, and the task that sends them.
        self._fragments: asyncio.Future | None = None
        self._fragmenter: asyncio.Task | None = None
        # Messages that wait for the end of the fragments, in their order.
        self._held: list[tuple[Any, bool | None, asyncio.Future]] = []
        self._receive_timeout: float | None = options["receive_timeout"]
        if self._receive_timeout is not None:
            # Without a timeout, a receive takes no detour.
            self.recv = self._recv_in_time
        self._timer: asyncio.TimerHandle | None = None
        self._keepalive_timer: asyncio.TimerHandle | None = None
        self._schedule_keepalive()

    def _later(self, delay: float, method: Callable[[Any], None]) -> asyncio.TimerHandle:
        # A loop that has ended keeps its timers, and they would keep the descriptor open.
        return self.loop.call_later(delay, _call, weakref.ref(self), method)

    # What the compiled part calls.

    def _closed_error(self) -> Exception:
        return self._tell(self._timed_out or self._error)

    def _concurrency_error(self, name: str) -> Exception:
        return exceptions.ConcurrencyError(
            f"cannot call {name} while another coroutine is already running recv or recv_streaming"
        )

    def _closing(self) -> None:
        """The closing handshake is complete: the server is to end the stream."""
        timeout = self._close_timeout
        if timeout is not None and self._timer is None:
            self._timer = self._later(timeout, ClientConnection._not_closed)

    def _not_closed(self) -> None:
        timeout = self._close_timeout
        self._timed_out = TimeoutError(f"the server did not close within {timeout} s")
        self._abort()

    def _lost(self, error: Exception | None) -> None:
        self._error = error or self._error
        for timer in (self._timer, self._keepalive_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._keepalive_timer = None
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
        self._fail(self._draining)
        self._draining = []
        held, self._held = self._held, []
        self._fail(future for _, _, future in held)
        pings, self._pings = self._pings, {}
        self._fail(future for future, _ in pings.values())

    def _fail(self, futures: Iterable[asyncio.Future]) -> None:
        for future in futures:
            if not future.done():
                future.set_exception(self._closed_error())
                future.exception()  # A caller need not await it.

    def _write_failed(self, error: Exception) -> None:
        """The kernel takes nothing more. What the server has sent before is still received."""
        self._error = error
        self._fail(self._draining)
        self._draining = []

    def _pong(self, payload: bytes) -> None:
        if payload not in self._pings:
            return
        now = time.perf_counter()
        # A pong answers the pings before, too.
        for sent in list(self._pings):
            future, at = self._pings.pop(sent)
            if sent == payload:
                self.latency = now - at
            if not future.done():
                future.set_result(now - at)
            if sent == payload:
                break

    def _callback_failed(self, error: Exception) -> None:
        self.loop.call_exception_handler(
            {"message": "on_message raised an exception", "exception": error, "connection": self}
        )

    def _drained(self) -> None:
        draining, self._draining = self._draining, []
        for future in draining:
            if not future.done():
                future.set_result(None)

    def _wait_drained(self) -> _Sending:
        future = self.loop.create_future()
        self._draining.append(future)
        return _Sending(future)

    def _send_slowly(self, message: Any, text: bool | None) -> Any:
        if self._fragmenter is not None and self._fragmenter is _current_task():
            raise exceptions.ConcurrencyError(
                "cannot call send while the same task sends the fragments of a message"
            )
        if isinstance(message, (str, bytes, bytearray, memoryview)):
            future = self.loop.create_future()
            self._held.append((message, text, future))
            return _Sending(future)
        if isinstance(message, Mapping):
            raise TypeError("data is a dict-like object")
        if isinstance(message, (Iterable, AsyncIterable)):
            return self._send_parts(message, text)
        raise TypeError("data must be str, bytes, iterable, or async iterable")

    def _send_held(self) -> None:
        """Sends what was held back, before anything that is sent later."""
        held, self._held = self._held, []
        for message, text, future in held:
            if future.done():
                continue  # It was canceled.
            try:
                sending = self.send(message, text)
            except Exception as error:
                future.set_exception(error)
                future.exception()  # A caller need not await it.
                continue
            if isinstance(sending, _Sending):
                sending._future.add_done_callback(functools.partial(_settle, future))
            else:
                future.set_result(None)

    async def _send_parts(self, message: Any, text: bool | None) -> None:
        while self._fragments is not None:
            await asyncio.shield(self._fragments)
        self._fragments, self._fragmenter = self.loop.create_future(), asyncio.current_task()
        try:
            await self._send_fragments(message, text)
        finally:
            self._fragments.set_result(None)
            self._fragments = self._fragmenter = None
            self._send_held()

    async def _send_fragments(self, message: Any, text: bool | None) -> None:
        kind: type | None = None

        async def send(part: Any) -> None:
            nonlocal kind
            own = str if isinstance(part, str) else bytes
            if kind is not None and own is not kind:
                raise TypeError("all fragments of a message must be of one type")
            sending = self._send_fragment(part, text, kind is None, False)
            # The message has begun, even if this task is canceled while it waits.
            kind = own
            await sending

        try:
            if isinstance(message, AsyncIterable):
                async for part in message:
                    await send(part)
            else:
                for part in message:
                    await send(part)
            if kind is not None:
                await self._send_fragment(kind(), text, False, True)
        except exceptions.ConnectionClosed:
            raise
        except BaseException:
            # The server can't know that the rest of the message will not come.
            if kind is not None:
                self._send_close(1011, "error in fragmented message")
                self._closing()
            raise

    # What programs call.

    async def __aiter__(self) -> AsyncIterator[str | bytes]:
        # What a generator yields takes no exception on its way, unlike what a compiled coroutine
        # returns.
        take = self._take
        try:
            while True:
                message = take()
                yield await self.recv() if message is None else message
        except exceptions.ConnectionClosedOK:
            return

    def _recv_in_time(self, decode: bool | None = None) -> Any:
        return self._in_time(_playfield.AsyncConnection.recv(self, decode))

    async def _in_time(self, receive: _playfield.Receive) -> Any:
        if self._receive_timeout is None:
            return await receive
        timer = self.loop.call_later(self._receive_timeout, receive.expire)
        try:
            return await receive
        except TimeoutError:
            raise TimeoutError(f"no message came within {self._receive_timeout} s") from None
        finally:
            timer.cancel()

    async def recv_streaming(self, decode: bool | None = None) -> AsyncIterator[Any]:
        """Receive one message fragment by fragment, as they arrive: ``str`` for text, ``bytes`` for
        binary; ``decode`` set to ``True`` or ``False`` converts to ``str`` or ``bytes``. A
        character that the server split between fragments is in the later one.

        The iterator must be consumed: once it has given a fragment, ``recv`` and another
        ``recv_streaming`` raise ``ConcurrencyError`` until it has given the last one. Raises what
        ``recv`` raises.
        """
        fragment, last = await self._in_time(self._recv_fragment(True))
        decoder = _common.fragment_decoder(decode)
        while True:
            yield decoder(fragment, last)
            if last:
                return
            fragment, last = await self._in_time(self._recv_fragment(False))

    async def ping(self, data: DataLike | None = None) -> asyncio.Future[float]:
        """Send a ping. Returns a future of the round trip, in seconds.

        ``data`` is the payload, at most 125 bytes; a random one by default. Raises
        ``ConcurrencyError`` while a ping with the same payload is unanswered, and
        ``ConnectionClosed``.
        """
        payload = _common.ping_payload(data, self._pings)
        if payload in self._pings:
            raise exceptions.ConcurrencyError("already waiting for a pong with the same data")
        sending = self._send_control(True, payload)
        future = self.loop.create_future()
        self._pings[payload] = (future, time.perf_counter())
        await sending
        return future

    async def pong(self, data: DataLike = b"") -> None:
        """Send a pong that answers no ping, as a sign of life."""
        await self._send_control(False, _common.ping_payload(data, ()))

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection: send a Close frame, and wait for the server's and for the end of
        the stream, for at most ``close_timeout`` seconds. Once closed, it does nothing.

        Raises ``ProtocolError`` for a code or a reason that may not be sent.
        """
        _common.check_close(code, reason)
        if self._fragments is not None:
            # The server can't know that the rest of the message will not come.
            code, reason = 1011, "close during fragmented message"
        if not self._is_lost:
            self._send_close(code, reason)
            self._closing()
        await self.wait_closed()

    async def wait_closed(self) -> None:
        """Wait until the connection is closed."""
        if self._is_lost:
            return
        if self._waiter is None:
            self._waiter = self.loop.create_future()
        await asyncio.shield(self._waiter)

    def abort(self) -> None:
        """End the connection at once, without a Close frame."""
        self._abort()

    @property
    def transport(self) -> Transport:
        """What programs ask a transport of asyncio for, as far as there is one."""
        return Transport(self)

    async def __aenter__(self) -> ClientConnection:
        return self

    async def __aexit__(self, kind: Any, value: Any, traceback: Any) -> None:
        await self.close(1000 if kind is None else 1011)

    # Keepalive.

    def _schedule_keepalive(self) -> None:
        interval = self._ping_interval
        if interval is not None:
            self._keepalive_timer = self._later(interval, ClientConnection._keepalive)

    def _keepalive(self) -> None:
        if self.state is not State.OPEN:
            return
        payload = _common.ping_payload(None, self._pings)
        timeout = self._ping_timeout
        try:
            self._send_control(True, payload)
        except exceptions.ConnectionClosed:
            # The kernel takes nothing more. What the server has sent before can still be received.
            wait = self._ping_interval if timeout is None else timeout
            self._keepalive_timer = self._later(wait, ClientConnection._unanswered)
            return
        future = self.loop.create_future()
        self._pings[payload] = (future, time.perf_counter())
        if timeout is None:
            self._schedule_keepalive()
        else:
            self._keepalive_timer = self._later(timeout, ClientConnection._unanswered)
            future.add_done_callback(self._answered)

    def _answered(self, future: asyncio.Future) -> None:
        if future.exception() is None and not self._is_lost:
            if self._keepalive_timer is not None:
                self._keepalive_timer.cancel()
            self._schedule_keepalive()

    def _unanswered(self) -> None:
        if not self._is_lost:
            self._send_close(1011, "keepalive ping timeout")
            self._abort()


def _call(reference: weakref.ref, method: Callable[[Any], None]) -> None:
    connection = reference()
    if connection is not None:
        method(connection)


def _settle(future: asyncio.Future, sent: asyncio.Future) -> None:
    """Has a future end as the one that it stands for."""
    if future.done() or sent.cancelled():
        return
    error = sent.exception()
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
        future.exception()  # A caller need not await it.


def _current_task() -> asyncio.Task | None:
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def process_exception(error: Exception) -> Exception | None:
    """Whether ``async for`` over :func:`connect` tries again: ``None`` for network errors, timeouts
    and the statuses 500, 502, 503 and 504; else the error to raise."""
    if isinstance(error, (OSError, asyncio.TimeoutError)):
        return None
    if isinstance(error, exceptions.InvalidMessage) and isinstance(error.__cause__, EOFError):
        return None
    if isinstance(error, exceptions.InvalidStatus):
        if error.response.status_code in (500, 502, 503, 504):
            return None
    return error


def backoff() -> Iterator[float]:
    """The delays between attempts, in seconds: at random up to 5, then from 3 up to 90."""
    yield random.random() * 5
    delay = 3.1
    while delay < 90:
        yield delay
        delay *= 1.618
    while True:
        yield 90.0


class connect(_common.Connecting):
    """Connect to the server at ``uri``.

    ``await connect(uri)`` returns a :class:`ClientConnection`. ``async with connect(uri) as
    connection`` closes it at the end. ``async for connection in connect(uri)`` connects again and
    again, with growing delays while that fails for reasons that may pass.

    Arguments, all but ``uri`` by name:

    - ``origin``, ``additional_headers`` (a mapping or pairs; alias ``headers``),
      ``user_agent_header``: headers of the request. A line end in one raises ``ValueError``.
    - ``subprotocols``: those to offer, the preferred first.
    - ``compression``: ``"deflate"`` (default) offers permessage-deflate, ``None`` does not.
    - ``ssl``: an ``ssl.SSLContext``. Without one, TLS is rustls's, which trusts the certificates that
      ``ssl.create_default_context()`` does. ``server_hostname``: the name to check, else that of
      the URI.
    - ``proxy``: ``True`` (default) follows the environment, ``None`` uses none, or the URI of an
      HTTP or HTTPS proxy, or of a SOCKS proxy where ``python-socks`` is installed. ``proxy_ssl``
      and ``proxy_server_hostname`` are for TLS to an HTTPS proxy.
    - ``sock``, ``unix`` (a path), ``host``, ``port``: where to connect instead. ``local_addr``,
      ``family`` (``socket.AF_INET`` or ``AF_INET6``) and ``happy_eyeballs_delay`` (0.25 s; ``None``
      tries one address after the other): how.
    - ``open_timeout`` (10 s; alias ``connect_timeout``; ``ssl_handshake_timeout`` for TLS alone), ``ping_interval`` and ``ping_timeout``
      (20 s each), ``close_timeout`` (10 s): ``None`` for none. ``receive_timeout`` (``None``): after
      so many seconds, a receive without a timeout raises ``TimeoutError``.
    - ``max_size`` (1 MiB): the longest message. ``max_queue`` (16): once more messages wait,
      nothing is read, after what one read has brought. ``write_limit`` (32 KiB): above it, ``await
      send()`` waits.
    - ``on_message``: a function, not a coroutine function, that is called with each message;
      ``recv`` raises ``RuntimeError`` then.
    - ``tcp_nodelay`` (``True``): whether small messages leave at once.
    - ``process_exception``, ``reconnect_delays``: how ``async for`` goes on.
    - ``create_connection``: a subclass of :class:`ClientConnection`.

    Raises ``InvalidURI``, ``InvalidProxy``, ``OSError``, ``InvalidHandshake`` (``InvalidStatus``
    with the response) and ``TimeoutError``.
    """

    @checks_arguments
    def __init__(
        self,
        uri: str,
        *,
        origin: str | None = None,
        subprotocols: Sequence[str] | None = None,
        compression: Literal["deflate"] | None = "deflate",
        extensions: Sequence[Any] | None = None,
        additional_headers: HeadersLike | None = None,
        headers: HeadersLike | None = None,
        user_agent_header: str | None = _common.USER_AGENT,
        proxy: str | bool | None = True,
        process_exception: Callable[[Exception], Exception | None] = process_exception,
        reconnect_delays: Callable[[], Iterator[float]] = backoff,
        open_timeout: float | None = 10,
        connect_timeout: float | None = None,
        receive_timeout: float | None = None,
        ping_interval: float | None = 20,
        ping_timeout: float | None = 20,
        close_timeout: float | None = 10,
        max_size: Limit = 2**20,
        max_queue: Limit = 16,
        write_limit: int | tuple[int, int | None] | None = 2**15,
        ssl: _ssl.SSLContext | Literal[True] | None = None,
        server_hostname: str | None = None,
        ssl_handshake_timeout: float | None = None,
        proxy_ssl: _ssl.SSLContext | Literal[True] | None = None,
        proxy_server_hostname: str | None = None,
        sock: socket.socket | None = None,
        unix: PathLike | Literal[True] | None = None,
        path: PathLike | None = None,
        host: str | None = None,
        port: int | None = None,
        family: int = 0,
        happy_eyeballs_delay: float | None = _common.NEXT_ATTEMPT,
        local_addr: tuple[str, int] | None = None,
        tcp_nodelay: bool = True,
        on_message: Callable[[Any], Any] | None = None,
        create_connection: type[ClientConnection] | None = None,
        logger: LoggerLike | None = None,
    ) -> None:
        self.uri = self._uri = uri
        self.target = Target.of(uri)
        _common.check_tls(self.target.secure, ssl)
        if on_message is not None:
            plain_function(on_message, "on_message")
        self.process_exception = process_exception
        self.reconnect_delays = reconnect_delays
        self.options = {
            "origin": origin,
            "subprotocols": subprotocols,
            "compression": compression,
            "extensions": extensions,
            "additional_headers": additional_headers if headers is None else headers,
            "user_agent_header": user_agent_header,
            "proxy": proxy,
            "open_timeout": open_timeout if connect_timeout is None else connect_timeout,
            "ping_interval": ping_interval,
            "ping_timeout": ping_timeout,
            "close_timeout": close_timeout,
            "max_size": _common.first(max_size),
            "max_queue": _common.first(max_queue),
            "write_limit": _WRITE_LIMIT if write_limit is None else _common.first(write_limit),
            "ssl": ssl,
            "server_hostname": server_hostname,
            "proxy_ssl": proxy_ssl,
            "proxy_server_hostname": proxy_server_hostname,
            "sock": sock,
            "unix": path if unix is True else unix,
            "host": host,
            "port": port,
            "family": family,
            "happy_eyeballs_delay": happy_eyeballs_delay,
            "local_addr": local_addr,
            "ssl_handshake_timeout": ssl_handshake_timeout,
            "receive_timeout": receive_timeout,
            "tcp_nodelay": tcp_nodelay,
            "on_message": on_message,
            "logger": logger,
        }
        self.factory = create_connection or ClientConnection
        self.connection: ClientConnection | None = None
        # A mistake in the headers is one wherever the server is.
        self._first = _common.handshake(self.target, self.options, False)

    async def _connect(self) -> ClientConnection:
        timeout = self.options["open_timeout"]
        try:
            return await within(timeout, self._follow(), ClientConnection.abort)
        except (TimeoutError, asyncio.TimeoutError):
            raise TimeoutError(
                f"timed out during opening handshake: it took longer than {timeout} s"
            ) from None

    async def _follow(self) -> ClientConnection:
        self.uri, target = self._uri, self.target
        for _ in range(_common.REDIRECTS_MAX):
            try:
                return await self._open(target)
            except exceptions.InvalidHandshake as error:
                target = self._redirected(error)
        raise exceptions.SecurityError(f"more than {_common.REDIRECTS_MAX} redirects")

    async def _open(self, target: Target) -> ClientConnection:
        loop = asyncio.get_running_loop()
        options = self.options
        # Each handshake has a key of its own.
        handshake, self._first = self._first, None
        if handshake is None:
            changed = target.origin != self.target.origin
            handshake = _common.handshake(target, options, changed)
        opening = Opening(handshake)
        sock, proxy = await self._socket(loop, target)
        with sock:
            sock.setblocking(False)
            _common.tune(sock, options["tcp_nodelay"])
            pipe = _Pipe(loop, sock)
            if proxy is not None:
                await self._pass(pipe, proxy, target)
            hostname = options["server_hostname"] or target.host
            if target.secure:
                wrapping = pipe.wrap(_common.tls_to(options["ssl"], hostname, pipe.tls))
                await within(options["ssl_handshake_timeout"], wrapping)
            await pipe.send(opening.handshake.request)
            rest = None
            while rest is None:
                rest = opening.feed(await pipe.recv())
            # The connection takes a descriptor of its own; this one is closed here.
            connection = self.factory(
                loop,
                sock,
                opening.handshake,
                max_size=options["max_size"],
                max_queue=options["max_queue"],
                write_limit=options["write_limit"],
                tls=pipe.tls,
                on_message=options["on_message"],
            )
            connection._set_up(loop, sock, opening, options)
            if isinstance(pipe.tls, _common.SslStream):
                connection._tls_object = pipe.tls.object
            elif pipe.tls is not None:
                connection._tls_hostname = hostname
        connection._start(rest)
        return connection

    async def _socket(self, loop: Any, target: Target) -> tuple[socket.socket, Proxy | None]:
        """A socket to the server, or to a proxy that is to be asked."""
        options = self.options
        if options["sock"] is not None:
            return options["sock"], None
        if options["unix"] is not None:
            return await _reach(loop, socket.AF_UNIX, options["unix"]), None
        host = options["host"] or target.host
        port = options["port"] or target.port
        uri = None if options["host"] else _common.find_proxy(target, options["proxy"])
        if uri is None:
            return await _dial(loop, host, port, options), None
        proxy = Proxy(uri)
        proxy.tls_context(options["proxy_ssl"])
        if proxy.is_socks:
            return await _dial_socks(proxy, host, port), None
        return await _dial(loop, proxy.host, proxy.port, options), proxy

    async def _pass(self, pipe: _Pipe, proxy: Proxy, target: Target) -> None:
        """Asks a proxy to connect to the server."""
        context = proxy.tls_context(self.options["proxy_ssl"])
        if context is not None:
            name = self.options["proxy_server_hostname"] or proxy.host
            await pipe.wrap(_common.SslStream(context, name, None))
        await pipe.send(proxy.request(target))
        received = b""
        while not proxy.check(received):
            data = await pipe.recv()
            if not data:
                raise exceptions.InvalidMessage("the proxy closed the connection")
            received += data

    def __await__(self) -> Generator[Any, Any, ClientConnection]:
        return self._connect().__await__()

    async def __aenter__(self) -> ClientConnection:
        self.connection = await self._connect()
        return await self.connection.__aenter__()

    async def __aexit__(self, kind: Any, value: Any, traceback: Any) -> None:
        assert self.connection is not None, "it was entered"
        await self.connection.__aexit__(kind, value, traceback)

    async def __aiter__(self) -> AsyncIterator[ClientConnection]:
        delays: Iterator[float] | None = None
        while True:
            try:
                connection = await self._connect()
            except Exception as error:
                fatal = self.process_exception(error)
                if fatal is error:
                    raise
                if fatal is not None:
                    raise fatal from error
                delays = delays or self.reconnect_delays()
                await asyncio.sleep(next(delays))
                continue
            delays = None
            try:
                yield connection
            finally:
                await connection.close()


def unix_connect(
    path: PathLike | None = None, uri: str | None = None, **options: Any
) -> connect:
    """Connect to a server that listens on a Unix socket."""
    _common.check_unix(path, options.get("sock"))
    scheme = "wss" if options.get("ssl") else "ws"
    return connect(uri or f"{scheme}://localhost/", unix=path, **options)


async def _reach(loop: Any, family: int, address: Any, local: Any = None) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        if local is not None:
            sock.bind(local)
        code = sock.connect_ex(address)
        if code == errno.EINPROGRESS:
            # On this machine it is done by now, and two turns of the loop are saved.
            code = sock.connect_ex(address)
        if code not in (0, errno.EISCONN):
            await loop.sock_connect(sock, address)
    except BaseException:
        sock.close()
        raise
    return sock


async def _dial(loop: Any, host: str, port: int, options: dict) -> socket.socket:
    """Connects to the address of a host that answers first (RFC 8305)."""
    family, local = options["family"], options["local_addr"]
    try:
        # An address needs no look-up, which takes a thread.
        numeric = socket.AI_NUMERICHOST
        found = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM, flags=numeric)
    except socket.gaierror:
        found = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
    if len(found) == 1:
        return await _reach(loop, found[0][0], found[0][4], local)
    left = _common.in_turn(found)
    failure: OSError = OSError(f"{host} has no address")
    attempts: set[asyncio.Task] = set()
    try:
        while left or attempts:
            if left:
                family, _, _, _, address = left.pop(0)
                attempts.add(loop.create_task(_reach(loop, family, address, local)))
            done, attempts = await asyncio.wait(
                attempts,
                timeout=options["happy_eyeballs_delay"] if left else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
            reached = []
            for attempt in done:
                try:
                    reached.append(attempt.result())
                except OSError as error:
                    failure = error
            if reached:
                for spare in reached[1:]:
                    spare.close()
                return reached[0]
        raise failure
    finally:
        for attempt in attempts:
            attempt.cancel()
            attempt.add_done_callback(_close_late)


def _close_late(attempt: asyncio.Task) -> None:
    """An attempt to connect that was given up may have succeeded."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().close()


async def _dial_socks(proxy: Proxy, host: str, port: int) -> socket.socket:
    try:
        from python_socks.async_.asyncio import Proxy as Socks
    except ImportError:
        raise ImportError("connecting through a SOCKS proxy requires python-socks") from None
    uri, rdns = proxy.socks()
    socks = Socks.from_url(uri, rdns=rdns)
    try:
        return await socks.connect(dest_host=host, dest_port=port)
    except OSError:
        raise
    except Exception as error:
        raise exceptions.ProxyError("failed to connect to SOCKS proxy") from error
