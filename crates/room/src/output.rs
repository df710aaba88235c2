//! The output of a room while it runs: the interface to its host.

use std::any::TypeId;
use std::future::Future;
use std::pin::Pin;

use playfield_state::{Data, Format, PlayerId};
use playfield_wire::{ErrorCode, RequestNumber};

use crate::{Completion, Error, InternalMessage, Mail, NewRoom};

/// The host's number for a player's output. To a room it means nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Link(pub u64);

/// The fields that identify an event.
#[derive(Clone, Copy, Debug)]
pub struct EventHeader {
    /// The event's position in the room type's declaration.
    pub index: u32,
    /// Its name.
    pub name: &'static str,
    /// The room's version when it was sent.
    pub version: u64,
}

/// A publication of a room in a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Publication {
    /// The channel's name.
    pub channel: String,
    /// The published payload.
    pub payload: Payload,
}

impl Publication {
    /// A value, for a channel whose payloads are JSON.
    pub fn json(channel: &str, value: &impl Data) -> Self {
        let mut text = Vec::new();
        value.write(Format::Json, &mut text);
        Self { channel: channel.into(), payload: Payload::Json(text) }
    }

    /// The value that was published.
    ///
    /// # Errors
    /// If it is of another type, or bytes.
    pub fn read<T: Data>(&self) -> Result<T, Error> {
        let bad = |text: String| Error::new(ErrorCode::BadPayload, text);
        match &self.payload {
            Payload::Json(text) => {
                T::read(Format::Json, text).map_err(|error| bad(error.to_string()))
            }
            Payload::Bytes(_) => Err(bad("the publication is bytes".into())),
        }
    }
}

/// A push of a room to devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Push {
    /// The devices it is for.
    pub to: Target,
    /// The pushed payload.
    pub payload: Payload,
}

impl Push {
    /// A value, for a fleet whose payloads are JSON.
    pub fn json(to: impl Into<Target>, value: &impl Data) -> Self {
        let mut text = Vec::new();
        value.write(Format::Json, &mut text);
        Self { to: to.into(), payload: Payload::Json(text) }
    }

    /// The value that is pushed.
    ///
    /// # Errors
    /// If it is of another type, or bytes.
    pub fn read<T: Data>(&self) -> Result<T, Error> {
        let bad = |text: String| Error::new(ErrorCode::BadPayload, text);
        match &self.payload {
            Payload::Json(text) => {
                T::read(Format::Json, text).map_err(|error| bad(error.to_string()))
            }
            Payload::Bytes(_) => Err(bad("the push is bytes".into())),
        }
    }
}

/// The devices that a push is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// The device of this id.
    Device(String),
    /// All that have this tag.
    Tag(String),
    /// All.
    All,
}

impl Target {
    /// All devices that have this tag.
    pub fn tag(tag: impl Into<String>) -> Self {
        Self::Tag(tag.into())
    }
}

impl From<&str> for Target {
    fn from(id: &str) -> Self {
        Self::Device(id.into())
    }
}

impl From<String> for Target {
    fn from(id: String) -> Self {
        Self::Device(id)
    }
}

/// The payload of a [`Publication`] or a [`Push`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// The text of a JSON value.
    Json(Vec<u8>),
    /// Bytes.
    Bytes(Vec<u8>),
}

/// A background task that waits. Its result is an internal message to the room.
pub type Task = Pin<Box<dyn Future<Output = InternalMessage> + Send>>;

/// A background task that computes. Its result is an internal message to the room.
pub type Job = Box<dyn FnOnce() -> InternalMessage + Send>;

/// The receiver of a room's output. A host implements it. Calls come in the order in which the room
/// acts, with payloads in the format of the player's [`Entrant`](crate::Entrant).
pub trait RoomOutput {
    /// The reply to a player's request.
    fn reply(&mut self, link: Link, request: RequestNumber, payload: &[u8]);

    /// The refusal of a request or, if `request` is `None`, of a send.
    fn error(&mut self, link: Link, request: Option<RequestNumber>, error: &Error);

    /// An error of a handler that this output tells nobody: of a join, or of an internal message
    /// that no room waits for, which is logged.
    fn unheard(&mut self, error: &Error) {
        let _ = error;
    }

