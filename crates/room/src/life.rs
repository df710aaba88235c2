//! Why players leave and rooms end, and how far a room's life has come.

use playfield_wire::ErrorCode;

use crate::Error;

/// Why a room ends, as [`Room::closing`](crate::Room::closing) receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EndReason {
    /// The room closed itself: [`Context::close`](crate::Context::close).
    Closed,
    /// The room was without players for `empty_ms`, or the player it was created for was refused.
    Empty,
    /// The node shuts down.
    ShuttingDown,
    /// The node's operator, or code outside of rooms, closed it.
    Drained,
    /// Another node of the cluster has taken the room's key over. No code of the room is called
    /// any more.
    Moved,
}

impl EndReason {
    /// Returns the error that players receive.
    pub(crate) fn error(self, text: &str) -> Error {
        let code = match self {
            Self::ShuttingDown => ErrorCode::ShuttingDown,
            Self::Moved => ErrorCode::RoomMoved,
            Self::Closed | Self::Empty | Self::Drained => ErrorCode::RoomClosed,
        };
        Error::new(code, text)
    }
}

/// Why a player is gone, as [`Room::leave`](crate::Room::leave) receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LeaveReason {
    /// The player left, or ended their session.
    Left,
    /// Their connection was lost, and they did not return within the room's
    /// [grace](crate::Settings::grace_ms); or it was closed for an error.
    ConnectionLost,
    /// The same user has joined again, and the room has
    /// [one player per user](crate::OnePerUser::TakeOver); or has opened another session, and the
    /// node keeps one for each user.
    TakenOver,
    /// The room removed them: [`Context::kick`](crate::Context::kick). Or the program has ended
    /// the sessions of their user.
    Kicked,
    /// The room ends.
    RoomEnded(EndReason),
}

/// The work that a room had not done when it was dropped, for its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Undone {
    /// Its end: it or its background work took too long. It was saved, if it is persistent.
    End,
    /// Its save: its last changes are lost.
    Save,
}

/// The stage of a room's life, for its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The room takes players and messages.
    Open,
    /// The room ends, and its players are still there. The host syncs it at once, and then calls
    /// [`AnyRoom::part`](crate::AnyRoom::part).
    Closing,
    /// Its players are gone, and it waits for background work, until its deadline
    /// ([`AnyRoom::wake_at`](crate::AnyRoom::wake_at)) at the latest.
    Finishing,
    /// The room has ended, and is to be dropped.
    Ended,
}
