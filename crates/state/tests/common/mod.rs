//! A model of state for the laws: values that can be changed at random, changed only where a player
//! can't see it, and cut down to what a player may see.
//!
//! Redaction is implemented here independently, from the policies as documented. It shares no code
//! with the crate.

// Each test uses a part of this.
#![allow(dead_code)]

pub(crate) mod documented;
pub(crate) mod field;
pub(crate) mod kinds;
pub(crate) mod leaves;
mod list;
mod map;
pub(crate) mod odd;
pub(crate) mod plaza;
pub(crate) mod swarm;
pub(crate) mod world;

use playfield_state::PlayerId;

/// Random numbers from a seed, so that a failing case can be shrunk and repeated.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// SplitMix64, by Steele, Lea and Flood.
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of the first `count` numbers.
    pub(crate) fn pick(&mut self, count: usize) -> usize {
        (self.roll() % count as u64) as usize
    }

    /// True once in `times`.
    pub(crate) fn once_in(&mut self, times: usize) -> bool {
        self.pick(times) == 0
    }
}

/// The viewer, and the owner of the place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Eye {
    pub(crate) viewer: PlayerId,
    pub(crate) owner: Option<PlayerId>,
}

impl Eye {
    pub(crate) fn of(viewer: PlayerId) -> Self {
        Self { viewer, owner: None }
    }

    pub(crate) fn owns(self) -> bool {
        self.owner == Some(self.viewer)
    }

    pub(crate) fn under(self, player: Option<PlayerId>) -> Self {
        Self { owner: player.or(self.owner), ..self }
    }
}

/// A piece of state.
pub(crate) trait Model: Clone + Default {
    /// Changes something. What it changes depends only on the dice and on what every viewer sees.
    fn mutate(&mut self, dice: &mut Dice);

    /// Touches it, and changes only what `eye` may not see.
    fn scramble(&mut self, dice: &mut Dice, eye: Eye);

    /// Returns the part that `eye` may see; the rest has the values of a copy that does not see it.
    fn redact(&self, eye: Eye) -> Self;

    /// Its value in a copy that does not see it: its default, without anything that a patch could
    /// not remove.
    fn unseen() -> Self {
        Self::default().emptied()
    }

    /// The value without entries of maps and sets, and with private fields as in a copy that does
    /// not see them.
    fn emptied(self) -> Self {
        self
    }

    /// Bitwise equality.
    fn equals(&self, other: &Self) -> bool;

    /// Whether both look the same to `eye`. For a value with a view, its default differs from not
    /// seeing it.
    fn looks_like(&self, other: &Self, eye: Eye) -> bool {
        self.redact(eye).equals(&other.redact(eye))
    }

    /// A sort key that everyone sees.
    fn weight(&self) -> u64 {
        0
    }

    fn random(dice: &mut Dice) -> Self {
        let mut value = Self::default();
        for _ in 0..dice.pick(4) {
            value.mutate(dice);
        }
        value
    }
}

/// A map in which each player sees their own entry.
pub(crate) trait OwnModel: Model {
    fn scramble_own(&mut self, dice: &mut Dice, eye: Eye);
    fn redact_own(&self, eye: Eye) -> Self;
}

/// A value with a mask.
pub(crate) trait Masked: Model {
    fn masked(&self) -> Self;

    /// Changes only what the mask hides.
    fn scramble_masked(&mut self, dice: &mut Dice);
}

