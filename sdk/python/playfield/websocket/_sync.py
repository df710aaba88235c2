"""The synchronous client."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from .. import _playfield
from . import _common, exceptions
from ._alternatives import checks_arguments
from ._attendant import attendant
from ._common import Opening, Proxy, Response, Target
from ._views import Socket
from .datastructures import HeadersLike
from .typing import DataLike, Limit, LoggerLike, PathLike

if TYPE_CHECKING:
    import ssl as _ssl

    from typing_extensions import Unpack

    from ._reconnect import reconnect
    from .typing import ConnectOptions

__all__ = ["ClientConnection", "connect", "unix_connect"]

_BYTES = 64 << 10

# How often a thread that does not receive looks whether it may read, in seconds.
_LOOK_AGAIN = 0.02

# How long it reads at a time: another thread may take what it waits for.
_PUMP = 0.1

# How long a receive may poll, in microseconds. Ctrl-C waits for its end.
SPIN_US_MAX = 100_000


class _Deadline:
    """The end of a timeout, over several waits."""

    def __init__(self, timeout: float | None) -> None:
        self.timeout = timeout
        self.at = None if timeout is None else time.monotonic() + timeout

    def left(self) -> float | None:
        """The seconds that are left. Raises ``TimeoutError`` if there are none."""
        if self.at is None:
            return None
        left = self.at - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"the opening handshake took longer than {self.timeout} s")
        return left


class _Pipe:
    """A socket during the opening handshake, in plaintext or in TLS."""

    def __init__(self, sock: socket.socket, deadline: _Deadline) -> None:
        self.sock = sock
        self.deadline = deadline
        self.tls: _common.Tls | None = None

    def wrap(self, tls: _common.Tls) -> None:
        import ssl

        try:
            while not tls.handshake():
                self._flush(tls)
                data = self._recv()
                if not data:
                    raise ssl.SSLEOFError(8, "the peer ended the TLS handshake")
                tls.feed(data)
        except ssl.SSLError:
            # The alert that tells the peer.
            with contextlib.suppress(OSError):
                self._send(tls.outgoing())
            raise
        self._flush(tls)
        self.tls = tls

    def _flush(self, tls: _common.Tls) -> None:
        try:
            self._send(tls.outgoing())
        except ConnectionError:
            # The peer has ended the connection. If it has said why in TLS, that is raised instead.
            with contextlib.suppress(ConnectionError):
                while data := self._recv():
                    _common.look_for_alert(tls, data)
            raise

    def _send(self, data: bytes) -> None:
        self.sock.settimeout(self.deadline.left())
        self.sock.sendall(data)

    def _recv(self) -> bytes:
        self.sock.settimeout(self.deadline.left())
        return self.sock.recv(_BYTES)

    def send(self, data: bytes) -> None:
        if self.tls is not None:
            self.tls.write(data)
            self._flush(self.tls)
        else:
            self._send(data)

    def recv(self) -> bytes:
        if self.tls is None:
            return self._recv()
        while (plain := self.tls.read()) is None:
            data = self._recv()
            if not data:
                return b""
            self.tls.feed(data)
        return plain


class _Pong(threading.Event):
    """Set when a ping is answered, or the connection is closed."""

    def __init__(self, connection: ClientConnection, on_close: bool) -> None:
        super().__init__()
        self._connection = connection
        self._on_close = on_close
        #: The round trip, in seconds, once the ping is answered.
        self.latency: float | None = None

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the pong, for at most ``timeout`` seconds. Returns whether it came.

        Messages that arrive meanwhile wait for ``recv``. Once ``max_queue`` wait, nothing is read,
        not even the pong, until a program receives some.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while not self.is_set() and not self._connection._is_lost:
            left = _PUMP if end is None else min(_PUMP, end - time.monotonic())
            if left <= 0:
                break
            if not self._connection._pump(left):
                # Another thread receives, and takes the pong too; or it is to receive first.
                super().wait(min(left, _LOOK_AGAIN))
        if self._on_close and self._connection._is_lost:
            self.set()
        return self.is_set()


class ClientConnection(_common.Connected, _playfield.SyncConnection):
    """A connection to a server, made by :func:`connect`.

    One thread may receive while others send. ``for message in connection`` ends when the
    connection is closed without an error, and raises ``ConnectionClosedError`` otherwise.

    A signal handler may use the connection that it has interrupted: ``close`` and ``send`` work
    inside ``recv``. What can't go on before the handler returns, ``recv`` inside ``recv`` and
    ``send`` inside ``send``, raises ``ConcurrencyError``.

    After ``fork``, only the process that connected may use the connection: in the child it is
    closed. A daemon thread that uses it while the interpreter exits gets ``SystemExit``.

    ``ClientConnection(uri, **options)`` is ``connect(uri, **options)``.
    """

    def __new__(cls, socket: Any, handshake: Any = None, **options: Any) -> ClientConnection:
        if handshake is None:
            return connect(socket, create_connection=cls, **options)
        return super().__new__(cls, socket, handshake, **options)

    _timed_out: TimeoutError | None = None
    # As the attendant has it.
    _attended: Any = None

    def _set_up(self, sock: socket.socket, opening: Opening, options: dict) -> None:
        self._asked, self._head = bytes(opening.handshake.request), opening.head
        self.logger = options.get("logger") or _common.LOGGER
        self.subprotocol = opening.handshake.subprotocol
        self.latency = 0.0
        self._local = sock.getsockname()
        # The server may have reset the connection: the first call tells.
        self._remote = None
        with contextlib.suppress(OSError):
            self._remote = sock.getpeername()
        self._options = options
        self._pings: dict[bytes, tuple[_Pong, float]] = {}
        self._alive_at = time.monotonic()
        self._keepalive: tuple[bytes, float] | None = None

    # What the compiled part calls.

    def _closed_error(self) -> Exception:
        return self._tell(self._timed_out or self._failure)

    def _end_of_iteration(self) -> None:
        error = self._closed_error()
        if not isinstance(error, exceptions.ConnectionClosedOK):
            raise error

    def _concurrency_error(self, text: str) -> Exception:
        return exceptions.ConcurrencyError(text)

    def _pong(self, payload: bytes) -> None:
        now = time.perf_counter()
        # A signal handler may ping inside this: a lock would have it wait for itself.
        if payload not in self._pings:
            return
        answered = []
        # A pong answers the pings before, too.
        for sent in list(self._pings):
            if (found := self._pings.pop(sent, None)) is not None:
                answered.append(found)
            if sent == payload:
                break
        self._keepalive = None
        self._alive_at = time.monotonic()
        for pong, at in answered:
            pong.latency = self.latency = now - at
            pong.set()

    # What the attendant calls.

    @property
    def _queue_max(self) -> float:
        high: int | None = self._options["max_queue"]
        return float("inf") if high is None else max(high, 1)

    def _ping_due(self) -> float | None:
        """When `_tick` is to be called, as `time.monotonic()` has it."""
        interval = self._options["ping_interval"]
        timeout = self._options["ping_timeout"]
        if interval is None:
            return None
        if self._keepalive is None:
            return self._alive_at + interval
        # The answer may come until then.
        due = time.monotonic() + interval
        return due if timeout is None else min(due, self._keepalive[1] + timeout)

    def _tick(self) -> None:
        """Sends a ping if one is due, and gives the connection up if one was not answered."""
        interval = self._options["ping_interval"]
        timeout = self._options["ping_timeout"]
        if interval is None or self._ending[1] is not None:
            return
        now = time.monotonic()
        if self._keepalive is None:
            if now - self._alive_at >= interval:
                # Whoever looks after it must not wait for a server that does not read.
                pong = self._ping(None, False, False)
                self._keepalive = (pong, now)
        elif timeout is not None and now - self._keepalive[1] >= timeout:
            self._close(1011, "keepalive ping timeout", 0)
        elif timeout is None and now - self._keepalive[1] >= interval:
            self._keepalive = None

    def _send_slowly(self, message: Any, text: bool | None) -> None:
        if isinstance(message, Mapping):
            raise TypeError("data is a dict-like object")
        if not isinstance(message, Iterable):
            raise TypeError("data must be str, bytes, or iterable")
        self._begin_fragments()
        try:
            self._send_fragments(message, text)
        finally:
            self._end_fragments()

    def _send_fragments(self, message: Iterable, text: bool | None) -> None:
        kind = None
        try:
            for part in message:
                own = str if isinstance(part, str) else bytes
                if kind is not None and own is not kind:
                    raise TypeError("all fragments of a message must be of one type")
                self._send_fragment(part, text, kind is None, False)
                kind = own
            if kind is not None:
                self._send_fragment(kind(), text, False, True)
        except exceptions.ConnectionClosed:
            raise
        except BaseException:
            # The server can't know that the rest of the message will not come.
            if kind is not None:
                self._close(1011, "error in fragmented message", 0)
            raise

    # What programs call.

    def recv_streaming(self, decode: bool | None = None) -> Iterator[Any]:
        """Receive one message fragment by fragment, as they arrive: ``str`` for text, ``bytes`` for
        binary; ``decode`` set to ``True`` or ``False`` converts to ``str`` or ``bytes``. A
        character that the server split between fragments is in the later one.

        The iterator must be consumed: once it has given a fragment, ``recv`` and another
        ``recv_streaming`` raise ``ConcurrencyError`` until it has given the last one. Raises what
        ``recv`` raises.
        """
        fragment, last = self._recv_fragment(True)
        decoder = _common.fragment_decoder(decode)
        while True:
            yield decoder(fragment, last)
            if last:
                return
            fragment, last = self._recv_fragment(False)

    @contextlib.contextmanager
    def cork(self):
        """Inside ``with connection.cork():``, messages are gathered, and written together at the
        end, or before a receive waits."""
        self._cork(True)
        try:
            yield self
        except BaseException:
            # What went wrong inside matters more than that nothing can be sent anymore.
            with contextlib.suppress(exceptions.WebSocketException):
                self._cork(False)
            raise
        self._cork(False)

    def ping(self, data: DataLike | None = None, *, ack_on_close: bool = False) -> _Pong:
        """Send a ping. Returns an event that is set by the pong; ``wait(timeout)`` waits for it.
        With ``ack_on_close``, the end of the connection sets it, too.

        ``data`` is the payload, at most 125 bytes; a random one by default. Raises
        ``ConcurrencyError`` while a ping with the same payload is unanswered, and
        ``ConnectionClosed``.
        """
        return self._ping(data, ack_on_close, True)

    def _ping(self, data: Any, ack_on_close: bool, wait: bool) -> _Pong:
        payload = _common.ping_payload(data, self._pings)
        pong = _Pong(self, ack_on_close)
        sent = (pong, time.perf_counter())
        if self._pings.setdefault(payload, sent) is not sent:
            raise exceptions.ConcurrencyError("already waiting for a pong with the same data")
        self._send_control(True, payload, wait)
        return pong

    def pong(self, data: DataLike = b"") -> None:
        """Send a pong that answers no ping, as a sign of life."""
        self._send_control(False, _common.ping_payload(data, ()), True)

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the connection: send a Close frame, and wait for the server's and for the end of
        the stream, for at most ``close_timeout`` seconds. Once closed, it does nothing.

        Raises ``ProtocolError`` for a code or a reason that may not be sent.
        """
        _common.check_close(code, reason)
        timeout, begun = self._options["close_timeout"], time.monotonic()
        self._close(code, reason, timeout)
        if timeout is not None and time.monotonic() - begun >= timeout:
            error = TimeoutError(f"the server did not close within {timeout} s")
            self._timed_out = self._timed_out or error
        attendant.discard(self)

    def abort(self) -> None:
        """End the connection at once, without a Close frame."""
        self._abort()

    def wait_closed(self, timeout: float | None = None) -> bool:
        """Wait until the connection is closed, for at most ``timeout`` seconds. Returns whether it
        is.

        Messages that arrive meanwhile wait for ``recv``. Once ``max_queue`` wait, nothing is read,
        not even the server's Close frame, until a program receives some.
        """
        end = None if timeout is None else time.monotonic() + timeout
        while not self._is_lost:
            left = _PUMP if end is None else min(_PUMP, end - time.monotonic())
            if left <= 0:
                break
            if not self._pump(left):
                time.sleep(min(left, _LOOK_AGAIN))
        return self._is_lost

    def __enter__(self) -> ClientConnection:
        return self

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        self.close(1000 if kind is None else 1011)

    @property
    def socket(self) -> Socket:
        """A view of the socket: its addresses and options, and what TLS has agreed on."""
        return Socket(self)


