//! Work that waits, in a line for each address. Addresses have [turns](crate::shard::turns), so
//! that each gets the same share of the time, whatever its work costs and however many connections
//! it has.

use std::collections::{HashMap, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use crate::addresses::Address;
use crate::memory::shrink_map;
use crate::shard::turns::Turns;

/// An address, by its place in memory, which no other has while it is held.
#[derive(Clone)]
pub(in crate::shard) struct Host(pub(in crate::shard) Arc<Address>);

impl PartialEq for Host {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Host {}

impl Hash for Host {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

/// By how much an address that took nothing lately goes before others: more than is taken at once.
const HEAD_START: Duration = Duration::from_millis(1);

/// The lines.
pub(in crate::shard) struct Lines<T> {
    turns: Turns<Host>,
    lines: HashMap<Host, Line<T>>,
    len: usize,
}

/// The waiting work of one address.
struct Line<T> {
    first: VecDeque<T>,
    /// Has every second turn.
    last: VecDeque<T>,
    /// Whether the last turn was one of these.
    is_last: bool,
}

/// The end of a line at which something is added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::shard) enum End {
    /// Before all that took much time lately.
    Front,
    Back,
}

impl<T> Default for Lines<T> {
    fn default() -> Self {
        Self { turns: Turns::with_head_start(HEAD_START), lines: HashMap::new(), len: 0 }
    }
}

impl<T> Default for Line<T> {
    fn default() -> Self {
        Self { first: VecDeque::new(), last: VecDeque::new(), is_last: true }
    }
}

impl<T> Line<T> {
    fn is_empty(&self) -> bool {
        self.first.is_empty() && self.last.is_empty()
    }

    /// Both ends have their turns, or one could keep the other waiting for ever.
    fn next(&mut self) -> Option<T> {
        self.is_last = !self.is_last && !self.last.is_empty();
        if self.is_last || self.first.is_empty() {
            self.last.pop_front()
        } else {
            self.first.pop_front()
        }
    }
}

impl<T> Lines<T> {
    /// How many wait.
    pub(in crate::shard) fn len(&self) -> usize {
        self.len
    }

    pub(in crate::shard) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(in crate::shard) fn push(&mut self, host: Host, end: End, what: T) {
        self.turns.wait(&host);
        let line = self.lines.entry(host).or_default();
        match end {
            End::Front => line.first.push_back(what),
            End::Back => line.last.push_back(what),
        }
        self.len += 1;
    }

    /// Takes out the next one. What it takes is charged to its address by [`took`](Self::took).
    pub(in crate::shard) fn next(&mut self) -> Option<T> {
        self.took(Duration::ZERO);
        let host = self.turns.next()?;
        let next = self.lines.get_mut(&host)?.next()?;
        self.len -= 1;
        Some(next)
    }

    /// The one that was taken out took this long, if that was not said yet.
    pub(in crate::shard) fn took(&mut self, time: Duration) {
        let Some(host) = self.turns.serving().cloned() else { return };
        let waits = self.lines.get(&host).is_some_and(|line| !line.is_empty());
        if !waits {
            self.lines.remove(&host);
            shrink_map(&mut self.lines);
        }
        self.turns.took(time, waits);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::{End, Host, Lines};
    use crate::addresses::{Address, Addresses};
    use crate::config::Config;

    fn addresses<const N: usize>() -> [Arc<Address>; N] {
        let addresses = Addresses::new(&Config::default());
        std::array::from_fn(|at| addresses.at([10, 0, 0, at as u8].into(), Duration::ZERO))
    }

    #[test]
    fn addresses_share_time_and_each_has_its_front_and_back_in_turn() {
        let [crowd, alone] = addresses();
        let mut lines = Lines::default();
        for number in 0..4 {
            lines.push(Host(Arc::clone(&crowd)), End::Back, number);
        }
        for number in [10, 11] {
            lines.push(Host(Arc::clone(&crowd)), End::Front, number);
        }
        lines.push(Host(Arc::clone(&alone)), End::Back, 100);
        assert_eq!(lines.len(), 7);
        let mut served = Vec::new();
        while let Some(next) = lines.next() {
            lines.took(Duration::from_micros(100));
            served.push(next);
        }
        assert_eq!(served, [10, 100, 0, 11, 1, 2, 3]);
        assert!(lines.is_empty() && lines.lines.is_empty() && lines.turns.is_empty());
    }

    #[test]
    fn one_that_comes_goes_before_an_address_that_took_much() {
        let [crowd, alone] = addresses();
        let mut lines = Lines::default();
        for number in 0..100 {
            lines.push(Host(Arc::clone(&crowd)), End::Front, number);
        }
        for number in 0..10 {
            assert_eq!(lines.next(), Some(number));
            lines.took(Duration::from_micros(500));
        }
        lines.push(Host(Arc::clone(&alone)), End::Front, 1000);
        // It is gone meanwhile, and takes nothing.
        assert_eq!((lines.next(), lines.next()), (Some(1000), Some(10)));
    }
}
