//! The fences of a store that only one process uses.

use std::collections::HashMap;

use crate::{Fence, StoreError};

/// The newest fence of each save that is open. A [`Store`](crate::Store) that only one process uses
/// needs no others: what an earlier process has handed out ended with it.
///
/// ```
/// use playfield_room::Fences;
///
/// let mut fences = Fences::default();
/// let first = fences.open("board", "42");
/// let second = fences.open("board", "42");
/// assert!(fences.check("board", "42", first).is_err());
/// assert_eq!(fences.check("board", "42", second), Ok(()));
/// ```
#[derive(Debug, Default)]
pub struct Fences {
    /// The last fence of any save: one that is forgotten is not handed out again.
    last: u64,
    open: HashMap<(Box<str>, Box<str>), Fence>,
}

impl Fences {
    /// Hands out a fence, above all that were.
    pub fn open(&mut self, room_type: &str, key: &str) -> Fence {
        self.last += 1;
        let fence = Fence(self.last);
        self.open.insert(named(room_type, key), fence);
        fence
    }

    /// Checks that a fence is the newest one of a save, and not closed.
    ///
    /// # Errors
    /// [`StoreErrorKind::Fenced`](crate::StoreErrorKind::Fenced).
    pub fn check(&self, room_type: &str, key: &str, fence: Fence) -> Result<(), StoreError> {
        match self.open.get(&named(room_type, key)) {
            Some(newest) if *newest == fence => Ok(()),
            _ => Err(StoreError::fenced(room_type, key, fence)),
        }
    }

    /// Forgets a save, if this is its newest fence.
    pub fn close(&mut self, room_type: &str, key: &str, fence: Fence) {
        if self.check(room_type, key, fence).is_ok() {
            self.open.remove(&named(room_type, key));
        }
    }
}

fn named(room_type: &str, key: &str) -> (Box<str>, Box<str>) {
    (room_type.into(), key.into())
}

#[cfg(test)]
mod tests {
    use super::{Fence, Fences};

    #[test]
    fn what_is_closed_is_forgotten_and_its_fence_is_never_handed_out_again() {
        let mut fences = Fences::default();
        let first = fences.open("t", "1");
        fences.close("t", "1", first);
        assert!(fences.open.is_empty());
        assert!(fences.check("t", "1", first).is_err());
        let second = fences.open("t", "1");
        assert!(second > first);
        // One that has been replaced closes nothing.
        fences.close("t", "1", first);
        assert_eq!(fences.check("t", "1", second), Ok(()));
        assert!(fences.check("t", "1", Fence(99)).is_err());
        assert!(fences.check("t", "2", second).is_err());
    }
}