class Connector(_common.Connecting):
    """Connects to a server, as often as :meth:`connect` is called."""

    def set_up(self, uri: str, options: dict, factory: type[ClientConnection]) -> None:
        """Say where to, and how."""
        self.uri = self._uri = uri
        self.target = Target.of(uri)
        _common.check_tls(self.target.secure, options["ssl"])
        self.options = options
        self.factory = factory

    def connect(self) -> ClientConnection:
        """Connect, and follow redirects."""
        self.uri, target = self._uri, self.target
        deadline = _Deadline(self.options["open_timeout"])
        try:
            for _ in range(_common.REDIRECTS_MAX):
                changed = target.origin != self.target.origin
                opening = Opening(_common.handshake(target, self.options, changed))
                try:
                    return _open(target, self.options, opening, self.factory, deadline)
                except exceptions.InvalidHandshake as error:
                    target = self._redirected(error)
        except socket.timeout:
            raise TimeoutError(
                "timed out while waiting for handshake response: it took longer than "
                f"{deadline.timeout} s"
            ) from None
        raise exceptions.SecurityError(f"more than {_common.REDIRECTS_MAX} redirects")


@overload
def connect(
    uri: str, *, legacy: Literal[True] | None = None, **options: Unpack[ConnectOptions]
) -> ClientConnection: ...


