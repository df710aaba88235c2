//! Messages, and how a room type declares and handles them.

use std::borrow::Cow;
use std::time::Duration;

use playfield_state::{Accepts, Data, Emits, Format, Message, RoomInterface};
use playfield_wire::ErrorCode;
use playfield_wire::message::MessageRef;
use playfield_wire::schema::{RoomSchema, Type};

use crate::rate::Rate;
use crate::{Context, Error, Player, Result, Room};

/// The multiple of a message's rate past which a player is removed, but for [`REFUSALS_MIN`].
pub const RATE_MULTIPLE: u64 = 4;

/// However low a message's rate is, so many of a player's are refused before the player is removed:
/// a loop that sends too much at once is a fault of a program, and no attack.
pub const REFUSALS_MIN: Rate = Rate::new(100, Duration::from_secs(1), 1000);

/// Handles a message from a player, declared in `#[room(messages(…))]`.
///
/// Derive [`Message`], with `#[reply(Type)]` if the reply is not `()`:
///
/// ```
/// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
/// use playfield::prelude::*;
///
/// #[derive(Message)]
/// #[reply(u32)]
/// struct Draw {
///     count: u32,
/// }
/// ```
///
/// `#[message(rate = 10)]` limits how often a player may send it to a room: ten times a second, and
/// ten at once unless `burst` says otherwise. `rate = 0.5` is one in two seconds. The handler is
/// not called for what comes faster: the player gets the error `too_fast` with the time to wait,
/// and past [`RATE_MULTIPLE`] times the rate, and past [`REFUSALS_MIN`], the player is removed with
/// that code, and the connection closed. Messages that no player sends have no such limit.
///
/// ```
/// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
/// use playfield::prelude::*;
/// use playfield::sim::Sim;
///
/// #[derive(Message)]
/// #[message(rate = 0.5, burst = 2)]
/// struct Shout;
///
/// # #[derive(State, Default)]
/// # struct Street { shouts: u32 }
/// #[room(messages(Shout))]
/// impl Room for Street {}
///
/// impl Handle<Shout> for Street {
///     fn handle(&mut self, _: Shout, _: &Player, _: &mut Context<Self>) -> Result<()> {
///         self.shouts += 1;
///         Ok(())
///     }
/// }
///
/// let mut sim = Sim::<Street>::new(1);
/// let ann = sim.join("Ann")?;
/// sim.send(ann, Shout)?;
/// sim.send(ann, Shout)?;
/// assert_eq!(sim.send(ann, Shout).unwrap_err().retry_after_ms(), Some(2000));
/// assert_eq!(sim.room().shouts, 2);
/// # Ok::<(), Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` declares the message `{M}` but does not handle it",
    note = "write `impl Handle<{M}> for {Self}`"
)]
pub trait Handle<M: Message>: Room + Accepts<M> {
    /// Acts on the message, and returns the reply.
    ///
    /// # Errors
    /// A refusal, which the player receives. What the handler changed before stays changed.
    /// [`Error::deferred`] if the reply comes later: see [`Context::defer`].
    fn handle(&mut self, message: M, player: &Player, cx: &mut Context<Self>) -> Result<M::Reply>;
}

/// Handles a message from a timer, from background work or from another room, declared in
/// `#[room(internal(…))]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` declares the internal message `{M}` but does not handle it",
    note = "write `impl On<{M}> for {Self}`"
)]
pub trait On<M: Message>: Room + Internal<M> {
    /// Acts on the message, and returns the reply to the room that sent it as a request. Any other
    /// sender has no use for a reply, and it is dropped.
    ///
    /// # Errors
    /// A refusal, which the asking room receives. Without one, it is logged as a warning.
    fn on(&mut self, message: M, cx: &mut Context<Self>) -> Result<M::Reply>;
}

