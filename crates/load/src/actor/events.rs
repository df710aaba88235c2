//! Hears what the node answers to a connection.

use playfield_client::session::{Event, Failure, OutOfStep, UpdateKind};
use playfield_client::{RequestNumber, RoomNumber};
use playfield_wire::server;

use super::{Actor, Asked, NOWHERE, Numbers, What};
use crate::copies::{Seat, SeatCopy};
use crate::engine::Shared;

impl Actor {
    /// A message was answered.
    fn replied(&mut self, timing: u32, asked: &Asked, shared: &mut Shared, now: u64) {
        shared.counts.replies += 1;
        shared.replied(timing, now - asked.due);
        if asked.is_awaited {
            self.go_on(now);
        }
    }

    /// Takes what has happened. Returns a room that was entered, with the copy of its state, if one
    /// is to be kept.
    pub(crate) fn hear(
        &mut self,
        event: Event<'_>,
        shared: &mut Shared,
        now: u64,
    ) -> Option<(RoomNumber, SeatCopy)> {
        match event {
            Event::Update { room, kind, version, .. } => {
                self.updated(room, kind, version, shared, now);
            }
            Event::Reply(reply) => self.reply(&reply, shared, now),
            Event::Event(_) => shared.counts.events += 1,
            Event::Publication(subscription, publication) => {
                self.delivered(subscription, &publication, shared, now);
            }
            Event::Command(command) => self.commanded(command.command, &command.payload, shared),
            Event::Published(published) => self.published(&published, shared, now),
            Event::Presence(..) => shared.counts.presences += 1,
            Event::Failed { request, failure } => self.failed(request, &failure, shared, now),
            Event::Error(error) => self.error(&error, shared),
            Event::Checked { .. } => shared.counts.compared += 1,
            Event::OutOfStep { why, .. } => out_of_step(&why, shared),
            Event::Welcome(_) => self.welcome(shared, now),
            Event::Joined(joined) => return self.joined(&joined, shared, now),
            Event::Redirected(redirect) => self.redirected(&redirect, shared, now),
            Event::Left(left) => self.left(&left, shared, now),
            Event::Subscribed(subscription, subscribed) => {
                self.is_subscribed(subscription, &subscribed, shared, now);
            }
            Event::Unsubscribed { subscription, code, text } => {
                self.is_unsubscribed(subscription, code, &text, shared);
            }
            Event::PublicationsMissed { publications, .. } => {
                shared.counts.deliveries_lost += publications;
            }
            Event::PublicationIgnored { subscription, offset } => {
                self.delivered_again(subscription, offset, shared);
            }
            Event::Registered { request, bytes, .. } => {
                self.registered(request, bytes, shared, now);
            }
            Event::Pong { nonce, .. } => {
                if let Some(asked) = self.answered(nonce, Numbers::Ping) {
                    shared.counts.pongs += 1;
                    shared.timings.ping.record(now - asked.due);
                }
            }
            Event::Goodbye(server::Goodbye { code, text }) => {
                let said = format!("the node said goodbye: {} {text}", code.name());
                self.goodbye = Some(said.into());
            }
            Event::Closed { error: Some(error) } if self.goodbye.is_none() => {
                self.goodbye = Some(error.to_string().into());
            }
            _ => {}
        }
        None
    }

    fn joined(
        &mut self,
        joined: &server::Joined<'_>,
        shared: &mut Shared,
        now: u64,
    ) -> Option<(RoomNumber, SeatCopy)> {
        let asked = self.answered(joined.request.0.into(), Numbers::Request)?;
        let What::Join { room } = asked.what else { return None };
        self.moving = None;
        shared.timings.join.record(now - asked.due);
        shared.counts.joined += 1;
        shared.counts.in_rooms += 1;
        let mut copy = None;
        if (self.number as usize) < shared.copies {
            let schema = &shared.programs.rooms[room as usize].schema;
            copy = SeatCopy::new(schema, joined.player, shared.profiler.as_ref());
        }
        self.rooms.push(Seat::new(room, joined));
        self.go_on(now);
        self.advance();
        copy.map(|copy| (joined.room, copy))
    }

    fn updated(
        &mut self,
        room: RoomNumber,
        kind: UpdateKind,
        version: u64,
        shared: &mut Shared,
        now: u64,
    ) {
        came(kind, shared);
        let Some(seat) = self.seat(room) else { return };
        let (lateness, interval) = (seat.lateness_ns(kind, version, now), seat.interval_ns(now));
        if now >= shared.warm_at {
            lateness.into_iter().for_each(|ns| shared.timings.lateness.record(ns));
            interval.into_iter().for_each(|ns| shared.timings.interval.record(ns));
        }
    }

