//! Whose turn it is, among parties that wait for the same time: start-time fair queueing (Goyal,
//! Vin, Cheng: *Start-time Fair Queueing*, SIGCOMM 1996). Of parties that wait all the time, each
//! gets the same share, whatever a turn costs; one that comes goes before those that are ahead.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::time::Duration;

use crate::memory::{PLACES_KEPT, shrink_map};

/// The parties that wait, and what others are ahead by.
pub(crate) struct Turns<P> {
    /// The virtual time, in nanoseconds: how much a party has got that has always waited.
    ///
    /// It is at least the start of the turn that is under way. It also goes on by what would be the
    /// share of one party more in what a turn took: else a party that is ahead would never have its
    /// turn, as long as others come that had none before.
    now: u64,
    parties: HashMap<P, Party>,
    /// The parties that wait.
    order: BTreeMap<Start, P>,
    serving: Option<(P, u64)>,
    /// How far one that has not waited goes before those that have, in nanoseconds.
    head_start: u64,
    /// How many starts were given.
    given: u64,
}

/// When a turn starts in virtual time; then the order in which the parties came.
type Start = (u64, u64);

struct Party {
    /// When its last turn ended, in virtual time.
    end: u64,
    /// When its next one starts, if it waits.
    start: Option<Start>,
}

impl<P> Default for Turns<P> {
    fn default() -> Self {
        Self::with_head_start(Duration::ZERO)
    }
}

impl<P> Turns<P> {
    /// Turns in which a party that took nothing lately goes before those that are ahead by less than
    /// `time`: what is saved up by not waiting. Among many that always wait, one that seldom does
    /// has its turn at once instead of after one of each of them.
    pub(crate) fn with_head_start(time: Duration) -> Self {
        let head_start = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Self {
            now: head_start,
            parties: HashMap::new(),
            order: BTreeMap::new(),
            serving: None,
            head_start,
            given: 0,
        }
    }

    /// The start of a party that took nothing lately.
    fn first_start(&self) -> u64 {
        self.now.saturating_sub(self.head_start)
    }
}

impl<P: Clone + Eq + Hash> Turns<P> {
    /// Whether nobody waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// A party waits, unless it does already. One whose turn is under way waits when that ends, if
    /// [`took`](Self::took) says so.
    pub(crate) fn wait(&mut self, party: &P) {
        if self.is_serving(party) {
            return;
        }
        if self.parties.len() >= PLACES_KEPT && self.parties.len() == self.parties.capacity() {
            let first = self.first_start();
            self.parties.retain(|_, party| party.start.is_some() || party.end > first);
            shrink_map(&mut self.parties);
        }
        let first = self.first_start();
        let known = self.parties.entry(party.clone()).or_insert(Party { end: first, start: None });
        if known.start.is_none() {
            self.given += 1;
            let start = (known.end.max(first), self.given);
            known.start = Some(start);
            self.order.insert(start, party.clone());
        }
    }

    /// A party does not wait any longer.
    pub(crate) fn leave(&mut self, party: &P) {
        if let Some(start) = self.parties.get_mut(party).and_then(|known| known.start.take()) {
            self.order.remove(&start);
        }
        self.forget();
    }

    /// The next party has its turn.
    pub(crate) fn next(&mut self) -> Option<P> {
        let ((start, _), party) = self.order.pop_first()?;
        if let Some(known) = self.parties.get_mut(&party) {
            known.start = None;
        }
        self.now = self.now.max(start);
        self.serving = Some((party.clone(), start));
        Some(party)
    }

    /// The party whose turn is under way.
    pub(crate) fn serving(&self) -> Option<&P> {
        self.serving.as_ref().map(|(party, _)| party)
    }

    fn is_serving(&self, party: &P) -> bool {
        self.serving() == Some(party)
    }

    /// The turn under way is over, and took this long; `waits` if the party waits for another.
    pub(crate) fn took(&mut self, time: Duration, waits: bool) {
        let Some((party, start)) = self.serving.take() else { return };
        let time = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let mut share = time / (self.order.len() as u64 + 2);
        if self.head_start > 0 && start < self.now {
            // It uses its head start: if the time went on as fast, others would have theirs in vain.
            share /= 4;
        }
        self.now = self.now.saturating_add(share);
        let end = start.saturating_add(time);
        if let Some(known) = self.parties.get_mut(&party) {
            known.end = end;
            if waits {
                // As it has not left, it is where its turn ended, even if that is in the past.
                self.given += 1;
                known.start = Some((end, self.given));
                self.order.insert((end, self.given), party);
            }
        }
        self.forget();
    }

    /// Once nobody waits, nobody is ahead of another.
    fn forget(&mut self) {
        if self.order.is_empty() && self.serving.is_none() {
            self.parties.clear();
            shrink_map(&mut self.parties);
        }
    }

