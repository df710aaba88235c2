//! The operations of an operator on a room.

use playfield_state::{Format, PlayerId};

/// An operation on a room by someone who runs the node, such as from the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Removes a player, as [`Context::kick`](crate::Context::kick) does, with this text.
    Kick {
        /// The player.
        player: PlayerId,
        /// The text they receive.
        text: String,
    },
    /// Refuses further players, or lets them join again.
    Lock(bool),
    /// Records the room in a file, or ends that: see [`Recorder`](crate::recording::Recorder).
    Record(bool),
    /// Sends an event.
    Emit {
        /// The event's position in the room type's declaration.
        event: u32,
        /// The event in each format, by [`Format::number`].
        payloads: [Vec<u8>; Format::ALL.len()],
        /// One player, or all.
        to: Option<PlayerId>,
    },
}
