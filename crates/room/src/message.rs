//! Messages, and what a room type declares of them.

use std::borrow::Cow;

use playfield_state::{Data, Format};
use playfield_wire::ErrorCode;
use playfield_wire::message::MessageRef;
use playfield_wire::schema::RoomSchema;

use crate::{Context, Error, Player, Result, Room};

/// A message: from a player, from another room, from a timer or background work, or, as an event,
/// to players.
///
/// Derive it: `#[derive(Message)]`, with `#[reply(Type)]` if the reply is not `()`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a message",
    note = "derive it: `#[derive(Message)]`"
)]
pub trait Message: Data {
    /// The name it is declared and sent by: the type's own.
    const NAME: &'static str;

    /// What answers it.
    type Reply: Data;
}

/// A message from a player, declared in `#[room(messages(…))]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` declares the message `{M}` but does not handle it",
    note = "write `impl Handle<{M}> for {Self}`"
)]
pub trait Handle<M: Message>: Room {
    /// Acts on it, and answers. An `Err` goes to the player, and rolls nothing back.
    ///
    /// # Errors
    /// Whatever the room refuses.
    fn handle(&mut self, message: M, player: &Player, cx: &mut Context<Self>) -> Result<M::Reply>;
}

/// A message from a timer, from background work or from another room, declared in
/// `#[room(internal(…))]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` declares the internal message `{M}` but does not take it",
    note = "write `impl On<{M}> for {Self}`"
)]
pub trait On<M: Message>: Room {
    /// Acts on it. The answer goes to the room that asked; otherwise it is dropped, and an `Err` is
    /// logged.
    ///
    /// # Errors
    /// Whatever the room refuses.
    fn on(&mut self, message: M, cx: &mut Context<Self>) -> Result<M::Reply>;
}

/// The answers to a request that this room sends to others, declared in `#[room(asks(…))]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` declares that it asks `{M}` but does not take the answer",
    note = "write `impl Answer<{M}> for {Self}`"
)]
pub trait Answer<M: Message>: Room {
    /// Acts on the answer, or on there being none: the other room refused, or is gone.
    fn answer(&mut self, ask: AskId, reply: Result<M::Reply>, cx: &mut Context<Self>);
}

/// A request to another room that is still unanswered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u64);

/// The room takes this message from players.
#[diagnostic::on_unimplemented(
    message = "the room `{Self}` takes no message `{M}`",
    note = "declare it: `#[room(messages({M}))]`"
)]
pub trait Accepts<M: Message> {
    /// Its position in the declaration.
    const INDEX: u32;
}

/// The room sends this event to players.
#[diagnostic::on_unimplemented(
    message = "the room `{Self}` declares no event `{E}`",
    note = "declare it: `#[room(events({E}))]`"
)]
pub trait Emits<E: Message> {
    /// Its position in the declaration.
    const INDEX: u32;
}

/// The room takes this message from timers, background work and other rooms.
#[diagnostic::on_unimplemented(
    message = "the room `{Self}` takes no internal message `{M}`",
    note = "declare it: `#[room(internal({M}))]`"
)]
pub trait Internal<M: Message> {}

/// The room takes the answers to this request.
#[diagnostic::on_unimplemented(
    message = "the room `{Self}` takes no answers to `{M}`",
    note = "declare it: `#[room(asks({M}))]`"
)]
pub trait Asks<M: Message> {}

/// [`Accepts`], seen from the message: what is sent is looked at first, so that the compiler can
/// say what is missing.
pub trait MessageOf<R>: Message {
    /// Its position in the declaration.
    const INDEX: u32;
}

/// [`Emits`], seen from the event.
pub trait EventOf<R>: Message {
    /// Its position in the declaration.
    const INDEX: u32;
}

/// [`Internal`], seen from the message.
pub trait InternalOf<R>: Message {}

/// [`Asks`], seen from the request.
pub trait AskOf<R>: Message {}

impl<M: Message, R: Accepts<M>> MessageOf<R> for M {
    const INDEX: u32 = <R as Accepts<M>>::INDEX;
}

impl<E: Message, R: Emits<E>> EventOf<R> for E {
    const INDEX: u32 = <R as Emits<E>>::INDEX;
}

impl<M: Message, R: Internal<M>> InternalOf<R> for M {}

impl<M: Message, R: Asks<M>> AskOf<R> for M {}

