//! A state's type, made ready to read by.

use std::collections::BTreeSet;
use std::fmt;

use playfield_wire::schema::{Policy, Struct, Type};
use serde_json::{Map, Value};

use super::node::{Made, Node};
use super::plain::{KeyShape, Plain};
use super::whole::Whole;
use crate::digest;
use crate::quantized::Scale;

/// The most types that may lie within each other: by them a reader goes down, and its stack has an
/// end.
const DEPTH_MAX: usize = playfield_wire::schema::TYPE_DEPTH_MAX;

/// The most values that may stand in one value by its type alone.
const PLACES_MAX: usize = 1 << 20;

/// The most values that are put where nothing came, since there is nothing in them.
const BLANKS_MAX: usize = 1 << 12;

/// The most fields of a struct that a patch can mark.
const FIELDS_MAX: usize = 64;

/// The shape of a value that is kept in step.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    Plain(Plain),
    /// What an element of a set is mapped to: no bytes.
    Present,
    /// A float in steps, and whether it has 32 bits.
    Steps(Scale, bool),
    Enum(Box<Whole>),
    Option(Box<Shape>),
    List(Box<Shape>),
    Array(Box<Shape>, usize),
    Map(Box<MapShape>),
    Struct(Box<StructShape>),
}

#[derive(Clone, Debug)]
pub(crate) struct MapShape {
    pub(crate) key: KeyShape,
    pub(crate) value: Shape,
}

#[derive(Clone, Debug)]
pub(crate) struct StructShape {
    /// Those that aren't hidden.
    pub(crate) fields: Vec<FieldShape>,
    /// The bits of those that everyone sees.
    pub(crate) open: u64,
    /// The bits of the others.
    pub(crate) private: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct FieldShape {
    pub(crate) name: String,
    pub(crate) access: Access,
    pub(crate) of: Shape,
    /// The digest of its default. Where not everyone sees the field, it counts as nothing.
    pub(crate) default: u64,
}

/// Who sees a field, and how it is then written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Open,
    /// Its owner, all of it.
    Owner,
    /// Each player their own entry.
    OwnEntry,
    /// Whoever a function says, entry by entry.
    ViewedMap,
    /// Whoever a function says, all of it.
    Viewed,
}

/// A type that no state can have, or none that can be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShapeError {
    /// The root is no struct.
    Root,
    /// Types lie within each other deeper than schemas may be (`TYPE_DEPTH_MAX`).
    TooDeep,
    /// A value has more than 2^20 values in it by its type alone.
    TooLarge,
    /// A struct has more than 64 fields that players may see.
    Fields {
        /// The struct's name.
        name: String,
        /// How many it has.
        count: usize,
    },
    /// A struct has two fields of one name.
    Twice {
        /// That name.
        field: String,
    },
    /// A map or a set is keyed by what is no key.
    Key {
        /// What it is keyed by.
        of: String,
    },
    /// A number of steps that can't be.
    Steps {
        /// Why not.
        why: &'static str,
    },
    /// An array or an enum of which there is no value.
    Empty {
        /// Its name.
        name: String,
    },
    /// A field of a value that travels whole has a policy.
    Policy {
        /// The field's name.
        field: String,
    },
    /// A type that stands in values that travel whole, or in states, and can't.
    Place {
        /// The type.
        of: String,
    },
}

impl ShapeError {
    pub(crate) fn key(of: &Type) -> Self {
        Self::Key { of: kind(of) }
    }

    pub(crate) fn not_whole(of: &Type) -> Self {
        Self::Place { of: kind(of) }
    }
}

/// What a type is called in a message.
fn kind(of: &Type) -> String {
    let word = match of {
        Type::Option(_) => "option",
        Type::List(_) => "list",
        Type::Array(..) => "array",
        Type::Map(..) => "map",
        Type::Set(_) => "set",
        Type::Quantized(_) => "number in steps",
        Type::Struct(of) => return format!("struct {}", of.name),
        Type::Enum(of) => return format!("enum {}", of.name),
        plain => return format!("{plain:?}"),
    };
    word.to_owned()
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("the root of a state is a struct"),
            Self::TooDeep => {
                write!(f, "types may lie {DEPTH_MAX} deep within each other, these lie deeper")
            }
            Self::TooLarge => {
                write!(
                    f,
                    "a value may have {PLACES_MAX} values in it by its type alone, this one has more"
                )
            }
            Self::Fields { name, count } => {
                write!(
                    f,
                    "{name} has {count} fields that players see, and at most {FIELDS_MAX} are possible"
                )
            }
            Self::Twice { field } => write!(f, "two fields of one struct are called {field:?}"),
            Self::Key { of } => {
                write!(f, "a map is keyed by players, texts or integers, not by {of}")
            }
            Self::Steps { why } => f.write_str(why),
            Self::Empty { name } => write!(f, "{name} has no value"),
            Self::Policy { field } => {
                write!(f, "the field {field:?} has a policy, and is in a value that travels whole")
            }
            Self::Place { of } => write!(f, "a value of the type {of} can't stand there"),
        }
    }
}

