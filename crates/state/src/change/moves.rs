//! Which elements of a list moved.

/// Of elements that are known by where they stood, those that moved: where each stands now and where it stood. The others, as many as can be, are
/// in the order in which they were.
pub(crate) fn moved(stood: &[usize]) -> Vec<(usize, usize)> {
    if stood.is_sorted() {
        return Vec::new();
    }
    // The longest rising sequence (Fredman, "On computing the length of longest increasing subsequences", 1975): of each length the one
    // that ends lowest, by the place of its end, and for each place the one before it.
    let mut ends: Vec<usize> = Vec::new();
    let mut before = vec![None; stood.len()];
    for (place, from) in stood.iter().enumerate() {
        let length = ends.partition_point(|end| stood[*end] < *from);
        before[place] = length.checked_sub(1).map(|shorter| ends[shorter]);
        match ends.get_mut(length) {
            Some(end) => *end = place,
            None => ends.push(place),
        }
    }
    let mut stayed = vec![false; stood.len()];
    let mut place = ends.last().copied();
    while let Some(at) = place {
        stayed[at] = true;
        place = before[at];
    }
    let moved = stood.iter().copied().enumerate().zip(stayed);
    moved.filter(|(_, stayed)| !stayed).map(|(moved, _)| moved).collect()
}

#[cfg(test)]
mod tests {
    use super::moved;

    #[test]
    fn as_few_as_can_be_moved() {
        assert_eq!(moved(&[]), []);
        assert_eq!(moved(&[0, 1, 2]), []);
        assert_eq!(moved(&[1, 2, 0]), [(2, 0)]);
        assert_eq!(moved(&[2, 0, 1]), [(0, 2)]);
        assert_eq!(moved(&[2, 1, 0]).len(), 2);
        assert_eq!(moved(&[0, 3, 1, 2, 4]), [(1, 3)]);
    }
}
