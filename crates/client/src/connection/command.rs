//! What handles ask of the connection's task.

use std::borrow::Cow;
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use playfield_state::Transcoder;
use playfield_wire::Format;
use playfield_wire::schema::RoomSchema;
use playfield_wire::server::RoomInfo;
use tokio::sync::{mpsc, oneshot};

use super::schemas::Build;
use super::shared::Sink;
use crate::Error;
use crate::core::Joined;
use crate::error::Ending;

pub(super) type Answer<T> = oneshot::Sender<Result<T, Error>>;

/// Something to do for a handle.
pub(super) enum Command {
    Enter(Enter),
    Leave {
        room: u32,
        answer: Answer<()>,
    },
    Schema {
        room_type: String,
        answer: Answer<RoomSchema>,
    },
    List {
        query: Query,
        answer: Answer<Vec<RoomInfo<'static>>>,
    },
    Request {
        room: u32,
        index: u32,
        name: Cow<'static, str>,
        payload: Vec<u8>,
        answer: Answer<Vec<u8>>,
    },
    Send {
        room: u32,
        index: u32,
        name: Cow<'static, str>,
        payload: Vec<u8>,
    },
    Ping {
        answer: Answer<Duration>,
    },
    Close,
}

/// A wish to enter a room.
pub(super) struct Enter {
    pub(super) door: Door,
    /// What this client was built with, unless the room is of no type.
    pub(super) build: Option<Build>,
    pub(super) sink: Arc<dyn Sink>,
    pub(super) answer: Answer<Entered>,
}

/// How a room is entered.
#[derive(Debug)]
pub(crate) enum Door {
    Join { id: String },
    Create { room_type: String, private: bool, options: Vec<u8> },
    JoinOrCreate { room_type: String, options: Vec<u8> },
}

impl Door {
    /// The room type, if that is said, and the options.
    pub(super) fn of_type(&mut self) -> Option<(&str, &mut Vec<u8>)> {
        match self {
            Self::Join { .. } => None,
            Self::Create { room_type, options, .. } | Self::JoinOrCreate { room_type, options } => {
                Some((room_type, options))
            }
        }
    }
}

/// Which rooms to list.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) room_type: Option<String>,
    pub(super) filter: Vec<(String, String)>,
    pub(super) limit: u32,
}

/// A room that was entered, its first snapshot applied.
#[derive(Debug)]
pub(super) struct Entered {
    pub(super) joined: Joined<'static>,
    pub(super) seat: Seat,
    /// What turns the node's schema into this client's, if they differ.
    pub(super) transcoder: Option<Arc<Transcoder>>,
}

/// What must not wait for a place in the queue of commands. There is at most one of each kind per
/// room.
#[derive(Clone, Copy, Debug)]
pub(super) enum Signal {
    /// The room's handle was dropped.
    Dropped { room: u32 },
    /// The copy of the room needs a snapshot.
    Resync { room: u32 },
}

/// A place in a room, which is left when this is dropped: also while the answer to a join is on its
/// way to someone who has stopped waiting for it.
#[derive(Debug)]
pub(super) struct Seat {
    pub(super) room: u32,
    pub(super) signals: mpsc::UnboundedSender<Signal>,
}

impl Seat {
    pub(super) fn resync(&self) {
        // Without a connection there is nothing to be in step with.
        let _ = self.signals.send(Signal::Resync { room: self.room });
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // Without a connection the room is left already.
        let _ = self.signals.send(Signal::Dropped { room: self.room });
    }
}

/// A handle's way to the connection's task.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) commands: mpsc::Sender<Command>,
    /// How the connection ended, once it has.
    pub(super) ending: Arc<OnceLock<Ending>>,
    pub(super) format: Format,
}

impl Line {
    /// Has something done that is not answered. Waits while the queue of commands is full.
    pub(super) async fn tell(&self, command: Command) -> Result<(), Error> {
        self.commands.send(command).await.map_err(|_| self.closed())
    }

    /// Has something done, and waits for the answer.
    pub(super) async fn ask<T>(
        &self,
        command: impl FnOnce(Answer<T>) -> Command,
    ) -> Result<T, Error> {
        let (answer, answered) = oneshot::channel();
        self.tell(command(answer)).await?;
        answered.await.unwrap_or_else(|_| Err(self.closed()))
    }

    /// Waits until the connection is over.
    pub(super) async fn until_closed(&self) {
        self.commands.closed().await;
    }

    pub(super) fn closed(&self) -> Error {
        Error::closed(self.ending.get().cloned().unwrap_or(Ending::Here))
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line")
            .field("ending", &self.ending.get())
            .field("format", &self.format)
            .finish()
    }
}
