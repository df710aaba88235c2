//! Handles the node's messages, and checks that they follow the protocol.

use std::borrow::Cow;

use playfield_wire::client::{self, ClientMessage};
use playfield_wire::server::{self, ServerMessage, Versions};
use playfield_wire::{ErrorCode, PROTOCOL, RequestNumber, RoomNumber};

use super::protocol::{MESSAGE_BYTES_MAX, Protocol};
use super::report::Report;
use super::requests::Asked;
use super::rooms::Outcome;
use super::{ClientError, Event, FORMAT, Failure, OutOfStep, Unusable, Update, UpdateKind};

impl Protocol {
    /// A message from the node. Returns whether it is an event, which comes after those that wait.
    #[inline]
    pub(super) fn message(&mut self, body: &[u8]) -> Result<Report, ClientError> {
        self.pulse.heard();
        let message = ServerMessage::decode(FORMAT, body).map_err(ClientError::Message)?;
        if !self.welcomed {
            check_before_welcome(&message)?;
        }
        if !matches!(message, ServerMessage::Pong(_)) {
            self.pulse.spoke();
        }
        // An error before the welcome belongs to no session.
        let is_counted = self.welcomed && message.is_counted();
        let mut report = Report::Nothing;
        if !self.is_abandoned(&message) {
            report = self.handle(&message)?;
        }
        if is_counted {
            self.resumption.handled(body.len(), self.pulse.now());
            self.acknowledge_switch();
        }
        if self.events.is_empty() {
            return Ok(report.with_place(&message, body));
        }
        self.events.extend(Event::of(message, &report).map(Event::into_owned));
        Ok(Report::Nothing)
    }

    #[inline]
    fn handle(&mut self, message: &ServerMessage<'_>) -> Result<Report, ClientError> {
        match message {
            &ServerMessage::Patch(server::Patch { room, base, version, ref body }) => {
                let copy = self.rooms.named(room, "a patch")?;
                let verdict = copy.check_patch(Versions { base, version });
                let update = Update { kind: UpdateKind::Patch, version, body };
                let outcome = copy.update(verdict, &update);
                self.updated(room, outcome)
            }
            ServerMessage::Reply(reply) => {
                // The reply to a request that failed when its room ended is dropped.
                let mut of = None;
                let is_awaited = self.requests.answered(reply.request, "a reply", |asked| {
                    of = Some(asked);
                    matches!(asked, Asked::Message { .. } | Asked::Report)
                })?;
                if let Some(Asked::Message { room, index }) = of
                    && is_awaited
                    && self.switched_reply(room, index, reply)?
                {
                    return Ok(Report::Nothing);
                }
                Ok(Report::this_if(is_awaited))
            }
            ServerMessage::Event(event) => {
                let missed = self.rooms.event(event.room, event.sequence)?;
                if missed > 0 {
                    self.events.push_back(Event::Missed { room: event.room, events: missed });
                }
                let is_told = self.switched_event(event)?;
                Ok(Report::this_if(!is_told))
            }
            &ServerMessage::Snapshot(server::Snapshot { room, epoch, version, ref body }) => {
                let copy = self.rooms.named(room, "a snapshot")?;
                let verdict = copy.check_snapshot(epoch, version);
                let update = Update { kind: UpdateKind::Snapshot, version, body };
                let outcome = copy.update(verdict, &update);
                self.updated(room, outcome)
            }
            &ServerMessage::Check(server::Check { room, version, digest }) => {
                match self.rooms.named(room, "a check")?.check(version, digest) {
                    None => Ok(Report::Nothing),
                    Some(true) => {
                        self.events.push_back(Event::Checked { room, version });
                        Ok(Report::Nothing)
                    }
                    Some(false) => self.repair(room, OutOfStep::Digest { version }),
                }
            }
            &ServerMessage::Ping(server::Ping { nonce }) => {
                // A client that is leaving, or can't send even a pong, need not answer.
                let _ = self.send_message(&ClientMessage::Pong(client::Pong { nonce }));
                Ok(Report::Nothing)
            }
            ServerMessage::Ack(ack) => {
                self.resumption.acknowledged(ack.received).map(|()| Report::Nothing)
            }
            &ServerMessage::Pong(server::Pong { nonce, time_us }) => {
                if let Some(round_trip) = self.pulse.pong(nonce, time_us) {
                    self.events.push_back(Event::Pong { nonce, round_trip });
                }
                Ok(Report::Nothing)
            }
            ServerMessage::Joined(joined) => self.joined(joined),
            ServerMessage::Listed(listed) => self.answer(listed.request, "a list", Asked::List),
            ServerMessage::Schema(schema) => {
                let is_awaited = match schema.request {
                    Some(request) => self.is_answered(request, "a schema", Asked::Schema)?,
                    None => true,
                };
                Ok(Report::this_if(is_awaited && self.schema(schema)))
            }
            ServerMessage::Left(left) => self.left(left),
            ServerMessage::Publication(publication) => Ok(self.publication(publication)),
            ServerMessage::Subscribed(subscribed) => {
                self.subscribed(subscribed).map(|()| Report::Nothing)
            }
            ServerMessage::Unsubscribed(unsubscribed) => {
                self.unsubscribed(unsubscribed);
                Ok(Report::Nothing)
            }
            ServerMessage::Presence(presence) => Ok(self.presence(presence)),
            ServerMessage::Published(published) => {
                self.answer(published.request, "a publication's offset", Asked::Publish)
            }
            ServerMessage::Members(members) => {
                self.answer(members.request, "members", Asked::Members)
            }
            ServerMessage::History(history) => {
                self.answer(history.request, "a history", Asked::History)
            }
            ServerMessage::Registered(registered) => {
                self.registered(registered).map(|()| Report::Nothing)
            }
            ServerMessage::Command(_) => Ok(Report::This),
            ServerMessage::Redirect(redirect) => self.redirected(redirect),
            ServerMessage::Error(error) => self.refused(error),
            ServerMessage::Goodbye(goodbye) if self.is_passing(goodbye.code) => {
                let (code, text) = (goodbye.code, goodbye.text.to_string());
                self.resumption.turned_away(code);
                let retry_after = self.resumption.retry_after;
                Err(ClientError::TurnedAway { code, text, retry_after })
            }
            ServerMessage::Goodbye(goodbye) => {
                self.events.push_back(Event::Goodbye(goodbye.to_static()));
                self.finish(None);
                Ok(Report::Nothing)
            }
            ServerMessage::Welcome(welcome) => self.welcome(welcome).map(|()| Report::Nothing),
        }
    }

