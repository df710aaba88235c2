//! The report on a message: whether it is an event, without decoding the frequent ones again.

use std::ops::Range;

use playfield_wire::message::MessageRef;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{RequestNumber, RoomNumber};

use super::{Event, FORMAT, SubscriptionNumber, UpdateKind};

/// The report on a message that was handled.
#[derive(Debug)]
pub(super) enum Report {
    Nothing,
    /// The message itself.
    This,
    /// The message itself, which is about this subscription.
    Of(SubscriptionNumber),
    /// The message itself, with the place of its payload: the frequent ones are not decoded again.
    Update {
        room: RoomNumber,
        kind: UpdateKind,
        version: u64,
        body: Range<usize>,
    },
    Reply {
        request: RequestNumber,
        payload: Range<usize>,
    },
    Event {
        room: RoomNumber,
        sequence: u64,
        version: u64,
        index: u32,
        payload: Range<usize>,
    },
}

impl Report {
    /// The report of a message with these bytes.
    #[inline]
    pub(super) fn with_place(self, message: &ServerMessage<'_>, bytes: &[u8]) -> Self {
        let Self::This = self else { return self };
        let placed = match *message {
            ServerMessage::Patch(server::Patch { room, version, ref body, .. }) => {
                let kind = UpdateKind::Patch;
                place(body, bytes).map(|body| Self::Update { room, kind, version, body })
            }
            ServerMessage::Reply(server::Reply { request, ref payload }) => {
                place(payload, bytes).map(|payload| Self::Reply { request, payload })
            }
            ServerMessage::Event(server::Event {
                room,
                sequence,
                version,
                message: MessageRef::Index(index),
                ref payload,
            }) => place(payload, bytes).map(|payload| Self::Event {
                room,
                sequence,
                version,
                index,
                payload,
            }),
            _ => None,
        };
        placed.unwrap_or(Self::This)
    }

    /// The event, whose data is in the bytes of the message.
    #[inline]
    pub(super) fn event(self, bytes: &[u8]) -> Option<Event<'_>> {
        Some(match self {
            Self::Update { room, kind, version, body } => {
                Event::Update { room, kind, version, body: bytes[body].into() }
            }
            Self::Reply { request, payload } => {
                Event::Reply(server::Reply { request, payload: bytes[payload].into() })
            }
            Self::Event { room, sequence, version, index, payload } => {
                let (message, payload) = (MessageRef::Index(index), bytes[payload].into());
                Event::Event(server::Event { room, sequence, version, message, payload })
            }
            Self::Nothing | Self::This | Self::Of(_) => {
                // The message was decoded before.
                return Event::of(ServerMessage::decode(FORMAT, bytes).ok()?, &self);
            }
        })
    }

    pub(super) fn this_if(is_told: bool) -> Self {
        if is_told { Self::This } else { Self::Nothing }
    }
}

/// The place of a part of the bytes in them. `None` if it was copied.
fn place(part: &[u8], bytes: &[u8]) -> Option<Range<usize>> {
    let start = part.as_ptr().addr().checked_sub(bytes.as_ptr().addr())?;
    let end = start.checked_add(part.len())?;
    (end <= bytes.len()).then_some(start..end)
}
