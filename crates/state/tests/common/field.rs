//! A state with views: on maps, on single values, inside entries, inside an owner's values, with a
//! map of viewers that is visible and one that is not.

use playfield_state::{Key, List, Map, PlayerId, State};

use super::map::AnyKey;
use super::swarm::Spot;
use super::world::{Card, Root};
use super::{Dice, Eye, Model};
use crate::model;

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Field {
    pub(crate) avatars: Map<PlayerId, Avatar>,
    #[sync(view = near, viewer = avatars)]
    pub(crate) things: Map<u8, Thing>,
    #[sync(hidden)]
    pub(crate) cameras: Map<PlayerId, Camera>,
    /// Swapped with the cameras from time to time.
    #[sync(hidden)]
    pub(crate) spare: Map<PlayerId, Camera>,
    #[sync(view = lit, viewer = cameras)]
    pub(crate) treasure: Treasure,
    #[sync(view = filmed, viewer = cameras)]
    pub(crate) birds: Map<String, Bird>,
    #[sync(view = beside, viewer = walkers)]
    pub(crate) walkers: Map<PlayerId, Walker>,
    pub(crate) zones: Map<u8, Zone>,
    #[sync(owner)]
    pub(crate) plans: Map<PlayerId, Zone>,
    pub(crate) rows: List<Zone>,
}

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Avatar {
    pub(crate) x: i32,
    #[sync(hidden)]
    pub(crate) range: u32,
    #[sync(owner)]
    pub(crate) secret: u8,
}

model!(Avatar { open x, hidden range, owner secret, });

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Thing {
    pub(crate) x: i32,
    pub(crate) hp: u8,
    pub(crate) at: Spot,
    #[sync(hidden)]
    pub(crate) cloaked: bool,
    pub(crate) held: Option<Card>,
    pub(crate) loads: Map<u16, u8>,
}

model!(Thing { open x, open hp, open at, hidden cloaked, open held, open loads, });

fn near(thing: &Thing, viewer: &Avatar) -> bool {
    !thing.cloaked && thing.x.saturating_sub(viewer.x).unsigned_abs() <= viewer.range
}

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Camera {
    pub(crate) level: u8,
}

model!(Camera { open level, });

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Treasure {
    pub(crate) depth: u8,
    pub(crate) coins: List<u8>,
    pub(crate) gems: Map<u16, u8>,
    #[sync(hidden)]
    pub(crate) trap: bool,
}

model!(Treasure { open depth, open coins, open gems, hidden trap, });

fn lit(treasure: &Treasure, viewer: &Camera) -> bool {
    treasure.depth <= viewer.level
}

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Bird {
    pub(crate) height: u8,
    pub(crate) color: u16,
    pub(crate) path: List<u8>,
    pub(crate) held: Option<Card>,
    pub(crate) spots: [Spot; 2],
    #[sync(mask = super::Masked::masked)]
    pub(crate) rank: u8,
}

model!(Bird { open height, open color, open path, open held, open spots, mask rank, });

fn filmed(bird: &Bird, viewer: &Camera) -> bool {
    bird.height == viewer.level
}

/// The viewers are also the viewed, and each has owner fields.
#[derive(State, Default, Clone, Debug)]
pub(crate) struct Walker {
    pub(crate) x: i8,
    #[sync(owner)]
    pub(crate) purse: u32,
    #[sync(owner)]
    pub(crate) notes: Map<u16, String>,
    #[sync(hidden)]
    pub(crate) mood: u8,
    #[sync(owner)]
    pub(crate) medals: List<Medal>,
}

model!(Walker { open x, owner purse, owner notes, hidden mood, owner medals, });

/// A mask inside an owner's value.
#[derive(State, Default, Clone, Debug)]
pub(crate) struct Medal {
    pub(crate) year: u16,
    #[sync(mask = super::Masked::masked)]
    pub(crate) grade: u8,
    #[sync(mask = super::Masked::masked)]
    pub(crate) deed: Option<Card>,
}

model!(Medal { open year, mask grade, mask deed, });

