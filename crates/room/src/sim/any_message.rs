//! Messages of simulated players that are made at random, by the room's schema.

use playfield_state::generate::Generator;
use playfield_state::{JsonExchange, PlayerId};
use playfield_wire::RequestNumber;
use playfield_wire::message::MessageRef;
use playfield_wire::tree::TreeWriter;
use rand_core::RngCore;

use super::Sim;
use crate::{Random, Room};

impl<R: Room + Default> Sim<R> {
    /// A player requests something: a message that the room declares, with values of its types,
    /// both chosen at random by `seed`. The reply is dropped. Does nothing if the room declares no
    /// message.
    ///
    /// Half of the numbers are small, and half of the players are the sender. Many messages will be
    /// refused, which is to be tested, too.
    ///
    /// ```
    /// # mod playfield { pub use playfield_room::*; pub mod prelude { pub use playfield_room::*; pub use playfield_state::*; } }
    /// # use playfield::prelude::*;
    /// # use playfield::sim::Sim;
    /// # #[derive(State, Default)]
    /// # struct Counter { value: i64 }
    /// # #[derive(Message)]
    /// # struct Add(i32);
    /// # #[room(messages(Add))]
    /// # impl Room for Counter {}
    /// # impl Handle<Add> for Counter {
    /// #     fn handle(&mut self, Add(it): Add, _: &Player, _: &mut Context<Self>) -> Result<()> {
    /// #         self.value += i64::from(it);
    /// #         Ok(())
    /// #     }
    /// # }
    /// let mut sim = Sim::<Counter>::new(1);
    /// let ann = sim.join("Ann").unwrap();
    /// for seed in 0..1_000 {
    ///     sim.any_message(ann, seed);
    /// }
    /// assert_ne!(sim.room().value, 0);
    /// ```
    pub fn any_message(&mut self, player: PlayerId, seed: u64) {
        let schema = crate::schema::<R>();
        let mut random = Random::new(seed);
        let count = schema.messages.len() as u64;
        let index = random.below(count) as u32;
        let Some(message) = schema.messages.get(index as usize) else { return };
        let mut bits = || random.next_u64();
        let value = Generator::new(&mut bits, player.0).value(&message.of, None);
        let Ok(value) = value else { return };
        let format = self.format_of(player);
        let (reference, payload) = match format.tree() {
            None => {
                let exchange = JsonExchange::new(&schema).ok();
                let written = exchange.and_then(|it| it.message(&message.name, &value).ok());
                let Some((_, payload)) = written else { return };
                (MessageRef::Index(index), payload)
            }
            Some(tree) => {
                let mut payload = Vec::new();
                TreeWriter::new(tree, &mut payload).value(&value);
                (MessageRef::Name(message.name.as_ref().into()), payload)
            }
        };
        self.requests += 1;
        let request = RequestNumber(self.requests);
        self.deliver(player, index, &reference, &payload, Some(request));
        self.out.answers.remove(&request);
    }
}
