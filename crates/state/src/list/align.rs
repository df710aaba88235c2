//! How the elements of a list that changed its shape are paired with what was last synced.

use super::FRESH;

/// One step from the old list to the new one, from front to back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    /// The next element of both is compared.
    Pair,
    /// The next old element went.
    Remove,
    /// The next new element came.
    Insert,
}

/// Pairs `old` elements with new ones, whose former places are given in order (`FRESH` = none).
///
/// Elements that kept their order among themselves are paired. In the gaps between them, old and new elements are paired by
/// position, so that one replaced by an equal one sends nothing; the rest went or came. An element that moved past another is
/// taken as gone from there and new here.
pub(super) fn align(old: usize, places: impl Iterator<Item = u32>) -> Vec<Align> {
    let mut steps = Vec::new();
    let mut next_old = 0;
    let mut waiting = 0; // new elements since the last that kept its place
    for place in places {
        if place == FRESH || (place as usize) < next_old || place as usize >= old {
            waiting += 1;
            continue;
        }
        fill(&mut steps, place as usize - next_old, waiting);
        steps.push(Align::Pair);
        next_old = place as usize + 1;
        waiting = 0;
    }
    fill(&mut steps, old - next_old, waiting);
    steps
}

fn fill(steps: &mut Vec<Align>, old: usize, new: usize) {
    let pairs = old.min(new);
    steps.extend(std::iter::repeat_n(Align::Pair, pairs));
    steps.extend(std::iter::repeat_n(Align::Remove, old - pairs));
    steps.extend(std::iter::repeat_n(Align::Insert, new - pairs));
}

#[cfg(test)]
mod tests {
    use super::Align::{Insert, Pair, Remove};
    use super::*;

    #[test]
    fn a_push_and_a_pop_at_the_front_are_one_removal_and_one_insertion() {
        assert_eq!(align(3, [1, 2, FRESH].into_iter()), [Remove, Pair, Pair, Insert]);
    }

    #[test]
    fn an_element_put_in_the_place_of_another_is_paired_with_it() {
        assert_eq!(align(3, [0, FRESH, 2].into_iter()), [Pair, Pair, Pair]);
    }

    #[test]
    fn elements_that_changed_places_are_compared_by_position() {
        let steps = align(3, [2, 1, 0].into_iter());
        assert_eq!(steps.iter().filter(|step| **step != Insert).count(), 3);
        assert_eq!(steps.iter().filter(|step| **step != Remove).count(), 3);
    }
}
