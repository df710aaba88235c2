//! `bench websocket`.

use playfield_bench::websocket::{self, Options};
use playfield_cli::options::set;

use crate::suite::*;

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "websocket",
    about: "parsing masked frames and unmasking them in place, compared with copying the same
bytes; and compressing and decompressing 512-byte chat messages, with and without context takeover,
with their compressed size and the memory that a connection keeps.",
    defaults: Options::default,
    setters: &[
        row(|o, given| set(&mut o.rows.row, row_of(given, &websocket::names()))),
        form(|o, given| set(&mut o.rows.form, given.value().map(Some))),
        json(|o, _| on(&mut o.rows.json)),
        rounds(|o, given| set(&mut o.rows.rounds, given.within(1..=10_000))),
        round_ms(|o, given| set(&mut o.rows.round_ms, given.within(1..=10_000))),
        corrupt_one(|o, _| on(&mut o.corrupt_one)),
    ],
    run: |options, out| verified(websocket::run(&options, out)),
};
