//! A client's copy of a room's state, of any kind.

use playfield_state::{Change, DynamicMirror, PlayerId, ShapeError, State};
use playfield_wire::DecodeError;
use playfield_wire::schema::RoomSchema;

use crate::session::UpdateKind;

/// A copy of a room's state, kept up to date by the bodies of snapshots and patches.
///
/// The caller applies them in order, as [`Session`](crate::session::Session) does.
pub trait Mirror {
    /// The type of the state.
    type State;

    /// The copy.
    fn state(&self) -> &Self::State;

    /// The copy's digest, which equals the server's if the copy is right.
    fn digest(&self) -> u64;

    /// Applies the body of a snapshot or a patch. If the copy can report changes, it passes each to
    /// `report`; after a failed patch the next snapshot reports none.
    ///
    /// # Errors
    /// If the body can't be read, or a patch doesn't fit this copy. After a failed snapshot the
    /// copy is unchanged. After a failed patch it is empty until a snapshot comes.
    fn apply(
        &mut self,
        kind: UpdateKind,
        body: &[u8],
        report: Option<&mut dyn FnMut(Change)>,
    ) -> Result<(), DecodeError>;

    /// Sets the schema with which bodies are read, and the player whose copy this is. A
    /// copy of a known type needs neither.
    ///
    /// # Errors
    /// If no room can have this schema.
    fn set_schema(&mut self, schema: &RoomSchema, player: PlayerId) -> Result<(), ShapeError> {
        let _ = (schema, player);
        Ok(())
    }

    /// An empty second copy of the same state that can report changes. `None` if this copy itself
    /// can.
    ///
    /// # Errors
    /// If the state's type is invalid.
    fn change_reporter(&self, player: PlayerId) -> Result<Option<DynamicMirror>, ShapeError> {
        let _ = player;
        Ok(None)
    }
}

impl<T: State + Default> Mirror for playfield_state::Mirror<T> {
    type State = T;

    fn state(&self) -> &T {
        self.state()
    }

    fn digest(&self) -> u64 {
        self.digest()
    }

    fn apply(
        &mut self,
        kind: UpdateKind,
        body: &[u8],
        report: Option<&mut dyn FnMut(Change)>,
    ) -> Result<(), DecodeError> {
        match (kind, report) {
            (UpdateKind::Snapshot, None) => self.snapshot(body),
            (UpdateKind::Snapshot, Some(report)) => self.snapshot_with(body, report),
            (UpdateKind::Patch, None) => self.patch(body),
            (UpdateKind::Patch, Some(report)) => self.patch_with(body, report),
        }
    }

    fn change_reporter(&self, player: PlayerId) -> Result<Option<DynamicMirror>, ShapeError> {
        if Self::REPORTS {
            return Ok(None);
        }
        DynamicMirror::new(&T::schema(), player).map(Some)
    }
}

impl Mirror for DynamicMirror {
    type State = serde_json::Value;

    fn state(&self) -> &serde_json::Value {
        self.state()
    }

    fn digest(&self) -> u64 {
        self.digest()
    }

    fn apply(
        &mut self,
        kind: UpdateKind,
        body: &[u8],
        report: Option<&mut dyn FnMut(Change)>,
    ) -> Result<(), DecodeError> {
        match (kind, report) {
            (UpdateKind::Snapshot, None) => self.snapshot(body),
            (UpdateKind::Snapshot, Some(report)) => self.snapshot_with(body, report),
            (UpdateKind::Patch, None) => self.patch(body),
            (UpdateKind::Patch, Some(report)) => self.patch_with(body, report),
        }
    }
}
