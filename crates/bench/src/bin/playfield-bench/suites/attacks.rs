//! `bench attacks`.

use playfield_bench::attacks::{self, Options, Outcome};
use playfield_cli::options::{Failure, Setter, set};

use crate::suite::*;

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "attacks",
    about: "how evenly a player is served at 20 Hz while strangers attack the same shard. The node
runs on one core with its default limits, everyone else on another. A row is verified if the
player's copy was right throughout and missed few patches, and the attack had its effect. Where
other processes are the reason why not, the row is not measured: the exit status is then 3.",
    defaults: Options::default,
    setters: &[
        // An unknown name is found when the rows are selected.
        row(|o, given| set(&mut o.row, given.value().map(Some))),
        Setter::new("connections", "N", "number of attackers (default 1000)", |o, given| {
            set(&mut o.connections, given.within(0..=10_000))
        }),
        Setter::new("round-ms", "N", "duration of each attack (default 10000)", |o, given| {
            set(&mut o.round, given.milliseconds(10..=3_600_000))
        }),
        Setter::new(
            "missed-percent-max",
            "N",
            "share of due patches that may be missing (default 10)",
            |o, given| set(&mut o.missed_percent_max, given.within(0..=100)),
        ),
        json(|o, _| on(&mut o.json)),
        corrupt_one(|o, _| on(&mut o.corrupt_one)),
        role(|o, given| set(&mut o.is_server, is_server(given))),
        Setter::internal("shards", |o, given| set(&mut o.shards, given.within(1..=2))),
    ],
    run: |options, out| {
        let Outcome { is_verified, unmeasured } = attacks::run(&options, out)?;
        if is_verified && !unmeasured.is_empty() {
            return Err(Failure::Unmeasured(unmeasured.join("; ")));
        }
        Ok(is_verified)
    },
};
