//! Delivers what the session reports to the handles that wait for it.

use std::sync::{Arc, Weak};

use playfield_wire::schema::RoomSchema;
use playfield_wire::{ErrorCode, RequestNumber, RoomNumber, server};

use super::command::{Obligation, Subscription};
use super::dispatch::{Dispatch, JoinedRoom, Waiting};
use super::status::ConnectionEvent;
use crate::channel::{History, Members, received};
use crate::device::Incoming;
use crate::error::Ending;
use crate::session::{ClientError, Event, Failure, Position, Subscribed, SubscriptionNumber};
use crate::{Error, Payload};

// An answer may find nobody, as the caller may have stopped waiting. That is never an error.
impl Dispatch {
    /// Delivers what has happened.
    pub(super) fn handle(&mut self, event: Event<'_>) {
        match event {
            Event::Reply(reply) => {
                if let Some(Waiting::Reply(answer)) = self.waiting.remove(&reply.request) {
                    let _ = answer.send(Ok(reply.payload.into_owned()));
                }
            }
            Event::Event(event) => {
                if let Some(room) = self.rooms.get(&event.room) {
                    room.sink.event(&event);
                }
            }
            Event::Publication(subscription, publication) => {
                if let Some(to) = self.subscriptions.get(&subscription) {
                    to.subscriber.publication(&publication, to.epoch, to.is_bytes);
                }
            }
            Event::Joined(joined) => self.joined(&joined),
            Event::Entered { room, translation } => self.entered(room, translation),
            Event::Unusable { room, why } => self.refuse(room, why.into()),
            Event::Left(left) => self.left(left),
            Event::Failed { request, failure } => self.failed(request, &failure),
            Event::Error(error) => self.error(&error),
            Event::Listed(listed) => {
                if let Some(Waiting::List(answer)) = self.waiting.remove(&listed.request) {
                    let _ = answer.send(Ok(listed.into_owned().rooms));
                }
            }
            Event::Schema(schema) => self.schema(&schema),
            Event::Missed { room, events } => {
                if let Some(room) = self.rooms.get(&room) {
                    room.sink.failed(Error::lost_events(events));
                }
            }
            Event::Subscribed(subscription, subscribed) => {
                self.subscribed(subscription, &subscribed);
            }
            Event::Unsubscribed { subscription, code, text } => {
                self.unsubscribed(subscription, code, &text);
            }
            Event::PublicationsMissed { subscription, publications } => {
                if let Some(to) = self.subscriptions.get(&subscription) {
                    to.subscriber.missed(publications);
                }
            }
            Event::Presence(subscription, presence) => {
                if let Some(to) = self.subscriptions.get(&subscription) {
                    to.subscriber.presence(&presence);
                }
            }
            Event::Published(published) => {
                if let Some(Waiting::Published(answer)) = self.waiting.remove(&published.request) {
                    let _ = answer.send(Ok(published.offset));
                }
            }
            Event::Members(members) => {
                if let Some(Waiting::Members(answer)) = self.waiting.remove(&members.request) {
                    let server::Members { sequence, count, members, .. } = members.into_owned();
                    let _ = answer.send(Ok(Members { sequence, count, members }));
                }
            }
            Event::History(history) => self.history(&history),
            Event::Registered { request, is_new, bytes } => {
                self.registered(request, is_new, bytes);
            }
            Event::Unregistered { .. } => self.replace_device(Weak::new()),
            Event::Command(command) => self.command(command),
            Event::Pong { nonce, round_trip } => {
                if let Some(answer) = self.pings.remove(&nonce) {
                    let _ = answer.send(Ok(round_trip));
                }
            }
            Event::Welcome(_) => {
                self.status.connected();
                if let Some(welcomed) = self.welcomed.take() {
                    let _ = welcomed.send(Ok(()));
                }
            }
            Event::ConnectionLost { error } => self.connection_lost(&error),
            Event::AttemptFailed { error: ClientError::NoWelcome { limit }, is_last } => {
                self.attempt_failed(Error::no_answer(&self.authority, limit), is_last);
            }
            Event::AttemptFailed { error, is_last } => {
                let ending = Ending::lost(&error, self.socket_error.take());
                self.attempt_failed(Error::closed(ending), is_last);
            }
            Event::Resumed(server::Resumed { lost, .. }) => {
                let away = self.away();
                self.status.report(ConnectionEvent::Resumed { away, lost });
            }
            Event::NewSession(_) => self.new_session(),
            Event::Unconfirmed { sends } => self.unconfirmed += sends,
            Event::Weak { is_weak } => self.status.weak(is_weak),
            Event::Goodbye(goodbye) => {
                self.goodbye = Some((goodbye.code, goodbye.text.into_owned()));
            }
            Event::Closed { error } => self.closed(error.as_ref()),
            Event::Update { .. }
            | Event::OutOfStep { .. }
            | Event::Checked { .. }
            | Event::PublicationIgnored { .. } => {}
        }
    }

