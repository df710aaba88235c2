//! Writing the operations of a tree's patch.

use playfield_wire::TreeFormat;
use playfield_wire::tree::{Array, Place, TreeDigest, TreeWriter};

use crate::data::write_array;

/// Adds operations to an array, and tracks the path to the place where they apply.
///
/// An operation is `[path, value]` (set), `[path]` (remove), `[path, value, "insert"]` (insert into
/// an array at the index that ends the path), `[path, index, "move"]` or
/// `[path, indices, "order"]`. See `docs/state.md`.
#[derive(Debug)]
pub struct Ops<'a, 'o>(Way<'a, 'o>);

#[derive(Debug)]
enum Way<'a, 'o> {
    /// Operations become elements of an array. The path is kept as elements without an array around
    /// them.
    Written { array: &'a mut Array<'o>, path: Vec<u8>, steps: usize },
    /// The values that they set count in the digest of the tree.
    Counted { digest: &'a mut TreeDigest, place: Place },
}

impl<'a, 'o> Ops<'a, 'o> {
    /// Operations become elements of `array`.
    pub fn new(array: &'a mut Array<'o>) -> Self {
        Self(Way::Written { array, path: Vec::new(), steps: 0 })
    }

    /// The values that operations set are added to a digest. A patch from nothing to a copy only
    /// sets values; other operations count as nothing.
    pub fn counted(digest: &'a mut TreeDigest) -> Self {
        Self(Way::Counted { digest, place: Place::ROOT })
    }

    /// If they count in a digest: the format of the tree, and the place.
    pub(crate) fn counts(&self) -> Option<(TreeFormat, Place)> {
        match &self.0 {
            Way::Written { .. } => None,
            Way::Counted { digest, place } => Some((digest.format(), *place)),
        }
    }

    /// Adds a sum that was counted before.
    pub(crate) fn count(&mut self, sum: u32) {
        if let Way::Counted { digest, .. } = &mut self.0 {
            digest.add(sum);
        }
    }

    /// One level down, to the member `name`.
    #[inline]
    pub fn member(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        self.within(|step| step.text(name), |place| place.member(name), inside);
    }

    /// One level down, to the element at `index`.
    #[inline]
    pub fn element(&mut self, index: usize, inside: impl FnOnce(&mut Self)) {
        self.within(|step| step.u64(index as u64), |place| place.element(index), inside);
    }

    /// Sets the place to a value.
    #[inline]
    pub fn set(&mut self, value: impl FnOnce(TreeWriter<'_>)) {
        if let Way::Counted { digest, place } = &mut self.0 {
            return value(digest.at(*place));
        }
        self.write(2, |op| value(op.element()));
    }

    /// Removes the place from its object or array.
    pub fn remove(&mut self) {
        self.write(1, |_| {});
    }

    /// Inserts a value into an array at this place.
    pub fn insert(&mut self, value: impl FnOnce(TreeWriter<'_>)) {
        self.write(3, |op| {
            value(op.element());
            op.element().text("insert");
        });
    }

    /// Moves the element at this place to another index of its array.
    pub fn move_to(&mut self, index: usize) {
        self.write(3, |op| {
            op.element().u64(index as u64);
            op.element().text("move");
        });
    }

    /// Reorders the array at this place. `order` has the old index of each element.
    pub fn order(&mut self, order: &[u32]) {
        self.write(3, |op| {
            write_array(op.element(), order.iter(), |from, out| out.u64(u64::from(*from)));
            op.element().text("order");
        });
    }

    /// Writes an operation with this many parts; the first one is the path.
    #[inline]
    fn write(&mut self, parts: usize, rest: impl FnOnce(&mut Array<'_>)) {
        let Way::Written { array, path, steps } = &mut self.0 else { return };
        let mut op = array.element().array(parts);
        op.element().array_of(path, *steps);
        rest(&mut op);
        op.end();
    }

    #[inline]
    fn within(
        &mut self,
        step: impl FnOnce(TreeWriter<'_>),
        down: impl FnOnce(Place) -> Place,
        inside: impl FnOnce(&mut Self),
    ) {
        match &mut self.0 {
            Way::Written { array, path, steps } => {
                let length = path.len();
                step(Array::bare(array.format(), path, *steps).element());
                *steps += 1;
                inside(self);
                if let Way::Written { path, steps, .. } = &mut self.0 {
                    *steps -= 1;
                    path.truncate(length);
                }
            }
            Way::Counted { place, .. } => {
                let above = *place;
                *place = down(above);
                inside(self);
                if let Way::Counted { place, .. } = &mut self.0 {
                    *place = above;
                }
            }
        }
    }
}
