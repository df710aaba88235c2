//! Finds the field of a byte in a saved body, for errors.

use std::ops::Range;

use playfield_wire::reader::Reader;
use playfield_wire::schema::{Field, Type};
use playfield_wire::{DecodeError, excerpt};

use crate::walk::KeyShape;

/// The longest key that a place shows, in bytes.
const KEY_BYTES_MAX: usize = 64;

/// The place at this byte of a body, such as `units.7.name`; `None` at the root or if it can't be
/// found.
pub(super) fn place(
    of: &Type,
    bytes: &[u8],
    body: Range<usize>,
    offset: Option<usize>,
) -> Option<String> {
    let offset = offset?;
    let mut reader = Reader::new(bytes.get(..body.end)?);
    reader.take(body.start).ok()?;
    let mut skim = Skim { reader, offset, steps: Vec::new() };
    // It stops at the place, so an error is what is expected here.
    let _ = skim.value(of);
    let steps: Vec<&str> =
        skim.steps.iter().rev().map(|step| excerpt(step, KEY_BYTES_MAX)).collect();
    (!steps.is_empty()).then(|| steps.join("."))
}

/// Passes over one value.
pub(super) fn skip(of: &Type, reader: &mut Reader<'_>) -> Done {
    let mut skim = Skim { reader: reader.clone(), offset: usize::MAX, steps: Vec::new() };
    skim.value(of)?;
    *reader = skim.reader;
    Ok(())
}

/// Passes over values. After an error, `steps` lead to where it stopped; the last step comes first.
///
/// Each value takes at least one byte, so a count that is past the end is found at the end.
struct Skim<'a> {
    reader: Reader<'a>,
    offset: usize,
    steps: Vec<String>,
}

type Done = Result<(), DecodeError>;

impl Skim<'_> {
    fn value(&mut self, of: &Type) -> Done {
        match of {
            Type::Option(of) => {
                let mut is_some = false;
                self.leaf(|reader| {
                    is_some = reader.bool()?;
                    Ok(())
                })?;
                if is_some { self.value(of) } else { Ok(()) }
            }
            Type::List(of) => {
                let count = self.count()?;
                self.each(count, of)
            }
            Type::Array(of, length) => self.each(*length as u64, of),
            Type::Map(key, of) => {
                let count = self.count()?;
                (0..count).try_for_each(|_| {
                    let before = self.reader.clone();
                    self.leaf(|reader| plain_value(key, reader))?;
                    self.inside(|| name_of(key, before), |skim| skim.value(of))
                })
            }
            Type::Set(key) => {
                let count = self.count()?;
                (0..count).try_for_each(|_| self.leaf(|reader| plain_value(key, reader)))
            }
            Type::Struct(of) if of.fields.is_empty() => self.value(&Type::Unit),
            Type::Struct(of) => self.fields(&of.fields),
            Type::Enum(of) => {
                let start = self.reader.offset();
                let mut place = 0;
                self.leaf(|reader| {
                    place = reader.varint()?;
                    Ok(())
                })?;
                let variant = usize::try_from(place).ok().and_then(|place| of.variants.get(place));
                let unknown = || DecodeError::new(start, "no variant has this number");
                let variant = variant.ok_or_else(unknown)?;
                self.inside(|| variant.name.to_string(), |skim| skim.fields(&variant.fields))
            }
            plain => self.leaf(|reader| plain_value(plain, reader)),
        }
    }

    fn fields(&mut self, fields: &[Field]) -> Done {
        fields.iter().try_for_each(|field| {
            self.inside(|| field.name.to_string(), |skim| skim.value(&field.of))
        })
    }

    fn each(&mut self, count: u64, of: &Type) -> Done {
        (0..count).try_for_each(|index| self.inside(|| index.to_string(), |skim| skim.value(of)))
    }

    /// Goes one step down. The step is named only if it stops there: most are passed over.
    fn inside(
        &mut self,
        step: impl FnOnce() -> String,
        walk: impl FnOnce(&mut Self) -> Done,
    ) -> Done {
        walk(self).inspect_err(|_| self.steps.push(step()))
    }

    /// A count may be past the bytes that are there: it skims what is left of a save.
    fn count(&mut self) -> Result<u64, DecodeError> {
        let mut count = 0;
        self.leaf(|reader| {
            count = reader.varint()?;
            Ok(())
        })?;
        Ok(count)
    }

    /// Reads one primitive value. Stops if the wanted byte is in it.
    fn leaf(&mut self, read: impl FnOnce(&mut Reader<'_>) -> Done) -> Done {
        read(&mut self.reader)?;
        if self.reader.offset() > self.offset {
            return Err(DecodeError::new(self.offset, "the place was found"));
        }
        Ok(())
    }
}

/// A key as a step of a path. It was read before, so it can be read.
fn name_of(of: &Type, mut reader: Reader<'_>) -> String {
    let key = KeyShape::of(of).and_then(|of| of.read(&mut reader).ok());
    key.map(|key| key.name).unwrap_or_default()
}

/// Reads a value without parts.
pub(super) fn plain_value(of: &Type, reader: &mut Reader<'_>) -> Done {
    match of {
        Type::Bool => reader.bool().map(drop),
        Type::Unit | Type::U8 | Type::I8 => reader.u8().map(drop),
        Type::U16 | Type::U32 | Type::U64 | Type::Player => reader.varint().map(drop),
        Type::I16 | Type::I32 | Type::I64 => reader.zigzag().map(drop),
        Type::F32 => reader.f32().map(drop),
        Type::F64 => reader.f64().map(drop),
        Type::Text => reader.text().map(drop),
        Type::Bytes => reader.bytes().map(drop),
        _ => Err(DecodeError::new(reader.offset(), "a value without parts was expected")),
    }
}