    /// An attempt to restore the connection has failed.
    pub(super) fn attempt_failed(&mut self, error: Error, is_last: bool) {
        self.failed_attempt = Some(error.clone());
        if !is_last {
            self.status.report(ConnectionEvent::AttemptFailed { error });
        }
    }

    fn connection_lost(&mut self, error: &ClientError) {
        // An error that announced a goodbye was not followed by one.
        (self.goodbye, self.retry_after) = (None, None);
        let ending = Ending::lost(error, self.socket_error.take());
        self.status.report(ConnectionEvent::Lost { error: Error::closed(ending.clone()) });
        self.lost = Some((self.now, ending));
    }

    fn new_session(&mut self) {
        let rooms: Vec<RoomNumber> = self.rooms.keys().copied().collect();
        for room in rooms {
            self.end(room, Error::new_session());
        }
        self.session += 1;
        self.forsaken.clear();
        let away = self.away();
        // The handles know by now that their rooms have ended: no more is sent to them.
        let unsent = self.commands.end_session(self.session);
        let unconfirmed = std::mem::take(&mut self.unconfirmed) + unsent;
        self.status.report(ConnectionEvent::NewSession { away, unconfirmed });
    }

    fn joined(&mut self, joined: &server::Joined<'_>) {
        if let Some(Waiting::Enter { sink, answer }) = self.waiting.remove(&joined.request) {
            let entering = Some((joined.to_static(), answer));
            self.rooms.insert(joined.room, JoinedRoom { sink, entering });
        }
    }

    fn schema(&mut self, schema: &server::Schema<'_>) {
        let asked = schema.request.and_then(|request| self.waiting.remove(&request));
        if let Some(Waiting::ShowSchema(answer)) = asked {
            let _ = answer.send(RoomSchema::from_json(&schema.schema).map_err(Error::schema));
        }
    }

    fn left(&mut self, left: server::Left<'_>) {
        let server::Left { request, room, code, text } = left;
        self.end(room, Error::left(code, &*text));
        if let Some(Waiting::Leave(answer)) =
            request.and_then(|request| self.waiting.remove(&request))
        {
            let _ = answer.send(Ok(()));
        }
    }

    fn failed(&mut self, request: RequestNumber, failure: &Failure<'_>) {
        if *failure == Failure::Closed {
            // These fail in `closed`, which knows how the connection ended.
            return;
        }
        if let Some(waiting) = self.waiting.remove(&request) {
            waiting.fail(Error::from(failure));
        }
    }

    fn error(&mut self, error: &server::Error<'_>) {
        let &server::Error { room, code, ref text, .. } = error;
        // Before the welcome, a goodbye follows.
        let is_welcomed = self.welcomed.is_none() && self.lost.is_none();
        if room.is_none()
            && !is_welcomed
            && let Some(retry_after) = error.retry_after()
        {
            self.retry_after = Some(retry_after);
        }
        match room {
            Some(room) => {
                if let Some(room) = self.rooms.get(&room) {
                    room.sink.failed(Error::refused(code, &**text));
                }
            }
            None if code.closes() => self.goodbye = Some((code, text.to_string())),
            None if self.lost.is_some() => {}
            None => self.status.refused(code, text),
        }
    }

