//! Errors in a schema's JSON.

use std::fmt;

/// A text that is not a valid schema. It names the place, such as `state.seats.*.hp`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaError {
    /// The text is longer than [`SCHEMA_BYTES_MAX`](super::SCHEMA_BYTES_MAX).
    TooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// The text is not JSON.
    Json {
        /// Why not.
        why: String,
    },
    /// A member is missing.
    Missing {
        /// The place.
        place: String,
        /// Its name.
        member: &'static str,
    },
    /// Something is not what it should be.
    Unexpected {
        /// The place.
        place: String,
        /// The expected value.
        expected: &'static str,
        /// The beginning of what is there.
        found: String,
    },
    /// Two fields, variants, messages or events have the same name.
    Twice {
        /// The place.
        place: String,
    },
    /// Types are nested deeper than [`TYPE_DEPTH_MAX`](super::TYPE_DEPTH_MAX).
    TooDeep {
        /// The place.
        place: String,
    },
    /// The fingerprint does not match the content.
    Fingerprint {
        /// The fingerprint in the text.
        stated: u64,
        /// The fingerprint of the content.
        own: u64,
    },
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { bytes } => {
                write!(
                    f,
                    "a schema has at most {} bytes, this one has {bytes}",
                    super::SCHEMA_BYTES_MAX
                )
            }
            Self::Json { why } => write!(f, "a schema must be JSON: {why}"),
            Self::Missing { place, member } => {
                write!(f, "{place}: the member {member:?} is missing")
            }
            Self::Unexpected { place, expected, found } => {
                write!(f, "{place}: expected {expected}, found {found}")
            }
            Self::Twice { place } => write!(f, "{place}: two have this name"),
            Self::TooDeep { place } => {
                write!(f, "{place}: types must be nested at most {} deep", super::TYPE_DEPTH_MAX)
            }
            Self::Fingerprint { stated, own } => {
                write!(
                    f,
                    "the fingerprint {stated} does not match the content, whose fingerprint is {own}"
                )
            }
        }
    }
}

impl std::error::Error for SchemaError {}
