//! A node that is to stop moves its rooms to others.

use std::collections::HashSet;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use playfield_cluster::{Choice, Event, Peer};
use playfield_wire::ErrorCode;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

use super::host::Host;
use super::{Drained, boot_clock};
use crate::room_id::RoomId;

/// The number of rooms that move at once.
const AT_ONCE: usize = 8;

/// The most attempts to move a room.
const TRIES_MAX: u32 = 3;

/// The time that moves may take that are under way at the end of the time for all.
const LAST_MOVES: Duration = Duration::from_secs(5);

impl Host {
    /// Moves the rooms of this node to others, until none is left that can move, or the time is
    /// over. No new rooms are placed here from now on.
    pub(super) async fn drain(self: Rc<Self>, within: Duration) -> Drained {
        self.cluster.is_draining.store(true, Ordering::Relaxed);
        self.event(Event::Load(self.load()));
        let by = Instant::now() + within;
        let (mut moved, mut moving) = (0, JoinSet::new());
        // Those that were begun, whatever became of them.
        let mut begun: HashSet<RoomId> = HashSet::new();
        while let Some(handle) = self.handle() {
            while moving.len() < AT_ONCE && Instant::now() < by {
                let rooms = handle.node().directory.ids();
                let is_left = |(id, _): &(RoomId, u16)| !begun.contains(id);
                let Some((id, room_type)) = rooms.into_iter().find(is_left) else { break };
                begun.insert(id);
                moving.spawn_local(Rc::clone(&self).move_away(id, room_type));
            }
            match timeout_at(by + LAST_MOVES, moving.join_next()).await {
                Ok(Some(Ok(true))) => moved += 1,
                Ok(Some(Ok(false))) => {}
                Ok(Some(Err(error))) => log::error!("the move of a room has failed: {error}"),
                Ok(None) => break,
                Err(_) => {
                    moving.detach_all();
                    break;
                }
            }
        }
        let left = self.handle().map_or(0, |handle| handle.node().directory.count());
        Drained { moved, left }
    }

    /// Moves a room to another node. Returns whether it has moved.
    async fn move_away(self: Rc<Self>, id: RoomId, room_type: u16) -> bool {
        for attempt in 1..=TRIES_MAX {
            let Some(peer) = self.choose_other(room_type) else {
                log::warn!("no other node takes room {id}");
                return false;
            };
            match self.move_room(id, &peer).await {
                Ok(()) => return true,
                Err(error) => {
                    log::warn!("room {id} does not move to the node {:?}: {error}", peer.name);
                    let may_later = [ErrorCode::Busy, ErrorCode::Unreachable, ErrorCode::Refused];
                    if attempt == TRIES_MAX || !may_later.contains(&error.code()) {
                        return false;
                    }
                }
            }
        }
        false
    }

    /// Another node for a room of this one. It may be of another build: it tries the room.
    fn choose_other(&self, room_type: u16) -> Option<Peer> {
        let name = self.type_name(room_type);
        match self.choose_by(boot_clock::now(), &name, |_| true)? {
            Choice::At(peer) => Some(peer),
            Choice::Here => None,
        }
    }
}
