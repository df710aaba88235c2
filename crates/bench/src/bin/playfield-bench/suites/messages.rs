//! `bench messages`.

use playfield_bench::messages::{self, BYTES_MIN, Options, Transport, WINDOW_MAX};
use playfield_cli::options::{Setter, set};

use crate::suite::*;

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "messages",
    about: "many clients send requests to rooms, compared with a bare server that reads and answers
as many bytes. The server runs on one core, the clients on another.",
    defaults: Options::default,
    setters: &[
        Setter::new("count", "N", "number of clients (default 10000)", |o, given| {
            set(&mut o.count, given.within(1..=19_000))
        }),
        transport(|o, given| set(&mut o.transport, given.one_of(Transport::NAMES))),
        Setter::new("bytes", "N", "only messages of this size", |o, given| {
            set(&mut o.bytes, given.within(BYTES_MIN..=60_000).map(Some))
        }),
        Setter::new(
            "window",
            "N",
            "only with this many messages of a client under way (default 10, then 1)",
            |o, given| set(&mut o.window, given.within(1..=WINDOW_MAX).map(Some)),
        ),
        Setter::new("seconds", "S", "how long each case is measured (default 10)", |o, given| {
            set(&mut o.time, given.seconds(1..=86_400))
        }),
        json(|o, _| on(&mut o.json)),
        corrupt_one(|o, _| on(&mut o.corrupt_one)),
        role(|o, given| set(&mut o.role, side(given))),
        Setter::internal("shards", |o, given| set(&mut o.shards, given.within(1..=256).map(Some))),
    ],
    run: |options, out| verified(messages::run(&options, out)),
};