/// Handles the answers to a request that this room sends to others, declared in
/// `#[room(asks(…))]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` declares that it asks `{M}` but does not handle the answer",
    note = "write `impl Answer<{M}> for {Self}`"
)]
pub trait Answer<M: Message>: Room + Asks<M> {
    /// Acts on the reply, or on the error if there is none: the other room refused, or does not
    /// exist.
    fn answer(&mut self, ask: AskId, reply: Result<M::Reply>, cx: &mut Context<Self>);
}

/// A request to another room, from [`Context::ask`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u64);

/// A room that takes this message from timers, background work and other rooms.
#[diagnostic::on_unimplemented(
    message = "the room `{Self}` declares no internal message `{M}`",
    note = "declare it: `#[room(internal({M}))]`"
)]
pub trait Internal<M: Message> {}

/// A room that sends this request to other rooms.
#[diagnostic::on_unimplemented(
    message = "the room `{Self}` declares no request `{M}` to other rooms",
    note = "declare it: `#[room(asks({M}))]`"
)]
pub trait Asks<M: Message> {}

/// [`Accepts`], as a bound on the message: the compiler then checks first that it is a message at
/// all, and reports that if it is not.
pub trait MessageOf<R>: Message {
    /// Its position in the declaration.
    const INDEX: u32;
}

/// [`Emits`], as a bound on the event.
pub trait EventOf<R>: Message {
    /// Its position in the declaration.
    const INDEX: u32;
}

/// [`Internal`], as a bound on the message.
pub trait InternalOf<R>: Message {}

/// [`Asks`], as a bound on the request.
pub trait AskOf<R>: Message {}

impl<M: Message, R: Accepts<M>> MessageOf<R> for M {
    const INDEX: u32 = <R as Accepts<M>>::INDEX;
}

impl<E: Message, R: Emits<E>> EventOf<R> for E {
    const INDEX: u32 = <R as Emits<E>>::INDEX;
}

impl<M: Message, R: Internal<M>> InternalOf<R> for M {}

impl<M: Message, R: Asks<M>> AskOf<R> for M {}

/// The rates and limits of a room type, as `#[room(…)]` declares them: see [`Room`] for the table
/// of its options and their defaults.
///
/// A server can run the same room at other rates, under another name:
///
/// ```
/// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
/// # use playfield::prelude::*;
/// use playfield::{RoomType, Settings};
///
/// # #[derive(State, Default)]
/// # struct Arena {}
/// #[room(tick_hz = 30, capacity = 8)]
/// impl Room for Arena {}
///
/// let usual = RoomType::of::<Arena>("arena");
/// assert_eq!((usual.settings.sync_hz, usual.settings.empty_ms), (30, 30_000));
///
/// let settings = Settings { tick_hz: 60, ..usual.settings };
/// let fast = RoomType { name: "fast-arena".into(), settings, ..usual };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Ticks per second; 0 = none. Default: 0.
    pub tick_hz: u32,
    /// Syncs per second; 0 = only after [`Context::sync_now`]. Default: `tick_hz`, or 20 if that is
    /// 0.
    pub sync_hz: u32,
    /// The most players. Default: 64.
    pub capacity: u32,
    /// The time that a room stays open without players, in milliseconds. Default: 30,000.
    pub empty_ms: u64,
    /// The time that a room that ends waits for background work, in milliseconds. Default: 5,000.
    pub closing_ms: u64,
    /// The time that a player waits to join a room that [holds](Context::hold) them, in
    /// milliseconds. Default: 10,000.
    pub join_wait_ms: u64,
    /// The most players who wait to join. Default: 256.
    pub joins_waiting_max: u32,
    /// The time that a [deferred](Context::defer) reply may take, in milliseconds. Default: 30,000.
    pub reply_ms: u64,
    /// The time for which a player's connection may be silent before either end counts it as lost,
    /// in milliseconds; 0 = 5,000 in a room with ticks, and in others as long as the node's
    /// `timeouts.heartbeat` allows. It must be well above twice the round trip to the players. One
    /// above twice `timeouts.heartbeat` changes nothing. Default: 0.
    pub silence_ms: u64,
    /// The interval at which the round trip to each player is measured, for
    /// [`Context::round_trip`], in milliseconds; 0 = never. A node measures no connection more
    /// often than ten times a second. Default: 0.
    pub round_trip_ms: u64,
    /// The time for which a player whose connection was lost keeps the seat, in milliseconds from
    /// when the node noticed; 0 = they leave at once. Only clients that
    /// [resume](Room#players-who-come-back) their sessions can return. Default: 10,000.
    pub grace_ms: u64,
    /// The interval at which a room with a key is saved while it changes, in seconds; 0 = never,
    /// and it is not persistent. Default: 0.
    pub persist_s: u32,
    /// The parties that may create such rooms. Default: anyone.
    pub creation: CreatedBy,
    /// The rule for a user who joins and is in the room already. Default: both are there.
    pub one_per_user: OnePerUser,
    /// The part of a room's life that a node records, if it has a folder for that. Default: its
    /// last minutes, if it fails.
    pub record: Record,
    /// The loss that a crash may cost. Default: what changed since the last save.
    pub durability: Durability,
    /// The behavior of a room with a key while its node in a cluster can't show that it serves the
    /// key. Default: it stands still if it is persistent, and goes on otherwise.
    pub isolated: Isolated,
}