/// Declares who sees the fields of a struct: `open`, `owner`, `own` (an `owner` map or set keyed by
/// player), `hidden` or `mask`; or how it is quantized: in steps of a `hundredth` (`ownhundredth`:
/// only its owner sees it), of a `half` between −4 and 4, or of a 629th of a `turn`.
#[macro_export]
macro_rules! model {
    ($name:ident { $($policy:ident $field:ident,)* }) => {
        impl $crate::common::Model for $name {
            fn mutate(&mut self, dice: &mut $crate::common::Dice) {
                let mut fields = [$(stringify!($field)),*].len();
                fields = dice.pick(fields);
                $(
                    if fields == 0 {
                        return self.$field.mutate(dice);
                    }
                    fields = fields.wrapping_sub(1);
                )*
                let _ = fields;
            }
            fn scramble(&mut self, dice: &mut $crate::common::Dice, eye: $crate::common::Eye) {
                $(if dice.once_in(2) {
                    $crate::model!(scramble $policy, self.$field, dice, eye);
                })*
            }
            fn redact(&self, eye: $crate::common::Eye) -> Self {
                Self { $($field: $crate::model!(redact $policy, self.$field, eye),)* }
            }
            fn emptied(self) -> Self {
                Self { $($field: $crate::model!(emptied $policy, self.$field),)* }
            }
            fn equals(&self, other: &Self) -> bool {
                true $(&& self.$field.equals(&other.$field))*
            }
            fn weight(&self) -> u64 {
                0 $(+ $crate::model!(weight $policy, self.$field))*
            }
        }
    };
    (scramble open, $field:expr, $dice:expr, $eye:expr) => { $field.scramble($dice, $eye) };
    (scramble owner, $field:expr, $dice:expr, $eye:expr) => {
        if $eye.owns() { $field.scramble($dice, $eye) } else { $field.mutate($dice) }
    };
    (scramble own, $field:expr, $dice:expr, $eye:expr) => {
        $crate::common::OwnModel::scramble_own(&mut $field, $dice, $eye)
    };
    (scramble hidden, $field:expr, $dice:expr, $eye:expr) => { $field.mutate($dice) };
    (redact open, $field:expr, $eye:expr) => { $field.redact($eye) };
    (redact owner, $field:expr, $eye:expr) => {
        if $eye.owns() { $field.redact($eye) } else { $crate::common::Model::unseen() }
    };
    (redact own, $field:expr, $eye:expr) => { $crate::common::OwnModel::redact_own(&$field, $eye) };
    (redact hidden, $field:expr, $eye:expr) => { Default::default() };
    (scramble mask, $field:expr, $dice:expr, $eye:expr) => {
        $crate::common::Masked::scramble_masked(&mut $field, $dice)
    };
    (redact mask, $field:expr, $eye:expr) => { $crate::common::Masked::masked(&$field) };
    (scramble hundredth, $field:expr, $dice:expr, $eye:expr) => {
        $crate::common::leaves::nudge(&mut $field, $dice)
    };
    (redact hundredth, $field:expr, $eye:expr) => { $crate::common::leaves::hundredth($field) };
    (scramble ownhundredth, $field:expr, $dice:expr, $eye:expr) => {
        if $eye.owns() { $crate::common::leaves::nudge(&mut $field, $dice) } else { $field.mutate($dice) }
    };
    (redact ownhundredth, $field:expr, $eye:expr) => {
        if $eye.owns() { $crate::common::leaves::hundredth($field) } else { 0.0 }
    };
    (scramble half, $field:expr, $dice:expr, $eye:expr) => { $field.scramble($dice, $eye) };
    (redact half, $field:expr, $eye:expr) => { $crate::common::leaves::half($field) };
    (scramble turn, $field:expr, $dice:expr, $eye:expr) => { $field.scramble($dice, $eye) };
    (redact turn, $field:expr, $eye:expr) => { $crate::common::leaves::turn($field) };
    (emptied owner, $field:expr) => { $crate::common::Model::unseen() };
    (emptied own, $field:expr) => { $crate::common::Model::unseen() };
    (emptied ownhundredth, $field:expr) => { 0.0 };
    (emptied hidden, $field:expr) => { $field };
    (emptied $policy:ident, $field:expr) => { $crate::common::Model::emptied($field) };
    (weight open, $field:expr) => { $field.weight() };
    (weight $policy:ident, $field:expr) => { 0 };
}
