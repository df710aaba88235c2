//! Limits on schemas that values are read by.

use std::fmt;

use playfield_wire::schema::Type;

/// The maximum nesting depth of types: readers recurse by type, and the stack is finite.
const DEPTH_MAX: usize = playfield_wire::schema::TYPE_DEPTH_MAX;

/// The most values that one value may contain by its type alone.
const PLACES_MAX: usize = 1 << 20;

/// The most values that a schema's types may contain together, one of each. Each is counted with
/// what it contains by its type alone: the digests of defaults take that long to compute.
const PLACES_SUM_MAX: usize = 1 << 24;

/// The most fields of a struct that a patch can mark.
pub(super) const FIELDS_MAX: usize = 64;

/// A schema type that no state or message can have.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ShapeError {
    /// The root is not a struct.
    Root,
    /// Types are nested deeper than schemas may be (`TYPE_DEPTH_MAX`).
    TooDeep,
    /// A value contains more than 2^20 values by its type alone, or all types together contain more
    /// than 2^24.
    TooLarge,
    /// A struct has more than 64 fields that players may see.
    Fields {
        /// The struct's name.
        name: String,
        /// The number of its fields.
        count: usize,
    },
    /// A struct has two fields with the same name.
    Twice {
        /// That name.
        field: String,
    },
    /// A map or a set has a key of a type that can't be a key.
    Key {
        /// The type of its key.
        of: String,
    },
    /// An invalid quantized number.
    Steps {
        /// Why it is invalid.
        why: &'static str,
    },
    /// An array or an enum that has no value.
    Empty {
        /// Its name.
        name: String,
    },
    /// A field of an atomic value has a policy.
    Policy {
        /// The field's name.
        field: String,
    },
    /// A type in a place where it is not allowed, such as a set in an atomic value.
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

/// The name of a type in an error.
fn kind(of: &Type) -> String {
    let word = match of {
        Type::Option(_) => "option",
        Type::List(_) => "list",
        Type::Array(..) => "array",
        Type::Map(..) => "map",
        Type::Set(_) => "set",
        Type::Quantized(_) => "quantized number",
        Type::Struct(of) => return format!("struct {}", of.name),
        Type::Enum(of) => return format!("enum {}", of.name),
        plain => return format!("{plain:?}"),
    };
    word.to_owned()
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("the root of a state must be a struct"),
            Self::TooDeep => {
                write!(f, "types are nested more than {DEPTH_MAX} deep")
            }
            Self::TooLarge => {
                write!(
                    f,
                    "a value contains more than {PLACES_MAX} values by its type alone, or all \
                     types together more than {PLACES_SUM_MAX}: use a list instead of a long array"
                )
            }
            Self::Fields { name, count } => {
                write!(f, "{name} has {count} fields that players see; the limit is {FIELDS_MAX}")
            }
            Self::Twice { field } => write!(f, "two fields of one struct have the name {field:?}"),
            Self::Key { of } => {
                write!(f, "the key of a map must be a player, a text or an integer, not {of}")
            }
            Self::Steps { why } => f.write_str(why),
            Self::Empty { name } => write!(f, "{name} has no value"),
            Self::Policy { field } => {
                write!(
                    f,
                    "the field {field:?} has a policy, but is in a value that is sent as a whole"
                )
            }
            Self::Place { of } => write!(f, "a value of type {of} is not allowed here"),
        }
    }
}

impl std::error::Error for ShapeError {}

/// The depth of a type, and the number of values that it contains by the type alone.
#[derive(Default)]
pub(super) struct Measure {
    depth: usize,
    places: usize,
    /// Of this value and all that were measured before.
    sum: usize,
}

impl Measure {
    /// One level down.
    pub(super) fn within<T>(
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

    /// Counts one more value.
    pub(super) fn place(&mut self) -> Result<(), ShapeError> {
        self.add(1)
    }

    fn add(&mut self, places: usize) -> Result<(), ShapeError> {
        self.places = self.places.saturating_add(places);
        self.sum = self.sum.saturating_add(places);
        let too_large = self.places > PLACES_MAX || self.sum > PLACES_SUM_MAX;
        if too_large { Err(ShapeError::TooLarge) } else { Ok(()) }
    }

    /// A value that is present only if it was sent.
    pub(super) fn apart<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, ShapeError>,
    ) -> Result<T, ShapeError> {
        self.place()?;
        let outer = std::mem::take(&mut self.places);
        let done = work(self);
        self.places = outer;
        done
    }

    /// A value that occurs `count` times.
    pub(super) fn times<T>(
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
