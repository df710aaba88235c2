//! A schema, compiled for reading.

use std::collections::BTreeSet;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;
use playfield_wire::schema::{Enum, Field, Form, Policy, Struct, Type};

use super::limits::{FIELDS_MAX, Measure};
use super::plain::{KeyShape, Plain};
use super::{ShapeError, Turn};
use crate::quantized::Scale;
use crate::{Data, digest};

/// The shape of a value that is patched, or of one that is always sent as a whole.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Plain(Plain),
    /// The value of a set's element, which takes no bytes.
    Present,
    /// A quantized float, and whether it has 32 bits.
    Steps(Scale, bool),
    Option(Box<Shape>),
    List(Box<Shape>),
    Array(Box<Shape>, usize),
    Map(Box<MapShape>),
    Struct(Box<StructShape>),
    Enum(Box<EnumShape>),
}

#[derive(Clone, Debug)]
pub(crate) struct MapShape {
    pub(crate) key: KeyShape,
    pub(crate) value: Shape,
    /// Its entries have slots; those of an atomic map have none.
    pub(crate) has_slots: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct EnumShape {
    pub(crate) name: String,
    pub(crate) variants: Vec<StructShape>,
    /// The number of each variant in the target's schema.
    pub(crate) numbers: Vec<usize>,
}

/// A struct, or a variant of an enum.
#[derive(Clone, Debug)]
pub(crate) struct StructShape {
    pub(crate) name: String,
    /// The fields that aren't hidden.
    pub(crate) fields: Vec<FieldShape>,
    /// The bits of those that everyone sees. An atomic struct has no bits: everyone sees all of it.
    pub(crate) open: u64,
    /// The bits of the others.
    pub(crate) private: u64,
    /// The form of an atomic struct in JSON.
    pub(crate) form: Option<Form>,
    /// Without open fields it is a single byte 0.
    pub(crate) is_padded: bool,
    /// The changes in the conversion to another schema, if there are any.
    pub(crate) turn: Option<Turn>,
}

#[derive(Clone, Debug)]
pub(crate) struct FieldShape {
    pub(crate) name: String,
    pub(crate) access: Access,
    pub(crate) of: Shape,
    /// The digest of its default. If not everyone sees the field, this value counts as 0.
    pub(crate) default: u64,
}

/// The players who see a field, and the way it is then written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Open,
    /// The owner sees all of it.
    Owner,
    /// Each player sees their own entry.
    OwnEntry,
    /// A function decides for each entry who sees it.
    ViewedMap,
    /// A function decides who sees the whole value.
    Viewed,
}

impl Shape {
    /// The shape of a state.
    pub(crate) fn root(of: &Type) -> Result<Self, ShapeError> {
        Self::turning_root(of, of)
    }

    /// The shape of a part of a state.
    pub(crate) fn part(of: &Type) -> Result<Self, ShapeError> {
        Self::new(of, of, true, &mut Measure::default())
    }

    /// The shape of an atomic value.
    pub(crate) fn atomic(of: &Type) -> Result<Self, ShapeError> {
        Self::turning_atomic(of, of)
    }

    /// The shape of a state whose bodies are converted to another schema. The caller has checked
    /// that the two are compatible.
    pub(crate) fn turning_root(of: &Type, to: &Type) -> Result<Self, ShapeError> {
        match of {
            Type::Struct(_) => Self::new(of, to, true, &mut Measure::default()),
            _ => Err(ShapeError::Root),
        }
    }

    /// The same for an atomic value.
    pub(crate) fn turning_atomic(of: &Type, to: &Type) -> Result<Self, ShapeError> {
        Self::new(of, to, false, &mut Measure::default())
    }

