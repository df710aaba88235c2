//! Recovery from a message that can't be read.
//!
//! The transport says where the message ends, so the next one can be read; what it said is
//! unknown. It may have been a snapshot or a patch of any room, so each room's copy waits for a
//! snapshot. It may have been an event, so one event may be missing. It may have been the answer
//! to a request, so all requests fail.

use std::borrow::Cow;
use std::collections::BTreeSet;

use playfield_wire::client::ClientMessage;
use playfield_wire::server::ServerMessage;
use playfield_wire::{DecodeError, ErrorCode, RequestNumber, RoomNumber};

use super::requests::Asked;
use super::session::Session;
use super::{ClientError, Failure, Handler, OutOfStep};

/// The most orphaned rooms, and the most requests to enter one, that are remembered. Past it the
/// oldest is forgotten; a later message about it ends the connection.
const ORPHANED_ROOMS_MAX: usize = 1024;

/// Rooms that the node may believe this client is in, and that have no handle here. Messages
/// about them are dropped.
#[derive(Debug, Default)]
pub(super) struct OrphanedRooms {
    /// Abandoned requests to enter a room, which may have been granted.
    joins: BTreeSet<RequestNumber>,
    /// Rooms that were left, and whose `left` message has not come.
    rooms: BTreeSet<RoomNumber>,
}

impl OrphanedRooms {
    fn is_empty(&self) -> bool {
        self.joins.is_empty() && self.rooms.is_empty()
    }

    fn add_join(&mut self, request: RequestNumber) {
        add(&mut self.joins, request);
    }

    fn add_room(&mut self, room: RoomNumber) {
        add(&mut self.rooms, room);
    }
}

/// Numbers are assigned in ascending order, so the smallest is the oldest.
fn add<N: Ord>(to: &mut BTreeSet<N>, number: N) {
    to.insert(number);
    if to.len() > ORPHANED_ROOMS_MAX {
        to.pop_first();
    }
}

impl Session {
    /// A message can't be read. If no room is joined there is nothing to repair, and the
    /// connection ends.
    pub(super) fn unreadable<H: Handler>(
        &mut self,
        error: DecodeError,
        handler: &mut H,
    ) -> Result<(), ClientError> {
        let rooms = self.rooms.missed_a_message();
        if rooms.is_empty() {
            return Err(ClientError::Message(error));
        }
        let why = OutOfStep::Message(error.clone());
        for room in &rooms {
            handler.out_of_step(*room, &why);
        }
        if rooms.iter().any(|room| self.rooms.fell_out(*room).is_err()) {
            return Err(ClientError::Message(error));
        }
        self.give_up_answers(handler);
        for room in rooms {
            // A client that is leaving needs no snapshot.
            let _ = self.resync(room);
        }
        for nonce in self.pulse.asked() {
            // The round trip still counts from the first ping.
            let _ = self.send_message(&ClientMessage::Ping { nonce });
        }
        Ok(())
    }

    /// The unreadable message may have answered any request. All requests fail, as no answer can
    /// be relied on.
    fn give_up_answers<H: Handler>(&mut self, handler: &mut H) {
        let mut left = Vec::new();
        for (request, asked) in self.requests.give_up_each() {
            match asked {
                Asked::Leave { room } => {
                    left.push((request, room));
                    continue;
                }
                Asked::Join => self.orphaned_rooms.add_join(request),
                Asked::List | Asked::Schema | Asked::Message { .. } => {}
            }
            handler.failed(request, &Failure::Lost);
        }
        // A room that is being left counts as left. Later messages about it are dropped.
        for (request, room) in left {
            if self.rooms.left(room).is_ok() {
                self.orphaned_rooms.add_room(room);
            }
            handler.left(room, Some(request), ErrorCode::Left, "");
        }
    }

    /// Whether a message is about, or enters, an orphaned room. It is dropped, and the room left.
    #[inline]
    pub(super) fn is_orphaned(&mut self, message: &ServerMessage<'_>) -> bool {
        !self.orphaned_rooms.is_empty() && self.drops(message)
    }

    fn drops(&mut self, message: &ServerMessage<'_>) -> bool {
        match *message {
            ServerMessage::Joined { request, room, .. } => {
                let is_orphaned =
                    !self.rooms.knows(room) && self.orphaned_rooms.joins.remove(&request);
                if is_orphaned {
                    self.leave_unasked(room);
                }
                is_orphaned
            }
            ServerMessage::Error { request: Some(request), .. } => {
                self.orphaned_rooms.joins.remove(&request);
                false
            }
            // The room may have ended before any readable message about it.
            ServerMessage::Left { room, .. } => {
                self.orphaned_rooms.rooms.remove(&room)
                    || !self.rooms.knows(room) && !self.orphaned_rooms.joins.is_empty()
            }
            ServerMessage::Snapshot { room, .. }
            | ServerMessage::Patch { room, .. }
            | ServerMessage::Event { room, .. }
            | ServerMessage::Check { room, .. } => {
                if self.orphaned_rooms.rooms.contains(&room) {
                    return true;
                }
                // The unreadable message may have been the `joined` of this room.
                let is_orphaned = !self.rooms.knows(room)
                    && self.orphaned_rooms.rooms.len() < ORPHANED_ROOMS_MAX
                    && !self.orphaned_rooms.joins.is_empty();
                if is_orphaned {
                    self.leave_unasked(room);
                }
                is_orphaned
            }
            _ => false,
        }
    }

    /// The node answered that this client is not in the room. If the client did not know, the
    /// `left` message was lost.
    pub(super) fn not_joined<H: Handler>(
        &mut self,
        room: RoomNumber,
        code: ErrorCode,
        text: &str,
        handler: &mut H,
    ) {
        if !self.rooms.waits(room) || self.rooms.left(room).is_err() {
            return;
        }
        // The room's own code may have chosen this error code: leave, to make it true.
        self.leave_unasked(room);
        for request in self.requests.give_up_room(room) {
            handler.failed(request, &Failure::Left { code, text: Cow::Borrowed(text) });
        }
        handler.left(room, None, code, text);
    }

    /// Leaves a room for which there is no handle. The answer is dropped.
    fn leave_unasked(&mut self, room: RoomNumber) {
        self.orphaned_rooms.add_room(room);
        let request = self.requests.reserve_unanswered();
        // A client that is saying goodbye leaves all rooms.
        let _ = self.send_message(&ClientMessage::Leave { request, room });
    }
}
