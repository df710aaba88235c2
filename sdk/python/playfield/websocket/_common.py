"""What both flavors share: options, targets, responses, states."""

from __future__ import annotations

import codecs
import http.client
import io
import itertools
import logging
import platform
import secrets
import socket
import urllib.parse
import urllib.request
import uuid
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Union

from .. import _playfield
from ._alternatives import asks_for_all
from ._views import ConnectionProtocol
from .datastructures import Headers
from .exceptions import (
    InvalidHandshake,
    InvalidHeader,
    InvalidHeaderValue,
    InvalidMessage,
    InvalidProxy,
    InvalidProxyStatus,
    InvalidStatus,
    InvalidUpgrade,
    InvalidURI,
    NegotiationError,
    ProtocolError,
    SecurityError,
    closed,
)
from .headers import build_authorization_basic, build_host
from .protocol import State
from .uri import WebSocketURI, parse_uri

USER_AGENT = f"Python/{platform.python_version()} playfield/{_playfield.__version__}"

LOGGER = logging.getLogger("playfield.websocket")

# How many redirects are followed.
REDIRECTS_MAX = 10

# The longest head of a response, and how much of a refusal's body is kept, in bytes.
HEAD_BYTES_MAX = 64 << 10
BODY_BYTES_MAX = 64 << 10

# How many bytes of plaintext are taken at a time.
_BYTES = 64 << 10


@dataclass
class Request:
    """The request of an opening handshake."""

    path: str
    headers: Headers
    method: str = "GET"
    protocol: str = "HTTP/1.1"

    def serialize(self) -> bytes:
        """The bytes that are sent."""
        return f"{self.method} {self.path} {self.protocol}\r\n".encode() + self.headers.serialize()


@dataclass
class Response:
    """A server's or a proxy's response."""

    status_code: int
    reason_phrase: str
    headers: Headers
    body: bytes = b""

    def serialize(self) -> bytes:
        """The bytes that were received, if the server writes headers as this does."""
        line = f"HTTP/1.1 {self.status_code} {self.reason_phrase}\r\n"
        return line.encode("latin-1") + self.headers.serialize() + self.body


@dataclass
class Target:
    """A URI, in parts."""

    secure: bool
    host: str
    port: int
    path: str
    authorization: str | None

    @classmethod
    def of(cls, uri: str) -> Target:
        try:
            parts = urllib.parse.urlsplit(uri)
            port = parts.port
        except ValueError as error:
            raise InvalidURI(uri, str(error)) from None
        if parts.scheme not in ("ws", "wss"):
            raise InvalidURI(uri, "the scheme is not ws or wss")
        if not parts.hostname:
            raise InvalidURI(uri, "there is no host")
        if parts.fragment:
            raise InvalidURI(uri, "a WebSocket's URI has no fragment")
        secure = parts.scheme == "wss"
        host = parts.hostname
        if port == 0:
            raise InvalidURI(uri, "nothing listens on port 0")
        if any(character <= " " or character in '"<>\\^`{|}' for character in host):
            raise InvalidURI(uri, f"the host {host!r} is not a name or an address")
        if ":" not in host:
            try:
                host = host.encode("idna").decode()
            except UnicodeError as error:
                raise InvalidURI(uri, f"the host {host!r} is not a name: {error}") from None
        path = parts.path or "/"
        if parts.query:
            path += "?" + parts.query
        path = urllib.parse.quote(path, safe="/?:@!$&'()*+,;=%-._~")
        authorization = None
        if parts.username is not None:
            authorization = basic(parts.username, parts.password)
        return cls(secure, host, port or (443 if secure else 80), path, authorization)

    @property
    def host_header(self) -> str:
        return build_host(self.host, self.port, self.secure)

    @property
    def origin(self) -> tuple[bool, str, int]:
        return self.secure, self.host, self.port


def basic(user: str, password: str | None) -> str:
    return build_authorization_basic(
        urllib.parse.unquote(user), urllib.parse.unquote(password or "")
    )


def pairs(headers: Any) -> list[tuple[str, str]]:
    """Headers given as a mapping, as pairs, or as an object with ``raw_items``."""
    if headers is None:
        return []
    if hasattr(headers, "raw_items"):
        return [(str(name), str(value)) for name, value in headers.raw_items()]
    items = headers.items() if isinstance(headers, Mapping) else headers
    return [(str(name), str(value)) for name, value in items]


