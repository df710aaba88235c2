//! Publications in channels.

use playfield_state::Data;

use super::Context;
use crate::{Payload, Publication};

impl<R> Context<'_, R> {
    /// Publishes a value in a channel whose payloads are JSON. It reaches all who subscribe there,
    /// in the order in which this room publishes.
    ///
    /// The node logs what it can't publish, and counts it as `publications_refused`: no rule
    /// matches the channel, its payloads are bytes, or the value is larger than
    /// `limits.payload_bytes`.
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// # use playfield::prelude::*;
    /// # use playfield::sim::Sim;
    /// #[derive(State, Default)]
    /// struct Race {}
    ///
    /// #[derive(Data)]
    /// struct Finished {
    ///     player: String,
    /// }
    ///
    /// #[room()]
    /// impl Room for Race {
    ///     fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
    ///         cx.publish("news:races", &Finished { player: player.name().into() });
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let mut sim = Sim::<Race>::new(1);
    /// sim.join("Ann")?;
    /// let published = sim.published();
    /// assert_eq!(published[0].channel, "news:races");
    /// assert_eq!(published[0].read::<Finished>()?.player, "Ann");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn publish(&mut self, channel: &str, value: &impl Data) {
        if self.context.fork.is_none() {
            self.out.publish(Publication::json(channel, value));
        }
    }

    /// Publishes bytes in a channel whose payloads are bytes, as [`publish`](Self::publish).
    pub fn publish_bytes(&mut self, channel: &str, bytes: &[u8]) {
        if self.context.fork.is_none() {
            let payload = Payload::Bytes(bytes.to_vec());
            self.out.publish(Publication { channel: channel.into(), payload });
        }
    }
}
