//! Recordings that can't be read.

use std::fmt;

use crate::recording::BlockError;

/// Why a recording can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordingError {
    /// The bytes do not begin like a recording.
    NotARecording,
    /// The format is that of a newer Playfield.
    Format {
        /// The version of that format.
        version: u16,
    },
    /// The first block is damaged or missing, or one is, and no keyframe is whole.
    Block(BlockError),
    /// A block is not what it should be.
    Invalid {
        /// The number of the block.
        block: u64,
        /// The byte of the file at which it begins.
        at: usize,
        /// The fault, with its byte in the block's content.
        why: String,
    },
    /// The recording ends before its first keyframe, so it has nothing of the room.
    Empty,
    /// The file can't be read.
    File {
        /// The reason.
        why: String,
    },
    /// The file exceeds the reader's [limit](super::ReadLimit).
    TooLong {
        /// Its bytes.
        bytes: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// The recording exceeds the reader's limit when it is inflated.
    TooLarge {
        /// The limit on the inflated size, in bytes.
        limit: usize,
        /// The number of the block that exceeds it.
        block: u64,
        /// The byte of the file at which it begins.
        at: usize,
    },
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotARecording => {
                f.write_str("these bytes are not a recording: they do not begin with \"PFREC\"")
            }
            Self::Format { version } => write!(
                f,
                "the recording has the format {version}; this build reads the format 1: update \
                 Playfield"
            ),
            Self::Block(error) => error.fmt(f),
            Self::Invalid { block, at, why } => {
                write!(f, "block {block}, at byte {at}, is not valid: {why}")
            }
            Self::Empty => f.write_str("the recording ends before the first keyframe of the room"),
            Self::File { why } => f.write_str(why),
            Self::TooLong { bytes, limit } => {
                write!(f, "the recording has {bytes} bytes, and {limit} is the limit")
            }
            Self::TooLarge { limit, block, at } => write!(
                f,
                "the recording has more than {limit} bytes when it is inflated: block {block}, at \
                 byte {at}, goes beyond that"
            ),
        }
    }
}

impl std::error::Error for RecordingError {}
