//! A room's copy, as the session keeps it up to date.

use playfield_state::StateTranscoder;
use playfield_wire::DecodeError;

use super::{RoomCopy, Update, UpdateKind};

/// A room's copy, and the converter from the node's updates to the schema used at entry.
pub(super) struct BoxedCopy(pub(super) Box<dyn RoomCopy + Send>, Option<StateTranscoder>);

impl BoxedCopy {
    pub(super) fn new(copy: Box<dyn RoomCopy + Send>) -> Self {
        Self(copy, None)
    }

    /// Converts updates from now on, beginning with a snapshot.
    pub(super) fn convert(&mut self, by: StateTranscoder) {
        self.1 = Some(by);
    }

    #[inline]
    pub(super) fn apply(&mut self, update: &Update<'_>) -> Result<(), DecodeError> {
        let Self(copy, by) = self;
        let Some(by) = by else { return copy.apply(update) };
        let mut own = Vec::new();
        match update.kind {
            UpdateKind::Snapshot => by.snapshot(update.body, &mut own)?,
            UpdateKind::Patch => by.patch(update.body, &mut own)?,
        }
        copy.apply(&Update { body: &own, ..*update })
    }

    pub(super) fn digest_is(&mut self, digest: u64) -> bool {
        match &self.1 {
            None => self.0.digest_is(digest),
            Some(by) => by.digest().is_none_or(|own| own == digest),
        }
    }
}

impl std::fmt::Debug for BoxedCopy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a copy")
    }
}
