//! The trait that a room implements.

use playfield_state::__rt::Save;
use playfield_state::{Data, State};

use crate::message::Declared;
use crate::{Context, EndReason, LeaveReason, Player, Result};

/// One kind of room. The implementing type is the room's whole state: what players see, and what
/// is hidden from them.
///
/// Put `#[room(…)]` before the `impl`. It declares the room's messages, rates and limits:
///
/// ```
/// # mod playfield { pub use playfield_room::*; pub use playfield_state::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
/// use playfield::prelude::*;
///
/// #[derive(State, Default)]
/// struct Lobby {
///     guests: Map<PlayerId, String>,
/// }
///
/// #[derive(Message)]
/// #[reply(u32)]
/// struct HowMany;
///
/// #[room(messages(HowMany), capacity = 100)]
/// impl Room for Lobby {
///     fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
///         self.guests.insert(player.id(), player.name().to_owned());
///         Ok(())
///     }
/// }
///
/// impl Handle<HowMany> for Lobby {
///     fn handle(&mut self, _: HowMany, _: &Player, _: &mut Context<Self>) -> Result<u32> {
///         Ok(self.guests.len() as u32)
///     }
/// }
/// ```
///
/// # Options of the attribute
///
/// All are optional, in any order: `#[room()]` is enough for a room without messages.
///
/// | option | default | meaning |
/// |---|---|---|
/// | `messages(A, B)` | none | messages from players; each needs an `impl` [`Handle<A>`](crate::Handle) |
/// | `events(A, B)` | none | messages to players, sent with [`Context::emit`] and its variants |
/// | `internal(A, B)` | none | messages from timers, background work and other rooms; each needs an `impl` [`On<A>`](crate::On) |
/// | `asks(A, B)` | none | requests to other rooms, sent with [`Context::ask`]; each needs an `impl` [`Answer<A>`](crate::Answer) |
/// | `criteria(a, b)` | none | fields of [`Options`](Self::Options): `join_or_create` picks only rooms in which they are equal |
/// | `creation = server` | `anyone` | who may create such rooms: clients can't if it is `server`, see [`CreatedBy`](crate::CreatedBy) |
/// | `one_per_user = refuse` | both are there | what happens when a user joins who is there already: `take_over` or `refuse`, see [`OnePerUser`](crate::OnePerUser) |
/// | `record = always` | the last minutes, if it fails | what a node with the setting `recordings.folder` records of such rooms: `always` or `never`, see [`Record`](crate::Record) |
/// | `durability = journal` | the last save | what a crash leaves of a room with `persist` and a key: `journal` is all that anyone was sent, see [below](#rooms-that-last) |
/// | `isolated = go_on` | `freeze` with `persist`, else `go_on` | what a room with a key does while its node in a cluster can't show that it serves the key: `freeze` stands still, see [`Isolated`](crate::Isolated) |
/// | `tick_hz = 30` | 0 | calls of [`tick`](Self::tick) per second, up to 1,000; 0 = never |
/// | `sync_hz = 20` | `tick_hz`, or 20 if that is 0 | patches per second to each player, up to 1,000; 0 = only after [`Context::sync_now`] |
/// | `capacity = 64` | 64 | most players, 1 to 1,000,000 |
/// | `empty_ms = 30_000` | 30,000 | milliseconds that the room stays open without players, up to 2³² - 1 |
/// | `closing_ms = 5_000` | 5,000 | milliseconds that the room, at its end, waits for background work, up to 600,000 |
/// | `join_wait_ms = 10_000` | 10,000 | milliseconds that a player waits whom the room [holds](Context::hold), up to 600,000 |
/// | `joins_waiting_max = 256` | 256 | most players who wait so, up to 1,000,000 |
/// | `reply_ms = 30_000` | 30,000 | milliseconds that a [deferred](Context::defer) reply may take, up to 3,600,000 |
/// | `persist = 10` | never | seconds between saves of a room with a key, 1 to 86,400: see [below](#rooms-that-last) |
/// | `silence_ms = 3_000` | 5,000 with ticks; else the node's `timeouts.heartbeat` | milliseconds, 100 to 3,600,000, after which a silent connection counts as lost, at both ends |
/// | `round_trip_ms = 2_000` | never | milliseconds between pings that measure the [round trip](Context::round_trip) to each player, 100 to 3,600,000 |
/// | `grace_ms = 10_000` | 10,000 | milliseconds that a player whose connection was lost keeps the seat, up to 86,400,000; 0 = none: see [below](#players-who-come-back) |
///
/// Those with numbers are the room type's [`Settings`](crate::Settings). Where the `impl` lacks
/// them, the attribute also adds `type Options = ();` and a [`create`](Self::create) that returns
/// the default state.
///
/// # Life of a room
///
/// A node calls the room on one thread, one callback at a time, so callbacks need no locks and must
/// not block. `create` comes first. The room ends when [`Context::close`] was called, when it was
/// without players for `empty_ms`, when the node shuts down, or when it is closed from outside.
/// Then, in this order:
///
/// 1. Nobody may join any more, and messages are not taken: requests are answered with
///    `room_closed`. Ticks and timers have ended.
/// 2. [`closing`](Self::closing) is called, with all players still there.
/// 3. The players receive what it changed and sent.
/// 4. Each player leaves, in the order of their numbers: [`leave`](Self::leave) is called with
///    [`LeaveReason::RoomEnded`].
/// 5. The room waits for background work and requests that it has begun since step 1, and receives
///    their messages by [`On`](crate::On) and [`Answer`](crate::Answer), which may begin more. It
///    waits for at most `closing_ms`; at a shutdown, no longer than the node's
///    `timeouts.shutdown`.
/// 6. The state is dropped, on the same thread.
///
/// So a room that must save its state does so in `closing`, with [`Context::spawn`]: every request
/// that was answered before is part of the state by then. Until step 6 the room keeps its id
/// and its key.
///
/// A panic in any callback ends the room without these steps: its state can't be trusted any more.
/// Players receive `room_failed`, and the state is dropped.
///
/// # Players who come back
///
/// A client whose connection is lost [resumes](crate::Settings::grace_ms) its session with a new
/// one. Until then, for `grace_ms`, the player keeps the number and the seat:
///
/// - [`lost`](Self::lost) is called when the node notices, and then
///   [`Player::is_connected`] is `false`. The grace begins then. A connection that is reset is
///   noticed at once, one whose path is dead by its silence: see `silence_ms`.
/// - State goes on changing, and events and replies are kept: the client receives all of it when it
///   comes back, each event once, and the state as of then.
/// - [`returned`](Self::returned) is called when the client is back. If it comes back before the
///   node noticed anything, `lost` is called just before.
/// - If it does not come back in time, [`leave`](Self::leave) is called with
///   [`LeaveReason::ConnectionLost`].
///
/// A player who is kicked, or whose room ends, leaves as others do. A client that ends its session
/// leaves at once, and so does one that can't resume sessions.
///
/// # Rooms that last
///
/// A room with a key whose type has `persist` outlives the process. The node keeps it in its
/// [`Store`](crate::Store):
///
/// - When a room with that key is created, the node first loads its save. Those who join wait
///   meanwhile, as with [`Context::hold`]. If there is a save, the state is what was saved, and
///   [`rebuild`](Self::rebuild) is called; `create` is not, so the options are not used. If there
///   is none, `create` is called.
/// - A client's join by key finds only rooms that are open; a join or create opens a saved one.
///   With `creation = server`, a room or the node's handle must create the room with its key first.
/// - The room is saved `persist` seconds after it has changed, on demand ([`Context::save`]), and at
///   its end, between steps 4 and 5 and again after step 5 if it changed meanwhile. So a crash costs
///   at most that time, and a request that must outlive it is answered after a save.
/// - A save that fails is tried again. At the room's end it is tried for `closing_ms`; then the last
///   changes are lost, which is logged. A save that can't be read refuses all who join, and is left
///   as it is.
///
/// - A save belongs to the room that opened it last, on whichever node. One that no longer owns its
///   save ends at its next save, without a further call, and its players receive `room_closed`.
///
/// The state is encoded on the room's shard, about 1 ms for 1 MB. All else happens elsewhere. A
/// room that panics is not saved: its last save stays.
///
/// With `durability = journal`, a crash costs nothing that anyone was sent: before a reply, an
/// event, a patch or mail of the room leaves the node, the inputs that caused it are on disk. After
/// a crash the room goes on where it was, with its timers and random numbers, by
/// [`moved`](Self::moved); then its players are [`lost`](Self::lost), who can't come back but join
/// again, and leave when their grace is over. Background work has been
/// [given up](Context::given_up), and requests to other rooms are answered with an error. A room
/// that panics starts from its last save.
///
/// A save has the state alone: no players, timers or background work, and no
/// [skipped](State#skipped-fields) fields.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a room",
    note = "write `#[room()] impl Room for {Self} {{}}`"
)]
pub trait Room:
    State<Shadow: Send> + Declared<CreateOptions = <Self as Room>::Options> + Send + 'static
{
    /// The options that a client can specify when it creates a room.
    type Options: Data + Default;

    /// Creates a room. [`Context::creator`] is who asked for it: a player, whose
    /// [`join`](Self::join) follows, another room, or the node; [`Context::hold`] lets it wait for
    /// something.
    ///
    /// # Errors
    /// A refusal, which that player receives, or which is logged if a room asked. No room is
    /// created.
    fn create(options: Self::Options, cx: &mut Context<Self>) -> Result<Self>;

    /// The room was made of a save, and not by `create`: make again what saves leave out, such as
    /// [skipped](State#skipped-fields) fields, timers and metadata. Players of an earlier process
    /// are not here any more; what the state has of them may go.
    fn rebuild(&mut self, cx: &mut Context<Self>) {
        let _ = cx;
    }

    /// The room was frozen and goes on, in another process or another build: all is as it was, with
    /// the players, timers and everything of its [`Context`], but for
    /// [skipped](State#skipped-fields) fields, which have their defaults, and background work,
    /// which [may be given up](Context::given_up). Make that again.
    ///
    /// By default, this calls [`rebuild`](Self::rebuild) if the state has skipped fields. Write
    /// your own if `rebuild` does more than to make these again: timers that it sets would be there
    /// twice, and players are still here.
    fn moved(&mut self, cx: &mut Context<Self>) {
        if <Self as Save>::SKIPS {
            self.rebuild(cx);
        }
    }

    /// A player wants to join, and has joined if this returns `Ok`; after [`Context::hold`], they
    /// wait.
    ///
    /// # Errors
    /// A refusal, which that player receives. [`leave`](Self::leave) is not called for them.
    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        let _ = (player, cx);
        Ok(())
    }

    /// A player's connection was lost. They keep the seat, and receive later what happens
    /// meanwhile. [`returned`](Self::returned) follows, or [`leave`](Self::leave): see
    /// [players who come back](Self#players-who-come-back).
    fn lost(&mut self, player: &Player, cx: &mut Context<Self>) {
        let _ = (player, cx);
    }

    /// A player who was [`lost`](Self::lost) is connected again.
    fn returned(&mut self, player: &Player, cx: &mut Context<Self>) {
        let _ = (player, cx);
    }

    /// A player is gone: they left, were [kicked](Context::kick), lost their connection and did not
    /// return in time, or the room ends. It is called once for each player who has joined, unless
    /// the room panics.
    fn leave(&mut self, player: &Player, why: LeaveReason, cx: &mut Context<Self>) {
        let _ = (player, why, cx);
    }

    /// The room is about to end, with all its players still there. It may change the state and send
    /// events, which they receive, and may begin background work, for which it then waits: see
    /// [the life of a room](Self#life-of-a-room).
    fn closing(&mut self, why: EndReason, cx: &mut Context<Self>) {
        let _ = (why, cx);
    }

    /// One step of the simulation, `tick_hz` times a second.
    fn tick(&mut self, cx: &mut Context<Self>) {
        let _ = cx;
    }
}
