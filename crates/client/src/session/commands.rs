//! Commands that a caller may give to a client.

use std::borrow::Cow;

use playfield_wire::client::{self, ClientMessage, Position};
use playfield_wire::{RequestNumber, RoomNumber};

use super::device::Registration;
use super::requests::Asked;
use super::{CommandError, Creation, Repair, Session, SubscriptionNumber};

/// Commands. Each fails with [`CommandError::Closed`] after the end or a goodbye, and with
/// [`CommandError::TooLarge`] if the node accepts no message that long. Requests also fail with
/// [`CommandError::Busy`], and commands that name a room with [`CommandError::NotJoined`].
///
/// `options` and `payload` are in `packed`.
#[expect(clippy::missing_errors_doc, reason = "they are the same for all, and documented above")]
impl Session {
    /// Asks to enter an existing room, by its id or with a reservation. Returns the number of the
    /// request.
    pub fn join(&mut self, id: &str) -> Result<RequestNumber, CommandError> {
        self.protocol.ask(Asked::Join, |request| {
            ClientMessage::Join(client::Join { request, room: id.into() })
        })
    }

    /// Asks to enter the room of a type that has this key. The case of a code does not matter.
    pub fn join_by_key(
        &mut self,
        room_type: &str,
        key: &str,
    ) -> Result<RequestNumber, CommandError> {
        let (room_type, key) = (room_type.into(), key.into());
        self.protocol.ask(Asked::Join, |request| {
            ClientMessage::JoinByKey(client::JoinByKey { request, room_type, key })
        })
    }

    /// Asks to create a room and enter it. Empty options are the room type's default.
    pub fn create(
        &mut self,
        room_type: &str,
        creation: &Creation,
        options: &[u8],
    ) -> Result<RequestNumber, CommandError> {
        let Creation { private, code, ref key } = *creation;
        let (room_type, key) = (room_type.into(), key.as_deref().map(Cow::Borrowed));
        self.protocol.ask(Asked::Join, |request| {
            ClientMessage::Create(client::Create {
                request,
                room_type,
                private,
                code,
                key,
                options,
            })
        })
    }

    /// Asks to enter any room of a type that is not full and has no key, or a new one with these
    /// options.
    pub fn join_or_create(
        &mut self,
        room_type: &str,
        options: &[u8],
    ) -> Result<RequestNumber, CommandError> {
        self.enter_or_create(room_type, None, options)
    }

    /// Asks to enter the room of a type that has this key, or a new one with it and these options.
    pub fn join_or_create_by_key(
        &mut self,
        room_type: &str,
        key: &str,
        options: &[u8],
    ) -> Result<RequestNumber, CommandError> {
        self.enter_or_create(room_type, Some(key.into()), options)
    }

    fn enter_or_create(
        &mut self,
        room_type: &str,
        key: Option<Cow<'_, str>>,
        options: &[u8],
    ) -> Result<RequestNumber, CommandError> {
        let room_type = room_type.into();
        self.protocol.ask(Asked::Join, |request| {
            ClientMessage::JoinOrCreate(client::JoinOrCreate { request, room_type, key, options })
        })
    }

    /// Asks for a list of rooms: of one type or of all, with all of this metadata, and at most
    /// `limit`; 0 means the node's limit.
    pub fn list(
        &mut self,
        room_type: Option<&str>,
        filter: &[(&str, &str)],
        limit: u32,
    ) -> Result<RequestNumber, CommandError> {
        let room_type = room_type.map(Cow::Borrowed);
        let filter = filter.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        self.protocol.ask(Asked::List, |request| {
            ClientMessage::List(client::List { request, room_type, filter, limit })
        })
    }

    /// Asks to leave a room.
    pub fn leave(&mut self, room: RoomNumber) -> Result<RequestNumber, CommandError> {
        self.protocol.leave(room)
    }

    /// Sends a message that the room answers. The message type has this `index` and `name`; the
    /// format determines which is sent. Returns the number of the request.
    pub fn request(
        &mut self,
        room: RoomNumber,
        index: u32,
        payload: &[u8],
    ) -> Result<RequestNumber, CommandError> {
        self.protocol.request(room, index, payload)
    }

    /// Sends a message that the room doesn't answer; see [`request`](Self::request).
    pub fn send(
        &mut self,
        room: RoomNumber,
        index: u32,
        payload: &[u8],
    ) -> Result<(), CommandError> {
        self.protocol.send(room, index, payload)
    }

    /// Asks for a snapshot, and ignores patches until it comes. The client does this by itself when
    /// a copy falls out of step.
    pub fn resync(&mut self, room: RoomNumber) -> Result<(), CommandError> {
        self.protocol.resync(room)
    }

