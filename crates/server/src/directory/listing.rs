//! Rooms in the lists of clients and of operators.

use playfield_room::{METADATA_BYTES_MAX, METADATA_MAX, RoomSummary};

use super::Listed;
use crate::room_id::RoomId;
use crate::sought::Sought;

/// A room as listed to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) id: RoomId,
    pub(crate) room_type: u16,
    pub(crate) summary: RoomSummary,
}

/// A room as operators see it in a list.
pub(crate) struct Overview {
    pub(crate) listing: Listing,
    pub(crate) shard: u16,
}

/// In which order an operator's list has rooms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RoomOrder {
    /// The oldest first.
    #[default]
    Oldest,
    /// The newest first.
    Newest,
    /// Rooms with the most players first.
    MostPlayers,
    /// Rooms with the longest sync in the last five to ten seconds first, ticks, timers and patches
    /// included.
    Slowest,
    /// Rooms that were the latest first.
    Latest,
    /// Rooms with the most bytes per second first, in and out.
    MostBytes,
}

impl Listed {
    /// Returns whether a text is in its id, its key or its metadata.
    pub(super) fn contains(&self, id: RoomId, text: &Sought) -> bool {
        let summary = &self.summary;
        text.is_in("")
            || text.is_in(&id.to_string())
            || summary.key.as_deref().is_some_and(|key| text.is_in(key))
            || summary.metadata.iter().any(|(key, value)| text.is(key) || text.is_in(value))
    }
}

/// The pairs of a filter, ordered and each once; `None` if no room has so many, or so long ones. A
/// client may ask for thousands: that takes no memory and little time.
pub(super) fn possible(filter: &[(impl AsRef<str>, impl AsRef<str>)]) -> Option<Vec<(&str, &str)>> {
    let mut pairs = Vec::new();
    for (name, value) in filter {
        let pair = (name.as_ref(), value.as_ref());
        if pair.0.len().max(pair.1.len()) > METADATA_BYTES_MAX {
            return None;
        }
        if !pairs.contains(&pair) {
            if pairs.len() == METADATA_MAX {
                return None;
            }
            pairs.push(pair);
        }
    }
    pairs.sort_unstable();
    Some(pairs)
}
