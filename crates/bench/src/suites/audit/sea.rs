//! A sea with fog like `examples/arena.rs` and `capacity/world.rs`, in which leaks can be planted.
//! Ann sails where Bob, of the other team, can't see her.

use std::time::Duration;

use playfield::prelude::*;
use playfield::sim::{AuditReport, Sim};

use super::plant::Plant;

/// The distance at which a ship is seen.
const SIGHT: f32 = 100.0;

/// The distance of Ann's ship from Bob's: beyond sight, and within it if that is off by one.
const FAR: f32 = SIGHT + 0.5;

/// Marks a wind that the mask shows in tenths: a plant.
const EXACT: u32 = 1 << 20;

#[derive(State, Default)]
struct Sea {
    #[sync(view = sees, viewer = ships)]
    ships: Map<PlayerId, Ship>,
    /// By place, as large worlds do.
    #[sync(near = [x, y], viewer = ships, radius = SIGHT, nearest = 8)]
    buoys: Map<u32, Buoy>,
    /// In tenths of a knot. Everyone sees whole knots.
    #[sync(mask = in_knots)]
    wind: u32,
    #[sync(hidden)]
    plant: u32,
    // Only plants use what follows.
    fleet: u32,
    wakes: List<u32>,
}

#[derive(State, Default)]
struct Ship {
    x: f32,
    y: f32,
    team: u8,
    #[sync(hidden)]
    cargo: u32,
    #[sync(hidden)]
    plant: u32,
}

#[derive(State, Default)]
struct Buoy {
    x: f32,
    y: f32,
}

#[derive(Data, Default)]
struct Setup {
    plant: u32,
}

/// Sails by so much.
#[derive(Message)]
struct Sail {
    x: f32,
    y: f32,
}

fn sees(ship: &Ship, viewer: &Ship) -> bool {
    let distance = (ship.x - viewer.x).hypot(ship.y - viewer.y);
    match Plant::numbered(viewer.plant) {
        Plant::ViewRadius => distance <= SIGHT + 1.0,
        Plant::ViewTeam => distance <= SIGHT || ship.team != viewer.team,
        _ => distance <= SIGHT || ship.team == viewer.team,
    }
}

fn in_knots(tenths: &u32) -> u32 {
    if tenths & EXACT == 0 { tenths / 10 * 10 } else { *tenths }
}

#[room(messages(Sail), tick_hz = 20, capacity = 8)]
impl Room for Sea {
    type Options = Setup;

    fn create(setup: Setup, _: &mut Context<Self>) -> Result<Self> {
        let mut sea = Self { plant: setup.plant, ..Self::default() };
        for number in 0..12 {
            sea.buoys.insert(number, Buoy { x: 20.0 * number as f32, y: 50.0 });
        }
        Ok(sea)
    }

    fn join(&mut self, player: &Player, _: &mut Context<Self>) -> Result<()> {
        let team = (player.id().0 % 2) as u8;
        let ship = Ship { team, plant: self.plant, ..Ship::default() };
        self.ships.insert(player.id(), ship);
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.ships.remove(&player.id());
    }

    fn tick(&mut self, _: &mut Context<Self>) {
        match Plant::numbered(self.plant) {
            Plant::Counted => {
                self.fleet = self.ships.values().filter(|ship| ship.y > FAR + 1.0).count() as u32;
            }
            Plant::Wake => {
                self.wakes = self.ships.values().map(|ship| ship.y as u32).collect();
            }
            _ => {}
        }
    }
}

impl Handle<Sail> for Sea {
    fn handle(&mut self, sail: Sail, player: &Player, _: &mut Context<Self>) -> Result<()> {
        if !(sail.x.is_finite() && sail.y.is_finite()) {
            return Err("sail by finite numbers".into());
        }
        let ship = self.ships.get_mut(&player.id()).ok_or("you have no ship")?;
        (ship.x, ship.y) = (ship.x + sail.x, ship.y + sail.y);
        if Plant::numbered(self.plant) == Plant::Nearest {
            // A buoy drifts with the ship, and takes the place of another among the nearest.
            let x = if ship.y > FAR + 1.0 { 1.0 } else { 500.0 };
            self.buoys.insert(99, Buoy { x, y: 50.0 });
        }
        Ok(())
    }
}

/// Audits the sea with a plant. The secrets are where Ann sails.
pub(super) fn audit(plant: Plant, messages: u64) -> AuditReport {
    let setup = Setup { plant: plant as u32 };
    let create = |_: &f32| Sim::<Sea>::with_options(7, &setup).expect("it refuses nobody");
    Sim::audit_with([0.0, 40.0], create, |sim, by| {
        let ann = sim.join("Ann").expect("a seat");
        let bob = sim.join("Bob").expect("a seat");
        sim.may_see(ann);
        // The fog falls when Ann is out of sight.
        sim.send(ann, Sail { x: 0.0, y: FAR }).expect("it is taken");
        let exact = if plant == Plant::MaskedValue { EXACT } else { 0 };
        sim.room_mut().wind = 123 | exact;
        sim.advance(Duration::from_millis(200));
        sim.send(ann, Sail { x: 0.0, y: *by }).expect("it is taken");
        let sea = sim.room_mut();
        sea.wind = (124 + *by as u32 / 10) | exact;
        sea.ships.get_mut(&ann).expect("her ship").cargo = *by as u32;
        for seed in 0..messages as u32 {
            sim.advance(Duration::from_millis(50));
            // Bob stays where he is, whatever else he tries.
            let _ = sim.raw_request(bob, seed % 3, &[seed as u8]);
        }
        sim.advance(Duration::from_secs(1));
        // Dan is of Ann's team.
        let dan = sim.join("Dan").expect("a seat");
        sim.may_see(dan);
        sim.advance(Duration::from_secs(1));
    })
}
