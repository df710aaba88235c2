//! `bench jwt`.

use playfield_bench::jwt::{self, Options};
use playfield_cli::options::{Setter, set};

use crate::suite::*;

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "jwt",
    about: "sessions that JSON Web Tokens open, from connection to welcome, compared with the
verification of the tokens alone. The server runs on one core, the clients on another.",
    defaults: Options::default,
    setters: &[
        row(|o, given| set(&mut o.row, row_of(given, &jwt::names()))),
        Setter::new("sessions", "N", "sessions of one measurement (default 2000)", |o, given| {
            set(&mut o.sessions, given.within(1..=1_000_000))
        }),
        Setter::new("rounds", "N", "measurements, in turns (default 9)", |o, given| {
            set(&mut o.rounds, given.within(1..=1_000))
        }),
        json(|o, _| on(&mut o.json)),
        corrupt_one(|o, _| on(&mut o.corrupt_one)),
        role(|o, given| set(&mut o.is_server, is_server(given))),
    ],
    run: |options, out| verified(jwt::run(&options, out)),
};
