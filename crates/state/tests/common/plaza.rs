//! A state with views by place: on a plane and in space, with a radius and with half extents, with
//! groups, with hysteresis, with a cap, inside entries, and with viewers who are viewed.

use playfield_state::{Key, Map, PlayerId, Set, State, TreeFormat, view_after};
use serde_json::{Map as JsonMap, Value};

use super::map::AnyKey;
use super::swarm::Mote;
use super::world::Root;
use super::{Dice, Eye, Model};
use crate::model;

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Plaza {
    #[sync(hidden)]
    pub(crate) stands: Map<PlayerId, Stand>,
    /// Swapped with the stands from time to time.
    #[sync(hidden)]
    pub(crate) spare: Map<PlayerId, Stand>,
    #[sync(near = [x, y], viewer = stands, radius = 1.5)]
    pub(crate) dots: Map<u8, Dot>,
    #[sync(near = (bird_at, stand_at), same = [floor], viewer = stands, radius = 2, hysteresis = HOLD, nearest = 3)]
    pub(crate) birds: Map<u8, Bird>,
    #[sync(near = (bird_on, stand_on), viewer = stands, half_extents = [1.0, 2.0], hysteresis = 1.0)]
    pub(crate) kites: Map<String, Bird>,
    #[sync(same = (Sheet::floors, Stand::floors), viewer = stands)]
    pub(crate) notes: Map<u16, Sheet>,
    #[sync(near = [x, x], viewer = peers, radius = 1.0, hysteresis = 1.0)]
    pub(crate) peers: Map<PlayerId, Peer>,
    pub(crate) blocks: Map<u8, Block>,
    /// Each player's view at the last sync: as the model knows it, not the crate.
    #[sync(hidden)]
    known: Map<PlayerId, Known>,
}

const HOLD: f32 = 1.5;

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Stand {
    pub(crate) x: i8,
    pub(crate) y: u8,
    pub(crate) floor: u8,
    pub(crate) lost: bool,
}

model!(Stand { open x, open y, open floor, open lost, });

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Dot {
    pub(crate) x: i8,
    pub(crate) y: u8,
    pub(crate) mote: Mote,
}

model!(Dot { open x, open y, open mote, });

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Bird {
    #[sync(hidden)]
    pub(crate) x: u8,
    pub(crate) y: u8,
    pub(crate) floor: u8,
    pub(crate) loads: Map<u16, u8>,
}

model!(Bird { hidden x, open y, open floor, open loads, });

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Sheet {
    pub(crate) floor: Option<u8>,
    pub(crate) text: String,
}

model!(Sheet { open floor, open text, });

/// The viewers are also the viewed, and each has owner fields.
#[derive(State, Default, Clone, Debug)]
pub(crate) struct Peer {
    pub(crate) x: f32,
    #[sync(owner)]
    pub(crate) purse: u32,
    #[sync(hidden)]
    pub(crate) mood: u8,
}

model!(Peer { open x, owner purse, hidden mood, });

/// The same again, further down.
#[derive(State, Default, Clone, Debug)]
pub(crate) struct Block {
    pub(crate) name: u8,
    pub(crate) scouts: Map<PlayerId, Stand>,
    #[sync(near = [x, y], viewer = scouts, radius = 0.5, hysteresis = 1.0, nearest = 2)]
    pub(crate) mines: Map<u8, Dot>,
}

impl Model for Block {
    fn mutate(&mut self, dice: &mut Dice) {
        match dice.pick(4) {
            0 => self.name.mutate(dice),
            1 => self.scouts.mutate(dice),
            _ => self.mines.mutate(dice),
        }
    }
    fn scramble(&mut self, _: &mut Dice, _: Eye) {}
    fn redact(&self, _: Eye) -> Self {
        unreachable!("the plaza knows what was seen of its blocks")
    }
    fn equals(&self, other: &Self) -> bool {
        self.name == other.name
            && self.scouts.equals(&other.scouts)
            && self.mines.equals(&other.mines)
    }
}

/// The part that one player saw.
#[derive(State, Default, Clone, Debug, PartialEq)]
struct Known {
    dots: Set<u8>,
    birds: Set<u8>,
    kites: Set<String>,
    notes: Set<u16>,
    peers: Set<PlayerId>,
    mines: Map<u8, Set<u8>>,
}

fn on_grid(x: u8, y: u8) -> [f64; 2] {
    // Some are nowhere, in two ways.
    [[0.0, 1.0, 2.5, -4.0, f64::NAN][x as usize % 5], f64::from(y % 4)]
}

fn bird_at(bird: &Bird) -> Option<[f64; 3]> {
    let [x, y] = on_grid(bird.x, bird.y);
    (bird.floor != 2).then_some([x, y, f64::from(bird.y / 2 % 3)])
}

fn stand_at(stand: &Stand) -> Option<[f32; 3]> {
    let lift = if stand.x == i8::MIN { f32::INFINITY } else { 1.0 };
    (!stand.lost).then_some([f32::from(stand.x), f32::from(stand.y), lift])
}