@overload
def connect(
    uri: str, *, legacy: Literal[False], **options: Unpack[ConnectOptions]
) -> reconnect: ...


@checks_arguments
def connect(
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
    open_timeout: float | None = 10,
    connect_timeout: float | None = None,
    receive_timeout: float | None = None,
    ping_interval: float | None = 20,
    ping_timeout: float | None = 20,
    close_timeout: float | None = 10,
    max_size: Limit = 2**20,
    max_queue: Limit = 16,
    ssl: _ssl.SSLContext | Literal[True] | None = None,
    ssl_context: _ssl.SSLContext | None = None,
    server_hostname: str | None = None,
    proxy_ssl: _ssl.SSLContext | Literal[True] | None = None,
    proxy_server_hostname: str | None = None,
    sock: socket.socket | None = None,
    unix: PathLike | Literal[True] | None = None,
    path: PathLike | None = None,
    address: tuple[str, int] | None = None,
    host: str | None = None,
    port: int | None = None,
    family: int = 0,
    happy_eyeballs_delay: float | None = _common.NEXT_ATTEMPT,
    source_address: tuple[str, int] | None = None,
    tcp_nodelay: bool = True,
    spin_us: int = 0,
    legacy: bool | None = None,
    create_connection: type[ClientConnection] | None = None,
    logger: LoggerLike | None = None,
    _connector: Connector | None = None,
) -> ClientConnection | Connector:
    """Connect to the server at ``uri``. The connection is a context manager that closes it.

    The arguments are those of :class:`playfield.websocket.connect`, and:

    - ``spin_us``: for how many microseconds a receive polls the socket before it waits (default
      0, at most 100,000). It takes a processor, and answers sooner.
    - ``max_queue``: nobody reads ahead for a program that does not receive, but to answer pings
      and in ``ping().wait()`` and ``wait_closed()``, and only until this many messages wait.
    - ``address`` (``(host, port)``, or ``host`` and ``port``) and ``source_address``: where to
      connect instead, and from where.
    - ``legacy``: ``False`` returns a :class:`reconnect`, as ``websockets`` will do one day.

    Raises ``InvalidURI``, ``InvalidProxy``, ``OSError``, ``InvalidHandshake`` (``InvalidStatus``
    with the response) and ``TimeoutError``.
    """
    if ssl_context is not None:
        warnings.warn("ssl_context was renamed to ssl", DeprecationWarning, stacklevel=3)
        ssl = ssl or ssl_context
    if address is not None:
        host, port = address
    options = {
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
        "source_address": source_address,
        "receive_timeout": receive_timeout,
        "tcp_nodelay": tcp_nodelay,
        "spin_us": spin_us,
        "logger": logger,
    }
    if not 0 <= spin_us <= SPIN_US_MAX:
        raise ValueError(f"spin_us is a number of microseconds from 0 to {SPIN_US_MAX}, not {spin_us}")
    if legacy is False:
        from ._reconnect import reconnect

        _connector = reconnect.__new__(reconnect)
    connector = _connector or Connector()
    connector.set_up(uri, options, create_connection or ClientConnection)
    return connector.connect() if _connector is None else connector


