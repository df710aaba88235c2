//! A state whose defaults do not follow from the types: numbers, texts, an enum, keys, collections
//! and quantized numbers, in owner fields and in fields with a view.

use playfield_state::{Data, Key, List, Map, PlayerId, State};

use super::map::AnyKey;
use super::world::Root;
use super::{Dice, Eye, Model, OwnModel};
use crate::model;

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Odd {
    pub(crate) posts: Map<PlayerId, Post>,
    #[sync(owner)]
    pub(crate) lockers: Map<PlayerId, Kit>,
    #[sync(view = knows, viewer = posts)]
    pub(crate) banner: Gear,
    #[sync(view = knows, viewer = posts)]
    pub(crate) mood: Mood,
    #[sync(view = knows, viewer = posts)]
    pub(crate) badge: Badge,
    #[sync(view = knows, viewer = posts)]
    pub(crate) gears: Map<u8, Gear>,
}

fn knows<T>(_: &T, viewer: &Post) -> bool {
    viewer.level > 1
}

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Post {
    pub(crate) level: u8,
    #[sync(owner)]
    pub(crate) gear: Gear,
    #[sync(owner)]
    pub(crate) kit: Kit,
    #[sync(owner)]
    pub(crate) mood: Mood,
    #[sync(owner)]
    pub(crate) badge: Badge,
    #[sync(owner)]
    pub(crate) pair: [Gear; 2],
    #[sync(owner)]
    pub(crate) held: Option<Gear>,
    #[sync(owner)]
    pub(crate) stock: List<Gear>,
    #[sync(owner, quantize = 0.01)]
    pub(crate) worth: f64,
}

model!(Post {
    open level,
    owner gear,
    owner kit,
    owner mood,
    owner badge,
    owner pair,
    owner held,
    owner stock,
    ownhundredth worth,
});

/// Everything in it has a default of its own.
#[derive(State, Clone, Debug)]
pub(crate) struct Gear {
    pub(crate) hp: i32,
    pub(crate) name: String,
    pub(crate) tilt: f32,
    pub(crate) mood: Mood,
    pub(crate) badge: Badge,
    #[sync(quantize = 0.01)]
    pub(crate) x: f64,
    #[sync(angle = 0.01)]
    pub(crate) facing: f32,
    pub(crate) notes: List<u8>,
    pub(crate) tags: Map<u8, u8>,
    pub(crate) last: Option<u8>,
}

impl Default for Gear {
    fn default() -> Self {
        Self {
            hp: 100,
            name: "new".to_owned(),
            tilt: 1.5,
            mood: Mood::Sad(3),
            badge: Badge(9),
            x: -0.25,
            facing: 1.0,
            notes: [1, 2].into_iter().collect(),
            tags: [(1, 2)].into_iter().collect(),
            last: Some(0),
        }
    }
}

model!(Gear {
    open hp,
    open name,
    open tilt,
    open mood,
    open badge,
    hundredth x,
    turn facing,
    open notes,
    open tags,
    open last,
});

/// In its default, the private fields differ from the defaults of their types.
#[derive(State, Clone, Debug)]
pub(crate) struct Kit {
    pub(crate) gear: Gear,
    pub(crate) eyes: Map<PlayerId, u8>,
    #[sync(owner)]
    pub(crate) coins: u8,
    #[sync(owner)]
    pub(crate) badge: Badge,
    #[sync(owner, quantize = 0.01)]
    pub(crate) worth: f64,
    #[sync(view = sharp, viewer = eyes)]
    pub(crate) spot: Gear,
}

fn sharp(_: &Gear, level: &u8) -> bool {
    *level > 1
}

impl Default for Kit {
    fn default() -> Self {
        Self {
            gear: Gear { hp: 7, ..Gear::default() },
            eyes: [(PlayerId(1), 1)].into_iter().collect(),
            coins: 9,
            badge: Badge(1),
            worth: 2.5,
            spot: Gear { hp: 55, ..Gear::default() },
        }
    }
}

#[derive(State, Data, Default, Clone, PartialEq, Debug)]
pub(crate) enum Mood {
    Calm,
    Sad(u16),
    #[default]
    Angry,
}

#[derive(Key, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Badge(pub(crate) u16);

impl Default for Badge {
    fn default() -> Self {
        Self(7)
    }
}

impl Model for Mood {
    fn mutate(&mut self, dice: &mut Dice) {
        *self = match dice.pick(4) {
            0 => Self::Calm,
            1 => Self::Sad(0),
            2 => Self::Sad(3),
            _ => Self::Angry,
        };
    }
    fn scramble(&mut self, _: &mut Dice, _: Eye) {
        *self = self.clone();
    }
    fn redact(&self, _: Eye) -> Self {
        self.clone()
    }
    fn equals(&self, other: &Self) -> bool {
        self == other
    }
}