fn bird_on(bird: &Bird) -> [f64; 2] {
    on_grid(bird.x, bird.y)
}

fn stand_on(stand: &Stand) -> [i16; 2] {
    [stand.x.into(), stand.y.into()]
}

impl Sheet {
    fn floors(&self) -> Option<u8> {
        self.floor
    }
}

impl Stand {
    fn floors(&self) -> Option<u8> {
        (self.floor > 0).then_some(self.floor)
    }
}

/// The nearest of those in reach. `apart` returns the distances of an entry on three axes, if it is
/// somewhere and in the viewer's group.
fn chosen<K: Key, V>(
    map: &Map<K, V>,
    known: &Set<K>,
    apart: impl Fn(&V) -> Option<[f64; 3]>,
    reaches: impl Fn([f64; 3], f64) -> bool,
    hysteresis: f64,
    cap: usize,
) -> Set<K> {
    let mut all: Vec<(f64, K)> = Vec::new();
    for (key, value) in map {
        let Some(apart) = apart(value).filter(|apart| apart.iter().all(|axis| axis.is_finite()))
        else {
            continue;
        };
        let by = if known.contains(key) { hysteresis } else { 0.0 };
        if reaches(apart, by) {
            let [x, y, z] = apart;
            all.push(((x * x + y * y + z * z).sqrt() - by, key.clone()));
        }
    }
    all.sort_by(|(a, x), (b, y)| a.total_cmp(b).then(x.cmp(y)));
    all.into_iter().take(cap).map(|(_, key)| key).collect()
}

fn within(radius: f64) -> impl Fn([f64; 3], f64) -> bool {
    move |[x, y, z], by| x * x + y * y + z * z <= (radius + by) * (radius + by)
}

fn mines(block: &Block, viewer: PlayerId, known: Option<&Set<u8>>) -> Set<u8> {
    let Some(scout) = block.scouts.get(&viewer) else { return Set::new() };
    let apart = |mine: &Dot| {
        Some([f64::from(mine.x) - f64::from(scout.x), f64::from(mine.y) - f64::from(scout.y), 0.0])
    };
    chosen(&block.mines, known.unwrap_or(&Set::new()), apart, within(0.5), 1.0, 2)
}

impl Plaza {
    /// Returns what a viewer sees now.
    fn seen(&self, viewer: PlayerId) -> Known {
        let nothing = Known::default();
        let known = self.known.get(&viewer).unwrap_or(&nothing);
        let mut seen = Known::default();
        if let Some(stand) = self.stands.get(&viewer) {
            let (x, y) = (f64::from(stand.x), f64::from(stand.y));
            let dot = |dot: &Dot| Some([f64::from(dot.x) - x, f64::from(dot.y) - y, 0.0]);
            seen.dots = chosen(&self.dots, &Set::new(), dot, within(1.5), 0.0, usize::MAX);
            let here = stand_at(stand).map(|at| at.map(f64::from));
            let bird = |bird: &Bird| {
                let ([a, b, c], [x, y, z]) = (bird_at(bird)?, here?);
                (bird.floor == stand.floor).then_some([a - x, b - y, c - z])
            };
            seen.birds = chosen(&self.birds, &known.birds, bird, within(2.0), 1.5, 3);
            let kite = |kite: &Bird| {
                let [a, b] = bird_on(kite);
                Some([a - x, b - y, 0.0])
            };
            let in_box = |[x, y, _]: [f64; 3], by| x.abs() <= 1.0 + by && y.abs() <= 2.0 + by;
            seen.kites = chosen(&self.kites, &known.kites, kite, in_box, 1.0, usize::MAX);
            let notes = self.notes.iter().filter(|(_, note)| note.floor == stand.floors());
            seen.notes = notes.map(|(key, _)| *key).collect();
        }
        if let Some(own) = self.peers.get(&viewer) {
            let x = f64::from(own.x);
            let peer = |peer: &Peer| {
                let apart = f64::from(peer.x) - x;
                Some([apart, apart, 0.0])
            };
            seen.peers = chosen(&self.peers, &known.peers, peer, within(1.0), 1.0, usize::MAX);
        }
        for (key, block) in &self.blocks {
            seen.mines.insert(*key, mines(block, viewer, known.mines.get(key)));
        }
        seen
    }

