"""``websockets.http11``'s names: requests and responses of the opening handshake."""

from ._common import USER_AGENT, Request, Response

__all__ = ["USER_AGENT", "Request", "Response"]
