//! Finds the maximum number of rooms: for ours, for ours without TLS if it is with TLS, and for the
//! baseline. Their runs alternate, so that all meet the same conditions.
//!
//! The speed of a virtual machine varies. So a small baseline case, the *gauge*, runs between the
//! runs. A run is repeated, whatever its result, if the machine was slower than its best or if the
//! processes had to wait for their cores.

use std::io;
use std::time::Duration;

use serde_json::{Value, json};

use super::Options;
use super::run::{COLUMNS, copied, number, run_baseline, run_ours, sent_bytes};
use super::search::Search;
use crate::harness::machine::descriptors_max;
use crate::harness::report::Report;

/// The maximum share of time that a process may wait for its core.
const DELAYED_MAX: f64 = 0.05;

/// How much slower than its best the machine may be.
const SLOWED_MAX: f64 = 1.15;

/// How many runs of each search are repeated. Later ones count, so that the
/// search ends even on a busy machine.
const DISTURBED_MAX: u32 = 10;

/// File descriptors that a process needs besides those of its clients.
const DESCRIPTORS_SPARE: u64 = 64;

/// Runs the search and reports the result.
pub(super) fn find_max(options: &Options, report: &mut Report<'_>) -> io::Result<()> {
    report.begin(COLUMNS)?;
    let show = |record: &Value, report: &mut Report<'_>| {
        if !report.is_json() {
            return report.add_value(record);
        }
        eprintln!("{record}");
        Ok(())
    };
    let most = rooms_max(options.players);
    let side = || Side::new(Search::new(options.rooms, most));
    let (mut ours, mut baseline) = (side(), side());
    let mut plain = options.plain().map(|case| (case, side()));
    let mut gauge = Gauge::begin()?;
    let mut bytes = None;
    let mut all_verified = true;
    let mut compared = 0;
    loop {
        let plain = plain.as_mut().map(|(case, side)| (&*case, side));
        let is_under_way =
            ours.is_under_way() || plain.as_ref().is_some_and(|(_, side)| side.is_under_way());
        if !is_under_way && !baseline.is_under_way() {
            break;
        }
        for (case, side) in [(options, &mut ours)].into_iter().chain(plain) {
            let Some(rooms) = side.search.next() else { continue };
            match run_ours(&Options { rooms, ..case.clone() }) {
                Ok((record, verified)) => {
                    show(&record, report)?;
                    all_verified &= verified;
                    compared += record["compared"].as_u64().unwrap_or(0);
                    if verified {
                        bytes.get_or_insert(sent_bytes(&record));
                    }
                    side.ran(record, verified, gauge.is_slow()?);
                }
                Err(error) => side.broke(rooms, &error),
            }
        }
        if let (Some(rooms), Some(bytes)) = (baseline.search.next(), bytes) {
            match run_baseline(&Options { rooms, ..options.clone() }, bytes) {
                Ok((record, whole)) => {
                    show(&record, report)?;
                    baseline.ran(record, whole, gauge.is_slow()?);
                }
                Err(error) => baseline.broke(rooms, &error),
            }
        } else if bytes.is_none() && !is_under_way {
            return Err(io::Error::other(
                "every size failed, so there is no result to compare the baseline with",
            ));
        }
    }
    let (max, baseline_max) = (ours.search.result(), baseline.search.result());
    let mut record = copied(options.record(), &ours.last, LAST)
        .with("compared", compared)
        .with("verified", all_verified)
        .with("max_rooms", max)
        .with("runs", ours.runs)
        .with("runs_disturbed", ours.disturbed)
        .with("runs_broken", ours.broken)
        .with("baseline_us_per_send", baseline.last["us_per_send"].clone())
        .with("baseline_server_core", baseline.last["server_core"].clone())
        .with("baseline_max_rooms", baseline_max)
        .with("baseline_runs", baseline.runs)
        .with("baseline_runs_disturbed", baseline.disturbed)
        .measured("gauge_us_per_send_least", gauge.least)
        .measured("gauge_us_per_send_most", gauge.most)
        .measured("ratio", f64::from(max) / f64::from(baseline_max.max(1)));
    let mut summary = format!("maximum: {max} rooms; baseline: {baseline_max}");
    if let Some((_, plain)) = plain {
        let plain_max = plain.search.result();
        summary += &format!("; without TLS: {plain_max}");
        record = record
            .with("plain_us_per_send", plain.last["us_per_send"].clone())
            .with("plain_max_rooms", plain_max)
            .with("plain_runs", plain.runs)
            .with("plain_runs_disturbed", plain.disturbed)
            .measured("ratio_to_plain", f64::from(max) / f64::from(plain_max.max(1)));
    }
    if report.is_json() {
        return report.add(record);
    }
    report.wrong(!all_verified);
    report.text(&summary)
}

