//! `bench channel`.

use playfield_bench::channel::{self, Options};
use playfield_cli::options::{Setter, set};

use crate::suite::*;

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "channel",
    about:
        "one channel with many subscribers over WebSocket: how fast publications reach all of them,
compared with bare sends of the same frames on as many sockets; and what they get after all their
connections were cut. The server runs on one core, the subscribers on another.",
    defaults: Options::default,
    setters: &[
        Setter::new("subscribers", "N", "number of subscribers (default 10000)", |o, given| {
            set(&mut o.subscribers, given.within(1..=19_000))
        }),
        Setter::new("bytes", "N", "size of a payload (default 100)", |o, given| {
            set(&mut o.bytes, given.within(1..=60_000))
        }),
        Setter::new(
            "seconds",
            "S",
            "how long publications of each server are measured (default 10)",
            |o, given| set(&mut o.time, given.seconds(1..=86_400)),
        ),
        Setter::new("rounds", "N", "in how many turns (default 20)", |o, given| {
            set(&mut o.rounds, given.within(1..=10_000))
        }),
        json(|o, _| on(&mut o.json)),
        corrupt_one(|o, _| on(&mut o.corrupt_one)),
        role(|o, given| set(&mut o.role, side(given))),
    ],
    run: |options, out| verified(channel::run(&options, out)),
};
