//! The client's side, typed.

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;

use crate::{Part, State};

/// A client's copy of a room's state, kept up to date by bodies in `packed`.
///
/// What the player may not see has its default value.
#[derive(Debug)]
pub struct Mirror<T> {
    state: T,
}

impl<T: State + Default> Mirror<T> {
    /// Creates an empty copy.
    pub fn new() -> Self {
        Self { state: T::default() }
    }

    /// The copy.
    pub fn state(&self) -> &T {
        &self.state
    }

    /// The digest. If the copy is right, it equals the server's.
    pub fn digest(&self) -> u64 {
        self.state.digest(Part::All)
    }

    /// Replaces the copy by a snapshot.
    ///
    /// # Errors
    /// If the body doesn't match this state's schema. The copy is unchanged.
    pub fn snapshot(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        let mut reader = Reader::new(body);
        let mut state = T::read_full(&mut reader, Part::Shared)?;
        read_own(&mut state, reader)?;
        self.state = state;
        Ok(())
    }

    /// Applies a patch. The caller must ensure that it starts at the copy's version.
    ///
    /// # Errors
    /// If the body doesn't match this state's schema or this copy. Its changes so far can't be
    /// undone, so the copy is reset to the default until the next snapshot.
    pub fn patch(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        let mut reader = Reader::new(body);
        let read = self
            .state
            .read_patch(&mut reader, Part::Shared)
            .and_then(|()| read_own(&mut self.state, reader));
        if read.is_err() {
            self.state = T::default();
        }
        read
    }
}

impl<T: State + Default> Default for Mirror<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// The second part of a body is present if bytes are left.
fn read_own<T: State>(state: &mut T, mut reader: Reader<'_>) -> Result<(), DecodeError> {
    if !reader.is_empty() {
        state.read_patch(&mut reader, Part::Owned)?;
    }
    reader.finish()
}
