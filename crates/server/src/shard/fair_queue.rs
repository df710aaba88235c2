//! Work that waits, by the party that causes it, under start-time fair queueing (Goyal, Vin, Cheng:
//! *Start-time Fair Queueing*, SIGCOMM 1996). Of parties whose work always waits, each gets the
//! same share of the time, whatever a piece of it costs and however many pieces there are. What a
//! piece costs is known only after it ran.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::Hash;
use std::time::Duration;

use crate::memory::{PLACES_KEPT, shrink_map};

/// A party that work is charged to.
pub(crate) trait Payer: Clone + Eq + Hash {
    /// The number of shares that it gets.
    fn weight(&self) -> u64 {
        1
    }
}

/// By how much a party that took nothing lately goes before others: about as much as a piece of
/// work takes. Among many that always wait, one that seldom does is served at once instead of after
/// one piece of each of them.
const HEAD_START: Duration = Duration::from_millis(2);

/// The time after which half of what a party is ahead by is forgotten, as long as none of its work
/// waits. Among a thousand that always wait, one that took 3 ms would wait for a second otherwise,
/// however long it took nothing before.
const HALF_LIFE: Duration = Duration::from_millis(250);

/// Work of many parties. Each party has `LINES` lines, which share its time in the same way: one
/// line must not keep the work in the others waiting, however long it is and whatever its work
/// costs.
///
/// Among parties that are even, those go first whose next piece is in a line of short pieces: of a
/// thousand that come at once, one that needs little need not wait for a long piece of each other.
///
/// Some lines may be held for a while: their pieces keep their places, and the others go on.
pub(crate) struct FairQueue<P, T, const LINES: usize = 1> {
    /// The virtual time, in nanoseconds: the time that a party has got whose work has always
    /// waited.
    ///
    /// It is at least the start of the piece that is under way. It also goes on by what would be
    /// the share of one party more in what a piece took: else a party that is ahead would never be
    /// served, as long as others come that had nothing before.
    now: u64,
    /// The time by the clock, as far as the queue was told.
    time: Duration,
    parties: HashMap<P, Party<T, LINES>>,
    /// The parties whose work waits, by the place of their next piece.
    orders: [BTreeMap<Place, P>; ORDERS],
    serving: Option<(P, u64)>,
    /// In nanoseconds.
    head_start: u64,
    /// By how much the pieces of each line stand back, in nanoseconds.
    stands_back: [u64; LINES],
    /// The lines that may be held.
    may_hold: [bool; LINES],
    /// The number of starts given.
    given: u64,
    /// The number of waiting pieces.
    len: usize,
}

/// The virtual time at which the next piece starts, and by how much its line stands back; then the
/// order in which the parties came.
type Place = (u64, u64);

/// The orders: of parties whose next piece is never held, of those whose next piece may be, and of
/// the latter again if they have others, by the next of these. While pieces are held, the first and
/// the last count, else the first and the second.
const ORDERS: usize = 3;
const FREE: usize = 0;
const HELD: usize = 1;
const BEHIND_HELD: usize = 2;

/// The places of a party whose work waits.
#[derive(Clone, Copy)]
struct Waits {
    /// The virtual time at which its next piece starts.
    start: u64,
    places: [Option<Place>; ORDERS],
}

struct Party<T, const LINES: usize> {
    /// The virtual time at which its last piece ended.
    end: u64,
    /// The time by the clock at which `end` was true.
    since: Duration,
    /// The place of the next piece, if one waits.
    waits: Option<Waits>,
    lines: [Line<T>; LINES],
    /// The line of the last piece, and the virtual time of this party's lines at its start.
    line: usize,
    now: u64,
}

struct Line<T> {
    work: VecDeque<T>,
    /// When its next piece starts, in the virtual time of its party.
    start: u64,
}

impl<T, const LINES: usize> Party<T, LINES> {
    fn new(end: u64, since: Duration) -> Self {
        let lines = std::array::from_fn(|_| Line { work: VecDeque::new(), start: 0 });
        Self { end, since, waits: None, lines, line: 0, now: 0 }
    }

    /// Returns the virtual time at which it starts if none of its work waits: at the first start,
    /// or later by what is left of the time that it is ahead by.
    fn start_after_rest(&self, first: u64, time: Duration) -> u64 {
        let ahead = self.end.saturating_sub(first);
        let (rest, half) = (time.saturating_sub(self.since).as_nanos(), HALF_LIFE.as_nanos());
        let halves = u32::try_from(rest / half).unwrap_or(u32::MAX);
        let ahead = ahead.checked_shr(halves).unwrap_or(0);
        // Between two halves in a straight line.
        first + ahead - (u128::from(ahead) * (rest % half) / (2 * half)) as u64
    }

