//! `bench attacks`: how evenly a player is served at 20 Hz while strangers attack the same shard.
//!
//! The node runs in its own process on one core, with default limits and one shard. The player and
//! the attackers share another core. The player records when each patch arrives. Each attacker has
//! its own address, and reconnects when the node closes its connection. The first and the last row
//! are measured without an attack.

mod flood;
mod server;
mod victim;

use std::io::{self, Write};
use std::time::Duration;

use crate::clock::pin;
use crate::stats::Samples;
use crate::table::{Column, Report};
use crate::{Machine, Record};
use flood::Flood;

/// The core of the node, and the core of all clients.
const SERVER_CORE: usize = 0;
const DRIVER_CORE: usize = 1;

/// What to measure and how to report it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Run only this attack.
    pub row: Option<String>,
    /// The number of attackers.
    pub connections: usize,
    /// The duration of each attack.
    pub round: Duration,
    /// Print lines of JSON instead of a table.
    pub json: bool,
    /// Corrupt one patch, so that the check must fail.
    pub corrupt_one: bool,
    /// Whether this process is the server.
    pub is_server: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            row: None,
            connections: 1000,
            round: Duration::from_secs(10),
            json: false,
            corrupt_one: false,
            is_server: false,
        }
    }
}

/// What attackers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attack {
    /// Nothing.
    None,
    /// Pings, as fast as the socket accepts them.
    Pings,
    /// Lists of rooms.
    Lists,
    /// Lists with many filters.
    Filters,
    /// Requests for snapshots of a large room.
    Resyncs,
    /// Requests with long replies.
    Replies,
    /// New rooms.
    Rooms,
    /// Long messages that compress to almost nothing.
    Bombs,
    /// JSON messages of maximal length.
    Json,
    /// Connections that say hello and disconnect.
    Hellos,
}

impl Attack {
    const ALL: [(Self, &str); 11] = [
        (Self::None, "none"),
        (Self::Pings, "pings"),
        (Self::Lists, "lists"),
        (Self::Filters, "filters"),
        (Self::Resyncs, "resyncs"),
        (Self::Replies, "replies"),
        (Self::Rooms, "rooms"),
        (Self::Bombs, "bombs"),
        (Self::Json, "json"),
        (Self::Hellos, "hellos"),
        (Self::None, "none, after"),
    ];
}

const COLUMNS: &[Column] = &[
    ("attack", "attack"),
    ("attackers", "attackers"),
    ("interval p50", "interval_ms_p50"),
    ("p99", "interval_ms_p99"),
    ("max", "interval_ms_max"),
    ("ticks late p99", "tick_late_ms_p99"),
    ("patches", "patches"),
    ("sent MB/s", "attack_mb_per_second"),
    ("received MB/s", "answer_mb_per_second"),
    ("connections", "connections"),
    ("server CPU", "server_cpu"),
    ("server MB", "server_mb"),
    ("verified", "verified"),
];

/// Runs the suite. Returns whether every patch was as it should be.
///
/// # Errors
/// The node can't be started or reached, `out` can't be written, or no attack has the name.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    if options.is_server {
        return server::host().map(|()| true);
    }
    let rows: Vec<_> = Attack::ALL
        .into_iter()
        .filter(|(_, name)| options.row.as_deref().is_none_or(|row| row == *name))
        .collect();
    if rows.is_empty() {
        let names: Vec<_> = Attack::ALL.iter().map(|(_, name)| *name).collect();
        let text = format!("unknown row; the rows are {}", names.join(", "));
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let machine = Machine::describe();
    let mut hosted = server::Hosted::start()?;
    pin(DRIVER_CORE)?;
    let report = Report::of(COLUMNS, options.json, machine, out)?;
    let mut all_verified = true;
    for (attack, name) in rows {
        let before = hosted.stats()?;
        let flood = Flood::start(attack, options.connections, hosted.node, &hosted.fat)?;
        let watched = victim::watch(hosted.node, options.round, options.corrupt_one);
        let done = flood.stop()?;
        let after = hosted.stats()?;
        let watched = watched?;
        if let Some(fault) = &watched.fault {
            eprintln!("{name}: {fault}");
        }
        let verified = watched.fault.is_none();
        all_verified &= verified;
        let patches = watched.intervals_ms.len();
        let intervals = Samples::new(watched.intervals_ms);
        let late = after.lateness_ns.iter().map(|ns| *ns as f64 / 1e6);
        let late = Samples::new(late.collect());
        let seconds = watched.time.as_secs_f64();
        let cpu = after.cpu.saturating_sub(before.cpu);
        let record = Record::new()
            .with("suite", "attacks")
            .with("attack", name)
            .with("attackers", if attack == Attack::None { 0 } else { options.connections })
            .measured("interval_ms_p50", intervals.percentile(50.0))
            .measured("interval_ms_p99", intervals.percentile(99.0))
            .measured("interval_ms_max", intervals.percentile(100.0))
            .measured("tick_late_ms_p99", late.percentile(99.0))
            .with("patches", patches)
            .measured("attack_mb_per_second", done.sent as f64 / 1e6 / seconds)
            .measured("answer_mb_per_second", done.received as f64 / 1e6 / seconds)
            .with("connections", done.connections)
            .measured("server_cpu", cpu.as_secs_f64() / seconds)
            .with("server_mb", after.resident_mb)
            .with("verified", verified);
        report.add(record, out)?;
    }
    Ok(all_verified)
}
