//! The trait that a room implements.

use playfield_state::{Data, State};

use crate::message::Declared;
use crate::{Context, Player, Result};

/// One kind of room. The implementing type is the room's whole state: what players see and what is
/// hidden.
///
/// Write the `impl` under `#[room(…)]`, which declares its messages and rates:
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
/// The attribute takes, each optional: `messages(…)`, `events(…)`, `notes(…)`, `asks(…)`, `tick_hz`
/// (0 = no ticks, the default), `sync_hz` (by default `tick_hz`, or 20; 0 = only on demand),
/// `capacity` (64) and `empty_ms` (30,000).
///
/// A panic in any of these closes the room, since nobody can vouch for its state then.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a room",
    note = "write `#[room()] impl Room for {Self} {{}}`"
)]
pub trait Room: State<Shadow: Send> + Declared + Send + 'static {
    /// What a client may say when it creates one. The attribute adds `type Options = ();` if it is
    /// left out.
    type Options: Data + Default;

    /// Makes a new one. The attribute adds one that returns the default state if it is left out.
    ///
    /// # Errors
    /// A refusal, for the client that wanted it created.
    fn create(options: Self::Options, cx: &mut Context<Self>) -> Result<Self>;

    /// Someone wants to join: the player is seated if this returns `Ok`.
    ///
    /// # Errors
    /// A refusal, for that player.
    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        let _ = (player, cx);
        Ok(())
    }

    /// A player is gone: left, was kicked, or the session ended.
    fn leave(&mut self, player: &Player, cx: &mut Context<Self>) {
        let _ = (player, cx);
    }

    /// One step of the simulation.
    fn tick(&mut self, cx: &mut Context<Self>) {
        let _ = cx;
    }
}