    fn subscribed(&mut self, subscription: SubscriptionNumber, subscribed: &Subscribed) {
        let Some(to) = self.subscriptions.get_mut(&subscription) else { return };
        (to.epoch, to.is_bytes) = (subscribed.position.epoch, subscribed.bytes);
        to.subscriber.subscribed(subscribed);
        if let Some(answer) = to.beginning.take() {
            let signals = Arc::clone(&self.signals);
            let _ = answer.send(Ok(Subscription { subscription, signals }));
        }
    }

    fn unsubscribed(&mut self, subscription: SubscriptionNumber, code: ErrorCode, text: &str) {
        let Some(to) = self.subscriptions.remove(&subscription) else { return };
        match to.beginning {
            Some(answer) => drop(answer.send(Err(Error::refused(code, text)))),
            None => to.subscriber.unsubscribed(code, text),
        }
    }

    fn history(&mut self, history: &server::History<'_>) {
        if let Some(Waiting::History(answer)) = self.waiting.remove(&history.request) {
            let &server::History { epoch, offset, bytes, ref publications, .. } = history;
            let last = Position { epoch, offset };
            let publications = publications
                .iter()
                .map(|past| {
                    received(past.offset, past.user.as_deref(), &past.payload, self.format, bytes)
                })
                .collect();
            let _ = answer.send(Ok(History { last, bytes, publications }));
        }
    }

    fn registered(&mut self, request: Option<RequestNumber>, is_new: bool, bytes: bool) {
        self.device_has_bytes = bytes;
        let request = request.and_then(|request| self.waiting.remove(&request));
        if let Some(Waiting::Register { commands, answer }) = request {
            self.replace_device(Arc::downgrade(&commands));
            let _ = answer.send(Ok((is_new, bytes)));
        }
    }

    fn command(&mut self, command: server::Command<'_>) {
        let server::Command { command, payload } = command;
        let (session, signals) = (self.session, &self.signals);
        let obligation = command.map(|command| Obligation {
            session,
            command,
            signals: Arc::clone(signals),
            is_fulfilled: false,
        });
        // Without a handle, or if too many wait, the one that is dropped is answered by an error.
        if let Some(commands) = self.device.upgrade() {
            let payload = Payload::received(self.format, self.device_has_bytes, &payload);
            let bytes = payload.bytes().len();
            commands.put(Incoming { payload, obligation }, bytes, |_| 1);
        }
    }

    fn closed(&mut self, error: Option<&ClientError>) {
        let lost = self.lost.take().zip(self.failed_attempt.take());
        let ending = match (error, self.goodbye.take()) {
            (Some(_), _) if let Some(((_, lost), last)) = lost => {
                let tried = self.tried;
                Ending::GaveUp { lost: Box::new(lost), tried, last: Box::new(last) }
            }
            (None | Some(ClientError::Ended { .. }), Some((code, text))) => {
                Ending::Goodbye { code, text, retry_after: self.retry_after }
            }
            (None, None) => Ending::Here,
            (Some(error), _) => Ending::lost(error, self.socket_error.take()),
        };
        let ending = self.ending.get_or_init(|| ending);
        for room in self.rooms.values() {
            room.sink.end(Error::closed(ending.clone()));
        }
        for subscription in self.subscriptions.values() {
            subscription.subscriber.end();
        }
        if let Some(commands) = self.device.upgrade() {
            commands.end();
        }
        let (error, unconfirmed) =
            (Error::closed(ending.clone()), self.unconfirmed + self.commands.end());
        self.status.report(ConnectionEvent::Ended { error, unconfirmed });
        if let Some(welcomed) = self.welcomed.take() {
            let error = match ending {
                Ending::Goodbye { code, text, retry_after } => {
                    Error::turned_away(*code, text, *retry_after)
                }
                ending @ (Ending::Socket(_) | Ending::Broken(ClientError::Ended { .. })) => {
                    Error::closed(Ending::Unwelcome(Box::new(ending.clone())))
                }
                ending => Error::closed(ending.clone()),
            };
            let _ = welcomed.send(Err(error));
        }
        // Dropping the answers makes the callers read `ending`.
        self.rooms.clear();
        self.subscriptions.clear();
        self.waiting.clear();
        self.pings.clear();
    }
}
