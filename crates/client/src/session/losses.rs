//! Losses of a node while this client was away: the requests whose answers will not come.
//!
//! A room that the client may be in without knowing, because the answer to its join was lost, is
//! left.

use std::collections::BTreeSet;

use playfield_wire::client::{self, ClientMessage};
use playfield_wire::server::{self, Lost, ServerMessage};
use playfield_wire::{ErrorCode, RequestNumber, RoomNumber};

use super::protocol::Protocol;
use super::requests::Asked;
use super::{Event, FORMAT, Failure};

/// The most abandoned rooms, and the most requests to enter one, that are remembered. Past it the
/// oldest is forgotten; a later message about it ends the connection.
const ABANDONED_MAX: usize = 1024;

/// Rooms that have no handle here, but that the node may believe this client is in. Messages about
/// them are dropped.
#[derive(Debug, Default)]
pub(super) struct Abandoned {
    /// Requests to enter a room that count as failed, but may still be granted.
    joins: BTreeSet<RequestNumber>,
    /// Rooms whose `left` has not come.
    rooms: BTreeSet<RoomNumber>,
}

impl Abandoned {
    fn is_empty(&self) -> bool {
        self.joins.is_empty() && self.rooms.is_empty()
    }
}

/// Numbers are assigned in ascending order, so the smallest is the oldest.
fn add<N: Ord>(to: &mut BTreeSet<N>, number: N) {
    to.insert(number);
    if to.len() > ABANDONED_MAX {
        to.pop_first();
    }
}

impl Protocol {
    /// The node has handled the first `received` messages, and had to forget some of its answers.
    pub(super) fn lose_answers(&mut self, received: u64, lost: &[Lost]) {
        for &Lost { room, messages } in lost {
            match room {
                Some(room) if self.rooms.lost(room, messages) => {
                    self.lose_answers_of(room, received);
                }
                Some(room) => {
                    // The answer to a join was lost. It is not known which.
                    if self.lose_joins(received) {
                        self.leave_unasked(room);
                    }
                }
                None => {
                    self.lose_joins(received);
                    let lists = self.requests.give_up_handled(received, |asked| {
                        asked.room().is_none() && asked != Asked::Join
                    });
                    for (request, asked) in lists {
                        self.lose_answer(request, asked);
                    }
                }
            }
        }
    }

    fn lose_answers_of(&mut self, room: RoomNumber, received: u64) {
        let of_room = |asked: Asked| asked.room() == Some(room);
        for (request, asked) in self.requests.give_up_handled(received, of_room) {
            self.lose_answer(request, asked);
        }
    }

    /// The answer to a request will not come. A room that was to be left is left.
    pub(super) fn lose_answer(&mut self, request: RequestNumber, asked: Asked) {
        match asked {
            Asked::Leave { room } if self.rooms.left(room).is_ok() => {
                add(&mut self.abandoned.rooms, room);
                let (request, code, text) = (Some(request), ErrorCode::Left, "".into());
                self.events.push_back(Event::Left(server::Left { request, room, code, text }));
            }
            Asked::Register if self.registration_failed(request, &Failure::Lost) => {}
            _ => self.failed(request, Failure::Lost),
        }
    }

    /// Fails the requests to enter a room that were handled. Returns whether any that failed may
    /// still be granted.
    fn lose_joins(&mut self, received: u64) -> bool {
        let joins = self.requests.give_up_handled(received, |asked| asked == Asked::Join);
        for &(request, _) in &joins {
            add(&mut self.abandoned.joins, request);
            self.failed(request, Failure::Lost);
        }
        !self.abandoned.joins.is_empty()
    }

    /// Returns whether a message is about, or enters, an abandoned room. It is dropped, and the
    /// room left.
    #[inline]
    pub(super) fn is_abandoned(&mut self, message: &ServerMessage<'_>) -> bool {
        !self.abandoned.is_empty() && self.drops(message)
    }

    fn drops(&mut self, message: &ServerMessage<'_>) -> bool {
        match *message {
            ServerMessage::Joined(server::Joined { request, room, .. }) => {
                let is_abandoned = self.abandoned.joins.remove(&request);
                if is_abandoned && !self.rooms.knows(room) {
                    self.leave_unasked(room);
                }
                is_abandoned
            }
            ServerMessage::Error(server::Error { request: Some(request), .. })
            | ServerMessage::Redirect(server::Redirect { request, .. }) => {
                self.abandoned.joins.remove(&request);
                false
            }
            ServerMessage::Left(server::Left { room, .. }) => {
                self.abandoned.rooms.remove(&room) || self.may_be_entered(room)
            }
            ServerMessage::Snapshot(server::Snapshot { room, .. })
            | ServerMessage::Patch(server::Patch { room, .. })
            | ServerMessage::Event(server::Event { room, .. })
            | ServerMessage::Check(server::Check { room, .. }) => {
                // Its `joined` may be among what was lost.
                if self.may_be_entered(room) {
                    self.leave_unasked(room);
                }
                self.abandoned.rooms.contains(&room)
            }
            _ => false,
        }
    }

    /// Returns whether an abandoned request may have entered a room that is unknown here.
    fn may_be_entered(&self, room: RoomNumber) -> bool {
        !self.rooms.knows(room) && !self.abandoned.joins.is_empty()
    }

    /// Leaves a room that has no handle. The answer is dropped.
    fn leave_unasked(&mut self, room: RoomNumber) {
        if self.abandoned.rooms.contains(&room) {
            return;
        }
        add(&mut self.abandoned.rooms, room);
        let request = self.requests.reserve_unanswered();
        let leave = ClientMessage::Leave(client::Leave { request, room });
        // A client that is saying goodbye leaves all rooms.
        let _ = self.write_counted(Some(room), &[], |out| leave.encode(FORMAT, out));
    }
}
