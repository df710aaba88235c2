//! Why a room can't be frozen, and why one that was frozen can't go on here.

use std::fmt;

use playfield_state::LoadError;

use super::FROZEN_BYTES_MAX;

/// The most names of unfinished tasks that a text lists.
const NAMES_LISTED: usize = 4;

/// Why a room can't be frozen.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FreezeError {
    /// The room has ended, or is about to.
    Ended,
    /// Work is in flight, which can't go on elsewhere. Wait for it, or
    /// [give it up](crate::AnyRoom::freeze_after).
    Busy(InFlight),
    /// The room has more than [`FROZEN_BYTES_MAX`] bytes.
    TooLarge {
        /// The number of bytes.
        bytes: usize,
    },
    /// The room stands still, and calls wait for it.
    Paused,
    /// The host's rooms can't be frozen.
    Unsupported,
}

/// Work of a room that is not done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InFlight {
    /// The room has not opened yet: its save is being loaded, or it waits for work that `create`
    /// began.
    pub is_opening: bool,
    /// The number of players who wait to join.
    pub joins: usize,
    /// The names of the messages that end its unfinished background tasks.
    pub tasks: Vec<&'static str>,
    /// A save is on its way to the store, or a message waits for one.
    pub is_saving: bool,
}

impl InFlight {
    /// Returns whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if self.is_opening {
            parts.push("the room is not open yet".to_owned());
        }
        if self.joins > 0 {
            parts.push(format!("{} players wait to join", self.joins));
        }
        if !self.tasks.is_empty() {
            let named = self.tasks.iter().take(NAMES_LISTED).copied().collect::<Vec<_>>();
            let more = self.tasks.len() - named.len();
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            parts.push(format!("background tasks that end with {}{more}", named.join(", ")));
        }
        if self.is_saving {
            parts.push("a save".to_owned());
        }
        f.write_str(&parts.join("; "))
    }
}

impl fmt::Display for FreezeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended => f.write_str("the room has ended, or is about to"),
            Self::Busy(work) => write!(f, "work is in flight: {work}"),
            Self::TooLarge { bytes } => {
                write!(
                    f,
                    "the frozen room has {bytes} bytes, and at most {FROZEN_BYTES_MAX} may be"
                )
            }
            Self::Paused => f.write_str("the room stands still until its node may serve it again"),
            Self::Unsupported => f.write_str("rooms of this host can't be frozen"),
        }
    }
}

impl std::error::Error for FreezeError {}

/// Why a frozen room can't go on here. Bytes are counted from the start of the frozen room, except
/// in [`State`](Self::State).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ThawError {
    /// The bytes do not begin like a frozen room.
    NotFrozen,
    /// The format is that of a newer Playfield.
    Format {
        /// The version of that format.
        version: u8,
    },
    /// The room has more than [`FROZEN_BYTES_MAX`] bytes.
    TooLarge {
        /// The number of bytes.
        bytes: usize,
    },
    /// The end is missing.
    Truncated {
        /// The number of bytes.
        bytes: usize,
        /// The expected number of bytes.
        expected: u64,
    },
    /// There are bytes after the end.
    TooLong {
        /// The number of bytes.
        bytes: usize,
        /// The expected number of bytes.
        expected: u64,
    },
    /// A checksum is wrong: some bytes of this part were changed.
    Damaged {
        /// The part.
        part: &'static str,
        /// The byte at which it begins.
        at: usize,
    },
    /// A part is missing.
    Missing {
        /// The part.
        part: &'static str,
    },
    /// A part is not what it should be.
    Invalid {
        /// The part.
        part: &'static str,
        /// The byte at which it is wrong, or at which it begins.
        at: usize,
        /// The fault.
        why: String,
    },
    /// Its state can't be read, is of another type, or of a build whose types do not fit this
    /// one's. The bytes that the error names are those of the save in it.
    State(LoadError),
    /// A message that waits in the room has other fields in this build, or this build lacks it.
    Message {
        /// The name of the message.
        name: String,
        /// The field, such as `target.x`; empty for the message.
        place: String,
        /// The difference.
        why: String,
    },
    /// The code of a type in the state panicked.
    Panicked {
        /// The text of the panic.
        text: String,
    },
}

impl fmt::Display for ThawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFrozen => {
                f.write_str("these bytes are not a frozen room: they do not begin with \"PFROOM\"")
            }
            Self::Format { version } => write!(
                f,
                "the frozen room has the format {version}; this build reads the format 1: update \
                 Playfield"
            ),
            Self::TooLarge { bytes } => {
                write!(
                    f,
                    "the frozen room has {bytes} bytes, and at most {FROZEN_BYTES_MAX} may be"
                )
            }
            Self::Truncated { bytes, expected } => {
                write!(f, "the frozen room ends at byte {bytes} of {expected}")
            }
            Self::TooLong { bytes, expected } => {
                write!(f, "the frozen room has {bytes} bytes, but ends at byte {expected}")
            }
            Self::Damaged { part, at } => {
                write!(f, "the frozen room is damaged from byte {at} on, in the part `{part}`")
            }
            Self::Missing { part } => write!(f, "the frozen room lacks the part `{part}`"),
            Self::Invalid { part, at, why } => {
                write!(f, "the frozen room is not valid at byte {at}, in the part `{part}`: {why}")
            }
            Self::State(error) => write!(f, "the state of the frozen room: {error}"),
            Self::Message { name, place, why } if place.is_empty() => {
                write!(f, "the message `{name}`, which waits in the room: {why}")
            }
            Self::Message { name, place, why } => {
                write!(f, "the message `{name}`, which waits in the room: {place}: {why}")
            }
            Self::Panicked { text } => {
                write!(f, "the code of a type in the state panicked: {text}")
            }
        }
    }
}

impl std::error::Error for ThawError {}
