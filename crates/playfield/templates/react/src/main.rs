//! A number that everyone sees and anyone may change. Its page is a React app, `web`.

use playfield::prelude::*;

/// The state that everyone sees.
#[derive(State, Default)]
struct Counter {
    value: i64,
    /// The player who changed it last.
    last: String,
    players: Map<PlayerId, String>,
}

/// Adds to the number. The reply is the new value.
#[derive(Message)]
#[reply(i64)]
struct Add {
    step: i64,
}

#[room(messages(Add))]
impl Room for Counter {
    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        self.players.insert(player.id(), player.name().into());
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.players.remove(&player.id());
    }
}

impl Handle<Add> for Counter {
    fn handle(&mut self, Add { step }: Add, player: &Player, _: &mut Context<Self>) -> Result<i64> {
        self.value = self.value.checked_add(step).ok_or("the number would be too large")?;
        self.last = player.name().into();
        Ok(self.value)
    }
}

fn main() -> ExitCode {
    Server::new().room::<Counter>("counter").run()
}

#[cfg(test)]
mod tests {
    use super::*;
    use playfield::sim::Sim;

    #[test]
    fn everyone_sees_who_counted() {
        let mut sim = Sim::<Counter>::new(1);
        let ann = sim.join("Ann").unwrap();
        let bob = sim.join("Bob").unwrap();
        assert_eq!(sim.request(ann, Add { step: 2 }), Ok(2));
        assert_eq!(sim.request(bob, Add { step: 3 }), Ok(5));
        sim.sync();
        assert_eq!(sim.copy(ann).value, 5);
        assert_eq!(sim.copy(ann).last, "Bob");
    }

    #[test]
    fn a_number_that_would_be_too_large_is_refused() {
        let mut sim = Sim::<Counter>::new(1);
        let ann = sim.join("Ann").unwrap();
        sim.request(ann, Add { step: i64::MAX }).unwrap();
        assert!(sim.request(ann, Add { step: 1 }).is_err());
    }
}