/// The reported values of the last run that counted: the third run at the maximum size, if there is
/// one.
const LAST: &[&str] = &[
    "hz",
    "hz_slowest",
    "interval_ms_p50",
    "interval_ms_p99",
    "server_core",
    "driver_core",
    "server_delayed",
    "driver_delayed",
    "us_per_send",
    "bytes_per_patch",
    "rss_mb",
];

/// One of the alternating searches.
struct Side {
    search: Search,
    /// The record of the last run that counted.
    last: Value,
    runs: u32,
    disturbed: u32,
    broken: u32,
}

impl Side {
    fn new(search: Search) -> Self {
        Self { search, last: Value::Null, runs: 0, disturbed: 0, broken: 0 }
    }

    fn is_under_way(&self) -> bool {
        self.search.next().is_some()
    }

    /// Records the result of a run, unless the machine was disturbed.
    fn ran(&mut self, record: Value, whole: bool, slow: bool) {
        self.runs += 1;
        let delayed = number(&record["server_delayed"]).max(number(&record["driver_delayed"]));
        if (slow || delayed > DELAYED_MAX) && self.disturbed < DISTURBED_MAX {
            self.disturbed += 1;
            return;
        }
        self.search.ran(whole && record["holds"] == true);
        self.last = record;
    }

    /// Records a run that ended without a record, since clients could not join or were lost. That
    /// size fails.
    fn broke(&mut self, rooms: u32, error: &io::Error) {
        eprintln!("{rooms} rooms failed: {error}");
        self.runs += 1;
        self.broken += 1;
        self.search.ran(false);
        self.last = json!({ "rooms": rooms });
    }
}

/// Measures the current speed of the machine.
struct Gauge {
    least: f64,
    most: f64,
    /// Whether the machine was slow at the last reading.
    was_slow: bool,
}

impl Gauge {
    fn begin() -> io::Result<Self> {
        let first = [Self::read()?, Self::read()?, Self::read()?];
        let least = first.into_iter().fold(f64::MAX, f64::min);
        let most = first.into_iter().fold(0.0, f64::max);
        Ok(Self { least, most, was_slow: first[2] > least * SLOWED_MAX })
    }

    /// Whether the machine is slow now, or was slow before the run that just ended.
    fn is_slow(&mut self) -> io::Result<bool> {
        let now = Self::read()?;
        self.least = self.least.min(now);
        self.most = self.most.max(now);
        let is_slow = now > self.least * SLOWED_MAX;
        Ok(std::mem::replace(&mut self.was_slow, is_slow) || is_slow)
    }

    /// The CPU time per send of the baseline, in microseconds.
    fn read() -> io::Result<f64> {
        let case = Options {
            rooms: 10,
            players: 30,
            hz: 100,
            seconds: 1,
            warm_up: Duration::from_millis(300),
            ..Options::new(false)
        };
        Ok(number(&run_baseline(&case, 600)?.0["us_per_send"]))
    }
}

/// The maximum number of rooms for whose clients a process has enough file descriptors.
fn rooms_max(players: u64) -> u32 {
    u32::try_from(descriptors_max().saturating_sub(DESCRIPTORS_SPARE) / players.max(1))
        .unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::io;

    use serde_json::json;

    use super::super::search::Search;
    use super::{DISTURBED_MAX, Side};

    fn run(holds: bool, delayed: f64) -> serde_json::Value {
        json!({ "verified": true, "holds": holds, "server_delayed": delayed, "driver_delayed": 0.0 })
    }

    #[test]
    fn a_disturbed_run_is_ignored_whatever_its_result() {
        let mut side = Side::new(Search::new(100, 1000));
        for (holds, delayed, slow) in
            [(true, 0.2, false), (false, 0.2, false), (true, 0.0, true), (false, 0.0, true)]
        {
            side.ran(run(holds, delayed), true, slow);
            assert_eq!(side.search.next(), Some(100));
        }
        assert_eq!((side.runs, side.disturbed), (4, 4));
        side.ran(run(true, 0.0), true, false);
        assert_eq!(side.search.next(), Some(120));
    }

    #[test]
    fn the_search_ends_even_on_a_busy_machine() {
        let mut side = Side::new(Search::new(100, 1000));
        while side.search.next().is_some() {
            side.ran(run(false, 1.0), true, true);
        }
        assert_eq!((side.search.result(), side.disturbed), (0, DISTURBED_MAX));
    }

    #[test]
    fn a_size_that_can_not_be_run_fails() {
        let mut side = Side::new(Search::new(100, 1000));
        side.broke(100, &io::Error::other("a client was lost"));
        assert_eq!((side.search.next(), side.broken), (Some(80), 1));
    }
}
