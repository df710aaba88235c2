//! A client's copy of a room's state, whatever its type.

use playfield_state::{JsonMirror, State};
use playfield_wire::DecodeError;

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
    /// A body that isn't one of this state's, or doesn't fit this copy. The copy may then be half changed: only a
    /// snapshot mends it.
    fn patch(&mut self, body: &[u8]) -> Result<(), DecodeError>;
}

impl<T: State + Default> Mirror for playfield_state::Mirror<T> {
    type State = T;

    fn state(&self) -> &T {
        self.state()
    }

    fn digest(&self) -> Option<u64> {
        Some(self.digest())
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

    fn snapshot(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        self.snapshot(body)
    }

    fn patch(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        self.patch(body)
    }
}
