//! The shape of a list whose length only the copy knows: which elements came, and are whole, and
//! which are patches.

use crate::list::op::Op;
use crate::walk::Run;

/// Elements in runs that came, or that were there before.
#[derive(Debug)]
pub(super) struct ListShape(pub(super) Vec<Run>);

impl ListShape {
    /// All of it was there before; only the copy knows its length.
    pub(super) fn unknown() -> Self {
        Self(vec![Run { came: false, count: u64::MAX }])
    }

    /// Changes the shape. An operation that does not fit is left out: a copy refuses it.
    pub(super) fn apply(&mut self, op: &Op) {
        match *op {
            Op::Remove { index, count } => drop(self.take(index.into(), count.into())),
            Op::Insert { index, count } => {
                let _ = self.put(index.into(), vec![Run { came: true, count: count.into() }]);
            }
            Op::Move { from, to, count } => {
                let taken = self.take(from.into(), count.into()).unwrap_or_default();
                let _ = self.put(to.into(), taken);
            }
            Op::Order(ref order) => {
                let Some(came) = self.first(order.len()) else { return };
                let mut ordered: Vec<Run> = Vec::new();
                for from in order {
                    let came = came[*from as usize];
                    match ordered.last_mut() {
                        Some(last) if last.came == came => last.count += 1,
                        _ => ordered.push(Run { came, count: 1 }),
                    }
                }
                self.0 = ordered;
            }
        }
    }

    /// Parts the runs at an index, and says which run begins there. `None` past the end.
    fn part(&mut self, index: u64) -> Option<usize> {
        let mut before = 0_u64;
        for place in 0..self.0.len() {
            let Run { came, count } = self.0[place];
            if before == index {
                return Some(place);
            }
            if index - before < count {
                self.0[place].count = index - before;
                self.0.insert(place + 1, Run { came, count: count - (index - before) });
                return Some(place + 1);
            }
            before = before.saturating_add(count);
        }
        (before == index).then_some(self.0.len())
    }

    /// Takes so many elements out.
    fn take(&mut self, index: u64, count: u64) -> Option<Vec<Run>> {
        let from = self.part(index)?;
        let to = self.part(index.checked_add(count)?)?;
        Some(self.0.drain(from..to).collect())
    }

    /// Puts elements in.
    fn put(&mut self, index: u64, runs: Vec<Run>) -> Option<()> {
        let at = self.part(index)?;
        self.0.splice(at..at, runs);
        Some(())
    }

    /// Of so many elements from the beginning, which came. `None` if there are not as many.
    fn first(&self, count: usize) -> Option<Vec<bool>> {
        let mut came = Vec::new();
        for run in &self.0 {
            let left = count - came.len();
            let more = usize::try_from(run.count).unwrap_or(usize::MAX).min(left);
            came.resize(came.len() + more, run.came);
        }
        (came.len() == count).then_some(came)
    }
}

#[cfg(test)]
mod tests {
    use super::{ListShape, Run};

    fn came(count: u64) -> Run {
        Run { came: true, count }
    }

    #[test]
    fn a_shape_knows_which_elements_came_wherever_they_went() {
        let mut shape = ListShape::unknown();
        shape.put(3, vec![came(2)]).unwrap();
        assert_eq!(shape.first(6), Some(vec![false, false, false, true, true, false]));
        shape.take(0, 2).unwrap();
        assert_eq!(shape.first(4), Some(vec![false, true, true, false]));
        let taken = shape.take(2, 2).unwrap();
        shape.put(0, taken).unwrap();
        assert_eq!(shape.first(4), Some(vec![true, false, false, true]));
        shape.take(0, 1).unwrap();
        shape.put(u64::MAX, vec![came(1)]);
        assert_eq!(shape.first(3), Some(vec![false, false, true]));
    }

    #[test]
    fn what_lies_past_the_end_does_not_fit() {
        let mut shape = ListShape(vec![came(2)]);
        assert_eq!(shape.first(3), None);
        assert!(shape.put(3, vec![came(1)]).is_none());
        assert!(shape.take(1, 2).is_none());
        assert!(shape.take(u64::MAX, 2).is_none());
        assert!(shape.put(2, vec![came(u64::MAX)]).is_some());
        assert!(shape.part(u64::MAX).is_some());
    }
}
