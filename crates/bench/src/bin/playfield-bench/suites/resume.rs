//! `bench resume`.

use playfield_bench::resume::{self, Options, Pace};
use playfield_cli::options::{Setter, set};

use crate::suite::*;

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "resume",
    about:
        "many sessions lose their connections at once and come back while their rooms tick; and the
cost of a resumable session while it is connected. A row is verified if every session has everything
that its room did, also while it was away.",
    defaults: Options::default,
    setters: &[
        Setter::new("sessions", "N", "number of sessions (default 19000)", |o, given| {
            set(&mut o.sessions, given.within(1..=19_500))
        }),
        Setter::new("rounds", "N", "how often all come back (default 3)", |o, given| {
            set(&mut o.rounds, given.within(1..=1_000))
        }),
        Setter::new("calm-ms", "N", "time between cuts (default 4000)", |o, given| {
            set(&mut o.calm, given.milliseconds(10..=3_600_000))
        }),
        Setter::new(
            "pace",
            "NAME",
            "only with rooms that are idle, ticks or events",
            |o, given| set(&mut o.pace, given.one_of(&Pace::ALL).map(Some)),
        ),
        json(|o, _| on(&mut o.json)),
        corrupt_one(|o, _| on(&mut o.corrupt_one)),
        role(|o, given| set(&mut o.is_server, is_server(given))),
    ],
    run: |options, out| verified(resume::run(&options, out)),
};
