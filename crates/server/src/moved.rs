//! Sessions that leave for other nodes of the cluster, and those that have come from there.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::memory::shrink_map;

/// The place of a session that has left its shard for another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whereabouts {
    /// Frozen: the session goes on there or here.
    OnItsWay,
    /// Goes on at the node in this slot.
    At(u16),
}

/// The sessions of a node that have moved. Their clients have tokens of the node that they left
/// until they are back.
#[derive(Debug, Default)]
pub(crate) struct Moved(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    left: HashMap<u64, Whereabouts>,
    /// Sessions that have arrived elsewhere, by the time at which no client comes for them any more.
    forgotten_at: VecDeque<(Duration, Vec<u64>)>,
    came: HashSet<u64>,
}

impl Moved {
    /// Sessions are about to be frozen.
    pub(crate) fn leave(&self, sessions: &[u64]) {
        let mut inner = self.lock();
        for session in sessions {
            inner.came.remove(session);
            inner.left.insert(*session, Whereabouts::OnItsWay);
        }
    }

    /// Sessions that have left go on at the node in this slot. After `until`, nobody comes for them
    /// by a token of this node.
    pub(crate) fn arrived(&self, sessions: &[u64], slot: u16, now: Duration, until: Duration) {
        let mut inner = self.lock();
        inner.forget(now);
        for session in sessions {
            inner.left.insert(*session, Whereabouts::At(slot));
        }
        inner.forgotten_at.push_back((until, sessions.to_vec()));
    }

    /// Sessions go on here: they have come, or are back.
    pub(crate) fn come(&self, sessions: &[u64]) {
        let mut inner = self.lock();
        for session in sessions {
            inner.left.remove(session);
            inner.came.insert(*session);
        }
    }

    /// A session has ended, or moves.
    pub(crate) fn ended(&self, session: u64) {
        let mut inner = self.lock();
        inner.came.remove(&session);
    }

    /// Returns whether a session has come from another node.
    pub(crate) fn has_come(&self, session: u64) -> bool {
        self.lock().came.contains(&session)
    }

    /// The place of a session that has left; `None` if none has.
    pub(crate) fn place_of(&self, session: u64) -> Option<Whereabouts> {
        self.lock().left.get(&session).copied()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here can panic half-way through a change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn forget(&mut self, now: Duration) {
        while self.forgotten_at.front().is_some_and(|(until, _)| *until <= now)
            && let Some((_, sessions)) = self.forgotten_at.pop_front()
        {
            for session in sessions {
                if matches!(self.left.get(&session), Some(Whereabouts::At(_))) {
                    self.left.remove(&session);
                }
            }
        }
        shrink_map(&mut self.left);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Moved, Whereabouts};

    #[test]
    fn a_session_is_on_its_way_then_there_and_then_forgotten() {
        let second = Duration::from_secs(1);
        let moved = Moved::default();
        moved.leave(&[1, 2]);
        assert_eq!(moved.place_of(1), Some(Whereabouts::OnItsWay));
        moved.arrived(&[1], 7, second, 3 * second);
        assert_eq!(moved.place_of(1), Some(Whereabouts::At(7)));
        moved.come(&[2]);
        assert_eq!(moved.place_of(2), None);
        assert!(moved.has_come(2) && !moved.has_come(1));
        moved.arrived(&[], 7, 2 * second, 9 * second);
        assert_eq!(moved.place_of(1), Some(Whereabouts::At(7)));
        moved.arrived(&[], 7, 3 * second, 9 * second);
        assert_eq!(moved.place_of(1), None);
        moved.leave(&[2]);
        assert!(!moved.has_come(2));
    }

    #[test]
    fn a_session_that_leaves_again_is_not_forgotten_on_its_way() {
        let second = Duration::from_secs(1);
        let moved = Moved::default();
        moved.leave(&[1]);
        moved.arrived(&[1], 7, second, 2 * second);
        moved.come(&[1]);
        moved.leave(&[1]);
        moved.arrived(&[], 7, 2 * second, 9 * second);
        assert_eq!(moved.place_of(1), Some(Whereabouts::OnItsWay));
    }
}
