//! A room that this client is in: its copy, its events and its messages, with or without types.

mod changes;
mod copy;
mod dynamic;
mod shared;
mod typed;

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use playfield_state::{Change, Pattern, PlayerId, State};
use playfield_wire::DecodeError;
use playfield_wire::message::MessageRef;
use serde_json::Value;

pub use changes::{Changes, Subscription};
pub use dynamic::{Dynamic, DynamicCopy};

use crate::connection::{Command, Connection, Copies, Entered, Task, reply_of};
use crate::session::{Build, Event, Joined, Repair, Session, Target, Translation};
use crate::{Error, Mirror};
pub(crate) use shared::{Deliver, RawEvent, Shared};

/// The kind of a [`Room`]: a type of state, or [`Dynamic`].
pub trait Kind {
    /// The client's copy of the state.
    type Mirror: Mirror + Send + Sync + 'static;

    /// An empty copy.
    fn mirror() -> Self::Mirror;
}

impl<T: State + Default + Send + Sync + 'static> Kind for T {
    type Mirror = playfield_state::Mirror<T>;

    fn mirror() -> Self::Mirror {
        playfield_state::Mirror::new()
    }
}

impl Connection {
    /// Enters a room, and waits for its first snapshot: only if the node's schema is compatible with
    /// the build.
    async fn enter_room<R: Kind>(&self, target: Target, build: Build) -> Result<Room<R>, Error> {
        let new = || Arc::new(Shared::new(R::mirror(), self.queue_limits));
        let mut shared = new();
        let copies = || -> Copies {
            shared = new();
            (Box::new(Arc::clone(&shared)), Arc::<Shared<R::Mirror>>::clone(&shared))
        };
        let (entered, connection) = self.enter(target, build, copies).await?;
        Ok(Room { shared, entered, connection })
    }
}

/// A room that this client is in, with a copy of its state. Drop it to leave the room.
///
/// All methods take `&self`, so that one task can wait for changes while another sends. A typed
/// room (`Room<Counter>`) has the methods [`request`](Room::request) and [`send`](Room::send) for
/// its message types; a [`Room<Dynamic>`](Dynamic) takes names and JSON values.
///
/// ```no_run
/// # use playfield_client::{Dynamic, Error, Room};
/// # async fn example(room: Room<Dynamic>) -> Result<(), Error> {
/// println!("player {} in room {}", room.player(), room.id());
/// while room.state()["value"] != 7 {
///     room.changed().await?;
/// }
/// room.leave().await
/// # }
/// ```
pub struct Room<R: Kind> {
    shared: Arc<Shared<R::Mirror>>,
    entered: Entered,
    connection: Connection,
}