    fn new(of: &Type, to: &Type, patched: bool, measure: &mut Measure) -> Result<Self, ShapeError> {
        measure.within(|measure| {
            if let Some(plain) = Plain::of(of) {
                measure.place()?;
                return Ok(Self::Plain(plain));
            }
            let boxed =
                |of, to, measure: &mut Measure| Self::new(of, to, patched, measure).map(Box::new);
            let map = |key: &Type, value| {
                let key = KeyShape::of(key).ok_or_else(|| ShapeError::key(key))?;
                Ok(Self::Map(Box::new(MapShape { key, value, has_slots: patched })))
            };
            match (of, to) {
                (Type::Option(of), Type::Option(to)) => {
                    Ok(Self::Option(measure.apart(|measure| boxed(of, to, measure))?))
                }
                (Type::List(of), Type::List(to)) => {
                    Ok(Self::List(measure.apart(|measure| boxed(of, to, measure))?))
                }
                (Type::Array(of, length), Type::Array(to, _)) => {
                    let of = measure.times(*length, |measure| boxed(of, to, measure))?;
                    Ok(Self::Array(of, *length))
                }
                (Type::Map(key, of), Type::Map(_, to)) => {
                    map(key, measure.apart(|measure| Self::new(of, to, patched, measure))?)
                }
                (Type::Set(key), _) if patched => {
                    measure.place()?;
                    map(key, Self::Present)
                }
                (Type::Quantized(of), _) if patched => {
                    measure.place()?;
                    let scale = Scale::of_schema(of).map_err(|why| ShapeError::Steps { why })?;
                    match of.of {
                        Type::F32 => Ok(Self::Steps(scale, true)),
                        Type::F64 => Ok(Self::Steps(scale, false)),
                        _ => Err(ShapeError::Steps { why: "only floats can be quantized" }),
                    }
                }
                (Type::Struct(of), Type::Struct(to)) => {
                    Ok(Self::Struct(Box::new(StructShape::new(of, to, patched, true, measure)?)))
                }
                (Type::Enum(of), Type::Enum(to)) => {
                    Ok(Self::Enum(Box::new(EnumShape::new(of, to, measure)?)))
                }
                (other, _) => Err(ShapeError::not_whole(other)),
            }
        })
    }

    /// The digest of the default that follows from the type alone: 0, empty, `None`, `false`, and
    /// an enum's first variant.
    fn default_digest(&self) -> u64 {
        match self {
            Self::Plain(plain) => plain.default_digest(),
            Self::Present => digest::of_bytes(&[]),
            Self::Steps(scale, is_short) => steps_digest(*scale, scale.steps(0.0), *is_short),
            Self::Enum(_) => {
                let mut bytes = Vec::new();
                self.write_default(&mut bytes);
                digest::of_bytes(&bytes)
            }
            Self::Option(_) | Self::Map(_) => 0,
            Self::List(_) => digest::of_length(0),
            Self::Array(inner, length) => {
                let inner = inner.default_digest();
                digest::of_elements((0..*length).map(|_| inner))
            }
            Self::Struct(of) => digest::of_elements(
                of.fields
                    .iter()
                    .map(|field| if field.access == Access::Open { field.default } else { 0 }),
            ),
        }
    }

    /// Appends the default of an atomic value: of an enum, its first variant.
    fn write_default(&self, out: &mut Vec<u8>) {
        match self {
            Self::Plain(plain) => plain.write_default(out),
            Self::Array(inner, length) => (0..*length).for_each(|_| inner.write_default(out)),
            Self::Struct(of) => of.write_default(out),
            Self::Enum(of) => {
                out.push(0);
                of.variants[0].write_default(out);
            }
            Self::Option(_) | Self::List(_) | Self::Map(_) => out.push(0),
            Self::Present | Self::Steps(..) => unreachable!("only patched values have these"),
        }
    }
}

/// The digest that a schema states for the default of a field that not everyone sees. `None` if it
/// follows from the type. `None` for a type that has no copy. For generated code.
pub fn explicit_default_digest(of: &Type, digest: u64) -> Option<u64> {
    let shape = Shape::new(of, of, true, &mut Measure::default()).ok()?;
    (shape.default_digest() != digest).then_some(digest)
}

/// The digest of a quantized number: that of the float which it is read as.
pub(crate) fn steps_digest(scale: Scale, steps: i64, is_short: bool) -> u64 {
    let value = scale.value(steps);
    if is_short { (value as f32).digest() } else { value.digest() }
}

