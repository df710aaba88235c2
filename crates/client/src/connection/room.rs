//! A room that this client is in.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use playfield_state::{Change, Pattern, PlayerId, State, Transcoder};
use playfield_wire::Format;
use playfield_wire::message::MessageRef;

use super::changes::{Changes, Subscription};
use super::command::{Command, Entered, Line};
use super::shared::{RawEvent, Shared};
use crate::core::Joined;
use crate::{Error, Mirror};

/// What a [`Room`] is a room of: a type of state, or [`Dynamic`](crate::Dynamic).
pub trait Kind {
    /// The client's copy of its state.
    type Mirror: Mirror + Send + Sync + 'static;

    /// A copy of nothing yet, which bodies in this format will keep in step.
    fn mirror(format: Format) -> Self::Mirror;
}

impl<T: State + Default + Send + Sync + 'static> Kind for T {
    type Mirror = playfield_state::Mirror<T>;

    fn mirror(_: Format) -> Self::Mirror {
        playfield_state::Mirror::new()
    }
}

/// A room that this client is in, with a copy of its state. Dropping it leaves the room.
///
/// All its methods take `&self`, so that a task can wait for changes while another sends.
pub struct Room<R: Kind> {
    shared: Arc<Shared<R::Mirror>>,
    entered: Entered,
    line: Line,
}

impl<R: Kind> Room<R> {
    pub(super) fn new(line: Line, shared: Arc<Shared<R::Mirror>>, entered: Entered) -> Self {
        Self { shared, entered, line }
    }

