//! Hears what the node answers to a connection.

use std::time::Duration;

use playfield_client::core::{
    ClientError, Failure, Handler, OutOfStep, Subscribed, SubscriptionNumber, Update, UpdateKind,
};
use playfield_client::{ErrorCode, RequestNumber, RoomNumber};
use playfield_wire::{DecodeError, server};

use super::{Actor, Asked, NOWHERE, Numbers, What};
use crate::copies::Seat;
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

impl Handler for Ear<'_> {
    fn welcome(&mut self, _: &server::Welcome<'_>) {
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

    fn joined(&mut self, joined: &server::Joined<'_>) {
        let Some(asked) = self.actor.answered(joined.request.0.into(), Numbers::Request) else {
            return;
        };
        let What::Join { room } = asked.what else { return };
        self.shared.timings.join.record(self.now - asked.due);
        self.shared.counts.joined += 1;
        self.shared.counts.in_rooms += 1;
        let mut seat = Seat::new(room, joined);
        if (self.actor.number as usize) < self.shared.copies {
            let schema = &self.shared.programs.rooms[room as usize].schema;
            seat.keep_copy(schema, self.shared.programs.format);
        }
        self.actor.rooms.push(seat);
        self.actor.go_on(self.now);
        self.actor.advance();
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
                self.shared.problem(format!("a join was refused: {}", explained(failure)));
                self.actor.end(self.shared);
                return;
            }
            (What::Register { .. }, Failure::Refused { .. }) => {
                self.shared.counts.registrations_refused += 1;
                self.shared.problem(format!("a registration was refused: {}", explained(failure)));
                self.actor.end(self.shared);
                return;
            }
            (What::Join { .. } | What::Register { .. }, _) => return self.actor.end(self.shared),
            (What::Message { timing } | What::Publish { timing, .. }, Failure::Refused { .. }) => {
                self.shared.counts.refused += 1;
                self.shared.replied(timing, self.now - asked.due);
                self.shared.problem(format!("a request was refused: {}", explained(failure)));
            }
            (What::Message { .. } | What::Publish { .. }, _) => self.shared.counts.abandoned += 1,
            (What::Leave, _) => self.actor.at += 1,
            (What::Ping | What::Subscribe { .. }, _) => {}
        }
        if asked.is_awaited {
            self.actor.go_on(self.now);
        }
    }

    fn event(&mut self, _: &server::Event<'_>) {
        self.shared.counts.events += 1;
    }

    fn update(&mut self, room: RoomNumber, update: &Update<'_>) -> Result<(), DecodeError> {
        match update.kind {
            UpdateKind::Snapshot => self.shared.counts.snapshots += 1,
            UpdateKind::Patch => self.shared.counts.patches += 1,
        }
        let now = self.now;
        let Some(seat) = self.actor.seat(room) else { return Ok(()) };
        let lateness = seat.lateness_ns(update, now);
        if let Some(ns) = lateness.filter(|_| self.shared.is_going) {
            self.shared.timings.lateness.record(ns);
        }
        seat.apply(update)
    }

    fn check(&mut self, room: RoomNumber, digest: u64) -> bool {
        let is_right = self.actor.seat(room).and_then(|seat| seat.check(digest));
        self.shared.counts.compared += u64::from(is_right.is_some());
        is_right.unwrap_or(true)
    }

    fn out_of_step(&mut self, _: RoomNumber, why: &OutOfStep) {
        self.shared.counts.wrong += 1;
        self.shared.problem(format!("a copy is wrong: {why}"));
    }

    fn error(&mut self, error: &server::Error<'_>) {
        let &server::Error { room, code, ref text, .. } = error;
        // Without a room it is a publication or a report, or about the connection.
        let is_device = self.actor.registered_at != NOWHERE;
        let is_refusal = room.is_some() || is_device || !self.actor.published.is_empty();
        self.shared.counts.sends_refused += u64::from(is_refusal);
        self.shared.problem(format!("the node reported an error: {} {text}", code.name()));
    }

    fn subscribed(&mut self, subscription: SubscriptionNumber, subscribed: &Subscribed) {
        self.is_subscribed(subscription, subscribed);
    }

    fn unsubscribed(&mut self, subscription: SubscriptionNumber, code: ErrorCode, text: &str) {
        self.is_unsubscribed(subscription, code, text);
    }

    fn publication(
        &mut self,
        subscription: SubscriptionNumber,
        publication: &server::Publication<'_>,
    ) {
        self.delivered(subscription, publication);
    }

    fn publications_missed(&mut self, _: SubscriptionNumber, publications: u64) {
        self.shared.counts.deliveries_lost += publications;
    }

    fn publication_ignored(&mut self, subscription: SubscriptionNumber, offset: u64) {
        self.delivered_again(subscription, offset);
    }

    fn presence(&mut self, _: SubscriptionNumber, _: &server::Presence<'_>) {
        self.shared.counts.presences += 1;
    }

    fn published(&mut self, published: &server::Published) {
        let &server::Published { request, offset } = published;
        let Some(asked) = self.actor.answered(request.0.into(), Numbers::Request) else { return };
        if let What::Publish { timing, channel, epoch } = asked.what {
            self.shared.deliveries.confirmed(channel, epoch, offset);
            self.replied(timing, &asked);
        }
    }

    fn registered(&mut self, request: Option<RequestNumber>, _: bool, bytes: bool) {
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

    fn command(&mut self, command: &server::Command<'_>) {
        self.commanded(command.command, &command.payload);
    }

    fn pong(&mut self, nonce: u64, _: Duration) {
        let Some(asked) = self.actor.answered(nonce, Numbers::Ping) else { return };
        self.shared.counts.pongs += 1;
        self.shared.timings.ping.record(self.now - asked.due);
    }

    fn goodbye(&mut self, goodbye: &server::Goodbye<'_>) {
        let server::Goodbye { code, text } = goodbye;
        self.actor.goodbye = Some(format!("the node said goodbye: {} {text}", code.name()).into());
    }

    fn closed(&mut self, error: Option<&ClientError>) {
        if let Some(error) = error
            && self.actor.goodbye.is_none()
        {
            self.actor.goodbye = Some(error.to_string().into());
        }
    }
}

fn explained(failure: &Failure<'_>) -> String {
    match failure {
        Failure::Refused { code, text, .. } | Failure::Left { code, text } => {
            format!("{} {text}", code.name())
        }
        Failure::Lost => "the answer was lost".into(),
        Failure::Closed => "the connection ended".into(),
    }
}
