//! `bench http`.

use playfield_bench::http::{self, Options};
use playfield_cli::options::{Setter, set};

use crate::suite::*;

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "http",
    about:
        "requests per second over kept connections, to a room that a handler asks, to a page, and to
the baseline, which only reads and writes. The server runs on one core, the clients on another. The
room ticks at 60 Hz meanwhile, and says how late.",
    defaults: Options::new,
    setters: &[
        Setter::new("connections", "N", "number of connections (default 32)", |o, given| {
            set(&mut o.connections, given.within(1..=10_000))
        }),
        Setter::new("rounds", "N", "measurements of each, in turns (default 5)", |o, given| {
            set(&mut o.rounds, given.within(1..=1_000))
        }),
        Setter::new("round-ms", "N", "duration of one measurement (default 1000)", |o, given| {
            set(&mut o.round, given.milliseconds(10..=3_600_000))
        }),
        json(|o, _| on(&mut o.json)),
        corrupt_one(|o, _| on(&mut o.corrupt_one)),
        role(|o, given| set(&mut o.is_server, is_server(given))),
    ],
    run: |options, out| verified(http::run(&options, out)),
};