/// What `#[room(…)]` says of a room type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Ticks per second; 0 = never.
    pub tick_hz: u32,
    /// Syncs per second; 0 = only on demand.
    pub sync_hz: u32,
    /// The most players.
    pub capacity: u32,
    /// How long it stays open with nobody in it, milliseconds.
    pub empty_ms: u64,
}

/// What the attribute `room` writes. Not for people.
#[diagnostic::on_unimplemented(
    message = "the room `{Self}` declares nothing",
    note = "write `#[room()]` before `impl Room for {Self}`"
)]
pub trait Declared: Sized {
    /// From the attribute.
    const SETTINGS: Settings;

    /// Messages and events.
    fn declare(schema: &mut RoomSchema);

    /// Finds the handler of a player's message, and appends its reply.
    ///
    /// # Errors
    /// `unknown_message`, `bad_payload`, or the handler's own.
    fn dispatch(
        &mut self,
        message: &MessageRef<'_>,
        call: Call<'_>,
        cx: &mut Context<Self>,
    ) -> Result<()>
    where
        Self: Room;

    /// Finds what takes an internal message, and appends its reply.
    ///
    /// # Errors
    /// `unknown_message`, `bad_payload`, or the taker's own.
    fn internal(
        &mut self,
        name: &str,
        payload: &[u8],
        reply: &mut Vec<u8>,
        cx: &mut Context<Self>,
    ) -> Result<()>
    where
        Self: Room;

    /// Finds what takes the answers to the request `name`.
    fn answer(&mut self, name: &str, ask: AskId, reply: Result<Vec<u8>>, cx: &mut Context<Self>)
    where
        Self: Room;
}

/// A player's message on its way to its handler.
pub struct Call<'a> {
    /// Who sent it.
    pub player: &'a Player,
    /// What is in it.
    pub payload: &'a [u8],
    /// How it, and the reply, are encoded.
    pub format: Format,
    /// Where the reply is appended.
    pub reply: &'a mut Vec<u8>,
}

/// Decodes, handles, encodes the reply.
///
/// # Errors
/// As [`Declared::dispatch`].
pub fn call<R: Handle<M>, M: Message>(
    room: &mut R,
    call: Call<'_>,
    cx: &mut Context<R>,
) -> Result<()> {
    let message = read::<M>(call.format, call.payload)?;
    room.handle(message, call.player, cx)?.write(call.format, call.reply);
    Ok(())
}

/// Decodes an internal message, acts on it, encodes the reply.
///
/// # Errors
/// As [`Declared::internal`].
pub fn take<R: On<M>, M: Message>(
    room: &mut R,
    payload: &[u8],
    reply: &mut Vec<u8>,
    cx: &mut Context<R>,
) -> Result<()> {
    let message = read::<M>(Format::Packed, payload)?;
    room.on(message, cx)?.encode(reply);
    Ok(())
}

/// Decodes an answer, and hands it over.
pub fn answered<R: Answer<M>, M: Message>(
    room: &mut R,
    ask: AskId,
    reply: Result<Vec<u8>>,
    cx: &mut Context<R>,
) {
    let reply = reply.and_then(|payload| {
        M::Reply::read(Format::Packed, &payload).map_err(|error| {
            Error::new(ErrorCode::BadPayload, format!("the reply to {}: {error}", M::NAME))
        })
    });
    Answer::<M>::answer(room, ask, reply, cx);
}

/// A message that the room type doesn't declare.
pub fn unknown(message: &MessageRef<'_>) -> Error {
    let named: Cow<'_, str> = match message {
        MessageRef::Index(index) => format!("number {index}").into(),
        MessageRef::Name(name) => format!("{:?}", name.chars().take(64).collect::<String>()).into(),
    };
    Error::new(ErrorCode::UnknownMessage, format!("this room declares no message {named}"))
}

/// Evaluated while the room is compiled: two of one name could not be told apart.
pub const fn new_name(name: &str, before: &[&str]) {
    let mut place = 0;
    while place < before.len() {
        assert!(
            !same(name.as_bytes(), before[place].as_bytes()),
            "two messages of one room bear this name: rename one type"
        );
        place += 1;
    }
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut place = 0;
    while place < a.len() && place < b.len() && a[place] == b[place] {
        place += 1;
    }
    place == a.len() && place == b.len()
}

fn read<M: Message>(format: Format, payload: &[u8]) -> Result<M> {
    M::read(format, payload)
        .map_err(|error| Error::new(ErrorCode::BadPayload, format!("{}: {error}", M::NAME)))
}
