//! A run under too much load, and after it.

use std::time::{Duration, Instant};

use super::rates::Rates;
use super::recovery::{Recovery, SLICE};
use crate::harness::Side;
use crate::harness::report::Record;
use crate::suites::rooms::Setup;
use crate::suites::rooms::clients::Clients;
use crate::suites::rooms::driver::{Run, Shares, Used};
use crate::suites::rooms::measure::CALM;
use crate::suites::rooms::run::INTERVAL_P99_MAX;
use crate::suites::rooms::window::Failure;

/// The longest wait for recovery.
const RECOVERY_MAX: Duration = Duration::from_secs(8);

/// Observations in a time of overload.
pub(super) struct Watched {
    pub(super) seconds: f64,
    /// The messages of each client.
    messages: Vec<u64>,
    players: usize,
    interval_ms_p99: f64,
    wait_ms_p99: f64,
    bytes: u64,
    patches: u64,
    compared: u64,
    early: u64,
    pub(super) shares: Shares,
    /// The node's memory at the beginning, in the middle and at the end.
    rss_mb: [f64; 3],
    /// The node's counters, since the beginning.
    pub(super) counters: Counters,
}

/// Counters of the node, as `rooms` reports them.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) messages_in: u64,
    pub(super) too_fast: u64,
    pub(super) conflated: u64,
    pub(super) refused_late: u64,
    pub(super) refused_busy: u64,
    ticks: u64,
    ticks_skipped: u64,
    /// The shares of a core that [`PARTS`] took.
    parts: [f64; PARTS.len()],
}

/// The counters that come before those of [`PARTS`].
const COUNTS: usize = 7;

/// The parts of the node's time, in the order of their counters.
const PARTS: [&str; 5] =
    ["ticks_core", "changes_core", "patches_core", "receive_core", "send_core"];

impl Counters {
    fn between(before: &Used, after: &Used) -> Self {
        let more = |at: usize| {
            let of = |used: &Used| used.server.more.get(at).copied().unwrap_or_default();
            of(after) - of(before)
        };
        let counts: [u64; COUNTS] = std::array::from_fn(more);
        let [messages_in, too_fast, conflated, refused_late, refused_busy, ticks, ticks_skipped] =
            counts;
        let elapsed = after.server.at - before.server.at;
        let parts = std::array::from_fn(|part| {
            Duration::from_nanos(more(COUNTS + part)).as_secs_f64() / elapsed.as_secs_f64()
        });
        let rooms = Self { ticks, ticks_skipped, parts, ..Self::default() };
        Self { messages_in, too_fast, conflated, refused_late, refused_busy, ..rooms }
    }
}

/// Starts a node and its clients.
pub(super) fn begin(setup: Setup) -> Result<Run, Failure> {
    let mut run = Run::start(setup, Side::Node)?;
    match run.begin() {
        Ok(()) => Ok(run),
        Err(failure) => Err(run.end().err().unwrap_or(failure)),
    }
}

/// Records for this long.
pub(super) fn watch(run: &mut Run, time: Duration) -> Result<Watched, Failure> {
    let before = run.used()?;
    run.fleet.run(CALM);
    run.fleet.script.begin_record(time.as_secs() as u32);
    let began = Instant::now();
    run.fleet.run(time / 2);
    let middle = run.used()?;
    run.fleet.run(time / 2);
    run.fleet.script.end_record();
    let seconds = began.elapsed().as_secs_f64();
    let after = run.used()?;
    run.end()?;
    let Clients { window, all, .. } = &run.fleet.script;
    Ok(Watched {
        seconds,
        messages: all.iter().map(|client| client.arrivals.messages).collect(),
        players: run.fleet.script.players(0).len(),
        interval_ms_p99: window.intervals_ms().percentile(99.0),
        wait_ms_p99: window.waits_ms().percentile(99.0),
        bytes: window.bytes,
        patches: window.messages,
        compared: window.compared,
        early: window.early,
        shares: before.until(&after),
        rss_mb: [before.rss_mb(), middle.rss_mb(), after.rss_mb()],
        counters: Counters::between(&before, &after),
    })
}

/// Waits until all is normal again, after the load has fallen. How long that took.
pub(super) fn recover(run: &mut Run) -> Result<Option<Duration>, Failure> {
    let period = Duration::from_secs(1) / run.fleet.script.case().hz;
    let (mut recovery, ends) = (Recovery::default(), Instant::now() + RECOVERY_MAX);
    while recovery.time().is_none() && Instant::now() < ends && run.fleet.fault.is_none() {
        run.fleet.script.begin_record(1);
        run.fleet.run(SLICE);
        run.fleet.script.end_record();
        recovery.add(run.fleet.script.window.longer_than(period.mul_f64(INTERVAL_P99_MAX)));
    }
    run.end()?;
    Ok(recovery.time())
}

/// A fault of a run, other than lost sessions, which are counted.
pub(super) fn fault(run: &mut Run) -> Option<String> {
    let (fleet, window) = (&run.fleet.fault, &run.fleet.script.window.failure);
    match (fleet, window) {
        (Some(fault), _) => Some(fault.clone()),
        (None, Some(Failure::Fault(fault))) => Some(fault.clone()),
        (None, Some(Failure::Overload(why))) => {
            eprintln!("{why}");
            None
        }
        (None, None) => None,
    }
}

impl Watched {
    /// The rates of these rooms.
    pub(super) fn rates(&self, rooms: impl IntoIterator<Item = usize>) -> Rates {
        let of = |room: usize| &self.messages[room * self.players..(room + 1) * self.players];
        let messages: Vec<u64> = rooms.into_iter().flat_map(of).copied().collect();
        Rates::new(&messages, self.players, self.seconds)
    }

    /// Says whether each patch that counts was compared.
    pub(super) fn is_compared(&self) -> bool {
        self.patches > 0 && self.compared + self.early == self.patches
    }

    pub(super) fn interval_ms_p99(&self) -> f64 {
        self.interval_ms_p99
    }

    pub(super) fn bytes_per_patch(&self) -> f64 {
        self.bytes as f64 / self.patches.max(1) as f64
    }

    /// Adds what all rows have.
    pub(super) fn add_to(&self, record: Record) -> Record {
        let [start, middle, end] = self.rss_mb;
        let parts = PARTS.iter().zip(self.counters.parts);
        let record = parts.fold(record, |record, (name, share)| record.measured(name, share));
        record
            .with("ticks", self.counters.ticks)
            .with("ticks_skipped", self.counters.ticks_skipped)
            .measured("seconds", self.seconds)
            .measured("interval_ms_p99", self.interval_ms_p99)
            .measured("wait_ms_p99", self.wait_ms_p99)
            .measured("rss_mb_start", start)
            .measured("rss_mb_middle", middle)
            .measured("rss_mb_end", end)
            .measured("rss_growth", end / start - 1.0)
            .measured("server_core", self.shares.server)
            .measured("driver_core", self.shares.driver)
            .measured("server_delayed", self.shares.server_delayed)
            .measured("driver_delayed", self.shares.driver_delayed)
            .measured("bytes_per_patch", self.bytes_per_patch())
            .with("patches", self.patches)
            .with("compared", self.compared)
    }
}
