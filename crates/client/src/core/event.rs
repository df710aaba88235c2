//! A queue of everything that happened, as owned values.

use std::collections::VecDeque;
use std::time::Duration;

use playfield_wire::{DecodeError, ErrorCode, RequestNumber, RoomNumber, server};

use super::{
    ClientError, Failure, Handler, OutOfStep, Subscribed, SubscriptionNumber, Update, UpdateKind,
};

/// Something that happened. Each variant is described at the method of [`Handler`] that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// [`Handler::welcome`].
    Welcome(server::Welcome<'static>),
    /// [`Handler::connection_lost`].
    ConnectionLost {
        /// Why.
        error: ClientError,
    },
    /// [`Handler::resumed`].
    Resumed(server::Resumed),
    /// [`Handler::weak`].
    Weak {
        /// Whether it is so now.
        is_weak: bool,
    },
    /// [`Handler::new_session`].
    NewSession(server::Welcome<'static>),
    /// [`Handler::unconfirmed`].
    Unconfirmed {
        /// How many.
        sends: u64,
    },
    /// [`Handler::joined`].
    Joined(server::Joined<'static>),
    /// [`Handler::listed`].
    Listed(server::Listed<'static>),
    /// [`Handler::schema`].
    Schema(server::Schema<'static>),
    /// [`Handler::left`].
    Left(server::Left<'static>),
    /// [`Handler::reply`].
    Reply(server::Reply<'static>),
    /// [`Handler::failed`].
    Failed {
        /// The request.
        request: RequestNumber,
        /// Why.
        failure: Failure<'static>,
    },
    /// [`Handler::event`].
    Event(server::Event<'static>),
    /// [`Handler::missed`].
    Missed {
        /// The room's number.
        room: RoomNumber,
        /// How many.
        events: u64,
    },
    /// [`Handler::update`] with a snapshot.
    Snapshot {
        /// The room's number.
        room: RoomNumber,
        /// The snapshot's version.
        version: u64,
        /// The state.
        body: Vec<u8>,
    },
    /// [`Handler::update`] with a patch.
    Patch {
        /// The room's number.
        room: RoomNumber,
        /// The version of the copy after the patch.
        version: u64,
        /// The changes.
        body: Vec<u8>,
    },
    /// [`Handler::out_of_step`].
    OutOfStep {
        /// The room's number.
        room: RoomNumber,
        /// Why.
        why: OutOfStep,
    },
    /// [`Handler::error`].
    Error(server::Error<'static>),
    /// [`Handler::subscribed`].
    Subscribed(SubscriptionNumber, Subscribed),
    /// [`Handler::unsubscribed`].
    Unsubscribed {
        /// Which.
        subscription: SubscriptionNumber,
        /// Why.
        code: ErrorCode,
        /// Why, for people.
        text: String,
    },
    /// [`Handler::publication`].
    Publication(SubscriptionNumber, server::Publication<'static>),
    /// [`Handler::publications_missed`].
    PublicationsMissed {
        /// Of which.
        subscription: SubscriptionNumber,
        /// How many.
        publications: u64,
    },
    /// [`Handler::presence`].
    Presence(SubscriptionNumber, server::Presence<'static>),
    /// [`Handler::published`].
    Published(server::Published),
    /// [`Handler::members`].
    Members(server::Members<'static>),
    /// [`Handler::history`].
    History(server::History<'static>),
    /// [`Handler::registered`].
    Registered {
        /// The request that this answers, if it does.
        request: Option<RequestNumber>,
        /// Whether no device was registered under the id.
        is_new: bool,
        /// Whether the payloads of the fleet are bytes, and not JSON.
        bytes: bool,
    },
    /// [`Handler::unregistered`].
    Unregistered {
        /// Why.
        code: ErrorCode,
        /// Why, for people.
        text: String,
    },
    /// [`Handler::command`].
    Command(server::Command<'static>),
    /// [`Handler::pong`].
    Pong {
        /// That of the ping.
        nonce: u64,
        /// From ping to pong.
        round_trip: Duration,
    },
    /// [`Handler::goodbye`].
    Goodbye(server::Goodbye<'static>),
    /// [`Handler::closed`].
    Closed {
        /// What went wrong, if anything did.
        error: Option<ClientError>,
    },
}

/// A [`Handler`] that stores a copy of everything, to be taken out one by one.
///
/// It reports every snapshot and patch as applied. If one later turns out to be unusable, call
/// [`Client::resync`](super::Client::resync). It is unbounded: empty it after each input.
#[derive(Clone, Debug, Default)]
pub struct EventQueue {
    events: VecDeque<Event>,
}

impl EventQueue {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes out the oldest event.
    pub fn pop(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

impl Handler for EventQueue {
    fn welcome(&mut self, welcome: &server::Welcome<'_>) {
        self.events.push_back(Event::Welcome(welcome.to_static()));
    }

    fn connection_lost(&mut self, error: &ClientError) {
        self.events.push_back(Event::ConnectionLost { error: error.clone() });
    }

    fn resumed(&mut self, resumed: &server::Resumed) {
        self.events.push_back(Event::Resumed(resumed.clone()));
    }

    fn weak(&mut self, is_weak: bool) {
        self.events.push_back(Event::Weak { is_weak });
    }

    fn new_session(&mut self, welcome: &server::Welcome<'_>) {
        self.events.push_back(Event::NewSession(welcome.to_static()));
    }

    fn unconfirmed(&mut self, sends: u64) {
        self.events.push_back(Event::Unconfirmed { sends });
    }

    fn joined(&mut self, joined: &server::Joined<'_>) {
        self.events.push_back(Event::Joined(joined.to_static()));
    }

    fn listed(&mut self, listed: &server::Listed<'_>) {
        self.events.push_back(Event::Listed(listed.to_static()));
    }

    fn schema(&mut self, schema: &server::Schema<'_>) {
        self.events.push_back(Event::Schema(schema.to_static()));
    }

    fn left(&mut self, left: &server::Left<'_>) {
        self.events.push_back(Event::Left(left.to_static()));
    }

    fn reply(&mut self, reply: &server::Reply<'_>) {
        self.events.push_back(Event::Reply(reply.to_static()));
    }

    fn failed(&mut self, request: RequestNumber, failure: &Failure<'_>) {
        self.events.push_back(Event::Failed { request, failure: failure.to_static() });
    }

    fn event(&mut self, event: &server::Event<'_>) {
        self.events.push_back(Event::Event(event.to_static()));
    }

    fn missed(&mut self, room: RoomNumber, events: u64) {
        self.events.push_back(Event::Missed { room, events });
    }

    fn update(&mut self, room: RoomNumber, update: &Update<'_>) -> Result<(), DecodeError> {
        let (version, body) = (update.version, update.body.to_vec());
        self.events.push_back(match update.kind {
            UpdateKind::Snapshot => Event::Snapshot { room, version, body },
            UpdateKind::Patch => Event::Patch { room, version, body },
        });
        Ok(())
    }

    fn out_of_step(&mut self, room: RoomNumber, why: &OutOfStep) {
        self.events.push_back(Event::OutOfStep { room, why: why.clone() });
    }

    fn error(&mut self, error: &server::Error<'_>) {
        self.events.push_back(Event::Error(error.to_static()));
    }

    fn subscribed(&mut self, subscription: SubscriptionNumber, subscribed: &Subscribed) {
        self.events.push_back(Event::Subscribed(subscription, *subscribed));
    }

    fn unsubscribed(&mut self, subscription: SubscriptionNumber, code: ErrorCode, text: &str) {
        self.events.push_back(Event::Unsubscribed { subscription, code, text: text.to_owned() });
    }

    fn publication(
        &mut self,
        subscription: SubscriptionNumber,
        publication: &server::Publication<'_>,
    ) {
        self.events.push_back(Event::Publication(subscription, publication.to_static()));
    }

    fn publications_missed(&mut self, subscription: SubscriptionNumber, publications: u64) {
        self.events.push_back(Event::PublicationsMissed { subscription, publications });
    }

    fn presence(&mut self, subscription: SubscriptionNumber, presence: &server::Presence<'_>) {
        self.events.push_back(Event::Presence(subscription, presence.to_static()));
    }

    fn published(&mut self, published: &server::Published) {
        self.events.push_back(Event::Published(published.clone()));
    }

    fn members(&mut self, members: &server::Members<'_>) {
        self.events.push_back(Event::Members(members.to_static()));
    }

    fn history(&mut self, history: &server::History<'_>) {
        self.events.push_back(Event::History(history.to_static()));
    }

    fn registered(&mut self, request: Option<RequestNumber>, is_new: bool, bytes: bool) {
        self.events.push_back(Event::Registered { request, is_new, bytes });
    }

    fn unregistered(&mut self, code: ErrorCode, text: &str) {
        self.events.push_back(Event::Unregistered { code, text: text.to_owned() });
    }

    fn command(&mut self, command: &server::Command<'_>) {
        self.events.push_back(Event::Command(command.to_static()));
    }

    fn pong(&mut self, nonce: u64, round_trip: Duration) {
        self.events.push_back(Event::Pong { nonce, round_trip });
    }

    fn goodbye(&mut self, goodbye: &server::Goodbye<'_>) {
        self.events.push_back(Event::Goodbye(goodbye.to_static()));
    }

    fn closed(&mut self, error: Option<&ClientError>) {
        self.events.push_back(Event::Closed { error: error.cloned() });
    }
}
