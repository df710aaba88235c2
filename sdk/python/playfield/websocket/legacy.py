"""``websockets.legacy`` is not here."""

raise ImportError(
    "playfield.websocket has no legacy API: use playfield.websocket.connect, whose extra_headers are "
    "additional_headers, and whose InvalidStatusCode is InvalidStatus",
    name=__name__,
)
