//! The bytes that numbers would take in other types.

use std::fmt;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;

use super::tree::Numbers;
use crate::column::{self, Integer};
use crate::quantized::Scale;
use crate::walk::Plain;

/// The steps of quantized numbers that are looked at.
const STEPS: [f64; 3] = [0.001, 0.01, 0.1];

/// A type that a number could have instead of its own.
#[derive(Clone, Copy, Debug)]
pub(super) enum Alternative {
    F32,
    Steps(Scale),
    /// An integer.
    Plain(Plain),
}

/// Numbers that were read: one, or those of a column.
enum Seen {
    Floats(Vec<f64>),
    Integers(Vec<i128>),
}

impl Alternative {
    /// The alternatives for numbers of a type.
    pub(super) fn of(numbers: Numbers) -> Vec<Self> {
        let quantized = || STEPS.into_iter().filter_map(|step| Scale::of_step(step).ok());
        let integers = |of: &[Plain]| of.iter().copied().map(Self::Plain).collect();
        match numbers {
            Numbers::Plain(Plain::F32) => quantized().map(Self::Steps).collect(),
            Numbers::Plain(Plain::F64) => {
                [Self::F32].into_iter().chain(quantized().map(Self::Steps)).collect()
            }
            Numbers::Plain(Plain::U16 | Plain::U32 | Plain::U64) => integers(&[Plain::U8]),
            Numbers::Plain(Plain::I16) => integers(&[Plain::U8, Plain::I8, Plain::U16]),
            Numbers::Plain(Plain::I32) => integers(&[Plain::U8, Plain::I8, Plain::U32]),
            Numbers::Plain(Plain::I64) => integers(&[Plain::U8, Plain::I8, Plain::U64]),
            Numbers::Plain(_) => Vec::new(),
            Numbers::Steps(scale) => scale.coarser(10.0).map(Self::Steps).into_iter().collect(),
        }
    }
}

impl fmt::Display for Alternative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::F32 => f.write_str("f32"),
            Self::Steps(scale) => write!(f, "quantized {}", scale.step()),
            Self::Plain(plain) => f.write_str(plain.name()),
        }
    }
}

/// The bytes of these numbers in each of the other types, `None` where one does not fit. `bytes`
/// are one number, or a column of so many.
pub(super) fn lengths(
    of: Numbers,
    alternatives: &[Alternative],
    bytes: &[u8],
    column: Option<usize>,
) -> impl Iterator<Item = Option<usize>> {
    // They were read before, by the same functions.
    let seen = Seen::read(of, bytes, column).ok();
    let length = move |of: &Alternative| seen.as_ref()?.length(*of, column.is_some());
    alternatives.iter().map(length)
}

impl Seen {
    fn read(of: Numbers, bytes: &[u8], column: Option<usize>) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let reader = &mut reader;
        Ok(match of {
            Numbers::Plain(Plain::F32) => {
                let (floats, _) = bytes.as_chunks();
                Self::Floats(floats.iter().map(|bytes| f32::from_le_bytes(*bytes).into()).collect())
            }
            Numbers::Plain(Plain::F64) => {
                let (floats, _) = bytes.as_chunks();
                Self::Floats(floats.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect())
            }
            Numbers::Plain(Plain::U16) => integers::<u16>(reader, column)?,
            Numbers::Plain(Plain::U32) => integers::<u32>(reader, column)?,
            Numbers::Plain(Plain::U64) => integers::<u64>(reader, column)?,
            Numbers::Plain(Plain::I16) => integers::<i16>(reader, column)?,
            Numbers::Plain(Plain::I32) => integers::<i32>(reader, column)?,
            Numbers::Plain(Plain::I64) => integers::<i64>(reader, column)?,
            Numbers::Plain(_) => Self::Integers(Vec::new()),
            Numbers::Steps(scale) => {
                let mut floats = Vec::new();
                match column {
                    None => floats.push(scale.value(scale.decode(reader)?)),
                    Some(count) => scale
                        .decode_column(reader, count, |steps| floats.push(scale.value(steps)))?,
                }
                Self::Floats(floats)
            }
        })
    }

    fn length(&self, of: Alternative, is_column: bool) -> Option<usize> {
        match (self, of) {
            (Self::Floats(floats), Alternative::F32) => Some(4 * floats.len()),
            (Self::Floats(floats), Alternative::Steps(scale)) => {
                let steps = floats
                    .iter()
                    .map(|value| scale.fits(*value).then(|| i128::from(scale.steps(*value))));
                let steps: Vec<_> = steps.collect::<Option<_>>()?;
                if scale.is_unsigned() {
                    length::<u64>(&steps, is_column)
                } else {
                    length::<i64>(&steps, is_column)
                }
            }
            (Self::Integers(integers), Alternative::Plain(of)) => match of {
                Plain::U8 => length::<u8>(integers, is_column),
                Plain::I8 => length::<i8>(integers, is_column),
                Plain::U16 => length::<u16>(integers, is_column),
                Plain::U32 => length::<u32>(integers, is_column),
                Plain::U64 => length::<u64>(integers, is_column),
                _ => None,
            },
            _ => None,
        }
    }
}

fn integers<T: Integer + Into<i128>>(
    reader: &mut Reader<'_>,
    column: Option<usize>,
) -> Result<Seen, DecodeError> {
    let mut integers = Vec::new();
    match column {
        None => integers.push(T::decode(reader)?.into()),
        Some(count) => column::get(reader, count, |_, value: T| integers.push(value.into()))?,
    }
    Ok(Seen::Integers(integers))
}

/// The bytes of these integers, one of them or a column. `None` if one is out of range.
fn length<T: Integer + TryFrom<i128>>(integers: &[i128], is_column: bool) -> Option<usize> {
    let integers: Vec<T> =
        integers.iter().map(|value| T::try_from(*value).ok()).collect::<Option<_>>()?;
    match (integers.as_slice(), is_column) {
        ([], _) => Some(0),
        (integers, true) => {
            let mut out = Vec::new();
            column::put(&mut out, integers.len(), |place| &integers[place]);
            Some(out.len())
        }
        (integers, false) => Some(integers.iter().map(|value| value.bytes()).sum()),
    }
}