    /// How many parties something is known of.
    #[cfg(test)]
    pub(crate) fn known(&self) -> usize {
        self.parties.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::Turns;

    const fn us(count: u64) -> Duration {
        Duration::from_micros(count)
    }

    /// Has `count` turns that take `time` each, after which nobody waits again.
    fn serve(turns: &mut Turns<u32>, count: usize, time: Duration) -> Vec<u32> {
        let mut next = || {
            let party = turns.next()?;
            turns.took(time, false);
            Some(party)
        };
        (0..count).map_while(|_| next()).collect()
    }

    #[test]
    fn each_waits_once_and_those_that_are_even_have_turns_in_the_order_they_came() {
        let mut turns = Turns::default();
        for party in [3, 1, 3, 2, 1] {
            turns.wait(&party);
        }
        turns.leave(&1);
        assert_eq!(serve(&mut turns, 9, us(10)), [3, 2]);
        assert!(turns.is_empty() && turns.known() == 0);
    }

    #[test]
    fn one_that_comes_goes_before_all_that_are_ahead() {
        let mut turns = Turns::default();
        for party in 0..10_u32 {
            turns.wait(&party);
        }
        for party in 0..10 {
            assert_eq!(turns.next(), Some(party));
            turns.took(us(1000 + u64::from(party)), true);
        }
        turns.wait(&10);
        assert_eq!(turns.next(), Some(10));
    }

    #[test]
    fn one_that_seldom_waits_is_not_behind_many_that_always_do() {
        let mut turns = Turns::with_head_start(us(1000));
        for party in 1..=1000_u32 {
            turns.wait(&party);
        }
        let serve = |turns: &mut Turns<u32>| {
            let party = turns.next().unwrap();
            turns.took(us(if party == 0 { 20 } else { 500 }), party > 0);
            party
        };
        // All came at once, and have used their head starts.
        for _ in 0..2000 {
            serve(&mut turns);
        }
        for count in [700, 1000, 1001, 1700, 4000] {
            for _ in 0..count {
                serve(&mut turns);
            }
            turns.wait(&0);
            assert_eq!(serve(&mut turns), 0, "after {count}");
        }
        // What it saves up is bounded: as often as it likes, it is one of many.
        let mut got = 0;
        for _ in 0..3000 {
            turns.wait(&0);
            let party = turns.next().unwrap();
            turns.took(us(500), party > 0);
            got += usize::from(party == 0);
        }
        assert!((3..=8).contains(&got), "{got}");
    }

    #[test]
    fn one_that_is_ahead_has_its_turn_however_many_come_that_are_not() {
        for (at_once, turns_max) in [(1, 4), (2, 8), (10, 40), (100, 400)] {
            let mut turns = Turns::default();
            let mut fresh = 1..;
            for party in fresh.by_ref().take(at_once) {
                turns.wait(&party);
            }
            turns.wait(&0);
            // It has had its turn, and waits for the next.
            while turns.next() != Some(0) {
                turns.took(us(500), false);
                turns.wait(&fresh.next().unwrap());
            }
            turns.took(us(500), true);
            let mut count = 0;
            while turns.next() != Some(0) {
                turns.took(us(500), false);
                // As one goes, another one comes.
                turns.wait(&fresh.next().unwrap());
                count += 1;
                assert!(count <= turns_max, "{at_once} at once");
            }
        }
    }

    #[test]
    fn what_one_is_ahead_by_is_forgotten_when_the_others_have_had_as_much() {
        let mut turns = Turns::default();
        turns.wait(&u32::MAX);
        for party in 0..100_000 {
            turns.wait(&party);
            serve(&mut turns, 1, us(100));
        }
        assert!(turns.known() < 10_000, "{}", turns.known());
    }

    proptest! {
        /// Against the plain sum of what each got while it waited.
        #[test]
        fn those_that_wait_all_the_time_get_the_same(
            patient in 2..8_u32,
            times in prop::collection::vec(0..1000_u64, 1..400),
            comes in prop::collection::vec(prop::option::of(8..20_u32), 400),
            stays in prop::collection::vec(any::<bool>(), 400),
        ) {
            let mut turns = Turns::default();
            let mut got: HashMap<u32, u64> = (0..patient).map(|party| (party, 0)).collect();
            for party in 0..patient {
                turns.wait(&party);
            }
            let mut longest = 0;
            for ((time, comes), stays) in times.into_iter().zip(comes).zip(stays) {
                let party = turns.next().unwrap();
                if let Some(comes) = comes {
                    turns.wait(&comes);
                }
                longest = longest.max(time);
                if let Some(got) = got.get_mut(&party) {
                    *got += time;
                }
                turns.took(us(time), stays || party < patient);
                let (least, most) = (got.values().min().unwrap(), got.values().max().unwrap());
                prop_assert!(most - least <= longest, "{got:?}, at most {longest} at once");
            }
        }

        /// Whoever waits has a turn after at most two of each other that waits then: what it is
        /// ahead by is no more than a turn.
        #[test]
        fn nobody_waits_for_more_than_two_turns_of_each_other(
            others in 1..50_u32,
            ahead in 0..100_usize,
        ) {
            let mut turns = Turns::default();
            for party in 0..=others {
                turns.wait(&party);
            }
            for _ in 0..ahead {
                turns.next().unwrap();
                turns.took(us(700), true);
            }
            let mut count = 0;
            while turns.next() != Some(0) {
                turns.took(us(700), true);
                count += 1;
                prop_assert!(count <= others);
            }
        }
    }
}
