//! Numbers that travel in steps.

use std::f64::consts::{PI, TAU};
use std::fmt;
use std::marker::PhantomData;

use playfield_wire::reader::Reader;
use playfield_wire::schema::{self, Type};
use playfield_wire::tree::TreeWriter;
use playfield_wire::{DecodeError, writer};
use serde_json::Value;

use crate::column::Integer;
use crate::data::{Data, unexpected};

/// How a number is quantised: what `#[sync(quantize = …)]` and `#[sync(angle = …)]` say.
pub trait Quantize: 'static {
    /// The distance between two values that can be told apart. Half of it is the greatest error.
    const STEP: f64;
    /// The least and the greatest value; what lies beyond is taken for the nearest of them.
    const RANGE: Option<(f64, f64)> = None;
    /// It is an angle in radians: it wraps, and is sent as from −π to π.
    const ANGLE: bool = false;
}

/// A float, or what stands for one on the wire.
pub trait Float: Copy + 'static {
    /// Its type.
    const OF: Type;

    /// Exact.
    fn wide(self) -> f64;

    /// The nearest.
    fn narrow(value: f64) -> Self;
}

impl Float for f32 {
    const OF: Type = Type::F32;

    fn wide(self) -> f64 {
        self.into()
    }
    fn narrow(value: f64) -> Self {
        value as Self
    }
}

impl Float for f64 {
    const OF: Type = Type::F64;

    fn wide(self) -> f64 {
        self
    }
    fn narrow(value: f64) -> Self {
        value
    }
}

/// A number of steps. What isn't a number is 0, or the least of the range if 0 is not in it.
pub struct Quantized<F, Q> {
    steps: i64,
    of: PhantomData<fn() -> (F, Q)>,
}

/// Steps beyond these wouldn't come back from a double as the same number of steps.
const STEPS_MAX: i64 = 1 << 50;

impl<F: Float, Q: Quantize> Quantized<F, Q> {
    /// Steps go from 0 up, since there is a least.
    const UNSIGNED: bool = Q::ANGLE || Q::RANGE.is_some();

    /// The greatest number of steps.
    const MOST: i64 = {
        assert!(Q::STEP > 0.0 && Q::STEP < f64::INFINITY, "a step of quantisation is greater than 0");
        let most = match Q::RANGE {
            _ if Q::ANGLE => {
                assert!(Q::RANGE.is_none(), "an angle has no range: it wraps");
                assert!(Q::STEP <= PI, "a step of an angle is at most half a turn, in radians");
                let steps = TAU / Q::STEP;
                // Rounded up: a whole number of steps makes a turn.
                let whole = steps as i64;
                if whole as f64 == steps { whole - 1 } else { whole }
            }
            Some((least, most)) => {
                assert!(least < most, "a range has a least value and then a greatest one");
                let steps = (most - least) / Q::STEP;
                let whole = steps as i64;
                if steps - whole as f64 >= 0.5 { whole + 1 } else { whole }
            }
            None => STEPS_MAX,
        };
        assert!(
            most <= STEPS_MAX,
            "so small a step gives more values than a number can have: make it larger"
        );
        most
    };

    /// The real distance between values: for an angle the nearest to the step of which a whole number makes a turn.
    fn step() -> f64 {
        if Q::ANGLE { TAU / (Self::MOST + 1) as f64 } else { Q::STEP }
    }

    /// The nearest number of steps.
    pub fn of(value: F) -> Self {
        let value = value.wide();
        let from = Q::RANGE.map_or(0.0, |(least, _)| least);
        let value = if Q::ANGLE { value.rem_euclid(TAU) } else { value - from };
        let value = if value.is_nan() { 0.0 - from } else { value };
        // Halves go to the even neighbour, so that they don't drift to one side.
        let steps = (value / Self::step()).round_ties_even() as i64;
        let steps = match steps {
            steps if Q::ANGLE => steps % (Self::MOST + 1),
            steps if Self::UNSIGNED => steps.clamp(0, Self::MOST),
            steps => steps.clamp(-STEPS_MAX, STEPS_MAX),
        };
        Self { steps, of: PhantomData }
    }

    /// The number.
    pub fn value(&self) -> F {
        let steps = self.steps as f64;
        let turns = 1.0 / Self::step();
        // Hundredths are divided by 100, which comes out as people write them; a product with 0.01 does not.
        let distance = if turns == turns.trunc() { steps / turns } else { steps * Self::step() };
        let value = match Q::RANGE {
            _ if Q::ANGLE && distance > PI => distance - TAU,
            Some((least, most)) => (least + distance).min(most),
            None => distance,
        };
        F::narrow(value)
    }
}

impl<F, Q> fmt::Debug for Quantized<F, Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} steps", self.steps)
    }
}

impl<F, Q> Clone for Quantized<F, Q> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<F, Q> Copy for Quantized<F, Q> {}