impl Settings {
    /// Returns whether a room with a key stands still while its node in a cluster can't show that
    /// it serves the key.
    #[must_use]
    pub fn freezes(&self) -> bool {
        match self.isolated {
            Isolated::Usual => self.persist_s > 0,
            Isolated::Freeze => true,
            Isolated::GoOn => false,
        }
    }
}

/// The behavior of a room with a key while its node in a cluster can't show that it serves the key:
/// another node may have taken it over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Isolated {
    /// [`Freeze`](Self::Freeze) for rooms that are persistent, and [`GoOn`](Self::GoOn) for others.
    #[default]
    Usual,
    /// Stands still with its players, and goes on if no other node has had its key meanwhile.
    Freeze,
    /// Goes on. There may be another room with its key then.
    GoOn,
}

/// The loss that a crash of the process or the machine costs a room that is saved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The changes since the last save.
    #[default]
    Save,
    /// Nothing that anyone was sent: each input is in the node's journal before its effects show.
    Journal,
}

/// The part of a room's life that is [recorded](crate::recording).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Record {
    /// The last minutes before the room fails, or a handler returns an internal error; and what is
    /// asked for.
    #[default]
    Failures,
    /// All of it.
    Always,
    /// Nothing: recordings have all that players send.
    Never,
}

/// The rule for a user who joins a room and is there already, by another session; or, where a node
/// keeps one session for each user, who opens a second one. Guests are never the same user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnePerUser {
    /// Both are there.
    #[default]
    No,
    /// The first one leaves, with [`LeaveReason::TakenOver`](crate::LeaveReason::TakenOver). The
    /// second one then joins as any player does, and may still be refused. It takes the seat of the
    /// first, so the room may be full or locked.
    TakeOver,
    /// The second one is refused with `already_here`.
    Refuse,
}

/// The parties that may create rooms of a type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CreatedBy {
    /// Clients, rooms and the node.
    #[default]
    Anyone,
    /// Rooms and the node: clients can only join what is there.
    Server,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            tick_hz: 0,
            sync_hz: 20,
            capacity: 64,
            empty_ms: 30_000,
            closing_ms: 5_000,
            join_wait_ms: 10_000,
            joins_waiting_max: 256,
            reply_ms: 30_000,
            silence_ms: 0,
            round_trip_ms: 0,
            grace_ms: 10_000,
            persist_s: 0,
            creation: CreatedBy::Anyone,
            one_per_user: OnePerUser::No,
            record: Record::Failures,
            durability: Durability::Save,
            isolated: Isolated::Usual,
        }
    }
}

