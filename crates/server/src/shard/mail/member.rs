//! Members whose sessions are on other shards.

use playfield_wire::RequestNumber;
use playfield_wire::client::ResumeRoom;

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
#[derive(Clone, Copy)]
pub(crate) struct ResumeCopy {
    /// The number of the return. The answer repeats it.
    pub(crate) number: u32,
    /// The copy that its client has.
    pub(crate) copy: Option<ResumeRoom>,
}
