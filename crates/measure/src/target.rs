//! The machine that a capacity is asked for, and what it carries.

use std::fmt;
use std::ops::RangeInclusive;

/// A machine, and how full it may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// Cores for rooms: a shard each.
    pub cores: f64,
    /// The speed of a core compared with one of this machine.
    pub clock: f64,
    /// Memory for rooms and connections, in bytes; infinite without a limit.
    pub memory: f64,
    /// Bandwidth to players, in bits a second; infinite without a limit.
    pub bandwidth: f64,
    /// The part of a core that may be used.
    pub utilization: f64,
    /// The part of what fits that is counted on.
    pub safety: f64,
    /// The price of the machine for an hour, in any currency.
    pub price: Option<f64>,
}

impl Default for Target {
    fn default() -> Self {
        Self { utilization: 0.8, safety: 0.7, ..Self::FULL_CORE }
    }
}

/// A value of a target that makes no sense.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetError {
    /// The name of the value.
    pub name: &'static str,
    /// The value, in the unit of the option with this name.
    pub value: f64,
    /// The values that it may have.
    pub must: &'static str,
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, value, must } = self;
        // Otherwise it would be a line of zeros.
        match *value == 0.0 || (1e-4..1e12).contains(&value.abs()) {
            true => write!(f, "--{name} {value} must be {must}"),
            false => write!(f, "--{name} {value:e} must be {must}"),
        }
    }
}

impl std::error::Error for TargetError {}

/// The resource that limits the number of rooms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// CPU time.
    Cpu,
    /// Bandwidth.
    Bandwidth,
    /// Memory.
    Memory,
}

impl Bound {
    /// Its name in tables and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Bandwidth => "bandwidth",
            Self::Memory => "memory",
        }
    }
}

/// The resources that a room takes of a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need {
    /// The share of a core of this machine.
    pub core: f64,
    /// Bytes a second to all its players, with those of TCP and IP.
    pub bytes_per_s: f64,
    /// Memory, with that of its connections, in bytes.
    pub memory: f64,
    /// Players.
    pub players: usize,
}

/// The number of rooms that a machine carries.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Rooms by CPU time, by bandwidth and by memory; infinite without a limit.
    pub by: [(Bound, f64); 3],
    /// Rooms.
    pub rooms: u64,
    /// Players in them.
    pub players: u64,
    /// The resource that limits them.
    pub bound: Bound,
    /// The share of the cores that the rooms take.
    pub core_share: f64,
    /// The price of a thousand hours of players, if the machine has one.
    pub per_thousand_hours: Option<f64>,
}

impl Target {
    /// One core of this machine, used to the full, and nothing else that limits.
    pub const FULL_CORE: Self = Self {
        cores: 1.0,
        clock: 1.0,
        memory: f64::INFINITY,
        bandwidth: f64::INFINITY,
        utilization: 1.0,
        safety: 1.0,
        price: None,
    };

    /// Checks the values.
    ///
    /// # Errors
    /// The first that makes no sense.
    pub fn check(&self) -> Result<(), TargetError> {
        let positive = "a number above 0";
        let part = "above 0, and 1 at most";
        let some_cores = "a number above 0, and 1000000 at most";
        let has_cores = self.cores > 0.0 && self.cores <= CORES_MAX;
        let checks = [
            ("cores", self.cores, has_cores, some_cores),
            ("clock", self.clock, CLOCKS.contains(&self.clock), "from 0.01 to 100"),
            ("memory", self.memory / 1e6, self.memory > 0.0, positive),
            ("bandwidth", self.bandwidth / 1e6, self.bandwidth > 0.0, positive),
            ("utilization", self.utilization, is_part(self.utilization), part),
            ("safety", self.safety, is_part(self.safety), part),
        ];
        for (name, value, holds, must) in checks {
            if !holds {
                return Err(TargetError { name, value, must });
            }
        }
        match self.price {
            Some(value) if !(value >= 0.0 && value.is_finite()) => {
                Err(TargetError { name: "price", value, must: "0 or more" })
            }
            _ => Ok(()),
        }
    }

