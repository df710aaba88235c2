//! `bench resume`: many sessions lose their connections at once and come back while their rooms
//! tick. Also the cost of a resumable session while it is connected.
//!
//! The node runs with two shards in its own process, the clients in another. Each client joins a
//! room of 30 that ticks at 20 Hz, and sends an event and changes its state every second. Then all
//! connections are reset, and all clients come back with their tokens. Events must arrive without a
//! gap, and each patch must start at the version of the copy. At the end of each row every client
//! asks its room for the time, and must have every event and every change up to then; after a cut,
//! at least one event of the time without a connection.

mod clients;
mod history;
mod server;

use std::io::{self, Write};
use std::time::Duration;

use crate::stats::Samples;
use crate::table::{Column, Report};
use crate::{Machine, Record};
use clients::Clients;

/// What to measure and how to report it.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of sessions.
    pub sessions: usize,
    /// How often all come back.
    pub rounds: usize,
    /// How long the sessions are connected before and after.
    pub calm: Duration,
    /// Print lines of JSON instead of a table.
    pub json: bool,
    /// Lose one event, so that the check must fail.
    pub corrupt_one: bool,
    /// Whether this process is the server.
    pub is_server: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            sessions: 19_000,
            rounds: 3,
            calm: Duration::from_secs(4),
            json: false,
            corrupt_one: false,
            is_server: false,
        }
    }
}

const COLUMNS: &[Column] = &[
    ("row", "row"),
    ("sessions", "sessions"),
    ("seconds", "seconds"),
    ("resumed/s", "resumed_per_second"),
    ("tick late p50", "tick_late_ms_p50"),
    ("p99", "tick_late_ms_p99"),
    ("max", "tick_late_ms_max"),
    ("server CPU s", "server_cpu_s"),
    ("server us/message", "server_us_per_message"),
    ("server B/session", "server_bytes_per_session"),
    ("events", "events"),
    ("patches", "patches"),
    ("missed, sent again", "events_since_cut"),
    ("verified", "verified"),
];

/// The least time without a connection. Each room sends an event in it.
const AWAY_MIN: Duration = Duration::from_millis(1500);

/// Runs the suite. Returns whether every event and patch was as it should be.
///
/// # Errors
/// The node can't be started or reached, or `out` can't be written.
pub fn run(options: &Options, out: &mut dyn Write) -> io::Result<bool> {
    if options.is_server {
        return server::host().map(|()| true);
    }
    let machine = Machine::describe();
    let report = Report::of(COLUMNS, options.json, machine, out)?;
    let mut verified = true;
    // The difference is the cost of resumption.
    for is_resumable in [false, true] {
        let mut hosted = server::Hosted::start()?;
        let mut clients = Clients::new(hosted.node, options, is_resumable)?;
        let name = if is_resumable { "connected, resumable" } else { "connected" };
        clients.open()?;
        clients.run(options.calm / 2)?;
        let mut phase = Phase::begin(&mut hosted, &mut clients)?;
        clients.run(options.calm)?;
        clients.acknowledge()?;
        verified &= phase.end(name, &mut hosted, &mut clients, None, &report, out)?;
        if !is_resumable {
            continue;
        }
        for round in 0..options.rounds {
            clients.cut();
            // The node notices every loss before the first client comes back.
            clients.run(AWAY_MIN.max(options.calm / 2))?;
            phase = Phase::begin(&mut hosted, &mut clients)?;
            clients.corrupt(options.corrupt_one && round == 0);
            let resumed = Some(clients.come_back()?);
            verified &= phase.end("come back", &mut hosted, &mut clients, resumed, &report, out)?;
            clients.run(options.calm)?;
        }
        // Faults after the last round.
        verified &= clients.take_fault().is_none();
    }
    Ok(verified)
}

/// A time that is measured.
struct Phase {
    before: server::Stats,
    began: std::time::Instant,
    counted: clients::Counts,
}

impl Phase {
    fn begin(hosted: &mut server::Hosted, clients: &mut Clients) -> io::Result<Self> {
        let before = hosted.stats()?;
        Ok(Self { before, began: std::time::Instant::now(), counted: clients.counts })
    }

    fn end(
        &mut self,
        row: &str,
        hosted: &mut server::Hosted,
        clients: &mut Clients,
        resumed: Option<usize>,
        report: &Report,
        out: &mut dyn Write,
    ) -> io::Result<bool> {
        let seconds = self.began.elapsed().as_secs_f64();
        let after = hosted.stats()?;
        let events = clients.counts.events - self.counted.events;
        let patches = clients.counts.patches - self.counted.patches;
        let settled = clients.settle()?;
        let mut fault = clients.take_fault();
        if resumed.is_some() && settled.events_min == 0 {
            fault.get_or_insert_with(|| "a room sent no event to a client that was away".into());
        }
        if let Some(fault) = &fault {
            eprintln!("{row}: {fault}");
        }
        let late = Samples::new(after.lateness_ns.iter().map(|ns| *ns as f64 / 1e6).collect());
        let cpu = after.cpu.saturating_sub(self.before.cpu).as_secs_f64();
        let record = Record::new()
            .with("suite", "resume")
            .with("row", row)
            .with("sessions", clients.len())
            .measured("seconds", seconds)
            .measured("resumed_per_second", resumed.unwrap_or(0) as f64 / seconds)
            .measured("tick_late_ms_p50", late.percentile(50.0))
            .measured("tick_late_ms_p99", late.percentile(99.0))
            .measured("tick_late_ms_max", late.percentile(100.0))
            .measured("server_cpu_s", cpu)
            .measured("server_us_per_message", cpu * 1e6 / (events + patches).max(1) as f64)
            .with("server_bytes_per_session", after.resident / clients.len() as u64)
            .with("events", events)
            .with("patches", patches)
            .with("events_since_cut", resumed.map(|_| settled.events))
            .with("verified", fault.is_none());
        report.add(record, out)?;
        Ok(fault.is_none())
    }
}

fn wrong(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text)
}
