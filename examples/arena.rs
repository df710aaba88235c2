//! Arena: each player sees only the ships near their own, which a `view` decides.
//!
//! `cargo run --bin arena` serves it on 127.0.0.1:7350.

use playfield::prelude::*;

const SIZE: f32 = 1_000.0; // width and height of the arena
const SIGHT: f32 = 150.0; // how far a player sees
const STEP: f32 = 5.0; // how far a ship moves in a tick

#[derive(State, Default)]
struct Arena {
    /// `near` is asked for each ship and each viewer: `viewer` names the map with an entry for each
    /// player. It is asked again only when one of the two has changed.
    #[sync(view = near, viewer = eyes)]
    ships: Map<PlayerId, Ship>,
    /// Where each player looks from. Hidden: nobody receives it.
    #[sync(hidden)]
    eyes: Map<PlayerId, Eye>,
}

#[derive(State, Default)]
struct Ship {
    x: f32,
    y: f32,
    #[sync(hidden)]
    angle: f32,
}

#[derive(State, Default)]
struct Eye {
    x: f32,
    y: f32,
}

fn near(ship: &Ship, eye: &Eye) -> bool {
    (ship.x - eye.x).hypot(ship.y - eye.y) < SIGHT
}

#[derive(Message)]
struct Steer {
    angle: f32,
}

// 30 steps of the simulation and 20 patches to each player a second.
#[room(messages(Steer), tick_hz = 30, sync_hz = 20, capacity = 300)]
impl Room for Arena {
    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        let mut place = || cx.rng().below(SIZE as u64) as f32;
        let (x, y) = (place(), place());
        self.ships.insert(player.id(), Ship { x, y, angle: 0.0 });
        self.eyes.insert(player.id(), Eye { x, y });
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.ships.remove(&player.id());
        self.eyes.remove(&player.id());
    }

    fn tick(&mut self, _: &mut Context<Self>) {
        for (id, ship) in &mut self.ships {
            ship.x = (ship.x + STEP * ship.angle.cos()).clamp(0.0, SIZE);
            ship.y = (ship.y + STEP * ship.angle.sin()).clamp(0.0, SIZE);
            self.eyes.insert(*id, Eye { x: ship.x, y: ship.y });
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

fn main() -> ExitCode {
    Server::new().room::<Arena>("arena").run()
}