impl StructShape {
    fn new(
        of: &Struct,
        to: &Struct,
        patched: bool,
        is_padded: bool,
        measure: &mut Measure,
    ) -> Result<Self, ShapeError> {
        measure.place()?;
        let mut fields = Vec::new();
        let mut names = BTreeSet::new();
        for field in of.fields.iter().filter(|field| field.policy != Policy::Hidden || !patched) {
            if !names.insert(&field.name) {
                return Err(ShapeError::Twice { field: field.name.clone().into_owned() });
            }
            let access = Access::of(field);
            if !patched && field.policy != Policy::Everyone {
                return Err(ShapeError::Policy { field: field.name.clone().into_owned() });
            }
            // A field that the target lacks is read unconverted, and left out.
            let to = to.shown().find(|other| other.name == field.name).unwrap_or(field);
            let of = Shape::new(&field.of, &to.of, patched, measure)?;
            let default = match access {
                _ if !patched => 0,
                Access::Open => of.default_digest(),
                _ => field.default_digest.unwrap_or_else(|| of.default_digest()),
            };
            fields.push(FieldShape { name: field.name.clone().into_owned(), access, of, default });
        }
        let name = of.name.clone().into_owned();
        if patched && fields.len() > FIELDS_MAX {
            return Err(ShapeError::Fields { name, count: fields.len() });
        }
        let bits = |is_open: bool| {
            let fields = fields.iter().enumerate().filter(|_| patched);
            fields
                .filter(|(_, field)| (field.access == Access::Open) == is_open)
                .fold(0, |bits, (place, _)| bits | 1 << place)
        };
        let (open, private) = (bits(true), bits(false));
        let turn = Turn::new(of, to);
        Ok(Self {
            name,
            open,
            private,
            form: (!patched).then(|| Form::of(&of.fields)),
            is_padded,
            turn,
            fields,
        })
    }

    /// The positions of the fields that everyone sees.
    pub(crate) fn open_places(&self) -> impl Iterator<Item = usize> {
        let open =
            |(place, field): (usize, &FieldShape)| (field.access == Access::Open).then_some(place);
        self.fields.iter().enumerate().filter_map(open)
    }

    pub(crate) fn has_open(&self) -> bool {
        self.open_places().next().is_some()
    }

    pub(crate) fn mask_bytes(&self) -> usize {
        self.fields.len().div_ceil(8)
    }

    fn write_default(&self, out: &mut Vec<u8>) {
        if self.is_padded && self.fields.is_empty() {
            out.push(0);
        }
        self.fields.iter().for_each(|field| field.of.write_default(out));
    }
}

impl Access {
    fn of(field: &Field) -> Self {
        match (field.policy, &field.of) {
            (Policy::Owner, Type::Map(key, _) | Type::Set(key)) if **key == Type::Player => {
                Self::OwnEntry
            }
            (Policy::Owner, _) => Self::Owner,
            (Policy::View, Type::Map(..)) => Self::ViewedMap,
            (Policy::View, _) => Self::Viewed,
            (Policy::Everyone | Policy::Hidden, _) => Self::Open,
        }
    }
}

impl EnumShape {
    fn new(of: &Enum, to: &Enum, measure: &mut Measure) -> Result<Self, ShapeError> {
        let name = of.name.clone().into_owned();
        if of.variants.is_empty() {
            return Err(ShapeError::Empty { name });
        }
        let (mut variants, mut numbers) = (Vec::new(), Vec::new());
        for (place, variant) in of.variants.iter().enumerate() {
            let number = to.variants.iter().position(|other| other.name == variant.name);
            let number = number.unwrap_or(place);
            let shape = |measure: &mut Measure| {
                StructShape::new(variant, &to.variants[number], false, false, measure)
            };
            // The first is the default. The others occur only in values that were sent.
            variants.push(if place == 0 { shape(measure)? } else { measure.apart(shape)? });
            numbers.push(number);
        }
        Ok(Self { name, variants, numbers })
    }

    /// Reads which variant follows.
    pub(super) fn place(&self, reader: &mut Reader<'_>) -> Result<usize, DecodeError> {
        let at = reader.offset();
        let number = reader.varint()?;
        let place = usize::try_from(number).ok().filter(|place| *place < self.variants.len());
        let none = || format!("{number} is not a variant of {}", self.name);
        place.ok_or_else(|| DecodeError::new(at, none()))
    }
}
