//! `bench resume`: many sessions lose their connections at once and come back while their rooms
//! tick. Also the cost of a resumable session while it is connected.
//!
//! The node runs with two shards in its own process, the clients in another. Each client joins a
//! room of 30 that ticks at 20 Hz, and sends an event and changes its state every second. Then all
//! connections are reset, and all clients come back with their tokens. Events must arrive without a
//! gap, and each patch must start at the version of the copy. At the end of each row every client
//! asks its room for the time, and must have every event and every change up to then; after a cut
//! it does so as soon as it is welcome, that belongs to the time measured, and it must have at
//! least one event of the time without a connection.
//!
//! The memory of a session is what the process grew by. That includes what was freed since, as logs
//! were acknowledged, and can be used again. Where allocations are counted, what is allocated is
//! reported too.
//!
//! What resumption costs is measured with rooms that do nothing, with rooms that send 20 patches a
//! second and few events, and with rooms that send an event and a patch each second.

mod clients;
mod history;
mod server;

use std::io;
use std::time::Duration;

use playfield_cli::options::Failure;

use crate::harness::fleet::Fleet;
use crate::harness::machine::raise_descriptors;
use crate::harness::options::{Suite, options};
use crate::harness::process::{Server, Usage};
use crate::harness::report::{Column, Record, Report};
use crate::harness::stats::Samples;
use clients::{Clients, Returned, acknowledge, settle};
use server::Pace;

pub(crate) use server::ROLE;

options! {
    Options {
        sessions: usize = 19_000, quick 60
            => "sessions" "N" "number of sessions (default 19000)", |given| given.within(1..=19_500);
        rounds: usize = 3, quick 1
            => "rounds" "N" "how often all come back (default 3)", |given| given.within(1..=1_000);
        calm: Duration = Duration::from_secs(3), quick Duration::from_millis(600)
            => "calm-ms" "N" "time between cuts (default 3000)",
            |given| given.milliseconds(10..=3_600_000);
        pace: Option<Pace> = None
            => "pace" "NAME" "only with rooms that are idle, ticks or events",
            |given| given.value().map(Some);
        corrupt_one: bool = false => "corrupt-one" "" "", |_given| Ok(true);
    }
}

pub(crate) const SUITE: Suite<Options> = Suite {
    name: "resume",
    about:
        "many sessions lose their connections at once and come back while their rooms tick; and the
cost of a resumable session while it is connected. A row is verified if every session has everything
that its room did, also while it was away.",
    defaults: Options::new,
    run,
};

const COLUMNS: &[Column] = &[
    ("row", "row"),
    ("sessions", "sessions"),
    ("pace", "pace"),
    ("welcomed s", "welcomed_s"),
    ("settled s", "settled_s"),
    ("resumed/s", "resumed_per_second"),
    ("tick late p50", "tick_late_ms_p50"),
    ("p99", "tick_late_ms_p99"),
    ("max", "tick_late_ms_max"),
    ("server CPU s", "server_cpu_s"),
    ("server us/message", "server_us_per_message"),
    ("to not resumable", "server_us_ratio"),
    ("server B/session", "server_bytes_per_session"),
    ("more", "server_bytes_more"),
    ("allocated B", "server_heap_bytes_per_session"),
    ("more", "server_heap_bytes_more"),
    ("events", "events"),
    ("patches", "patches"),
    ("missed, sent again", "events_since_cut"),
    ("verified", "verified"),
];

/// The least time without a connection. Each room sends an event in it.
const AWAY_MIN: Duration = Duration::from_millis(1500);
/// The most sessions that get 20 patches a second each.
const TICKING_MAX: usize = 3_000;

fn run(options: &Options, report: &mut Report<'_>) -> Result<(), Failure> {
    raise_descriptors();
    report.begin(COLUMNS)?;
    for (_, pace) in Pace::NAMES {
        if options.pace.is_some_and(|only| only != *pace) {
            continue;
        }
        let sessions = match pace {
            Pace::Ticks => options.sessions.min(TICKING_MAX),
            Pace::Idle | Pace::Events => options.sessions,
        };
        // The difference is the cost of resumption.
        let mut without = None;
        for is_resumable in [false, true] {
            let mut server = server::start(*pace)?;
            let at_start = server.usage()?;
            let mut fleet = Clients::fleet(server.address, sessions, is_resumable)?;
            let mut rows = Rows { pace: *pace, at_start, without, report };
            acknowledge(&mut fleet)?;
            fleet.run(options.calm / 2);
            let phase = Phase::begin(&mut server, &fleet)?;
            fleet.run(options.calm);
            acknowledge(&mut fleet)?;
            let name = if is_resumable { "connected, resumable" } else { "connected" };
            without = Some(phase.end(name, &mut server, &mut fleet, None, &mut rows)?);
            if is_resumable && *pace == Pace::Events {
                come_back(options, &mut server, &mut fleet, &mut rows)?;
            }
        }
    }
    Ok(())
}

