//! The search for the maximum size.

use std::collections::BTreeMap;

/// The steps of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// The step up from a size that passes, and down from one that fails, at first.
    pub coarse: u32,
    /// The step between the result and a size that fails.
    pub fine: u32,
    /// The number of times that a size must pass.
    pub runs: u32,
}

/// The result of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The size passes.
    Holds,
    /// The size fails.
    Fails {
        /// The reason.
        why: String,
        /// Says whether the machine may be the reason.
        by_machine: bool,
    },
}

/// Searches for the largest size that passes its runs and fails none. The caller runs the size it
/// asks for and reports the result. A run that failed by the machine is repeated, once a size.
#[derive(Clone, Debug)]
pub struct Search {
    /// The size to try next; 0 if none is left.
    trying: u32,
    sizes: BTreeMap<u32, Tried>,
    /// The smallest size that failed, and the reason.
    failed: Option<(u32, String)>,
    most: u32,
    steps: Steps,
}

#[derive(Clone, Debug, Default)]
struct Tried {
    passed: u32,
    is_repeated: bool,
}

impl Search {
    /// Starts at `first` and never exceeds `most`.
    #[must_use]
    pub fn new(first: u32, most: u32, steps: Steps) -> Self {
        let most = most.max(1);
        Self { trying: first.clamp(1, most), sizes: BTreeMap::new(), failed: None, most, steps }
    }

    /// The size to run next; `None` when the search is complete.
    #[must_use]
    pub fn next(&self) -> Option<u32> {
        (self.trying > 0 && self.passed(self.trying) < self.steps.runs).then_some(self.trying)
    }

    /// The largest size that passed all its runs; 0 if none did.
    #[must_use]
    pub fn result(&self) -> u32 {
        if self.passed(self.trying) >= self.steps.runs { self.trying } else { 0 }
    }

    /// The reason why the result is not larger, if a larger size was tried.
    #[must_use]
    pub fn limit(&self) -> Option<String> {
        self.failed.as_ref().map(|(size, why)| format!("{size} rooms: {why}"))
    }

    /// Returns the number of runs that were repeated.
    #[must_use]
    pub fn repeated(&self) -> usize {
        self.sizes.values().filter(|tried| tried.is_repeated).count()
    }

    /// Reports the result of the run that [`next`](Self::next) asked for.
    pub fn ran(&mut self, verdict: Verdict) {
        let tried = self.sizes.entry(self.trying).or_default();
        match verdict {
            Verdict::Holds => tried.passed += 1,
            Verdict::Fails { by_machine: true, .. } if !tried.is_repeated => {
                tried.is_repeated = true;
                return;
            }
            // A larger size failed before, if any did.
            Verdict::Fails { why, .. } => self.failed = Some((self.trying, why)),
        }
        self.trying = self.following();
    }

    fn following(&self) -> u32 {
        let failed = self.failed.as_ref().map(|(size, _)| *size);
        let end = failed.unwrap_or(u32::MAX);
        let passed = self.sizes.range(..end).rev().find(|(_, tried)| tried.passed > 0);
        let Some((&best, tried)) = passed else {
            let step = if end > self.steps.coarse { self.steps.coarse } else { self.steps.fine };
            return end.saturating_sub(step);
        };
        let step = if failed.is_none() { self.steps.coarse } else { self.steps.fine };
        let above = best.saturating_add(step).min(self.most);
        if tried.passed == 1 && best < above && above < end { above } else { best }
    }

    fn passed(&self, size: u32) -> u32 {
        self.sizes.get(&size).map_or(0, |tried| tried.passed)
    }
}

#[cfg(test)]
mod tests {
    use super::{Search, Steps, Verdict};

    const STEPS: Steps = Steps { coarse: 20, fine: 10, runs: 3 };

    fn verdict(holds: bool) -> Verdict {
        if holds { Verdict::Holds } else { fails(false) }
    }

    fn fails(by_machine: bool) -> Verdict {
        Verdict::Fails { why: "late".into(), by_machine }
    }

    /// Runs a search to its end; `run` gets the size and how many runs were before. Returns the
    /// search and the number of runs.
    fn search(first: u32, most: u32, mut run: impl FnMut(u32, u32) -> Verdict) -> (Search, u32) {
        let mut search = Search::new(first, most, STEPS);
        let mut runs = 0;
        while let Some(size) = search.next() {
            assert!((1..=most).contains(&size));
            search.ran(run(size, runs));
            runs += 1;
            assert!(runs < 100, "the search does not end");
        }
        (search, runs)
    }

    #[test]
    fn it_is_within_a_fine_step_from_above_and_below() {
        for limit in [10, 20, 95, 100, 137, 240] {
            for first in [10, 100, 200] {
                let (search, runs) = search(first, 1000, |size, _| verdict(size <= limit));
                let found = search.result();
                assert!(
                    found <= limit && found + 10 > limit,
                    "limit {limit}, first {first}: {found}"
                );
                assert!(runs <= 17, "limit {limit}, first {first}: {runs} runs");
                let failed = search.limit().expect("a larger size failed");
                assert_eq!(failed, format!("{} rooms: late", found + 10));
            }
        }
    }

    #[test]
    fn near_the_first_size_it_takes_seven_runs() {
        for limit in [100, 110, 120, 130] {
            let (_, runs) = search(100, 1000, |size, _| verdict(size <= limit));
            assert!(runs <= 7, "limit {limit}: {runs} runs");
        }
    }

    #[test]
    fn it_ends_at_the_maximum_and_at_zero() {
        let (most, _) = search(100, 130, |_, _| Verdict::Holds);
        assert_eq!((most.result(), most.limit()), (130, None));
        let (none, _) = search(100, 1000, |_, _| verdict(false));
        assert_eq!(none.result(), 0);
    }

    #[test]
    fn a_size_must_pass_every_run() {
        let (search, _) =
            search(100, 1000, |size, run| verdict(size <= 80 || (size == 100 && run % 2 == 0)));
        assert!((80..=90).contains(&search.result()), "{}", search.result());
    }

    #[test]
    fn a_run_that_failed_by_the_machine_is_repeated_once_a_size() {
        let mut search = Search::new(100, 1000, STEPS);
        search.ran(fails(true));
        assert_eq!((search.next(), search.repeated()), (Some(100), 1));
        search.ran(Verdict::Holds);
        assert_eq!(search.next(), Some(120));
        search.ran(fails(true));
        search.ran(fails(true));
        assert_eq!((search.next(), search.repeated()), (Some(110), 2));
        search.ran(fails(false));
        search.ran(Verdict::Holds);
        assert_eq!(search.next(), Some(100), "two of three");
        search.ran(fails(true));
        assert_eq!(search.next(), Some(80), "the repetition is used");
    }

    #[test]
    fn it_ends_even_if_the_machine_is_always_too_busy() {
        let (search, runs) = search(100, 1000, |_, _| fails(true));
        assert_eq!((search.result(), runs as usize), (0, 2 * search.repeated()));
    }
}
