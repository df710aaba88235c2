//! Arena: each player sees only the ships near their own.
//!
//! `cargo run --bin arena` serves it on 127.0.0.1:7350.

use std::time::Duration;

use playfield::load::Turn;
use playfield::prelude::*;

const SIZE: f32 = 1_000.0; // width and height of the arena
const SIGHT: f32 = 150.0; // how far a player sees
const HOLD: f32 = 20.0; // how much farther a ship must be to leave the view again
const STEP: f32 = 5.0; // how far a ship moves in a tick

#[derive(State, Default)]
struct Arena {
    /// `near` names the fields of a position. `viewer` names the map with an entry for each player,
    /// here the ships themselves. In a crowd, a player sees the 64 nearest ships.
    #[sync(near = [x, y], viewer = ships, radius = SIGHT, hysteresis = HOLD, nearest = 64)]
    ships: Map<PlayerId, Ship>,
}

#[derive(State, Default)]
struct Ship {
    x: f32,
    y: f32,
    #[sync(hidden)]
    angle: f32,
    /// The time that a message to the player and back takes; none before the first measurement.
    round_trip_ms: Option<u32>,
}

#[derive(Message)]
struct Steer {
    angle: f32,
}

// 30 steps of the simulation and 20 patches to each player a second; a measurement in two seconds.
#[room(messages(Steer), tick_hz = 30, sync_hz = 20, capacity = 300, round_trip_ms = 2_000)]
impl Room for Arena {
    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        let mut place = || cx.rng().below(SIZE as u64) as f32;
        let (x, y) = (place(), place());
        self.ships.insert(player.id(), Ship { x, y, ..Ship::default() });
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.ships.remove(&player.id());
    }

    fn tick(&mut self, cx: &mut Context<Self>) {
        for (player, ship) in &mut self.ships {
            let round_trip = cx.round_trip(*player);
            ship.round_trip_ms = round_trip.map(|time| time.as_millis() as u32);
            ship.x = (ship.x + STEP * ship.angle.cos()).clamp(0.0, SIZE);
            ship.y = (ship.y + STEP * ship.angle.sin()).clamp(0.0, SIZE);
        }
    }
}

impl Handle<Steer> for Arena {
    fn handle(&mut self, steer: Steer, player: &Player, _: &mut Context<Self>) -> Result<()> {
        if !steer.angle.is_finite() {
            return Err(format!("the angle {} is not a finite number", steer.angle).into());
        }
        self.ships.get_mut(&player.id()).ok_or("you have no ship")?.angle = steer.angle;
        Ok(())
    }
}

/// A player for `cargo run --release --bin arena -- capacity arena`: turns five times a second.
fn wander(turn: &mut Turn<'_, Arena>) -> Duration {
    let angle = turn.fraction() as f32 * std::f32::consts::TAU;
    turn.send(&Steer { angle });
    Duration::from_millis(200)
}

pub(crate) fn server() -> Server {
    Server::new().room::<Arena>("arena").bot::<Arena, _>("arena", |_| wander)
}

fn main() -> ExitCode {
    server().run()
}

#[cfg(test)]
mod tests {
    use super::*;
    use playfield::sim::Sim;

    #[test]
    fn nobody_learns_of_a_ship_that_is_out_of_sight() {
        let report = Sim::<Arena>::audit([0.0, 1.5, 3.0], |sim, angle| {
            let [ann, bob] = ["Ann", "Bob"].map(|name| sim.join(name).unwrap());
            sim.may_see(ann);
            for (player, x) in [(ann, 600.0), (bob, 200.0)] {
                let ship = sim.room_mut().ships.get_mut(&player).unwrap();
                (ship.x, ship.y) = (x, 500.0);
            }
            sim.sync();
            sim.send(ann, Steer { angle: *angle }).unwrap();
            sim.send(bob, Steer { angle: 1.5 }).unwrap();
            sim.measure(ann, Duration::from_millis(40));
            sim.advance(Duration::from_secs(1));
            assert!(!sim.copy(bob).ships.contains_key(&ann));
        });
        report.assert_silent();
    }
}
