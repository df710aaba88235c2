//! Finds the maximum number of rooms: for ours, for ours without TLS if it is with TLS, for a
//! Colyseus server if there is one, and for the baseline. Their runs alternate, so that all meet
//! the same conditions.
//!
//! A size that loses clients, or whose patches come late, does not hold. A run that fails is
//! repeated once if the machine may be the reason: processes had to wait for their cores, clients
//! were lost, or the *gauge*, a small baseline case that runs in between, was slower than its best.
//! Wrong contents, and a node that ends, are faults at any size: then there is no result.

use std::io;
use std::time::Duration;

use playfield_measure::{Search, Steps, Verdict};
use serde_json::Value;

use super::Options;
use super::run::{
    COLUMNS, copied, is_whole, number, run_baseline, run_colyseus, run_ours, sent_bytes,
};
use crate::harness::machine::descriptors_max;
use crate::harness::report::Report;

/// The share of time that a process may wait for its core before a failure counts as the machine's.
const DELAYED_MAX: f64 = 0.02;

/// The factor by which the machine may be slower than its best.
const SLOWED_MAX: f64 = 1.15;

/// Sizes are multiples of the fine step from the first, and pass three runs.
const STEPS: Steps = Steps { coarse: 20, fine: 10, runs: 3 };

/// The number of rooms at which the search for Colyseus begins.
const COLYSEUS_FIRST: u32 = 20;

/// File descriptors that a process needs besides those of its clients.
const DESCRIPTORS_SPARE: u64 = 64;

/// Runs the search and reports the result.
pub(super) fn find_max(options: &Options, report: &mut Report<'_>) -> io::Result<()> {
    report.begin(COLUMNS)?;
    let plain = options.plain();
    let most = rooms_max(options.players);
    let mut sides = Sides::new(options.rooms, most, plain.is_some());
    if !options.colyseus.as_os_str().is_empty() {
        sides.colyseus = Some(Side::new(Search::new(COLYSEUS_FIRST, most, STEPS)));
    }
    let mut machine = Loopback { options, plain, gauge: Gauge::begin()?, report };
    let fault = sides.search(&mut machine)?;
    let gauge = machine.gauge;
    let Sides { ours, plain, colyseus, baseline, compared, .. } = &sides;
    let (max, baseline_max) = (ours.search.result(), baseline.search.result());
    let verified = fault.is_none() && max > 0 && baseline_max > 0;
    let ratio = |to: u32| f64::from(max) / f64::from(to.max(1));
    let mut record = copied(options.record(), &ours.last, LAST)
        .with("compared", *compared)
        .with("verified", verified)
        .with("max_rooms", max)
        .with("limit", ours.search.limit())
        .with("runs", ours.runs)
        .with("runs_disturbed", ours.search.repeated())
        .with("runs_broken", ours.broken)
        .with("baseline_us_per_send", baseline.last["us_per_send"].clone())
        .with("baseline_server_core", baseline.last["server_core"].clone())
        .with("baseline_max_rooms", baseline_max)
        .with("baseline_limit", baseline.search.limit())
        .with("baseline_runs", baseline.runs)
        .with("baseline_runs_disturbed", baseline.search.repeated())
        .measured("gauge_us_per_send_least", gauge.least)
        .measured("gauge_us_per_send_most", gauge.most)
        .measured("ratio", ratio(baseline_max));
    let limit = |side: &Side| side.search.limit().unwrap_or_else(|| "nothing larger failed".into());
    let mut summary = format!(
        "maximum: {max} rooms ({}); baseline: {baseline_max} ({})",
        limit(ours),
        limit(baseline)
    );
    if let Some(plain) = plain {
        let plain_max = plain.search.result();
        summary += &format!("; without TLS: {plain_max} ({})", limit(plain));
        record = record
            .with("plain_us_per_send", plain.last["us_per_send"].clone())
            .with("plain_max_rooms", plain_max)
            .with("plain_limit", plain.search.limit())
            .with("plain_runs", plain.runs)
            .with("plain_runs_disturbed", plain.search.repeated())
            .measured("ratio_to_plain", ratio(plain_max));
    }
    if let Some(colyseus) = colyseus {
        let most = colyseus.search.result();
        summary += &format!("; Colyseus: {most} ({})", limit(colyseus));
        record = record
            .with("colyseus_max_rooms", most)
            .with("colyseus_limit", colyseus.search.limit())
            .with("colyseus_runs", colyseus.runs)
            .with("colyseus_runs_disturbed", colyseus.search.repeated())
            .measured("ratio_to_colyseus", ratio(most));
    }
    if let Some(fault) = fault {
        eprintln!("the search ended at a fault: {fault}");
        record = record.with("failure", fault);
    }
    if report.is_json() {
        return report.add(record);
    }
    report.wrong(!verified);
    report.keep(&record);
    report.text(&summary)
}

