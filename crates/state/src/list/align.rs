//! The common subsequence of two lists.

/// The most single insertions and removals that are searched for, beyond those that the change of
/// length requires. The time is quadratic in this number.
const EDITS_MORE_MAX: usize = 8;

/// The most single insertions and removals that are searched for at all.
const EDITS_MAX: usize = 64;

/// The longest common subsequence, as runs of (old, new, count), by the greedy algorithm of E. W.
/// Myers, "An O(ND) Difference Algorithm and Its Variations" (1986); `None` if it takes too many
/// edits.
pub(super) fn common(
    old: usize,
    new: usize,
    same: impl Fn(usize, usize) -> bool,
) -> Option<Vec<(usize, usize, usize)>> {
    // One list is empty: nothing in common.
    if old == 0 || new == 0 {
        return Some(Vec::new());
    }
    let edits_max = (old.abs_diff(new) + EDITS_MORE_MAX).min(EDITS_MAX).min(old + new);
    let mut reached = Reached::default();
    for d in 0..=edits_max {
        for place in 0..=d {
            let (mut i, _) = reached.start(d, place);
            let mut j = i + d - 2 * place;
            while i < old && j < new && same(i, j) {
                i += 1;
                j += 1;
            }
            reached.0.push(i);
            if i == old && j == new {
                return Some(reached.walk_back(d, place));
            }
        }
    }
    None
}

/// For each number of edits `d` and each diagonal, the furthest index reached in the old list. A
/// diagonal is identified by its place in the row of `d`: on the diagonal at `place`, the new index
/// is the old index + d − 2 place.
#[derive(Default)]
struct Reached(Vec<usize>);

impl Reached {
    fn at(&self, d: usize, place: usize) -> usize {
        self.0[d * (d + 1) / 2 + place]
    }

    /// Returns the place where the diagonal is entered, and whether by a removal.
    fn start(&self, d: usize, place: usize) -> (usize, bool) {
        let removed = (place > 0).then(|| self.at(d - 1, place - 1) + 1);
        let inserted = (place < d).then(|| self.at(d - 1, place));
        (removed.max(inserted).unwrap_or(0), removed >= inserted)
    }

    /// Walks from the end of both lists to their front, and collects the runs on the diagonals.
    fn walk_back(&self, edits: usize, mut place: usize) -> Vec<(usize, usize, usize)> {
        let mut runs = Vec::new();
        for d in (0..=edits).rev() {
            let (start, removed) = self.start(d, place);
            let end = self.at(d, place);
            if end > start {
                runs.push((start, start + d - 2 * place, end - start));
            }
            place -= usize::from(d > 0 && removed);
        }
        runs.reverse();
        runs
    }
}

/// Returns which of these distinct numbers are in a longest increasing subsequence. `u32::MAX`
/// means no number.
pub(super) fn longest_rising(numbers: impl Iterator<Item = u32>) -> Vec<bool> {
    // For each length, where the subsequence with the lowest end ends; for each number, its
    // predecessor in the subsequence that ends there.
    let mut ends: Vec<(u32, usize)> = Vec::new();
    let mut before = Vec::new();
    for (place, number) in numbers.enumerate() {
        if number == u32::MAX {
            before.push(None);
            continue;
        }
        let length = ends.partition_point(|(end, _)| *end < number);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter].1));
        match ends.get_mut(length) {
            Some(end) => *end = (number, place),
            None => ends.push((number, place)),
        }
    }
    let mut is_of_it = vec![false; before.len()];
    let mut next = ends.last().map(|(_, place)| *place);
    while let Some(place) = next {
        is_of_it[place] = true;
        next = before[place];
    }
    is_of_it
}
