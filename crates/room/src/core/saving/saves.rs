//! The saves that a store may have of a room.

use super::Print;
use crate::frozen::parts;

/// The maximum number of known saves. The store must fail this many times in a row to exceed it.
const KNOWN_MAX: usize = 16;

/// The saves that the store may have of a room, if nobody else has saved it.
#[derive(Clone, Debug, Default)]
pub struct Saves {
    /// `None` means no save.
    known: Vec<Option<Print>>,
    /// The store can have no other.
    is_all: bool,
    /// A save has begun since the room was made.
    pub(crate) has_grown: bool,
}

impl Saves {
    /// Returns whether the store's current save is unknown to the room, and therefore newer:
    /// another process made it, or the room made it later. `false` if this can't be determined.
    #[must_use]
    pub fn lacks(&self, save: &[u8]) -> bool {
        self.is_all && !self.known.contains(&Some(Print::of(save)))
    }

    /// Returns whether the store may have this save of the room.
    pub(super) fn has(&self, save: Option<Print>) -> bool {
        self.known.contains(&save)
    }

    /// The store has this save and no other; `None` means no save.
    pub(super) fn is(&mut self, save: Option<Print>) {
        (self.known, self.is_all) = (vec![save], true);
    }

    /// A save has begun. The store may have it even if it fails.
    pub(super) fn add(&mut self, save: Print) {
        self.has_grown = true;
        if !self.known.contains(&Some(save)) {
            self.known.push(Some(save));
        }
        if self.known.len() > KNOWN_MAX {
            // The first was durable, and the others are the newest.
            self.is_all = false;
            self.known.remove(1);
        }
    }

    /// The store may have any save.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
        self.is_all = false;
    }

    pub(super) fn freeze(&self) -> parts::Saves {
        let Self { known, is_all, has_grown: _ } = self;
        let hashes = known.iter().flatten().map(|Print(hash, bytes)| [*hash, *bytes as u64]);
        parts::Saves { hashes: hashes.collect(), or_none: known.contains(&None), is_all: *is_all }
    }

    pub(super) fn thaw(frozen: parts::Saves) -> Self {
        let parts::Saves { hashes, or_none, is_all } = frozen;
        let print = |[hash, bytes]: [u64; 2]| Print(hash, usize::try_from(bytes).unwrap_or(0));
        let mut known: Vec<_> = hashes.into_iter().map(print).map(Some).collect();
        known.extend(or_none.then_some(None));
        let is_all = is_all && known.len() <= KNOWN_MAX;
        Self { known, is_all, has_grown: false }
    }
}