fn beside(walker: &Walker, viewer: &Walker) -> bool {
    walker.x == viewer.x
}

/// The same again, further down.
#[derive(State, Default, Clone, Debug)]
pub(crate) struct Zone {
    pub(crate) name: u8,
    pub(crate) scouts: Map<PlayerId, Camera>,
    #[sync(view = filmed, viewer = scouts)]
    pub(crate) mines: Map<u8, Bird>,
    #[sync(view = over, viewer = scouts)]
    pub(crate) depth: u8,
}

fn over(depth: &u8, viewer: &Camera) -> bool {
    *depth <= viewer.level
}

impl Zone {
    fn is_depth_seen(&self, eye: Eye) -> bool {
        self.scouts.get(&eye.viewer).is_some_and(|viewer| over(&self.depth, viewer))
    }
}

/// The visible part of a map.
fn seen<K: Key, V: Model>(map: &Map<K, V>, eye: Eye, sees: impl Fn(&V) -> bool) -> Map<K, V> {
    let seen = map.iter().filter(|(_, value)| sees(value));
    seen.map(|(key, value)| (key.clone(), value.redact(eye.under(key.player())))).collect()
}

/// Changes a value, unless that changes whether it is in view.
fn nudge<V: Model>(value: &mut V, dice: &mut Dice, eye: Eye, sees: &impl Fn(&V) -> bool) {
    let before = value.clone();
    if sees(&before) {
        value.scramble(dice, eye);
    } else {
        value.mutate(dice);
    }
    if sees(value) != sees(&before) {
        *value = before;
    }
}

/// Changes what is not in view.
fn stir<K: AnyKey, V: Model>(
    map: &mut Map<K, V>,
    dice: &mut Dice,
    eye: Eye,
    sees: impl Fn(&V) -> bool,
) {
    for _ in 0..3 {
        let key = K::any(dice);
        match map.get(&key).map(&sees) {
            None => {
                let value = V::random(dice);
                if !sees(&value) {
                    map.insert(key, value);
                }
            }
            Some(false) if dice.once_in(3) => drop(map.remove(&key)),
            Some(_) => {
                if let Some(value) = map.get_mut(&key) {
                    nudge(value, dice, eye.under(key.player()), &sees);
                }
            }
        }
    }
}

impl Model for Zone {
    fn mutate(&mut self, dice: &mut Dice) {
        match dice.pick(5) {
            0 => self.name.mutate(dice),
            1 => self.scouts.mutate(dice),
            2 => self.depth.mutate(dice),
            _ => self.mines.mutate(dice),
        }
    }
    fn scramble(&mut self, dice: &mut Dice, eye: Eye) {
        let Self { scouts, mines, depth, .. } = self;
        let viewer = scouts.get(&eye.viewer);
        stir(mines, dice, eye, |mine| viewer.is_some_and(|viewer| filmed(mine, viewer)));
        nudge(depth, dice, eye, &|depth: &u8| viewer.is_some_and(|viewer| over(depth, viewer)));
    }
    fn redact(&self, eye: Eye) -> Self {
        let viewer = self.scouts.get(&eye.viewer);
        Self {
            name: self.name,
            scouts: self.scouts.redact(eye),
            mines: seen(&self.mines, eye, |mine| viewer.is_some_and(|viewer| filmed(mine, viewer))),
            depth: if self.is_depth_seen(eye) { self.depth } else { 0 },
        }
    }
    fn equals(&self, other: &Self) -> bool {
        self.name == other.name
            && self.scouts.equals(&other.scouts)
            && self.mines.equals(&other.mines)
            && self.depth == other.depth
    }
    fn looks_like(&self, other: &Self, eye: Eye) -> bool {
        self.redact(eye).equals(&other.redact(eye))
            && self.is_depth_seen(eye) == other.is_depth_seen(eye)
    }
}

