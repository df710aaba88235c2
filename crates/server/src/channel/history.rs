//! The publications that a channel keeps.

use std::collections::VecDeque;
use std::time::Duration;

use crate::channel::frozen::KeptPart;
use crate::channel::{ChannelRule, Publication};

/// The last publications of a channel, without a gap up to the latest.
#[derive(Debug, Default)]
pub(crate) struct History {
    /// With the time at which each is forgotten.
    kept: VecDeque<(Duration, Publication)>,
    bytes: usize,
}

impl History {
    /// Keeps one more, by the limits of a rule. It is the latest, so if it is too large, nothing is
    /// kept.
    pub(crate) fn push(&mut self, now: Duration, rule: &ChannelRule, publication: Publication) {
        self.expire(now);
        self.bytes += publication.memory();
        self.kept.push_back((now.saturating_add(rule.history_age), publication));
        while self.kept.len() > rule.history_max || self.bytes > rule.history_bytes_max {
            self.forget();
        }
    }

    /// All that it keeps, for another process.
    pub(crate) fn parts(&self) -> Vec<KeptPart> {
        let part =
            |(ends, publication): &(Duration, Publication)| KeptPart::new(*ends, publication);
        self.kept.iter().map(part).collect()
    }

    /// Keeps what was kept in another process, the oldest first.
    pub(crate) fn go_on(&mut self, kept: impl Iterator<Item = (Duration, Publication)>) {
        for (ends, publication) in kept {
            self.bytes += publication.memory();
            self.kept.push_back((ends, publication));
        }
    }

    /// Forgets the oldest.
    pub(crate) fn forget(&mut self) {
        if let Some((_, publication)) = self.kept.pop_front() {
            self.bytes -= publication.memory();
        }
        if self.kept.is_empty() {
            self.kept = VecDeque::new();
        }
    }

    /// Forgets what is too old.
    pub(crate) fn expire(&mut self, now: Duration) {
        while self.kept.front().is_some_and(|(ends, _)| *ends <= now) {
            self.forget();
        }
    }

    /// When the oldest is too old.
    pub(crate) fn expires_at(&self) -> Option<Duration> {
        self.kept.front().map(|(ends, _)| *ends)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Returns the approximate memory it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The publications after this offset, the oldest first.
    pub(crate) fn after(&self, offset: u64) -> impl Iterator<Item = &Publication> {
        let start = self.kept.partition_point(|(_, publication)| publication.offset <= offset);
        self.kept.range(start..).map(|(_, publication)| publication)
    }

    /// The offset of the oldest.
    pub(crate) fn first(&self) -> Option<u64> {
        self.kept.front().map(|(_, publication)| publication.offset)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::History;
    use crate::channel::{ChannelRule, Payload, Publication};

    fn publication(offset: u64, bytes: usize) -> Publication {
        let payload = Payload::Bytes(vec![0; bytes].into());
        Publication { offset, user: None, payload }
    }

    fn offsets(history: &History, after: u64) -> Vec<u64> {
        history.after(after).map(|publication| publication.offset).collect()
    }

    #[test]
    fn it_is_limited_in_number_age_and_bytes() {
        let second = Duration::from_secs(1);
        let rule = ChannelRule::new("a").history(3, 10 * second).history_bytes(2000);
        let mut history = History::default();
        for offset in 1..=4 {
            history.push(second * offset as u32, &rule, publication(offset, 100));
        }
        assert_eq!(offsets(&history, 0), [2, 3, 4]);
        assert_eq!(offsets(&history, 3), [4]);
        assert_eq!(history.expires_at(), Some(12 * second));
        history.expire(12 * second);
        assert_eq!(offsets(&history, 0), [3, 4]);
        history.push(12 * second, &rule, publication(5, 1900));
        assert_eq!(offsets(&history, 0), [5], "the others are beyond the bytes");
        history.push(12 * second, &rule, publication(6, 2000));
        assert!(history.is_empty() && history.bytes() == 0, "it can't be kept, nor any before it");
    }
}
