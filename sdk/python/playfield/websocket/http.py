"""The name that ``websockets.http11`` had before."""

from ._common import USER_AGENT, Request, Response
from .datastructures import Headers, MultipleValuesError

__all__ = ["USER_AGENT", "Headers", "MultipleValuesError", "Request", "Response"]
