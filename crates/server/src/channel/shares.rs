//! The amount of history that each holder keeps, to find the one that keeps the most.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;

/// The one that is charged for what a channel keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Holder {
    /// The channel with this number, which nobody outside the node has created.
    Channel(u64),
    /// A creator, by its place in memory.
    Creator(usize),
}

/// The amounts that the channels of one shard keep, by their holders.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    holders: HashMap<Holder, Share, RandomState>,
    /// The holders by their size.
    by_size: BTreeSet<(u32, Holder)>,
}

/// The history that one holder keeps.
#[derive(Debug, Default)]
struct Share {
    bytes: usize,
    /// Its channels by their size.
    by_size: BTreeSet<(u32, u64)>,
}

impl Shares {
    /// A channel keeps `after` bytes, and kept `before`.
    pub(crate) fn changed(&mut self, holder: Holder, channel: u64, before: usize, after: usize) {
        let share = self.holders.entry(holder).or_default();
        let all = share.bytes;
        share.bytes = all + after - before;
        let left = share.bytes;
        rank(&mut share.by_size, channel, before, after);
        rank(&mut self.by_size, holder, all, left);
        if left == 0 {
            self.holders.remove(&holder);
        }
    }

    /// The largest channel of the holder that keeps the most. Sizes that differ by less than a
    /// quarter count as the same.
    pub(crate) fn largest(&self) -> Option<u64> {
        let (_, holder) = self.by_size.last()?;
        self.largest_of(*holder)
    }

    /// The largest channel of a holder.
    pub(crate) fn largest_of(&self, holder: Holder) -> Option<u64> {
        self.holders.get(&holder)?.by_size.last().map(|(_, channel)| *channel)
    }
}

/// Moves something to its place among others. Most changes are too small to move it.
fn rank<T: Ord + Copy>(by_size: &mut BTreeSet<(u32, T)>, what: T, before: usize, after: usize) {
    let (before, after) = (size_class(before), size_class(after));
    if before != after {
        by_size.remove(&(before, what));
        if after > 0 {
            by_size.insert((after, what));
        }
    }
}

/// Four to each doubling; 0 is nothing.
fn size_class(bytes: usize) -> u32 {
    let Some(log2) = bytes.checked_ilog2() else { return 0 };
    let quarter = if log2 >= 2 { (bytes >> (log2 - 2)) as u32 & 3 } else { 0 };
    4 * log2 + quarter + 1
}

#[cfg(test)]
mod tests {
    use super::{Holder, Shares, size_class};

    #[test]
    fn classes_are_a_quarter_apart() {
        assert_eq!([0, 1, 2, 4, 5, 7, 8].map(size_class), [0, 1, 5, 9, 10, 12, 13]);
        assert!((1..5000).all(|bytes| size_class(bytes) <= size_class(bytes + 1)));
        assert!((8..5000).all(|bytes| size_class(bytes) < size_class(bytes + bytes / 4 + 1)));
    }

    #[test]
    fn the_largest_channel_is_of_the_holder_with_the_most() {
        let mut shares = Shares::default();
        let (ann, bob) = (Holder::Creator(1), Holder::Creator(2));
        for channel in 0..10 {
            shares.changed(ann, channel, 0, 100);
        }
        shares.changed(ann, 7, 100, 200);
        shares.changed(bob, 10, 0, 800);
        shares.changed(Holder::Channel(11), 11, 0, 900);
        assert_eq!(shares.largest(), Some(7));
        assert_eq!(shares.largest_of(bob), Some(10));
        for channel in 0..10 {
            shares.changed(ann, channel, if channel == 7 { 200 } else { 100 }, 0);
        }
        assert_eq!((shares.largest(), shares.largest_of(ann)), (Some(11), None));
        shares.changed(bob, 10, 800, 0);
        shares.changed(Holder::Channel(11), 11, 900, 0);
        assert!(shares.largest().is_none() && shares.holders.is_empty());
    }
}
