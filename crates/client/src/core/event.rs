//! A queue of everything that happened, as owned values.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use playfield_wire::client::Position;
use playfield_wire::server::{MemberInfo, PastPublication, RoomInfo};
use playfield_wire::{DecodeError, ErrorCode, RequestNumber, RoomNumber};

use super::channels::static_member;
use super::{
    ClientError, Failure, Handler, Joined, OutOfStep, Presence, Publication, Resumed, RoomEvent,
    Subscribed, SubscriptionNumber, Update, UpdateKind, Welcome,
};

/// Something that happened. Each variant is described at the method of [`Handler`] that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// [`Handler::welcome`].
    Welcome(Welcome<'static>),
    /// [`Handler::connection_lost`].
    ConnectionLost {
        /// Why.
        error: ClientError,
    },
    /// [`Handler::resumed`].
    Resumed(Resumed<'static>),
    /// [`Handler::weak`].
    Weak {
        /// Whether it is so now.
        is_weak: bool,
    },
    /// [`Handler::new_session`].
    NewSession(Welcome<'static>),
    /// [`Handler::unconfirmed`].
    Unconfirmed {
        /// How many.
        sends: u64,
    },
    /// [`Handler::joined`].
    Joined {
        /// The request that this answers.
        request: RequestNumber,
        /// The room.
        joined: Joined<'static>,
    },
    /// [`Handler::listed`].
    Listed {
        /// The request that this answers.
        request: RequestNumber,
        /// The rooms found.
        rooms: Vec<RoomInfo<'static>>,
    },
    /// [`Handler::schema`].
    Schema {
        /// The request that this answers, if it does.
        request: Option<RequestNumber>,
        /// The room type's name.
        room_type: String,
        /// The schema, as JSON.
        schema: Vec<u8>,
    },
    /// [`Handler::left`].
    Left {
        /// The room's number.
        room: RoomNumber,
        /// The `leave` that this answers, if it does.
        request: Option<RequestNumber>,
        /// Why.
        code: ErrorCode,
        /// Why, for people.
        text: String,
    },
    /// [`Handler::reply`].
    Reply {
        /// The request that this answers.
        request: RequestNumber,
        /// The reply itself.
        payload: Vec<u8>,
    },
    /// [`Handler::failed`].
    Failed {
        /// The request.
        request: RequestNumber,
        /// Why.
        failure: Failure<'static>,
    },
    /// [`Handler::event`].
    Event(RoomEvent<'static>),
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
    Error {
        /// The number of the room that it is about.
        room: Option<RoomNumber>,
        /// What is wrong.
        code: ErrorCode,
        /// What is wrong, for people.
        text: String,
    },
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
    Publication(SubscriptionNumber, Publication<'static>),
    /// [`Handler::publications_missed`].
    PublicationsMissed {
        /// Of which.
        subscription: SubscriptionNumber,
        /// How many.
        publications: u64,
    },
    /// [`Handler::presence`].
    Presence(SubscriptionNumber, Presence<'static>),
    /// [`Handler::published`].
    Published {
        /// The request that this answers.
        request: RequestNumber,
        /// The publication's offset.
        offset: u64,
    },
    /// [`Handler::members`].
    Members {
        /// The request that this answers.
        request: RequestNumber,
        /// Of the last presence message before it.
        sequence: u64,
        /// How many sessions subscribe.
        count: u64,
        /// Those that the node lists.
        members: Vec<MemberInfo<'static>>,
    },
    /// [`Handler::history`].
    History {
        /// The request that this answers.
        request: RequestNumber,
        /// The place of the channel's last publication.
        last: Position,
        /// Whether the payloads are bytes, and not JSON.
        bytes: bool,
        /// Past publications.
        publications: Vec<Publication<'static>>,
    },
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
    Command {
        /// The number to answer, if an answer is wanted.
        command: Option<u64>,
        /// The command itself.
        payload: Vec<u8>,
    },
    /// [`Handler::pong`].
    Pong {
        /// That of the ping.
        nonce: u64,
        /// From ping to pong.
        round_trip: Duration,
    },
    /// [`Handler::goodbye`].
    Goodbye {
        /// Why.
        code: ErrorCode,
        /// Why, for people.
        text: String,
    },
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
    fn welcome(&mut self, welcome: &Welcome<'_>) {
        self.events.push_back(Event::Welcome(welcome.to_static()));
    }

    fn connection_lost(&mut self, error: &ClientError) {
        self.events.push_back(Event::ConnectionLost { error: error.clone() });
    }

    fn resumed(&mut self, resumed: &Resumed<'_>) {
        self.events.push_back(Event::Resumed(resumed.to_static()));
    }

    fn weak(&mut self, is_weak: bool) {
        self.events.push_back(Event::Weak { is_weak });
    }

    fn new_session(&mut self, welcome: &Welcome<'_>) {
        self.events.push_back(Event::NewSession(welcome.to_static()));
    }

    fn unconfirmed(&mut self, sends: u64) {
        self.events.push_back(Event::Unconfirmed { sends });
    }

    fn joined(&mut self, request: RequestNumber, joined: &Joined<'_>) {
        self.events.push_back(Event::Joined { request, joined: joined.to_static() });
    }

    fn listed(&mut self, request: RequestNumber, rooms: &[RoomInfo<'_>]) {
        let rooms = rooms.iter().map(static_info).collect();
        self.events.push_back(Event::Listed { request, rooms });
    }

    fn schema(&mut self, request: Option<RequestNumber>, room_type: &str, schema: &[u8]) {
        let (room_type, schema) = (room_type.to_owned(), schema.to_vec());
        self.events.push_back(Event::Schema { request, room_type, schema });
    }

    fn left(
        &mut self,
        room: RoomNumber,
        request: Option<RequestNumber>,
        code: ErrorCode,
        text: &str,
    ) {
        self.events.push_back(Event::Left { room, request, code, text: text.to_owned() });
    }

    fn reply(&mut self, request: RequestNumber, payload: &[u8]) {
        self.events.push_back(Event::Reply { request, payload: payload.to_vec() });
    }

    fn failed(&mut self, request: RequestNumber, failure: &Failure<'_>) {
        self.events.push_back(Event::Failed { request, failure: failure.to_static() });
    }

    fn event(&mut self, event: &RoomEvent<'_>) {
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

    fn error(&mut self, room: Option<RoomNumber>, code: ErrorCode, text: &str) {
        self.events.push_back(Event::Error { room, code, text: text.to_owned() });
    }

    fn subscribed(&mut self, subscription: SubscriptionNumber, subscribed: &Subscribed) {
        self.events.push_back(Event::Subscribed(subscription, *subscribed));
    }

    fn unsubscribed(&mut self, subscription: SubscriptionNumber, code: ErrorCode, text: &str) {
        self.events.push_back(Event::Unsubscribed { subscription, code, text: text.to_owned() });
    }

    fn publication(&mut self, subscription: SubscriptionNumber, publication: &Publication<'_>) {
        self.events.push_back(Event::Publication(subscription, publication.to_static()));
    }

    fn publications_missed(&mut self, subscription: SubscriptionNumber, publications: u64) {
        self.events.push_back(Event::PublicationsMissed { subscription, publications });
    }

    fn presence(&mut self, subscription: SubscriptionNumber, presence: &Presence<'_>) {
        self.events.push_back(Event::Presence(subscription, presence.to_static()));
    }

    fn published(&mut self, request: RequestNumber, offset: u64) {
        self.events.push_back(Event::Published { request, offset });
    }

    fn members(
        &mut self,
        request: RequestNumber,
        sequence: u64,
        count: u64,
        members: &[MemberInfo<'_>],
    ) {
        let members = members.iter().map(static_member).collect();
        self.events.push_back(Event::Members { request, sequence, count, members });
    }

    fn history(
        &mut self,
        request: RequestNumber,
        last: Position,
        bytes: bool,
        publications: &[PastPublication<'_>],
    ) {
        let publications = publications.iter().map(|past| past_publication(past).to_static());
        let publications = publications.collect();
        self.events.push_back(Event::History { request, last, bytes, publications });
    }

    fn registered(&mut self, request: Option<RequestNumber>, is_new: bool, bytes: bool) {
        self.events.push_back(Event::Registered { request, is_new, bytes });
    }

    fn unregistered(&mut self, code: ErrorCode, text: &str) {
        self.events.push_back(Event::Unregistered { code, text: text.to_owned() });
    }

    fn command(&mut self, command: Option<u64>, payload: &[u8]) {
        self.events.push_back(Event::Command { command, payload: payload.to_vec() });
    }

    fn pong(&mut self, nonce: u64, round_trip: Duration) {
        self.events.push_back(Event::Pong { nonce, round_trip });
    }

    fn goodbye(&mut self, code: ErrorCode, text: &str) {
        self.events.push_back(Event::Goodbye { code, text: text.to_owned() });
    }

    fn closed(&mut self, error: Option<&ClientError>) {
        self.events.push_back(Event::Closed { error: error.cloned() });
    }
}

/// A publication of a history.
pub(crate) fn past_publication<'a>(past: &'a PastPublication<'_>) -> Publication<'a> {
    let user = past.user.as_deref().map(Cow::Borrowed);
    Publication { offset: past.offset, user, payload: Cow::Borrowed(past.payload) }
}

/// Copies everything that is borrowed.
pub(crate) fn static_info(info: &RoomInfo<'_>) -> RoomInfo<'static> {
    let owned = |text: &Cow<'_, str>| Cow::Owned(text.to_string());
    RoomInfo {
        id: owned(&info.id),
        room_type: owned(&info.room_type),
        key: info.key.as_ref().map(owned),
        players: info.players,
        capacity: info.capacity,
        locked: info.locked,
        metadata: info.metadata.iter().map(|(name, value)| (owned(name), owned(value))).collect(),
    }
}
