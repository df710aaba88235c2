//! The record of who waits for what (rooms, requests and subscriptions), and the delivery to them
//! of what the session reports.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use playfield_wire::{ErrorCode, RequestNumber, RoomNumber, server};
use tokio::sync::mpsc;

use super::command::{
    Answer, Arrival, Command, Entered, Obligation, Place, Seat, Signals, Subscription,
};
use super::commands::Commands;
use super::nodes::Counted;
use super::status::{ConnectionEvent, Status};
use crate::channel;
use crate::device::Incoming;
use crate::ending::Ending;
use crate::ending::Fate;
use crate::queue::Queue;
use crate::room::Deliver;
use crate::session::{
    Event, Failure, Joined, NumberMap, Subscribed, SubscriptionNumber, Translation,
};
use crate::{Error, Payload};

/// The record of who waits for what.
pub(crate) struct Registry {
    /// Waits for the welcome, or for the end if that comes first.
    pub(super) welcomed: Option<Answer<()>>,
    pub(super) waiting: NumberMap<RequestNumber, Waiting>,
    pub(super) pings: HashMap<u64, Answer<Duration>>,
    pub(super) rooms: NumberMap<RoomNumber, JoinedRoom>,
    pub(super) subscriptions: HashMap<SubscriptionNumber, Subscriber>,
    /// The queue of commands to this device. Its handle may be gone.
    pub(super) device: Weak<Queue<Incoming>>,
    /// Says whether they are bytes.
    pub(super) device_has_bytes: bool,
    /// Rooms to leave once this many commands were taken, because their handles were dropped.
    pub(super) forsaken: Vec<(RoomNumber, u64)>,
    /// The time since the connection began.
    pub(super) now: Duration,
    /// Commands of the handles.
    pub(super) commands: Commands,
    /// The number of sends of the ended session that the node has not confirmed.
    pub(super) unconfirmed: u64,
    /// Counts the sessions of this connection.
    pub(super) session: u32,
    /// When the connection was lost.
    pub(super) lost_at: Option<Duration>,
    pub(super) fate: Fate,
    pub(super) signals: Arc<Signals>,
    queue: mpsc::WeakSender<Command>,
    pub(super) ending: Arc<OnceLock<Ending>>,
    pub(super) status: Arc<Status>,
}

