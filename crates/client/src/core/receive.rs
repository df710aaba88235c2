//! Handles the node's messages, and checks that they follow the protocol.

use std::borrow::Cow;

use playfield_wire::client::{self, ClientMessage};
use playfield_wire::server::{self, ServerMessage, Versions};
use playfield_wire::{PROTOCOL, RequestNumber, RoomNumber};

use super::requests::Asked;
use super::session::{MESSAGE_BYTES_MAX, Session};
use super::{ClientError, Failure, Handler, OutOfStep, Update, UpdateKind};

impl Session {
    /// A message from the node.
    #[inline]
    pub(super) fn message<H: Handler>(
        &mut self,
        body: &[u8],
        handler: &mut H,
    ) -> Result<(), ClientError> {
        self.pulse.heard();
        let message = ServerMessage::decode(self.format(), body).map_err(ClientError::Message)?;
        if !self.welcomed {
            check_before_welcome(&message)?;
        }
        if !matches!(message, ServerMessage::Pong(_)) {
            self.pulse.spoke();
        }
        // An error before the welcome belongs to no session.
        let is_counted = self.welcomed && message.is_counted();
        if !self.is_abandoned(&message) {
            self.handle(message, handler)?;
        }
        if is_counted {
            self.resumption.handled(body.len(), self.pulse.now());
        }
        Ok(())
    }

    #[inline]
    fn handle<H: Handler>(
        &mut self,
        message: ServerMessage<'_>,
        handler: &mut H,
    ) -> Result<(), ClientError> {
        match message {
            ServerMessage::Patch(patch) => {
                let server::Patch { room, base, version, ref body } = patch;
                let copy = self.rooms.named(room, "a patch")?;
                let update = Update { kind: UpdateKind::Patch, version, body };
                let verdict = copy.check_patch(Versions { base, version });
                match copy.update(room, verdict, &update, handler)? {
                    None => {
                        self.resumption.shown();
                        Ok(())
                    }
                    Some(why) => self.repair(room, &why, handler),
                }
            }
            ServerMessage::Reply(reply) => self.reply(&reply, handler),
            ServerMessage::Event(event) => {
                let missed = self.rooms.event(event.room, event.sequence)?;
                if missed > 0 {
                    handler.missed(event.room, missed);
                }
                handler.event(&event);
                Ok(())
            }
            ServerMessage::Snapshot(snapshot) => {
                let server::Snapshot { room, epoch, version, ref body } = snapshot;
                let copy = self.rooms.named(room, "a snapshot")?;
                let update = Update { kind: UpdateKind::Snapshot, version, body };
                let verdict = copy.check_snapshot(epoch, version);
                match copy.update(room, verdict, &update, handler)? {
                    None => {
                        self.resumption.shown();
                        Ok(())
                    }
                    Some(why) => self.repair(room, &why, handler),
                }
            }
            ServerMessage::Check(server::Check { room, version, digest }) => {
                let is_due = self.rooms.named(room, "a check")?.is_at(version);
                if is_due && !handler.check(room, digest) {
                    return self.repair(room, &OutOfStep::Digest { version }, handler);
                }
                Ok(())
            }
            ServerMessage::Ping(server::Ping { nonce }) => {
                // A client that is leaving, or can't send even a pong, need not answer.
                let _ = self.send_message(&ClientMessage::Pong(client::Pong { nonce }));
                Ok(())
            }
            ServerMessage::Ack(ack) => self.resumption.acknowledged(ack.received),
            ServerMessage::Pong(server::Pong { nonce, time_us }) => {
                if let Some(round_trip) = self.pulse.pong(nonce, time_us) {
                    handler.pong(nonce, round_trip);
                }
                Ok(())
            }
            ServerMessage::Joined(joined) => self.joined(&joined, handler),
            ServerMessage::Listed(listed) => {
                if self.is_answered(listed.request, "a list", Asked::List)? {
                    handler.listed(&listed);
                }
                Ok(())
            }
            ServerMessage::Schema(schema) => {
                let asked = match schema.request {
                    Some(request) => self.is_answered(request, "a schema", Asked::Schema)?,
                    None => true,
                };
                if asked {
                    handler.schema(&schema);
                }
                Ok(())
            }
            ServerMessage::Left(left) => self.left(&left, handler),
            ServerMessage::Publication(publication) => {
                self.publication(&publication, handler);
                Ok(())
            }
            ServerMessage::Subscribed(subscribed) => self.subscribed(&subscribed, handler),
            ServerMessage::Unsubscribed(unsubscribed) => {
                self.unsubscribed(&unsubscribed, handler);
                Ok(())
            }
            ServerMessage::Presence(presence) => {
                self.presence(&presence, handler);
                Ok(())
            }
            ServerMessage::Published(published) => {
                let message = "a publication's offset";
                if self.is_answered(published.request, message, Asked::Publish)? {
                    handler.published(&published);
                }
                Ok(())
            }
            ServerMessage::Members(members) => {
                if self.is_answered(members.request, "members", Asked::Members)? {
                    handler.members(&members);
                }
                Ok(())
            }
            ServerMessage::History(history) => {
                if self.is_answered(history.request, "a history", Asked::History)? {
                    handler.history(&history);
                }
                Ok(())
            }
            ServerMessage::Registered(registered) => self.registered(&registered, handler),
            ServerMessage::Command(command) => {
                handler.command(&command);
                Ok(())
            }
            ServerMessage::Error(error) => self.refused(&error, handler),
            ServerMessage::Goodbye(goodbye) if self.is_passing(goodbye.code) => {
                let (code, text) = (goodbye.code, goodbye.text.into_owned());
                self.resumption.turned_away(code);
                let retry_after = self.resumption.retry_after;
                Err(ClientError::TurnedAway { code, text, retry_after })
            }
            ServerMessage::Goodbye(goodbye) => {
                handler.goodbye(&goodbye);
                self.finish(None, handler);
                Ok(())
            }
            ServerMessage::Welcome(welcome) => self.welcome(&welcome, handler),
        }
    }