    fn welcome(&mut self, shared: &mut Shared, now: u64) {
        // Not by the node that it has moved to.
        if std::mem::replace(&mut self.is_welcomed, true) {
            return;
        }
        shared.counts.connected += 1;
        shared.counts.open += 1;
        shared.timings.connect.record(now - self.due);
        self.due = now;
        let program = &shared.programs.programs[self.program as usize];
        if !program.waits_for_all {
            self.settle(shared);
        }
        if shared.is_going {
            self.go(shared, now);
        }
    }

    fn left(&mut self, left: &server::Left<'_>, shared: &mut Shared, now: u64) {
        let &server::Left { request, room, code, ref text } = left;
        let count = self.rooms.len();
        self.rooms.retain(|seat| seat.room != room);
        shared.counts.in_rooms -= (count - self.rooms.len()) as u64;
        let asked = request.and_then(|request| self.answered(request.0.into(), Numbers::Request));
        if asked.is_some() {
            self.go_on(now);
            self.advance();
        } else if !shared.is_over {
            shared.counts.removed += 1;
            shared.problem(format!("removed from a room: {} {text}", code.name()));
        }
    }

    fn reply(&mut self, reply: &server::Reply<'_>, shared: &mut Shared, now: u64) {
        let Some(asked) = self.answered(reply.request.0.into(), Numbers::Request) else { return };
        if let What::Message { timing } = asked.what {
            self.replied(timing, &asked, shared, now);
        }
    }

    fn failed(
        &mut self,
        request: RequestNumber,
        failure: &Failure<'_>,
        shared: &mut Shared,
        now: u64,
    ) {
        let Some(asked) = self.answered(request.0.into(), Numbers::Request) else { return };
        match (asked.what, failure) {
            (What::Join { .. }, _) if self.moves_on(failure, shared, now) => return,
            (What::Join { .. }, Failure::Refused { .. }) => {
                shared.counts.joins_refused += 1;
                shared.problem(format!("a join was refused: {failure}"));
                self.end(shared);
                return;
            }
            (What::Register { .. }, Failure::Refused { .. }) => {
                shared.counts.registrations_refused += 1;
                shared.problem(format!("a registration was refused: {failure}"));
                self.end(shared);
                return;
            }
            (What::Join { .. } | What::Register { .. }, _) => return self.end(shared),
            (What::Message { timing } | What::Publish { timing, .. }, Failure::Refused { .. }) => {
                shared.counts.refused += 1;
                shared.replied(timing, now - asked.due);
                shared.problem(format!("a request was refused: {failure}"));
            }
            (What::Message { .. } | What::Publish { .. }, _) => shared.counts.abandoned += 1,
            (What::Leave, _) => self.at += 1,
            (What::Ping | What::Subscribe { .. }, _) => {}
        }
        if asked.is_awaited {
            self.go_on(now);
        }
    }

    fn error(&mut self, error: &server::Error<'_>, shared: &mut Shared) {
        let &server::Error { room, code, ref text, .. } = error;
        // Without a room it is a publication or a report, or about the connection.
        let is_device = self.registered_at != NOWHERE;
        let is_refusal = room.is_some() || is_device || !self.published.is_empty();
        shared.counts.sends_refused += u64::from(is_refusal);
        shared.problem(format!("the node reported an error: {} {text}", code.name()));
    }

    fn published(&mut self, published: &server::Published, shared: &mut Shared, now: u64) {
        let &server::Published { request, offset } = published;
        let Some(asked) = self.answered(request.0.into(), Numbers::Request) else { return };
        if let What::Publish { timing, channel, epoch } = asked.what {
            shared.deliveries.confirmed(channel, epoch, offset);
            self.replied(timing, &asked, shared, now);
        }
    }

    fn registered(
        &mut self,
        request: Option<RequestNumber>,
        bytes: bool,
        shared: &mut Shared,
        now: u64,
    ) {
        self.check_answers(bytes, shared);
        let asked = request.and_then(|number| self.answered(number.0.into(), Numbers::Request));
        let Some(asked) = asked else { return };
        shared.counts.registered += 1;
        if let What::Register { timing } = asked.what {
            shared.replied(timing, now - asked.due);
        }
        self.go_on(now);
        self.advance();
    }
}

fn came(kind: UpdateKind, shared: &mut Shared) {
    match kind {
        UpdateKind::Snapshot => shared.counts.snapshots += 1,
        UpdateKind::Patch => shared.counts.patches += 1,
    }
}

fn out_of_step(why: &OutOfStep, shared: &mut Shared) {
    match why {
        OutOfStep::Digest { .. } => shared.counts.compared += 1,
        OutOfStep::Patch(_) => came(UpdateKind::Patch, shared),
        OutOfStep::Snapshot(_) | OutOfStep::NoSnapshot(_) => came(UpdateKind::Snapshot, shared),
        _ => {}
    }
    shared.counts.wrong += 1;
    shared.problem(format!("a copy is wrong: {why}"));
}