def unix_connect(
    path: PathLike | None = None, uri: str | None = None, **options: Any
) -> ClientConnection:
    """Connect to a server that listens on a Unix socket."""
    _common.check_unix(path, options.get("sock"))
    scheme = "wss" if options.get("ssl") else "ws"
    return connect(uri or f"{scheme}://localhost/", unix=path, **options)


def _open(
    target: Target,
    options: dict,
    opening: Opening,
    factory: type[ClientConnection],
    deadline: _Deadline,
) -> ClientConnection:
    sock, proxy = _socket(target, options, deadline)
    with sock:
        _common.tune(sock, options["tcp_nodelay"])
        pipe = _Pipe(sock, deadline)
        if proxy is not None:
            _pass(pipe, proxy, target, options)
        if target.secure:
            hostname = options["server_hostname"] or target.host
            pipe.wrap(_common.tls_to(options["ssl"], hostname, pipe.tls))
        pipe.send(opening.handshake.request)
        rest = None
        while rest is None:
            rest = opening.feed(pipe.recv())
        # The connection takes a descriptor of its own; this one is closed here.
        connection = factory(
            sock,
            opening.handshake,
            max_size=options["max_size"],
            max_queue=options["max_queue"],
            spin_us=options["spin_us"],
            receive_timeout=options["receive_timeout"],
            tls=pipe.tls,
        )
        connection._set_up(sock, opening, options)
        if isinstance(pipe.tls, _common.SslStream):
            connection._tls_object = pipe.tls.object
        elif pipe.tls is not None:
            connection._tls_hostname = options["server_hostname"] or target.host
    try:
        connection._start(rest)
        attendant.add(connection)
    except BaseException:
        connection._abort()
        raise
    return connection