    /// Says how many rooms fit that need this much each.
    ///
    /// Each core holds `clock · utilization · safety / core` rooms, in whole numbers: a room runs
    /// on one core. Bandwidth and memory are those of the machine. CPU time is that of all work for
    /// a room, in the program and in the system. The utilization is 0.84 at most: more of a core is
    /// late.
    #[must_use]
    pub fn answer(&self, need: &Need) -> Answer {
        let by = [
            (Bound::Cpu, self.by_cpu(need)),
            (Bound::Bandwidth, self.bandwidth / 8.0 * self.safety / need.bytes_per_s),
            (Bound::Memory, self.memory * self.safety / need.memory),
        ];
        let (bound, most) =
            by.into_iter().fold(by[0], |least, by| if by.1 < least.1 { by } else { least });
        let rooms = if most.is_finite() { most.floor() } else { 0.0 };
        let players = rooms * need.players as f64;
        let per_thousand_hours =
            self.price.filter(|_| players > 0.0).map(|price| price / players * 1000.0);
        Answer {
            by,
            rooms: rooms as u64,
            players: players as u64,
            bound,
            core_share: rooms * need.core / (self.cores * self.clock),
            per_thousand_hours,
        }
    }

    /// Rooms by CPU time: what all whole cores hold, and what is left of one.
    fn by_cpu(&self, need: &Need) -> f64 {
        let a_core = self.utilization.min(IN_TIME) * self.safety / self.core(need);
        // A room that has a core to itself waits for no other.
        let alone = if self.core(need) <= self.alone() { 1.0 } else { 0.0 };
        let whole = self.cores.floor();
        whole * a_core.floor().max(alone) + ((self.cores - whole) * a_core).floor()
    }

    /// The share of a core of this machine that a room takes.
    fn core(&self, need: &Need) -> f64 {
        need.core / self.clock
    }

    /// The share of a core that a room may take which has the core to itself.
    fn alone(&self) -> f64 {
        self.utilization * self.safety
    }

    /// Says why no number of cores is enough, if a room needs more of a core than may be used.
    #[must_use]
    pub fn too_small(&self, need: &Need) -> Option<String> {
        let (core, most) = (self.core(need), self.alone());
        (core > most).then(|| {
            format!(
                "a room takes {:.0} % of a core there, more than the {:.0} % that it may take, and \
                 it runs on one core: lower its rate or its players, or take faster cores",
                core * 100.0,
                most * 100.0
            )
        })
    }
}

/// The most of a core that may be used if 99 of 100 patches are to come before the next is due;
/// the rest is for bursts. Measured with rooms that take 0.1 % to 14 % of a core.
const IN_TIME: f64 = 0.84;

/// The most cores: more is a mistake.
const CORES_MAX: f64 = 1e6;
/// The range of a core's speed, compared with one of this machine: anything else is a mistake.
const CLOCKS: RangeInclusive<f64> = 0.01..=100.0;

fn is_part(value: f64) -> bool {
    value > 0.0 && value <= 1.0
}

#[cfg(test)]
mod tests {
    use super::{Bound, Need, Target};

    const NEED: Need = Need { core: 0.01, bytes_per_s: 125_000.0, memory: 1e6, players: 30 };

    #[test]
    fn the_scarcest_resource_binds() {
        let target = Target { cores: 4.0, utilization: 0.8, safety: 0.5, ..Target::default() };
        let answer = target.answer(&NEED);
        assert_eq!((answer.rooms, answer.players, answer.bound), (160, 4800, Bound::Cpu));
        assert!((answer.core_share - 0.4).abs() < 1e-9);
        let answer = Target { bandwidth: 100e6, ..target }.answer(&NEED);
        assert_eq!((answer.rooms, answer.bound), (50, Bound::Bandwidth));
        let answer = Target { bandwidth: 100e6, memory: 60e6, ..target }.answer(&NEED);
        assert_eq!((answer.rooms, answer.bound), (30, Bound::Memory));
    }