impl std::error::Error for ShapeError {}

/// How deep a type lies, and how many values stand in one by the type alone.
#[derive(Default)]
pub(crate) struct Measure {
    depth: usize,
    places: usize,
}

impl Measure {
    /// One level down.
    pub(crate) fn within<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, ShapeError>,
    ) -> Result<T, ShapeError> {
        if self.depth == DEPTH_MAX {
            return Err(ShapeError::TooDeep);
        }
        self.depth += 1;
        let done = work(self);
        self.depth -= 1;
        done
    }

    /// One value more.
    pub(crate) fn place(&mut self) -> Result<(), ShapeError> {
        self.add(1)
    }

    fn add(&mut self, places: usize) -> Result<(), ShapeError> {
        self.places = self.places.saturating_add(places);
        if self.places > PLACES_MAX { Err(ShapeError::TooLarge) } else { Ok(()) }
    }

    /// What is there only if it is sent.
    pub(crate) fn apart<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, ShapeError>,
    ) -> Result<T, ShapeError> {
        self.place()?;
        let outer = std::mem::take(&mut self.places);
        let done = work(self);
        self.places = outer;
        done
    }

    /// What is there so many times.
    pub(crate) fn times<T>(
        &mut self,
        count: usize,
        work: impl FnOnce(&mut Self) -> Result<T, ShapeError>,
    ) -> Result<T, ShapeError> {
        if count == 0 {
            return Err(ShapeError::Empty { name: "an array of length 0".to_owned() });
        }
        let outer = std::mem::take(&mut self.places);
        let done = work(self)?;
        let inner = std::mem::replace(&mut self.places, outer);
        self.add(inner.saturating_mul(count))?;
        Ok(done)
    }
}

impl Shape {
    /// The shape of a state.
    pub(crate) fn root(of: &Type) -> Result<Self, ShapeError> {
        match of {
            Type::Struct(_) => Self::of(of, &mut Measure::default()),
            _ => Err(ShapeError::Root),
        }
    }

    fn of(of: &Type, measure: &mut Measure) -> Result<Self, ShapeError> {
        measure.within(|measure| {
            if let Some(plain) = Plain::of(of) {
                measure.place()?;
                return Ok(Self::Plain(plain));
            }
            let boxed = |of, measure: &mut Measure| Self::of(of, measure).map(Box::new);
            let map = |key: &Type, value| {
                let key = KeyShape::of(key).ok_or_else(|| ShapeError::key(key))?;
                Ok(Self::Map(Box::new(MapShape { key, value })))
            };
            match of {
                Type::Option(inner) => {
                    Ok(Self::Option(measure.apart(|measure| boxed(inner, measure))?))
                }
                Type::List(inner) => {
                    Ok(Self::List(measure.apart(|measure| boxed(inner, measure))?))
                }
                Type::Array(inner, length) => Ok(Self::Array(
                    measure.times(*length, |measure| boxed(inner, measure))?,
                    *length,
                )),
                Type::Map(key, value) => {
                    map(key, measure.apart(|measure| Self::of(value, measure))?)
                }
                Type::Set(key) => {
                    measure.place()?;
                    map(key, Self::Present)
                }
                Type::Quantized(of) => {
                    measure.place()?;
                    let scale = Scale::of_schema(of).map_err(|why| ShapeError::Steps { why })?;
                    match of.of {
                        Type::F32 => Ok(Self::Steps(scale, true)),
                        Type::F64 => Ok(Self::Steps(scale, false)),
                        _ => Err(ShapeError::Steps { why: "only floats travel in steps" }),
                    }
                }
                Type::Struct(of) => Ok(Self::Struct(Box::new(StructShape::of(of, measure)?))),
                Type::Enum(_) => Ok(Self::Enum(Box::new(Whole::of(of, measure)?))),
                other => Err(ShapeError::not_whole(other)),
            }
        })
    }

