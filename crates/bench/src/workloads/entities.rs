//! Many entities on a plane, a few of which move per step. Everyone sees them all, or players see
//! those in their windows.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use playfield_state::{Map, PlayerId, State, TreeFormat};
use serde_json::{Value, json};

use super::{Workload, same_map};

/// The width and height of the plane, unless it is stated.
const PLANE: i32 = 1_000;

/// The distance at which a player sees in each direction.
const WINDOW: i32 = 25;

/// The distance at which a player sees in worlds with a radius.
const RADIUS: i32 = 126;

/// The number of entities that a player sees in a crowd.
const NEAREST: usize = 64;

/// The workload's size.
#[derive(Clone, Debug)]
pub struct Entities<S> {
    players: u64,
    entities: u32,
    /// The number of entities that move per step.
    changed: u32,
    /// The distance, in order, between entities that move in one step; 1 means adjacent.
    apart: u64,
    /// The number of players that move per step.
    moving: u64,
    /// Each step also borrows all players and entities mutably.
    borrowing: bool,
    /// The width and height of the plane, which wraps around at its edges.
    plane: i32,
    of: PhantomData<fn() -> S>,
}

/// The synced state: the same data with two kinds of visibility.
pub trait Plane: State + Default {
    /// The most entities that a player sees.
    const NEAREST: usize = usize::MAX;

    /// Returns whether a player sees an entity, if that is not too many.
    fn sees(avatar: Spot, entity: Spot) -> bool;

    /// The players and the entities.
    fn parts(&self) -> (&Map<PlayerId, Avatar>, &Map<u32, Entity>);

    /// Mutable access to both.
    fn parts_mut(&mut self) -> (&mut Map<PlayerId, Avatar>, &mut Map<u32, Entity>);
}

/// Everyone sees everything.
#[derive(State, Default)]
pub struct Open {
    avatars: Map<PlayerId, Avatar>,
    entities: Map<u32, Entity>,
}

/// Players see the entities in their windows.
#[derive(State, Default)]
pub struct Windowed {
    avatars: Map<PlayerId, Avatar>,
    #[sync(view = in_window, viewer = avatars)]
    entities: Map<u32, Entity>,
}

/// A player on the plane.
#[derive(State, Default)]
pub struct Avatar {
    x: i32,
    y: i32,
}

/// One of the entities.
#[derive(State, Default)]
pub struct Entity {
    x: i32,
    y: i32,
    kind: u8,
    hp: u16,
}

/// A position.
pub type Spot = (i32, i32);

fn in_window(entity: &Entity, avatar: &Avatar) -> bool {
    near((avatar.x, avatar.y), (entity.x, entity.y))
}

fn near(avatar: Spot, entity: Spot) -> bool {
    (avatar.0 - entity.0).abs() <= WINDOW && (avatar.1 - entity.1).abs() <= WINDOW
}

/// Players see the entities in their windows, which a grid finds.
#[derive(State, Default)]
pub struct Gridded {
    avatars: Map<PlayerId, Avatar>,
    #[sync(near = [x, y], viewer = avatars, half_extents = [WINDOW, WINDOW])]
    entities: Map<u32, Entity>,
}

/// Players see the entities within a radius, which a function decides.
#[derive(State, Default)]
pub struct Round {
    avatars: Map<PlayerId, Avatar>,
    #[sync(view = in_radius, viewer = avatars)]
    entities: Map<u32, Entity>,
}

/// The same, by a function that computes distances in floats.
#[derive(State, Default)]
pub struct RoundInFloats {
    avatars: Map<PlayerId, Avatar>,
    #[sync(view = in_distance, viewer = avatars)]
    entities: Map<u32, Entity>,
}

/// The same, which a grid finds.
#[derive(State, Default)]
pub struct GriddedRound {
    avatars: Map<PlayerId, Avatar>,
    #[sync(near = [x, y], viewer = avatars, radius = RADIUS)]
    entities: Map<u32, Entity>,
}

/// Players see the nearest entities within a radius.
#[derive(State, Default)]
pub struct Crowd {
    avatars: Map<PlayerId, Avatar>,
    #[sync(near = [x, y], viewer = avatars, radius = RADIUS, nearest = NEAREST)]
    entities: Map<u32, Entity>,
}

fn in_radius(entity: &Entity, avatar: &Avatar) -> bool {
    round((avatar.x, avatar.y), (entity.x, entity.y))
}

fn in_distance(entity: &Entity, avatar: &Avatar) -> bool {
    let (x, y) = (avatar.x - entity.x, avatar.y - entity.y);
    f64::from(x).hypot(f64::from(y)) <= f64::from(RADIUS)
}