impl<R: Kind> Room<R> {
    /// The room's id, by which others can join it.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.entered.joined.id
    }

    /// The room's key, or its code; `None` if it has none.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.entered.joined.key.as_deref()
    }

    /// This client's player in the room.
    #[must_use]
    pub fn player(&self) -> PlayerId {
        PlayerId(self.entered.joined.player)
    }

    /// The node's words about the room when this client joined it.
    #[must_use]
    pub fn joined(&self) -> &Joined<'static> {
        &self.entered.joined
    }

    /// The connection to the room's node. If that is in a cluster, it may be another connection
    /// than the one by which the room was joined.
    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The version of the copy; 0 if there is none.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.shared.with_copy(|copy| copy.version())
    }

    /// The current copy of the state.
    ///
    /// The copy is frozen while the returned [`StateRef`] exists. Updates that come meanwhile are
    /// kept, and applied when it is dropped; if they exceed 1 MiB they are discarded, and the
    /// client asks for a snapshot. Nothing else is blocked, but don't wait for
    /// [`changed`](Self::changed) or [`Changes::next`] while holding one.
    ///
    /// If a patch could not be applied, the copy is empty and at version 0 until the snapshot comes
    /// that the client has asked for.
    #[must_use]
    pub fn state(&self) -> StateRef<'_, R> {
        self.settle();
        StateRef { mirror: Some(self.shared.with_copy(|copy| copy.read())), room: self }
    }

    /// Waits until the copy has changed since the last call, or since the room was joined. One call
    /// may cover several changes.
    ///
    /// # Errors
    /// If this client is no longer in the room.
    ///
    /// # Cancel safety
    /// Safe: no change is lost.
    pub async fn changed(&self) -> Result<(), Error> {
        self.shared.changed().await
    }

    /// Starts to report every change in the copy: the path, and the old and new value as JSON. See
    /// [`Changes`] for an example.
    ///
    /// A room reports changes as it applies updates, at once. The copy of a typed room does not know
    /// what is visible of a field that only its owner or viewers see, unless that is a map of
    /// players' own entries. If the state has such a field, the client keeps a second copy while
    /// anyone listens: the first listener makes it ask for a snapshot, and this method waits for it.
    ///
    /// # Errors
    /// If this client is no longer in the room.
    ///
    /// # Cancel safety
    /// Safe: nothing is reported.
    pub async fn changes(&self) -> Result<Changes, Error> {
        self.listen(None).await
    }

    /// Calls a function for each change whose path matches a [pattern](Pattern) such as
    /// `players.*.hp`, until the subscription is dropped.
    ///
    /// The function runs on a thread that may block. If it panics, only its own subscription ends.
    /// If it is too slow, changes are [missed](Subscription::missed), as with
    /// [`changes`](Self::changes).
    ///
    /// ```no_run
    /// # use playfield_client::{Error, Kind, Room};
    /// # async fn example<R: Kind>(room: Room<R>) -> Result<(), Error> {
    /// let subscription = room
    ///     .on_change("players.*.hp", |change| println!("{}: {:?}", change.path, change.new))
    ///     .await?;
    /// # drop(subscription);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If the pattern is invalid, or this client is no longer in the room.
    ///
    /// # Cancel safety
    /// Safe: the function is not called.
    pub async fn on_change(
        &self,
        pattern: &str,
        call: impl FnMut(Change) + Send + 'static,
    ) -> Result<Subscription, Error> {
        let pattern: Pattern = pattern.parse().map_err(|error| Error::usage(format!("{error}")))?;
        Ok(Subscription::begin(self.listen(Some(pattern)).await?, call))
    }

    async fn listen(&self, pattern: Option<Pattern>) -> Result<Changes, Error> {
        let changes = self
            .shared
            .listen(self.player(), pattern, || self.entered.seat.repair(Repair::Snapshot))?;
        changes.begun().await?;
        Ok(changes)
    }

    /// Waits for the next event, in the order in which the room emitted them.
    ///
    /// # Errors
    /// If events were [missed](Error::is_missed), because more came than [are
    /// kept](crate::Connect::queue_limits); if the room [refused](Error::is_refused) a
    /// [`send`](Self::send); if the event can't be read; or if this client is no longer in the
    /// room. Unless this client is no longer in the room, further events may follow.
    ///
    /// # Cancel safety
    /// Safe: no event is lost.
    pub async fn next_event(&self) -> Result<RoomEvent<R>, Error> {
        loop {
            let RawEvent { message, sequence, version, payload } = self.shared.next_event().await?;
            let translated = self.translated(message, payload);
            let translated = translated.map_err(|error| Error::payload("an event", error))?;
            if let Some((message, payload)) = translated {
                return Ok(RoomEvent { message, sequence, version, payload, room: PhantomData });
            }
        }
    }

    /// An event in this client's form. `None` if this client's build does not have it.
    fn translated(
        &self,
        message: MessageRef<'static>,
        payload: Vec<u8>,
    ) -> Result<Option<(MessageRef<'static>, Payload)>, DecodeError> {
        Ok(match (&self.entered.translation, &message) {
            (Translation::Transcoded(transcoder), MessageRef::Index(index)) => {
                let mut own = Vec::new();
                let index = transcoder.event(*index, &payload, &mut own)?;
                index.map(|index| (MessageRef::Index(index), Payload::Bytes(own)))
            }
            (Translation::Learned(learned), MessageRef::Index(index)) => {
                let (name, value) = learned.exchange.event(*index, &payload)?;
                Some((MessageRef::Name(name.to_owned().into()), Payload::Value(value)))
            }
            _ => Some((message, Payload::Bytes(payload))),
        })
    }

    /// Leaves the room, and waits for the node to confirm it.
    ///
    /// # Errors
    /// If the room, or the connection, had ended before.
    ///
    /// # Cancel safety
    /// The room is left in any case.
    pub async fn leave(self) -> Result<(), Error> {
        let place = self.entered.seat.place();
        let read = |event: Event<'_>| matches!(event, Event::Left(_)).then_some(());
        let left =
            self.connection.line.request(Some(place), move |client| client.leave(place.room), read);
        left.await.map_err(|error| self.explain(error))
    }

    /// Sends an encoded message, and waits for the encoded reply.
    async fn request_raw(&self, index: u32, payload: Vec<u8>) -> Result<Vec<u8>, Error> {
        let place = self.entered.seat.place();
        let request = move |client: &mut Session| client.request(place.room, index, &payload);
        let replied = self.connection.line.request(Some(place), request, reply_of);
        replied.await.map_err(|error| self.explain(error))
    }

    /// Sends an encoded message without a reply.
    async fn send_raw(&self, index: u32, payload: Vec<u8>) -> Result<(), Error> {
        if let Some(error) = self.shared.ended() {
            return Err(error);
        }
        let place = self.entered.seat.place();
        let send = move |task: &mut Task| task.send(place, index, &payload);
        self.connection.line.put(Command::send(Some(place), send)).await?;
        // If the room ended meanwhile, the task may not have found the message in its queue.
        self.shared.ended().map_or(Ok(()), Err)
    }

    /// Replaces the error that this client is not in the room by the reason why.
    fn explain(&self, error: Error) -> Error {
        if error.is_left() { self.shared.ended().unwrap_or(error) } else { error }
    }

    /// Applies the updates that waited for readers.
    fn settle(&self) {
        if let Some(repair) = self.shared.with_copy(|copy| copy.repair()) {
            self.entered.seat.repair(repair);
        }
    }
}