    /// Whether a request waits for this answer.
    fn is_answered(
        &mut self,
        request: RequestNumber,
        message: &'static str,
        expected: Asked,
    ) -> Result<bool, ClientError> {
        self.requests.answered(request, message, |asked| asked == expected)
    }

    /// An update can't be used: reports it and asks for a snapshot, but not forever.
    fn repair<H: Handler>(
        &mut self,
        room: RoomNumber,
        why: &OutOfStep,
        handler: &mut H,
    ) -> Result<(), ClientError> {
        handler.out_of_step(room, why);
        self.rooms.fell_out(room)?;
        // A client that is leaving needs no snapshot.
        let _ = self.resync(room);
        Ok(())
    }

    #[inline]
    fn reply<H: Handler>(
        &mut self,
        reply: &server::Reply<'_>,
        handler: &mut H,
    ) -> Result<(), ClientError> {
        // The reply to a request that failed when its room ended is dropped.
        if self.requests.answered(reply.request, "a reply", |asked| {
            matches!(asked, Asked::Message { .. } | Asked::Report)
        })? {
            handler.reply(reply);
        }
        Ok(())
    }

    fn refused<H: Handler>(
        &mut self,
        error: &server::Error<'_>,
        handler: &mut H,
    ) -> Result<(), ClientError> {
        let retry_after = error.retry_after();
        let Some(request) = error.request else {
            if let Some(retry_after) = retry_after
                && error.room.is_none()
                && !self.welcomed
            {
                // A goodbye may follow.
                self.resumption.retry_after = Some(retry_after);
                handler.retry_after(retry_after);
            }
            handler.error(error);
            return Ok(());
        };
        if self.refused_subscription(request, error, handler)
            || !self.requests.answered(request, "an error", |_| true)?
        {
            return Ok(());
        }
        let (code, text) = (error.code, Cow::Borrowed(&*error.text));
        let failure = Failure::Refused { code, text, retry_after };
        if !self.registration_failed(request, &failure, handler) {
            handler.failed(request, &failure);
        }
        Ok(())
    }

    fn joined<H: Handler>(
        &mut self,
        joined: &server::Joined<'_>,
        handler: &mut H,
    ) -> Result<(), ClientError> {
        self.rooms.joined(joined)?;
        self.pulse.expect(self.rooms.silence(), self.rooms.quiet());
        if self.is_answered(joined.request, "a room", Asked::Join)? {
            handler.joined(joined);
            return Ok(());
        }
        // An abandoned request is remembered, so this one was answered before.
        Err(ClientError::UnknownRequest { request: joined.request })
    }

    fn left<H: Handler>(
        &mut self,
        left: &server::Left<'_>,
        handler: &mut H,
    ) -> Result<(), ClientError> {
        let &server::Left { request, room, code, ref text } = left;
        self.rooms.left(room)?;
        self.pulse.expect(self.rooms.silence(), self.rooms.quiet());
        if let Some(request) = request {
            self.is_answered(request, "a left", Asked::Leave { room })?;
        }
        for request in self.requests.give_up_room(room) {
            handler.failed(request, &Failure::Left { code, text: Cow::Borrowed(text) });
        }
        handler.left(left);
        Ok(())
    }

    fn welcome<H: Handler>(
        &mut self,
        welcome: &server::Welcome<'_>,
        handler: &mut H,
    ) -> Result<(), ClientError> {
        if std::mem::replace(&mut self.welcomed, true) {
            return Err(ClientError::OutOfTurn { message: "a second welcome" });
        }
        if welcome.protocol != PROTOCOL {
            return Err(ClientError::Protocol { protocol: welcome.protocol });
        }
        self.pulse.welcomed(welcome.heartbeat());
        self.bytes_max =
            usize::try_from(welcome.max_message_bytes).unwrap_or(usize::MAX).min(MESSAGE_BYTES_MAX);
        self.opened(welcome, handler)?;
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
        | ServerMessage::Ack(_) => return Ok(()),
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
