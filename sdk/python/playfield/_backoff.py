"""Waits between attempts."""

from __future__ import annotations

import random


def pause(backoff: tuple[float, float], attempts: int) -> float:
    """The wait before the next attempt: a random part of a time that doubles."""
    first, last = backoff
    limit = min(max(first, last), first * 2.0**attempts) if attempts else 0.0
    return random.random() * limit
