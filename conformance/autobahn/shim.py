"""What stands between the suite and the Python and Autobahn of today; convert.py puts it into the package.

In the suite octets are texts of U+0000 to U+00FF, as convert.py explains. Here they become bytes and back. And the
suite was written for Autobahn 0.10: where today's differs, what it relies on is restored.
"""

import binascii
import os
from types import SimpleNamespace

from autobahn.twisted import websocket
from twisted.internet import reactor
from twisted.python import log


def octets(data):
    return data.encode("latin-1") if isinstance(data, str) else data


def text(data):
    return data.decode("latin-1") if isinstance(data, bytes) else data


def b2a_hex(data):
    return binascii.b2a_hex(octets(data)).decode("ascii")


hexlify = b2a_hex


def resource_filename(_package, name):
    return os.path.join(os.path.dirname(__file__), name)


class Protocol:
    """A connection, as the cases see it."""

    debug = False
    # Autobahn reads it before it copies it from the factory, and passes over the error. Without it, Nagle's algorithm
    # would join what cases send octet for octet.
    tcpNoDelay = True

    def sendFrame(self, opcode, payload=b"", *args, **kwargs):
        super().sendFrame(opcode, octets(payload), *args, **kwargs)

    def sendMessage(self, payload, *args, **kwargs):
        # Autobahn raises an error now where it used to drop the message, and cases send without looking.
        if self.state == self.STATE_OPEN:
            super().sendMessage(octets(payload), *args, **kwargs)

    def sendMessageFrameData(self, payload, *args, **kwargs):
        return super().sendMessageFrameData(octets(payload), *args, **kwargs)

    def sendCloseFrame(self, code=None, reasonUtf8=None, isReply=False):
        super().sendCloseFrame(code, octets(reasonUtf8), isReply)

    def _onOpen(self):
        # Autobahn would keep an error of a case until nobody reads it, and the peer would wait.
        try:
            super()._onOpen()
        except Exception:
            log.err()
            self.transport.abortConnection()

    def _onMessage(self, payload, isBinary):
        super()._onMessage(text(payload), isBinary)

    def _onPong(self, payload):
        super()._onPong(text(payload))

    def onCloseFrame(self, code, reasonRaw):
        # Cases judge the code that arrived; Autobahn puts another in the place of one that it finds invalid.
        done = super().onCloseFrame(code, reasonRaw)
        self.remoteCloseCode = code
        return done

    def failConnection(self):
        self._fail_connection()


class Factory:
    """What makes the connections."""

    def __init__(self, debug, debugCodePaths):
        super().__init__()
        # Autobahn rounds its timeouts down to whole seconds now, so that one of a second may be over at once.
        self._batched_timer = SimpleNamespace(call_later=reactor.callLater)


class WebSocketServerProtocol(Protocol, websocket.WebSocketServerProtocol):
    pass


class WebSocketClientProtocol(Protocol, websocket.WebSocketClientProtocol):
    pass


class WebSocketServerFactory(Factory, websocket.WebSocketServerFactory):
    pass


class WebSocketClientFactory(Factory, websocket.WebSocketClientFactory):
    pass
