//! An arena: ships that fly to sparks. Everyone sees all ships, and the sparks near their own.

use playfield::prelude::*;

/// Width and height of the arena.
const SIZE: f32 = 1_000.0;
/// The distance at which a player sees sparks.
const SIGHT: f32 = 400.0;
/// The distance that a ship flies in a tick, and that of a bot.
const STEP: f32 = 5.0;
const BOT_STEP: f32 = 3.0;
/// The distance at which a ship collects a spark.
const REACH: f32 = 22.0;
const SPARKS: u32 = 40;
/// The least number of ships: players, and bots in place of those who are missing.
const SHIPS_MIN: usize = 6;

#[derive(State, Default)]
struct Arena {
    ships: Map<PlayerId, Ship>,
    bots: Map<u32, Ship>,
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

// Each sync sends one tick: ships move evenly on the page.
#[room(messages(Steer), tick_hz = 30, sync_hz = 30, capacity = 64)]
impl Room for Arena {
    fn create(_: (), cx: &mut Context<Self>) -> Result<Self> {
        let mut arena = Self::default();
        for number in 0..SPARKS {
            arena.sparks.insert(number, somewhere(cx));
        }
        arena.fill(cx);
        Ok(arena)
    }

    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        self.ships.insert(player.id(), ship(player.name(), cx));
        self.fill(cx);
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, cx: &mut Context<Self>) {
        self.ships.remove(&player.id());
        self.fill(cx);
    }

    fn tick(&mut self, cx: &mut Context<Self>) {
        for bot in self.bots.values_mut() {
            let distance = |spark: &&Spark| (spark.x - bot.x).hypot(spark.y - bot.y);
            let nearer = |one: &&Spark, other: &&Spark| distance(one).total_cmp(&distance(other));
            if let Some(spark) = self.sparks.values().min_by(nearer) {
                bot.turn((spark.y - bot.y).atan2(spark.x - bot.x));
            }
        }
        let players = self.ships.values_mut().map(|ship| (ship, STEP));
        let bots = self.bots.values_mut().map(|bot| (bot, BOT_STEP));
        for (ship, step) in players.chain(bots) {
            ship.x = (ship.x + step * ship.angle.cos()).rem_euclid(SIZE);
            ship.y = (ship.y + step * ship.angle.sin()).rem_euclid(SIZE);
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
        ship.turn(steer.angle);
        Ok(())
    }
}

impl Arena {
    /// Lets bots come and go, so that there are enough ships.
    fn fill(&mut self, cx: &mut Context<Self>) {
        let (missing, bots) = (SHIPS_MIN.saturating_sub(self.ships.len()), self.bots.len());
        for number in missing..bots {
            self.bots.remove(&(number as u32));
        }
        for number in bots..missing {
            self.bots.insert(number as u32, ship(&format!("Bot {}", number + 1), cx));
        }
    }
}

impl Ship {
    fn turn(&mut self, angle: f32) {
        self.angle = angle.rem_euclid(std::f32::consts::TAU);
    }
}

fn ship(name: &str, cx: &mut Context<Arena>) -> Ship {
    let (Spark { x, y }, mut ship) = (somewhere(cx), Ship::default());
    ship.turn(cx.rng().fraction() as f32 * std::f32::consts::TAU);
    Ship { name: name.into(), x, y, ..ship }
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
        .page("/motion.js", "text/javascript; charset=utf-8", include_str!("../web/motion.js"))
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
    fn a_player_sees_all_ships_and_the_sparks_that_are_near() {
        let mut sim = Sim::<Arena>::new(7);
        let ann = sim.join("Ann").unwrap();
        let bob = sim.join("Bob").unwrap();
        for (player, x) in [(ann, 100.0), (bob, 900.0)] {
            let ship = sim.room_mut().ships.get_mut(&player).unwrap();
            (ship.x, ship.y) = (x, 500.0);
        }
        for (number, x) in [(0, 200.0), (1, 800.0)] {
            sim.room_mut().sparks.insert(number, Spark { x, y: 500.0 });
        }
        sim.sync();
        let seen = sim.copy(ann);
        assert!(seen.ships.contains_key(&ann) && seen.ships.contains_key(&bob));
        assert!(seen.sparks.contains_key(&0) && !seen.sparks.contains_key(&1));
    }

    #[test]
    fn bots_collect_sparks_and_make_way_for_players() {
        let mut sim = Sim::<Arena>::new(7);
        let ann = sim.join("Ann").unwrap();
        assert_eq!(sim.room().bots.len(), SHIPS_MIN - 1);
        sim.advance(Duration::from_secs(10));
        assert!(sim.copy(ann).bots.values().all(|bot| bot.score > 0));
        let others: Vec<PlayerId> = (0..SHIPS_MIN).map(|_| sim.join("someone").unwrap()).collect();
        assert_eq!(sim.room().bots.len(), 0);
        others.into_iter().for_each(|player| sim.leave(player));
        assert_eq!(sim.room().bots.len(), SHIPS_MIN - 1);
    }
}
