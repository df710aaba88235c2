//! The proof: the most rooms that a core of this machine really carries.

use std::io;

use serde_json::{Value, json};

use crate::capacity::{Capacity, Cell, Plan};
use crate::measurer::Measurer;
use crate::run::{Run, attempt};
use crate::samples::Samples;
use crate::search::{Search, Steps, Verdict};
use crate::target::Target;

/// The number of searches for the maximum; the median counts.
const SEARCHES: usize = 3;
/// The steps of a search, as parts of the prediction.
const COARSE: f64 = 0.1;
const FINE: f64 = 0.02;
/// The most connections of this process.
const PLAYERS_MAX: usize = 18_000;
/// The share of syncs that a room may miss.
const MISSED_MAX: f64 = 0.01;
/// A node that takes less of its core when rooms are late is not what limits them.
const CORE_MIN: f64 = 0.8;
/// The longest time to the answer of a ping, in milliseconds; a period of the rooms, if longer.
const PING_MS_MAX: f64 = 50.0;

/// A run of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Tried {
    /// The number of the search, from 1.
    pub search: usize,
    /// The rooms of the run.
    pub rooms: u32,
    /// The time between two patches of a room, in milliseconds: half of all, and 99 % of them.
    pub interval_ms: [f64; 2],
    /// The share of its core that the node took.
    pub node_core: f64,
    /// Says whether the rooms' patches came in time.
    pub holds: bool,
}

/// The prediction, and what was found.
#[derive(Clone, Debug)]
pub struct Proof {
    /// The rooms that were predicted, before any run of several.
    pub predicted: u32,
    /// The prediction when the room was measured again, after the searches: how much the speed of
    /// the machine has changed meanwhile.
    pub predicted_again: u32,
    /// The most rooms whose patches came in time: the median of the searches.
    pub measured: u32,
    /// The searches' results.
    pub searches: Vec<u32>,
    /// Why no more than that fit, by the searches.
    pub limits: Vec<String>,
    /// All runs of the searches, in order.
    pub tried: Vec<Tried>,
    /// The last run at the maximum.
    pub run: Option<Run>,
    /// The process that reached its limit is not the node: the maximum of the node is larger.
    pub is_driver_bound: bool,
}

impl Proof {
    /// Returns the excess of the prediction, as a part of what was measured.
    #[must_use]
    pub fn relative_error(&self) -> f64 {
        f64::from(self.predicted) / f64::from(self.measured.max(1)) - 1.0
    }

    /// All of it, for programs.
    #[must_use]
    pub fn to_json(&self, capacity: &Capacity) -> Value {
        let run = self.run.as_ref();
        json!({
            "predicted_rooms": self.predicted,
            "predicted_rooms_again": self.predicted_again,
            "measured_rooms": self.measured,
            "relative_error": self.relative_error(),
            "bound_by": if self.is_driver_bound { "players" } else { "cpu" },
            "searches": self.searches,
            "limits": self.limits,
            "runs": self.tried.iter().map(Tried::to_json).collect::<Vec<_>>(),
            "interval_ms_p50": run.map(|run| run.interval_ms[0]),
            "interval_ms_p99": run.map(|run| run.interval_ms[1]),
            "lateness_ms_p99": run.map(|run| run.lateness_ms),
            "ping_ms_p99": run.map(|run| run.ping_ms),
            "predicted_core": capacity.cell.core,
            "measured_core": run.map(Run::core_per_room),
            "predicted_bytes_out_per_player_s": capacity.cell.bytes_out,
            "measured_bytes_out_per_player_s": run.map(|run| run.per_player(run.bytes_out)),
            "predicted_room_bytes": capacity.need(&capacity.cell).memory,
            "measured_room_bytes": run.map(|run| {
                run.resident.saturating_sub(run.resident_before) as f64 / run.rooms as f64
            }),
        })
    }
}

impl Tried {
    fn to_json(&self) -> Value {
        json!({
            "search": self.search, "rooms": self.rooms, "node_core": self.node_core,
            "interval_ms_p50": self.interval_ms[0], "interval_ms_p99": self.interval_ms[1],
            "holds": self.holds,
        })
    }
}

/// The prediction for a core of this machine that is used to the full.
#[must_use]
pub fn predicted(capacity: &Capacity) -> u32 {
    predicted_for(capacity, &capacity.cell)
}

fn predicted_for(capacity: &Capacity, cell: &Cell) -> u32 {
    Target::FULL_CORE.answer(&capacity.need(cell)).rooms as u32
}

