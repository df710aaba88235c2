//! The messages between two processes.

use playfield_state::{Bytes, Data};

/// The version of these messages. Both processes must have the same.
pub(super) const VERSION: u32 = 4;

/// The most bytes of a part, and of all in a message.
pub(super) const PART_BYTES: usize = 256 << 10;

/// The most bytes of a part beside its own.
pub(super) const PART_HEADER_BYTES_MAX: usize = 8;

/// The most bytes of a message. The names of room types are longer than what parts have.
pub(super) const MESSAGE_BYTES_MAX: usize = PART_BYTES + (64 << 10);

/// A message of either process.
#[derive(Data, Debug)]
pub(super) enum Message {
    /// The new process: it is there, and has these room types.
    Hello { version: u32, pid: u32, room_types: Vec<String> },
    /// The old process: go on. It is this time since the node started, tokens were signed with this
    /// secret, and it has so many connections.
    Accept { now: u64, secret: [u8; 32], connections: u32 },
    /// The new process: it has all that it needs beside what is frozen.
    Ready,
    /// Either process: there will be no upgrade.
    Refuse { why: String },
    /// The old process: parts of pieces, in their order.
    Parts { parts: Vec<Part> },
    /// The old process: that was all, and it has given up what only one can have. Its sockets
    /// follow: first those that listen, then the open connections of the sessions that say so.
    All { listeners: Vec<Listener>, connections: u32 },
    /// The new process: it has it all, and has yet to begin.
    Holds,
    /// The old process: begin.
    Commit,
    /// The new process: it serves, but has not touched the open connections.
    Serves,
    /// The old process: it does not touch them any more.
    Over,
}

/// A part of a piece.
#[derive(Data, Debug)]
pub(super) struct Part {
    pub(super) of: Piece,
    pub(super) is_last: bool,
    pub(super) bytes: Bytes,
}

#[derive(Clone, Copy, Data, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// The knowledge of the node beside its rooms and sessions.
    Node,
    Room,
    Session,
    Channel,
    Schema,
}

/// A socket that listens.
#[derive(Clone, Data, Debug)]
pub(super) struct Listener {
    /// The number of the service that it is for; `None` is for rooms and pages.
    pub(super) service: Option<u32>,
}
