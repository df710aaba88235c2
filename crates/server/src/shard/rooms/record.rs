//! Messages in and out of a room, recorded while an operator looks.

use std::collections::VecDeque;
use std::time::Duration;

use playfield_room::recording::{Recorded, RecordedKind};
use playfield_state::{Format, PlayerId};

/// The time for which messages are recorded after the last look.
const RECORDED_FOR: Duration = Duration::from_secs(10);
/// The number of messages kept.
const RECORDED_MAX: usize = 200;

/// The last messages of a room.
#[derive(Debug, Default)]
pub(crate) struct Record {
    messages: VecDeque<Recorded>,
    count: u64,
    until: Duration,
}

impl Record {
    /// The recorded messages. Recording goes on for a while.
    pub(crate) fn look(&mut self, now: Duration) -> Vec<Recorded> {
        self.until = now.saturating_add(RECORDED_FOR);
        self.messages.iter().cloned().collect()
    }

    /// Returns whether nobody has looked for long, so that there is no use for it.
    pub(crate) fn is_over(&self, now: Duration) -> bool {
        now > self.until
    }

    #[cold]
    pub(crate) fn add(
        &mut self,
        at: Duration,
        player: PlayerId,
        format: Format,
        kind: RecordedKind,
        payload: &[u8],
    ) {
        if self.messages.len() == RECORDED_MAX {
            self.messages.pop_front();
        }
        self.count += 1;
        self.messages.push_back(Recorded::new(self.count, at, player, format, kind, payload));
    }
}

#[cfg(test)]
mod tests {
    use playfield_room::recording::RECORDED_PAYLOAD_BYTES_MAX;

    use super::*;

    #[test]
    fn it_keeps_the_last_messages_and_leaves_out_long_payloads() {
        let mut record = Record::default();
        let mut add = |payload: &[u8]| {
            let kind = RecordedKind::Event(0);
            record.add(Duration::ZERO, PlayerId(1), Format::Packed, kind, payload);
        };
        (0..RECORDED_MAX).for_each(|_| add(&[]));
        add(&[0; RECORDED_PAYLOAD_BYTES_MAX]);
        add(&[0; RECORDED_PAYLOAD_BYTES_MAX + 1]);
        let messages = record.look(Duration::ZERO);
        let (first, last) = (&messages[0], &messages[RECORDED_MAX - 1]);
        assert_eq!((messages.len(), first.number), (RECORDED_MAX, 3));
        assert_eq!(last.payload, None);
        assert_eq!(
            messages[RECORDED_MAX - 2].payload.as_ref().unwrap().len(),
            RECORDED_PAYLOAD_BYTES_MAX
        );
    }

    #[test]
    fn it_ends_when_nobody_looks() {
        let mut record = Record::default();
        record.look(Duration::from_secs(1));
        assert!(!record.is_over(Duration::from_secs(11)));
        assert!(record.is_over(Duration::from_millis(11_001)));
    }
}
