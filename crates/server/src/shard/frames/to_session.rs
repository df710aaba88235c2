//! Frames of rooms for the sessions of their members.

use std::time::Duration;

use playfield_wire::{ErrorCode, RequestNumber};

use crate::shard::keys::Seat;

/// A message from a room to the session of a member.
#[derive(Debug, PartialEq)]
pub(crate) enum ToSession<'a> {
    /// The room agreed. `joined` follows with its next sync.
    Seated(Seat),
    /// The message `joined`.
    Joined(&'a [u8]),
    /// Another message for the client that has to arrive.
    Counted(&'a [u8]),
    /// A message that another replaces if it is lost.
    Fleeting(&'a [u8]),
    /// A counted message would be here, but was too much to keep.
    Lost,
    /// An act of the member is done.
    Done,
    /// An act of the member waits until the room goes on: it is done later, too.
    Waits,
    /// Work for this client alone took so long.
    Took(Duration),
    /// The room holds `after` bytes of events for a player who is entering, instead of `before`.
    Holds { before: usize, after: usize },
    /// The message that brings the copy up to date, for the return of the client with this number;
    /// empty if it is.
    CopyResumed { number: u32, body: &'a [u8] },
    /// The client is given up. `unless_away`: a session that turns out to have no connection goes
    /// on.
    Doom { code: ErrorCode, text: &'a str, unless_away: bool },
    /// The session has left the room. `snapshots` is what
    /// [remains](crate::shard::allowance::Allowance::remaining) of its limit, and `answered` the
    /// request to leave that was answered, if there was one.
    Left { snapshots: [u64; 2], answered: Option<RequestNumber> },
}