/// The declaration that the attribute `room` generates; not to be implemented by hand.
#[diagnostic::on_unimplemented(
    message = "the room `{Self}` declares nothing",
    note = "write `#[room()]` before `impl Room for {Self}`"
)]
pub trait Declared: RoomInterface + Sized {
    /// The settings in the attribute.
    const SETTINGS: Settings;

    /// Whether options are criteria for `join_or_create`.
    const HAS_CRITERIA: bool = false;

    /// Appends the values of the options that are criteria.
    fn criteria(options: &Self::Options, out: &mut Vec<u8>)
    where
        Self: Room,
    {
        let _ = (options, out);
    }

    /// The names of all messages that it receives from players and rooms, and of its requests to
    /// others.
    const NAMES: &'static [&'static str] = &[];

    /// The type of an internal message, by its name.
    fn internal_type(name: &str) -> Option<Type> {
        let _ = name;
        None
    }

    /// Adds the messages and events to the schema.
    fn declare(schema: &mut RoomSchema);

    /// Calls the handler of a player's message, and appends its reply.
    ///
    /// # Errors
    /// `unknown_message`, `bad_payload`, or the handler's refusal.
    fn dispatch(
        &mut self,
        message: &MessageRef<'_>,
        call: Call<'_>,
        cx: &mut Context<Self>,
    ) -> Result<()>
    where
        Self: Room;

    /// Calls the handler of an internal message, and appends its reply.
    ///
    /// # Errors
    /// `unknown_message`, `bad_payload`, or the handler's refusal.
    fn internal(
        &mut self,
        name: &str,
        payload: &[u8],
        reply: &mut Vec<u8>,
        cx: &mut Context<Self>,
    ) -> Result<()>
    where
        Self: Room;

    /// Calls the handler of answers to the request `name`.
    fn answer(&mut self, name: &str, ask: AskId, reply: Result<Vec<u8>>, cx: &mut Context<Self>)
    where
        Self: Room;
}

/// A player's message on its way to its handler.
pub struct Call<'a> {
    /// The sender.
    pub player: &'a Player,
    /// The encoded message.
    pub payload: &'a [u8],
    /// The format of the message and the reply.
    pub format: Format,
    /// The buffer for the reply.
    pub reply: &'a mut Vec<u8>,
}

/// Decodes a message, handles it, and encodes the reply.
///
/// # Errors
/// As [`Declared::dispatch`], and `too_fast`.
pub fn call<R: Handle<M>, M: Message>(
    room: &mut R,
    call: Call<'_>,
    cx: &mut Context<R>,
) -> Result<()> {
    if let Some(rate) = M::RATE {
        cx.limit(call.player, <R as Accepts<M>>::INDEX, M::NAME, rate.into())?;
    }
    let message = read::<M>(call.format, call.payload)?;
    let reply = room.handle(message, call.player, cx).map_err(|error| cx.checked::<M>(error))?;
    reply.write(call.format, call.reply);
    Ok(())
}

/// Decodes an internal message, handles it, and encodes the reply.
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
    room.on(message, cx).map_err(|error| cx.checked::<M>(error))?.encode(reply);
    Ok(())
}

/// Decodes an answer, and handles it.
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

/// The error for a message that the room type does not declare.
pub fn unknown(message: &MessageRef<'_>) -> Error {
    let named: Cow<'_, str> = match message {
        MessageRef::Index(index) => format!("number {index}").into(),
        MessageRef::Name(name) => format!("{:?}", name.chars().take(64).collect::<String>()).into(),
    };
    Error::new(ErrorCode::UnknownMessage, format!("this room declares no message {named}"))
}

/// Checks, while the room is compiled, that a name is not among those before it.
pub const fn new_name(name: &str, before: &[&str]) {
    let mut place = 0;
    while place < before.len() {
        assert!(
            !same(name.as_bytes(), before[place].as_bytes()),
            "two messages of this room have the same name: rename one of the types"
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