    #[test]
    fn a_full_core_is_in_time() {
        let rooms = |core: f64, clock: f64| {
            Target { clock, ..Target::FULL_CORE }.answer(&Need { core, ..NEED }).rooms
        };
        assert_eq!([rooms(0.001, 1.0), rooms(0.01, 1.0), rooms(0.065, 1.0)], [840, 84, 12]);
        assert_eq!(rooms(0.13, 2.0), 12, "a sync takes half as long on a core twice as fast");
        assert_eq!([rooms(0.5, 1.0), rooms(0.9, 1.0), rooms(1.1, 1.0)], [1, 1, 0]);
        let eight = Target { cores: 8.0, ..Target::FULL_CORE }.answer(&Need { core: 0.9, ..NEED });
        assert_eq!((eight.rooms, eight.bound), (8, Bound::Cpu));
    }

    #[test]
    fn a_room_runs_on_one_core() {
        let rooms = |cores: f64, core: f64| {
            let answer = Target { cores, ..Target::FULL_CORE }.answer(&Need { core, ..NEED });
            (answer.rooms, answer.by[0].1)
        };
        assert_eq!(rooms(8.0, 1.1), (0, 0.0), "none fits");
        assert_eq!(rooms(8.0, 0.6), (8, 8.0), "the rest of a core holds none");
        assert_eq!(rooms(8.0, 0.4), (16, 16.0));
        assert_eq!(rooms(2.5, 0.1), (20, 20.0), "half a core holds four");
        assert_eq!(rooms(0.5, 0.6), (0, 0.0));
        let why = |core| Target::default().too_small(&Need { core, ..NEED });
        assert_eq!(why(0.5), None);
        let why = why(0.7).expect("it needs more than 0.56 of a core");
        assert!(why.starts_with("a room takes 70 % of a core there, more than the 56 %"), "{why}");
    }

    #[test]
    fn a_price_is_shared_by_the_players() {
        let target =
            Target { utilization: 0.8, safety: 0.5, price: Some(0.3), ..Target::default() };
        let answer = target.answer(&NEED);
        assert_eq!(answer.players, 1200);
        assert!((answer.per_thousand_hours.unwrap() - 0.25).abs() < 1e-12);
        let none = target.answer(&Need { core: 2.0, ..NEED });
        assert_eq!((none.rooms, none.per_thousand_hours), (0, None));
    }

    #[test]
    fn a_target_that_makes_no_sense_is_refused_with_its_value() {
        let text = |target: Target| target.check().unwrap_err().to_string();
        let target = Target::default();
        let cores = "must be a number above 0, and 1000000 at most";
        assert_eq!(text(Target { cores: 0.0, ..target }), format!("--cores 0 {cores}"));
        assert_eq!(text(Target { cores: 1e7, ..target }), format!("--cores 10000000 {cores}"));
        let clock = |clock: f64| text(Target { clock, ..target });
        assert_eq!(clock(f64::NAN), "--clock NaN must be from 0.01 to 100");
        assert_eq!(clock(101.0), "--clock 101 must be from 0.01 to 100");
        assert_eq!(clock(1e308), "--clock 1e308 must be from 0.01 to 100");
        let memory = Target { memory: -5e6, ..target };
        assert_eq!(text(memory), "--memory -5 must be a number above 0", "in MB");
        let bandwidth = Target { bandwidth: 0.0, ..target };
        assert_eq!(text(bandwidth), "--bandwidth 0 must be a number above 0");
        assert_eq!(
            text(Target { safety: 1.1, ..target }),
            "--safety 1.1 must be above 0, and 1 at most"
        );
        assert_eq!(text(Target { price: Some(-1.0), ..target }), "--price -1 must be 0 or more");
        assert!(target.check().is_ok());
    }
}
