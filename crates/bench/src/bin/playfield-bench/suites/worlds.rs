//! `bench worlds`.

use playfield_bench::worlds::{self, Options};
use playfield_cli::options::{Setter, set};

use crate::suite::*;

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "worlds",
    about: "one sync of a world with many entities and players who see what is near: by a view
function, and by place, in turn. All in one process.",
    defaults: Options::new,
    setters: &[
        row(|o, given| set(&mut o.row, row_of(given, &worlds::names()))),
        json(|o, _| on(&mut o.json)),
        Setter::new(
            "rounds",
            "N",
            "measurements per row; the median counts (default 5)",
            |o, given| set(&mut o.rounds, given.within(1..=1_000)),
        ),
        Setter::new("syncs", "N", "syncs per measurement (default 40)", |o, given| {
            set(&mut o.syncs, given.within(1..=10_000))
        }),
        corrupt_one(|o, _| on(&mut o.corrupt_one)),
    ],
    run: |options, out| verified(worlds::run(&options, out)),
};
