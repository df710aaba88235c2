//! `bench tls`.

use playfield_bench::tls::{self, Options};
use playfield_cli::options::{Setter, set};

use crate::suite::*;

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "tls",
    about:
        "full handshakes, compared with bare rustls; the memory of idle connections; and rooms of 30
players with and without TLS. The server runs on one core, the clients on another.",
    defaults: Options::new,
    setters: &[
        row(|o, given| set(&mut o.row, row_of(given, &tls::names()))),
        Setter::new("connections", "N", "connections that are held (default 10000)", |o, given| {
            set(&mut o.connections, given.within(1..=100_000))
        }),
        Setter::new(
            "handshakes",
            "N",
            "handshakes of one measurement (default 2000)",
            |o, given| set(&mut o.handshakes, given.within(1..=1_000_000)),
        ),
        Setter::new(
            "rounds",
            "N",
            "measurements of handshakes, in turns (default 5)",
            |o, given| set(&mut o.rounds, given.within(1..=1_000)),
        ),
        Setter::new("rooms", "N", "number of rooms (default 60)", |o, given| {
            set(&mut o.rooms, given.within(1..=10_000))
        }),
        Setter::new("seconds", "N", "how long rooms are measured (default 10)", |o, given| {
            set(&mut o.seconds, given.within(1..=86_400))
        }),
        json(|o, _| on(&mut o.json)),
        corrupt_one(|o, _| on(&mut o.corrupt_one)),
        role(|o, given| set(&mut o.is_server, is_server(given))),
    ],
    run: |options, out| verified(tls::run(&options, out)),
};
