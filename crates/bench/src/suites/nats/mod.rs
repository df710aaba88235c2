//! `bench nats`: the engine of clusters over NATS, compared with its client alone.
//!
//! A nats-server runs in a process of its own, with JetStream on a disk. Both sides use it through
//! one thread, in turn: conditional writes that make records, with as many in flight; and messages
//! from one connection to another, with as many on the way.

mod bare;
mod engine;

use std::io;
use std::time::{Duration, Instant};

use playfield_cli::options::Failure;
use playfield_nats::testing::Server;
use tokio::runtime::{Builder, Runtime};

use crate::harness::options::{Suite, options, row_of};
use crate::harness::report::{Column, Record, Report};

options! {
    Options {
        row: Option<String> = None
            => "row" "NAME" "run only this row; an unknown name lists all rows",
            |given| row_of(given, &ROWS);
        creates: u64 = 20_000, quick 200
            => "creates" "N" "records that are made in a round (default 20000)",
            |given| given.within(1..=10_000_000);
        in_flight: u64 = 64
            => "in-flight" "N" "records that are made at a time (default 64)",
            |given| given.within(1..=10_000);
        messages: u64 = 500_000, quick 2_000
            => "messages" "N" "messages of a round (default 500000)",
            |given| given.within(1..=1_000_000_000);
        window: u64 = 2_000
            => "window" "N" "messages on the way at a time (default 2000)",
            |given| given.within(1..=60_000);
        payload: usize = 100
            => "payload" "BYTES" "size of a message (default 100)",
            |given| given.within(8..=65_536);
        rounds: usize = 5, quick 1
            => "rounds" "N" "measurements, in turns; medians count (default 5)",
            |given| given.within(1..=1_000);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
    }
}

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "nats",
    about: "records and messages of a cluster over NATS, compared with the client of NATS alone, in
turns. The server runs in a process of its own; `scripts/nats-server` builds it once.",
    defaults: Options::new,
    run,
};

/// The rows.
const ROWS: [&str; 2] = ["creates", "messages"];

const COLUMNS: &[Column] = &[
    ("     row", "row"),
    ("count", "count"),
    ("on the way", "on_the_way"),
    ("   per s", "per_s"),
    ("bare, per s", "bare_per_s"),
    ("ratio", "ratio"),
    ("verified", "verified"),
];

/// A round of one side: how long it took, and whether all was as it must be.
struct Round {
    took: Duration,
    is_right: bool,
}

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    let Some(server) = Server::start() else {
        return Err(Failure::Unmeasured("nats: nats-server is missing".to_owned()));
    };
    let runtime = Builder::new_current_thread().enable_all().build().map_err(Failure::Work)?;
    report.begin(COLUMNS)?;
    for row in ROWS {
        if options.row.as_ref().is_none_or(|wanted| wanted == row) {
            let record = measure(row, options, &runtime, &server.url());
            report.add(record.map_err(|error| Failure::Work(io::Error::other(error)))?)?;
        }
    }
    Ok(())
}

/// The result of a step, which can fail for many reasons. All of them end the run.
type Result<T, E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

fn measure(row: &str, options: &Options, runtime: &Runtime, url: &str) -> Result<Record> {
    let is_creates = row == ROWS[0];
    let (count, on_the_way) = match is_creates {
        true => (options.creates, options.in_flight),
        false => (options.messages, options.window),
    };
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    let mut is_right = true;
    for round in 0..options.rounds {
        let is_corrupt = options.corrupt_one && round == 0;
        let (one, other) = match is_creates {
            true => (
                runtime.block_on(engine::creates(url, round, options, is_corrupt))?,
                runtime.block_on(bare::creates(url, round, options))?,
            ),
            false => (
                runtime.block_on(engine::messages(url, options, is_corrupt))?,
                runtime.block_on(bare::messages(url, options))?,
            ),
        };
        is_right &= one.is_right && other.is_right;
        ours.push(count as f64 / one.took.as_secs_f64());
        bare.push(count as f64 / other.took.as_secs_f64());
    }
    let ratios: Vec<_> = ours.iter().zip(&bare).map(|(ours, bare)| ours / bare).collect();
    Ok(Record::of("nats")
        .with("row", row)
        .with("count", count)
        .with("on_the_way", on_the_way)
        .with("bytes", if is_creates { RECORD.len() } else { options.payload })
        .with("rounds", options.rounds)
        .median("per_s", ours)
        .median("bare_per_s", bare)
        .median("ratio", ratios)
        .with("verified", is_right))
}

/// The value of a record, as long as a claim.
const RECORD: [u8; 64] = [7; 64];

/// The messages of a round, by number.
struct Numbers {
    payload: usize,
    received: u64,
    is_right: bool,
}

impl Numbers {
    fn new(payload: usize) -> Self {
        Self { payload, received: 0, is_right: true }
    }

    fn message(&self, number: u64) -> Vec<u8> {
        let mut message = vec![0; self.payload];
        message[..8].copy_from_slice(&number.to_le_bytes());
        message
    }

    fn receive(&mut self, message: &[u8]) {
        self.is_right &=
            message.len() == self.payload && message.starts_with(&self.received.to_le_bytes());
        self.received += 1;
    }

    fn end(&self, began: Instant) -> Round {
        Round { took: began.elapsed(), is_right: self.is_right }
    }
}
