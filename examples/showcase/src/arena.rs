//! An arena: ships that fly to sparks, 30 ticks per second.

use playfield::prelude::*;

/// Width and height of the arena.
pub const SIZE: f32 = 1_000.0;

const SPARKS: u32 = 24;
const SPEED: f32 = 5.0;
const TURN: f32 = 0.18;
const REACH: f32 = 22.0;

/// The arena.
#[derive(State, Default)]
pub struct Arena {
    /// Everyone's ship.
    pub ships: Map<PlayerId, Ship>,
    /// The sparks to collect.
    pub sparks: Map<u32, Spark>,
    /// The direction in which each player is heading.
    #[sync(hidden)]
    pub headings: Map<PlayerId, f32>,
}

/// A ship.
#[derive(State, Default)]
pub struct Ship {
    /// The display name.
    pub name: String,
    /// Distance from the left edge.
    pub x: f32,
    /// Distance from the upper edge.
    pub y: f32,
    /// Radians, clockwise from right.
    pub angle: f32,
    /// Sparks collected.
    pub score: u32,
}

/// A spark to collect.
#[derive(State, Default)]
pub struct Spark {
    /// Distance from the left edge.
    pub x: f32,
    /// Distance from the upper edge.
    pub y: f32,
}

/// Sets the player's heading.
#[derive(Message)]
pub struct Steer {
    /// Radians, clockwise from right.
    pub angle: f32,
}

// Each sync sends one tick: ships move evenly on the page.
#[room(messages(Steer), tick_hz = 30, sync_hz = 30, capacity = 64)]
impl Room for Arena {
    fn create(_: (), cx: &mut Context<Self>) -> Result<Self> {
        let mut arena = Self::default();
        for number in 0..SPARKS {
            arena.sparks.insert(number, somewhere(cx));
        }
        Ok(arena)
    }

    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        let Spark { x, y } = somewhere(cx);
        self.ships
            .insert(player.id(), Ship { name: player.name().to_owned(), x, y, ..Ship::default() });
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.ships.remove(&player.id());
        self.headings.remove(&player.id());
    }

    fn tick(&mut self, cx: &mut Context<Self>) {
        for (id, ship) in &mut self.ships {
            if let Some(heading) = self.headings.get(id) {
                let off = (heading - ship.angle).sin().atan2((heading - ship.angle).cos());
                ship.angle += off.clamp(-TURN, TURN);
            }
            ship.x = (ship.x + SPEED * ship.angle.cos()).rem_euclid(SIZE);
            ship.y = (ship.y + SPEED * ship.angle.sin()).rem_euclid(SIZE);
            let near = |spark: &Spark| (spark.x - ship.x).hypot(spark.y - ship.y) < REACH;
            let found: Vec<u32> = self
                .sparks
                .iter()
                .filter(|(_, spark)| near(spark))
                .map(|(number, _)| *number)
                .collect();
            for number in found {
                ship.score += 1;
                self.sparks.insert(number, somewhere(cx));
            }
        }
    }
}

impl Handle<Steer> for Arena {
    fn handle(
        &mut self,
        Steer { angle }: Steer,
        player: &Player,
        _: &mut Context<Self>,
    ) -> Result<()> {
        if !angle.is_finite() {
            return Err("the angle must be a finite number".into());
        }
        self.headings.insert(player.id(), angle);
        Ok(())
    }
}

fn somewhere(cx: &mut Context<Arena>) -> Spark {
    Spark { x: cx.rng().below(SIZE as u64) as f32, y: cx.rng().below(SIZE as u64) as f32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use playfield::sim::Sim;
    use std::time::Duration;

    #[test]
    fn a_ship_moves_where_it_is_steered() {
        let mut sim = Sim::<Arena>::new(7);
        let ann = sim.join("Ann").unwrap();
        let start = sim.room().ships.get(&ann).unwrap().x;
        sim.send(ann, Steer { angle: 0.0 }).unwrap();
        sim.advance(Duration::from_secs(1));
        let ship = sim.copy(ann).ships.get(&ann).unwrap();
        assert!((ship.x - start).rem_euclid(SIZE) > 100.0);
        assert!(sim.send(ann, Steer { angle: f32::NAN }).is_err());
    }
}