    /// Repairs a copy that has found by itself that it can't use what it had kept.
    pub fn repair(&mut self, room: RoomNumber, repair: Repair) {
        match repair {
            // An error means that the room was left meanwhile.
            Repair::Snapshot => drop(self.resync(room)),
            Repair::Leave => self.protocol.unreadable(room),
        }
    }

    /// Sends a ping. Returns its nonce, which [`Event::Pong`](super::Event::Pong) will report.
    pub fn ping(&mut self) -> Result<u64, CommandError> {
        self.protocol.ping()
    }

    /// Says goodbye. The session is over when the transport has [ended](Self::ended).
    pub fn goodbye(&mut self) {
        self.protocol.goodbye();
    }

    /// Subscribes to a channel, with what came after `since` as far as its history has it, and with
    /// [presence](super::Event::Presence) messages if they are wanted. The node's answer is
    /// reported by [`Event::Subscribed`](super::Event::Subscribed) or
    /// [`Event::Unsubscribed`](super::Event::Unsubscribed). While the connection is lost, the
    /// subscription waits; on each new connection, also in a new session, the client subscribes
    /// again by itself, with the position that it has reached.
    ///
    /// Fails with [`CommandError::Subscribed`] if this client subscribes to the channel already,
    /// and with [`CommandError::Subscriptions`] past
    /// [`SUBSCRIPTIONS_MAX`](super::SUBSCRIPTIONS_MAX).
    pub fn subscribe(
        &mut self,
        channel: &str,
        since: Option<Position>,
        presence: bool,
    ) -> Result<SubscriptionNumber, CommandError> {
        self.protocol.subscribe(channel, since, presence)
    }

    /// Ends a subscription. Nothing more is reported for it.
    pub fn unsubscribe(&mut self, subscription: SubscriptionNumber) {
        self.protocol.unsubscribe(subscription);
    }

    /// The last publication that a subscription has reported, or before which it began. `None` if
    /// it has ended, or the node has not answered it yet and it began without a position.
    #[must_use]
    pub fn position(&self, subscription: SubscriptionNumber) -> Option<Position> {
        self.protocol.position(subscription)
    }

    /// Publishes to a channel. If `confirm` is set, returns the number of a request, which
    /// [`Event::Published`](super::Event::Published) answers.
    pub fn publish(
        &mut self,
        channel: &str,
        payload: &[u8],
        confirm: bool,
    ) -> Result<Option<RequestNumber>, CommandError> {
        let channel = || channel.into();
        self.protocol.tell(confirm.then_some(Asked::Publish), payload, |request| {
            ClientMessage::Publish(client::Publish { request, channel: channel(), payload })
        })
    }

    /// Asks who subscribes to a channel. Answered by [`Event::Members`](super::Event::Members).
    pub fn members(&mut self, channel: &str) -> Result<RequestNumber, CommandError> {
        let channel = channel.into();
        self.protocol.ask(Asked::Members, |request| {
            ClientMessage::Members(client::Members { request, channel })
        })
    }

    /// Asks for at most `limit` publications of a channel after `since`, the oldest first; 0 means
    /// the node's limit. Answered by [`Event::History`](super::Event::History).
    pub fn history(
        &mut self,
        channel: &str,
        since: Option<Position>,
        limit: u32,
    ) -> Result<RequestNumber, CommandError> {
        let channel = channel.into();
        self.protocol.ask(Asked::History, |request| {
            ClientMessage::History(client::History { request, channel, since, limit })
        })
    }

    /// Registers this session as a device. Answered by
    /// [`Event::Registered`](super::Event::Registered). In a new session the client registers
    /// again by itself.
    pub fn register(
        &mut self,
        device: &str,
        metadata: &[(&str, &str)],
        tags: &[&str],
    ) -> Result<RequestNumber, CommandError> {
        self.protocol.register(Registration {
            device: device.to_owned(),
            metadata: metadata.iter().map(|&(name, value)| (name.into(), value.into())).collect(),
            tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
        })
    }

    /// Sends a device's report to the fleet. If `reply` is set, returns the number of a request,
    /// which [`Event::Reply`](super::Event::Reply) answers.
    pub fn report(
        &mut self,
        payload: &[u8],
        reply: bool,
    ) -> Result<Option<RequestNumber>, CommandError> {
        self.protocol.tell(reply.then_some(Asked::Report), payload, |request| {
            ClientMessage::Report(client::Report { request, payload })
        })
    }

    /// Answers a [command](super::Event::Command) of this session: with a payload, or with the
    /// reason why there is none.
    pub fn answer(
        &mut self,
        command: u64,
        answer: Result<&[u8], &str>,
    ) -> Result<(), CommandError> {
        let error = answer.err().map(Cow::Borrowed);
        let payload = answer.unwrap_or_default();
        self.protocol
            .tell(None, payload, |_| {
                ClientMessage::Answer(client::Answer { command, error, payload })
            })
            .map(drop)
    }
}
