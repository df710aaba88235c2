//! Mail of sessions for their seats in rooms.

use std::time::Duration;

use playfield_room::LeaveReason;
use playfield_wire::RequestNumber;
use playfield_wire::client::ResumeRoom;

use crate::addresses::AddressName;
use crate::shard::mail::Act;

/// A message from a session to its seat in a room.
#[derive(Debug, PartialEq)]
pub(crate) enum ToMember<'a> {
    /// The member does something.
    Act(Act<'a>),
    /// The session ended, or leaves the room.
    Go { why: LeaveReason, farewell: Farewell },
    /// The session has lost its connection, and goes on.
    Lost,
    /// A ping to the client was answered.
    Measured(Duration),
    /// The session has a connection again, from this address. Its client was not heard for `away`.
    Resumed { away: Duration, address: AddressName },
    /// The copy of this room is the next to be brought up to date.
    ResumeCopy(ResumeCopy),
    /// The session takes output again.
    ResumeEnded,
    /// More waits for the client than its transport takes.
    Blocked,
    /// All that waited for the client was written to the transport, with this many bytes of
    /// messages of the room.
    Received(usize),
}

/// The reason that a member hears when it leaves its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Farewell {
    /// Nothing: its session ends.
    None,
    /// The member asked to leave, by this request.
    Asked(RequestNumber),
    /// The connection was lost for longer than the seat is kept.
    GraceOver,
    /// The session is away, and the room sent more before the player was in than may be kept.
    TooMuch,
}

/// A session of another shard has come back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ResumeCopy {
    /// The number of the return. The answer repeats it.
    pub(crate) number: u32,
    /// The copy that its client has.
    pub(crate) copy: Option<ResumeRoom>,
}