fn round(avatar: Spot, entity: Spot) -> bool {
    square(avatar, entity) <= RADIUS * RADIUS
}

fn square(avatar: Spot, entity: Spot) -> i32 {
    (avatar.0 - entity.0).pow(2) + (avatar.1 - entity.1).pow(2)
}

macro_rules! planes {
    ($($state:ty: $sees:expr, $nearest:expr;)*) => {$(
        impl Plane for $state {
            const NEAREST: usize = $nearest;

            fn sees(avatar: Spot, entity: Spot) -> bool {
                $sees(avatar, entity)
            }
            fn parts(&self) -> (&Map<PlayerId, Avatar>, &Map<u32, Entity>) {
                (&self.avatars, &self.entities)
            }
            fn parts_mut(&mut self) -> (&mut Map<PlayerId, Avatar>, &mut Map<u32, Entity>) {
                (&mut self.avatars, &mut self.entities)
            }
        }
    )*};
}

planes! {
    Open: |_, _| true, usize::MAX;
    Windowed: near, usize::MAX;
    Gridded: near, usize::MAX;
    Round: round, usize::MAX;
    RoundInFloats: round, usize::MAX;
    GriddedRound: round, usize::MAX;
    Crowd: round, NEAREST;
}

/// The same, in plain collections.
#[derive(Debug)]
pub struct Model {
    avatars: BTreeMap<PlayerId, Spot>,
    entities: BTreeMap<u32, Spot>,
}

impl<S> Entities<S> {
    /// Creates `players` players on a plane with `entities` entities. In each step, `changed`
    /// entities move, either adjacent or `scattered`, and so do `moving` players.
    pub fn new(players: u64, entities: u32, changed: u32, scattered: bool, moving: u64) -> Self {
        Self {
            players,
            entities,
            changed: changed.min(entities),
            apart: if scattered { scatter(entities.into()) } else { 1 },
            moving: moving.min(players),
            borrowing: false,
            plane: PLANE,
            of: PhantomData,
        }
    }

    /// The same, and each step borrows all players and entities mutably.
    #[must_use]
    pub fn borrowing(self) -> Self {
        Self { borrowing: true, ..self }
    }

    /// The same, on a plane of another width and height.
    #[must_use]
    pub fn on_plane(self, plane: i32) -> Self {
        Self { plane, ..self }
    }

    fn wrapped(&self, (x, y): Spot) -> Spot {
        (x.rem_euclid(self.plane), y.rem_euclid(self.plane))
    }

    fn moved(&self, spot: Spot, by: Spot) -> Spot {
        self.wrapped((spot.0 + by.0, spot.1 + by.1))
    }

    fn ids(&self) -> impl Iterator<Item = PlayerId> + use<S> {
        (1..=self.players).map(PlayerId)
    }

    /// The entities that move in a step. Each step moves different ones, until all have moved.
    fn entities_of(&self, iteration: u64) -> impl Iterator<Item = u32> + use<S> {
        let (all, apart, first) =
            (u64::from(self.entities), self.apart, iteration * u64::from(self.changed));
        (0..u64::from(self.changed)).map(move |place| ((first + place) * apart % all) as u32)
    }

    fn players_of(&self, iteration: u64) -> impl Iterator<Item = PlayerId> + use<S> {
        let (all, first) = (self.players, iteration * self.moving);
        (0..self.moving).map(move |place| PlayerId(1 + (first + place) % all))
    }
}

/// A stride that visits each of `all` indices once before it repeats.
fn scatter(all: u64) -> u64 {
    let shares_a_divisor = |mut a: u64, mut b: u64| {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a != 1
    };
    (7_919..).find(|apart| !shares_a_divisor(*apart, all)).unwrap_or(1)
}

/// An initial position: spread over the plane.
fn start(number: u64) -> Spot {
    let spread = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((spread >> 20) as i32 & 0x7fff_ffff, (spread >> 44) as i32)
}

/// The direction of a move, which changes from step to step.
fn way(iteration: u64, number: u64) -> Spot {
    (
        [3, -2, 5, -4][((iteration + number) % 4) as usize],
        [-1, 4, -3, 2][((iteration / 4 + number) % 4) as usize],
    )
}

fn kind(entity: u32) -> u8 {
    (entity % 8) as u8
}

fn hp(entity: u32) -> u16 {
    (100 + entity % 50) as u16
}

/// Returns what a player sees, by number.
fn seen<S: Plane>(model: &Model, avatar: Spot) -> Vec<(&u32, &Spot)> {
    let mut seen: Vec<_> =
        model.entities.iter().filter(|(_, spot)| S::sees(avatar, **spot)).collect();
    if seen.len() > S::NEAREST {
        seen.select_nth_unstable_by_key(S::NEAREST, |(number, spot)| {
            (square(avatar, **spot), **number)
        });
        seen.truncate(S::NEAREST);
        seen.sort_unstable();
    }
    seen
}

