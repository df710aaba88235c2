//! What is wrong with a schema's JSON.

use std::fmt;

/// A text that is no schema. It names the place, such as `state.seats.*.hp`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaError {
    /// The text is longer than [`SCHEMA_BYTES_MAX`](super::SCHEMA_BYTES_MAX).
    TooLong {
        /// How long it is, in bytes.
        bytes: usize,
    },
    /// The text is not JSON.
    Json {
        /// Why not.
        why: String,
    },
    /// A member is missing.
    Missing {
        /// Where.
        place: String,
        /// Its name.
        member: &'static str,
    },
    /// Something is not what it should be.
    Unexpected {
        /// Where.
        place: String,
        /// What should be there.
        expected: &'static str,
        /// The beginning of what is there.
        found: String,
    },
    /// Two fields, variants, messages or events of one name stand beside each other.
    Twice {
        /// Where.
        place: String,
    },
    /// Types lie further within each other than [`TYPE_DEPTH_MAX`](super::TYPE_DEPTH_MAX).
    TooDeep {
        /// Where.
        place: String,
    },
    /// The fingerprint is not that of the content.
    Fingerprint {
        /// The one that the text bears.
        stated: u64,
        /// That of the content.
        own: u64,
    },
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong { bytes } => {
                write!(
                    f,
                    "a schema has {} bytes at most, this one {bytes}",
                    super::SCHEMA_BYTES_MAX
                )
            }
            Self::Json { why } => write!(f, "a schema is JSON: {why}"),
            Self::Missing { place, member } => {
                write!(f, "{place}: the member {member:?} is missing")
            }
            Self::Unexpected { place, expected, found } => {
                write!(f, "{place}: {expected} was expected, {found} came")
            }
            Self::Twice { place } => write!(f, "{place}: two of this name stand beside each other"),
            Self::TooDeep { place } => {
                write!(
                    f,
                    "{place}: types lie within each other {} deep at most",
                    super::TYPE_DEPTH_MAX
                )
            }
            Self::Fingerprint { stated, own } => {
                write!(f, "the fingerprint {stated} is not that of the content, which is {own}")
            }
        }
    }
}

impl std::error::Error for SchemaError {}