def handshake(target: Target, options: dict, origin_changed: bool) -> _playfield.Handshake:
    """The request for a target, with the program's headers."""
    headers = pairs(options["additional_headers"])
    if origin_changed:
        private = ("authorization", "cookie", "proxy-authorization")
        headers = [(name, value) for name, value in headers if name.lower() not in private]
    # As in `websockets`, the program's headers replace those that the handshake would write.
    hosts = [value for name, value in headers if name.lower() == "host"]
    headers = [(name, value) for name, value in headers if name.lower() != "host"]
    named = {name.lower() for name, _ in headers}
    if options["origin"] is not None and "origin" not in named:
        headers.append(("Origin", options["origin"]))
    if target.authorization is not None and "authorization" not in named:
        headers.append(("Authorization", target.authorization))
    if options["user_agent_header"] is not None and "user-agent" not in named:
        headers.append(("User-Agent", options["user_agent_header"]))
    if isinstance(options["subprotocols"], str):
        raise TypeError("subprotocols must be a list, not a str")
    subprotocols = list(options["subprotocols"] or ())
    return _playfield.Handshake(
        hosts[-1] if hosts and not origin_changed else target.host_header,
        target.path,
        headers,
        subprotocols,
        offered(options["compression"], options.get("extensions")),
    )


def offered(compression: str | None, extensions: Any) -> tuple | None:
    """The compression to offer: whether the server and the client keep their contexts, and their
    windows. Extensions are those of this package or of ``websockets``."""
    if compression not in (None, "deflate"):
        raise ValueError(f"unsupported compression: {compression}")
    # By default both keep it, as in `websockets`.
    offer = None if compression is None else ((True, 15), (True, 15))
    for extension in extensions or ():
        if getattr(extension, "name", None) != "permessage-deflate":
            raise ValueError(f"unsupported extension: {extension!r}; there is permessage-deflate")
        bits = extension.client_max_window_bits
        offer = (
            (not extension.server_no_context_takeover, extension.server_max_window_bits or 15),
            (not extension.client_no_context_takeover, 15 if bits in (None, True) else bits),
        )
    return offer


def wrong_response(text: str, kind: str = "message", value: str | None = None) -> Exception:
    """The exception for a response that is not valid."""
    if kind == "message":
        return InvalidMessage(text)
    if kind == "negotiation":
        return NegotiationError(text)
    name = kind.partition(":")[0]
    if name in ("Upgrade", "Connection"):
        return InvalidUpgrade(name, value)
    return InvalidHeader(name) if value is None else InvalidHeaderValue(name, value)


def parse_head(received: bytes) -> tuple[Response, int] | None:
    """The head at the front, and its length; ``None`` while it is incomplete."""
    end = received.find(b"\r\n\r\n")
    if end < 0:
        if len(received) > HEAD_BYTES_MAX:
            raise InvalidMessage(f"the response's head is longer than {HEAD_BYTES_MAX} bytes")
        return None
    line, _, rest = received[: end + 4].partition(b"\r\n")
    parts = line.decode("latin-1").split(" ", 2)
    if len(parts) < 2 or not parts[0].startswith("HTTP/") or not parts[1].isdigit():
        raise InvalidMessage(f"the response does not begin with a status: {line[:64]!r}")
    headers = read_headers(rest)
    reason = parts[2] if len(parts) > 2 else ""
    return Response(int(parts[1]), reason, headers), end + 4


def read_headers(text: bytes) -> Headers:
    """The lines of headers, up to the empty one."""
    try:
        parsed = http.client.parse_headers(io.BytesIO(text))
    except http.client.HTTPException as error:
        raise InvalidMessage(f"the response's headers are invalid: {error}") from error
    headers = Headers()
    for name, value in parsed.items():
        headers.set_insecure(name, value)
    return headers