/// The callback that waits for the answer to a request: takes the event that is the answer, or the
/// error.
pub(super) type Waiting = Box<dyn FnOnce(Result<(&mut Registry, Event<'_>), Error>) + Send>;

/// A subscription to a channel.
pub(super) struct Subscriber {
    pub(super) channel: Arc<channel::Shared>,
    /// The caller that waits for the node's first answer.
    pub(super) beginning: Option<Answer<Subscription>>,
    /// The value of the last answer.
    pub(super) epoch: u64,
    pub(super) is_bytes: bool,
}

/// A room that this session is in.
pub(super) struct JoinedRoom {
    pub(super) room: Arc<dyn Deliver>,
    /// The caller that waits for the first snapshot.
    pub(super) entering: Option<(Joined<'static>, Answer<Arrival>)>,
    /// Keeps the connection, if it is to another node than the first.
    pub(super) _counted: Option<Counted>,
}

impl Registry {
    pub(super) fn new(
        welcomed: Answer<()>,
        commands: Commands,
        signals: Arc<Signals>,
        queue: mpsc::WeakSender<Command>,
        ending: Arc<OnceLock<Ending>>,
        status: Arc<Status>,
        fate: Fate,
    ) -> Self {
        Self {
            welcomed: Some(welcomed),
            waiting: NumberMap::default(),
            pings: HashMap::new(),
            rooms: NumberMap::default(),
            subscriptions: HashMap::new(),
            device: Weak::new(),
            device_has_bytes: false,
            forsaken: Vec::new(),
            now: Duration::ZERO,
            commands,
            unconfirmed: 0,
            session: 0,
            lost_at: None,
            fate,
            signals,
            queue,
            ending,
            status,
        }
    }

    /// Delivers what has happened.
    pub(super) fn handle(&mut self, event: Event<'_>) {
        let was_lost = self.fate.is_lost();
        let why = self.fate.note(&event);
        match &event {
            Event::Left(left) => self.end(left.room, Error::left(left.code, &*left.text)),
            Event::Registered { bytes, .. } => self.device_has_bytes = *bytes,
            _ => {}
        }
        let waiting = answered(&event).and_then(|request| self.waiting.remove(&request));
        if let Some(waiting) = waiting {
            return waiting(Ok((self, event)));
        }
        match event {
            Event::Event(event) => {
                if let Some(room) = self.rooms.get(&event.room) {
                    room.room.event(&event);
                }
            }
            Event::Publication(subscription, publication) => {
                if let Some(to) = self.subscriptions.get(&subscription) {
                    to.channel.publication(&publication, to.epoch, to.is_bytes);
                }
            }
            Event::Entered { room, translation } => self.entered(room, translation),
            Event::Unusable { room, why } => self.refuse(room, why.into()),
            Event::Failed { request, failure } => self.failed(request, &failure),
            Event::Error(error) => self.error(&error, was_lost),
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
                    to.channel.missed(publications);
                }
            }
            Event::Presence(subscription, presence) => {
                if let Some(to) = self.subscriptions.get(&subscription) {
                    to.channel.presence(&presence);
                }
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
            Event::Weak { is_weak: true } => self.status.report(ConnectionEvent::Weak),
            Event::Weak { is_weak: false } => self.status.report(ConnectionEvent::Back),
            Event::Closed { .. } => self.closed(why),
            // An answer may find nobody, as the caller may have stopped waiting.
            Event::Reply(_)
            | Event::Joined(_)
            | Event::Redirected(_)
            | Event::Left(_)
            | Event::Listed(_)
            | Event::Schema(_)
            | Event::Published(_)
            | Event::Members(_)
            | Event::History(_)
            | Event::Registered { .. }
            | Event::Update { .. }
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

    fn failed(&mut self, request: RequestNumber, failure: &Failure<'_>) {
        if *failure == Failure::Closed {
            // These fail in `closed`, which knows how the connection ended.
            return;
        }
        if let Some(waiting) = self.waiting.remove(&request) {
            waiting(Err(Error::from(failure)));
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
        to.channel.subscribed(subscribed);
        if let Some(answer) = to.beginning.take() {
            let signals = Arc::clone(&self.signals);
            let _ = answer.send(Ok(Subscription { subscription, signals }));
        }
    }

    fn unsubscribed(&mut self, subscription: SubscriptionNumber, code: ErrorCode, text: &str) {
        let Some(to) = self.subscriptions.remove(&subscription) else { return };
        match to.beginning {
            Some(answer) => drop(answer.send(Err(Error::refused(code, text)))),
            None => to.channel.unsubscribed(code, text),
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
            subscription.channel.end();
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

    /// Returns whether a place is in the present session.
    pub(super) fn is_now(&self, place: Place) -> bool {
        place.session == self.session
    }

    /// Returns whether this is the number of the present session.
    pub(super) fn is_session(&self, session: u32) -> bool {
        session == self.session
    }

    fn place(&self, room: RoomNumber) -> Place {
        Place { session: self.session, room }
    }

    /// Returns the time for which the connection was lost, if it was.
    pub(super) fn away(&mut self) -> Duration {
        self.lost_at.take().map_or(Duration::ZERO, |since| self.now.saturating_sub(since))
    }

    /// This client can't be in the room, and leaves it.
    pub(super) fn refuse(&mut self, number: RoomNumber, error: Error) {
        let is_entering = self.rooms.get(&number).is_some_and(|room| room.entering.is_some());
        self.end(number, if is_entering { error } else { Error::unusable(error) });
    }

    pub(super) fn end(&mut self, room: RoomNumber, error: Error) {
        if let Some(JoinedRoom { room, entering, .. }) = self.rooms.remove(&room) {
            room.end(error.clone());
            if let Some((_, answer)) = entering {
                let _ = answer.send(Err(error));
            }
        }
    }

    /// Commands go to another handle from now on, or to none.
    pub(super) fn replace_device(&mut self, commands: Weak<Queue<Incoming>>) {
        if let Some(before) = std::mem::replace(&mut self.device, commands).upgrade() {
            before.end();
        }
    }

    /// Answers the handle that enters a room: its copy is there.
    pub(super) fn entered(&mut self, number: RoomNumber, translation: Translation) {
        let place = self.place(number);
        if let Some(room) = self.rooms.get_mut(&number)
            && let Some((joined, answer)) = room.entering.take()
        {
            let (signals, commands) = (Arc::clone(&self.signals), self.queue.clone());
            let seat = Seat { place, signals, commands };
            let _ = answer.send(Ok(Arrival::Entered(Entered { joined, seat, translation })));
        }
    }
}

/// The request that an event answers.
fn answered(event: &Event<'_>) -> Option<RequestNumber> {
    match event {
        Event::Reply(reply) => Some(reply.request),
        Event::Joined(joined) => Some(joined.request),
        Event::Redirected(redirect) => Some(redirect.request),
        Event::Left(left) => left.request,
        Event::Listed(listed) => Some(listed.request),
        Event::Schema(schema) => schema.request,
        Event::Published(published) => Some(published.request),
        Event::Members(members) => Some(members.request),
        Event::History(history) => Some(history.request),
        Event::Registered { request, .. } => *request,
        _ => None,
    }
}
