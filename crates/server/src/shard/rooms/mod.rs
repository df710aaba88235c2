//! Rooms, as their shard keeps them.

mod admission;
mod founding;
pub(crate) mod join;
pub(crate) mod lateness;
pub(crate) mod member;
pub(crate) mod schedule;
mod snapshots;
pub(crate) mod sync;
mod ticket;
mod turn;

use std::time::Duration;

use playfield_room::{AnyRoom, RoomSummary};
use playfield_session::SyncHistory;

use crate::founding::Founding;
use crate::room_id::RoomId;
use crate::shard::keys::OfRoom;
use crate::shard::slab::Slab;
use lateness::Cost;
use member::Members;
use schedule::Beat;

pub(crate) type Rooms = Slab<OfRoom, Hosted>;

/// A room, and what its host keeps beside it.
pub(crate) struct Hosted {
    pub(crate) id: RoomId,
    pub(crate) room_type: u16,
    pub(crate) room: Box<dyn AnyRoom>,
    pub(crate) members: Members,
    /// When it was made. The room's own time counts from here.
    pub(crate) created: Duration,
    pub(crate) epoch: u64,
    /// Its syncs, for clients that come back with a copy of an earlier version.
    pub(crate) history: SyncHistory,
    pub(super) ticks: Option<Beat>,
    pub(super) syncs: Option<Beat>,
    /// How many syncs the clock has called for, including those that were missed.
    pub(crate) regular_syncs: u64,
    /// What its last regular sync has cost.
    pub(crate) cost: Cost,
    /// What its ticks have cost since then.
    pub(crate) ticking: Duration,
    /// When the schedule has it.
    pub(super) due: Option<Duration>,
    /// What the directory knows.
    pub(super) published: RoomSummary,
    /// It is in the list of rooms to follow up.
    pub(super) touched: bool,
    /// Whether it was created for a player who has not joined yet, so that it ends if they don't.
    pub(crate) founding: bool,
    /// What is answered when it opens, or does not.
    pub(super) awaited_by: Vec<Founding>,
    /// How many players who waited have joined: the seats that were reserved for them are taken.
    pub(crate) admitted: u32,
    /// Someone joined, and there is no regular sync to make that known.
    pub(crate) sync_awaited: bool,
    /// The turn of the last sync that it asked for.
    pub(super) synced_on_demand: u64,
}

impl Hosted {
    /// Whether the player it was created for did not join, and nobody else did.
    fn is_unfounded(&self) -> bool {
        self.founding && self.members.len() == 0
    }

    pub(super) fn next_due(&self) -> Option<Duration> {
        let beats =
            [self.ticks.as_ref().map(Beat::deadline), self.syncs.as_ref().map(Beat::deadline)];
        let wake = self.room.wake_at().map(|at| self.created.saturating_add(at));
        beats.into_iter().chain([wake]).flatten().min()
    }
}
