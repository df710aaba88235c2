//! Counting the bytes of one body while it is read.

use super::alternatives::lengths;
use super::tree::Tree;

/// A step from a place to one in it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// To an entry of a map or an element of a list, in what the viewer owns or not.
    Each { is_own: bool },
    /// To many entries at once, of which the viewer owns some.
    Group { many: usize, own: usize },
    /// To an element in each of many entries.
    Elements,
    /// To a field of a struct, by its position.
    Field(usize),
}

/// The counts of a place.
#[derive(Clone, Debug)]
pub(super) struct Counts {
    /// The number of values sent.
    pub(super) writes: u64,
    /// The number of them in the shared part, and of these in entries of other players.
    pub(super) writes_shared: u64,
    pub(super) writes_of_others: u64,
    pub(super) shared: u64,
    pub(super) own: u64,
    /// Bytes of numbers alone.
    pub(super) numbers: u64,
    /// Bytes that these would take in other types. `None` if one does not fit.
    pub(super) alternatives: Vec<Option<u64>>,
}

impl Counts {
    fn is_zero(&self) -> bool {
        self.writes == 0 && self.shared == 0 && self.own == 0
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.writes += other.writes;
        self.writes_shared += other.writes_shared;
        self.writes_of_others += other.writes_of_others;
        self.shared += other.shared;
        self.own += other.own;
        self.numbers += other.numbers;
        for (bytes, more) in self.alternatives.iter_mut().zip(&other.alternatives) {
            *bytes = bytes.zip(*more).map(|(bytes, more)| bytes + more);
        }
    }

    fn clear(&mut self) {
        (self.writes, self.writes_shared, self.writes_of_others) = (0, 0, 0);
        (self.shared, self.own, self.numbers) = (0, 0, 0);
        self.alternatives.fill(Some(0));
    }
}

/// The counts of all places of a tree.
#[derive(Debug)]
pub(super) struct Totals {
    pub(super) places: Vec<Counts>,
    /// The counts that are not zero, if these are the counts of one body.
    touched: Vec<usize>,
}

impl Totals {
    pub(super) fn new(tree: &Tree) -> Self {
        let zero = |alternatives: usize| Counts {
            writes: 0,
            writes_shared: 0,
            writes_of_others: 0,
            shared: 0,
            own: 0,
            numbers: 0,
            alternatives: vec![Some(0); alternatives],
        };
        let places = tree.places().iter().map(|place| zero(place.alternatives.len())).collect();
        Self { places, touched: Vec::new() }
    }

    fn at(&mut self, place: usize) -> &mut Counts {
        let counts = &mut self.places[place];
        if counts.is_zero() {
            self.touched.push(place);
        }
        counts
    }

    /// Adds the counts of one body, and clears them.
    pub(super) fn take(&mut self, body: &mut Self) {
        for place in body.touched.drain(..) {
            self.places[place].add(&body.places[place]);
            body.places[place].clear();
        }
    }

    /// Clears the counts of one body.
    pub(super) fn discard(&mut self) {
        for place in self.touched.drain(..) {
            self.places[place].clear();
        }
    }
}

/// The counter of one body. Each byte counts for the place where the reader is then, so that no
/// byte is left out or counts twice.
pub(crate) struct Tally<'a> {
    body: &'a [u8],
    tree: &'a Tree,
    counts: &'a mut Totals,
    here: Here,
    /// The bytes up to here have been counted.
    done: usize,
    is_own: bool,
}

/// The position of the reader.
#[derive(Clone, Copy)]
pub(crate) struct Here {
    place: usize,
    /// The number of values that are read together.
    many: usize,
    /// The number of them in the viewer's own entry.
    own: usize,
}

impl<'a> Tally<'a> {
    pub(super) fn new(body: &'a [u8], tree: &'a Tree, counts: &'a mut Totals) -> Self {
        counts.at(0).writes += 1;
        let here = Here { place: 0, many: 1, own: 0 };
        Self { body, tree, counts, here, done: 0, is_own: false }
    }

    /// One step down. Returns where the reader was.
    pub(crate) fn enter(&mut self, step: Step, at: usize) -> Here {
        let outer = self.here;
        match step {
            Step::Each { is_own } => (self.here.many, self.here.own) = (1, is_own.into()),
            Step::Group { many, own } => (self.here.many, self.here.own) = (many, own),
            Step::Elements | Step::Field(_) => {}
        }
        if let Some(place) = self.tree.inside(outer.place, step) {
            self.count_to(at);
            self.here.place = place;
            let counts = self.counts.at(place);
            counts.writes += self.here.many as u64;
            if !self.is_own {
                counts.writes_shared += self.here.many as u64;
                counts.writes_of_others += self.here.many.saturating_sub(self.here.own) as u64;
            }
        }
        outer
    }

    /// One step up, back to where the reader was.
    pub(crate) fn leave(&mut self, outer: Here, at: usize) {
        if outer.place != self.here.place {
            self.count_to(at);
        }
        self.here = outer;
    }

    /// Begins a part that only the viewer sees.
    pub(crate) fn begin_own(&mut self, at: usize) {
        self.count_to(at);
        self.is_own = true;
    }

    /// A value was read, or a column of so many values.
    pub(crate) fn values(&mut self, from: usize, to: usize, column: Option<usize>) {
        let place = &self.tree.places()[self.here.place];
        let (Some(of), false) = (place.numbers, place.alternatives.is_empty()) else { return };
        let counts = self.counts.at(self.here.place);
        counts.numbers += (to - from) as u64;
        let lengths = lengths(of, &place.alternatives, &self.body[from..to], column);
        for (bytes, more) in counts.alternatives.iter_mut().zip(lengths) {
            *bytes = bytes.zip(more).map(|(bytes, more)| bytes + more as u64);
        }
    }

    /// The body ends here.
    pub(crate) fn finish(mut self) {
        self.count_to(self.body.len());
    }

    fn count_to(&mut self, at: usize) {
        let bytes = (at - self.done) as u64;
        self.done = at;
        if bytes > 0 {
            let counts = self.counts.at(self.here.place);
            *(if self.is_own { &mut counts.own } else { &mut counts.shared }) += bytes;
        }
    }
}
