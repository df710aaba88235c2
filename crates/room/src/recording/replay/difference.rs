//! Differences between a room that runs again and its recording.

use std::fmt;

use crate::recording::Position;

/// A difference between a room and its recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The last position at which the room was the same.
    pub same_until: Position,
    /// The position at which it differs.
    pub position: Position,
    /// The recorded hash.
    pub recorded: u64,
    /// The hash of this room; `None` if it has ended.
    pub replayed: Option<u64>,
    /// The input, if only one is in between.
    pub input: Option<String>,
    /// The fields that differ at the next keyframe: the path, the recorded value and the one here,
    /// in JSON.
    pub fields: Vec<[String; 3]>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { same_until, position, recorded, replayed, input, fields } = self;
        write!(f, "the room differs from its recording at {position}: its hash is ")?;
        match replayed {
            Some(replayed) => write!(f, "{replayed:016x}, not {recorded:016x}")?,
            None => write!(f, "none, since it has ended, not {recorded:016x}")?,
        }
        let first = same_until.inputs + 1;
        match input {
            Some(input) => write!(f, ". Input {first} made the difference: {input}")?,
            None => write!(
                f,
                ". It was the same until {same_until}, so one of the inputs {first} to {} made the \
                 difference",
                position.inputs
            )?,
        }
        for [path, recorded, here] in fields.iter().take(8) {
            write!(f, "\n  {path}: {recorded} was recorded, {here} is here")?;
        }
        match fields.len() {
            0..=8 => Ok(()),
            more => write!(f, "\n  and {} more", more - 8),
        }
    }
}

/// The longest text of a value.
const VALUE_CHARS_MAX: usize = 80;

/// The text of a value, cut if it is long.
pub(super) fn short(value: impl fmt::Display) -> String {
    let text = value.to_string();
    match text.char_indices().nth(VALUE_CHARS_MAX) {
        None => text,
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}