impl<F: Float + Data, Q: Quantize> Data for Quantized<F, Q> {
    fn schema() -> Type {
        Type::Quantized(Box::new(schema::Quantized {
            of: F::OF,
            step: Self::step(),
            range: Q::RANGE,
            angle: Q::ANGLE,
        }))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        if Self::UNSIGNED {
            writer::put_varint(out, self.steps.cast_unsigned());
        } else {
            writer::put_zigzag(out, self.steps);
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = reader.offset();
        let steps = if Self::UNSIGNED { reader.varint()?.cast_signed() } else { reader.zigzag()? };
        let refused = || {
            DecodeError::new(
                at,
                format!("{steps} steps are past the range of a number that has {} at most", Self::MOST),
            )
        };
        Self::of_steps(steps).ok_or_else(refused)
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        self.value().to_tree(out);
    }
    fn same(&self, other: &Self) -> bool {
        self.steps == other.steps
    }
    fn digest(&self) -> u64 {
        // Of the value, which is all that a copy keeps: large ones may be the same for several numbers of steps.
        self.value().digest()
    }
    fn from_json(value: &Value) -> Result<Self, DecodeError> {
        let number = F::from_json(value).map_err(|_| unexpected("a number", value))?;
        Ok(Self::of(number))
    }
}

impl<F: Float, Q: Quantize> Quantized<F, Q> {
    fn of_steps(steps: i64) -> Option<Self> {
        let least = if Self::UNSIGNED { 0 } else { -STEPS_MAX };
        (least..=Self::MOST).contains(&steps).then_some(Self { steps, of: PhantomData })
    }
}

impl<F: Float + Data, Q: Quantize> Integer for Quantized<F, Q> {
    fn rank(self) -> u64 {
        self.steps.rank()
    }
    fn of_rank(rank: u64) -> Option<Self> {
        i64::of_rank(rank).and_then(Self::of_steps)
    }
    fn bytes(self) -> usize {
        if Self::UNSIGNED { self.steps.cast_unsigned().bytes() } else { self.steps.bytes() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    struct Hundredth;
    impl Quantize for Hundredth {
        const STEP: f64 = 0.01;
    }

    struct Wide;
    impl Quantize for Wide {
        const STEP: f64 = 0.3;
        const RANGE: Option<(f64, f64)> = Some((-50.0, 1000.0));
    }

    struct Turn;
    impl Quantize for Turn {
        const STEP: f64 = 0.01;
        const ANGLE: bool = true;
    }

    fn sent<F: Float + Data, Q: Quantize>(value: F) -> F {
        let quantized = Quantized::<F, Q>::of(value);
        let mut bytes = Vec::new();
        quantized.encode(&mut bytes);
        assert_eq!(bytes.len(), quantized.bytes());
        let mut reader = Reader::new(&bytes);
        let read = Quantized::<F, Q>::decode(&mut reader).unwrap();
        assert!(reader.is_empty() && read.same(&quantized));
        assert!(Quantized::<F, Q>::of_rank(quantized.rank()).unwrap().same(&quantized));
        let value = read.value();
        assert!(Quantized::<F, Q>::of(value).value().same(&value), "what was sent is sent as itself");
        value
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_error_is_half_a_step(value in -1e9..1e9_f64, near in -49.9..999.9_f64) {
            prop_assert!((sent::<f64, Hundredth>(value) - value).abs() <= 0.005 * (1.0 + 1e-6));
            prop_assert!((sent::<f64, Wide>(near) - near).abs() <= 0.15 * (1.0 + 1e-6));
            let turned = (sent::<f64, Turn>(near) - near).rem_euclid(TAU);
            prop_assert!(turned.min(TAU - turned) <= 0.005 * (1.0 + 1e-6));
        }

        #[test]
        fn any_float_is_sent_as_something_that_stays(bits in any::<u64>(), short in any::<u32>()) {
            let (value, short) = (f64::from_bits(bits), f32::from_bits(short));
            sent::<f64, Hundredth>(value);
            sent::<f64, Wide>(value);
            sent::<f64, Turn>(value);
            sent::<f32, Hundredth>(short);
            sent::<f32, Wide>(short);
            sent::<f32, Turn>(short);
        }
    }

    #[test]
    fn values_come_back_as_people_write_them() {
        assert_eq!(sent::<f64, Hundredth>(0.5699), 0.57);
        assert_eq!(sent::<f64, Hundredth>(-7.0), -7.0);
        assert_eq!(sent::<f32, Hundredth>(1.1), 1.1);
    }

    #[test]
    fn what_lies_beyond_is_the_nearest_and_what_is_no_number_is_nought() {
        assert_eq!(sent::<f64, Wide>(f64::INFINITY), 1000.0);
        assert_eq!(sent::<f64, Wide>(-51.0), -50.0);
        assert!(sent::<f64, Wide>(f64::NAN).abs() <= 0.15);
        assert_eq!(sent::<f64, Hundredth>(f64::NAN), 0.0);
        assert_eq!(sent::<f32, Turn>(f32::INFINITY), 0.0);
        assert_eq!(sent::<f64, Turn>(TAU), 0.0);
        assert!((sent::<f64, Turn>(3.0 * PI).abs() - PI).abs() <= 0.005);
    }

    #[test]
    fn steps_past_the_range_are_refused() {
        let mut bytes = Vec::new();
        writer::put_varint(&mut bytes, 3501);
        let error = Quantized::<f64, Wide>::decode(&mut Reader::new(&bytes)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "at byte 0: 3501 steps are past the range of a number that has 3500 at most"
        );
    }
}
