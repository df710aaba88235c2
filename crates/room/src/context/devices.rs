//! Pushes to devices.

use playfield_state::Data;

use super::Context;
use crate::{Payload, Push, Target};

impl<R> Context<'_, R> {
    /// Pushes a value to one device, to all that have a tag, or to all, in a fleet whose payloads
    /// are JSON. A room does not see which devices there are: the program tells it.
    ///
    /// The node counts what it can't push as `pushes_refused`. It logs it, once a minute, if the
    /// fleet's payloads are bytes, or the value is larger than `limits.payload_bytes`, and at the
    /// level `debug` if no such device is registered.
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// # use playfield::prelude::*;
    /// # use playfield::{Target, sim::Sim};
    /// #[derive(State, Default)]
    /// struct House {}
    ///
    /// #[derive(Data)]
    /// struct Light {
    ///     on: bool,
    /// }
    ///
    /// #[room()]
    /// impl Room for House {
    ///     fn join(&mut self, _: &Player, cx: &mut Context<Self>) -> Result<()> {
    ///         cx.push("lamp-1", &Light { on: true });
    ///         cx.push(Target::tag("garden"), &Light { on: false });
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let mut sim = Sim::<House>::new(1);
    /// sim.join("Ann")?;
    /// let pushed = sim.pushed();
    /// assert_eq!(pushed[1].to, Target::tag("garden"));
    /// assert!(pushed[0].read::<Light>()?.on);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn push(&mut self, to: impl Into<Target>, value: &impl Data) {
        if self.context.fork.is_none() {
            self.out.push(Push::json(to, value));
        }
    }

    /// Pushes bytes to devices of a fleet whose payloads are bytes, as [`push`](Self::push).
    pub fn push_bytes(&mut self, to: impl Into<Target>, bytes: &[u8]) {
        if self.context.fork.is_none() {
            self.out.push(Push { to: to.into(), payload: Payload::Bytes(bytes.to_vec()) });
        }
    }
}