/// The reported values of the last run: the third at the maximum size, if there is one.
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

/// The servers whose maximum is searched for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    Ours,
    Plain,
    Colyseus,
    /// With patches of so many bytes.
    Baseline(usize),
}

/// Measures for the search.
trait Measure {
    /// Runs a size, and returns the run's record.
    fn run(&mut self, peer: Peer, rooms: u32) -> io::Result<Value>;

    /// Whether the machine is slow now, or was at the last call.
    fn is_slow(&mut self) -> io::Result<bool>;
}

/// The alternating searches.
struct Sides {
    ours: Side,
    plain: Option<Side>,
    colyseus: Option<Side>,
    baseline: Side,
    /// The size of a patch of ours, once one is known. The baseline has to wait for it.
    bytes: Option<usize>,
    compared: u64,
}

impl Sides {
    fn new(first: u32, most: u32, has_plain: bool) -> Self {
        let side = || Side::new(Search::new(first, most, STEPS));
        let plain = has_plain.then(side);
        let colyseus = None;
        Self { ours: side(), plain, colyseus, baseline: side(), bytes: None, compared: 0 }
    }

    /// Searches to the end, or to the first fault, which is returned.
    fn search(&mut self, measure: &mut impl Measure) -> io::Result<Option<String>> {
        loop {
            let mut turn = Vec::new();
            let plain = self.plain.as_ref().map(|_| Peer::Plain);
            let colyseus = self.colyseus.as_ref().map(|_| Peer::Colyseus);
            for peer in [Some(Peer::Ours), plain, colyseus].into_iter().flatten() {
                let Some(rooms) = self.of(peer).and_then(|side| side.search.next()) else {
                    continue;
                };
                let run = measure.run(peer, rooms)?;
                self.compared += run["compared"].as_u64().unwrap_or(0);
                if is_whole(&run) && peer != Peer::Colyseus {
                    self.bytes.get_or_insert(sent_bytes(&run));
                }
                turn.push((peer, run));
            }
            if let (Some(bytes), Some(rooms)) = (self.bytes, self.baseline.search.next()) {
                let peer = Peer::Baseline(bytes);
                turn.push((peer, measure.run(peer, rooms)?));
            }
            if turn.is_empty() {
                return Ok(None);
            }
            let was_slow = measure.is_slow()?;
            for (peer, run) in turn {
                let Some(side) = self.of(peer) else { continue };
                if let Err(fault) = side.ran(run, was_slow) {
                    return Ok(Some(fault));
                }
            }
        }
    }

    fn of(&mut self, peer: Peer) -> Option<&mut Side> {
        match peer {
            Peer::Ours => Some(&mut self.ours),
            Peer::Plain => self.plain.as_mut(),
            Peer::Colyseus => self.colyseus.as_mut(),
            Peer::Baseline(_) => Some(&mut self.baseline),
        }
    }
}

/// One of the searches.
struct Side {
    search: Search,
    /// The record of the last run.
    last: Value,
    runs: u32,
    /// The number of runs that lost clients.
    broken: u32,
}

impl Side {
    fn new(search: Search) -> Self {
        Self { search, last: Value::Null, runs: 0, broken: 0 }
    }

    /// Takes the result of a run, or returns its fault.
    fn ran(&mut self, run: Value, was_slow: bool) -> Result<(), String> {
        let is_broken = run["overloaded"] == true;
        let why = match (run["failure"].as_str(), run["shortcoming"].as_str()) {
            (Some(fault), _) if !is_broken => return Err(fault.to_owned()),
            (_, Some(why)) | (Some(why), None) => Some(why.to_owned()),
            (None, None) => None,
        };
        let delayed = number(&run["server_delayed"]).max(number(&run["driver_delayed"]));
        self.runs += 1;
        self.broken += u32::from(is_broken);
        self.search.ran(match why {
            None => Verdict::Holds,
            Some(why) => {
                let by_machine = is_broken || was_slow || delayed > DELAYED_MAX;
                Verdict::Fails { why, by_machine }
            }
        });
        self.last = run;
        Ok(())
    }
}

