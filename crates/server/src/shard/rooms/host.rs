//! The rooms of a shard, and when they run.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use playfield_room::{Error, LeaveReason, PlayerId};

use crate::founding::Founding;
use crate::memory::shrink_map;
use crate::room_id::RoomId;
use crate::shard::connection::Links;
use crate::shard::env::Env;
use crate::shard::fair_queue::FairQueue;
use crate::shard::keys::{ConnectionKey, MemberKey, RoomKey};
use crate::shard::mail::join::{JoinRequest, Joiner};
use crate::shard::outbound::Outbound;
use crate::shard::rooms::busy::Busy;
use crate::shard::rooms::lateness::{Lateness, ShardLateness};
use crate::shard::rooms::pausing::Waits;
use crate::shard::rooms::saves::Saves;
use crate::shard::rooms::schedule::Schedule;
use crate::shard::rooms::traffic::Traffic;
use crate::shard::rooms::{Hosted, Rooms};
use crate::shard::session::sessions::Sessions;
use crate::shard::topics::Topics;
use crate::shard::work::Founder;

/// The parts of a shard below its rooms.
pub(crate) struct Below<'a> {
    pub(in crate::shard) env: &'a mut Env,
    pub(in crate::shard) links: &'a mut Links,
    pub(in crate::shard) sessions: &'a mut Sessions,
    pub(in crate::shard) topics: &'a mut Topics,
    pub(in crate::shard) outbound: &'a mut Outbound,
}

/// The host of a shard's rooms.
pub(crate) struct RoomHost {
    pub(in crate::shard) rooms: Rooms,
    pub(in crate::shard) by_id: HashMap<RoomId, RoomKey>,
    pub(in crate::shard) schedule: Schedule,
    /// Rooms that are due while there is not time for all.
    pub(super) overdue: FairQueue<Founder, RoomKey>,
    pub(in crate::shard) lateness: Lateness,
    pub(in crate::shard) shard_lateness: ShardLateness,
    pub(in crate::shard) busy: Busy,
    /// The time that the last turn took to write to sockets.
    pub(in crate::shard) writing: Duration,
    /// Rooms to follow up at the end of the turn.
    pub(in crate::shard) touched: Vec<RoomKey>,
    /// Joins that wait for a room that is about to be created.
    pub(super) parked: Vec<(Joiner, JoinRequest)>,
    /// Searches for rooms that wait for a room to be created, or to end.
    pub(super) parked_foundings: Vec<Founding>,
    pub(in crate::shard) queues: Queues,
    /// The node's lease in its cluster has run out.
    pub(super) is_cut_off: bool,
    /// Players of recovered rooms whose sessions are gone, and when they leave.
    pub(in crate::shard) left_behind: VecDeque<(Duration, RoomKey, PlayerId)>,
}

/// The work that the output of rooms leaves.
#[derive(Default)]
pub(crate) struct Queues {
    /// Seats of players without a connection that are taken from them once the rooms have had their
    /// turn.
    pub(in crate::shard) given_up: Vec<(RoomKey, MemberKey)>,
    /// Joins of sessions of this shard that rooms of this shard have refused after a while.
    pub(in crate::shard) refusals: VecDeque<(ConnectionKey, Box<JoinRequest>, Error)>,
    pub(in crate::shard) traffic: Traffic,
    pub(in crate::shard) saves: Saves,
    /// The players of rooms that stand still.
    pub(super) standing: HashMap<RoomKey, HashMap<PlayerId, Waits>>,
    /// Rooms whose save another owner has opened.
    pub(super) fenced: Vec<RoomKey>,
}

impl RoomHost {
    /// The thread works at least until then. If the next turn begins later, it has waited.
    pub(crate) fn is_awake_until(&mut self, at: Duration) {
        self.schedule.is_awake_until(at);
    }

    /// Takes players out whose sessions have ended with another process, once their grace is over.
    pub(in crate::shard) fn leave_behind(&mut self, below: &mut Below<'_>) {
        while self.left_behind.front().is_some_and(|(at, ..)| *at <= below.env.now)
            && let Some((_, room, player)) = self.left_behind.pop_front()
        {
            self.call(below, room, |room, at, out| {
                room.leave(at, player, LeaveReason::ConnectionLost, out);
            });
        }
    }

    /// Takes a room out, which hears nothing of it.
    pub(in crate::shard) fn take_room(&mut self, key: RoomKey) -> Option<Hosted> {
        let hosted = self.rooms.remove(key)?;
        self.queues.traffic.end(self.rooms.places());
        self.queues.standing.remove(&key);
        self.busy.dropped(hosted.room_type);
        self.schedule.change(key, hosted.due, None);
        self.by_id.remove(&hosted.id);
        shrink_map(&mut self.by_id);
        Some(hosted)
    }

    /// The members of all rooms.
    #[cfg(test)]
    pub(crate) fn members(&self) -> usize {
        let rooms = self.rooms.keys().into_iter().filter_map(|key| self.rooms.get(key));
        rooms.map(|hosted| hosted.members.len()).sum()
    }

    /// A host without rooms, for this many room types.
    pub(in crate::shard) fn new(room_types: usize) -> Self {
        Self {
            rooms: Rooms::new(),
            by_id: HashMap::new(),
            schedule: Schedule::default(),
            overdue: FairQueue::default(),
            lateness: Lateness::default(),
            shard_lateness: ShardLateness::default(),
            busy: Busy::new(room_types),
            writing: Duration::ZERO,
            touched: Vec::new(),
            parked: Vec::new(),
            parked_foundings: Vec::new(),
            queues: Queues::default(),
            is_cut_off: false,
            left_behind: VecDeque::new(),
        }
    }
}
