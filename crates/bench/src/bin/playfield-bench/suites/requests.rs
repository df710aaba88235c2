//! `bench requests`.

use playfield_bench::messages::{self, ShardsOptions};
use playfield_cli::options::{Setter, set};

use crate::suite::*;

pub(crate) const SUITE: Suite<ShardsOptions> = Suite {
    name: "requests",
    about: "how long a node with 1, 2, 4 and 8 shards takes to answer 10,000 requests that are sent
at once, each by a client of its own. The node and the clients share all cores.",
    defaults: ShardsOptions::default,
    setters: &[
        Setter::new("requests", "N", "number of requests (default 10000)", |o, given| {
            set(&mut o.requests, given.within(1..=19_000))
        }),
        Setter::new("rounds", "N", "how often they are sent (default 20)", |o, given| {
            set(&mut o.rounds, given.within(1..=10_000))
        }),
        Setter::new("shards", "N", "only with this many shards", |o, given| {
            set(&mut o.shards, given.within(1..=256).map(Some))
        }),
        json(|o, _| on(&mut o.json)),
        corrupt_one(|o, _| on(&mut o.corrupt_one)),
    ],
    run: |options, out| verified(messages::run_by_shards(&options, out)),
};
