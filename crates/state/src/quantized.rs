//! Quantized numbers.

use std::f64::consts::{PI, TAU};
use std::fmt;
use std::marker::PhantomData;

use playfield_wire::reader::Reader;
use playfield_wire::schema::{self, Type};
use playfield_wire::tree::TreeWriter;
use playfield_wire::{DecodeError, writer};
use serde_json::Value;

use crate::column::{self, Integer};
use crate::data::{Data, unexpected};

/// The quantization of a number, as set by `#[sync(quantize = …)]` and `#[sync(angle = …)]`.
pub trait Quantize: 'static {
    /// The distance between two adjacent values. The error is at most half of it.
    const STEP: f64;
    /// The least and the greatest value. Values outside are clamped.
    const RANGE: Option<(f64, f64)> = None;
    /// Whether it is an angle in radians: it wraps to the range −π to π.
    const ANGLE: bool = false;
}

/// A float.
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

/// The most steps that survive a conversion to an `f64` and back.
const STEPS_MAX: i64 = 1 << 50;

/// The conversion between numbers and steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    /// The distance between values. For an angle, a whole number of steps makes a turn.
    step: f64,
    range: Option<(f64, f64)>,
    angle: bool,
    /// The greatest number of steps.
    most: i64,
}

impl Scale {
    /// The scale that a type sets.
    const fn of_type(
        step: f64,
        range: Option<(f64, f64)>,
        angle: bool,
    ) -> Result<Self, &'static str> {
        if !(step > 0.0 && step < f64::INFINITY) {
            return Err("a quantization step must be greater than 0");
        }
        let most = match range {
            Some(_) if angle => return Err("an angle has no range: it wraps"),
            None if angle => {
                if step > PI {
                    return Err("the step of an angle must be at most half a turn, in radians");
                }
                let steps = TAU / step;
                // Rounded up: a whole number of steps makes a turn.
                let whole = steps as i64;
                if whole as f64 == steps { whole - 1 } else { whole }
            }
            Some((least, most)) => {
                let rises = least < most; // false for NaN
                if !rises {
                    return Err("the second end of a range must be greater than the first");
                }
                let steps = (most - least) / step;
                let whole = steps as i64;
                if whole <= STEPS_MAX && steps - whole as f64 >= 0.5 { whole + 1 } else { whole }
            }
            None => STEPS_MAX,
        };
        if most > STEPS_MAX {
            return Err("the step is too small for a number: make it larger");
        }
        let step = if angle { TAU / (most + 1) as f64 } else { step };
        Ok(Self { step, range, angle, most })
    }

    /// The scale in a schema, where the step of an angle already divides a turn.
    pub(crate) fn of_schema(of: &schema::Quantized) -> Result<Self, &'static str> {
        let scale = Self::of_type(of.step, of.range, of.angle)?;
        let most = if of.angle { (TAU / of.step).round() as i64 - 1 } else { scale.most };
        Ok(Self { step: of.step, most, ..scale })
    }

    /// The scale of `#[sync(quantize = step)]`.
    pub(crate) const fn of_step(step: f64) -> Result<Self, &'static str> {
        Self::of_type(step, None, false)
    }

    /// The scale with steps that are larger by this factor. `None` for an angle, whose steps divide a
    /// turn.
    pub(crate) fn coarser(self, factor: f64) -> Option<Self> {
        Self::of_type(self.step * factor, self.range, false).ok().filter(|_| !self.angle)
    }

    /// The distance between values.
    pub(crate) const fn step(self) -> f64 {
        self.step
    }

    /// Returns whether the nearest number of steps is within half a step of the value.
    pub(crate) fn fits(self, value: f64) -> bool {
        value.is_finite() && (self.value(self.steps(value)) - value).abs() <= self.step
    }

    /// Steps count from a least value, so they are never negative.
    pub(crate) const fn is_unsigned(self) -> bool {
        self.angle || self.range.is_some()
    }

    /// The nearest number of steps.
    pub(crate) fn steps(self, value: f64) -> i64 {
        let from = self.range.map_or(0.0, |(least, _)| least);
        let value = if self.angle { value.rem_euclid(TAU) } else { value - from };
        let value = if value.is_nan() { 0.0 - from } else { value };
        // Halves go to the even neighbor, so that they don't drift to one side.
        let steps = (value / self.step).round_ties_even() as i64;
        match steps {
            steps if self.angle => steps % (self.most + 1),
            steps if self.is_unsigned() => steps.clamp(0, self.most),
            steps => steps.clamp(-STEPS_MAX, STEPS_MAX),
        }
    }

    /// The number.
    pub(crate) fn value(self, steps: i64) -> f64 {
        let steps = steps as f64;
        let turns = 1.0 / self.step;
        // Dividing by 100 gives hundredths as people write them; multiplying by 0.01 does not.
        let distance = if turns == turns.trunc() { steps / turns } else { steps * self.step };
        match self.range {
            _ if self.angle && distance > PI => distance - TAU,
            Some((least, most)) => (least + distance).min(most),
            None => distance,
        }
    }

    /// Returns whether this number of steps is in range.
    pub(crate) fn holds(self, steps: i64) -> bool {
        let least = if self.is_unsigned() { 0 } else { -STEPS_MAX };
        (least..=self.most).contains(&steps)
    }

    pub(crate) fn encode(self, steps: i64, out: &mut Vec<u8>) {
        if self.is_unsigned() {
            writer::put_varint(out, steps.cast_unsigned());
        } else {
            writer::put_zigzag(out, steps);
        }
    }

    pub(crate) fn decode(self, reader: &mut Reader<'_>) -> Result<i64, DecodeError> {
        let at = reader.offset();
        let steps =
            if self.is_unsigned() { reader.varint()?.cast_signed() } else { reader.zigzag()? };
        if self.holds(steps) {
            return Ok(steps);
        }
        Err(DecodeError::new(
            at,
            format!("{steps} steps are out of range: this number has at most {}", self.most),
        ))
    }

    /// Reads a column of `count` numbers of steps.
    pub(crate) fn decode_column(
        self,
        reader: &mut Reader<'_>,
        count: usize,
        mut take: impl FnMut(i64),
    ) -> Result<(), DecodeError> {
        let decode = |reader: &mut Reader<'_>| self.decode(reader);
        let of_rank = |rank| i64::of_rank(rank).filter(|steps| self.holds(*steps));
        column::get_ranked(reader, count, decode, i64::rank, of_rank, |_, steps| take(steps))
    }
}

