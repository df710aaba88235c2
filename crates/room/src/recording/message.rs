//! Messages in and out of a room, for people who look.

use std::borrow::Cow;
use std::time::Duration;

use playfield_state::{Format, PlayerId};
use playfield_wire::message::MessageRef;
use playfield_wire::{ErrorCode, RequestNumber};

/// The longest payload that is kept, in bytes.
pub const RECORDED_PAYLOAD_BYTES_MAX: usize = 4096;

/// A message that went in or out of a room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Counts from 1 while the room is recorded.
    pub number: u64,
    /// When it was: by the node's clock, or in a [replay](super::Replay) by the room's.
    pub at: Duration,
    /// The player who sent it, or for whom it is.
    pub player: PlayerId,
    /// The kind of message.
    pub kind: RecordedKind,
    /// The format of the payload.
    pub format: Format,
    /// The payload; `None` if it is longer than 4 KiB.
    pub payload: Option<Vec<u8>>,
}

/// The kind of a recorded message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordedKind {
    /// A client's message; with the number of a request, if it wants a reply.
    Message(MessageRef<'static>, Option<RequestNumber>),
    /// The reply to a request.
    Reply(RequestNumber),
    /// An event, by its number in the room type's declaration.
    Event(u32),
    /// A refusal, whose text is the payload.
    Error(ErrorCode, Option<RequestNumber>),
}

impl RecordedKind {
    /// A client's message.
    #[must_use]
    pub fn message(message: &MessageRef<'_>, request: Option<RequestNumber>) -> Self {
        let message = match message {
            MessageRef::Index(index) => MessageRef::Index(*index),
            MessageRef::Name(name) => MessageRef::Name(Cow::Owned(name.clone().into_owned())),
        };
        Self::Message(message, request)
    }
}

impl Recorded {
    /// A message with its payload, unless that is too long.
    #[must_use]
    pub fn new(
        number: u64,
        at: Duration,
        player: PlayerId,
        format: Format,
        kind: RecordedKind,
        payload: &[u8],
    ) -> Self {
        let payload = (payload.len() <= RECORDED_PAYLOAD_BYTES_MAX).then(|| payload.to_vec());
        Self { number, at, player, kind, format, payload }
    }
}
