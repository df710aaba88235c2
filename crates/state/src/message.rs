//! Messages, and a room type as its clients see it: what rooms and clients share.

use playfield_wire::schema::RoomSchema;

use crate::Data;

/// A message: from a player, from a timer, from background work, from another room, or, as an
/// event, to players.
///
/// Derive it, with `#[reply(Type)]` if the reply is not `()`, and `#[message(rate = 10)]` if a
/// player may send it only so often. `Handle` in the crate of the rooms has examples.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message",
    note = "derive it: `#[derive(Message)]`"
)]
pub trait Message: Data {
    /// The name under which clients send it: that of the type.
    const NAME: &'static str;

    /// The reply to it, where it is a request.
    type Reply: Data;

    /// The rate at which each player may send it to a room; `None` = as often as the connection may
    /// send.
    const RATE: Option<MessageRate> = None;
}

/// The rate at which a player may send a message: once in each interval, and a burst at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRate {
    /// The interval, in nanoseconds.
    pub interval_ns: u64,
    /// The maximum number at once.
    pub burst: u64,
}

/// A room that takes this message from players.
#[diagnostic::on_unimplemented(
    message = "the room `{Self}` declares no message `{M}`",
    note = "declare it: `#[room(messages({M}))]`"
)]
pub trait Accepts<M: Message> {
    /// Its position in the declaration.
    const INDEX: u32;
}

/// A room that sends this event to players.
#[diagnostic::on_unimplemented(
    message = "the room `{Self}` declares no event `{E}`",
    note = "declare it: `#[room(events({E}))]`"
)]
pub trait Emits<E: Message> {
    /// Its position in the declaration.
    const INDEX: u32;
}

/// A room type as its clients see it. The attribute `room` implements it.
pub trait RoomInterface {
    /// The options that a client can specify when it creates a room.
    type CreateOptions: Data + Default;

    /// The schema: state, options, messages and events.
    fn room_schema() -> RoomSchema;
}