    fn is_empty(&self) -> bool {
        self.lines.iter().all(|line| line.work.is_empty())
    }

    fn push(&mut self, line: usize, work: T) {
        let Line { work: waiting, start } = &mut self.lines[line];
        if waiting.is_empty() && self.line != line {
            *start = self.now.max(*start);
        }
        waiting.push_back(work);
    }

    /// The line that is served next: the one with the earliest start, of those that are `open`.
    fn next_line(&self, open: impl Fn(usize) -> bool) -> Option<usize> {
        let waiting = self.lines.iter().enumerate();
        let waiting = waiting.filter(|(number, line)| !line.work.is_empty() && open(*number));
        waiting.min_by_key(|(_, line)| line.start).map(|(number, _)| number)
    }

    fn next(&mut self, line: usize) -> Option<T> {
        self.line = line;
        let line = &mut self.lines[self.line];
        self.now = self.now.max(line.start);
        line.work.pop_front()
    }
}

impl<P, T, const LINES: usize> Default for FairQueue<P, T, LINES> {
    fn default() -> Self {
        Self::with([Duration::ZERO; LINES], [false; LINES])
    }
}

impl<P, T, const LINES: usize> FairQueue<P, T, LINES> {
    /// An empty queue in which the pieces of each line stand back by so much, and may be held.
    pub(crate) fn with(stands_back: [Duration; LINES], may_hold: [bool; LINES]) -> Self {
        let head_start = nanoseconds(HEAD_START);
        Self {
            now: head_start,
            time: Duration::ZERO,
            parties: HashMap::new(),
            orders: std::array::from_fn(|_| BTreeMap::new()),
            serving: None,
            head_start,
            stands_back: stands_back.map(nanoseconds),
            may_hold,
            given: 0,
            len: 0,
        }
    }

    /// Returns the number of waiting pieces of work.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The start of a party that took nothing lately.
    fn first_start(&self) -> u64 {
        self.now.saturating_sub(self.head_start)
    }
}

impl<P: Payer, T, const LINES: usize> FairQueue<P, T, LINES> {
    /// Tells the queue the time by the clock.
    pub(crate) fn at(&mut self, time: Duration) {
        self.time = time;
    }

    /// Adds a piece of work of a party to one of its lines.
    pub(crate) fn push(&mut self, party: &P, line: usize, work: T) {
        let (first, time) = (self.first_start(), self.time);
        let known = self.known(party);
        known.push(line, work);
        let waits = known.waits;
        let first_start = known.start_after_rest(first, time);
        self.len += 1;
        match waits {
            // The new piece may be the next one.
            Some(Waits { start, places }) => {
                let before = places.map(|place| place.map(|(at, _)| at - start));
                if before != self.places(party) {
                    self.leave(party);
                    self.start(party.clone(), start);
                }
            }
            None if self.is_serving(party) => {}
            None => self.start(party.clone(), first_start),
        }
    }

    /// Returns whether work of a party waits.
    pub(crate) fn waits(&self, party: &P) -> bool {
        self.parties.get(party).is_some_and(|known| !known.is_empty())
    }

    /// Takes out the next piece of work. The time that it took is charged to its party by
    /// [`took`](Self::took).
    pub(crate) fn next(&mut self) -> Option<T> {
        self.next_if(false, |_| true)
    }

    /// Takes out the next piece of work, if it is one that is wanted. If it `holds` the lines that
    /// may be held, it is the next of the others.
    pub(crate) fn next_if(&mut self, holds: bool, is_wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        self.took(Duration::ZERO);
        let orders = [FREE, if holds { BEHIND_HELD } else { HELD }];
        let firsts = orders.iter().filter_map(|order| self.orders[*order].first_key_value());
        let party = firsts.min_by_key(|(place, _)| **place)?.1.clone();
        let known = self.parties.get_mut(&party)?;
        let start = known.waits?.start;
        let line = known.next_line(|line| !(holds && self.may_hold[line]))?;
        if !is_wanted(known.lines[line].work.front()?) {
            return None;
        }
        let work = known.next(line)?;
        self.leave(&party);
        self.len -= 1;
        self.now = self.now.max(start);
        self.serving = Some((party, start));
        Some(work)
    }

