//! Moves of a list's elements.

/// The fewest moves that reorder a list. The order names each element by its old index. A move is a
/// target index and a source index, both in the list after all earlier moves.
pub(crate) fn moved(old_indices: &[usize]) -> Vec<(usize, usize)> {
    if old_indices.is_sorted() {
        return Vec::new();
    }
    let stays = staying(old_indices);
    // Every element has a spot at its old index. An element that moves has a second spot, after the
    // element that it follows.
    let mut heads = Vec::new();
    let mut followers = vec![Vec::new(); old_indices.len()];
    let mut behind = &mut heads;
    for (&from, stays) in old_indices.iter().zip(&stays) {
        if *stays {
            behind = &mut followers[from];
        } else {
            behind.push(from);
        }
    }
    let mut spots =
        Spots::new(old_indices.len() + heads.len() + followers.iter().map(Vec::len).sum::<usize>());
    let (mut old, mut new) = (vec![0; old_indices.len()], vec![0; old_indices.len()]);
    let mut spot = 0;
    let mut take = |spots: &mut Spots, of: &mut usize, is_taken: bool| {
        *of = spot;
        if is_taken {
            spots.add(spot, 1);
        }
        spot += 1;
    };
    heads.iter().for_each(|from| take(&mut spots, &mut new[*from], false));
    for (from, followers) in followers.iter().enumerate() {
        take(&mut spots, &mut old[from], true);
        followers.iter().for_each(|from| take(&mut spots, &mut new[*from], false));
    }
    let moving = old_indices.iter().zip(stays).filter(|(_, stays)| !stays);
    moving
        .map(|(&from, _)| {
            let start = spots.before(old[from]);
            spots.add(old[from], -1);
            let end = spots.before(new[from]);
            spots.add(new[from], 1);
            (end, start)
        })
        .collect()
}

/// Returns which elements are in a longest increasing subsequence (Fredman, "On computing the
/// length of longest increasing subsequences", 1975).
fn staying(old_indices: &[usize]) -> Vec<bool> {
    // For each length, where the sequence with the lowest end ends; for each place, its predecessor
    // in its sequence.
    let mut ends: Vec<usize> = Vec::new();
    let mut before = vec![None; old_indices.len()];
    for (place, from) in old_indices.iter().enumerate() {
        let length = ends.partition_point(|end| old_indices[*end] < *from);
        before[place] = length.checked_sub(1).map(|shorter| ends[shorter]);
        match ends.get_mut(length) {
            Some(end) => *end = place,
            None => ends.push(place),
        }
    }
    let mut stays = vec![false; old_indices.len()];
    let mut place = ends.last().copied();
    while let Some(at) = place {
        stays[at] = true;
        place = before[at];
    }
    stays
}

/// Counts the taken spots before any spot (Fenwick, "A new data structure for
/// cumulative frequency tables", 1994).
struct Spots {
    sums: Vec<isize>,
}

impl Spots {
    fn new(count: usize) -> Self {
        Self { sums: vec![0; count + 1] }
    }

    fn add(&mut self, spot: usize, change: isize) {
        let mut at = spot + 1;
        while at < self.sums.len() {
            self.sums[at] += change;
            at += at & at.wrapping_neg();
        }
    }

    fn before(&self, spot: usize) -> usize {
        let (mut at, mut sum) = (spot, 0);
        while at > 0 {
            sum += self.sums[at];
            at -= at & at.wrapping_neg();
        }
        sum.unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn moves_lead_to_the_order(
            order in (0..40_usize).prop_flat_map(|length| Just((0..length).collect::<Vec<_>>()).prop_shuffle())
        ) {
            let mut list: Vec<usize> = (0..order.len()).collect();
            for (to, from) in moved(&order) {
                let element = list.remove(from);
                list.insert(to, element);
            }
            prop_assert_eq!(list, order);
        }
    }

    #[test]
    fn as_few_elements_as_possible_move() {
        assert_eq!(moved(&[]), []);
        assert_eq!(moved(&[0, 1, 2]), []);
        assert_eq!(moved(&[1, 2, 0]), [(2, 0)]);
        assert_eq!(moved(&[2, 0, 1]), [(0, 2)]);
        assert_eq!(moved(&[2, 1, 0]).len(), 2);
        assert_eq!(moved(&[0, 3, 1, 2, 4]), [(1, 3)]);
    }
}
