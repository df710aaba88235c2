"""The version of this package."""

from .._playfield import __version__ as version

__all__ = ["version"]
