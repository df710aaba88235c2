//! Numbers, texts and options.

use playfield_state::PlayerId;

use super::{Dice, Eye, Model};

/// A few values of each type, so that equal ones are frequent.
macro_rules! leaves {
    ($($of:ty: [$($value:expr),*], $same:expr, $weight:expr;)*) => {$(
        impl Model for $of {
            fn mutate(&mut self, dice: &mut Dice) {
                let values = [$($value),*];
                *self = values[dice.pick(values.len())].clone();
            }
            fn scramble(&mut self, _: &mut Dice, _: Eye) {}
            fn redact(&self, _: Eye) -> Self {
                self.clone()
            }
            fn equals(&self, other: &Self) -> bool {
                let equals: fn(&Self, &Self) -> bool = $same;
                equals(self, other)
            }
            fn weight(&self) -> u64 {
                let weight: fn(&Self) -> u64 = $weight;
                weight(self)
            }
        }
    )*};
}

leaves! {
    bool: [false, true], |a, b| a == b, |a| u64::from(*a);
    u8: [0, 1, 2, 3, 255], |a, b| a == b, |a| u64::from(*a);
    u16: [0, 1, 300, u16::MAX], |a, b| a == b, |a| u64::from(*a);
    u32: [0, 1, 2, u32::MAX], |a, b| a == b, |a| u64::from(*a);
    u64: [0, 1, 1 << 53, u64::MAX], |a, b| a == b, |a| *a >> 8;
    i8: [0, 1, -1, i8::MIN], |a, b| a == b, |_| 0;
    i16: [0, -1, i16::MAX], |a, b| a == b, |_| 0;
    i32: [0, 1, -1, i32::MIN], |a, b| a == b, |_| 0;
    i64: [0, -1, i64::MIN, i64::MAX], |a, b| a == b, |_| 0;
    f32: [0.0, -0.0, 1.5, 7.038_531e-26, f32::NAN, f32::INFINITY], |a, b| a.to_bits() == b.to_bits(), |_| 0;
    f64: [0.0, -0.0, 0.1, f64::NAN, -f64::NAN, f64::NEG_INFINITY], |a, b| a.to_bits() == b.to_bits(), |_| 0;
    String: [String::new(), "a".to_owned(), "\"\\\n".to_owned(), "één 🂡".to_owned()], |a, b| a == b, |a| a.len() as u64;
    PlayerId: [PlayerId(0), PlayerId(1), PlayerId(2), PlayerId(u64::MAX)], |a, b| a == b, |a| a.0 >> 8;
}

impl<T: Model> Model for Option<T> {
    fn mutate(&mut self, dice: &mut Dice) {
        match (dice.pick(4), &mut *self) {
            (0, _) => *self = None,
            (1, _) => *self = Some(T::random(dice)),
            (_, Some(value)) => value.mutate(dice),
            (_, None) => *self = Some(T::random(dice)),
        }
    }
    fn scramble(&mut self, dice: &mut Dice, eye: Eye) {
        match dice.pick(4) {
            0 => {
                let held = self.take();
                *self = held;
            }
            1 => *self = self.clone(),
            _ => {}
        }
        if let Some(value) = self {
            value.scramble(dice, eye);
        }
    }
    fn redact(&self, eye: Eye) -> Self {
        self.as_ref().map(|value| value.redact(eye))
    }
    fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Some(a), Some(b)) => a.equals(b),
            (None, None) => true,
            _ => false,
        }
    }
}

/// Not a `List`: an atomic value.
impl<T: Model> Model for Vec<T> {
    fn mutate(&mut self, dice: &mut Dice) {
        match dice.pick(3) {
            0 => self.clear(),
            _ => self.push(T::random(dice)),
        }
    }
    fn scramble(&mut self, _: &mut Dice, _: Eye) {}
    fn redact(&self, _: Eye) -> Self {
        self.clone()
    }
    fn equals(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other).all(|(a, b)| a.equals(b))
    }
}

/// Quantized in steps of 0.01; a double can count 2^50 of them.
pub(crate) fn hundredth(value: f64) -> f64 {
    let most = (1_u64 << 50) as f64;
    let steps = if value.is_nan() { 0.0 } else { (value * 100.0).round().clamp(-most, most) };
    (steps + 0.0) / 100.0
}

/// Changes a value to another one with the same quantized value.
pub(crate) fn nudge(value: &mut f64, dice: &mut Dice) {
    let near = [0.0, -0.0, f64::NAN, -f64::NAN, *value + 0.001, *value - 0.004][dice.pick(6)];
    if hundredth(near).to_bits() == hundredth(*value).to_bits() {
        *value = near;
    }
}

/// Quantized in steps of a 629th of a turn, from −π to π.
pub(crate) fn turn(value: f32) -> f32 {
    let step = std::f64::consts::TAU / 629.0;
    let part = f64::from(value).rem_euclid(std::f64::consts::TAU);
    let steps = if part.is_nan() { 0.0 } else { (part / step).round_ties_even() % 629.0 + 0.0 };
    let from_zero = steps * step;
    (if from_zero > std::f64::consts::PI { from_zero - std::f64::consts::TAU } else { from_zero })
        as f32
}

/// Quantized in steps of 0.5, from −4 to 4.
pub(crate) fn half(value: f32) -> f32 {
    if value.is_nan() { 0.0 } else { (value.clamp(-4.0, 4.0) * 2.0).round_ties_even() / 2.0 + 0.0 }
}