/// Cuts all connections, and lets all clients come back, round by round.
fn come_back(
    options: &Options,
    server: &mut Server,
    fleet: &mut Fleet<Clients>,
    rows: &mut Rows<'_, '_>,
) -> io::Result<()> {
    for round in 0..options.rounds {
        clients::cut(fleet);
        // The node notices every loss before the first client comes back.
        fleet.run(AWAY_MIN.max(options.calm / 2));
        let phase = Phase::begin(server, fleet)?;
        fleet.script.corrupt |= options.corrupt_one && round == 0;
        let returned = clients::come_back(fleet);
        phase.end("come back", server, fleet, Some(returned), rows)?;
        fleet.run(options.calm);
    }
    // Faults after the last round.
    rows.report.wrong(fleet.fault.is_some());
    Ok(())
}

/// The output for the rows of one node.
struct Rows<'a, 'b> {
    pace: Pace,
    /// The server before anyone connected.
    at_start: Usage,
    /// The cost measured without resumption.
    without: Option<Cost>,
    report: &'a mut Report<'b>,
}

/// The cost of connected sessions.
#[derive(Clone, Copy)]
struct Cost {
    us_per_message: f64,
    bytes_per_session: f64,
    /// The allocated bytes, if they are counted.
    heap_per_session: Option<f64>,
}

/// A time that is measured.
struct Phase {
    before: Usage,
    counted: clients::Counts,
}

impl Phase {
    fn begin(server: &mut Server, fleet: &Fleet<Clients>) -> io::Result<Self> {
        Ok(Self { before: server.usage()?, counted: fleet.script.counts })
    }

    fn end(
        self,
        row: &str,
        server: &mut Server,
        fleet: &mut Fleet<Clients>,
        returned: Option<Returned>,
        rows: &mut Rows<'_, '_>,
    ) -> io::Result<Cost> {
        let after = server.usage()?;
        let clients = &fleet.script;
        let events = clients.counts.events - self.counted.events;
        let patches = clients.counts.patches - self.counted.patches;
        if returned.is_none() {
            settle(fleet)?;
        }
        let clients = &fleet.script;
        let missed = clients.missed();
        let mut fault = fleet.fault.take();
        if returned.is_some() && missed.events_min == 0 {
            fault.get_or_insert_with(|| "a room sent no event to a client that was away".into());
        }
        if let Some(fault) = &fault {
            eprintln!("{row}: {fault}");
        }
        let late = Samples::new(after.more.iter().map(|ns| *ns as f64 / 1e6).collect());
        let cpu = after.cpu.saturating_sub(self.before.cpu).as_secs_f64();
        let per_session =
            |after: u64, before: u64| after.saturating_sub(before) as f64 / clients.len() as f64;
        let cost = Cost {
            us_per_message: cpu * 1e6 / (events + patches).max(1) as f64,
            bytes_per_session: per_session(after.resident, rows.at_start.resident),
            heap_per_session: after
                .heap
                .zip(rows.at_start.heap)
                .map(|(after, before)| per_session(after, before)),
        };
        let has_messages = events + patches > 0;
        let rounded = |value: f64| (value * 1e3).round() / 1e3;
        let seconds = |time: Duration| rounded(time.as_secs_f64());
        let without = rows.without.filter(|_| returned.is_none());
        let ratio = without.filter(|_| has_messages);
        let per_second =
            |back: Returned| (clients.len() as f64 / back.settled.as_secs_f64()).round();
        let record = Record::of("resume")
            .with("row", row)
            .with("sessions", clients.len())
            .with("pace", rows.pace.name())
            .with("welcomed_s", returned.map(|back| seconds(back.welcomed)))
            .with("settled_s", returned.map(|back| seconds(back.settled)))
            .with("resumed_per_second", returned.map(per_second))
            .measured("tick_late_ms_p50", late.percentile(50.0))
            .measured("tick_late_ms_p99", late.percentile(99.0))
            .measured("tick_late_ms_max", late.percentile(100.0))
            .measured("server_cpu_s", cpu)
            .with("server_us_per_message", has_messages.then(|| rounded(cost.us_per_message)))
            .with(
                "server_us_ratio",
                ratio.map(|without| rounded(cost.us_per_message / without.us_per_message)),
            )
            .with("server_bytes_per_session", cost.bytes_per_session.round())
            .with(
                "server_bytes_more",
                without.map(|less| (cost.bytes_per_session - less.bytes_per_session).round()),
            )
            .with("server_heap_bytes_per_session", cost.heap_per_session.map(f64::round))
            .with(
                "server_heap_bytes_more",
                cost.heap_per_session
                    .zip(without.and_then(|less| less.heap_per_session))
                    .map(|(with, without)| (with - without).round()),
            )
            .with("events", events)
            .with("patches", patches)
            .with("events_since_cut", returned.map(|_| missed.events))
            .with("verified", fault.is_none());
        rows.report.add(record)?;
        Ok(cost)
    }
}
