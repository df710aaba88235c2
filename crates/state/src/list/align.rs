//! How the elements of a list are paired with what was last synced.
//!
//! Elements are paired by what everyone sees of them, never by who they are: a shuffle of cards that lie face down must not show in
//! a patch. So the pairing is a function of what was seen before and what is seen now, however it came about.

/// A run of steps from the old list to the new one, from front to back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Run {
    /// The next elements of both are compared.
    Pair(usize),
    /// The next old elements went.
    Remove(usize),
    /// The next new elements came.
    Insert(usize),
}

/// The most single insertions and removals that are looked for, beyond those that the change of length asks for. The time it takes
/// grows with their square.
const EDITS_MORE_MAX: usize = 8;

/// The most single insertions and removals that are looked for at all.
const EDITS_MAX: usize = 64;

/// Pairs `old` elements with `new` ones, of which `same` says whether the old one of an index looks like the new one of another.
/// `None`: each is paired with the one in its place, and none came or went.
///
/// As many as possible are paired with one that looks the same, if that takes few edits. In the gaps between them old and new
/// elements are paired by position; the rest went or came.
pub(super) fn align(old: usize, new: usize, same: impl Fn(usize, usize) -> bool) -> Option<Vec<Run>> {
    let shorter = old.min(new);
    let front = (0..shorter).take_while(|&at| same(at, at)).count();
    let back = (1..=shorter - front).take_while(|&at| same(old - at, new - at)).count();
    let (old, new) = (old - front - back, new - front - back);
    let common = common(old, new, |i, j| same(front + i, front + j));
    if common.is_empty() && old == new {
        return None;
    }
    let mut runs = Vec::new();
    put(&mut runs, Run::Pair(front));
    let (mut next_old, mut next_new) = (0, 0);
    for (i, j, count) in common {
        fill(&mut runs, i - next_old, j - next_new);
        put(&mut runs, Run::Pair(count));
        (next_old, next_new) = (i + count, j + count);
    }
    fill(&mut runs, old - next_old, new - next_new);
    put(&mut runs, Run::Pair(back));
    Some(runs)
}

fn fill(runs: &mut Vec<Run>, old: usize, new: usize) {
    let pairs = old.min(new);
    put(runs, Run::Pair(pairs));
    put(runs, Run::Remove(old - pairs));
    put(runs, Run::Insert(new - pairs));
}

fn put(runs: &mut Vec<Run>, run: Run) {
    match (runs.last_mut(), run) {
        (_, Run::Pair(0) | Run::Remove(0) | Run::Insert(0)) => {}
        (Some(Run::Pair(last)), Run::Pair(more)) => *last += more,
        _ => runs.push(run),
    }
}

/// The longest common subsequence, as runs of (old, new, count), by the greedy algorithm of E. W. Myers, "An O(ND) Difference
/// Algorithm and Its Variations" (1986); none if it takes too many edits.
fn common(old: usize, new: usize, same: impl Fn(usize, usize) -> bool) -> Vec<(usize, usize, usize)> {
    // Two elements that differ, or none on one side, have nothing in common.
    if old == 0 || new == 0 || (old == 1 && new == 1) {
        return Vec::new();
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
                return reached.walk_back(d, place);
            }
        }
    }
    Vec::new()
}

/// For each number of edits `d` and each diagonal, how far into the old list one gets. A diagonal is known by its place in the row of
/// `d`: on the one at `place`, the new list's index is the old one's + d − 2 place.
#[derive(Default)]
struct Reached(Vec<usize>);

impl Reached {
    fn at(&self, d: usize, place: usize) -> usize {
        self.0[d * (d + 1) / 2 + place]
    }

    /// Where the diagonal is entered, and whether by a removal.
    fn start(&self, d: usize, place: usize) -> (usize, bool) {
        let removed = (place > 0).then(|| self.at(d - 1, place - 1) + 1);
        let inserted = (place < d).then(|| self.at(d - 1, place));
        (removed.max(inserted).unwrap_or(0), removed >= inserted)
    }

    /// Walks from the end of both lists to their front, and collects what was passed on the diagonals.
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

#[cfg(test)]
mod tests {
    use super::Run::{Insert, Pair, Remove};
    use super::*;

    fn align_of(old: &[u32], new: &[u32]) -> Option<Vec<Run>> {
        align(old.len(), new.len(), |i, j| old[i] == new[j])
    }

    #[test]
    fn a_push_and_a_pop_at_the_front_are_one_removal_and_one_insertion() {
        assert_eq!(align_of(&[1, 2, 3], &[2, 3, 4]), Some(vec![Remove(1), Pair(2), Insert(1)]));
    }

    #[test]
    fn an_element_put_in_the_place_of_another_is_paired_with_it() {
        assert_eq!(align_of(&[1, 2, 3], &[1, 9, 3]), None);
        assert_eq!(align_of(&[1, 2, 3, 4], &[1, 9, 8, 3, 4]), Some(vec![Pair(2), Insert(1), Pair(2)]));
    }

    #[test]
    fn elements_that_all_changed_are_paired_by_position() {
        let (old, new): (Vec<u32>, Vec<u32>) = ((0..1000).collect(), (1000..2000).collect());
        assert_eq!(align_of(&old, &new), None);
        assert_eq!(align_of(&old, &new[..990]), Some(vec![Pair(990), Remove(10)]));
        assert_eq!(align_of(&old[..900], &new), Some(vec![Pair(900), Insert(100)]));
    }

    #[test]
    fn a_list_that_ends_or_begins_is_one_run() {
        assert_eq!(align_of(&[], &[]), None);
        assert_eq!(align_of(&[], &[1, 1]), Some(vec![Insert(2)]));
        assert_eq!(align_of(&[1, 1], &[]), Some(vec![Remove(2)]));
        assert_eq!(align_of(&[7, 7, 7], &[7, 7]), Some(vec![Pair(2), Remove(1)]));
    }

    /// Every pair of short lists: the runs lead from the one to the other, and few edits are found as few.
    #[test]
    fn runs_lead_from_the_old_list_to_the_new_one() {
        let lists: Vec<Vec<u32>> =
            (0..3_u32.pow(5)).map(|n| (0..n % 6).map(|at| n / 3_u32.pow(at) % 3).collect()).collect();
        for old in &lists {
            for new in &lists {
                let Some(runs) = align_of(old, new) else {
                    assert_eq!(old.len(), new.len());
                    continue;
                };
                let (mut i, mut j, mut kept) = (0, 0, 0);
                for run in &runs {
                    match *run {
                        Pair(count) => {
                            kept += (0..count).filter(|at| old[i + at] == new[j + at]).count();
                            (i, j) = (i + count, j + count);
                        }
                        Remove(count) => i += count,
                        Insert(count) => j += count,
                    }
                }
                assert_eq!((i, j), (old.len(), new.len()), "{old:?} to {new:?}: {runs:?}");
                assert!(kept >= longest_common(old, new), "{old:?} to {new:?}: {runs:?}");
            }
        }
    }

    fn longest_common(a: &[u32], b: &[u32]) -> usize {
        match (a, b) {
            ([x, a @ ..], [y, b @ ..]) if x == y => 1 + longest_common(a, b),
            ([_, rest_a @ ..], [_, rest_b @ ..]) => longest_common(rest_a, b).max(longest_common(a, rest_b)),
            _ => 0,
        }
    }
}