    /// Returns what a viewer saw before, as far as the crate asks for it.
    fn before(&self, viewer: PlayerId) -> Value {
        fn names<K: Key>(set: &Set<K>) -> Value {
            let members = set.iter().map(|key| (key.name().into_owned(), Value::Null));
            Value::Object(members.collect())
        }
        let Some(known) = self.known.get(&viewer) else { return Value::Null };
        let block = |(key, mines): (&u8, &Set<u8>)| {
            let members: JsonMap<String, Value> =
                [("mines".to_owned(), names(mines))].into_iter().collect();
            (key.to_string(), Value::Object(members))
        };
        let members = [
            ("dots", names(&known.dots)),
            ("birds", names(&known.birds)),
            ("kites", names(&known.kites)),
            ("notes", names(&known.notes)),
            ("peers", names(&known.peers)),
            ("blocks", Value::Object(known.mines.iter().map(block).collect())),
        ];
        Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Changes an entry of a map, or removes it, unless the viewer sees a difference.
    fn stir<K: AnyKey, V: Model>(
        &mut self,
        dice: &mut Dice,
        eye: Eye,
        of: impl Fn(&mut Self) -> &mut Map<K, V>,
    ) {
        for _ in 0..3 {
            let key = K::any(dice);
            let seen = (self.redact(eye), self.look(TreeFormat::Json, eye.viewer));
            let before = of(self).get(&key).cloned();
            match &before {
                None => drop(of(self).insert(key.clone(), V::random(dice))),
                Some(_) if dice.once_in(3) => drop(of(self).remove(&key)),
                Some(_) => of(self).get_or_default(key.clone()).mutate(dice),
            }
            let now = (self.redact(eye), self.look(TreeFormat::Json, eye.viewer));
            if !now.0.equals(&seen.0) || now.1 != seen.1 {
                match before {
                    None => drop(of(self).remove(&key)),
                    Some(value) => *of(self).get_or_default(key) = value,
                }
            }
        }
    }
}

/// The visible part of a map.
fn part<K: Key, V: Model>(map: &Map<K, V>, eye: Eye, seen: &Set<K>) -> Map<K, V> {
    let seen = map.iter().filter(|(key, _)| seen.contains(*key));
    seen.map(|(key, value)| (key.clone(), value.redact(eye.under(key.player())))).collect()
}

impl Model for Plaza {
    fn mutate(&mut self, dice: &mut Dice) {
        match dice.pick(9) {
            0 => std::mem::swap(&mut self.stands, &mut self.spare),
            1 | 2 => self.stands.mutate(dice),
            3 => self.dots.mutate(dice),
            4 => self.birds.mutate(dice),
            5 => self.kites.mutate(dice),
            6 => self.notes.mutate(dice),
            7 => self.peers.mutate(dice),
            _ => self.blocks.mutate(dice),
        }
    }
    fn scramble(&mut self, dice: &mut Dice, eye: Eye) {
        match dice.pick(7) {
            0 => self.stir(dice, eye, |plaza| &mut plaza.stands),
            1 => self.stir(dice, eye, |plaza| &mut plaza.dots),
            2 => self.stir(dice, eye, |plaza| &mut plaza.birds),
            3 => self.stir(dice, eye, |plaza| &mut plaza.kites),
            4 => self.stir(dice, eye, |plaza| &mut plaza.notes),
            5 => self.stir(dice, eye, |plaza| &mut plaza.peers),
            _ => {
                let keys: Vec<u8> = self.blocks.keys().copied().collect();
                for key in keys {
                    self.stir(dice, eye, |plaza| &mut plaza.blocks.get_or_default(key).mines);
                }
            }
        }
    }
    fn redact(&self, eye: Eye) -> Self {
        let seen = self.seen(eye.viewer);
        let block = |(key, block): (&u8, &Block)| {
            let mines = part(&block.mines, eye, seen.mines.get(key).expect("each block has some"));
            (*key, Block { name: block.name, scouts: block.scouts.clone(), mines })
        };
        Self {
            dots: part(&self.dots, eye, &seen.dots),
            birds: part(&self.birds, eye, &seen.birds),
            kites: part(&self.kites, eye, &seen.kites),
            notes: part(&self.notes, eye, &seen.notes),
            peers: part(&self.peers, eye, &seen.peers),
            blocks: self.blocks.iter().map(block).collect(),
            ..Self::default()
        }
    }
    fn equals(&self, other: &Self) -> bool {
        self.dots.equals(&other.dots)
            && self.birds.equals(&other.birds)
            && self.kites.equals(&other.kites)
            && self.notes.equals(&other.notes)
            && self.peers.equals(&other.peers)
            && self.blocks.equals(&other.blocks)
    }
}

impl Root for Plaza {
    fn change(&mut self, dice: &mut Dice) {
        match dice.pick(6) {
            0 => self.stands.values_mut().for_each(|stand| stand.mutate(dice)),
            1 => self.birds.mutate(dice),
            // Borrowed, and not changed.
            2 => drop((self.stands.iter_mut().count(), self.birds.iter_mut().count())),
            3 => self.birds.values_mut().for_each(|bird| bird.mutate(dice)),
            _ => self.mutate(dice),
        }
    }
    fn synced(&mut self) {
        let players = (1..5).map(PlayerId);
        self.known = players.map(|player| (player, self.seen(player))).collect();
    }
    fn look(&self, format: TreeFormat, viewer: PlayerId) -> Value {
        view_after(format, self, viewer, &self.before(viewer))
    }
}
