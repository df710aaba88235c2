//! Recordings that can't be run.

use std::fmt;

use super::Difference;
use crate::frozen::{ForkError, ThawError};

/// The reason why a recording can't be run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplayError {
    /// The recording has no keyframe.
    NoKeyframe,
    /// The room can't go on from a keyframe in this build.
    Thaw {
        /// The number of the keyframe's block.
        block: u64,
        /// The byte of the file at which it begins.
        at: usize,
        /// The reason.
        error: ThawError,
    },
    /// The room differs from what was recorded.
    Differs(Box<Difference>),
    /// The room can't be forked there.
    Fork(ForkError),
    /// A block is not what it should be, though its checksum is right.
    Invalid {
        /// The number of the block.
        block: u64,
        /// The byte of the file at which it begins.
        at: usize,
        /// The fault.
        why: String,
    },
    /// The recording lacks this tick.
    NoTick {
        /// The tick.
        tick: u64,
        /// The first tick of the recording.
        first: u64,
        /// The last one, if this is later.
        last: Option<u64>,
    },
    /// The inputs around this tick are missing.
    Missing {
        /// The tick.
        tick: u64,
        /// Why they are missing.
        why: String,
    },
    /// The inputs around this one are missing.
    MissingInput {
        /// The number of inputs.
        inputs: u64,
        /// Why they are missing.
        why: String,
    },
    /// The recording lacks this input.
    NoInput {
        /// The number of inputs.
        inputs: u64,
        /// The number before the first one of the recording.
        first: u64,
        /// The number of the last one.
        last: u64,
    },
}

impl fmt::Display for ReplayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoKeyframe => f.write_str("the recording has no keyframe"),
            Self::Thaw { block, at, error } => {
                write!(f, "the room in block {block}, at byte {at}, can't go on here: {error}")
            }
            Self::Differs(difference) => difference.fmt(f),
            Self::Fork(error) => write!(f, "the room can't be forked there: {error}"),
            Self::Invalid { block, at, why } => {
                write!(f, "block {block}, at byte {at}, is not valid: {why}")
            }
            Self::NoTick { tick, first, last: None } => {
                write!(f, "the recording begins at tick {first}, after tick {tick}")
            }
            Self::NoTick { tick, last: Some(last), .. } => {
                write!(f, "the recording ends at tick {last}, before tick {tick}")?;
                // The room may have no ticks.
                if *last == 0 { f.write_str(": seek an input instead") } else { Ok(()) }
            }
            Self::Missing { tick, why } => {
                write!(f, "the inputs around tick {tick} are missing: {why}")
            }
            Self::MissingInput { inputs, why } => {
                write!(f, "the inputs around input {inputs} are missing: {why}")
            }
            Self::NoInput { inputs, first, last } => {
                write!(f, "the recording has the inputs {first} to {last}, not {inputs}")
            }
        }
    }
}

impl std::error::Error for ReplayError {}