impl Model for Field {
    fn mutate(&mut self, dice: &mut Dice) {
        match dice.pick(11) {
            9 => std::mem::swap(&mut self.cameras, &mut self.spare),
            0 => self.avatars.mutate(dice),
            1 => self.avatars.get_or_default(PlayerId::any(dice)).mutate(dice),
            2 => self.cameras.mutate(dice),
            3 => self.treasure.mutate(dice),
            4 => self.birds.mutate(dice),
            5 => self.walkers.mutate(dice),
            6 => self.zones.mutate(dice),
            7 => self.plans.mutate(dice),
            8 => self.rows.mutate(dice),
            _ => self.things.mutate(dice),
        }
    }
    fn scramble(&mut self, dice: &mut Dice, eye: Eye) {
        // What others see is hidden from this viewer.
        for player in (1..5).map(PlayerId).filter(|player| *player != eye.viewer) {
            match (dice.pick(3), self.avatars.get_mut(&player)) {
                (0, Some(avatar)) => avatar.scramble(dice, eye.under(Some(player))),
                (1, _) => self.cameras.get_or_default(player).mutate(dice),
                (2, _) => drop(self.cameras.remove(&player)),
                _ => {}
            }
        }
        let viewer = self.avatars.get(&eye.viewer);
        stir(&mut self.things, dice, eye, |thing| viewer.is_some_and(|viewer| near(thing, viewer)));
        let viewer = self.cameras.get(&eye.viewer);
        stir(&mut self.birds, dice, eye, |bird| viewer.is_some_and(|viewer| filmed(bird, viewer)));
        nudge(&mut self.treasure, dice, eye, &|treasure| {
            viewer.is_some_and(|viewer| lit(treasure, viewer))
        });
        let viewer = self.walkers.get(&eye.viewer).cloned();
        let here = |walker: &Walker| viewer.as_ref().is_some_and(|viewer| beside(walker, viewer));
        // A viewer without an entry sees nobody, but would see themselves after joining.
        let own = self.walkers.contains_key(&eye.viewer);
        stir(&mut self.walkers, dice, eye, here);
        if !own {
            self.walkers.remove(&eye.viewer);
        }
        self.zones.scramble(dice, eye);
        super::OwnModel::scramble_own(&mut self.plans, dice, eye);
        self.rows.scramble(dice, eye);
    }
    fn redact(&self, eye: Eye) -> Self {
        let (avatar, camera) = (self.avatars.get(&eye.viewer), self.cameras.get(&eye.viewer));
        let walker = self.walkers.get(&eye.viewer);
        let lit = camera.is_some_and(|camera| lit(&self.treasure, camera));
        Self {
            avatars: self.avatars.redact(eye),
            things: seen(&self.things, eye, |thing| {
                avatar.is_some_and(|avatar| near(thing, avatar))
            }),
            cameras: Map::new(),
            spare: Map::new(),
            treasure: if lit { self.treasure.redact(eye) } else { Treasure::default() },
            birds: seen(&self.birds, eye, |bird| camera.is_some_and(|camera| filmed(bird, camera))),
            walkers: seen(&self.walkers, eye, |other| {
                walker.is_some_and(|walker| beside(other, walker))
            }),
            zones: self.zones.redact(eye),
            plans: super::OwnModel::redact_own(&self.plans, eye),
            rows: self.rows.redact(eye),
        }
    }
    fn equals(&self, other: &Self) -> bool {
        self.avatars.equals(&other.avatars)
            && self.things.equals(&other.things)
            && self.cameras.equals(&other.cameras)
            && self.spare.equals(&other.spare)
            && self.treasure.equals(&other.treasure)
            && self.birds.equals(&other.birds)
            && self.walkers.equals(&other.walkers)
            && self.zones.equals(&other.zones)
            && self.plans.equals(&other.plans)
            && self.rows.equals(&other.rows)
    }
}

impl Root for Field {
    fn change(&mut self, dice: &mut Dice) {
        match dice.pick(4) {
            0 => {
                let (seed, range) = (dice.roll(), dice.pick(3) as u32);
                self.avatars.get_or_default(PlayerId::any(dice)).range = range;
                self.things.values_mut().for_each(|thing| thing.mutate(&mut Dice::new(seed)));
            }
            1 => self.things.mutate(dice),
            _ => self.mutate(dice),
        }
    }
}
