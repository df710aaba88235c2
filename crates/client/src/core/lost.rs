//! A message that can't be read: what may have been lost with it, and how that is mended.
//!
//! Where it ends is certain, so the next message can be read; what it was is not. It may have been
//! a snapshot or a patch of any room, so each room's copy waits for a snapshot; an event, so one
//! may be missing; or the answer to a request, which nobody is to wait for in vain.

use std::borrow::Cow;
use std::collections::BTreeSet;

use playfield_wire::client::ClientMessage;
use playfield_wire::server::ServerMessage;
use playfield_wire::{DecodeError, ErrorCode};

use super::requests::Asked;
use super::session::Session;
use super::{ClientError, Failure, Handler, OutOfStep};

/// The most rooms of which it is remembered that what still comes for them is nobody's, and the
/// most requests to enter one. Past it the oldest is forgotten; should anything come for it after
/// all, that ends the connection.
const STRANGERS_MAX: usize = 1024;

/// Rooms that this client is in, or may be, as far as the node knows, and that nobody here knows
/// of: what comes for them is passed over.
#[derive(Debug, Default)]
pub(super) struct OrphanedRooms {
    /// Requests to enter a room that were given up on, and may have been granted.
    joins: BTreeSet<u32>,
    /// Rooms that were left, and for which the last word has not come.
    rooms: BTreeSet<u32>,
}

impl OrphanedRooms {
    fn are_none(&self) -> bool {
        self.joins.is_empty() && self.rooms.is_empty()
    }

    fn add_join(&mut self, request: u32) {
        add(&mut self.joins, request);
    }

    fn add_room(&mut self, room: u32) {
        add(&mut self.rooms, room);
    }
}

/// Numbers are given in rising order, so that the least is the oldest.
fn add(to: &mut BTreeSet<u32>, number: u32) {
    to.insert(number);
    if to.len() > STRANGERS_MAX {
        to.pop_first();
    }
}

impl Session {
    /// A message came that can't be read. Where no room is joined there is nothing that could be
    /// mended, and nothing more is believed.
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
            // It is the same question still, and how long its answer takes counts from when it was
            // first put.
            let _ = self.tell(&ClientMessage::Ping { nonce });
        }
        Ok(())
    }

    /// Any request may have been answered by what could not be read. Nobody learns whether, so
    /// nobody waits.
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
        // A room that is being left is left: that is what was asked, and what else comes for it is
        // nobody's.
        for (request, room) in left {
            if self.rooms.left(room).is_ok() {
                self.orphaned_rooms.add_room(room);
            }
            handler.left(room, Some(request), ErrorCode::Left, "");
        }
    }

    /// Whether a message is about a room that nobody here knows of, or enters one. It is passed
    /// over, and the room left.
    #[inline]
    pub(super) fn is_strange(&mut self, message: &ServerMessage<'_>) -> bool {
        !self.orphaned_rooms.are_none() && self.passes_over(message)
    }

    fn passes_over(&mut self, message: &ServerMessage<'_>) -> bool {
        match *message {
            ServerMessage::Joined { request, room, .. } => {
                let is_strange =
                    !self.rooms.knows(room) && self.orphaned_rooms.joins.remove(&request);
                if is_strange {
                    self.leave_unasked(room);
                }
                is_strange
            }
            ServerMessage::Error { request: Some(request), .. } => {
                self.orphaned_rooms.joins.remove(&request);
                false
            }
            // A room may be over before a word of it came that could be read.
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
                // What was lost may have been the word that this room was entered.
                let is_strange = !self.rooms.knows(room)
                    && self.orphaned_rooms.rooms.len() < STRANGERS_MAX
                    && !self.orphaned_rooms.joins.is_empty();
                if is_strange {
                    self.leave_unasked(room);
                }
                is_strange
            }
            _ => false,
        }
    }

    /// A room answered that this client is not in it. If that is news, the word of it was lost.
    pub(super) fn turned_out<H: Handler>(
        &mut self,
        room: u32,
        code: ErrorCode,
        text: &str,
        handler: &mut H,
    ) {
        if !self.rooms.waits(room) || self.rooms.left(room).is_err() {
            return;
        }
        // Should the word be the room's own, and no more than a word, then this makes it true.
        self.leave_unasked(room);
        for request in self.requests.give_up_room(room) {
            handler.failed(request, &Failure::Left { code, text: Cow::Borrowed(text) });
        }
        handler.left(room, None, code, text);
    }

    /// Leaves a room on nobody's behalf: the answer is passed over.
    fn leave_unasked(&mut self, room: u32) {
        self.orphaned_rooms.add_room(room);
        let request = self.requests.pass();
        // A client that is saying goodbye leaves all rooms.
        let _ = self.tell(&ClientMessage::Leave { request, room });
    }
}
