//! The room as a client has it: a copy of the state, and all events so far.

use std::io;

use playfield_state::{Data, Mirror};
use playfield_wire::reader::Reader;

use super::server::{Clock, Struck};
use crate::harness::fleet::wrong;

/// A copy, and the last event.
#[derive(Default)]
pub(super) struct History {
    copy: Mirror<Clock>,
    /// Of the copy.
    pub(super) version: u64,
    /// Of the last event.
    sequence: u64,
    /// The hour of the last event.
    hour: u64,
    /// The same, when the connection was cut.
    hour_at_cut: u64,
}

impl History {
    pub(super) fn snapshot(&mut self, version: u64, body: &[u8]) -> io::Result<()> {
        self.copy.snapshot(body).map_err(io::Error::other)?;
        self.version = version;
        self.check_copy()
    }

    pub(super) fn patch(&mut self, base: u64, version: u64, body: &[u8]) -> io::Result<()> {
        if base != self.version {
            return Err(wrong(&format!("a patch of {base} came to {}", self.version)));
        }
        self.copy.patch(body).map_err(io::Error::other)?;
        self.version = version;
        self.check_copy()
    }

    /// The digest that the copy of this version should have.
    pub(super) fn check(&self, version: u64, digest: u64) -> io::Result<()> {
        if version == self.version && self.copy.digest() == digest {
            return Ok(());
        }
        Err(wrong(&format!("the digest of version {version} is not that of {}", self.version)))
    }

    /// Each event has the number and the hour after those of the one before.
    pub(super) fn event(&mut self, sequence: u64, payload: &[u8]) -> io::Result<()> {
        let Struck { hour } =
            Struck::decode(&mut Reader::new(payload)).map_err(io::Error::other)?;
        let is_next = sequence == self.sequence + 1;
        if !is_next || (self.sequence > 0 && hour != self.hour + 1) {
            let last = (self.sequence, self.hour);
            return Err(wrong(&format!("event {sequence} of hour {hour} came after {last:?}")));
        }
        (self.sequence, self.hour) = (sequence, hour);
        Ok(())
    }

    /// The connection is cut.
    pub(super) fn cut(&mut self) {
        self.hour_at_cut = self.hour;
    }

    /// Returns whether everything has arrived that the room did up to this hour.
    pub(super) fn reaches(&self, hour: u64) -> bool {
        self.hour >= hour && self.copy.state().hour >= hour
    }

    /// Returns the number of events that the room sent from the cut up to this hour.
    pub(super) fn events_since_cut(&self, hour: u64) -> u64 {
        hour.saturating_sub(self.hour_at_cut)
    }

    /// The copy must be one that the room has had.
    fn check_copy(&self) -> io::Result<()> {
        let Clock { hour, mixed, .. } = *self.copy.state();
        if mixed == Clock::mix(hour) {
            return Ok(());
        }
        Err(wrong(&format!("the copy is wrong: hour {hour}, and {mixed}")))
    }
}

#[cfg(test)]
mod tests {
    use playfield_state::Data;

    use super::{History, Struck};

    fn struck(hour: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        Struck { hour }.encode(&mut bytes);
        bytes
    }

    #[test]
    fn events_must_follow_each_other_by_number_and_by_hour() {
        let mut history = History::default();
        history.event(1, &struck(7)).unwrap();
        history.event(2, &struck(8)).unwrap();
        for (sequence, hour) in [(2, 8), (3, 8), (3, 10), (4, 9)] {
            assert!(history.event(sequence, &struck(hour)).is_err(), "{sequence}, {hour}");
        }
        history.event(3, &struck(9)).unwrap();
    }

    #[test]
    fn without_what_happened_meanwhile_nothing_is_reached() {
        let mut history = History::default();
        history.event(1, &struck(1)).unwrap();
        history.cut();
        assert!(!history.reaches(2));
        assert_eq!(history.events_since_cut(2), 1);
        // The event alone is not enough: the copy lacks the change.
        history.event(2, &struck(2)).unwrap();
        assert!(!history.reaches(2));
    }
}