class Opening:
    """The opening handshake, without I/O: bytes in, a verdict out."""

    def __init__(self, handshake: _playfield.Handshake) -> None:
        self.handshake = handshake
        self.response: Response | None = None
        # The head of the response, once the handshake has succeeded.
        self.head = b""

    def feed(self, data: bytes) -> bytes | None:
        """Take received bytes, none at the end of the stream. Returns what follows the handshake
        once it has succeeded, and raises if it has failed."""
        if self.response is None:
            try:
                verdict = self.handshake.feed(data) if data else None
            except ValueError as error:
                raise wrong_response(*error.args) from None
            if verdict is None:
                if not data:
                    raise InvalidMessage(
                        "the server closed the connection before it answered"
                    ) from EOFError("connection closed while reading HTTP status line")
                return None
            status, head_bytes = verdict
            received = bytes(self.handshake.received)
            if status == 101:
                self.head = received[:head_bytes]
                return received[head_bytes:]
            parsed = parse_head(received)
            if parsed is None:
                raise InvalidMessage("the response is incomplete")
            self.response, end = parsed
            self.response.body = received[end:]
        else:
            self.response.body += data
        length = (self.response.headers.get_all("Content-Length") or [""])[0]
        wanted = min(int(length), BODY_BYTES_MAX) if length.isdigit() else 0
        if data and len(self.response.body) < wanted:
            return None
        raise InvalidStatus(self.response)


class _Option:
    """An option of ``connect`` that a subclass may read and change, as in ``websockets``."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> Any:
        return self if instance is None else instance.options[self.name]

    def __set__(self, instance: Any, value: Any) -> None:
        instance.options[self.name] = value
        instance._first = None


class Connecting:
    """Where to connect, and whereto a redirect leads: a subclass may override
    :meth:`process_redirect`."""

    #: The URI, as of the last redirect.
    uri: str
    options: dict[str, Any]
    # The first handshake, if it is made already.
    _first: _playfield.Handshake | None = None

    additional_headers = _Option()
    user_agent_header = _Option()
    proxy = _Option()
    open_timeout = _Option()

    def __init_subclass__(cls) -> None:
        asks_for_all(cls)

    @property
    def ws_uri(self) -> WebSocketURI:
        """The parts of the URI."""
        return parse_uri(self.uri)

    def process_redirect(self, exc: Exception) -> Exception | str:
        """Where a refused handshake leads to: the new URI, or the exception to raise, which is
        ``exc`` if it is no redirect. ``self.uri`` is the old URI.

        A redirect to another origin loses the headers ``Authorization``, ``Cookie`` and
        ``Proxy-Authorization``. A subclass may return an exception in place of a URI.
        """
        if not isinstance(exc, InvalidStatus):
            return exc
        response = exc.response
        location = (response.headers.get_all("Location") or [None])[0]
        if response.status_code not in (300, 301, 302, 303, 307, 308) or not location:
            return exc
        uri, options = self.uri, self.options
        try:
            new = urllib.parse.urljoin(uri, location)
        except ValueError as error:
            return InvalidURI(location, str(error))
        if new.startswith("http"):
            new = "ws" + new[4:]
        if uri.startswith("wss:") and not new.startswith("wss:"):
            return SecurityError(f"cannot follow redirect to non-secure URI {new}")
        if Target.of(uri).origin != Target.of(new).origin:
            # The next server is not where the program said this one is.
            where = None
            if options["unix"] is not None:
                where = "a Unix socket"
            elif options["host"] is not None or options["port"] is not None:
                where = "an explicit host or port"
            if where is not None:
                return ValueError(f"cannot follow cross-origin redirect to {new} with {where}")
        if options["sock"] is not None:
            return ValueError(f"cannot follow redirect to {new} with a preexisting socket")
        return new

    def _redirected(self, error: InvalidHandshake) -> Target:
        """Goes where a refusal leads to, or raises."""
        found = self.process_redirect(error)
        if found is error:
            raise error
        if isinstance(found, Exception):
            raise found from error
        self.uri = found
        return Target.of(found)


def find_proxy(target: Target, proxy: Any) -> str | None:
    """The proxy to use: the one given, or what the environment says."""
    if proxy is None or proxy is False:
        return None
    if proxy is not True:
        return proxy
    if urllib.request.proxy_bypass(f"{target.host}:{target.port}"):
        return None
    known = urllib.request.getproxies()
    names = ("wss", "socks", "https") if target.secure else ("ws", "socks", "https", "http")
    return next((known[name] for name in names if name in known), None)


class Proxy:
    """A proxy's URI, in parts."""

    def __init__(self, uri: str) -> None:
        parts = urllib.parse.urlsplit(uri)
        self.uri = uri
        self.scheme = parts.scheme
        if self.scheme not in ("http", "https", "socks4", "socks4a", "socks5", "socks5h"):
            raise InvalidProxy(uri, f"scheme {self.scheme} isn't supported")
        if not parts.hostname:
            raise InvalidProxy(uri, "there is no host")
        self.host = parts.hostname
        self.port = parts.port or {"http": 80, "https": 443}.get(self.scheme, 1080)
        self.authorization = parts.username and basic(parts.username, parts.password)

    @property
    def is_socks(self) -> bool:
        return self.scheme.startswith("socks")

    def socks(self) -> tuple[str, bool]:
        """The URI as python-socks takes it, and whether the proxy resolves names."""
        scheme = {"socks5h": "socks5", "socks4a": "socks4"}.get(self.scheme, self.scheme)
        resolves = self.scheme in ("socks5h", "socks4a")
        return scheme + self.uri[len(self.scheme) :], resolves

    def tls_context(self, context: Any) -> Any:
        """The context for TLS to the proxy; ``None`` without it."""
        if self.scheme == "https":
            if context is None or context is True:
                import ssl

                return ssl.create_default_context()
            return context
        if context is not None:
            scheme = self.scheme
            raise ValueError(f"proxy_ssl argument is incompatible with an {scheme}:// proxy")
        return None

    def request(self, target: Target) -> bytes:
        host = build_host(target.host, target.port, target.secure, always_include_port=True)
        lines = [f"CONNECT {host} HTTP/1.1", f"Host: {host}"]
        if self.authorization:
            lines.append(f"Proxy-Authorization: {self.authorization}")
        return "\r\n".join([*lines, "", ""]).encode()

    def check(self, received: bytes) -> bool:
        """Whether the proxy has connected; ``False`` while its answer is incomplete."""
        parsed = parse_head(received)
        if parsed is None:
            return False
        response, end = parsed
        if not 200 <= response.status_code < 300:
            raise InvalidProxyStatus(response)
        if len(received) > end:
            raise InvalidMessage("the proxy sent something before the server could")
        return True


