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

/// Work of many parties. Each party has `LINES` lines, which share its time in the same way: one
/// line must not keep the work in the others waiting, however long it is and whatever its work
/// costs.
///
/// Among parties that are even, those go first whose next piece is in a line of short pieces: of a
/// thousand that come at once, one that needs little need not wait for a long piece of each other.
pub(crate) struct FairQueue<P, T, const LINES: usize = 1> {
    /// The virtual time, in nanoseconds: the time that a party has got whose work has always
    /// waited.
    ///
    /// It is at least the start of the piece that is under way. It also goes on by what would be
    /// the share of one party more in what a piece took: else a party that is ahead would never be
    /// served, as long as others come that had nothing before.
    now: u64,
    parties: HashMap<P, Party<T, LINES>>,
    /// The parties whose work waits.
    order: BTreeMap<Place, P>,
    serving: Option<(P, u64)>,
    /// In nanoseconds.
    head_start: u64,
    /// By how much the pieces of each line stand back, in nanoseconds.
    stands_back: [u64; LINES],
    /// The number of starts given.
    given: u64,
    /// The number of waiting pieces.
    len: usize,
}

/// The virtual time at which the next piece starts, and by how much its line stands back; then the
/// order in which the parties came.
type Place = (u64, u64);

struct Party<T, const LINES: usize> {
    /// The virtual time at which its last piece ended.
    end: u64,
    /// The start of the next piece and the place in the order, if one waits.
    waits: Option<(u64, Place)>,
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
    fn new(end: u64) -> Self {
        let lines = std::array::from_fn(|_| Line { work: VecDeque::new(), start: 0 });
        Self { end, waits: None, lines, line: 0, now: 0 }
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

    /// The line that is served next: the one with the earliest start.
    fn next_line(&self) -> Option<usize> {
        let waiting = self.lines.iter().enumerate().filter(|(_, line)| !line.work.is_empty());
        waiting.min_by_key(|(_, line)| line.start).map(|(number, _)| number)
    }

    fn next(&mut self) -> Option<T> {
        self.line = self.next_line()?;
        let line = &mut self.lines[self.line];
        self.now = self.now.max(line.start);
        line.work.pop_front()
    }
}

impl<P, T, const LINES: usize> Default for FairQueue<P, T, LINES> {
    fn default() -> Self {
        Self::with([Duration::ZERO; LINES])
    }
}

impl<P, T, const LINES: usize> FairQueue<P, T, LINES> {
    /// An empty queue in which the pieces of each line stand back by so much.
    pub(crate) fn with(stands_back: [Duration; LINES]) -> Self {
        let head_start = nanoseconds(HEAD_START);
        Self {
            now: head_start,
            parties: HashMap::new(),
            order: BTreeMap::new(),
            serving: None,
            head_start,
            stands_back: stands_back.map(nanoseconds),
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
    /// Adds a piece of work of a party to one of its lines.
    pub(crate) fn push(&mut self, party: &P, line: usize, work: T) {
        let first = self.first_start();
        let known = self.known(party);
        known.push(line, work);
        let (waits, end, next) = (known.waits, known.end, known.next_line());
        self.len += 1;
        match waits {
            // The new piece may be the next one.
            Some((start, place)) if self.stands_back(next) != place.0 - start => {
                self.order.remove(&place);
                self.start(party.clone(), start);
            }
            Some(_) => {}
            None if self.is_serving(party) => {}
            None => self.start(party.clone(), end.max(first)),
        }
    }

    /// Returns whether work of a party waits.
    pub(crate) fn waits(&self, party: &P) -> bool {
        self.parties.get(party).is_some_and(|known| !known.is_empty())
    }

    /// Takes out the next piece of work. The time that it took is charged to its party by
    /// [`took`](Self::took).
    pub(crate) fn next(&mut self) -> Option<T> {
        self.next_if(|_| true)
    }

    /// Takes out the next piece of work, if it is one that is wanted.
    pub(crate) fn next_if(&mut self, is_wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        self.took(Duration::ZERO);
        let (&place, party) = self.order.first_key_value()?;
        let known = self.parties.get_mut(party)?;
        let (start, _) = known.waits?;
        let line = known.next_line()?;
        if !is_wanted(known.lines[line].work.front()?) {
            return None;
        }
        let work = known.next()?;
        known.waits = None;
        let party = self.order.remove(&place)?;
        self.len -= 1;
        self.now = self.now.max(start);
        self.serving = Some((party, start));
        Some(work)
    }

    /// The piece that was taken out took this long, unless that was said before.
    pub(crate) fn took(&mut self, time: Duration) {
        let Some((party, start)) = self.serving.take() else { return };
        let time = nanoseconds(time) / party.weight();
        let mut share = time / (self.order.len() as u64 + 2);
        if self.head_start > 0 && start < self.now {
            // It uses its head start: if the time went on as fast, others would have theirs in
            // vain.
            share /= 4;
        }
        self.now = self.now.saturating_add(share);
        let end = start.saturating_add(time);
        if let Some(known) = self.parties.get_mut(&party) {
            known.end = end;
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
        if time.is_zero() || self.order.is_empty() || self.is_serving(party) {
            return;
        }
        let first = self.first_start();
        let time = nanoseconds(time) / party.weight();
        let known = self.known(party);
        known.end = known.waits.map_or(known.end.max(first), |(start, _)| start);
        known.end = known.end.saturating_add(time);
        let end = known.end;
        if let Some((_, place)) = known.waits {
            self.order.remove(&place);
            self.start(party.clone(), end);
        }
    }

    /// Returns by how much the pieces of a line stand back.
    fn stands_back(&self, line: Option<usize>) -> u64 {
        line.map_or(0, |line| self.stands_back[line])
    }

    fn is_serving(&self, party: &P) -> bool {
        self.serving.as_ref().is_some_and(|(serving, _)| serving == party)
    }

    /// Returns the entry of a party. A new party took nothing lately.
    fn known(&mut self, party: &P) -> &mut Party<T, LINES> {
        let first = self.first_start();
        if self.parties.len() >= PLACES_KEPT && self.parties.len() == self.parties.capacity() {
            let serving = self.serving.as_ref().map(|(party, _)| party);
            self.parties.retain(|party, known| {
                known.waits.is_some() || known.end > first || Some(party) == serving
            });
            shrink_map(&mut self.parties);
        }
        self.parties.entry(party.clone()).or_insert_with(|| Party::new(first))
    }

    /// The next piece of a party starts at this virtual time.
    fn start(&mut self, party: P, at: u64) {
        self.given += 1;
        let next = self.parties.get(&party).and_then(Party::next_line);
        let place = (at.saturating_add(self.stands_back(next)), self.given);
        if let Some(known) = self.parties.get_mut(&party) {
            known.waits = Some((at, place));
            self.order.insert(place, party);
        }
    }

    /// Once no work waits, nobody is ahead of another.
    fn forget(&mut self) {
        if self.order.is_empty() && self.serving.is_none() {
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