def _socket(
    target: Target, options: dict, deadline: _Deadline
) -> tuple[socket.socket, Proxy | None]:
    """A socket to the server, or to a proxy that is to be asked."""
    if options["sock"] is not None:
        return options["sock"], None
    if options["unix"] is not None:
        unix = options["unix"]
        return _reach(socket.AF_UNIX, socket.SOCK_STREAM, 0, unix, None, deadline), None
    host = options["host"] or target.host
    port = options["port"] or target.port
    uri = None if options["host"] else _common.find_proxy(target, options["proxy"])
    if uri is None:
        return _dial(host, port, options, deadline), None
    proxy = Proxy(uri)
    proxy.tls_context(options["proxy_ssl"])
    if proxy.is_socks:
        return _dial_socks(proxy, host, port, deadline), None
    return _dial(proxy.host, proxy.port, options, deadline), proxy


def _pass(pipe: _Pipe, proxy: Proxy, target: Target, options: dict) -> None:
    """Asks a proxy to connect to the server."""
    context = proxy.tls_context(options["proxy_ssl"])
    if context is not None:
        name = options["proxy_server_hostname"] or proxy.host
        pipe.wrap(_common.SslStream(context, name, None))
    pipe.send(proxy.request(target))
    received = b""
    while not proxy.check(received):
        data = pipe.recv()
        if not data:
            raise exceptions.InvalidMessage("the proxy closed the connection")
        received += data


def _reach(
    family: int, kind: int, protocol: int, address: Any, source: Any, deadline: _Deadline
) -> socket.socket:
    sock = socket.socket(family, kind, protocol)
    try:
        if source is not None:
            sock.bind(source)
        sock.settimeout(deadline.left())
        sock.connect(address)
    except BaseException:
        sock.close()
        raise
    return sock


def _dial(host: str, port: int, options: dict, deadline: _Deadline) -> socket.socket:
    """Connects to the address of a host that answers first (RFC 8305)."""
    source = options["source_address"]
    found = socket.getaddrinfo(host, port, family=options["family"], type=socket.SOCK_STREAM)
    if len(found) == 1:
        return _reach(*found[0][:3], found[0][4], source, deadline)
    left = _common.in_turn(found)
    failure: OSError = OSError(f"{host} has no address")
    attempts: set[socket.socket] = set()
    try:
        while left or attempts:
            if left:
                family, kind, protocol, _, address = left.pop(0)
                sock = socket.socket(family, kind, protocol)
                attempts.add(sock)
                try:
                    sock.setblocking(False)
                    if source is not None:
                        sock.bind(source)
                    sock.connect(address)
                except BlockingIOError:
                    pass
                except OSError as error:
                    failure = error
                    attempts.discard(sock)
                    sock.close()
                    continue
            limit = deadline.left()
            wait = options["happy_eyeballs_delay"] if left else None
            if limit is not None:
                wait = limit if wait is None else min(wait, limit)
            with selectors.DefaultSelector() as selector:
                for sock in attempts:
                    selector.register(sock, selectors.EVENT_WRITE)
                ready = [key.fileobj for key, _ in selector.select(wait)]
            for sock in ready:
                attempts.discard(sock)
                code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code == 0:
                    sock.settimeout(limit)
                    return sock
                failure = OSError(code, os.strerror(code))
                sock.close()
        raise failure
    finally:
        for sock in attempts:
            sock.close()


def _dial_socks(proxy: Proxy, host: str, port: int, deadline: _Deadline) -> socket.socket:
    try:
        from python_socks.sync import Proxy as Socks
    except ImportError:
        raise ImportError("connecting through a SOCKS proxy requires python-socks") from None
    uri, rdns = proxy.socks()
    socks = Socks.from_url(uri, rdns=rdns)
    try:
        return socks.connect(dest_host=host, dest_port=port, timeout=deadline.left())
    except OSError:
        raise
    except Exception as error:
        raise exceptions.ProxyError("failed to connect to SOCKS proxy") from error