/// A number of steps. NaN becomes 0, or the least of the range if 0 is not in it.
pub struct Quantized<F, Q> {
    steps: i64,
    of: PhantomData<fn() -> (F, Q)>,
}

impl<F: Float, Q: Quantize> Quantized<F, Q> {
    const SCALE: Scale = match Scale::of_type(Q::STEP, Q::RANGE, Q::ANGLE) {
        Ok(scale) => scale,
        Err(why) => panic!("{}", why),
    };

    /// The nearest number of steps.
    pub fn of(value: F) -> Self {
        Self { steps: Self::SCALE.steps(value.wide()), of: PhantomData }
    }

    /// The number.
    pub fn value(&self) -> F {
        F::narrow(Self::SCALE.value(self.steps))
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
            step: Self::SCALE.step,
            range: Q::RANGE,
            angle: Q::ANGLE,
        }))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        Self::SCALE.encode(self.steps, out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let steps = Self::SCALE.decode(reader)?;
        Ok(Self { steps, of: PhantomData })
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        self.value().to_tree(out);
    }
    fn same(&self, other: &Self) -> bool {
        self.steps == other.steps
    }
    fn digest(&self) -> u64 {
        // A copy keeps only the value. Several numbers of steps may give the same large value.
        self.value().digest()
    }
    fn from_json(value: &Value) -> Result<Self, DecodeError> {
        let number = F::from_json(value).map_err(|_| unexpected("a number", value))?;
        Ok(Self::of(number))
    }
}

impl<F: Float + Data, Q: Quantize> Integer for Quantized<F, Q> {
    fn rank(self) -> u64 {
        self.steps.rank()
    }
    fn of_rank(rank: u64) -> Option<Self> {
        let steps = i64::of_rank(rank).filter(|steps| Self::SCALE.holds(*steps))?;
        Some(Self { steps, of: PhantomData })
    }
    fn bytes(self) -> usize {
        if Self::SCALE.is_unsigned() {
            self.steps.cast_unsigned().bytes()
        } else {
            self.steps.bytes()
        }
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
        assert!(
            Quantized::<F, Q>::of(value).value().same(&value),
            "a received value is sent unchanged"
        );
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
    fn decimal_values_survive_quantization() {
        assert_eq!(sent::<f64, Hundredth>(0.5699), 0.57);
        assert_eq!(sent::<f64, Hundredth>(-7.0), -7.0);
        assert_eq!(sent::<f32, Hundredth>(1.1), 1.1);
    }

    #[test]
    fn values_out_of_range_are_clamped_and_nan_is_zero() {
        assert_eq!(sent::<f64, Wide>(f64::INFINITY), 1000.0);
        assert_eq!(sent::<f64, Wide>(-51.0), -50.0);
        assert!(sent::<f64, Wide>(f64::NAN).abs() <= 0.15);
        assert_eq!(sent::<f64, Hundredth>(f64::NAN), 0.0);
        assert_eq!(sent::<f32, Turn>(f32::INFINITY), 0.0);
        assert_eq!(sent::<f64, Turn>(TAU), 0.0);
        assert!((sent::<f64, Turn>(3.0 * PI).abs() - PI).abs() <= 0.005);
    }

    #[test]
    fn a_schema_gives_the_same_scale() {
        fn check<Q: Quantize>() {
            let Type::Quantized(of) = Quantized::<f64, Q>::schema() else {
                panic!("it is quantized")
            };
            assert_eq!(Scale::of_schema(&of), Ok(Quantized::<f64, Q>::SCALE));
        }
        check::<Hundredth>();
        check::<Wide>();
        check::<Turn>();
        // A whole number of any step makes a turn.
        for step in (1..3_000).map(|n| f64::from(n) * 0.001) {
            let scale = Scale::of_type(step, None, true).unwrap();
            let of =
                schema::Quantized { of: Type::F64, step: scale.step, range: None, angle: true };
            assert_eq!(Scale::of_schema(&of), Ok(scale));
        }
        let say = |step, range, angle| {
            Scale::of_schema(&schema::Quantized { of: Type::F64, step, range, angle }).unwrap_err()
        };
        assert_eq!(say(f64::NAN, None, false), "a quantization step must be greater than 0");
        assert_eq!(
            say(4.0, None, true),
            "the step of an angle must be at most half a turn, in radians"
        );
        assert_eq!(
            say(1.0, Some((1.0, 1.0)), false),
            "the second end of a range must be greater than the first"
        );
        assert!(say(1e-300, Some((0.0, 1.0)), false).starts_with("the step is too small"));
    }

    #[test]
    fn steps_out_of_range_are_rejected() {
        let mut bytes = Vec::new();
        writer::put_varint(&mut bytes, 3501);
        let error = Quantized::<f64, Wide>::decode(&mut Reader::new(&bytes)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "at byte 0: 3501 steps are out of range: this number has at most 3500"
        );
    }
}
