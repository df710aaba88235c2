"""``websockets.typing``'s names: the types of arguments."""

from __future__ import annotations

import http
import logging
import os
from typing import Any, NewType, Optional, Union

__all__ = [
    "Data",
    "ExtensionName",
    "ExtensionParameter",
    "LoggerLike",
    "Origin",
    "StatusLike",
    "Subprotocol",
]

#: A message: ``str`` is text, ``bytes`` are binary.
Data = Union[str, bytes]
BytesLike = Union[bytes, bytearray, memoryview]
DataLike = Union[str, bytes, bytearray, memoryview]
LoggerLike = Union[logging.Logger, "logging.LoggerAdapter[Any]"]
PathLike = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
StatusLike = Union[http.HTTPStatus, int]
#: The value of a header ``Origin``.
Origin = NewType("Origin", str)
#: A subprotocol in ``Sec-WebSocket-Protocol``.
Subprotocol = NewType("Subprotocol", str)
ExtensionName = NewType("ExtensionName", str)
ExtensionParameter = tuple[str, Optional[str]]
