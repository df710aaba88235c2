//! The rooms of a connection: copies of their states, and how late updates are.

use playfield_client::session::{Joined, RoomCopy, Update, UpdateKind};
use playfield_client::{Mirror, RoomNumber};
use playfield_state::{DynamicMirror, PlayerId};
use playfield_wire::DecodeError;
use playfield_wire::schema::{RoomSchema, Type};

use crate::profiler::Profiler;

/// A room that a connection is in.
pub(crate) struct Seat {
    pub(crate) room: RoomNumber,
    /// The number of the room's type.
    pub(crate) of: u32,
    pub(crate) player: u64,
    /// The time between two syncs, in nanoseconds; 0 if the room has no rate.
    sync_ns: i64,
    /// When a patch came, minus when its version would be due if the room had begun at 0: the
    /// least of all.
    earliest: i64,
    /// When the last update came; 0 before the first.
    updated_at: u64,
}

/// The copy of a room's state.
pub(crate) struct SeatCopy {
    mirror: DynamicMirror,
    /// The state's type, and the player, if what is sent is counted.
    profiler: Option<(Profiler, Box<Type>, u64)>,
}

impl SeatCopy {
    pub(crate) fn new(
        schema: &RoomSchema,
        player: u64,
        profiler: Option<&Profiler>,
    ) -> Option<Self> {
        // The schema was checked before.
        let mirror = DynamicMirror::new(&schema.state, PlayerId(player)).ok()?;
        let of = || Box::new(schema.state.clone());
        let profiler = profiler.map(|profiler| (profiler.clone(), of(), player));
        Some(Self { mirror, profiler })
    }
}

impl RoomCopy for SeatCopy {
    fn apply(&mut self, update: &Update<'_>) -> Result<(), DecodeError> {
        if let Some((profiler, of, player)) = &self.profiler {
            profiler.count(of, *player, update.kind, update.body);
        }
        self.mirror.apply(update.kind, update.body, None)
    }

    fn digest_is(&mut self, digest: u64) -> bool {
        self.mirror.digest() == digest
    }
}

impl Seat {
    pub(crate) fn new(of: u32, joined: &Joined<'_>) -> Self {
        let sync_ns = match joined.sync_hz {
            0 => 0,
            hz => 1_000_000_000 / i64::from(hz),
        };
        let (room, player) = (joined.room, joined.player);
        Self { room, of, player, sync_ns, earliest: i64::MAX, updated_at: 0 }
    }

    /// The time since the update before this one, in nanoseconds.
    pub(crate) fn interval_ns(&mut self, now: u64) -> Option<u64> {
        let before = std::mem::replace(&mut self.updated_at, now);
        (before > 0).then(|| now.saturating_sub(before))
    }

    /// Returns the lateness of an update in nanoseconds, compared with the one that came soonest
    /// after its sync. A version counts the syncs that the room's rate asks for, so it says when
    /// the update was due. `None` if the room has no rate, and for a snapshot.
    pub(crate) fn lateness_ns(&mut self, kind: UpdateKind, version: u64, now: u64) -> Option<u64> {
        if self.sync_ns == 0 || kind != UpdateKind::Patch {
            return None;
        }
        let due = i64::try_from(version).ok()?.checked_mul(self.sync_ns)?;
        let offset = now.cast_signed().checked_sub(due)?;
        self.earliest = self.earliest.min(offset);
        Some((offset - self.earliest).cast_unsigned())
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use playfield_client::session::{Joined, UpdateKind};
    use playfield_client::{RequestNumber, RoomNumber};

    use super::Seat;

    #[test]
    fn an_update_is_late_compared_with_the_soonest() {
        let joined = Joined {
            request: RequestNumber(1),
            room: RoomNumber(1),
            id: Cow::Borrowed("r"),
            room_type: Cow::Borrowed("clock"),
            player: 1,
            epoch: 1,
            tick_hz: 20,
            sync_hz: 20,
            ..Joined::default()
        };
        let mut seat = Seat::new(0, &joined);
        let at = |ms: u64| ms * 1_000_000;
        assert_eq!(
            seat.lateness_ns(UpdateKind::Patch, 100, at(7)),
            Some(0),
            "the first is the measure"
        );
        assert_eq!(seat.lateness_ns(UpdateKind::Patch, 101, at(60)), Some(at(3)));
        assert_eq!(
            seat.lateness_ns(UpdateKind::Patch, 104, at(205)),
            Some(0),
            "2 ms sooner than the first"
        );
        assert_eq!(seat.lateness_ns(UpdateKind::Patch, 105, at(257)), Some(at(2)));
        assert_eq!(seat.lateness_ns(UpdateKind::Snapshot, 106, at(900)), None);
        let mut on_demand = Seat::new(0, &Joined { sync_hz: 0, ..joined });
        assert_eq!(on_demand.lateness_ns(UpdateKind::Patch, 1, at(1)), None);
    }
}
