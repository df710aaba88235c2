//! The smallest room: one number that everyone sees and anyone may change.

use playfield::prelude::*;

/// The state that everyone sees.
#[derive(State, Default)]
pub struct Counter {
    /// The number.
    pub value: i64,
    /// The player who changed it last.
    pub last: String,
}

/// Adds to the number. The reply is the new value.
#[derive(Message)]
#[reply(i64)]
pub struct Add(pub i64);

#[room(messages(Add))]
impl Room for Counter {}

impl Handle<Add> for Counter {
    fn handle(&mut self, Add(step): Add, player: &Player, _: &mut Context<Self>) -> Result<i64> {
        self.value = self.value.checked_add(step).ok_or("the counter would overflow")?;
        self.last = player.name().to_owned();
        Ok(self.value)
    }
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
        assert_eq!(sim.request(ann, Add(2)), Ok(2));
        assert_eq!(sim.request(bob, Add(3)), Ok(5));
        sim.advance(std::time::Duration::from_secs(1));
        assert_eq!(sim.copy(ann).value, 5);
        assert_eq!(sim.copy(ann).last, "Bob");
    }
}
