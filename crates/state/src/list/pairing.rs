//! Pairing the elements of a list with its shadow.
//!
//! Elements are paired by what everyone sees of them, never by their identity: a patch must not
//! reveal how face-down cards were shuffled. So the pairing depends only on what was and is visible
//! to everyone.

use super::align::{common, longest_rising};
use super::op::{INSERTED, Op, ops_max};

/// A list's shadow, and the list.
pub(super) trait Looks {
    /// Returns whether an old element looks like a new one.
    fn same(&self, old: usize, new: usize) -> bool;
    /// The digest of an old element. It is equal for elements that look the same, and almost never
    /// for others.
    fn old_look(&self, index: usize) -> u64;
    /// The digest of a new element.
    fn new_look(&self, index: usize) -> u64;
    /// The length in bytes of an old element, written as a whole value.
    fn size(&self, index: usize) -> usize;
}

/// The old element of each new one, and the operations for a copy.
#[derive(Debug)]
pub(super) struct Pairing {
    old: usize,
    new: usize,
    front: usize,
    /// The old index of each element between the common front and back.
    middle: Vec<u32>,
    /// Removals, then a new order, then insertions: each from front to back.
    pub(super) ops: Vec<Op>,
}

impl Pairing {
    /// The old index of a new element; `None` if it was inserted.
    pub(super) fn from(&self, index: usize) -> Option<usize> {
        if index < self.front {
            return Some(index);
        }
        match self.middle.get(index - self.front) {
            Some(&INSERTED) => None,
            Some(&from) => Some(from as usize),
            None => Some(index + self.old - self.new),
        }
    }
}

/// The most moves in one sync. With more, the order of all elements is sent. Finding them takes
/// time proportional to their number times the number of elements.
const MOVES_MAX: usize = 64;

/// With more elements than this, a sample is examined first.
const MANY: usize = 64;
const SAMPLE: usize = 16;

/// Pairs `old` elements with `new` ones. `None`: each element is paired with the one at its index,
/// and none was inserted or removed.
///
/// If that takes few edits, as many elements as possible keep their order and are paired with one
/// that looks the same. In the gaps between them, old and new elements are paired by position; the
/// rest were removed or inserted. Unpaired elements that look the same on both sides may have
/// moved. Then the shortest of three encodings is used: the above, moves, or a new order of all
/// elements.
pub(super) fn pair(old: usize, new: usize, looks: &impl Looks) -> Option<Pairing> {
    let shorter = old.min(new);
    let front = (0..shorter).take_while(|&at| looks.same(at, at)).count();
    let back = (1..=shorter - front).take_while(|&at| looks.same(old - at, new - at)).count();
    Middle { old, new, front, back, looks }.pair()
}

/// The rest between the equal elements at the front and at the back. Its indices start at 0.
struct Middle<'a, L> {
    old: usize,
    new: usize,
    front: usize,
    back: usize,
    looks: &'a L,
}