/// This machine, with a process for all clients and one for the server.
struct Loopback<'a, 'b> {
    options: &'a Options,
    plain: Option<Options>,
    gauge: Gauge,
    report: &'a mut Report<'b>,
}

impl Measure for Loopback<'_, '_> {
    fn run(&mut self, peer: Peer, rooms: u32) -> io::Result<Value> {
        let options = match (peer, &self.plain) {
            (Peer::Plain, Some(plain)) => plain,
            _ => self.options,
        };
        let case = Options { rooms, ..options.clone() };
        let run = match peer {
            Peer::Ours | Peer::Plain => run_ours(&case)?,
            Peer::Colyseus => run_colyseus(&case)?,
            Peer::Baseline(bytes) => run_baseline(&case, bytes)?,
        };
        if self.report.is_json() {
            self.report.show(&run);
            eprintln!("{run}");
        } else {
            self.report.add_value(&run)?;
        }
        Ok(run)
    }

    fn is_slow(&mut self) -> io::Result<bool> {
        self.gauge.is_slow()
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
        let first = [Self::read()?, Self::read()?];
        let least = first.into_iter().fold(f64::MAX, f64::min);
        let most = first.into_iter().fold(0.0, f64::max);
        Ok(Self { least, most, was_slow: first[1] > least * SLOWED_MAX })
    }

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
            warm_up: Duration::from_millis(100),
            ..Options::new(false)
        };
        Ok(number(&run_baseline(&case, 600)?["us_per_send"]))
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

    use serde_json::{Value, json};

    use super::{Measure, Peer, STEPS, Search, Side, Sides};

    /// A machine on which so many rooms of a peer hold.
    struct Machine<R> {
        run: R,
        runs: Vec<(Peer, u32)>,
        is_slow: bool,
    }

    impl<R: FnMut(Peer, u32, usize) -> Value> Machine<R> {
        /// The result of each run depends on the peer, the size and how many runs were before.
        fn new(run: R) -> Self {
            Self { run, runs: Vec::new(), is_slow: false }
        }
    }

    impl<R: FnMut(Peer, u32, usize) -> Value> Measure for Machine<R> {
        fn run(&mut self, peer: Peer, rooms: u32) -> io::Result<Value> {
            let before = self.runs.len();
            assert!(before < 200, "the search does not end");
            self.runs.push((peer, rooms));
            Ok((self.run)(peer, rooms, before))
        }

        fn is_slow(&mut self) -> io::Result<bool> {
            Ok(self.is_slow)
        }
    }

    fn run(holds: bool) -> Value {
        let shortcoming = if holds { Value::Null } else { "intervals of 80 ms, p99".into() };
        json!({
            "holds": holds, "shortcoming": shortcoming, "failure": null, "overloaded": false,
            "server_delayed": 0.0, "driver_delayed": 0.0, "bytes_per_patch": 519.4, "compared": 7,
        })
    }

    fn holds_to(ours: u32, baseline: u32) -> impl Fn(Peer, u32) -> Value {
        move |peer, rooms| match peer {
            Peer::Ours | Peer::Plain => run(rooms <= ours),
            Peer::Colyseus => run(rooms <= 40),
            Peer::Baseline(_) => run(rooms <= baseline),
        }
    }

    /// A run that lost clients, as the machine stood still or is too small.
    fn broken() -> Value {
        json!({ "holds": false, "failure": "client 7: timeout", "overloaded": true })
    }

    fn results(sides: &Sides) -> (u32, u32) {
        (sides.ours.search.result(), sides.baseline.search.result())
    }

    #[test]
    fn both_are_searched_in_turn_and_the_baseline_sends_patches_of_the_same_length() {
        let mut machine = Machine::new(|peer, rooms, _| holds_to(120, 140)(peer, rooms));
        let mut sides = Sides::new(100, 1_000, false);
        assert_eq!(sides.search(&mut machine).unwrap(), None);
        assert_eq!(results(&sides), (120, 140));
        assert_eq!(machine.runs[0], (Peer::Ours, 100));
        assert_eq!(machine.runs[1], (Peer::Baseline(523), 100));
        assert_eq!(sides.compared, 7 * u64::from(sides.ours.runs));
        let limit = sides.ours.search.limit().unwrap();
        assert_eq!(limit, "130 rooms: intervals of 80 ms, p99");
    }

    #[test]
    fn with_tls_the_same_without_is_searched_too() {
        let mut machine = Machine::new(|peer, rooms, _| match peer {
            Peer::Plain => run(rooms <= 110),
            other => holds_to(80, 140)(other, rooms),
        });
        let mut sides = Sides::new(100, 1_000, true);
        assert_eq!(sides.search(&mut machine).unwrap(), None);
        let plain = sides.plain.as_ref().map(|side| side.search.result());
        assert_eq!((results(&sides), plain), ((80, 140), Some(110)));
    }

    #[test]
    fn a_colyseus_server_is_searched_from_its_own_size_on() {
        let mut machine = Machine::new(|peer, rooms, _| holds_to(120, 140)(peer, rooms));
        let mut sides = Sides::new(100, 1_000, false);
        sides.colyseus = Some(Side::new(Search::new(20, 1_000, STEPS)));
        assert_eq!(sides.search(&mut machine).unwrap(), None);
        let colyseus = sides.colyseus.as_ref().map(|side| side.search.result());
        assert_eq!((results(&sides), colyseus), ((120, 140), Some(40)));
    }

    #[test]
    fn a_size_that_loses_clients_does_not_hold_and_the_search_goes_on() {
        let mut machine = Machine::new(|peer, rooms, _| match (peer, rooms) {
            (Peer::Ours, 120..) => broken(),
            _ => holds_to(1_000, 100)(peer, rooms),
        });
        let mut sides = Sides::new(100, 1_000, false);
        assert_eq!(sides.search(&mut machine).unwrap(), None);
        assert_eq!(results(&sides), (110, 100));
        assert_eq!(sides.ours.search.limit().as_deref(), Some("120 rooms: client 7: timeout"));
        // 120 was run again before it counted.
        assert_eq!((sides.ours.broken, sides.ours.search.repeated()), (2, 1));
    }

    #[test]
    fn a_single_stall_of_the_machine_changes_nothing() {
        for stalled in 0..8 {
            let mut machine = Machine::new(|peer, rooms, before| {
                if before == stalled { broken() } else { holds_to(120, 110)(peer, rooms) }
            });
            let mut sides = Sides::new(100, 1_000, false);
            assert_eq!(sides.search(&mut machine).unwrap(), None);
            assert_eq!(results(&sides), (120, 110), "run {stalled}");
        }
    }

    #[test]
    fn a_failed_run_is_repeated_if_the_machine_was_slow_or_held_it_up() {
        let of_size = |machine: &[(Peer, u32)], size| {
            machine.iter().filter(|run| **run == (Peer::Ours, size)).count()
        };
        for (is_slow, delayed, runs) in [(false, 0.0, 1), (true, 0.0, 2), (false, 0.03, 2)] {
            let mut machine = Machine::new(|peer, rooms, _| {
                let mut run = holds_to(100, 100)(peer, rooms);
                run["driver_delayed"] = delayed.into();
                run
            });
            machine.is_slow = is_slow;
            let mut sides = Sides::new(100, 1_000, false);
            assert_eq!(sides.search(&mut machine).unwrap(), None);
            assert_eq!(results(&sides), (100, 100));
            assert_eq!(of_size(&machine.runs, 120), runs, "{is_slow}, {delayed}");
            assert_eq!(of_size(&machine.runs, 100), 3, "what passes is not repeated");
        }
    }

    #[test]
    fn a_fault_ends_the_search() {
        let mut machine = Machine::new(|peer, rooms, before| {
            let mut run = holds_to(120, 110)(peer, rooms);
            if before == 4 {
                run["failure"] = "player 3's hand differs".into();
            }
            run
        });
        let mut sides = Sides::new(100, 1_000, false);
        let fault = sides.search(&mut machine).unwrap();
        assert_eq!(fault.as_deref(), Some("player 3's hand differs"));
        assert_eq!(machine.runs.len(), 6, "the turn is finished");
    }

    #[test]
    fn it_ends_without_a_result_where_nothing_holds() {
        let mut machine = Machine::new(|_, _, _| broken());
        let mut sides = Sides::new(100, 1_000, false);
        assert_eq!(sides.search(&mut machine).unwrap(), None);
        assert_eq!(results(&sides), (0, 0));
        assert_eq!(sides.baseline.runs, 0, "no patch whose length it could send");
    }
}
