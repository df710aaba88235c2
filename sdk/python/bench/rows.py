"""What is measured, and what is to be reached."""

import dataclasses

import contestants

LOOPS = ("asyncio", "uvloop")

# A goal is a kind and a value; a ratio is our time divided by that of the best other client.
#   time   the ratio is at most the value
#   speed  the ratio is at most 1 / value
#   tie    not shown to be worse: the interval of the ratio reaches down to 1
#   ahead  the ratio is less than 1
TIE, AHEAD = ("tie", 1.0), ("ahead", 1.0)


@dataclasses.dataclass
class Row:
    name: str
    says: str
    work: str
    styles: tuple
    sizes: tuple
    # How many messages are sent for each size, at a time.
    counts: tuple
    loops: tuple = (None,)
    feature: str = None
    kind: str = "binary"
    unit: str = "µs"
    # Of each of our variants: a goal, or one for each loop and size; `None` has it in the table only.
    goals: dict = dataclasses.field(default_factory=dict)
    cpu_goal: tuple = None

    def contestants(self):
        """Ours first; variants only where they have a goal."""
        found = [one for one in contestants.ALL if one.style in self.styles]
        if self.feature:
            found = [one for one in found if self.feature in one.takes]
        if self.feature == "deflate":
            found = [one for one in found if "deflate" in one.takes]
        if self.work in ("idle", "connect"):
            found = [one for one in found if not one.floor]
        return [one for one in found if not one.ours or one.name in self.goals]

    def goal(self, name, loop, size):
        goal = self.goals[name]
        if isinstance(goal, dict):
            goal = goal[loop] if loop in goal else goal
        if isinstance(goal, dict):
            goal = goal[size]
        return goal


SMALL = (64, 512, 65536)
RR = (2000, 2000, 1000)
WINDOWS = (10_000, 10_000, 1000)
OURS, CALLBACK = "playfield", "playfield, on_message"
SPIN, CORK = "playfield, spin_us=1000", "playfield, cork()"
MANY = "playfield, send_many, recv_many"
# The other way to TLS, which has no goal.
CONTEXT = "playfield, ssl=context"


def _sizes(*goals):
    return dict(zip(SMALL, goals, strict=True))


THREE = ("speed", 3.0)
HALF = _sizes(("speed", 2.5), ("speed", 2.5), ("speed", 1.1))
PIPELINED = _sizes(THREE, THREE, ("speed", 1.1))

ROWS = [
    Row(
        "sync-rr", "blocking, one message at a time", "rr", ("sync",), SMALL, RR,
        goals={OURS: TIE, SPIN: ("time", 0.7)}, cpu_goal=("time", 0.96),
    ),
    Row(
        "sync-window", "blocking, windows of 100", "window", ("sync",), SMALL, WINDOWS,
        goals={OURS: TIE, CORK: HALF, MANY: HALF},
    ),
    Row(
        "await-rr", "await recv(), one message at a time", "rr", ("await",), SMALL, RR, LOOPS,
        goals={OURS: {"asyncio": _sizes(("time", 0.94), AHEAD, AHEAD),
                      "uvloop": _sizes(("time", 0.97), TIE, TIE)}},
    ),
    Row(
        "callback-rr", "callbacks, one message at a time", "rr", ("callback",), SMALL, RR, LOOPS,
        goals={CALLBACK: TIE},
    ),
    Row(
        "await-window", "await send() and recv(), windows of 100", "window", ("await",), SMALL,
        WINDOWS, LOOPS, goals={OURS: PIPELINED},
    ),
    Row(
        "callback-window", "callbacks, windows of 100", "window", ("callback",), SMALL, WINDOWS,
        LOOPS, goals={CALLBACK: PIPELINED},
    ),
    Row(
        "iterate", "async for over 10,000 messages that have arrived", "iterate", ("await",),
        (64,), (10_000,), LOOPS, goals={OURS: ("time", 0.6)},
    ),
    Row(
        "tls-sync-rr", "TLS, blocking, one message at a time", "rr", ("sync",), SMALL,
        (1000, 1000, 500), feature="tls", goals={OURS: AHEAD, CONTEXT: None},
    ),
    Row(
        "tls-sync-window", "TLS, blocking, windows of 100", "window", ("sync",), SMALL,
        (5000, 5000, 500), feature="tls",
        goals={OURS: AHEAD, CORK: AHEAD, MANY: AHEAD, CONTEXT: None},
    ),
    Row(
        "tls-await-rr", "TLS, await recv(), one message at a time", "rr", ("await",), SMALL,
        (1000, 1000, 500), LOOPS, feature="tls", goals={OURS: AHEAD, CONTEXT: None},
    ),
    Row(
        "tls-callback-rr", "TLS, callbacks, one message at a time", "rr", ("callback",), SMALL,
        (1000, 1000, 500), LOOPS, feature="tls", goals={CALLBACK: AHEAD},
    ),
    Row(
        "tls-await-window", "TLS, await send() and recv(), windows of 100", "window", ("await",),
        SMALL, (5000, 5000, 500), LOOPS, feature="tls", goals={OURS: AHEAD, CONTEXT: None},
    ),
    Row(
        "deflate-sync-rr", "permessage-deflate, blocking, one message at a time", "rr", ("sync",),
        (512, 65536), (500, 50), feature="deflate", kind="json", goals={OURS: AHEAD},
    ),
    Row(
        "deflate-await-rr", "permessage-deflate, await recv(), one message at a time", "rr",
        ("await",), (512, 65536), (500, 50), LOOPS, feature="deflate", kind="json",
        goals={OURS: AHEAD},
    ),
    Row(
        "deflate-await-window", "permessage-deflate, await send() and recv(), windows of 100",
        "window", ("await",), (512,), (1000,), LOOPS, feature="deflate", kind="json",
        goals={OURS: AHEAD},
    ),
    Row(
        "large-sync", "blocking, 1 MiB, one message at a time", "rr", ("sync",), (1 << 20,), (50,),
        goals={OURS: AHEAD},
    ),
    Row(
        "large-await", "await recv(), 1 MiB, one message at a time", "rr", ("await",), (1 << 20,),
        (50,), LOOPS, goals={OURS: AHEAD},
    ),
    Row(
        "large-callback", "callbacks, 1 MiB, one message at a time", "rr", ("callback",),
        (1 << 20,), (50,), LOOPS, goals={CALLBACK: AHEAD},
    ),
    Row(
        "connect-sync", "blocking, connect and close", "connect", ("sync",), (64,), (500,),
        goals={OURS: AHEAD},
    ),
    Row(
        "connect-await", "await connect() and close()", "connect", ("await",), (64,), (500,), LOOPS,
        goals={OURS: AHEAD},
    ),
    Row(
        "idle", "memory of the client for each of 10,000 idle connections", "idle",
        ("await", "callback"), (0,), (10_000,), ("asyncio",), unit="bytes",
        goals={OURS: AHEAD},
    ),
]  # fmt: skip

# What websocket-rs has published about itself, at 512 B in `sync-rr`: our speed, of theirs.
PUBLISHED = {"websocket-client": 1.3, "websockets": 1.95}
