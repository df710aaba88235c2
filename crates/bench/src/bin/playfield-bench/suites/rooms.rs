//! `bench rooms`.

use playfield_bench::rooms::{self, Options, PLAYERS_MAX, Role, Transport};
use playfield_cli::options::{Setter, set};

use crate::suite::*;

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "rooms",
    about: "how many rooms of 30 or more players one core can serve, at 20 patches per second. The
server runs on one core and all clients on another. The same run measures the baseline: the same
writes and nothing else. With TLS, it measures the same without TLS, too.",
    defaults: Options::new,
    setters: &[
        Setter::new(
            "rooms",
            "N",
            "number of rooms; the starting point of --find-max (default 100)",
            |o, given| set(&mut o.case.rooms, given.within(1..=10_000)),
        ),
        Setter::new("players", "N", "players per room (default 30)", |o, given| {
            set(&mut o.case.players, given.within(1..=PLAYERS_MAX))
        }),
        Setter::new("hz", "N", "ticks and patches per second (default 20)", |o, given| {
            set(&mut o.case.hz, given.within(1..=1_000))
        }),
        Setter::new("seconds", "N", "duration, after 3 s of warm-up (default 10)", |o, given| {
            set(&mut o.case.seconds, given.within(1..=86_400))
        }),
        Setter::new("inputs-hz", "N", "inputs per second and client (default 0)", |o, given| {
            set(&mut o.case.inputs_hz, given.within(0..=1_000))
        }),
        Setter::new(
            "transport",
            "ws|wss|tcp|tls",
            "WebSocket (default) or native framing; over TLS",
            |o, given| set(&mut o.case.transport, given.one_of(Transport::NAMES)),
        ),
        Setter::new("workload", "colyseus", "the only workload", |_, given| {
            given.one_of(&[("colyseus", ())])
        }),
        Setter::new(
            "find-max",
            "",
            "find the most rooms that pass 3 of 3 runs, with intervals up to 60 ms at p99",
            |o, _| on(&mut o.find_max),
        ),
        json(|o, _| on(&mut o.json)),
        Setter::internal("warm-up-ms", |o, given| {
            set(&mut o.case.warm_up, given.milliseconds(0..=3_600_000))
        }),
        corrupt_one(|o, _| on(&mut o.corrupt_one)),
        role(|o, given| set(&mut o.role, given.one_of(Role::NAMES))),
        Setter::internal("bytes", |o, given| set(&mut o.bytes, given.within(1..=1_000_000))),
    ],
    run: |options, out| verified(rooms::run(&options, out)),
};
