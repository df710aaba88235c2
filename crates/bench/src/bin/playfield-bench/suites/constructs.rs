//! `bench constructs`.

use playfield_bench::constructs::{self, Options};
use playfield_cli::options::{Setter, set};

use crate::suite::*;

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "constructs",
    about: "the cost of one change, in time and bytes, for every construct that a state can
consist of. All in one process.",
    defaults: Options::new,
    setters: &[
        json(|o, _| on(&mut o.json)),
        Setter::new("syncs", "N", "syncs per construct (default 2000)", |o, given| {
            set(&mut o.syncs, given.within(1..=1_000_000))
        }),
    ],
    run: |options, out| verified(constructs::run(&options, out)),
};