def check_tls(secure: bool, context: Any) -> None:
    """Refuses a TLS context for a target without TLS."""
    if context is not None and not secure:
        raise ValueError("ssl argument is incompatible with a ws:// URI")


def tls_to(context: Any, hostname: str, outer: SslStream | None) -> Tls:
    """TLS to a host: by rustls, unless the program has given a context, or there is other TLS around
    it."""
    import ssl

    if context is None or context is True:
        if outer is None:
            # As `ssl.create_default_context()` finds them.
            paths = ssl.get_default_verify_paths()
            return _playfield.TlsClient(hostname, paths.cafile, paths.capath)
        context = ssl.create_default_context()
    return SslStream(context, hostname, outer)


class InnerIncoming:
    """The buffer of what has come, of TLS inside TLS."""

    def __init__(self, outer: tuple, inner: Any) -> None:
        self.tls, self.incoming, _ = outer
        self.inner = inner

    def write(self, data: bytes) -> None:
        import ssl

        self.incoming.write(data)
        try:
            while plain := self.tls.read(64 << 10):
                self.inner.write(plain)
        except ssl.SSLWantReadError:
            return
        except ssl.SSLZeroReturnError:
            pass
        self.inner.write_eof()


class InnerOutgoing:
    """The buffer of what is to be sent, of TLS inside TLS."""

    def __init__(self, outer: tuple, inner: Any) -> None:
        self.tls, _, self.outgoing = outer
        self.inner = inner

    def read(self) -> bytes:
        data = self.inner.read()
        if data:
            self.tls.write(data)
        return self.outgoing.read()


class SslStream:
    """TLS by an ``ssl.SSLContext``, without I/O: inside other TLS if there is some. The methods are
    those of ``TlsClient``."""

    def __init__(self, context: Any, hostname: str | None, outer: SslStream | None) -> None:
        import ssl

        self.ssl = ssl
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.object = context.wrap_bio(incoming, outgoing, server_hostname=hostname)
        #: The object and its buffers, for the connection.
        self.parts: tuple[Any, Any, Any] = (self.object, incoming, outgoing)
        if outer is not None:
            self.parts = (
                self.object,
                InnerIncoming(outer.parts, incoming),
                InnerOutgoing(outer.parts, outgoing),
            )

    def handshake(self) -> bool:
        try:
            self.object.do_handshake()
        except self.ssl.SSLWantReadError:
            return False
        return True

    def feed(self, data: bytes) -> None:
        self.parts[1].write(data)

    def outgoing(self) -> bytes:
        return self.parts[2].read()

    def read(self) -> bytes | None:
        try:
            return self.object.read(_BYTES)
        except self.ssl.SSLWantReadError:
            return None
        except self.ssl.SSLZeroReturnError:
            return b""

    def write(self, data: bytes) -> None:
        self.object.write(data)


