//! Faults, and the plan of those of a run.

use crate::random::Random;
use crate::sim::network::Way;

/// One microsecond is the unit of time here.
pub(super) const SECOND: u64 = 1_000_000;

/// A fault of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The time at which it begins, in microseconds.
    pub at: u64,
    /// Its length in microseconds.
    pub span: u64,
    /// The host, for faults of hosts.
    pub host: u8,
    /// The kind.
    pub kind: FaultKind,
}

impl Fault {
    /// The time from which on it does no more harm by itself.
    pub(super) fn ends(&self) -> u64 {
        match self.kind {
            // Its harm must be over before the process is back.
            FaultKind::Crash { .. } | FaultKind::ClockRate(_) => self.at,
            FaultKind::Slow { by, .. } => self.at + self.span + by,
            _ => self.at + self.span,
        }
    }
}

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The process is killed, and starts again after the span: with the lock of the one before, on
    /// its machine, or on another machine.
    Crash {
        /// The new process holds the lock of the one before.
        with_lock: bool,
    },
    /// The process leaves the cluster and ends, and starts again after some seconds.
    Leave,
    /// The process stands still.
    Stop,
    /// The process and its clock stand still.
    PauseMachine,
    /// The clock stands still, and the process does not.
    StopClock,
    /// The clock goes at another rate, in parts of 1,024, for good.
    ClockRate(u64),
    /// Messages are held or lost on one way, or on both ways of a connection.
    Cut {
        /// The way.
        way: Way,
        /// The other way of the connection, too.
        both: bool,
    },
    /// Messages take up to this many microseconds longer.
    Slow {
        /// The way.
        way: Way,
        /// The longest delay that is added.
        by: u64,
    },
    /// The store can't be reached by any host.
    StoreAway,
    /// The engine does not answer: an election after its leader was killed, or a restart.
    EngineAway,
    /// The engine restarts without its last writes.
    EngineLoses {
        /// The number of writes.
        writes: u8,
    },
    /// The engine restarts without any record.
    EngineWiped,
}

/// The faults of a seed, in order.
pub(super) fn plan(seed: u64, count: usize, hosts: u64) -> Vec<Fault> {
    let mut random = Random::new(seed ^ 0x000f_a017);
    let is_far_off = random.one_in(8);
    let mut at = 4 * SECOND;
    let plan = (0..count).map(|_| {
        at += random.between(SECOND / 10, 9 * SECOND);
        let host = random.below(hosts) as u8;
        let (kind, span) = fault(&mut random, is_far_off);
        Fault { at, span, host, kind }
    });
    plan.collect()
}

/// The rate of a clock in parts of 1,024: within the bounds that the lease allows for, or from 0.8
/// to 1.25.
pub(super) fn clock_rate(random: &mut Random, is_far_off: bool) -> u64 {
    let (low, high) = if is_far_off { (819, 1280) } else { (900, 1150) };
    random.between(low, high)
}

fn fault(random: &mut Random, is_far_off: bool) -> (FaultKind, u64) {
    let span = span(random);
    let kind = match random.below(40) {
        0..5 => FaultKind::Crash { with_lock: random.one_in(2) },
        5..11 => FaultKind::Stop,
        11 => FaultKind::Leave,
        12 => FaultKind::PauseMachine,
        13 => FaultKind::StopClock,
        14 => FaultKind::ClockRate(clock_rate(random, is_far_off)),
        15..26 => FaultKind::Cut { way: Way::random(random), both: random.one_in(2) },
        26..32 => {
            let by = random.between(SECOND / 2, 8 * SECOND);
            FaultKind::Slow { way: Way::random(random), by }
        }
        32..34 => FaultKind::StoreAway,
        34..37 => {
            let election = random.between(4 * SECOND, 9 * SECOND);
            return (FaultKind::EngineAway, if random.one_in(3) { span } else { election });
        }
        37..39 => {
            let writes = 1 + random.below(12) as u8;
            return (FaultKind::EngineLoses { writes }, random.between(SECOND, 6 * SECOND));
        }
        _ if random.one_in(2) => {
            return (FaultKind::EngineWiped, random.between(SECOND, 6 * SECOND));
        }
        _ => FaultKind::Stop,
    };
    (kind, span)
}

fn span(random: &mut Random) -> u64 {
    match random.below(8) {
        0..3 => random.between(SECOND / 10, 3 * SECOND),
        3..5 => random.between(3 * SECOND, 16 * SECOND),
        5..7 => random.between(14 * SECOND, 30 * SECOND),
        _ => random.between(20 * SECOND, 60 * SECOND),
    }
}
