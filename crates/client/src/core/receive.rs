//! Handles the node's messages, and checks that they follow the protocol.

use std::borrow::Cow;
use std::time::Duration;

use playfield_wire::client::{self, ClientMessage, Position};
use playfield_wire::server::{self, MemberInfo, Resumed, ServerMessage, Versions};
use playfield_wire::{ErrorCode, PROTOCOL, RequestNumber, RoomNumber};

use super::requests::Asked;
use super::session::{MESSAGE_BYTES_MAX, Session};
use super::{
    ClientError, Failure, Handler, Joined, OutOfStep, Presence, Publication, RoomEvent, Subscribed,
    Update, UpdateKind, Welcome,
};

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
            ServerMessage::Patch(server::Patch { room, base, version, body }) => {
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
            ServerMessage::Reply(server::Reply { request, payload }) => {
                self.reply(request, payload, handler)
            }
            ServerMessage::Event(server::Event { room, sequence, version, message, payload }) => {
                let missed = self.rooms.event(room, sequence)?;
                if missed > 0 {
                    handler.missed(room, missed);
                }
                let payload = Cow::Borrowed(payload);
                handler.event(&RoomEvent { room, sequence, version, message, payload });
                Ok(())
            }
            ServerMessage::Snapshot(server::Snapshot { room, epoch, version, body }) => {
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
            ServerMessage::Ack(server::Ack { received }) => self.resumption.acknowledged(received),
            ServerMessage::Pong(server::Pong { nonce, time_us }) => {
                if let Some(round_trip) = self.pulse.pong(nonce, time_us) {
                    handler.pong(nonce, round_trip);
                }
                Ok(())
            }
            ServerMessage::Joined(server::Joined {
                request,
                room,
                id,
                room_type,
                key,
                player,
                epoch,
                tick_hz,
                sync_hz,
                fingerprint,
                silence_ms,
                grace_ms,
            }) => {
                let joined = Joined {
                    room,
                    id,
                    room_type,
                    key,
                    player,
                    epoch,
                    tick_hz,
                    sync_hz,
                    fingerprint,
                    silence: (silence_ms > 0).then(|| Duration::from_millis(silence_ms.into())),
                    grace: Duration::from_millis(grace_ms.into()),
                };
                self.joined(request, &joined, handler)
            }
            ServerMessage::Listed(server::Listed { request, rooms }) => {
                if self.requests.answered(request, "a list", |asked| asked == Asked::List)? {
                    handler.listed(request, &rooms);
                }
                Ok(())
            }
            ServerMessage::Schema(server::Schema { request, room_type, schema }) => {
                let asked = match request {
                    Some(request) => self
                        .requests
                        .answered(request, "a schema", |asked| asked == Asked::Schema)?,
                    None => true,
                };
                if asked {
                    handler.schema(request, &room_type, schema);
                }
                Ok(())
            }
            ServerMessage::Left(server::Left { request, room, code, text }) => {
                self.left(request, room, code, &text, handler)
            }
            ServerMessage::Publication(server::Publication { channel, offset, user, payload }) => {
                let payload = Cow::Borrowed(payload);
                self.publication(channel, &Publication { offset, user, payload }, handler);
                Ok(())
            }
            ServerMessage::Subscribed(server::Subscribed {
                request,
                channel,
                epoch,
                offset,
                recovered,
                bytes,
                members,
            }) => {
                let (position, missed) = (Position { epoch, offset }, 0);
                let subscribed = Subscribed { position, recovered, missed, bytes, members };
                self.subscribed(request, channel, subscribed, handler)
            }
            ServerMessage::Unsubscribed(server::Unsubscribed { channel, code, text }) => {
                self.unsubscribed(channel, code, &text, handler);
                Ok(())
            }
            ServerMessage::Presence(server::Presence {
                channel,
                sequence,
                joined,
                session,
                user,
                name,
            }) => {
                let member = MemberInfo { session, user, name };
                self.presence(channel, &Presence { sequence, joined, member }, handler);
                Ok(())
            }
            ServerMessage::Published(server::Published { request, offset }) => {
                let is_publish = |asked| asked == Asked::Publish;
                if self.requests.answered(request, "a publication's offset", is_publish)? {
                    handler.published(request, offset);
                }
                Ok(())
            }
            ServerMessage::Members(server::Members { request, sequence, count, members }) => {
                if self.requests.answered(request, "members", |asked| asked == Asked::Members)? {
                    handler.members(request, sequence, count, &members);
                }
                Ok(())
            }
            ServerMessage::History(server::History {
                request,
                epoch,
                offset,
                bytes,
                publications,
            }) => {
                if self.requests.answered(request, "a history", |asked| asked == Asked::History)? {
                    let last = Position { epoch, offset };
                    handler.history(request, last, bytes, &publications);
                }
                Ok(())
            }
            ServerMessage::Registered(server::Registered { request, is_new, bytes }) => {
                self.registered(request, is_new, bytes, handler)
            }
            ServerMessage::Command(server::Command { command, payload }) => {
                handler.command(command, payload);
                Ok(())
            }
            ServerMessage::Error(server::Error { request, room, code, text, retry_after_ms }) => {
                let retry_after = retry_after_ms.map(|ms| Duration::from_millis(ms.into()));
                match request {
                    None => {
                        if let Some(retry_after) = retry_after
                            && room.is_none()
                            && !self.welcomed
                        {
                            // A goodbye may follow.
                            self.resumption.retry_after = Some(retry_after);
                            handler.retry_after(retry_after);
                        }
                        handler.error(room, code, &text);
                    }
                    Some(request) => {
                        self.refused(request, code, &text, retry_after, handler)?;
                    }
                }
                Ok(())
            }
            ServerMessage::Goodbye(server::Goodbye { code, text }) if self.is_passing(code) => {
                self.resumption.turned_away(code);
                let (text, retry_after) = (text.into_owned(), self.resumption.retry_after);
                Err(ClientError::TurnedAway { code, text, retry_after })
            }
            ServerMessage::Goodbye(server::Goodbye { code, text }) => {
                handler.goodbye(code, &text);
                self.finish(None, handler);
                Ok(())
            }
            ServerMessage::Welcome(server::Welcome {
                protocol,
                session,
                resume,
                heartbeat_ms,
                max_message_bytes,
                grace_ms,
                resumed,
            }) => {
                let welcome = Welcome {
                    session,
                    resume,
                    heartbeat: Duration::from_millis(heartbeat_ms.into()),
                    message_bytes_max: max_message_bytes,
                    grace: Duration::from_millis(grace_ms.into()),
                };
                self.welcome(protocol, &welcome, resumed.as_ref(), handler)
            }
        }
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
        request: RequestNumber,
        payload: &[u8],
        handler: &mut H,
    ) -> Result<(), ClientError> {
        // The reply to a request that failed when its room ended is dropped.
        if self.requests.answered(request, "a reply", |asked| {
            matches!(asked, Asked::Message { .. } | Asked::Report)
        })? {
            handler.reply(request, payload);
        }
        Ok(())
    }

    fn refused<H: Handler>(
        &mut self,
        request: RequestNumber,
        code: ErrorCode,
        text: &str,
        retry_after: Option<Duration>,
        handler: &mut H,
    ) -> Result<(), ClientError> {
        if self.refused_subscription(request, code, text, retry_after, handler)
            || !self.requests.answered(request, "an error", |_| true)?
        {
            return Ok(());
        }
        let failure = Failure::Refused { code, text: Cow::Borrowed(text), retry_after };
        if !self.registration_failed(request, &failure, handler) {
            handler.failed(request, &failure);
        }
        Ok(())
    }

    fn joined<H: Handler>(
        &mut self,
        request: RequestNumber,
        joined: &Joined<'_>,
        handler: &mut H,
    ) -> Result<(), ClientError> {
        self.rooms.joined(joined)?;
        self.pulse.expect(self.rooms.silence(), self.rooms.quiet());
        if self.requests.answered(request, "a room", |asked| asked == Asked::Join)? {
            handler.joined(request, joined);
            return Ok(());
        }
        // An abandoned request is remembered, so this one was answered before.
        Err(ClientError::UnknownRequest { request })
    }

    fn left<H: Handler>(
        &mut self,
        request: Option<RequestNumber>,
        room: RoomNumber,
        code: ErrorCode,
        text: &str,
        handler: &mut H,
    ) -> Result<(), ClientError> {
        self.rooms.left(room)?;
        self.pulse.expect(self.rooms.silence(), self.rooms.quiet());
        if let Some(request) = request {
            self.requests.answered(request, "a left", |asked| asked == Asked::Leave { room })?;
        }
        for request in self.requests.give_up_room(room) {
            handler.failed(request, &Failure::Left { code, text: Cow::Borrowed(text) });
        }
        handler.left(room, request, code, text);
        Ok(())
    }

    fn welcome<H: Handler>(
        &mut self,
        protocol: u64,
        welcome: &Welcome<'_>,
        resumed: Option<&Resumed>,
        handler: &mut H,
    ) -> Result<(), ClientError> {
        if std::mem::replace(&mut self.welcomed, true) {
            return Err(ClientError::OutOfTurn { message: "a second welcome" });
        }
        if protocol != PROTOCOL {
            return Err(ClientError::Protocol { protocol });
        }
        self.pulse.welcomed(welcome.heartbeat);
        self.bytes_max =
            usize::try_from(welcome.message_bytes_max).unwrap_or(usize::MAX).min(MESSAGE_BYTES_MAX);
        self.opened(welcome, resumed, handler)?;
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