#: TLS during the opening handshake.
Tls = Union[SslStream, _playfield.TlsClient]


def look_for_alert(tls: Tls, data: bytes) -> None:
    """Raises ``ssl.SSLError`` if the received data ends TLS by an error."""
    tls.feed(data)
    if tls.handshake():
        tls.read()


class TlsObject:
    """What programs ask an ``ssl.SSLObject`` for, of a connection whose TLS is rustls."""

    #: There is no ``ssl.SSLContext``.
    context = None

    def __init__(self, about: tuple, hostname: str) -> None:
        self._version, self._cipher, self._bits, self.session_reused, self._certificate = about
        #: The name that the server's certificate was checked for.
        self.server_hostname = hostname

    def version(self) -> str | None:
        """``"TLSv1.2"`` or ``"TLSv1.3"``."""
        return self._version

    def cipher(self) -> tuple[str, str, int] | None:
        """The cipher's name, the version of TLS, and the bits of the key."""
        return self._cipher and (self._cipher, self._version, self._bits)

    def selected_alpn_protocol(self) -> None:
        """``None``: no protocol is offered, as in ``websockets``."""

    def getpeercert(self, binary_form: bool = False) -> bytes | None:
        """The server's certificate, in DER. Raises ``ValueError`` without ``binary_form``: only
        ``ssl`` takes certificates apart, so give ``ssl=ssl.create_default_context()``."""
        if not binary_form:
            raise ValueError(
                "getpeercert() needs ssl=ssl.create_default_context(); without it there is "
                "getpeercert(binary_form=True)"
            )
        return self._certificate


def in_turn(found: list) -> list:
    """Addresses as RFC 8305, 4, orders them: families take turns, the preferred one first."""
    first = [address for address in found if address[0] == found[0][0]]
    others = [address for address in found if address[0] != found[0][0]]
    turns = [pair for pair in itertools.zip_longest(first, others)]
    return [address for pair in turns for address in pair if address is not None]


#: How long an attempt to connect has until the next address is tried beside it, in seconds
#: (RFC 8305, 5).
NEXT_ATTEMPT = 0.25


def first(limit: Any) -> Any:
    """The high-water mark of ``high`` or ``(high, low)``."""
    high = limit[0] if isinstance(limit, tuple) else limit
    if high is not None and high < 0:
        raise ValueError(f"a limit is at least 0, not {high}")
    return high


def check_unix(path: Any, sock: Any) -> None:
    """Refuses a Unix socket that is named twice, or not at all."""
    if path is None and sock is None:
        raise ValueError("no path and no sock were specified")
    if path is not None and sock is not None:
        raise ValueError("path and sock can not be specified at the same time")


def tune(sock: socket.socket, nodelay: bool) -> None:
    """Has small messages sent at once, if there is to be no delay."""
    if nodelay and sock.family in (socket.AF_INET, socket.AF_INET6):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def check_close(code: int, reason: str) -> None:
    """Refuses what a Close frame can't carry."""
    if not (1000 <= code <= 1003 or 1007 <= code <= 1014 or 3000 <= code < 5000):
        raise ProtocolError(f"close code {code} may not be sent")
    if len(reason.encode()) > 123:
        raise ProtocolError("the reason of a close is at most 123 bytes long")


def ping_payload(data: Any, taken: Mapping) -> bytes:
    """The payload of a ping: the one given, or a new one."""
    if data is None:
        while True:
            payload = secrets.token_bytes(4)
            if payload not in taken:
                return payload
    if not isinstance(data, (str, bytes, bytearray, memoryview)):
        raise TypeError("data must be str or bytes-like")
    payload = data.encode() if isinstance(data, str) else bytes(data)
    if len(payload) > 125:
        raise ProtocolError(f"a ping has at most 125 bytes, not {len(payload)}")
    return payload


