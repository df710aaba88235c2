//! The interface to the engine: records that change by compare-and-set, and messages to nodes.

use std::fmt;
use std::sync::Arc;

use crate::record::{Incarnation, Slot};

/// The name of a record.
pub type Key = Arc<str>;

/// The number of a write. Each write gets a greater one than all before it, whatever its key: the
/// records that decide share one sequence, so an engine that loses its last writes loses those of
/// all keys since the same moment.
pub type Revision = u64;

/// The number by which an answer names its command.
pub type Tag = u64;

/// Carries commands to an engine, and its events back.
///
/// Each command with a tag is answered once. A command whose outcome is not known after some
/// seconds is answered with [`EngineError::Unknown`]; it may still take effect later. A command is
/// not sent again on another connection: revisions are used again by an engine that has lost its
/// last writes, and a condition from before that could hold by chance.
pub trait Engine {
    /// Begins a command. Never blocks.
    fn begin(&mut self, command: Command);

    /// Returns the next event, if there is one.
    fn next(&mut self) -> Option<EngineEvent>;
}

/// A command to the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Reads a record from the engine's leader. It may overtake a write that was not answered yet.
    Read {
        /// The record.
        key: Key,
        /// The number of the answer.
        tag: Tag,
    },
    /// Lists the records whose names begin with a text.
    List {
        /// The text.
        prefix: &'static str,
        /// The number of the answer.
        tag: Tag,
    },
    /// Writes a record.
    Write {
        /// The record.
        key: Key,
        /// Its new value.
        value: Vec<u8>,
        /// The condition: the revision of the last write to this key, 0 if there was none.
        expect: Revision,
        /// The number of the answer.
        tag: Tag,
    },
    /// Removes a record. It keeps a revision, that of its removal.
    Purge {
        /// The record.
        key: Key,
        /// The condition, as for a write.
        expect: Revision,
        /// The number of the answer.
        tag: Tag,
    },
    /// Sends a message to all other nodes. It may get lost.
    Broadcast {
        /// The message.
        bytes: Vec<u8>,
    },
    /// Sends a message to one incarnation of a node. It may get lost; those of one node to another
    /// keep their order.
    Send {
        /// The slot of the node.
        to: Slot,
        /// The incarnation.
        incarnation: Incarnation,
        /// The message.
        bytes: Vec<u8>,
    },
    /// Receives the messages to this incarnation from now on, and no longer those to the one before.
    Listen {
        /// The slot of this node.
        slot: Slot,
        /// Its incarnation.
        incarnation: Incarnation,
    },
}

/// An event of the engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineEvent {
    /// The outcome of a command.
    Answered {
        /// The number of the command.
        tag: Tag,
        /// Its outcome.
        result: Result<Answer, EngineError>,
    },
    /// A message that another node has broadcast.
    Received {
        /// The message.
        bytes: Vec<u8>,
    },
    /// A message that another node has sent to this one.
    Delivered {
        /// The message.
        bytes: Vec<u8>,
    },
    /// The connection to the engine was lost, or messages were dropped.
    Interrupted,
}

/// The answer to a command that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The record that was read.
    Read(Record),
    /// The names of the records that have a value, and maybe of some that were removed.
    Listed(Vec<Key>),
    /// The revision of the write or of the removal.
    Written(Revision),
}

/// A record as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The revision of the last write, 0 if there was none.
    pub revision: Revision,
    /// The value, unless there is none.
    pub value: Option<Vec<u8>>,
}

/// The reasons why a command has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EngineError {
    /// The condition did not hold, so nothing was written.
    Conflict,
    /// The outcome is not known: the command may have taken effect, or may do so later.
    Unknown,
}

impl fmt::Display for EngineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Conflict => "the record was written by another node since it was read",
            Self::Unknown => "the engine did not answer in time, so the outcome is not known",
        })
    }
}

impl std::error::Error for EngineError {}