impl<L: Looks> Middle<'_, L> {
    fn old_len(&self) -> usize {
        self.old - self.front - self.back
    }

    fn new_len(&self) -> usize {
        self.new - self.front - self.back
    }

    fn same(&self, old: usize, new: usize) -> bool {
        self.looks.same(self.front + old, self.front + new)
    }

    fn pair(&self) -> Option<Pairing> {
        let (old, new) = (self.old_len(), self.new_len());
        if (old, new) == (0, 0) || (old, new) == (1, 1) {
            return None;
        }
        let found = common(old, new, |i, j| self.same(i, j));
        let mut alike = vec![INSERTED; new];
        for &(i, j, count) in found.iter().flatten() {
            (0..count).for_each(|place| alike[j + place] = (i + place) as u32);
        }
        let stayed = found.is_some().then(|| alike.clone());
        if stayed.is_none() {
            // Too much changed to find the common subsequence. But an element that looks the same
            // at its index did not move.
            for (place, alike) in alike.iter_mut().enumerate().take(old.min(new)) {
                if self.same(place, place) {
                    *alike = place as u32;
                }
            }
        }
        let has_moved = self.find_moved(&mut alike);
        let in_place = match stayed {
            Some(stayed) => fill(old, &stayed, |j| stayed[j] != INSERTED),
            None if !has_moved && old == new => return None,
            None => (0..new).map(|j| if j < old { j as u32 } else { INSERTED }).collect(),
        };
        let ops = Steps::of(old, &in_place).in_place(self.front);
        if !has_moved {
            return (!ops.is_empty()).then(|| self.pairing(in_place, ops));
        }
        self.shortest(&alike, in_place, ops)
    }

    fn pairing(&self, mut middle: Vec<u32>, ops: Vec<Op>) -> Pairing {
        middle
            .iter_mut()
            .filter(|from| **from != INSERTED)
            .for_each(|from| *from += self.front as u32);
        Pairing { old: self.old, new: self.new, front: self.front, middle, ops }
    }

    /// Pairs unpaired elements that look the same on both sides: the first with the first, and so
    /// on. Returns whether there are any.
    fn find_moved(&self, alike: &mut [u32]) -> bool {
        let mut is_left = vec![true; self.old_len()];
        alike
            .iter()
            .filter(|from| **from != INSERTED)
            .for_each(|from| is_left[*from as usize] = false);
        let old: Vec<usize> = (0..self.old_len()).filter(|&i| is_left[i]).collect();
        let new: Vec<usize> = (0..self.new_len()).filter(|&j| alike[j] == INSERTED).collect();
        if old.is_empty() || new.is_empty() || !self.may_have_moved(&old, &new) {
            return false;
        }
        let old_look = |i: &usize| self.looks.old_look(self.front + i);
        let mut old: Vec<(u64, usize)> = old.iter().map(|i| (old_look(i), *i)).collect();
        let new_look = |j: &usize| self.looks.new_look(self.front + j);
        let mut new: Vec<(u64, usize)> = new.iter().map(|j| (new_look(j), *j)).collect();
        old.sort_unstable();
        new.sort_unstable();
        let mut any = false;
        let (mut one, mut two) = (old.into_iter().peekable(), new.into_iter().peekable());
        while let (Some(&(old, i)), Some(&(new, j))) = (one.peek(), two.peek()) {
            if old == new && self.same(i, j) {
                alike[j] = i as u32;
                any = true;
            }
            one.next_if(|_| old <= new);
            two.next_if(|_| new <= old);
        }
        any
    }

    /// Returns whether searching for moves is worth the time: not if all elements of the list change.
    fn may_have_moved(&self, old: &[usize], new: &[usize]) -> bool {
        if old.len().max(new.len()) <= MANY {
            return true;
        }
        let sample: Vec<u64> = (0..SAMPLE)
            .map(|place| self.looks.old_look(self.front + old[place * old.len() / SAMPLE]))
            .collect();
        let bits = sample.iter().fold(0, |bits, look| bits | 1_u64 << (look % 64));
        new.iter().any(|j| {
            let look = self.looks.new_look(self.front + j);
            bits >> (look % 64) & 1 == 1 && sample.contains(&look)
        })
    }

    /// The shortest of three encodings, given the elements that look `alike`: as if none had moved,
    /// with moves, or with a new order.
    fn shortest(&self, alike: &[u32], in_place: Vec<u32>, ops: Vec<Op>) -> Option<Pairing> {
        let mut sizes = Sizes::default();
        for (j, &from) in alike.iter().enumerate() {
            if from != INSERTED && in_place[j] != from {
                sizes.add(self.looks.size(self.front + from as usize));
            }
        }
        let mut best = Candidate {
            bytes: bytes(&ops, self.new).saturating_add(sizes.sum + sizes.count),
            from: in_place,
            ops,
        };
        let least = |from: Vec<u32>, ops: Vec<Op>, best: &mut Candidate| {
            // An element that is paired differently is a change, and is sent whole here.
            let whole = from
                .iter()
                .zip(&best.from)
                .filter(|(one, other)| **one == INSERTED && **other != INSERTED)
                .count();
            let bytes = bytes(&ops, self.new) + whole * sizes.mean();
            if bytes < best.bytes {
                *best = Candidate { bytes, from, ops };
            }
        };
        let rising = longest_rising(alike.iter().copied());
        let moved = fill(self.old_len(), alike, |j| rising[j]);
        if let Some(ops) = Steps::of(self.old_len(), &moved).with_moves(self.front) {
            least(moved, ops, &mut best);
        }
        let ordered = fill(self.old_len(), alike, |_| false);
        let ops = Steps::of(self.old_len(), &ordered).with_order(self.front, self.back);
        least(ordered, ops, &mut best);
        let Candidate { from, ops, .. } = best;
        (!ops.is_empty()).then(|| self.pairing(from, ops))
    }
}

