//! `bench registry`.

use playfield_bench::{registry, rounds::Options};
use playfield_cli::options::set;

use crate::suite::*;

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "registry",
    about: "what devices, channels and heartbeats cost a shard without its sockets. All in one
process.",
    defaults: Options::new,
    setters: &[
        row(|o, given| set(&mut o.row, row_of(given, &registry::names()))),
        form(|o, given| set(&mut o.form, given.value().map(Some))),
        json(|o, _| on(&mut o.json)),
        rounds(|o, given| set(&mut o.rounds, given.within(1..=10_000))),
        round_ms(|o, given| set(&mut o.round_ms, given.within(1..=10_000))),
    ],
    run: |options, out| verified(registry::run(&options, out)),
};
