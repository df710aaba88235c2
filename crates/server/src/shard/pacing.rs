//! Divides the time of a turn. What rooms owe comes first: all else shares one budget, and ends
//! when a room is late. So that it goes on even if rooms are always late, each part of it earns a
//! share of the time, which it may use then.

use std::time::Duration;

use crate::shard::env::Env;

/// A room that is late by more than this comes before everything that reads.
const ROOM_FIRST: Duration = Duration::from_millis(1);

/// The parts of a turn besides running rooms and writing, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Parcels of other threads.
    Mail,
    /// New connections.
    Accepts,
    /// Work that [waits by address](crate::shard::work): input, resumes and snapshots.
    Work,
    /// Sockets that are closed.
    Closes,
}

const PARTS: usize = 4;

impl Part {
    /// When it ends, as the time since the turn began. Earlier parts leave time for later ones.
    const fn ends(self) -> Duration {
        match self {
            Self::Mail => Duration::from_millis(2),
            Self::Accepts => Duration::from_millis(3),
            Self::Work => Duration::from_millis(6),
            Self::Closes => Duration::from_millis(8),
        }
    }

    /// Its share of the time, even if rooms are late: one part in this many.
    const fn share(self) -> u32 {
        match self {
            Self::Work => 5,
            // Connections go as often as they come.
            Self::Closes => 10,
            Self::Mail | Self::Accepts => 20,
        }
    }
}

/// The time that a part has earned and not used.
#[derive(Clone, Copy, Default)]
struct Share {
    earned: Duration,
    as_of: Duration,
}

/// The most that a part saves up: its share of so long, but no more than a few pieces of work take.
const SAVED_OF: Duration = Duration::from_millis(20);
const SAVED_MAX: Duration = Duration::from_millis(2);

/// The time of the turn, and the shares.
#[derive(Default)]
pub(crate) struct Pacing {
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

    /// A part of the turn begins.
    pub(crate) fn begin_part(&mut self, env: &Env, part: Part) {
        let read = env.stopwatch.read();
        let share = &mut self.shares[part as usize];
        let earned = read.saturating_sub(share.as_of) / part.share();
        let saved_max = (SAVED_OF / part.share()).min(SAVED_MAX);
        *share = Share { earned: (share.earned + earned).min(saved_max), as_of: read };
        self.part = Some((part, read, false));
    }

    /// Returns whether the part of the turn is over: its time is, or a room is late and its share
    /// is used. The next room is due at `next_room`. Each part does something in each turn.
    pub(in crate::shard) fn is_part_over(
        &mut self,
        env: &Env,
        next_room: Option<Duration>,
    ) -> bool {
        let Some((part, began, works)) = &mut self.part else { return false };
        if !std::mem::replace(works, true) {
            return false;
        }
        let (part, began) = (*part, *began);
        let read = env.stopwatch.read();
        let passed = read.saturating_sub(self.began);
        let is_room_late = || next_room.is_some_and(|at| at + ROOM_FIRST <= env.now + passed);
        (passed >= part.ends() || is_room_late())
            && read.saturating_sub(began) >= self.shares[part as usize].earned
    }

    /// The part of the turn ends.
    pub(crate) fn end_part(&mut self, env: &Env) {
        let Some((part, began, works)) = self.part.take() else { return };
        if works {
            let took = env.stopwatch.read().saturating_sub(began);
            let earned = &mut self.shares[part as usize].earned;
            *earned = earned.saturating_sub(took);
        }
    }
}