/// One way to describe the change of a list.
struct Candidate {
    bytes: usize,
    from: Vec<u32>,
    ops: Vec<Op>,
}

#[derive(Default)]
struct Sizes {
    sum: usize,
    count: usize,
}

impl Sizes {
    fn add(&mut self, size: usize) {
        self.sum += size;
        self.count += 1;
    }

    fn mean(&self) -> usize {
        self.sum.div_ceil(self.count.max(1))
    }
}

/// Their length in bytes in the patch of a list of this length, including the terminating 0.
fn bytes(ops: &[Op], length: usize) -> usize {
    if ops.len() > ops_max(length) {
        return usize::MAX / 2; // the list would be sent whole
    }
    let mut out = Vec::new();
    ops.iter().for_each(|op| op.write(&mut out));
    out.len() + usize::from(!ops.is_empty())
}

/// Pairs those that look alike. Others between the same two fixed elements are paired by position.
fn fill(old: usize, alike: &[u32], stays: impl Fn(usize) -> bool) -> Vec<u32> {
    let mut is_left = vec![true; old];
    alike.iter().filter(|from| **from != INSERTED).for_each(|from| is_left[*from as usize] = false);
    let mut from = alike.to_vec();
    let (mut next_old, mut next_new) = (0, 0);
    for end in 0..=alike.len() {
        let old_end = match alike.get(end) {
            None => old,
            Some(_) if !stays(end) => continue,
            Some(&old_indices) => old_indices as usize,
        };
        let mut left = (next_old..old_end).filter(|&i| is_left[i]);
        let others = from[next_new..end].iter_mut().filter(|from| **from == INSERTED);
        others.zip(&mut left).for_each(|(from, i)| *from = i as u32);
        (next_old, next_new) = (old_end, end);
    }
    from
}

/// The steps from one list to another. Each element is identified by its old index.
struct Steps {
    removals: Vec<Op>,
    /// The new order of the elements that are in both lists.
    order: Vec<u32>,
    insertions: Vec<Op>,
}

impl Steps {
    fn of(old: usize, from: &[u32]) -> Self {
        let mut stays = vec![false; old];
        from.iter().filter(|from| **from != INSERTED).for_each(|from| stays[*from as usize] = true);
        let mut rank = Vec::with_capacity(old);
        let mut removals = Vec::new();
        let mut left = 0;
        for stays in stays {
            rank.push(left);
            match removals.last_mut() {
                _ if stays => left += 1,
                Some(Op::Remove { index, count }) if *index == left => *count += 1,
                _ => removals.push(Op::Remove { index: left, count: 1 }),
            }
        }
        let order = from
            .iter()
            .filter(|from| **from != INSERTED)
            .map(|from| rank[*from as usize])
            .collect();
        let mut insertions = Vec::new();
        for (place, _) in from.iter().enumerate().filter(|(_, from)| **from == INSERTED) {
            match insertions.last_mut() {
                Some(Op::Insert { index, count }) if *index + *count == place as u32 => *count += 1,
                _ => insertions.push(Op::Insert { index: place as u32, count: 1 }),
            }
        }
        Self { removals, order, insertions }
    }

    /// If nothing moved.
    fn in_place(self, front: usize) -> Vec<Op> {
        self.with(Vec::new(), front)
    }

    fn with_moves(self, front: usize) -> Option<Vec<Op>> {
        let moves = moves(&self.order)?;
        Some(self.with(moves, front))
    }

    fn with_order(self, front: usize, back: usize) -> Vec<Op> {
        if self.order.iter().is_sorted() {
            return self.in_place(front);
        }
        let (front, back) = (front as u32, back as u32);
        let end = front + self.order.len() as u32;
        let order =
            (0..front).chain(self.order.iter().map(|from| front + from)).chain(end..end + back);
        // An order covers the whole list already, so the offset of the front does not apply to it.
        let order = Op::Order(order.collect());
        self.with(vec![order], front as usize)
    }

    fn with(self, moved: Vec<Op>, front: usize) -> Vec<Op> {
        let Self { mut removals, insertions, .. } = self;
        removals.extend(moved);
        removals.extend(insertions);
        let front = front as u32;
        for op in &mut removals {
            match op {
                Op::Remove { index, .. } | Op::Insert { index, .. } => *index += front,
                Op::Move { from, to, .. } => {
                    *from += front;
                    *to += front;
                }
                Op::Order(_) => {}
            }
        }
        removals
    }
}

