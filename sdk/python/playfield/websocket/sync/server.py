"""A server is not here."""

raise ImportError(
    "there is no server in this package: import it from websockets, beside which this can be installed",
    name=__name__,
)