impl<R: Kind> fmt::Debug for Room<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room").field("joined", &self.entered.joined).finish_non_exhaustive()
    }
}

/// A read guard for the copy of a room's state, returned by [`Room::state`]. The copy is frozen
/// while it exists.
pub struct StateRef<'a, R: Kind> {
    /// `Some` until it is dropped.
    mirror: Option<Arc<R::Mirror>>,
    room: &'a Room<R>,
}

impl<R: Kind> Deref for StateRef<'_, R> {
    type Target = <R::Mirror as Mirror>::State;

    fn deref(&self) -> &Self::Target {
        let mirror = self.mirror.as_ref().expect("it is taken only in drop");
        Mirror::state(&**mirror)
    }
}

impl<R: Kind> Drop for StateRef<'_, R> {
    fn drop(&mut self) {
        self.mirror = None;
        self.room.settle();
    }
}

impl<R: Kind> fmt::Debug for StateRef<'_, R>
where
    <R::Mirror as Mirror>::State: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

/// An event that a room emitted. Returned by [`Room::next_event`].
///
/// A typed room's event has the method [`decode`](RoomEvent::decode), a [`Dynamic`] room's has
/// [`name`](RoomEvent::name) and [`value`](RoomEvent::value).
pub struct RoomEvent<R> {
    message: MessageRef<'static>,
    sequence: u64,
    version: u64,
    payload: Payload,
    room: PhantomData<fn() -> R>,
}

/// The payload of an event.
enum Payload {
    /// In `packed`.
    Bytes(Vec<u8>),
    /// Decoded with a learned schema.
    Value(Value),
}

impl<R> RoomEvent<R> {
    /// The event's number in this room, from 1.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The version of the copy that holds everything synced before the event.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }
}

impl<R> fmt::Debug for RoomEvent<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoomEvent")
            .field("message", &self.message)
            .field("sequence", &self.sequence)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}
