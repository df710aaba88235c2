//! A client's copy of a room's state, whatever its type.

use playfield_state::{Change, DynamicMirror, JsonMirror, PlayerId, ShapeError, State};
use playfield_wire::DecodeError;
use playfield_wire::schema::RoomSchema;

/// A copy of a room's state, kept in step by the bodies of snapshots and patches.
///
/// Whoever hands them in sees to their order, as [`core::Client`](crate::core::Client) does.
pub trait Mirror {
    /// What the copy is made of.
    type State;

    /// The copy.
    fn state(&self) -> &Self::State;

    /// Replaces the copy.
    ///
    /// # Errors
    /// A body that isn't one of this state's; the copy is as before.
    fn snapshot(&mut self, body: &[u8]) -> Result<(), DecodeError>;

    /// The copy's digest, if it can make one.
    fn digest(&self) -> Option<u64> {
        None
    }

    /// Takes the copy from the patch's base to its version.
    ///
    /// # Errors
    /// A body that isn't one of this state's, or doesn't fit this copy. There is then no copy any
    /// more: the mirror is that of nothing until a snapshot comes.
    fn patch(&mut self, body: &[u8]) -> Result<(), DecodeError>;

    /// Takes the schema by which bodies in `packed` are to be read, and whose copy it is. A copy
    /// that knows its type needs none.
    ///
    /// # Errors
    /// A schema that no room has.
    fn learn(&mut self, schema: &RoomSchema, player: PlayerId) -> Result<(), ShapeError> {
        let _ = (schema, player);
        Ok(())
    }

    /// An event in `packed` as its name and its JSON, if that is how events of such rooms are told.
    ///
    /// # Errors
    /// An event that is not what the schema says.
    fn event_in_json(
        &self,
        number: u32,
        payload: &[u8],
    ) -> Option<Result<(String, Vec<u8>), DecodeError>> {
        let _ = (number, payload);
        None
    }

    /// Another copy, without anything in it yet, of the same state and for this player, which tells
    /// what changes in it. `None` if there is no such.
    fn watcher(&self, player: PlayerId) -> Option<Box<dyn ChangeMirror>> {
        let _ = player;
        None
    }
}

/// A copy of a room's state that tells what changes in it, place by place.
pub trait ChangeMirror: Send {
    /// Replaces the copy, and tells what is different; nothing, if it is the first, or the copy was
    /// unusable.
    ///
    /// # Errors
    /// As [`Mirror::snapshot`].
    fn snapshot_with(
        &mut self,
        body: &[u8],
        tell: &mut dyn FnMut(Change),
    ) -> Result<(), DecodeError>;

    /// Takes the copy from the patch's base to its version, and tells what changes.
    ///
    /// # Errors
    /// As [`Mirror::patch`].
    fn patch_with(&mut self, body: &[u8], tell: &mut dyn FnMut(Change)) -> Result<(), DecodeError>;
}

macro_rules! change_mirrors {
    ($($mirror:ty)*) => {$(
        impl ChangeMirror for $mirror {
            fn snapshot_with(&mut self, body: &[u8], tell: &mut dyn FnMut(Change)) -> Result<(), DecodeError> {
                self.snapshot_with(body, tell)
            }

            fn patch_with(&mut self, body: &[u8], tell: &mut dyn FnMut(Change)) -> Result<(), DecodeError> {
                self.patch_with(body, tell)
            }
        }
    )*};
}

change_mirrors! { DynamicMirror JsonMirror }

impl<T: State + Default> Mirror for playfield_state::Mirror<T> {
    type State = T;

    fn state(&self) -> &T {
        self.state()
    }

    fn digest(&self) -> Option<u64> {
        Some(self.digest())
    }

    fn watcher(&self, player: PlayerId) -> Option<Box<dyn ChangeMirror>> {
        Some(Box::new(DynamicMirror::new(&T::schema(), player).ok()?))
    }

    fn snapshot(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        self.snapshot(body)
    }

    fn patch(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        self.patch(body)
    }
}

impl Mirror for JsonMirror {
    type State = serde_json::Value;

    fn state(&self) -> &serde_json::Value {
        self.state()
    }

    fn digest(&self) -> Option<u64> {
        Some(self.digest())
    }

    fn watcher(&self, _: PlayerId) -> Option<Box<dyn ChangeMirror>> {
        Some(Box::new(JsonMirror::of(self.format())))
    }

    fn snapshot(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        self.snapshot(body)
    }

    fn patch(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        self.patch(body)
    }
}