    /// The room's id, by which others can join it.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.entered.joined.id
    }

    /// Who this client is in the room.
    #[must_use]
    pub fn player(&self) -> PlayerId {
        PlayerId(self.entered.joined.player)
    }

    /// What the node said about the room when it was joined.
    #[must_use]
    pub fn joined(&self) -> &Joined<'static> {
        &self.entered.joined
    }

    /// The version of the copy; 0 if there is none.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.shared.with_copy(|copy| copy.version())
    }

    /// The copy of the state as it is now.
    ///
    /// Where a patch could not be applied it is that of nothing, at version 0, until the snapshot
    /// has come that was asked for.
    ///
    /// It stands still for as long as this is held, and nobody waits for it: patches that come
    /// meanwhile are kept, and applied when it is dropped. If more than a mebibyte of them gathers,
    /// they are dropped and a snapshot is asked for instead.
    #[must_use]
    pub fn state(&self) -> StateRef<'_, R> {
        self.settle();
        StateRef { mirror: Some(self.shared.with_copy(|copy| copy.look())), room: self }
    }

    /// Waits until the copy has changed since this was last called, or since the room was joined.
    /// Several changes may be told of at once.
    ///
    /// # Errors
    /// If this client is no longer in the room.
    ///
    /// # Cancel safety
    /// Safe: no change is lost.
    pub async fn changed(&self) -> Result<(), Error> {
        self.shared.changed().await
    }

    /// What changes in the copy, place by place, with old and new values as JSON: what comes, goes
    /// and becomes another, in the order in which it does.
    ///
    /// A second copy is kept for it while anyone listens; with the first who does, a snapshot is
    /// asked for, and this waits for it. From it on every change is told.
    ///
    /// ```no_run
    /// # async fn example<R: playfield_client::Kind>(room: playfield_client::Room<R>) -> Result<(), playfield_client::Error> {
    /// let mut changes = room.changes().await?;
    /// loop {
    ///     match changes.next().await {
    ///         Ok(change) => println!("{} {:?}: {:?}", change.path, change.kind, change.new),
    ///         Err(error) if error.is_missed() => println!("{error}"),
    ///         Err(error) => return Err(error),
    ///     }
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// If this client is no longer in the room.
    ///
    /// # Cancel safety
    /// Safe: nothing is listened to.
    pub async fn changes(&self) -> Result<Changes, Error> {
        self.listen(None).await
    }

    /// Calls back for each change of which the path matches a [pattern](Pattern) such as
    /// `players.*.hp`, until the subscription is dropped.
    ///
    /// The function is called where it may block, in no hurry for anyone else. If it panics, its
    /// subscription is over and nothing else. If it is too slow, changes are
    /// [missed](Subscription::missed), as by [`changes`](Self::changes).
    ///
    /// ```no_run
    /// # async fn example<R: playfield_client::Kind>(room: playfield_client::Room<R>) -> Result<(), playfield_client::Error> {
    /// let subscription = room
    ///     .on_change("players.*.hp", |change| println!("{}: {:?} -> {:?}", change.path, change.old, change.new))
    ///     .await?;
    /// # drop(subscription);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// If it is no pattern, or this client is no longer in the room.
    ///
    /// # Cancel safety
    /// Safe: nothing is called.
    pub async fn on_change(
        &self,
        pattern: &str,
        call: impl FnMut(Change) + Send + 'static,
    ) -> Result<Subscription, Error> {
        let pattern: Pattern = pattern.parse().map_err(|error| Error::usage(format!("{error}")))?;
        Ok(Subscription::begin(self.listen(Some(pattern)).await?, call))
    }

    async fn listen(&self, pattern: Option<Pattern>) -> Result<Changes, Error> {
        let changes = self.shared.listen(self.player(), pattern, || self.entered.seat.resync())?;
        changes.begun().await?;
        Ok(changes)
    }

    /// The next event, in the order in which they were raised.
    ///
    /// # Errors
    /// If events were [missed](Error::is_missed), since more came than [are
    /// kept](crate::Connect::events_max); if the room [refused](Error::is_refused) something that
    /// was sent with [`send`](Self::send); or if this client is no longer in the room. After the
    /// first two there may be further events.
    ///
    /// # Cancel safety
    /// Safe: no event is lost.
    pub async fn next_event(&self) -> Result<RoomEvent<R>, Error> {
        let RawEvent { message, sequence, version, payload } = self.shared.next_event().await?;
        let format = self.line.format;
        Ok(RoomEvent { message, sequence, version, payload, format, room: PhantomData })
    }

    /// Leaves the room, and waits for the node to confirm it.
    ///
    /// # Errors
    /// If the room, or the connection, was over before.
    ///
    /// # Cancel safety
    /// The room is left in any case.
    pub async fn leave(self) -> Result<(), Error> {
        let room = self.entered.joined.room;
        self.line
            .ask(|answer| Command::Leave { room, answer })
            .await
            .map_err(|error| self.explain(error))
    }

    /// Sends a message that is answered, and waits for the answer.
    pub(crate) async fn request_raw(
        &self,
        index: u32,
        name: Cow<'static, str>,
        payload: Vec<u8>,
    ) -> Result<Vec<u8>, Error> {
        let room = self.entered.joined.room;
        self.line
            .ask(|answer| Command::Request { room, index, name, payload, answer })
            .await
            .map_err(|error| self.explain(error))
    }

    /// Sends a message that is not answered.
    pub(crate) async fn send_raw(
        &self,
        index: u32,
        name: Cow<'static, str>,
        payload: Vec<u8>,
    ) -> Result<(), Error> {
        if let Some(error) = self.shared.ended() {
            return Err(error);
        }
        let room = self.entered.joined.room;
        self.line.tell(Command::Send { room, index, name, payload }).await
    }

    /// What turns the node's schema into this client's, if they differ.
    pub(crate) fn transcoder(&self) -> Option<&Transcoder> {
        self.entered.transcoder.as_deref()
    }

    /// The copy of the state, for what it knows beside that.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&R::Mirror) -> T) -> T {
        self.shared.with_copy(|copy| look(&copy.look()))
    }

    pub(crate) fn format(&self) -> Format {
        self.line.format
    }

    /// The reason why this client is no longer in the room, rather than that it isn't.
    fn explain(&self, error: Error) -> Error {
        if error.is_left() { self.shared.ended().unwrap_or(error) } else { error }
    }

    /// Applies what waited while someone looked.
    fn settle(&self) {
        if self.shared.with_copy(|copy| copy.settle()).is_err() {
            self.entered.seat.resync();
        }
    }
}

impl<R: Kind> fmt::Debug for Room<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room").field("joined", &self.entered.joined).finish_non_exhaustive()
    }
}

/// A look at the copy of a room's state, which stands still meanwhile.
pub struct StateRef<'a, R: Kind> {
    /// Always there until it is dropped.
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

/// Something that happened in a room.
pub struct RoomEvent<R> {
    pub(crate) message: MessageRef<'static>,
    sequence: u64,
    version: u64,
    pub(crate) payload: Vec<u8>,
    pub(crate) format: Format,
    room: PhantomData<fn() -> R>,
}

impl<R> RoomEvent<R> {
    /// Counts the events of this room, from 1.
    #[must_use]
    pub fn sequence(&self) -> u64 {
        self.sequence
    }

    /// The room's version when the event was raised. A copy of this version holds all that was
    /// synced before the event.
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
            .field("payload_bytes", &self.payload.len())
            .finish_non_exhaustive()
    }
}
