//! Commands that wait for their answers.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use playfield_cluster::{Key, Tag};
use tokio::time::Instant;

/// The time after which the outcome of a command is unknown.
const PATIENCE: Duration = Duration::from_secs(3);

/// A command that waits for its answer.
#[derive(Debug)]
pub(crate) enum Asked {
    Read { tag: Tag },
    Write { tag: Tag },
    List { tag: Tag, prefix: &'static str, filter: String, found: Vec<Key> },
}

impl Asked {
    pub(crate) fn tag(&self) -> Tag {
        match self {
            Self::Read { tag } | Self::Write { tag } | Self::List { tag, .. } => *tag,
        }
    }
}

/// Commands that wait, by the numbers of their requests, which are never used again.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    asked: HashMap<u64, Asked>,
    /// The requests in the order in which their time ends. Some of them were answered.
    ends: VecDeque<(Instant, u64)>,
    last: u64,
}

impl Pending {
    /// The number of the next request.
    pub(crate) fn next_number(&self) -> u64 {
        self.last + 1
    }

    pub(crate) fn insert(&mut self, now: Instant, asked: Asked) {
        self.last += 1;
        self.asked.insert(self.last, asked);
        self.ends.push_back((now + PATIENCE, self.last));
    }

    pub(crate) fn take(&mut self, number: u64) -> Option<Asked> {
        let asked = self.asked.remove(&number);
        while self.ends.front().is_some_and(|(_, number)| !self.asked.contains_key(number)) {
            self.ends.pop_front();
        }
        asked
    }

    /// A command whose time has ended.
    pub(crate) fn take_late(&mut self, now: Instant) -> Option<Asked> {
        while let Some(&(end, number)) = self.ends.front()
            && end <= now
        {
            self.ends.pop_front();
            if let Some(asked) = self.asked.remove(&number) {
                return Some(asked);
            }
        }
        None
    }

    /// All commands, in no order.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Asked> + '_ {
        self.ends.clear();
        self.asked.drain().map(|(_, asked)| asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_taken_once() {
        let mut pending = Pending::default();
        let now = Instant::now();
        let insert = |pending: &mut Pending, tag| {
            let number = pending.next_number();
            pending.insert(now, Asked::Read { tag });
            number
        };
        let first = insert(&mut pending, 1);
        insert(&mut pending, 2);
        let third = insert(&mut pending, 3);
        assert_eq!(pending.take(first).map(|asked| asked.tag()), Some(1));
        assert!(pending.take(first).is_none());
        assert_eq!(pending.take(third).map(|asked| asked.tag()), Some(3));
        assert_eq!(pending.ends.len(), 2, "the second one waits");

        assert!(pending.take_late(now + PATIENCE - Duration::from_millis(1)).is_none());
        assert_eq!(pending.take_late(now + PATIENCE).map(|asked| asked.tag()), Some(2));
        assert!(pending.take_late(now + PATIENCE).is_none());

        insert(&mut pending, 4);
        assert_eq!(pending.take_all().map(|asked| asked.tag()).collect::<Vec<_>>(), [4]);
        assert!(pending.take_late(now + PATIENCE).is_none());
    }
}
