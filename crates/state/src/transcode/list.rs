//! Lists. Their changes of shape stay as they are; but they say which elements came, and so are
//! whole, and which are patches.

use playfield_wire::DecodeError;

use super::plan::Plan;
use super::walk::Walk;
use crate::Part;
use crate::list::op::{INSERT, LIST_OPS_MAX, MOVE, REMOVE};
use crate::list::state::ListPatch;

/// So many elements in a row that came, or that were there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    came: bool,
    count: u64,
}

/// A list of which only this is known. At first it is of any length.
#[derive(Debug)]
struct Shape(Vec<Run>);

impl Walk<'_> {
    pub(super) fn list_patch(&mut self, of: &Plan, part: Part) -> Result<(), DecodeError> {
        let how = ListPatch::read(&mut self.reader)?;
        self.out.push(how as u8);
        match how {
            ListPatch::Whole => {
                let count = self.reader.count()?;
                playfield_wire::writer::put_varint(self.out, count as u64);
                (0..count).try_for_each(|_| self.whole(of, part))
            }
            ListPatch::Elements => self.elements(of, part, &Shape::unknown()),
            ListPatch::ShapeAndElements => {
                let shape = self.shape()?;
                self.elements(of, part, &shape)
            }
        }
    }

    fn elements(&mut self, of: &Plan, part: Part, shape: &Shape) -> Result<(), DecodeError> {
        let (mut next, mut runs, mut end) = (0_u64, shape.0.iter(), 0_u64);
        let mut came = false;
        loop {
            let at = self.reader.offset();
            let distance = self.varint()?;
            if distance == 0 {
                return Ok(());
            }
            next = next.saturating_add(distance);
            while next > end {
                let Some(run) = runs.next() else {
                    return Err(DecodeError::new(
                        at,
                        format!("index {} is past the end of a list of {end}", next - 1),
                    ));
                };
                end = end.saturating_add(run.count);
                came = run.came;
            }
            if came { self.whole(of, part)? } else { self.patch(of, part)? }
        }
    }

    /// Passes on changes of shape, and follows which elements came.
    fn shape(&mut self) -> Result<Shape, DecodeError> {
        let mut shape = Shape::unknown();
        for place in 0.. {
            let at = self.reader.offset();
            let word = self.varint()?;
            if word == 0 {
                break;
            }
            if place == LIST_OPS_MAX {
                let what = format!("more than {LIST_OPS_MAX} changes of shape came for one list");
                return Err(DecodeError::new(at, what));
            }
            let count = word / 4;
            let fits = match word % 4 {
                REMOVE => {
                    let index = self.varint()?;
                    shape.take(index, count).is_some()
                }
                INSERT => {
                    let index = self.varint()?;
                    shape.put(index, vec![Run { came: true, count }]).is_some()
                }
                MOVE => {
                    let (from, to) = (self.varint()?, self.varint()?);
                    shape.take(from, count).and_then(|taken| shape.put(to, taken)).is_some()
                }
                _ => self.order(&mut shape, count)?.is_some(),
            };
            if !fits || count == 0 {
                return Err(DecodeError::new(at, "a change of shape does not fit its list"));
            }
        }
        Ok(shape)
    }

    /// Every element of a list of this length gets another place.
    fn order(&mut self, shape: &mut Shape, length: u64) -> Result<Option<()>, DecodeError> {
        let Some(count) =
            usize::try_from(length).ok().filter(|&count| count <= self.reader.remaining())
        else {
            return Ok(None);
        };
        let Some(came) = shape.first(count) else { return Ok(None) };
        let mut ordered = Shape(Vec::new());
        for _ in 0..count {
            let from = self.varint()?;
            let Some(&came) = usize::try_from(from).ok().and_then(|from| came.get(from)) else {
                return Ok(None);
            };
            match ordered.0.last_mut() {
                Some(last) if last.came == came => last.count += 1,
                _ => ordered.0.push(Run { came, count: 1 }),
            }
        }
        *shape = ordered;
        Ok(Some(()))
    }
}

impl Shape {
    /// All of it was there before; how long it is, only the copy knows.
    fn unknown() -> Self {
        Self(vec![Run { came: false, count: u64::MAX }])
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
    use super::{Run, Shape};

    fn came(count: u64) -> Run {
        Run { came: true, count }
    }

    #[test]
    fn a_shape_knows_which_elements_came_wherever_they_went() {
        let mut shape = Shape::unknown();
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
        let mut shape = Shape(vec![came(2)]);
        assert_eq!(shape.first(3), None);
        assert!(shape.put(3, vec![came(1)]).is_none());
        assert!(shape.take(1, 2).is_none());
        assert!(shape.take(u64::MAX, 2).is_none());
        assert!(shape.put(2, vec![came(u64::MAX)]).is_some());
        assert!(shape.part(u64::MAX).is_some());
    }
}
