//! The tickets that were used, until they expire.

use std::collections::{BTreeMap, HashSet};

/// Identifies a ticket: the first bytes of a hash.
pub(crate) type Mark = [u8; 16];

/// The bytes of a ticket in [`Used::to_bytes`].
const ENTRY_BYTES: usize = 24;

/// The tickets that were used and have not expired.
#[derive(Debug, Default)]
pub(crate) struct Used {
    marks: HashSet<Mark>,
    /// The marks by when they expire.
    by_time: BTreeMap<u64, Vec<Mark>>,
}

/// Why a ticket can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotUsed {
    /// The ticket was used before.
    Again,
    /// There are as many as may be.
    Full,
}

impl Used {
    /// Uses a ticket that is valid until `expires`.
    pub(crate) fn take(
        &mut self,
        mark: Mark,
        expires: u64,
        now: u64,
        most: usize,
    ) -> Result<(), NotUsed> {
        self.expire(now);
        if self.marks.contains(&mark) {
            return Err(NotUsed::Again);
        }
        if self.marks.len() >= most {
            return Err(NotUsed::Full);
        }
        self.marks.insert(mark);
        self.by_time.entry(expires).or_default().push(mark);
        Ok(())
    }

    /// Makes a ticket valid again.
    pub(crate) fn give_back(&mut self, mark: Mark, expires: u64) {
        self.marks.remove(&mark);
        if let Some(marks) = self.by_time.get_mut(&expires) {
            marks.retain(|other| *other != mark);
            if marks.is_empty() {
                self.by_time.remove(&expires);
            }
        }
    }

    /// All of them, as bytes: when each expires, and its mark.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.marks.len() * ENTRY_BYTES);
        for (expires, marks) in &self.by_time {
            for mark in marks {
                bytes.extend_from_slice(&expires.to_le_bytes());
                bytes.extend_from_slice(mark);
            }
        }
        bytes
    }

    /// Adds those of [`to_bytes`](Self::to_bytes).
    pub(crate) fn add_bytes(&mut self, bytes: &[u8]) {
        let (entries, _) = bytes.as_chunks::<ENTRY_BYTES>();
        for entry in entries {
            let (Some((expires, _)), Some((_, mark))) =
                (entry.split_first_chunk::<8>(), entry.split_last_chunk::<16>())
            else {
                return;
            };
            if self.marks.insert(*mark) {
                self.by_time.entry(u64::from_le_bytes(*expires)).or_default().push(*mark);
            }
        }
    }

    /// Forgets those that have expired.
    fn expire(&mut self, now: u64) {
        while let Some(entry) = self.by_time.first_entry()
            && *entry.key() <= now
        {
            for mark in entry.remove() {
                self.marks.remove(&mark);
            }
        }
        if self.marks.is_empty() && self.marks.capacity() > 1024 {
            self.marks = HashSet::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{NotUsed, Used};

    #[test]
    fn a_ticket_is_used_once_until_it_expires_and_full_is_not_forgetful() {
        let mut used = Used::default();
        assert_eq!(used.take([1; 16], 100, 0, 2), Ok(()));
        assert_eq!(used.take([1; 16], 100, 99, 2), Err(NotUsed::Again));
        assert_eq!(used.take([2; 16], 50, 0, 2), Ok(()));
        assert_eq!(used.take([3; 16], 100, 49, 2), Err(NotUsed::Full));
        assert_eq!(used.take([1; 16], 100, 49, 2), Err(NotUsed::Again));
        assert_eq!(used.take([3; 16], 100, 50, 2), Ok(()), "the second has expired");
        let mut next = Used::default();
        next.add_bytes(&used.to_bytes());
        next.add_bytes(b"something else");
        assert_eq!(next.take([1; 16], 100, 50, 2), Err(NotUsed::Again), "in another process");
        assert_eq!(next.to_bytes(), used.to_bytes());
        used.give_back([1; 16], 100);
        assert_eq!(used.take([1; 16], 100, 50, 2), Ok(()));
        assert_eq!(used.take([4; 16], 200, 100, 2), Ok(()));
        assert_eq!((used.marks.len(), used.by_time.len()), (1, 1));
    }
}
