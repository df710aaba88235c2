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
use crate::session::{Event, Failure, Position, Subscribed, SubscriptionNumber};
use crate::{Error, Payload};

// An answer may find nobody, as the caller may have stopped waiting. That is never an error.
impl Dispatch {
    /// Delivers what has happened.
    pub(super) fn handle(&mut self, event: Event<'_>) {
        let was_lost = self.fate.is_lost();
        let why = self.fate.note(&event);
        match event {
            Event::Reply(reply) => {
                if let Some(Waiting::Reply(answer)) = self.waiting.remove(&reply.request) {
                    let _ = answer.send(Ok(reply.payload.into_owned()));
                }
            }
            Event::Event(event) => {
                if let Some(room) = self.rooms.get(&event.room) {
                    room.room.event(&event);
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
            Event::Error(error) => self.error(&error, was_lost),
            Event::Listed(listed) => {
                if let Some(Waiting::List(answer)) = self.waiting.remove(&listed.request) {
                    let _ = answer.send(Ok(listed.into_owned().rooms));
                }
            }
            Event::Schema(schema) => self.schema(&schema),
            Event::Missed { room, events } => {
                if let Some(room) = self.rooms.get(&room) {
                    room.room.failed(Error::lost_events(events));
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
            Event::ConnectionLost { .. } => self.connection_lost(why),
            Event::AttemptFailed { is_last, .. } => {
                if let Some(error) = why.filter(|_| !is_last) {
                    self.status.report(ConnectionEvent::AttemptFailed { error });
                }
            }
            Event::Resumed(server::Resumed { lost, .. }) => {
                let away = self.away();
                self.status.report(ConnectionEvent::Resumed { away, lost });
            }
            Event::NewSession(_) => self.new_session(),
            Event::Unconfirmed { sends } => self.unconfirmed += sends,
            Event::Weak { is_weak } => self.status.weak(is_weak),
            Event::Closed { .. } => self.closed(why),
            Event::Update { .. }
            | Event::Goodbye(_)
            | Event::OutOfStep { .. }
            | Event::Checked { .. }
            | Event::PublicationIgnored { .. } => {}
        }
    }

    fn connection_lost(&mut self, why: Option<Error>) {
        if let Some(error) = why {
            self.status.report(ConnectionEvent::Lost { error });
        }
        self.lost_at = Some(self.now);
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
        if let Some(Waiting::Enter { room, answer }) = self.waiting.remove(&joined.request) {
            let entering = Some((joined.to_static(), answer));
            self.rooms.insert(joined.room, JoinedRoom { room, entering });
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

    fn error(&mut self, error: &server::Error<'_>, was_lost: bool) {
        let &server::Error { room, code, ref text, .. } = error;
        match room {
            Some(room) => {
                if let Some(room) = self.rooms.get(&room) {
                    room.room.failed(Error::refused(code, &**text));
                }
            }
            None if code.closes() || was_lost => {}
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
                .map(|past| received(past.offset, past.user.as_deref(), &past.payload, bytes))
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
            let payload = Payload::received(self.device_has_bytes, &payload);
            let bytes = payload.bytes().len();
            commands.put(Incoming { payload, obligation }, bytes, |_| 1);
        }
    }

    fn closed(&mut self, why: Option<Error>) {
        let ending = why.and_then(Error::into_ending).unwrap_or(Ending::Here);
        let ending = self.ending.get_or_init(|| ending);
        for room in self.rooms.values() {
            room.room.end(Error::closed(ending.clone()));
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
            let _ = welcomed.send(Err(ending.unwelcome()));
        }
        // Dropping the answers makes the callers read `ending`.
        self.rooms.clear();
        self.subscriptions.clear();
        self.waiting.clear();
        self.pings.clear();
    }
}
