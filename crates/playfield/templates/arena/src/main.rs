//! An arena: ships that fly to sparks. Each player sees what is near their own ship.

use playfield::prelude::*;

/// Width and height of the arena.
const SIZE: f32 = 1_000.0;
/// How far a player sees.
const SIGHT: f32 = 400.0;
/// How far a ship flies in a tick.
const STEP: f32 = 5.0;
/// How near a ship must come to collect a spark.
const REACH: f32 = 22.0;
const SPARKS: u32 = 40;

#[derive(State, Default)]
struct Arena {
    #[sync(near = [x, y], viewer = ships, radius = SIGHT)]
    ships: Map<PlayerId, Ship>,
    #[sync(near = [x, y], viewer = ships, radius = SIGHT)]
    sparks: Map<u32, Spark>,
}

#[derive(State, Default)]
struct Ship {
    name: String,
    #[sync(quantize = 0.1)]
    x: f32,
    #[sync(quantize = 0.1)]
    y: f32,
    /// Radians, clockwise from right.
    #[sync(quantize = 0.01)]
    angle: f32,
    score: u32,
}

#[derive(State, Default)]
struct Spark {
    x: f32,
    y: f32,
}

/// Turns the player's ship. In radians, clockwise from right.
#[derive(Message)]
#[message(rate = 30)]
struct Steer {
    angle: f32,
}

#[room(messages(Steer), tick_hz = 30, sync_hz = 20, capacity = 64)]
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
        let angle = cx.rng().fraction() as f32 * std::f32::consts::TAU;
        let ship = Ship { name: player.name().into(), x, y, angle, score: 0 };
        self.ships.insert(player.id(), ship);
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.ships.remove(&player.id());
    }

    fn tick(&mut self, cx: &mut Context<Self>) {
        for (_, ship) in &mut self.ships {
            ship.x = (ship.x + STEP * ship.angle.cos()).rem_euclid(SIZE);
            ship.y = (ship.y + STEP * ship.angle.sin()).rem_euclid(SIZE);
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
    fn handle(&mut self, steer: Steer, player: &Player, _: &mut Context<Self>) -> Result<()> {
        if !steer.angle.is_finite() {
            return Err("the angle must be a finite number".into());
        }
        let ship = self.ships.get_mut(&player.id()).ok_or("you have no ship")?;
        ship.angle = steer.angle.rem_euclid(std::f32::consts::TAU);
        Ok(())
    }
}

fn somewhere(cx: &mut Context<Arena>) -> Spark {
    let mut place = || cx.rng().fraction() as f32 * SIZE;
    Spark { x: place(), y: place() }
}

fn main() -> ExitCode {
    Server::new()
        .room::<Arena>("arena")
        .page("/", "text/html; charset=utf-8", include_str!("../web/index.html"))
        .page("/style.css", "text/css; charset=utf-8", include_str!("../web/style.css"))
        .page("/arena.js", "text/javascript; charset=utf-8", include_str!("../web/arena.js"))
        .run()
}

#[cfg(test)]
mod tests {
    use super::*;
    use playfield::sim::Sim;
    use std::time::Duration;

    #[test]
    fn a_ship_flies_where_it_is_steered() {
        let mut sim = Sim::<Arena>::new(7);
        let ann = sim.join("Ann").unwrap();
        let start = sim.room().ships.get(&ann).unwrap().x;
        sim.send(ann, Steer { angle: 0.0 }).unwrap();
        sim.advance(Duration::from_secs(1));
        let ship = sim.copy(ann).ships.get(&ann).unwrap();
        assert!((ship.x - start).rem_euclid(SIZE) > 100.0);
        assert!(sim.send(ann, Steer { angle: f32::NAN }).is_err());
    }

    #[test]
    fn a_player_sees_only_what_is_near() {
        let mut sim = Sim::<Arena>::new(7);
        let ann = sim.join("Ann").unwrap();
        let bob = sim.join("Bob").unwrap();
        for (player, x) in [(ann, 100.0), (bob, 900.0)] {
            let ship = sim.room_mut().ships.get_mut(&player).unwrap();
            (ship.x, ship.y) = (x, 500.0);
        }
        sim.sync();
        assert!(sim.copy(ann).ships.contains_key(&ann));
        assert!(!sim.copy(ann).ships.contains_key(&bob));
    }
}