    /// An update was applied, or not.
    #[inline]
    fn updated(&mut self, room: RoomNumber, outcome: Outcome) -> Result<Report, ClientError> {
        match outcome {
            Outcome::Applied => {
                self.resumption.shown();
                self.tell_entered(room);
                Ok(Report::This)
            }
            Outcome::Skipped => {
                self.resumption.shown();
                Ok(Report::Nothing)
            }
            Outcome::OutOfStep(why) => self.repair(room, why),
            Outcome::NoSnapshot(OutOfStep::NoSnapshot(error)) if self.rooms.is_entered(room) => {
                self.rooms.fell_out(room)?;
                self.unusable(room, Unusable::State(error));
                Ok(Report::Nothing)
            }
            Outcome::NoSnapshot(why) => {
                self.resumption.shown();
                // The next one would be the same, so the program decides whether to ask for it.
                self.events.push_back(Event::OutOfStep { room, why });
                self.rooms.fell_out(room).map(|()| Report::Nothing)
            }
        }
    }

    /// An answer is reported if the request waits for it.
    fn answer(
        &mut self,
        request: RequestNumber,
        message: &'static str,
        expected: Asked,
    ) -> Result<Report, ClientError> {
        self.is_answered(request, message, expected).map(Report::this_if)
    }

    /// Returns whether a request waits for this answer.
    fn is_answered(
        &mut self,
        request: RequestNumber,
        message: &'static str,
        expected: Asked,
    ) -> Result<bool, ClientError> {
        self.requests.answered(request, message, |asked| asked == expected)
    }

    /// An update can't be used: reports it and asks for a snapshot, but not forever.
    fn repair(&mut self, room: RoomNumber, why: OutOfStep) -> Result<Report, ClientError> {
        self.events.push_back(Event::OutOfStep { room, why });
        self.rooms.fell_out(room)?;
        // A client that is leaving needs no snapshot.
        let _ = self.resync(room);
        Ok(Report::Nothing)
    }

    fn refused(&mut self, error: &server::Error<'_>) -> Result<Report, ClientError> {
        let retry_after = error.retry_after();
        let Some(request) = error.request else {
            if retry_after.is_some() && error.room.is_none() && !self.welcomed {
                // A goodbye may follow.
                self.resumption.retry_after = retry_after;
            }
            return Ok(Report::This);
        };
        let mut asked_room = None;
        if self.refused_subscription(request, error)
            || !self.requests.answered(request, "an error", |asked| {
                asked_room = asked.room();
                true
            })?
        {
            return Ok(Report::Nothing);
        }
        let (code, text) = (error.code, Cow::Borrowed(&*error.text));
        let failure = Failure::Refused { code, text, retry_after };
        if !self.registration_failed(request, &failure) {
            self.failed(request, failure.to_static());
        }
        let ended = asked_room.filter(|_| error.code == ErrorCode::NotJoined);
        if let Some(room) = ended.filter(|room| self.rooms.knows(*room)) {
            // The node had to forget its `left`.
            let (code, text) = (error.code, Cow::Borrowed(&*error.text));
            let left = server::Left { request: None, room, code, text };
            self.left(&left)?;
            self.events.push_back(Event::Left(left.to_static()));
        }
        Ok(Report::Nothing)
    }

