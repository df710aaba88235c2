//! The way clients ask for rooms: all at once, or one room after the other. A client that is
//! refused for lateness asks again when the node says so.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The rooms that are asked for, and the answers.
pub(in crate::suites) struct Asking {
    /// The number of rooms asked for so far.
    pub(super) asked: usize,
    /// When the next one is, and the time between two.
    next: Option<(Instant, Duration)>,
    /// Clients that were refused, and when they ask again.
    again: VecDeque<(Instant, usize)>,
    /// The number of times that a room was refused.
    pub(in crate::suites) rooms_refused: u64,
    /// The number of times that a player of a room was refused.
    pub(in crate::suites) players_refused: u64,
}

impl Asking {
    /// So many rooms are asked for as soon as their clients are connected.
    pub(super) fn new(at_once: usize) -> Self {
        Self {
            asked: at_once,
            next: None,
            again: VecDeque::new(),
            rooms_refused: 0,
            players_refused: 0,
        }
    }

    /// From now on a further room is asked for at this interval.
    pub(in crate::suites) fn go_on(&mut self, every: Duration) {
        self.next = Some((Instant::now(), every));
    }

    /// No more is asked for, nor asked for again.
    pub(in crate::suites) fn end(&mut self) {
        (self.next, self.again) = (None, VecDeque::new());
    }

    /// A client was refused, and may ask again after this time.
    pub(super) fn refused(&mut self, client: usize, is_for_room: bool, again_at: Instant) {
        let count = if is_for_room { &mut self.rooms_refused } else { &mut self.players_refused };
        *count += 1;
        // The node names the same time to everyone, so the first to be refused is the first again.
        self.again.push_back((again_at, client));
    }

    /// The room that is asked for now, if one is due.
    pub(super) fn next_room(&mut self, now: Instant, rooms: usize) -> Option<usize> {
        let (at, every) = self.next.as_mut()?;
        if *at > now || self.asked == rooms {
            return None;
        }
        *at += *every;
        self.asked += 1;
        Some(self.asked - 1)
    }

    /// A client that asks again now, if one is due.
    pub(super) fn next_again(&mut self, now: Instant) -> Option<usize> {
        let &(at, client) = self.again.front()?;
        (at <= now).then(|| self.again.pop_front()).map(|_| client)
    }

    /// Returns whether something will be due.
    pub(super) fn goes_on(&self) -> bool {
        self.next.is_some() || !self.again.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::Asking;

    const EVERY: Duration = Duration::from_millis(100);

    #[test]
    fn rooms_are_asked_for_at_an_interval_until_there_are_no_more() {
        let mut asking = Asking::new(3);
        assert_eq!(asking.next_room(Instant::now(), 5), None, "nobody said so");
        asking.go_on(EVERY);
        let now = Instant::now();
        assert_eq!(asking.next_room(now, 5), Some(3));
        assert_eq!(asking.next_room(now, 5), None, "too soon");
        assert_eq!(asking.next_room(now + EVERY, 5), Some(4));
        assert_eq!(asking.next_room(now + EVERY * 9, 5), None, "that were all");
    }

    #[test]
    fn who_is_refused_asks_again_when_it_may() {
        let mut asking = Asking::new(1);
        let now = Instant::now();
        asking.refused(7, true, now + EVERY);
        asking.refused(9, false, now + EVERY * 2);
        assert_eq!((asking.rooms_refused, asking.players_refused), (1, 1));
        assert_eq!(asking.next_again(now), None);
        assert_eq!(asking.next_again(now + EVERY), Some(7));
        assert_eq!(asking.next_again(now + EVERY), None);
        asking.end();
        assert_eq!((asking.next_again(now + EVERY * 2), asking.goes_on()), (None, false));
    }
}
