//! Finding the largest size that holds.

/// How far sizes are apart at first.
const COARSE: u32 = 20;

/// How far they are apart in the end.
const FINE: u32 = 10;

/// How often a size must hold.
const RUNS: u32 = 3;

/// The search for the largest size that holds in three of three runs. It asks for a run, is told
/// whether it held, and so on.
#[derive(Clone, Debug)]
pub(super) struct Search {
    /// The size to try next, and how often it has held.
    trying: u32,
    held: u32,
    /// The smallest size that failed.
    failed: Option<u32>,
    /// The largest size that held at least once.
    best: u32,
    most: u32,
}

impl Search {
    /// Begins at `first`, and never asks for more than `most`.
    pub(super) fn new(first: u32, most: u32) -> Self {
        Self {
            trying: first.clamp(1, most.max(1)),
            held: 0,
            failed: None,
            best: 0,
            most: most.max(1),
        }
    }

    /// The size to run next; `None` when the result stands.
    pub(super) fn next(&self) -> Option<u32> {
        (self.trying > 0 && self.held < RUNS).then_some(self.trying)
    }

    /// The largest size that held in all runs; 0 if none did.
    pub(super) fn result(&self) -> u32 {
        if self.held >= RUNS { self.trying } else { 0 }
    }

    /// The run that [`next`](Self::next) asked for has ended.
    pub(super) fn ran(&mut self, held: bool) {
        if !held {
            self.failed = Some(self.failed.map_or(self.trying, |failed| failed.min(self.trying)));
            // What held once, below, is tried again; if nothing did, a coarse step down.
            let below = if self.best > 0 && self.best < self.trying {
                self.best
            } else {
                self.trying.saturating_sub(if self.best > 0 { FINE } else { COARSE })
            };
            self.go(below);
            return;
        }
        self.best = self.best.max(self.trying);
        self.held += 1;
        let step = if self.failed.is_none() { COARSE } else { FINE };
        let above = (self.trying + step).min(self.most);
        // Once something has failed, all that is below it is known to within a fine step.
        if self.held == 1 && above > self.trying && self.failed.is_none_or(|failed| above < failed)
        {
            self.go(above);
        }
    }

    fn go(&mut self, to: u32) {
        self.held = 0;
        self.trying = to;
    }
}

#[cfg(test)]
mod tests {
    use super::Search;

    /// Runs a search where sizes up to `limit` hold; gives the result and how many runs it took.
    fn search(first: u32, most: u32, limit: u32) -> (u32, u32) {
        let mut search = Search::new(first, most);
        let mut runs = 0;
        while let Some(size) = search.next() {
            assert!(size <= most);
            search.ran(size <= limit);
            runs += 1;
            assert!(runs < 100, "the search does not end");
        }
        (search.result(), runs)
    }

    #[test]
    fn it_comes_within_a_fine_step_from_above_and_below() {
        for limit in [20, 95, 100, 137, 240] {
            for first in [10, 100, 200] {
                let (found, runs) = search(first, 1000, limit);
                assert!(
                    found <= limit && found + 10 > limit,
                    "limit {limit}, first {first}: {found}"
                );
                assert!(runs <= 25, "limit {limit}, first {first}: {runs} runs");
            }
        }
    }

    #[test]
    fn it_ends_at_the_most_and_at_nothing() {
        assert_eq!(search(100, 130, 1000).0, 130);
        assert_eq!(search(100, 1000, 0).0, 0);
    }

    #[test]
    fn a_size_that_holds_only_sometimes_does_not_hold() {
        let mut search = Search::new(100, 1000);
        let mut runs = 0;
        while let Some(size) = search.next() {
            runs += 1;
            search.ran(size <= 80 || (size == 100 && runs % 2 == 1));
            assert!(runs < 100, "the search does not end");
        }
        assert!(search.result() <= 90, "{}", search.result());
    }
}