/// Finds the most rooms that a core of this machine carries. `progress` is told of each run.
///
/// A number of rooms holds if 99 of 100 patches come before the next one is due, 99 of 100 pings
/// are answered within that time or 50 ms, no player is lost, and rooms miss no more than one sync
/// of a hundred. It does not hold if that fails twice.
///
/// # Errors
/// If rooms can't be run.
pub fn prove(capacity: &Capacity, progress: &mut dyn FnMut(&str)) -> io::Result<Proof> {
    let (plan, predicted) = (&capacity.plan, predicted(capacity));
    let most = (PLAYERS_MAX / plan.players.max(1)) as u32;
    if f64::from(predicted) * (1.0 + COARSE) > f64::from(most) {
        return Err(io::Error::other(format!(
            "{predicted} rooms of {} players are predicted, and this process can connect no more \
             than {PLAYERS_MAX} players: prove it with more messages or a higher rate",
            plan.players
        )));
    }
    let part = |part: f64| ((f64::from(predicted) * part).round() as u32).max(1);
    let steps = Steps { coarse: part(COARSE), fine: part(FINE), runs: 1 };
    let (mut searches, mut limits, mut tried) = (Vec::new(), Vec::new(), Vec::new());
    let (mut best, mut fails, mut idle_fails) = (None, 0, 0);
    for number in 0..SEARCHES {
        let mut search = Search::new(predicted, most, steps);
        while let Some(rooms) = search.next() {
            progress(&format!("search {} of {SEARCHES}: {rooms} rooms", number + 1));
            let run = attempt(&plan.case(rooms as usize, number as u64 + 1))?;
            progress(&outcome(&run));
            let verdict = verdict(plan, &run);
            tried.push(Tried {
                search: number + 1,
                rooms,
                interval_ms: run.interval_ms,
                node_core: run.node_core,
                holds: verdict == Verdict::Holds,
            });
            if verdict == Verdict::Holds {
                best = Some(run);
            } else {
                fails += 1;
                idle_fails += usize::from(run.node_core < CORE_MIN);
            }
            search.ran(verdict);
        }
        searches.push(search.result());
        limits.extend(search.limit());
    }
    let measured = Samples::new(searches.iter().copied().map(f64::from).collect());
    let measured = measured.percentile(50.0) as u32;
    let is_driver_bound = idle_fails * 2 > fails;
    progress("the room again");
    let (plan, traits) = plan.settled()?;
    let again = Measurer::new(&plan, traits).rounds()?;
    let predicted_again = predicted_for(capacity, again.counted());
    Ok(Proof {
        predicted,
        predicted_again,
        measured,
        searches,
        limits,
        tried,
        run: best,
        is_driver_bound,
    })
}

/// Tells what a run has shown.
fn outcome(run: &Run) -> String {
    format!(
        "  {:.0} ms late, pings {:.0} ms, p99; the node took {:.0} % of its core and \
         waited {:.1} %, the players {:.0} % and {:.1} %",
        run.lateness_ms,
        run.ping_ms,
        run.node_core * 100.0,
        run.node_delayed * 100.0,
        run.driver_core * 100.0,
        run.driver_delayed * 100.0
    )
}

/// Says whether a run holds.
fn verdict(plan: &Plan, run: &Run) -> Verdict {
    let hz = plan.hz.filter(|_| run.sync_hz > 0).unwrap_or(run.sync_hz);
    // Rooms without a rate are never late.
    let late_ms = if hz == 0 { f64::INFINITY } else { 1e3 / f64::from(hz) };
    let ping_ms = if hz == 0 { PING_MS_MAX } else { late_ms.max(PING_MS_MAX) };
    let missed = run.syncs_missed as f64 / (run.syncs + run.syncs_missed).max(1) as f64;
    let why = if let Some(trouble) = run.trouble.as_ref().or(run.unmade.as_ref()) {
        trouble.clone()
    } else if run.ping_ms.is_nan() {
        "no ping was answered while it was measured".to_owned()
    } else if hz > 0 && run.patches > 0 && run.lateness_ms.is_nan() {
        "no patch came while it was measured".to_owned()
    } else if run.lateness_ms > late_ms {
        format!("patches were {:.0} ms late, p99, more than {late_ms:.0}", run.lateness_ms)
    } else if run.ping_ms > ping_ms {
        format!("pings took {:.0} ms, p99, more than {ping_ms:.0}", run.ping_ms)
    } else if missed > MISSED_MAX {
        format!("rooms missed {:.1} % of their syncs", missed * 100.0)
    } else {
        return Verdict::Holds;
    };
    // Whatever else a machine does can make a run fail, and never makes one hold.
    Verdict::Fails { why, by_machine: true }
}

#[cfg(test)]
mod tests {
    use super::verdict;
    use crate::compare::tests::capacity;
    use crate::run::Run;
    use crate::search::Verdict;

    #[test]
    fn a_run_in_which_nothing_was_measured_does_not_hold() {
        let plan = &capacity(0.01, 800.0).plan;
        let run = Run { sync_hz: 20, syncs: 100, patches: 100, ..Run::default() };
        assert_eq!(verdict(plan, &run), Verdict::Holds);
        for run in [
            Run { ping_ms: f64::NAN, ..run.clone() },
            Run { lateness_ms: f64::NAN, ..run.clone() },
            Run { trouble: Some("2 players were lost".into()), ..run },
        ] {
            assert!(matches!(verdict(plan, &run), Verdict::Fails { .. }), "{run:?}");
        }
    }
}