def fragment_decoder(decode: bool | None) -> Callable[[Any, bool], Any]:
    """Converts the fragments of one message; it takes each, and whether it is the last one."""
    decoder = codecs.getincrementaldecoder("utf-8")() if decode else None

    def convert(fragment: Any, last: bool) -> Any:
        if isinstance(fragment, str):
            return fragment.encode() if decode is False else fragment
        return fragment if decoder is None else decoder.decode(fragment, last)

    return convert


class Connected:
    """What both kinds of connection tell of themselves."""

    #: The subprotocol that the server selected.
    subprotocol: str | None
    #: The round trip of the last ping, in seconds; 0 until the first one.
    latency: float
    #: Where the connection logs.
    logger: Any

    _is_lost: bool
    #: An exception has told the program of the end, though the server has not ended the stream yet.
    _told: bool = False
    # The heads of the opening handshake. An idle connection is to take little memory, and what is
    # made of them takes ten times as much.
    _asked: bytes
    _head: bytes
    _id: uuid.UUID | None = None
    #: The Close frames: ``(received, sent, received_first, error, unsent_bytes)``.
    _ending: tuple
    #: What TLS by rustls has agreed on.
    _tls: tuple | None
    # TLS by an `ssl.SSLContext`.
    _tls_object: Any = None
    _tls_hostname: str = ""
    _local: Any
    _remote: Any

    def __del__(self, warn: Any = warnings.warn) -> None:
        # The descriptor is closed with the compiled part.
        if self.state is State.OPEN:
            warn(f"unclosed connection {self!r}", ResourceWarning, source=self)

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        asks_for_all(cls)

    def _tls_view(self) -> Any:
        """What programs ask an ``ssl.SSLObject`` for; ``None`` without TLS."""
        about = self._tls
        return self._tls_object if about is None else TlsObject(about, self._tls_hostname)

    @property
    def protocol(self) -> ConnectionProtocol:
        """A view with what programs ask the protocol object of ``websockets`` for: ``state``,
        ``subprotocol``, ``extensions``, ``close_code``, ``close_reason``, ``close_exc``."""
        return ConnectionProtocol(self)

    @property
    def request(self) -> Request:
        """The request of the opening handshake: ``path``, ``headers`` and ``method``."""
        line, _, rest = self._asked.partition(b"\r\n")
        method, path, protocol = line.decode().split(" ")
        return Request(path, read_headers(rest), method, protocol)

    @property
    def response(self) -> Response:
        """The server's response to the opening handshake."""
        parsed = parse_head(self._head)
        assert parsed is not None, "it was complete when the connection was made"
        return parsed[0]

    @property
    def id(self) -> uuid.UUID:
        """A number of this connection, for logs."""
        if self._id is None:
            self._id = uuid.uuid4()
        return self._id

    def _tell(self, error: Exception | str | None) -> Exception:
        """The exception for how the connection has ended."""
        received, sent, _, wrong, _ = ending = self._ending
        self._told = self._told or wrong is not None or None not in (received, sent)
        return closed(ending, error)

    @property
    def state(self) -> State:
        """``State.OPEN``, ``CLOSING`` or ``CLOSED``."""
        if self._is_lost or self._told:
            return State.CLOSED
        return State.OPEN if self._ending[1] is None else State.CLOSING

    @property
    def open(self) -> bool:
        """Whether messages may be sent: the state is ``OPEN``."""
        return self.state is State.OPEN

    @property
    def closed(self) -> bool:
        """Whether the connection is closing or closed: it is not ``open``."""
        return self.state is not State.OPEN

    @property
    def close_code(self) -> int | None:
        """The code that the server closed with; 1006 if the connection was lost, 1005 if the
        server gave none. ``None`` until the connection is closed."""
        if self.state is not State.CLOSED:
            return None
        received = self._ending[0]
        return received[0] if received else 1006

    @property
    def close_reason(self) -> str | None:
        """The reason that the server closed with. ``None`` until the connection is closed."""
        if self.state is not State.CLOSED:
            return None
        received = self._ending[0]
        return received[1] if received else ""

    @property
    def local_address(self) -> Any:
        """The address of this end, as ``socket.getsockname`` gives it."""
        return self._local

    @property
    def remote_address(self) -> Any:
        """The address of the server, as ``socket.getpeername`` gives it."""
        return self._remote
