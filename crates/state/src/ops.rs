//! The operations of a tree's patch, as they are written.

use playfield_wire::tree::{Array, TreeWriter};

use crate::data::write_array;

/// Adds operations to an array, and keeps the path to the place where they apply.
///
/// An operation is `[path, value]` (set), `[path]` (remove), `[path, value, "insert"]` (put into an array at the index that
/// ends the path, moving the rest up), `[path, index, "move"]` or `[path, indices, "order"]`. `docs/state.md` says it in full.
#[derive(Debug)]
pub struct Ops<'a, 'o> {
    array: &'a mut Array<'o>,
    path: Vec<u8>,
    steps: usize,
}

impl<'a, 'o> Ops<'a, 'o> {
    /// Operations become elements of `array`.
    pub fn new(array: &'a mut Array<'o>) -> Self {
        Self { array, path: Vec::new(), steps: 0 }
    }

    /// One level down, to the member `name`.
    pub fn member(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        self.within(|step| step.text(name), inside);
    }

    /// One level down, to the element at `index`.
    pub fn element(&mut self, index: usize, inside: impl FnOnce(&mut Self)) {
        self.within(|step| step.u64(index as u64), inside);
    }

    /// Sets the place to a value.
    #[inline]
    pub fn set(&mut self, value: impl FnOnce(TreeWriter<'_>)) {
        let mut op = self.begin(2);
        value(op.element());
        op.end();
    }

    /// Removes the place from its object or array.
    pub fn remove(&mut self) {
        self.begin(1).end();
    }

    /// Inserts a value into an array at this place.
    pub fn insert(&mut self, value: impl FnOnce(TreeWriter<'_>)) {
        let mut op = self.begin(3);
        value(op.element());
        op.element().text("insert");
        op.end();
    }

    /// Takes the element at this place out of its array, and puts it back in at an index.
    pub fn move_to(&mut self, index: usize) {
        let mut op = self.begin(3);
        op.element().u64(index as u64);
        op.element().text("move");
        op.end();
    }

    /// Puts the array at this place into another order: for each place the index at which its element stood.
    pub fn order(&mut self, order: &[u32]) {
        let mut op = self.begin(3);
        write_array(op.element(), order.iter(), |from, out| out.u64(u64::from(*from)));
        op.element().text("order");
        op.end();
    }

    /// An operation of so many parts, of which the path is written.
    #[inline]
    fn begin(&mut self, parts: usize) -> Array<'_> {
        let mut op = self.array.element().array(parts);
        op.element().array_of(&self.path, self.steps);
        op
    }

    #[inline]
    fn within(&mut self, step: impl FnOnce(TreeWriter<'_>), inside: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        step(Array::bare(self.array.format(), &mut self.path, self.steps).element());
        self.steps += 1;
        inside(self);
        self.steps -= 1;
        self.path.truncate(length);
    }
}
