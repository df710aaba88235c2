//! How the time of a turn is divided. What rooms owe comes first: all else shares one budget, and
//! ends when a room is late. So that it goes on even if rooms are always late, each part of it earns
//! a share of the time, which it may use then.

use std::time::Duration;

use crate::shard::Shard;

/// A room that is late by more than this comes before everything that reads.
const ROOM_FIRST: Duration = Duration::from_millis(1);

/// The parts of a turn besides running rooms and writing, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Parcels of other threads.
    Mail,
    /// New connections.
    Accepts,
    /// Input of clients.
    Input,
    /// Sessions that are resumed.
    Returns,
    /// Snapshots, which have a [budget of their own](crate::shard::snapshots).
    Snapshots,
    /// Sockets that are closed.
    Closes,
}

const PARTS: usize = 6;

impl Part {
    /// When it ends, as the time since the turn began. Earlier parts leave time for later ones.
    const fn ends(self) -> Duration {
        match self {
            Self::Mail => Duration::from_millis(2),
            Self::Accepts => Duration::from_millis(3),
            Self::Input => Duration::from_millis(5),
            Self::Returns => Duration::from_millis(6),
            Self::Snapshots => Duration::MAX,
            Self::Closes => Duration::from_millis(8),
        }
    }

    /// Its share of the time, even if rooms are late: one part in this many.
    const fn share(self) -> u32 {
        match self {
            // Connections go as often as they come.
            Self::Input | Self::Closes => 10,
            Self::Mail | Self::Accepts | Self::Returns | Self::Snapshots => 20,
        }
    }
}

/// The time that a part has earned and not used.
#[derive(Clone, Copy, Default)]
struct Share {
    earned: Duration,
    as_of: Duration,
}

/// The most that a part saves up.
const SAVED_MAX: Duration = Duration::from_millis(2);

/// The time of the turn, and the shares.
#[derive(Default)]
pub(in crate::shard) struct Pacing {
    /// The stopwatch when the turn began.
    began: Duration,
    shares: [Share; PARTS],
    /// The part that is under way, the stopwatch when it began, and whether it has begun to work.
    part: Option<(Part, Duration, bool)>,
}

impl Pacing {
    pub(in crate::shard) fn begin(&mut self, read: Duration) {
        self.began = read;
    }
}

impl Shard {
    /// A part of the turn begins.
    pub(crate) fn begin_part(&mut self, part: Part) {
        let read = self.stopwatch.read();
        let share = &mut self.pacing.shares[part as usize];
        let earned = read.saturating_sub(share.as_of) / part.share();
        *share = Share { earned: (share.earned + earned).min(SAVED_MAX), as_of: read };
        self.pacing.part = Some((part, read, false));
    }

    /// Whether the part of the turn is over: its time is, or a room is late and its share is used.
    /// Each part does something in each turn.
    pub(crate) fn is_part_over(&mut self) -> bool {
        let Some((part, began, works)) = &mut self.pacing.part else { return false };
        if !std::mem::replace(works, true) {
            return false;
        }
        let (part, began) = (*part, *began);
        let read = self.stopwatch.read();
        let passed = read.saturating_sub(self.pacing.began);
        let is_room_late =
            || self.schedule.next().is_some_and(|at| at + ROOM_FIRST <= self.now + passed);
        (passed >= part.ends() || is_room_late())
            && read.saturating_sub(began) >= self.pacing.shares[part as usize].earned
    }

    /// The part of the turn ends.
    pub(crate) fn end_part(&mut self) {
        let Some((part, began, works)) = self.pacing.part.take() else { return };
        if works {
            let took = self.stopwatch.read().saturating_sub(began);
            let earned = &mut self.pacing.shares[part as usize].earned;
            *earned = earned.saturating_sub(took);
        }
    }
}