    /// The room that was asked for, or the session, is at another node.
    fn redirected(&mut self, redirect: &server::Redirect<'_>) -> Result<Report, ClientError> {
        if !self.resumption.greeting.redirects {
            return Err(ClientError::OutOfTurn { message: "a redirect, which was not asked for," });
        }
        if !self.welcomed {
            let addresses = redirect.addresses.iter().map(ToString::to_string).collect();
            return Err(ClientError::Redirected { addresses });
        }
        let is_awaited = self.is_answered(redirect.request, "a redirect", Asked::Join)?;
        self.entering.redirected(redirect.request);
        Ok(Report::this_if(is_awaited))
    }

    fn joined(&mut self, joined: &server::Joined<'_>) -> Result<Report, ClientError> {
        self.rooms.joined(joined)?;
        self.pulse.expect(self.rooms.silence(), self.rooms.quiet());
        if self.is_answered(joined.request, "a room", Asked::Join)? {
            return Ok(self.granted(joined));
        }
        // An abandoned request is remembered, so this one was answered before.
        Err(ClientError::UnknownRequest { request: joined.request })
    }

    fn left(&mut self, left: &server::Left<'_>) -> Result<Report, ClientError> {
        let &server::Left { request, room, code, ref text } = left;
        self.rooms.left(room)?;
        self.pulse.expect(self.rooms.silence(), self.rooms.quiet());
        if let Some(request) = request {
            self.is_answered(request, "a left", Asked::Leave { room })?;
        }
        for request in self.requests.give_up_room(room) {
            self.failed(request, Failure::Left { code, text: Cow::Owned(text.to_string()) });
        }
        Ok(Report::This)
    }

    fn welcome(&mut self, welcome: &server::Welcome<'_>) -> Result<(), ClientError> {
        if std::mem::replace(&mut self.welcomed, true) {
            return Err(ClientError::OutOfTurn { message: "a second welcome" });
        }
        if welcome.protocol != PROTOCOL {
            return Err(ClientError::Protocol { protocol: welcome.protocol });
        }
        self.pulse.welcomed(welcome.heartbeat());
        self.bytes_max =
            usize::try_from(welcome.max_message_bytes).unwrap_or(usize::MAX).min(MESSAGE_BYTES_MAX);
        self.opened(welcome)?;
        self.pulse.expect(self.rooms.silence(), self.rooms.quiet());
        Ok(())
    }
}

/// A node may refuse the hello without a welcome. Anything else must come after the welcome.
fn check_before_welcome(message: &ServerMessage<'_>) -> Result<(), ClientError> {
    let message = match message {
        ServerMessage::Welcome(_)
        | ServerMessage::Error(_)
        | ServerMessage::Goodbye(_)
        | ServerMessage::Ping(_)
        | ServerMessage::Pong(_)
        | ServerMessage::Ack(_)
        | ServerMessage::Redirect(_) => return Ok(()),
        ServerMessage::Joined(_) => "a room before the welcome",
        ServerMessage::Listed(_) => "a list before the welcome",
        ServerMessage::Schema(_) => "a schema before the welcome",
        ServerMessage::Left(_) => "a left before the welcome",
        ServerMessage::Reply(_) => "a reply before the welcome",
        ServerMessage::Event(_) => "an event before the welcome",
        ServerMessage::Snapshot(_) => "a snapshot before the welcome",
        ServerMessage::Patch(_) => "a patch before the welcome",
        ServerMessage::Check(_) => "a check before the welcome",
        ServerMessage::Subscribed(_)
        | ServerMessage::Publication(_)
        | ServerMessage::Unsubscribed(_)
        | ServerMessage::Presence(_)
        | ServerMessage::Published(_)
        | ServerMessage::Members(_)
        | ServerMessage::History(_) => "a message of a channel before the welcome",
        ServerMessage::Registered(_) | ServerMessage::Command(_) => {
            "a message to a device before the welcome"
        }
    };
    Err(ClientError::OutOfTurn { message })
}
