"""``websockets.frames``'s names: the codes of frames and of their ends."""

from __future__ import annotations

import enum

from ._alternatives import missing
from .exceptions import Close

try:
    from websockets.frames import CloseCode, Opcode
except ImportError:

    class Opcode(enum.IntEnum):  # type: ignore[no-redef]
        """The kinds of frames (RFC 6455, 5.2)."""

        CONT, TEXT, BINARY = 0x00, 0x01, 0x02
        CLOSE, PING, PONG = 0x08, 0x09, 0x0A

    class CloseCode(enum.IntEnum):  # type: ignore[no-redef]
        """Why a connection was closed (RFC 6455, 7.4.1)."""

        NORMAL_CLOSURE = 1000
        GOING_AWAY = 1001
        PROTOCOL_ERROR = 1002
        UNSUPPORTED_DATA = 1003
        NO_STATUS_RCVD = 1005
        ABNORMAL_CLOSURE = 1006
        INVALID_DATA = 1007
        POLICY_VIOLATION = 1008
        MESSAGE_TOO_BIG = 1009
        MANDATORY_EXTENSION = 1010
        INTERNAL_ERROR = 1011
        SERVICE_RESTART = 1012
        TRY_AGAIN_LATER = 1013
        BAD_GATEWAY = 1014
        TLS_HANDSHAKE = 1015


__all__ = ["Close", "CloseCode", "Opcode"]

CONT, TEXT, BINARY = Opcode.CONT, Opcode.TEXT, Opcode.BINARY
CLOSE, PING, PONG = Opcode.CLOSE, Opcode.PING, Opcode.PONG

__getattr__ = missing(__name__)