impl Model for Badge {
    fn mutate(&mut self, dice: &mut Dice) {
        *self = Self([0, 1, 7, 9][dice.pick(4)]);
    }
    fn scramble(&mut self, _: &mut Dice, _: Eye) {}
    fn redact(&self, _: Eye) -> Self {
        *self
    }
    fn equals(&self, other: &Self) -> bool {
        self == other
    }
}

/// Changes a value that may be visible: if it is, only its hidden parts.
fn stir<T: Model>(value: &mut T, dice: &mut Dice, eye: Eye, is_seen: bool) {
    if is_seen {
        value.scramble(dice, eye);
    } else {
        value.mutate(dice);
    }
}

fn seen<T: Model>(value: &T, eye: Eye, is_seen: bool) -> T {
    if is_seen { value.redact(eye) } else { T::unseen() }
}

impl Kit {
    fn is_spot_seen(&self, eye: Eye) -> bool {
        self.eyes.get(&eye.viewer).is_some_and(|level| sharp(&self.spot, level))
    }
}

impl Model for Kit {
    fn mutate(&mut self, dice: &mut Dice) {
        match dice.pick(7) {
            0 => self.gear.mutate(dice),
            1 => self.eyes.get_or_default(PlayerId::any(dice)).mutate(dice),
            2 => self.coins.mutate(dice),
            3 => self.badge.mutate(dice),
            4 => self.worth.mutate(dice),
            5 => *self = Self::default(),
            _ => self.spot.mutate(dice),
        }
    }
    fn scramble(&mut self, dice: &mut Dice, eye: Eye) {
        let is_spot_seen = self.is_spot_seen(eye);
        self.gear.scramble(dice, eye);
        self.eyes.scramble(dice, eye);
        if !eye.owns() {
            self.coins.mutate(dice);
            self.badge.mutate(dice);
            self.worth.mutate(dice);
        }
        stir(&mut self.spot, dice, eye, is_spot_seen);
    }
    fn redact(&self, eye: Eye) -> Self {
        let owns = eye.owns();
        Self {
            gear: self.gear.redact(eye),
            eyes: self.eyes.redact(eye),
            coins: if owns { self.coins } else { 0 },
            badge: seen(&self.badge, eye, owns),
            worth: if owns { super::leaves::hundredth(self.worth) } else { 0.0 },
            spot: seen(&self.spot, eye, self.is_spot_seen(eye)),
        }
    }
    fn emptied(self) -> Self {
        let (badge, spot) = (Badge::unseen(), Gear::unseen());
        Self { gear: self.gear.emptied(), eyes: Map::new(), coins: 0, badge, worth: 0.0, spot }
    }
    fn equals(&self, other: &Self) -> bool {
        self.gear.equals(&other.gear)
            && self.eyes.equals(&other.eyes)
            && self.coins.equals(&other.coins)
            && self.badge.equals(&other.badge)
            && self.worth.equals(&other.worth)
            && self.spot.equals(&other.spot)
    }
}

impl Odd {
    fn knows(&self, eye: Eye) -> bool {
        self.posts.get(&eye.viewer).is_some_and(|viewer| knows(&(), viewer))
    }
}

impl Model for Odd {
    fn mutate(&mut self, dice: &mut Dice) {
        match dice.pick(8) {
            0 => self.posts.mutate(dice),
            1 => self.posts.get_or_default(PlayerId::any(dice)).mutate(dice),
            2 => self.lockers.mutate(dice),
            3 => self.lockers.get_or_default(PlayerId::any(dice)).mutate(dice),
            4 => self.banner.mutate(dice),
            5 => self.mood.mutate(dice),
            6 => self.badge.mutate(dice),
            _ => self.gears.mutate(dice),
        }
    }
    fn scramble(&mut self, dice: &mut Dice, eye: Eye) {
        let knows = self.knows(eye);
        self.posts.scramble(dice, eye);
        self.lockers.scramble_own(dice, eye);
        stir(&mut self.banner, dice, eye, knows);
        stir(&mut self.mood, dice, eye, knows);
        stir(&mut self.badge, dice, eye, knows);
        stir(&mut self.gears, dice, eye, knows);
    }
    fn redact(&self, eye: Eye) -> Self {
        let knows = self.knows(eye);
        Self {
            posts: self.posts.redact(eye),
            lockers: self.lockers.redact_own(eye),
            banner: seen(&self.banner, eye, knows),
            mood: seen(&self.mood, eye, knows),
            badge: seen(&self.badge, eye, knows),
            gears: seen(&self.gears, eye, knows),
        }
    }
    fn equals(&self, other: &Self) -> bool {
        self.posts.equals(&other.posts)
            && self.lockers.equals(&other.lockers)
            && self.banner.equals(&other.banner)
            && self.mood.equals(&other.mood)
            && self.badge.equals(&other.badge)
            && self.gears.equals(&other.gears)
    }
}

impl Root for Odd {
    const IS_BLANK_EMPTY: bool = false;

    fn change(&mut self, dice: &mut Dice) {
        self.mutate(dice);
    }
}
