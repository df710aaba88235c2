//! The client's side, typed.

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;

use crate::change::{Watch, copy_json};
use crate::{Change, Part, State};

/// A client's copy of a room's state, kept up to date by bodies in `packed`.
///
/// What the player may not see has its default value.
#[derive(Debug)]
pub struct Mirror<T> {
    state: T,
    /// A snapshot was applied, and since then every patch.
    has_copy: bool,
}

impl<T: State + Default> Mirror<T> {
    /// Whether this copy can report changes. If there is a field that only its owner or viewers see,
    /// other than a map of players' own entries, it reports none: it does not know whether that field
    /// is visible.
    pub const REPORTS: bool = T::REPORTS;

    /// Creates an empty copy.
    pub fn new() -> Self {
        Self { state: T::default(), has_copy: false }
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
        self.state = read(body)?;
        self.has_copy = true;
        Ok(())
    }

    /// Reads a snapshot like [`snapshot`](Self::snapshot), and reports how it differs from the copy
    /// that it replaces, if it [can](Self::REPORTS). The first snapshot reports nothing, nor does
    /// the first after a rejected patch.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot).
    pub fn snapshot_with(
        &mut self,
        body: &[u8],
        mut tell: impl FnMut(Change),
    ) -> Result<(), DecodeError> {
        let new = read(body)?;
        if std::mem::replace(&mut self.has_copy, true) && T::REPORTS {
            let mut watch = Watch::new(Some(&mut tell));
            watch.replaced_as::<T>(&copy_json(&self.state), &copy_json(&new));
        }
        self.state = new;
        Ok(())
    }

    /// Applies a patch. The caller must ensure that it starts at the copy's version.
    ///
    /// # Errors
    /// If the body doesn't match this state's schema or this copy. Its changes so far can't be
    /// undone, so the copy is reset to the default until the next snapshot.
    pub fn patch(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        self.apply(body, &mut Watch::idle())
    }

    /// Applies a patch like [`patch`](Self::patch), and reports what changed, place by place, if it
    /// [can](Self::REPORTS).
    ///
    /// # Errors
    /// As [`patch`](Self::patch). More may have changed than was reported before the error.
    pub fn patch_with(
        &mut self,
        body: &[u8],
        mut tell: impl FnMut(Change),
    ) -> Result<(), DecodeError> {
        let tell: &mut dyn FnMut(Change) = &mut tell;
        self.apply(body, &mut Watch::new(T::REPORTS.then_some(tell)))
    }

    fn apply(&mut self, body: &[u8], watch: &mut Watch<'_>) -> Result<(), DecodeError> {
        let mut reader = Reader::new(body);
        let read = self
            .state
            .read_patch(&mut reader, Part::Shared, watch)
            .and_then(|()| read_own(&mut self.state, reader, watch));
        if read.is_err() {
            *self = Self::new();
        }
        read
    }
}

impl<T: State + Default> Default for Mirror<T> {
    fn default() -> Self {
        Self::new()
    }
}

fn read<T: State>(body: &[u8]) -> Result<T, DecodeError> {
    let mut reader = Reader::new(body);
    let mut state = T::read_full(&mut reader, Part::Shared)?;
    read_own(&mut state, reader, &mut Watch::idle())?;
    Ok(state)
}

/// The second part of a body is present if bytes are left.
fn read_own<T: State>(
    state: &mut T,
    mut reader: Reader<'_>,
    watch: &mut Watch<'_>,
) -> Result<(), DecodeError> {
    if !reader.is_empty() {
        state.read_patch(&mut reader, Part::Owned, watch)?;
    }
    reader.finish()
}
