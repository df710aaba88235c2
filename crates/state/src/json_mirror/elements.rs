//! An array while elements are inserted, removed and moved.

use serde_json::Value;

/// The number of operations that are applied to the undivided array. Most patches have fewer, and
/// for those, dividing the array would cost more than it saves.
const WHOLE_MAX: u32 = 8;

/// The maximum length of a piece.
const PIECE_MAX: usize = 1_024;

/// The elements of an array. An operation moves all elements after its index. So after some
/// operations the array is divided into pieces, and each operation moves the elements of one piece
/// only.
pub(super) struct Elements {
    pieces: Vec<Vec<Value>>,
    length: usize,
    /// The number of operations applied so far.
    done: u32,
}

impl Elements {
    pub(super) fn new(array: Vec<Value>) -> Self {
        Self { length: array.len(), pieces: vec![array], done: 0 }
    }

    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// Removes the element at an index, which must be in bounds.
    pub(super) fn remove(&mut self, index: usize) -> Value {
        let (piece, at) = self.find(index);
        self.length -= 1;
        // A piece may become empty but is kept: there are never more than the division made, plus
        // one for each insertion.
        self.pieces[piece].remove(at)
    }

    /// Inserts an element at an index, which may be the end.
    pub(super) fn insert(&mut self, index: usize, element: Value) {
        let (piece, at) = self.find(index);
        self.length += 1;
        let elements = &mut self.pieces[piece];
        elements.insert(at, element);
        if self.done > WHOLE_MAX && elements.len() > PIECE_MAX {
            let behind = elements.split_off(PIECE_MAX / 2);
            self.pieces.insert(piece + 1, behind);
        }
    }

    /// The resulting array.
    pub(super) fn into_array(mut self) -> Vec<Value> {
        match self.pieces.len() {
            1 => self.pieces.swap_remove(0),
            _ => self.pieces.into_iter().flatten().collect(),
        }
    }

    /// The piece that holds an index, and the position in it. The end is in the last piece.
    fn find(&mut self, index: usize) -> (usize, usize) {
        self.done = self.done.saturating_add(1);
        if self.done == WHOLE_MAX + 1 {
            self.cut();
        }
        let (mut piece, mut at) = (0, index);
        while at >= self.pieces[piece].len() && piece + 1 < self.pieces.len() {
            at -= self.pieces[piece].len();
            piece += 1;
        }
        (piece, at)
    }

    fn cut(&mut self) {
        let mut rest = std::mem::take(&mut self.pieces).into_iter().flatten().peekable();
        while rest.peek().is_some() {
            self.pieces.push(rest.by_ref().take(PIECE_MAX / 2).collect());
        }
        if self.pieces.is_empty() {
            self.pieces.push(Vec::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_is_as_a_plain_array(
            length in 0..3_000_usize,
            steps in proptest::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..400),
            burst in any::<prop::sample::Index>(),
        ) {
            let mut plain: Vec<Value> = (0..length).map(Value::from).collect();
            let mut elements = Elements::new(plain.clone());
            for (place, (comes, at)) in steps.iter().enumerate() {
                if *comes || plain.is_empty() {
                    let at = at.index(plain.len() + 1);
                    plain.insert(at, Value::from(-1));
                    elements.insert(at, Value::from(-1));
                } else {
                    let at = at.index(plain.len());
                    prop_assert_eq!(elements.remove(at), plain.remove(at));
                }
                // Many at one index, so that a piece exceeds its limit.
                if place == burst.index(steps.len()) {
                    let at = at.index(plain.len() + 1);
                    plain.splice(at..at, (0..PIECE_MAX).rev().map(Value::from));
                    (0..PIECE_MAX).for_each(|number| elements.insert(at, Value::from(number)));
                }
                prop_assert_eq!(elements.len(), plain.len());
            }
            prop_assert_eq!(elements.into_array(), plain);
        }
    }
}
