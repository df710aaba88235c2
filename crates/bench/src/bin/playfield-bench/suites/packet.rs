//! `bench packet`.

use playfield_bench::{packet, rounds::Options};
use playfield_cli::options::set;

use crate::suite::*;

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "packet",
    about: "writing and reading custom packets. Each row is measured as is common (same), and with
every field compared and every byte read (verified).",
    defaults: Options::new,
    setters: &[
        row(|o, given| set(&mut o.row, row_of(given, &packet::names()))),
        form(|o, given| set(&mut o.form, given.value().map(Some))),
        json(|o, _| on(&mut o.json)),
        rounds(|o, given| set(&mut o.rounds, given.within(1..=10_000))),
        round_ms(|o, given| set(&mut o.round_ms, given.within(1..=10_000))),
    ],
    run: |options, out| verified(packet::run(&options, out)),
};
