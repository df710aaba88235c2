//! One state with every construct, every policy in every position.

use playfield_state::{Data, List, Map, PlayerId, State, TreeFormat, view_in};
use serde_json::Value;

use super::{Dice, Eye, Model};
use crate::model;

#[derive(State, Default, Clone, Debug)]
pub(crate) struct World {
    pub(crate) round: u32,
    pub(crate) small: i8,
    pub(crate) wide: u64,
    pub(crate) tilt: f32,
    pub(crate) exact: f64,
    pub(crate) open: bool,
    pub(crate) title: String,
    pub(crate) turn: PlayerId,
    pub(crate) weather: Weather,
    pub(crate) last: Option<Card>,
    pub(crate) limit: Option<u16>,
    pub(crate) clock: Clock,
    pub(crate) players: Map<PlayerId, Seat>,
    #[sync(owner)]
    pub(crate) hands: Map<PlayerId, Hand>,
    #[sync(hidden)]
    pub(crate) deck: List<Card>,
    #[sync(hidden)]
    pub(crate) marks: Map<String, List<i64>>,
    pub(crate) tags: Map<String, u8>,
    pub(crate) grid: Map<u32, Map<i64, Card>>,
    pub(crate) rows: Map<String, List<f64>>,
    pub(crate) log: List<String>,
    pub(crate) backs: List<Back>,
    pub(crate) nested: List<List<u8>>,
    pub(crate) units: List<Unit>,
}

model!(World {
    open round,
    open small,
    open wide,
    open tilt,
    open exact,
    open open,
    open title,
    open turn,
    open weather,
    open last,
    open limit,
    open clock,
    open players,
    own hands,
    hidden deck,
    hidden marks,
    open tags,
    open grid,
    open rows,
    open log,
    open backs,
    open nested,
    open units,
});

/// A whole state.
pub(crate) trait Root: Model + State + std::fmt::Debug {
    /// The values that a typed copy has for what its player does not see are empty. So it detects,
    /// like a copy by the schema, a damaged body that changes something absent.
    const IS_BLANK_EMPTY: bool = true;

    /// Changes something.
    fn change(&mut self, dice: &mut Dice);

    /// Notes that the state was synced.
    fn synced(&mut self) {}

    /// Returns what a viewer sees, as a copy in this format, by the crate's own account.
    fn look(&self, format: TreeFormat, viewer: PlayerId) -> Value {
        view_in(format, self, Some(viewer))
    }

    /// A state after some changes.
    fn changed(times: u64) -> Self {
        let mut state = Self::default();
        (0..times).for_each(|seed| state.change(&mut Dice::new(seed)));
        state
    }
}

impl Root for World {
    /// The fields with the most policies change most often.
    fn change(&mut self, dice: &mut Dice) {
        match dice.pick(12) {
            0..=3 => self.players.mutate(dice),
            4 => self.hands.mutate(dice),
            5 => self.units.mutate(dice),
            6 => self.backs.mutate(dice),
            // Values move between collections.
            7 if dice.once_in(3) => {
                let (mut one, two) =
                    (std::mem::take(self.players.get_or_default(PlayerId(1))), PlayerId(2));
                match dice.pick(5) {
                    0 => {
                        std::mem::swap(&mut one.items, &mut self.players.get_or_default(two).items);
                    }
                    1 => {
                        std::mem::swap(&mut one.slots, &mut self.players.get_or_default(two).slots);
                    }
                    2 => {
                        std::mem::swap(&mut one.boxes, &mut self.players.get_or_default(two).boxes);
                    }
                    3 => std::mem::swap(&mut one.notes, &mut self.log),
                    _ => {
                        if let Some(held) = &mut one.held
                            && let Some(slot) = one.slots.get_mut(0)
                        {
                            std::mem::swap(held, slot);
                        }
                    }
                }
                self.players.insert(PlayerId(1), one);
            }
            _ => self.mutate(dice),
        }
    }
}

/// A smaller state, which changes the same places often: owner fields inside lists, options and
/// maps.
#[derive(State, Default, Clone, Debug)]
pub(crate) struct Desks {
    pub(crate) desks: Map<PlayerId, ContextState>,
    #[sync(owner)]
    pub(crate) drawers: Map<PlayerId, ContextState>,
    pub(crate) floors: List<Map<PlayerId, Slot>>,
}

model!(Desks { open desks, own drawers, open floors, });

impl Root for Desks {
    fn change(&mut self, dice: &mut Dice) {
        self.mutate(dice);
    }
}

#[derive(State, Default, Clone, Debug)]
pub(crate) struct ContextState {
    pub(crate) slots: List<Slot>,
    #[sync(owner)]
    pub(crate) stack: List<Slot>,
    pub(crate) held: Option<Slot>,
    #[sync(owner)]
    pub(crate) items: Map<String, Item>,
}

model!(ContextState { open slots, owner stack, open held, owner items, });

/// Atomic.
#[derive(State, Data, Default, Clone, PartialEq, Debug)]
pub(crate) enum Weather {
    #[default]
    Fair,
    Rain {
        amount: f64,
        places: Vec<String>,
    },
    Wind(i16, Option<f32>),
    Snow(u8),
}

