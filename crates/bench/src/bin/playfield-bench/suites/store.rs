//! `bench store`.

use playfield_bench::store::{self, Options};
use playfield_cli::options::{Setter, set};

use crate::suite::*;

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "store",
    about:
        "saving and loading a state of 1 MB, compared with copying the same bytes; keyed rooms that
are opened, changed, closed and opened again on the embedded store; and how late another room of the
shard ticks while a room of 1 MB is saved and loaded.",
    defaults: Options::new,
    setters: &[
        row(|o, given| set(&mut o.rows.row, row_of(given, &store::names()))),
        json(|o, _| on(&mut o.rows.json)),
        rounds(|o, given| set(&mut o.rows.rounds, given.within(1..=10_000))),
        round_ms(|o, given| set(&mut o.rows.round_ms, given.within(1..=10_000))),
        Setter::new("rooms", "N", "number of keyed rooms (default 10000)", |o, given| {
            set(&mut o.rooms, given.within(1..=1_000_000))
        }),
        Setter::new("window-ms", "N", "how long ticks are measured (default 5000)", |o, given| {
            set(&mut o.window, given.milliseconds(1..=3_600_000))
        }),
        corrupt_one(|o, _| on(&mut o.corrupt_one)),
    ],
    run: |options, out| verified(store::run(&options, out)),
};
