//! The messages between two processes.

use playfield_state::{Bytes, Data};

/// The version of these messages. Both processes must have the same.
pub(super) const VERSION: u32 = 1;

/// The bytes of a part.
pub(super) const PART_BYTES: usize = 256 << 10;

/// The most bytes of a message.
pub(super) const MESSAGE_BYTES_MAX: usize = PART_BYTES + (64 << 10);

/// A message of either process.
#[derive(Data, Debug)]
pub(super) enum Message {
    /// The new process: it is there, and has these room types.
    Hello { version: u32, pid: u32, room_types: Vec<String> },
    /// The old process: go on.
    Accept,
    /// Either process: there will be no upgrade.
    Refuse { why: String },
    /// The old process: a piece of a room or of a session.
    Part { of: Piece, is_last: bool, bytes: Bytes },
    /// The old process: that was all. It is this time since the node started; tokens were signed
    /// with this secret; and so many sockets follow.
    All { now: u64, secret: [u8; 32], listeners: Vec<Listener> },
    /// The new process: it has it all, and has yet to begin.
    Holds,
    /// The old process: begin.
    Commit,
    /// The new process: it serves.
    Serves,
}

#[derive(Clone, Copy, Data, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Room,
    Session,
}

/// A socket that listens.
#[derive(Clone, Data, Debug)]
pub(super) struct Listener {
    /// The number of the service that it is for; `None` is for rooms and pages.
    pub(super) service: Option<u32>,
}