/// The moves that bring a list into an order, front to back; `None` if there are too many. As many
/// elements as possible stay in place.
fn moves(order: &[u32]) -> Option<Vec<Op>> {
    let stays = longest_rising(order.iter().copied());
    let mut list: Vec<u32> = (0..order.len() as u32).collect();
    let mut moves = Vec::new();
    let mut at = 0;
    while at < order.len() {
        if stays[at] {
            at += 1;
            continue;
        }
        // Elements that were adjacent and stay adjacent move together.
        let follows = |place: usize| order[place] == order[place - 1] + 1 && !stays[place];
        let count = 1 + (at + 1..order.len()).take_while(|&place| follows(place)).count();
        let old_indices =
            |element: u32| list.iter().position(|one| *one == element).unwrap_or_default();
        let from = old_indices(order[at]);
        let to = match at.checked_sub(1).map(|before| old_indices(order[before])) {
            None => 0,
            Some(before) if before < from => before + 1,
            Some(before) => before + 1 - count,
        };
        if from != to {
            if moves.len() == MOVES_MAX {
                return None;
            }
            let op = Op::Move { from: from as u32, to: to as u32, count: count as u32 };
            op.apply(&mut list);
            moves.push(op);
        }
        at += count;
    }
    Some(moves)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look like themselves, with a size in bytes for each.
    struct Numbers<'a>(&'a [u32], &'a [u32], usize);

    impl Looks for Numbers<'_> {
        fn same(&self, old: usize, new: usize) -> bool {
            self.0[old] == self.1[new]
        }
        fn old_look(&self, index: usize) -> u64 {
            // Some different elements have the same digest.
            u64::from(self.0[index] / 2)
        }
        fn new_look(&self, index: usize) -> u64 {
            u64::from(self.1[index] / 2)
        }
        fn size(&self, _: usize) -> usize {
            self.2
        }
    }

    fn ops(old: &[u32], new: &[u32], size: usize) -> Vec<Op> {
        pair(old.len(), new.len(), &Numbers(old, new, size))
            .map_or(Vec::new(), |pairing| pairing.ops)
    }

    const fn remove(index: u32, count: u32) -> Op {
        Op::Remove { index, count }
    }

    const fn insert(index: u32, count: u32) -> Op {
        Op::Insert { index, count }
    }

    const fn shifted(from: u32, to: u32, count: u32) -> Op {
        Op::Move { from, to, count }
    }

    fn even(range: std::ops::Range<u32>) -> Vec<u32> {
        range.map(|n| 2 * n).collect()
    }

    #[test]
    fn a_push_and_a_pop_at_the_front_are_one_insertion_and_one_removal() {
        assert_eq!(ops(&[2, 4, 6], &[4, 6, 8], 1), [remove(0, 1), insert(2, 1)]);
    }

    #[test]
    fn an_element_put_in_the_place_of_another_is_paired_with_it() {
        assert_eq!(ops(&[2, 4, 6], &[2, 18, 6], 1), []);
        assert_eq!(ops(&[2, 4, 6, 8], &[2, 18, 16, 6, 8], 1), [insert(2, 1)]);
    }

    #[test]
    fn elements_that_all_changed_are_paired_by_position() {
        let (old, new) = (even(0..1000), even(1000..2000));
        assert_eq!(ops(&old, &new, 8), []);
        assert_eq!(ops(&old, &new[..990], 8), [remove(990, 10)]);
        assert_eq!(ops(&old[..900], &new, 8), [insert(900, 100)]);
    }

    #[test]
    fn a_list_that_ends_or_begins_is_one_run() {
        assert_eq!(ops(&[], &[], 1), []);
        assert_eq!(ops(&[], &[2, 2], 1), [insert(0, 2)]);
        assert_eq!(ops(&[2, 2], &[], 1), [remove(0, 2)]);
        assert_eq!(ops(&[14, 14, 14], &[14, 14], 1), [remove(2, 1)]);
    }

    #[test]
    fn moved_elements_are_sent_as_moves() {
        let old = even(0..1000);
        let mut new = old.clone();
        new[10..900].rotate_left(1);
        assert_eq!(ops(&old, &new, 8), [shifted(10, 899, 1)]);
        let mut new = old.clone();
        new.rotate_right(300);
        assert_eq!(ops(&old, &new, 8), [shifted(700, 0, 300)]);
        let mut new = old.clone();
        new.swap(3, 500);
        assert_eq!(ops(&old, &new, 8), [shifted(500, 3, 1), shifted(4, 500, 1)]);
        // Insertions and removals around it are found too.
        new.remove(700);
        new.insert(0, 9_999);
        assert_eq!(
            ops(&old, &new, 8),
            [remove(700, 1), shifted(500, 3, 1), shifted(4, 500, 1), insert(0, 1)]
        );
    }

    #[test]
    fn small_elements_are_sent_rather_than_moved() {
        let old = even(0..100);
        let mut new = old.clone();
        new.swap(3, 50);
        assert_eq!(ops(&old, &new, 1), []);
    }

    #[test]
    fn many_moves_become_an_order() {
        let old = even(0..100);
        let mut new: Vec<u32> = old.iter().rev().copied().collect();
        let reversed = Op::Order((0..100).rev().collect());
        assert_eq!(ops(&old, &new, 4), [reversed]);
        // Of those that look like no other, the first are paired, wherever they are.
        new[0] = 9_998;
        new.pop();
        let order = Op::Order(std::iter::once(0).chain((1..99).rev()).collect());
        assert_eq!(ops(&old, &new, 4), [remove(99, 1), order]);
    }

    /// For every pair of short lists, the steps lead from one to the other, and short edit scripts
    /// are found.
    #[test]
    fn steps_lead_from_the_old_list_to_the_new_one() {
        let lists: Vec<Vec<u32>> = (0..3_u32.pow(5))
            .map(|n| (0..n % 6).map(|at| n / 3_u32.pow(at) % 3).collect())
            .collect();
        for old in &lists {
            for new in &lists {
                for size in [1, 9] {
                    let kept = check(old, new, size);
                    assert!(kept >= longest_common(old, new), "{old:?} to {new:?}");
                }
            }
        }
    }

    #[test]
    fn steps_lead_from_any_list_to_any_other() {
        let mut seed = 1_u64;
        let mut pick = move |count: usize| {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (seed >> 33) as usize % count
        };
        for case in 0..400 {
            let kinds = [2, 5, 100_000][case % 3];
            let old: Vec<u32> = (0..pick(300)).map(|_| pick(kinds) as u32).collect();
            let mut new = old.clone();
            for _ in 0..[1, 3, 30, 300][case % 4] {
                match pick(4) {
                    0 => {
                        let index = pick(new.len() + 1);
                        new.insert(index, pick(kinds) as u32);
                    }
                    _ if new.is_empty() => {}
                    1 => {
                        let index = pick(new.len());
                        new.remove(index);
                    }
                    2 => {
                        let other = pick(new.len());
                        new.swap(other, 0);
                    }
                    _ => {
                        let (from, to) = (pick(new.len()), pick(new.len()));
                        let element = new.remove(from);
                        new.insert(to, element);
                    }
                }
            }
            check(&old, &new, 1 + case % 20);
        }
    }

    /// Applies the steps. Returns how many elements are paired with one that looks the same.
    fn check(old: &[u32], new: &[u32], size: usize) -> usize {
        let Some(pairing) = pair(old.len(), new.len(), &Numbers(old, new, size)) else {
            assert_eq!(old.len(), new.len());
            return old.iter().zip(new).filter(|(one, other)| one == other).count();
        };
        let mut list: Vec<u32> = (0..old.len() as u32).collect();
        pairing.ops.iter().for_each(|op| op.apply(&mut list));
        let paired: Vec<u32> = (0..new.len())
            .map(|index| pairing.from(index).map_or(INSERTED, |from| from as u32))
            .collect();
        assert_eq!(list, paired, "{old:?} to {new:?}: {:?}", pairing.ops);
        paired.iter().zip(new).filter(|(from, new)| old.get(**from as usize) == Some(*new)).count()
    }

    fn longest_common(a: &[u32], b: &[u32]) -> usize {
        match (a, b) {
            ([x, a @ ..], [y, b @ ..]) if x == y => 1 + longest_common(a, b),
            ([_, rest_a @ ..], [_, rest_b @ ..]) => {
                longest_common(rest_a, b).max(longest_common(a, rest_b))
            }
            _ => 0,
        }
    }

    #[test]
    fn the_longest_increasing_subsequence_stays() {
        let of = |numbers: &[u32]| longest_rising(numbers.iter().copied());
        assert!(of(&[]).is_empty());
        assert_eq!(of(&[3, 0, 1, INSERTED, 2]), [false, true, true, false, true]);
        assert_eq!(of(&[2, 1, 0]), [false, false, true]);
    }
}
