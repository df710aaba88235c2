"""``websockets.client``'s names: how a lost connection is tried again."""

from ._alternatives import missing
from ._async import backoff, connect, process_exception, unix_connect

__all__ = ["backoff", "connect", "process_exception", "unix_connect"]

__getattr__ = missing(__name__)