impl Model for Weather {
    fn mutate(&mut self, dice: &mut Dice) {
        *self = match dice.pick(4) {
            0 => Self::Fair,
            1 => Self::Rain { amount: f64::random(dice), places: Vec::random(dice) },
            2 => Self::Wind(i16::random(dice), Option::random(dice)),
            _ => Self::Snow(u8::random(dice)),
        };
    }
    fn scramble(&mut self, _: &mut Dice, _: Eye) {
        *self = self.clone();
    }
    fn redact(&self, _: Eye) -> Self {
        self.clone()
    }
    fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Fair, Self::Fair) => true,
            (Self::Rain { amount, places }, Self::Rain { amount: b, places: q }) => {
                amount.equals(b) && places.equals(q)
            }
            (Self::Wind(a, b), Self::Wind(c, d)) => a.equals(c) && b.equals(d),
            (Self::Snow(a), Self::Snow(b)) => a == b,
            _ => false,
        }
    }
}

#[derive(State, Data, Default, Clone, PartialEq, Debug)]
pub(crate) struct Card {
    pub(crate) suit: u8,
    pub(crate) rank: i16,
}

model!(Card { open suit, open rank, });

/// A face-down card: only its back is visible.
#[derive(State, Default, Clone, Debug)]
pub(crate) struct Back {
    pub(crate) back: bool,
    #[sync(hidden)]
    pub(crate) face: u8,
}

model!(Back { open back, hidden face, });

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Clock {
    pub(crate) tick: u32,
    #[sync(hidden)]
    pub(crate) seed: u64,
    pub(crate) alarm: Option<Alarm>,
}

model!(Clock { open tick, hidden seed, open alarm, });

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Alarm {
    pub(crate) at: u16,
    pub(crate) by: Map<PlayerId, Note>,
}

model!(Alarm { open at, open by, });

/// All fields but one are owner fields.
#[derive(State, Default, Clone, Debug)]
pub(crate) struct Note {
    #[sync(owner)]
    pub(crate) text: String,
}

model!(Note { owner text, });

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Seat {
    pub(crate) name: String,
    pub(crate) hp: i32,
    #[sync(owner)]
    pub(crate) secret: u32,
    #[sync(owner)]
    pub(crate) notes: List<String>,
    #[sync(owner)]
    pub(crate) bag: Map<u16, Item>,
    #[sync(owner)]
    pub(crate) goal: Option<Goal>,
    #[sync(owner)]
    pub(crate) choice: Option<u8>,
    #[sync(owner)]
    pub(crate) plan: Goal,
    #[sync(owner)]
    pub(crate) mood: Weather,
    #[sync(hidden)]
    pub(crate) luck: u64,
    #[sync(hidden)]
    pub(crate) curses: Map<String, u8>,
    pub(crate) items: Map<String, Item>,
    pub(crate) slots: List<Slot>,
    pub(crate) held: Option<Slot>,
    #[sync(owner)]
    pub(crate) offers: Map<PlayerId, Offer>,
    pub(crate) boxes: Map<PlayerId, Note>,
}

model!(Seat {
    open name,
    open hp,
    owner secret,
    owner notes,
    owner bag,
    owner goal,
    owner choice,
    owner plan,
    owner mood,
    hidden luck,
    hidden curses,
    open items,
    open slots,
    open held,
    own offers,
    open boxes,
});

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Item {
    pub(crate) count: u32,
    #[sync(owner)]
    pub(crate) worth: Option<f64>,
    #[sync(hidden)]
    pub(crate) trap: bool,
}

model!(Item { open count, owner worth, hidden trap, });

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Goal {
    pub(crate) steps: List<u8>,
    pub(crate) done: bool,
    #[sync(owner)]
    pub(crate) marks: Map<i32, bool>,
}

model!(Goal { open steps, open done, owner marks, });

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) open: u8,
    #[sync(owner)]
    pub(crate) inner: f32,
    #[sync(owner)]
    pub(crate) stack: List<Card>,
    #[sync(hidden)]
    pub(crate) weight: u16,
    #[sync(owner)]
    pub(crate) shares: Map<PlayerId, u8>,
}

model!(Slot { open open, owner inner, owner stack, hidden weight, own shares, });

/// A message from one player to another, in the other's seat.
#[derive(State, Default, Clone, Debug)]
pub(crate) struct Offer {
    pub(crate) price: u32,
    #[sync(owner)]
    pub(crate) limit: Option<u32>,
    #[sync(hidden)]
    pub(crate) score: i64,
}

model!(Offer { open price, owner limit, hidden score, });

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Hand {
    pub(crate) cards: List<Card>,
    pub(crate) counts: Map<i32, u8>,
    #[sync(owner)]
    pub(crate) pick: Option<u8>,
    #[sync(hidden)]
    pub(crate) peek: u32,
    pub(crate) backs: List<Back>,
    pub(crate) gifts: Map<PlayerId, Note>,
    #[sync(owner)]
    pub(crate) debts: Map<PlayerId, Offer>,
}

model!(Hand {
    open cards,
    open counts,
    owner pick,
    hidden peek,
    open backs,
    open gifts,
    own debts,
});

#[derive(State, Default, Clone, Debug)]
pub(crate) struct Unit {
    pub(crate) x: f32,
    pub(crate) kind: u8,
    #[sync(hidden)]
    pub(crate) target: u32,
    pub(crate) loads: Map<u16, u8>,
    pub(crate) path: List<u16>,
    pub(crate) votes: Map<PlayerId, Note>,
}

model!(Unit { open x, open kind, hidden target, open loads, open path, open votes, });
