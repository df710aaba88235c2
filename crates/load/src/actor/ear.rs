//! Hears what the node answers to a connection.

use playfield_client::session::{Event, Failure, OutOfStep, UpdateKind};
use playfield_client::{RequestNumber, RoomNumber};
use playfield_wire::server;

use super::{Actor, Asked, NOWHERE, Numbers, What};
use crate::copies::{Seat, SeatCopy};
use crate::engine::Shared;

/// Hears what the node answers to one connection.
pub(crate) struct Ear<'a> {
    pub(crate) actor: &'a mut Actor,
    pub(crate) shared: &'a mut Shared,
    pub(crate) now: u64,
}

impl Ear<'_> {
    /// A message was answered.
    fn replied(&mut self, timing: u32, asked: &Asked) {
        self.shared.counts.replies += 1;
        self.shared.replied(timing, self.now - asked.due);
        if asked.is_awaited {
            self.actor.go_on(self.now);
        }
    }
}

impl Ear<'_> {
    /// Takes what has happened. Returns a room that was entered, with the copy of its state, if one
    /// is to be kept.
    pub(crate) fn hear(&mut self, event: Event<'_>) -> Option<(RoomNumber, SeatCopy)> {
        match event {
            Event::Update { room, kind, version, .. } => self.updated(room, kind, version),
            Event::Reply(reply) => self.reply(&reply),
            Event::Event(_) => self.shared.counts.events += 1,
            Event::Publication(subscription, publication) => {
                self.delivered(subscription, &publication);
            }
            Event::Command(command) => self.commanded(command.command, &command.payload),
            Event::Published(published) => self.published(&published),
            Event::Presence(..) => self.shared.counts.presences += 1,
            Event::Failed { request, failure } => self.failed(request, &failure),
            Event::Error(error) => self.error(&error),
            Event::Checked { .. } => self.shared.counts.compared += 1,
            Event::OutOfStep { why, .. } => self.out_of_step(&why),
            Event::Welcome(_) => self.welcome(),
            Event::Joined(joined) => return self.joined(&joined),
            Event::Left(left) => self.left(&left),
            Event::Subscribed(subscription, subscribed) => {
                self.is_subscribed(subscription, &subscribed);
            }
            Event::Unsubscribed { subscription, code, text } => {
                self.is_unsubscribed(subscription, code, &text);
            }
            Event::PublicationsMissed { publications, .. } => {
                self.shared.counts.deliveries_lost += publications;
            }
            Event::PublicationIgnored { subscription, offset } => {
                self.delivered_again(subscription, offset);
            }
            Event::Registered { request, bytes, .. } => self.registered(request, bytes),
            Event::Pong { nonce, .. } => {
                if let Some(asked) = self.actor.answered(nonce, Numbers::Ping) {
                    self.shared.counts.pongs += 1;
                    self.shared.timings.ping.record(self.now - asked.due);
                }
            }
            Event::Goodbye(server::Goodbye { code, text }) => {
                let said = format!("the node said goodbye: {} {text}", code.name());
                self.actor.goodbye = Some(said.into());
            }
            Event::Closed { error: Some(error) } if self.actor.goodbye.is_none() => {
                self.actor.goodbye = Some(error.to_string().into());
            }
            _ => {}
        }
        None
    }

    fn joined(&mut self, joined: &server::Joined<'_>) -> Option<(RoomNumber, SeatCopy)> {
        let asked = self.actor.answered(joined.request.0.into(), Numbers::Request)?;
        let What::Join { room } = asked.what else { return None };
        self.shared.timings.join.record(self.now - asked.due);
        self.shared.counts.joined += 1;
        self.shared.counts.in_rooms += 1;
        let mut copy = None;
        if (self.actor.number as usize) < self.shared.copies {
            let schema = &self.shared.programs.rooms[room as usize].schema;
            copy = SeatCopy::new(schema, joined.player);
        }
        self.actor.rooms.push(Seat::new(room, joined));
        self.actor.go_on(self.now);
        self.actor.advance();
        copy.map(|copy| (joined.room, copy))
    }

    fn updated(&mut self, room: RoomNumber, kind: UpdateKind, version: u64) {
        self.came(kind);
        let now = self.now;
        let lateness = self.actor.seat(room).and_then(|seat| seat.lateness_ns(kind, version, now));
        if let Some(ns) = lateness.filter(|_| self.shared.is_going) {
            self.shared.timings.lateness.record(ns);
        }
    }

    fn came(&mut self, kind: UpdateKind) {
        match kind {
            UpdateKind::Snapshot => self.shared.counts.snapshots += 1,
            UpdateKind::Patch => self.shared.counts.patches += 1,
        }
    }

    fn out_of_step(&mut self, why: &OutOfStep) {
        match why {
            OutOfStep::Digest { .. } => self.shared.counts.compared += 1,
            OutOfStep::Patch(_) => self.came(UpdateKind::Patch),
            OutOfStep::Snapshot(_) | OutOfStep::NoSnapshot(_) => self.came(UpdateKind::Snapshot),
            _ => {}
        }
        self.shared.counts.wrong += 1;
        self.shared.problem(format!("a copy is wrong: {why}"));
    }

    fn welcome(&mut self) {
        self.actor.is_welcomed = true;
        self.shared.counts.connected += 1;
        self.shared.counts.open += 1;
        self.shared.timings.connect.record(self.now - self.actor.due);
        self.actor.due = self.now;
        let program = &self.shared.programs.programs[self.actor.program as usize];
        if !program.waits_for_all {
            self.actor.settle(self.shared);
        }
        if self.shared.is_going {
            let shared = &*self.shared;
            self.actor.go(shared, self.now);
        }
    }

    fn left(&mut self, left: &server::Left<'_>) {
        let &server::Left { request, room, code, ref text } = left;
        let count = self.actor.rooms.len();
        self.actor.rooms.retain(|seat| seat.room != room);
        self.shared.counts.in_rooms -= (count - self.actor.rooms.len()) as u64;
        let asked =
            request.and_then(|request| self.actor.answered(request.0.into(), Numbers::Request));
        if asked.is_some() {
            self.actor.go_on(self.now);
            self.actor.advance();
        } else if !self.shared.is_over {
            self.shared.counts.removed += 1;
            self.shared.problem(format!("removed from a room: {} {text}", code.name()));
        }
    }

    fn reply(&mut self, reply: &server::Reply<'_>) {
        let Some(asked) = self.actor.answered(reply.request.0.into(), Numbers::Request) else {
            return;
        };
        if let What::Message { timing } = asked.what {
            self.replied(timing, &asked);
        }
    }

    fn failed(&mut self, request: RequestNumber, failure: &Failure<'_>) {
        let Some(asked) = self.actor.answered(request.0.into(), Numbers::Request) else { return };
        match (asked.what, failure) {
            (What::Join { .. }, Failure::Refused { .. }) => {
                self.shared.counts.joins_refused += 1;
                self.shared.problem(format!("a join was refused: {failure}"));
                self.actor.end(self.shared);
                return;
            }
            (What::Register { .. }, Failure::Refused { .. }) => {
                self.shared.counts.registrations_refused += 1;
                self.shared.problem(format!("a registration was refused: {failure}"));
                self.actor.end(self.shared);
                return;
            }
            (What::Join { .. } | What::Register { .. }, _) => return self.actor.end(self.shared),
            (What::Message { timing } | What::Publish { timing, .. }, Failure::Refused { .. }) => {
                self.shared.counts.refused += 1;
                self.shared.replied(timing, self.now - asked.due);
                self.shared.problem(format!("a request was refused: {failure}"));
            }
            (What::Message { .. } | What::Publish { .. }, _) => self.shared.counts.abandoned += 1,
            (What::Leave, _) => self.actor.at += 1,
            (What::Ping | What::Subscribe { .. }, _) => {}
        }
        if asked.is_awaited {
            self.actor.go_on(self.now);
        }
    }

    fn error(&mut self, error: &server::Error<'_>) {
        let &server::Error { room, code, ref text, .. } = error;
        // Without a room it is a publication or a report, or about the connection.
        let is_device = self.actor.registered_at != NOWHERE;
        let is_refusal = room.is_some() || is_device || !self.actor.published.is_empty();
        self.shared.counts.sends_refused += u64::from(is_refusal);
        self.shared.problem(format!("the node reported an error: {} {text}", code.name()));
    }

    fn published(&mut self, published: &server::Published) {
        let &server::Published { request, offset } = published;
        let Some(asked) = self.actor.answered(request.0.into(), Numbers::Request) else { return };
        if let What::Publish { timing, channel, epoch } = asked.what {
            self.shared.deliveries.confirmed(channel, epoch, offset);
            self.replied(timing, &asked);
        }
    }

    fn registered(&mut self, request: Option<RequestNumber>, bytes: bool) {
        self.check_answers(bytes);
        let asked =
            request.and_then(|number| self.actor.answered(number.0.into(), Numbers::Request));
        let Some(asked) = asked else { return };
        self.shared.counts.registered += 1;
        if let What::Register { timing } = asked.what {
            self.shared.replied(timing, self.now - asked.due);
        }
        self.actor.go_on(self.now);
        self.actor.advance();
    }
}
