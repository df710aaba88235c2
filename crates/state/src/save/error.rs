//! Why a save can't be read.

use std::fmt;
use std::ops::Range;

use playfield_wire::DecodeError;

use super::fate::other_name;

/// Why a save can't be read. Bytes are counted from the start of the save.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LoadError {
    /// The bytes do not begin like a save.
    NotASave,
    /// The save is in a format of a newer Playfield.
    Format {
        /// The version of that format.
        version: u8,
    },
    /// The end is missing.
    Truncated {
        /// The number of bytes.
        bytes: usize,
        /// The expected number of bytes.
        expected: u64,
        /// The field in which they end, such as `units.7.name`, if it can be told.
        place: Option<String>,
    },
    /// There are bytes after the end.
    TooLong {
        /// The number of bytes.
        bytes: usize,
        /// The expected number of bytes.
        expected: usize,
    },
    /// A checksum is wrong: some of these bytes were changed.
    Damaged {
        /// The bytes with that checksum.
        bytes: Range<usize>,
        /// The field in which they begin, if it can be told.
        place: Option<String>,
    },
    /// The save is of another type.
    OtherType {
        /// The name of its type; empty for a collection.
        saved: String,
        /// The name of the type that was asked for; empty for a collection.
        wanted: String,
    },
    /// The save is of a newer build, or of one with an incompatible schema.
    Incompatible {
        /// The field, such as `units.*.name`; empty for the root.
        place: String,
        /// The difference.
        why: String,
    },
    /// The bytes are those that were saved, but they are not such a state.
    Invalid {
        /// The field, if it can be told.
        place: Option<String>,
        /// The error.
        error: DecodeError,
    },
}

impl LoadError {
    pub(super) fn of(error: DecodeError) -> Self {
        Self::Invalid { place: None, error }
    }
}

/// `, in the field units.7.name`, or nothing.
struct In<'a>(&'a Option<String>);

impl fmt::Display for In<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(place) => write!(f, ", in the field {place}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotASave => {
                f.write_str("these bytes are not a save: they do not begin with \"PFSAVE\"")
            }
            Self::Format { version } => {
                write!(
                    f,
                    "the save has the format {version}; this build reads the formats 1 and 2: update Playfield"
                )
            }
            Self::Truncated { bytes, expected, place } => {
                write!(f, "the save ends at byte {bytes} of {expected}{}", In(place))
            }
            Self::TooLong { bytes, expected } => {
                write!(f, "the save has {bytes} bytes, but ends at byte {expected}")
            }
            Self::Damaged { bytes, place } => {
                let Range { start, end } = bytes;
                write!(f, "the save is damaged between the bytes {start} and {end}")?;
                place.as_ref().map_or(Ok(()), |place| write!(f, ", from the field {place} on"))
            }
            Self::OtherType { saved, wanted } => f.write_str(&other_name(saved, wanted)),
            Self::Incompatible { place, why } if place.is_empty() => f.write_str(why),
            Self::Incompatible { place, why } => write!(f, "{place}: {why}"),
            Self::Invalid { place, error } => {
                write!(f, "the save is not valid: {error}{}", In(place))
            }
        }
    }
}

impl std::error::Error for LoadError {}
