//! The machine that a capacity is asked for, and what it carries.

use std::fmt;

/// A machine, and how full it may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Target {
    /// Cores for rooms: a shard each.
    pub cores: f64,
    /// How fast a core is compared with one of this machine.
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
    /// The value.
    pub value: f64,
    /// The values that it may have.
    pub must: &'static str,
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "--{} {} must be {}", self.name, self.value, self.must)
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

/// How many rooms a machine carries.
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
        let checks = [
            ("cores", self.cores, self.cores > 0.0 && self.cores.is_finite(), positive),
            ("clock", self.clock, self.clock > 0.0 && self.clock.is_finite(), positive),
            ("memory", self.memory, self.memory > 0.0, positive),
            ("bandwidth", self.bandwidth, self.bandwidth > 0.0, positive),
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
    /// `rooms = cores · clock · utilization · safety / core` by CPU time; bandwidth and memory count
    /// alike. CPU time is that of all work for a room, in the program and in the system. The
    /// utilization is 0.84 at most: more of a core is late.
    #[must_use]
    pub fn answer(&self, need: &Need) -> Answer {
        // The share of a core of that machine.
        let core = need.core / self.clock;
        let a_core = self.utilization.min(IN_TIME) * self.safety / core;
        // A room that has a core to itself waits for no other.
        let alone = if core <= self.utilization * self.safety { 1.0 } else { 0.0 };
        let by = [
            (Bound::Cpu, self.cores * a_core.max(alone)),
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
}

/// The most of a core that may be used if 99 of 100 patches are to come before the next is due. A room
/// costs up to a tenth more where a core serves thousands of sockets than where it is measured, and the
/// rest is for bursts. Measured with rooms that take 0.1 % to 14 % of a core.
const IN_TIME: f64 = 0.84;

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
        assert_eq!(text(Target { cores: 0.0, ..target }), "--cores 0 must be a number above 0");
        assert_eq!(
            text(Target { clock: f64::NAN, ..target }),
            "--clock NaN must be a number above 0"
        );
        assert_eq!(
            text(Target { safety: 1.1, ..target }),
            "--safety 1.1 must be above 0, and 1 at most"
        );
        assert_eq!(text(Target { price: Some(-1.0), ..target }), "--price -1 must be 0 or more");
        assert!(target.check().is_ok());
    }
}
