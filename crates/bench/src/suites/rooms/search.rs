//! The search for the maximum size.

/// The initial step between sizes.
const COARSE: u32 = 20;

/// The final step between sizes.
const FINE: u32 = 10;

/// How often a size must pass.
const RUNS: u32 = 3;

/// Searches for the largest size that passes three of three runs. The caller runs the size it asks
/// for and reports whether it passed.
#[derive(Clone, Debug)]
pub(super) struct Search {
    /// The size to try next, and how often it has passed.
    trying: u32,
    held: u32,
    /// The smallest size that failed.
    failed: Option<u32>,
    /// The largest size that passed at least once.
    best: u32,
    most: u32,
}

impl Search {
    /// Starts at `first` and never exceeds `most`.
    pub(super) fn new(first: u32, most: u32) -> Self {
        Self {
            trying: first.clamp(1, most.max(1)),
            held: 0,
            failed: None,
            best: 0,
            most: most.max(1),
        }
    }

    /// The size to run next; `None` when the search is complete.
    pub(super) fn next(&self) -> Option<u32> {
        (self.trying > 0 && self.held < RUNS).then_some(self.trying)
    }

    /// The largest size that passed all its runs; 0 if none did.
    pub(super) fn result(&self) -> u32 {
        if self.held >= RUNS { self.trying } else { 0 }
    }

    /// Reports the result of the run that [`next`](Self::next) asked for.
    pub(super) fn ran(&mut self, held: bool) {
        if !held {
            self.failed = Some(self.failed.map_or(self.trying, |failed| failed.min(self.trying)));
            // Retry the best smaller size that passed once; without one, go down by a coarse step.
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
        // Don't retry a size that failed: everything below it is known to within a fine step.
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

    /// Runs a search in which sizes up to `limit` pass; returns the result and the number of runs.
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
    fn it_is_within_a_fine_step_from_above_and_below() {
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
    fn it_ends_at_the_maximum_and_at_zero() {
        assert_eq!(search(100, 130, 1000).0, 130);
        assert_eq!(search(100, 1000, 0).0, 0);
    }

    #[test]
    fn a_size_must_pass_every_run() {
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