    /// The piece that was taken out took this long, unless that was said before.
    pub(crate) fn took(&mut self, time: Duration) {
        let Some((party, start)) = self.serving.take() else { return };
        let time = nanoseconds(time) / party.weight();
        let waiting = self.orders[FREE].len() + self.orders[HELD].len();
        let mut share = time / (waiting as u64 + 2);
        if self.head_start > 0 && start < self.now {
            // The party uses its head start: if the time went on as fast, others would have theirs
            // in vain.
            share /= 4;
        }
        self.now = self.now.saturating_add(share);
        let end = start.saturating_add(time);
        if let Some(known) = self.parties.get_mut(&party) {
            (known.end, known.since) = (end, self.time);
            let line = &mut known.lines[known.line];
            line.start = line.start.saturating_add(time);
            if !known.is_empty() {
                // As its work has always waited, it starts where it ended, even if that is in the
                // past.
                self.start(party, end);
            }
        }
        self.forget();
    }

    /// Charges a party for what was done for it beside its work that waits. What is done while its
    /// work is under way belongs to that.
    pub(crate) fn charge(&mut self, party: &P, time: Duration) {
        // As long as no work waits, nobody is ahead of another.
        if time.is_zero() || self.is_idle() || self.is_serving(party) {
            return;
        }
        let (first, now) = (self.first_start(), self.time);
        let time = nanoseconds(time) / party.weight();
        let known = self.known(party);
        let start =
            known.waits.map_or_else(|| known.start_after_rest(first, now), |waits| waits.start);
        (known.end, known.since) = (start.saturating_add(time), now);
        let end = known.end;
        if self.leave(party) {
            self.start(party.clone(), end);
        }
    }

    /// Returns whether no party has work that waits.
    fn is_idle(&self) -> bool {
        self.orders[FREE].is_empty() && self.orders[HELD].is_empty()
    }

    /// The orders that a party belongs to, and by how much it stands back in each.
    fn places(&self, party: &P) -> [Option<u64>; ORDERS] {
        let mut places = [None; ORDERS];
        let Some(known) = self.parties.get(party) else { return places };
        let Some(next) = known.next_line(|_| true) else { return places };
        if self.may_hold[next] {
            let free = known.next_line(|line| !self.may_hold[line]);
            places[HELD] = Some(self.stands_back[next]);
            places[BEHIND_HELD] = free.map(|line| self.stands_back[line]);
        } else {
            places[FREE] = Some(self.stands_back[next]);
        }
        places
    }

    /// Takes a party out of the orders. Returns whether it was there.
    fn leave(&mut self, party: &P) -> bool {
        let known = self.parties.get_mut(party);
        let Some(Waits { places, .. }) = known.and_then(|known| known.waits.take()) else {
            return false;
        };
        for (order, place) in self.orders.iter_mut().zip(places) {
            if let Some(place) = place {
                order.remove(&place);
            }
        }
        true
    }

    fn is_serving(&self, party: &P) -> bool {
        self.serving.as_ref().is_some_and(|(serving, _)| serving == party)
    }

    /// Returns the entry of a party. A new party took nothing lately.
    fn known(&mut self, party: &P) -> &mut Party<T, LINES> {
        let (first, time) = (self.first_start(), self.time);
        if self.parties.len() >= PLACES_KEPT && self.parties.len() == self.parties.capacity() {
            let serving = self.serving.as_ref().map(|(party, _)| party);
            self.parties.retain(|party, known| {
                known.waits.is_some() || known.end > first || Some(party) == serving
            });
            shrink_map(&mut self.parties);
        }
        self.parties.entry(party.clone()).or_insert_with(|| Party::new(first, time))
    }

    /// The next piece of a party starts at this virtual time.
    fn start(&mut self, party: P, at: u64) {
        self.given += 1;
        let places = self.places(&party).map(|stands_back| {
            stands_back.map(|stands_back| (at.saturating_add(stands_back), self.given))
        });
        let Some(known) = self.parties.get_mut(&party) else { return };
        known.waits = Some(Waits { start: at, places });
        for (order, place) in self.orders.iter_mut().zip(places) {
            if let Some(place) = place {
                order.insert(place, party.clone());
            }
        }
    }

    /// Once no work waits, nobody is ahead of another.
    fn forget(&mut self) {
        if self.is_idle() && self.serving.is_none() {
            self.parties.clear();
            shrink_map(&mut self.parties);
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