    /// What a copy holds of it for one who sees it and was told nothing: only what has nothing in
    /// it can go without saying. Counts in `blanks` the places that it looked at.
    pub(crate) fn blank(&self, blanks: &mut usize) -> Option<Made> {
        *blanks += 1;
        if *blanks > BLANKS_MAX {
            return None;
        }
        match self {
            Self::Map(_) => Some(Made::empty_map()),
            Self::Array(inner, length) => {
                let made = (0..*length).map(|_| inner.blank(blanks)).collect::<Option<Vec<_>>>()?;
                Some(Made::of_items(made))
            }
            Self::Struct(of) => {
                let (mut members, mut nodes) = (Map::new(), Vec::new());
                for field in &of.fields {
                    let made = match field.access {
                        Access::Open => Some(field.of.blank(blanks)?),
                        Access::OwnEntry | Access::ViewedMap => Some(Made::empty_map()),
                        Access::Owner => field.of.blank(blanks),
                        Access::Viewed => None,
                    };
                    nodes.push(made.map(|made| {
                        members.insert(field.name.clone(), made.value);
                        made.node
                    }));
                }
                Some(Made { value: Value::Object(members), node: Node::Struct(nodes) })
            }
            _ => None,
        }
    }

    /// The digest of the default, as the type alone has it: 0, empty, nothing, `false`, and an
    /// enum's first variant.
    fn default_digest(&self) -> u64 {
        match self {
            Self::Plain(plain) => plain.default_digest(),
            Self::Present => digest::of_bytes(&[]),
            Self::Steps(scale, is_short) => steps_digest(*scale, scale.steps(0.0), *is_short),
            Self::Enum(of) => {
                let mut bytes = Vec::new();
                of.write_default(&mut bytes);
                digest::of_bytes(&bytes)
            }
            Self::Option(_) | Self::Map(_) => 0,
            Self::List(_) => digest::of_length(0),
            Self::Array(inner, length) => {
                let inner = inner.default_digest();
                digest::of_elements((0..*length).map(|_| inner))
            }
            Self::Struct(of) => {
                of.fields.iter().enumerate().fold(0, |sum, (place, field)| match field.access {
                    Access::Open => {
                        sum.wrapping_add(field.default.wrapping_mul(digest::weight(place as u64)))
                    }
                    _ => sum,
                })
            }
        }
    }
}

/// What a schema says of the default of a field that not everyone sees: its digest, if it is
/// another than follows from the type. Of a type that no copy can be made of there is none to say.
/// For generated code.
pub fn explicit_default_digest(of: &Type, digest: u64) -> Option<u64> {
    let shape = Shape::of(of, &mut Measure::default()).ok()?;
    (shape.default_digest() != digest).then_some(digest)
}

/// The digest of a number in steps: that of the float that it comes back as.
pub(crate) fn steps_digest(scale: Scale, steps: i64, is_short: bool) -> u64 {
    use crate::Data;
    let value = scale.value(steps);
    if is_short { (value as f32).digest() } else { value.digest() }
}

impl StructShape {
    fn of(of: &Struct, measure: &mut Measure) -> Result<Self, ShapeError> {
        measure.place()?;
        let mut fields = Vec::new();
        let mut names = BTreeSet::new();
        for field in of.fields.iter().filter(|field| field.policy != Policy::Hidden) {
            if !names.insert(&field.name) {
                return Err(ShapeError::Twice { field: field.name.clone().into_owned() });
            }
            let keyed_by_player =
                matches!(&field.of, Type::Map(key, _) | Type::Set(key) if **key == Type::Player);
            let access = match (field.policy, &field.of) {
                (Policy::Owner, _) if keyed_by_player => Access::OwnEntry,
                (Policy::Owner, _) => Access::Owner,
                (Policy::View, Type::Map(..)) => Access::ViewedMap,
                (Policy::View, _) => Access::Viewed,
                _ => Access::Open,
            };
            let of = Shape::of(&field.of, measure)?;
            let default = match access {
                Access::Open => of.default_digest(),
                _ => field.default_digest.unwrap_or_else(|| of.default_digest()),
            };
            fields.push(FieldShape { name: field.name.clone().into_owned(), access, of, default });
        }
        if fields.len() > FIELDS_MAX {
            return Err(ShapeError::Fields {
                name: of.name.clone().into_owned(),
                count: fields.len(),
            });
        }
        let bits = |is_open: bool| {
            let fields = fields.iter().enumerate();
            fields.fold(0, |bits, (place, field)| {
                if (field.access == Access::Open) == is_open { bits | 1 << place } else { bits }
            })
        };
        let (open, private) = (bits(true), bits(false));
        Ok(Self { fields, open, private })
    }

    pub(crate) fn mask_bytes(&self) -> usize {
        self.fields.len().div_ceil(8)
    }
}