impl<S: Plane> Entities<S> {
    /// Returns the number of entities that move in a step and are in sight afterwards, summed over
    /// all players.
    pub fn changed_in_sight(&self, model: &Model, iteration: u64) -> u64 {
        let mut has_moved = vec![false; self.entities as usize];
        self.entities_of(iteration).for_each(|number| has_moved[number as usize] = true);
        let in_sight = |avatar: &Spot| {
            let seen = seen::<S>(model, *avatar);
            seen.iter().filter(|(number, _)| has_moved[**number as usize]).count() as u64
        };
        model.avatars.values().map(in_sight).sum()
    }
}

impl<S: Plane> Workload for Entities<S> {
    type State = S;
    type Model = Model;

    fn players(&self) -> Vec<PlayerId> {
        self.ids().collect()
    }

    fn state(&self) -> S {
        let mut state = S::default();
        let (avatars, entities) = state.parts_mut();
        for id in self.ids() {
            let (x, y) = self.wrapped(start(id.0 + 1_000_000));
            avatars.insert(id, Avatar { x, y });
        }
        for number in 0..self.entities {
            let (x, y) = self.wrapped(start(number.into()));
            entities.insert(number, Entity { x, y, kind: kind(number), hp: hp(number) });
        }
        state
    }

    fn model(&self) -> Model {
        Model {
            avatars: self.ids().map(|id| (id, self.wrapped(start(id.0 + 1_000_000)))).collect(),
            entities: (0..self.entities)
                .map(|number| (number, self.wrapped(start(number.into()))))
                .collect(),
        }
    }

    fn step(&self, state: &mut S, iteration: u64) {
        let (avatars, entities) = state.parts_mut();
        if self.borrowing {
            let _borrowed = (avatars.values_mut().count(), entities.values_mut().count());
        }
        for id in self.players_of(iteration) {
            if let Some(avatar) = avatars.get_mut(&id) {
                (avatar.x, avatar.y) = self.moved((avatar.x, avatar.y), way(iteration, id.0));
            }
        }
        for number in self.entities_of(iteration) {
            if let Some(entity) = entities.get_mut(&number) {
                (entity.x, entity.y) =
                    self.moved((entity.x, entity.y), way(iteration, number.into()));
            }
        }
    }

    fn step_model(&self, model: &mut Model, iteration: u64) {
        for id in self.players_of(iteration) {
            if let Some(spot) = model.avatars.get_mut(&id) {
                *spot = self.moved(*spot, way(iteration, id.0));
            }
        }
        for number in self.entities_of(iteration) {
            if let Some(spot) = model.entities.get_mut(&number) {
                *spot = self.moved(*spot, way(iteration, number.into()));
            }
        }
    }

    fn matches_shared(&self, copy: &S, model: &Model) -> bool {
        same_map(copy.parts().0, &model.avatars, |avatar, spot| (avatar.x, avatar.y) == *spot)
    }

    fn matches_own(&self, copy: &S, model: &Model, viewer: PlayerId) -> bool {
        let Some(avatar) = model.avatars.get(&viewer) else { return false };
        let mut seen = seen::<S>(model, *avatar).into_iter();
        let same = copy.parts().1.iter().all(|(number, entity)| {
            seen.next() == Some((number, &(entity.x, entity.y)))
                && (entity.kind, entity.hp) == (kind(*number), hp(*number))
        });
        same && seen.next().is_none()
    }

    fn shared_tree(&self, model: &Model, _: TreeFormat) -> serde_json::Map<String, Value> {
        let avatar = |(id, (x, y)): (&PlayerId, &Spot)| (id.to_string(), json!({"x": x, "y": y}));
        let avatars: serde_json::Map<String, Value> = model.avatars.iter().map(avatar).collect();
        [("avatars".to_owned(), avatars.into())].into_iter().collect()
    }

    fn own_tree(&self, model: &Model, viewer: PlayerId) -> (&'static str, Value) {
        let avatar = model.avatars.get(&viewer);
        let seen = avatar.map_or_else(Vec::new, |avatar| seen::<S>(model, *avatar));
        let entity = |(number, (x, y)): (&u32, &Spot)| {
            let entity = json!({"x": x, "y": y, "kind": kind(*number), "hp": hp(*number)});
            (number.to_string(), entity)
        };
        ("entities", Value::Object(seen.into_iter().map(entity).collect()))
    }
}
