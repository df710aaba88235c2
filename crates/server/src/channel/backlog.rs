//! Publications that wait for a subscriber that reads too slowly.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::channel::{Change, Publication, Slow};

/// Publications and a change of the members that wait for one subscriber, in order.
#[derive(Debug, Default)]
pub struct Backlog {
    publications: VecDeque<Publication>,
    /// So many at the front were promised, and are not dropped.
    promised: usize,
    change: Option<Arc<Change>>,
    /// Of the publications.
    bytes: usize,
}

/// The outcome of adding a publication to a backlog.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// The publication waits. Older ones may have been dropped to make space.
    Waits {
        /// The number of dropped publications.
        dropped: usize,
    },
    /// The backlog is full, and the channel's rule says to end the subscription.
    Full,
}

/// The next item of a backlog.
#[derive(Debug)]
pub enum Waiting<'a> {
    /// A publication.
    Publication(&'a Publication),
    /// A change of the members.
    Change(&'a Change),
}

impl Backlog {
    /// A backlog of the publications that a subscriber was promised when it came back.
    #[must_use]
    pub fn promised(publications: Vec<Publication>) -> Self {
        let bytes = publications.iter().map(Publication::memory).sum();
        let promised = publications.len();
        Self { publications: publications.into(), promised, change: None, bytes }
    }

    /// A publication has to wait. More than `queue_max` or more than `bytes_max` do not, but one
    /// does in any case.
    pub fn push(
        &mut self,
        publication: Publication,
        slow: Slow,
        queue_max: usize,
        bytes_max: usize,
    ) -> Pushed {
        let queue_max = if slow == Slow::KeepLatest { 1 } else { queue_max.max(1) };
        let more = publication.memory();
        let mut dropped = 0;
        while self.publications.len() > self.promised
            && (self.publications.len() - self.promised >= queue_max
                || self.bytes + more > bytes_max)
        {
            match slow {
                Slow::DropOldest | Slow::KeepLatest => {
                    let oldest = self.publications.remove(self.promised);
                    self.bytes -= oldest.map_or(0, |oldest| oldest.memory());
                    dropped += 1;
                }
                Slow::Unsubscribe | Slow::Disconnect => return Pushed::Full,
            }
        }
        self.bytes += more;
        self.publications.push_back(publication);
        Pushed::Waits { dropped }
    }

    /// A change of the members has to wait. It takes the place of the one before: the subscriber
    /// sees by its number that it missed some.
    pub fn push_change(&mut self, change: &Arc<Change>) {
        self.change = Some(Arc::clone(change));
    }

    /// The next item; `None` if the backlog is empty.
    #[must_use]
    pub fn first(&self) -> Option<Waiting<'_>> {
        let publication = self.publications.front().map(Waiting::Publication);
        publication.or_else(|| self.change.as_deref().map(Waiting::Change))
    }

    /// Takes out what [comes next](Self::first).
    pub fn pop(&mut self) {
        if let Some(publication) = self.publications.pop_front() {
            self.bytes -= publication.memory();
            self.promised = self.promised.saturating_sub(1);
        } else {
            self.change = None;
        }
    }

    /// Returns the approximate memory that the publications take, in bytes, if nobody else waits
    /// for them.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.publications.is_empty() && self.change.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::{Backlog, Pushed, Waiting};
    use crate::channel::{Payload, Publication, Slow};

    fn publication(offset: u64) -> Publication {
        Publication { offset, user: None, payload: Payload::Bytes((*b"").into()) }
    }

    fn offsets(mut backlog: Backlog) -> Vec<u64> {
        let next = || match backlog.first()? {
            Waiting::Publication(&Publication { offset, .. }) => {
                backlog.pop();
                Some(offset)
            }
            Waiting::Change(_) => None,
        };
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn each_policy_keeps_what_it_says_at_its_limit_and_one_past_it() {
        let pushed = |slow, count: u64| {
            let mut backlog = Backlog::default();
            let last = (1..=count)
                .map(|offset| backlog.push(publication(offset), slow, 3, 1 << 20))
                .last();
            (last.unwrap(), offsets(backlog))
        };
        let waits = |dropped| Pushed::Waits { dropped };
        assert_eq!(pushed(Slow::DropOldest, 3), (waits(0), vec![1, 2, 3]));
        assert_eq!(pushed(Slow::DropOldest, 4), (waits(1), vec![2, 3, 4]));
        assert_eq!(pushed(Slow::KeepLatest, 1), (waits(0), vec![1]));
        assert_eq!(pushed(Slow::KeepLatest, 2), (waits(1), vec![2]));
        for slow in [Slow::Unsubscribe, Slow::Disconnect] {
            assert_eq!(pushed(slow, 3), (waits(0), vec![1, 2, 3]));
            assert_eq!(pushed(slow, 4), (Pushed::Full, vec![1, 2, 3]));
        }
    }

    #[test]
    fn it_is_limited_in_bytes_but_one_waits_in_any_case() {
        let bytes = publication(1).memory();
        let mut backlog = Backlog::default();
        for offset in 1..=4 {
            backlog.push(publication(offset), Slow::DropOldest, 10, 3 * bytes);
        }
        assert_eq!((backlog.bytes(), offsets(backlog)), (3 * bytes, vec![2, 3, 4]));
        let mut backlog = Backlog::default();
        let waits = |dropped| Pushed::Waits { dropped };
        assert_eq!(backlog.push(publication(1), Slow::Unsubscribe, 10, 0), waits(0));
        assert_eq!(backlog.push(publication(2), Slow::Unsubscribe, 10, 0), Pushed::Full);
        assert_eq!(backlog.push(publication(2), Slow::DropOldest, 10, 0), waits(1));
    }

    #[test]
    fn what_was_promised_is_not_dropped() {
        let mut backlog = Backlog::promised((1..=5).map(publication).collect());
        for offset in 6..=9 {
            backlog.push(publication(offset), Slow::DropOldest, 2, 1 << 20);
        }
        assert_eq!(offsets(backlog), [1, 2, 3, 4, 5, 8, 9]);
    }
}