    /// An event for one player.
    fn event(&mut self, link: Link, event: EventHeader, payload: &[u8]);

    /// The room removed this player: they were kicked, or it ended. The link is not used again.
    fn removed(&mut self, link: Link, why: &Error);

    /// A player who waited is in the room from here on: see
    /// [`Admission::Waiting`](crate::Admission::Waiting).
    fn admitted(&mut self, link: Link, player: PlayerId);

    /// A player who waited is refused. The link is not used again.
    fn refused(&mut self, link: Link, why: &Error);

    /// Starts a background task that waits. `task` comes back in [`Mail::Done`], or in
    /// [`Mail::Panicked`] if it panicked.
    ///
    /// # Errors
    /// `busy` at the host's limit; the task is dropped.
    fn spawn(&mut self, task: u64, work: Task) -> Result<(), Error>;

    /// Queues a background task that computes. `task` comes back as for [`spawn`](Self::spawn).
    ///
    /// # Errors
    /// `busy` when the host's queue is full; the task is dropped.
    fn compute(&mut self, task: u64, job: Job) -> Result<(), Error>;

    /// The completion of a save: its outcome comes back in [`Mail::Saved`] with this number,
    /// however many tasks the host runs.
    fn completion(&mut self, save: u64) -> Completion;

    /// A message of this player waits in a room that the host has [paused](crate::Pausable). The
    /// host sees to it that not too many do.
    fn waits(&mut self, player: PlayerId) {
        let _ = player;
    }

    /// The store has refused a save: another owner has opened it. Returns whether the host pauses
    /// the room after this call, and opens its save again ([`AnyRoom::reopened`]) or ends it.
    /// Otherwise the room ends now.
    ///
    /// [`AnyRoom::reopened`]: crate::AnyRoom::reopened
    fn fenced(&mut self) -> bool {
        false
    }

    /// Has another room created. It is registered at once, so that mail and players that come after
    /// this find it.
    ///
    /// # Errors
    /// As [`RoomBuilder::create`](crate::RoomBuilder::create). Refusals by the room's own code are
    /// logged.
    fn create(&mut self, room: NewRoom) -> Result<(), Error>;

    /// The id of the room of a type that has this key. The answer is one of the room's inputs.
    ///
    /// # Errors
    /// As [`Context::find`](crate::Context::find).
    fn find(&mut self, rust_type: TypeId, key: &str) -> Result<Option<String>, Error>;

    /// Publishes in a channel. What the host can't publish, it logs.
    fn publish(&mut self, publication: Publication);

    /// Pushes to devices. What the host can't push, it logs.
    fn push(&mut self, push: Push);

    /// Sends mail to another room, by its id. If there is no such room, the host answers a request
    /// with an error and drops anything else.
    fn post(&mut self, to: &str, mail: Mail);

    /// Does what a journaled room wants outside its players' links, once the journal has the input
    /// that caused it. By default that is at once.
    ///
    /// # Errors
    /// The same as those of the method that the output is named for.
    fn hold(&mut self, held: Held) -> Result<(), Error> {
        match held {
            Held::Publish(publication) => self.publish(publication),
            Held::Push(push) => self.push(push),
            Held::Post(to, mail) => self.post(&to, mail),
            Held::Spawn(task, work) => return self.spawn(task, work),
            Held::Compute(task, job) => return self.compute(task, job),
            Held::Create(room) => return self.create(*room),
        }
        Ok(())
    }
}

/// Output of a journaled room that is for none of its players.
pub enum Held {
    /// Is [published](RoomOutput::publish).
    Publish(Publication),
    /// Is [pushed](RoomOutput::push).
    Push(Push),
    /// Is [posted](RoomOutput::post), to the room with this id.
    Post(String, Mail),
    /// Is [spawned](RoomOutput::spawn). It is accepted or refused at once, and begins later.
    Spawn(u64, Task),
    /// Is [computed](RoomOutput::compute). It is accepted or refused at once, and begins later.
    Compute(u64, Job),
    /// Is [created](RoomOutput::create). It is registered or refused at once, and created later.
    Create(Box<NewRoom>),
}
