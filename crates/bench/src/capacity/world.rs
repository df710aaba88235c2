//! A world of players and creatures. Each player sees the nearest ones.

use std::time::Duration;

use playfield::load::Turn;
use playfield::prelude::*;

/// Width and height.
const SIZE: f32 = 2_000.0;
/// The distance at which a player sees.
const SIGHT: f32 = 250.0;
/// The number of creatures.
const CREATURES: u32 = 400;
/// The distance that everything moves in a tick.
const STEP: f32 = 4.0;

#[derive(State, Default)]
struct World {
    #[sync(near = [x, y], viewer = walkers, radius = SIGHT, nearest = 48)]
    walkers: Map<PlayerId, Walker>,
    #[sync(near = [x, y], viewer = walkers, radius = SIGHT, nearest = 48)]
    creatures: Map<u32, Walker>,
}

#[derive(State, Default)]
struct Walker {
    x: f32,
    y: f32,
    #[sync(hidden)]
    angle: f32,
    health: u16,
}

#[derive(Message)]
struct Walk {
    angle: f32,
}

#[room(messages(Walk), tick_hz = 20, capacity = 400)]
impl Room for World {
    fn create(_: (), cx: &mut Context<Self>) -> Result<Self> {
        let mut world = Self::default();
        for number in 0..CREATURES {
            world.creatures.insert(number, Walker::somewhere(cx));
        }
        Ok(world)
    }

    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        self.walkers.insert(player.id(), Walker::somewhere(cx));
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.walkers.remove(&player.id());
    }

    fn tick(&mut self, _: &mut Context<Self>) {
        self.walkers.iter_mut().for_each(|(_, walker)| walker.step());
        self.creatures.iter_mut().for_each(|(_, walker)| walker.step());
    }
}

impl Handle<Walk> for World {
    fn handle(&mut self, walk: Walk, player: &Player, _: &mut Context<Self>) -> Result<()> {
        self.walkers.get_mut(&player.id()).ok_or("you are not in the world")?.angle = walk.angle;
        Ok(())
    }
}

impl Walker {
    fn somewhere(cx: &mut Context<World>) -> Self {
        let mut below = |bound: f32| cx.rng().below(bound as u64) as f32;
        let (x, y, angle) = (below(SIZE), below(SIZE), below(628.0) / 100.0);
        Self { x, y, angle, health: 100 }
    }

    fn step(&mut self) {
        self.x = (self.x + STEP * self.angle.cos()).rem_euclid(SIZE);
        self.y = (self.y + STEP * self.angle.sin()).rem_euclid(SIZE);
    }
}

fn wander(turn: &mut Turn<'_, World>) -> Duration {
    let angle = turn.fraction() as f32 * std::f32::consts::TAU;
    turn.send(&Walk { angle });
    Duration::from_millis(250)
}

pub(super) fn server() -> Server {
    Server::new().room::<World>("world").bot::<World, _>("world", |_| wander)
}

#[cfg(test)]
mod tests {
    use super::*;
    use playfield::sim::Sim;

    #[test]
    fn nobody_learns_of_walkers_and_creatures_that_are_out_of_sight() {
        let report = Sim::<World>::audit([0.0, 3.0], |sim, angle| {
            let [ann, bob] = ["Ann", "Bob"].map(|name| sim.join(name).unwrap());
            sim.may_see(ann);
            let world = sim.room_mut();
            for (player, x) in [(ann, 1_200.0), (bob, 200.0)] {
                let walker = world.walkers.get_mut(&player).unwrap();
                (walker.x, walker.y, walker.angle) = (x, 500.0, 1.5);
            }
            for creature in world.creatures.values_mut().filter(|of| of.x > 700.0) {
                (creature.x, creature.y, creature.angle) = (1_200.0, 500.0, *angle);
            }
            sim.advance(Duration::from_millis(100));
            sim.send(ann, Walk { angle: *angle }).unwrap();
            sim.advance(Duration::from_secs(2));
        });
        report.assert_silent();
    }
}
