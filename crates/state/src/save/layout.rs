//! The description of its types in a save: the name of the root's type, then a type.
//!
//! A type is one byte, followed by what it is made of. Names of types inside the root are left out:
//! they matter only to people.

use std::any::TypeId;
use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

use playfield_wire::reader::Reader;
use playfield_wire::schema::{Enum, Field, Policy, Struct, Type};
use playfield_wire::{DecodeError, writer};

use super::Saved;
use crate::State;

/// The parts common to all saves of a type.
pub(super) struct Layout {
    pub(super) shape: Saved,
    /// The name of its type; of a collection, nothing.
    pub(super) name: Cow<'static, str>,
    pub(super) schema: Vec<u8>,
    pub(super) fingerprint: u64,
}

impl Layout {
    /// Made once for each type and thread.
    pub(super) fn of<S: State>() -> Rc<Self> {
        thread_local! {
            static LAYOUTS: RefCell<BTreeMap<TypeId, Rc<Layout>>> = RefCell::default();
        }
        LAYOUTS.with_borrow_mut(|layouts| {
            Rc::clone(layouts.entry(TypeId::of::<S>()).or_insert_with(|| Rc::new(Self::new::<S>())))
        })
    }

    fn new<S: State>() -> Self {
        let shape = S::saved();
        let name = if let Saved::Struct(name, _) = &shape { name.clone() } else { "".into() };
        let mut schema = Vec::new();
        writer::put_text(&mut schema, &name);
        put(&shape.schema(), &mut schema);
        let fingerprint = fingerprint(&schema);
        Self { shape, name, schema, fingerprint }
    }
}

/// FNV-1a with 64 bits of the description.
pub(super) fn fingerprint(schema: &[u8]) -> u64 {
    schema.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The types without contents, at the numbers that represent them.
const PLAIN: [Type; 15] = [
    Type::Unit,
    Type::Bool,
    Type::U8,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::I8,
    Type::I16,
    Type::I32,
    Type::I64,
    Type::F32,
    Type::F64,
    Type::Text,
    Type::Bytes,
    Type::Player,
];
const OPTION: u8 = 32;
const LIST: u8 = 33;
const ARRAY: u8 = 34;
const MAP: u8 = 35;
const SET: u8 = 36;
const STRUCT: u8 = 37;
const ENUM: u8 = 38;

/// Returns a type as saves describe it, for data that is kept beside them.
#[must_use]
pub fn describe_type(of: &Type) -> Vec<u8> {
    let mut out = Vec::new();
    put(of, &mut out);
    out
}

/// Reads what [`describe_type`] returned. Names of types are not part of it.
///
/// # Errors
/// If it is not the description of a type.
pub fn described_type(description: &[u8]) -> Result<Type, DecodeError> {
    let mut reader = Reader::new(description);
    let of = get(&mut reader, 0)?;
    reader.finish()?;
    Ok(of)
}

pub(super) fn put(of: &Type, out: &mut Vec<u8>) {
    match of {
        Type::Option(of) => put_one(OPTION, of, out),
        Type::List(of) => put_one(LIST, of, out),
        Type::Set(of) => put_one(SET, of, out),
        Type::Array(of, length) => {
            put_one(ARRAY, of, out);
            writer::put_varint(out, *length as u64);
        }
        Type::Map(key, value) => {
            put_one(MAP, key, out);
            put(value, out);
        }
        Type::Struct(of) => {
            out.push(STRUCT);
            put_fields(&of.fields, out);
        }
        Type::Enum(of) => {
            out.push(ENUM);
            writer::put_varint(out, of.variants.len() as u64);
            for variant in &of.variants {
                writer::put_text(out, &variant.name);
                put_fields(&variant.fields, out);
            }
        }
        // No type in memory is quantized: its step is an attribute of a field.
        Type::Quantized(of) => put(&of.of, out),
        plain => out.push(PLAIN.iter().position(|other| other == plain).unwrap_or(0) as u8),
    }
}

fn put_one(number: u8, of: &Type, out: &mut Vec<u8>) {
    out.push(number);
    put(of, out);
}

fn put_fields(fields: &[Field], out: &mut Vec<u8>) {
    writer::put_varint(out, fields.len() as u64);
    for field in fields {
        writer::put_text(out, &field.name);
        put(&field.of, out);
    }
}

/// The maximum depth of nested types in a save. What players see is limited to less.
pub(super) const DEPTH_MAX: usize = 128;

/// The description that a save has of its types.
pub(super) struct Stored {
    pub(super) name: String,
    pub(super) of: Type,
}

/// Reads a description. Offsets in errors are those of the save.
pub(super) fn read(bytes: &[u8], at: Range<usize>) -> Result<Stored, DecodeError> {
    let mut reader = Reader::new(&bytes[..at.end]);
    reader.take(at.start)?;
    let name = reader.text()?.to_owned();
    let of = get(&mut reader, 0)?;
    reader.finish()?;
    Ok(Stored { name, of })
}

pub(super) fn get(reader: &mut Reader<'_>, depth: usize) -> Result<Type, DecodeError> {
    let at = reader.offset();
    if depth > DEPTH_MAX {
        return Err(DecodeError::new(at, format!("types are nested more than {DEPTH_MAX} deep")));
    }
    let inner = |reader: &mut Reader<'_>| get(reader, depth + 1).map(Box::new);
    Ok(match reader.u8()? {
        OPTION => Type::Option(inner(reader)?),
        LIST => Type::List(inner(reader)?),
        SET => Type::Set(inner(reader)?),
        ARRAY => {
            let of = inner(reader)?;
            let at = reader.offset();
            let length = reader.varint_u32()?;
            // No state has one. Without them each value takes at least one byte, so the bytes of a
            // save limit the values in it.
            if length == 0 {
                return Err(DecodeError::new(at, "an array has no elements"));
            }
            Type::Array(of, length as usize)
        }
        MAP => Type::Map(inner(reader)?, inner(reader)?),
        STRUCT => Type::Struct(get_fields("", reader, depth)?),
        ENUM => {
            let count = reader.count()?;
            let variant = |_| {
                let name = reader.text()?;
                get_fields(name, reader, depth)
            };
            let variants = (0..count).map(variant).collect::<Result<_, _>>()?;
            Type::Enum(Enum { name: Cow::Borrowed(""), variants })
        }
        number => PLAIN.get(usize::from(number)).cloned().ok_or_else(|| {
            DecodeError::new(
                at,
                format!("no type has the number {number}: a newer Playfield wrote it"),
            )
        })?,
    })
}

fn get_fields(name: &str, reader: &mut Reader<'_>, depth: usize) -> Result<Struct, DecodeError> {
    let count = reader.count()?;
    let field = |_| {
        let name = reader.text()?.to_owned();
        let of = get(reader, depth + 1)?;
        Ok(Field { name: Cow::Owned(name), policy: Policy::Everyone, default_digest: None, of })
    };
    let fields = (0..count).map(field).collect::<Result<_, _>>()?;
    Ok(Struct { name: Cow::Owned(name.to_owned()), fields })
}
