//! The operations of a JSON patch, as they are written.

use playfield_wire::json;

use crate::data::json_array;

/// Appends operations to a body, and keeps the path to the place where they apply.
///
/// An operation is `[path, value]` (set), `[path]` (remove), `[path, value, "insert"]` (put into an array at the index that
/// ends the path, moving the rest up), `[path, index, "move"]` or `[path, indices, "order"]`. `docs/state.md` says it in full.
#[derive(Debug)]
pub struct Ops<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
    path: Vec<u8>,
}

impl<'a> Ops<'a> {
    /// Operations are appended to `out`, with commas between them.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        Self { out, start, path: Vec::new() }
    }

    /// Whether anything was appended.
    pub fn any(&self) -> bool {
        self.out.len() > self.start
    }

    /// One level down, to the member `name`.
    pub fn member(&mut self, name: &str, inside: impl FnOnce(&mut Self)) {
        self.within(|path| json::write_text(path, name), inside);
    }

    /// One level down, to the element at `index`.
    pub fn element(&mut self, index: usize, inside: impl FnOnce(&mut Self)) {
        self.within(|path| json::write_u64(path, index as u64), inside);
    }

    /// Sets the place to a value.
    pub fn set(&mut self, value: impl FnOnce(&mut Vec<u8>)) {
        self.begin();
        self.out.push(b',');
        value(self.out);
        self.out.push(b']');
    }

    /// Removes the place from its object or array.
    pub fn remove(&mut self) {
        self.begin();
        self.out.push(b']');
    }

    /// Inserts a value into an array at this place.
    pub fn insert(&mut self, value: impl FnOnce(&mut Vec<u8>)) {
        self.begin();
        self.out.push(b',');
        value(self.out);
        self.out.extend_from_slice(b",\"insert\"]");
    }

    /// Takes the element at this place out of its array, and puts it back in at an index.
    pub fn move_to(&mut self, index: usize) {
        self.begin();
        self.out.push(b',');
        json::write_u64(self.out, index as u64);
        self.out.extend_from_slice(b",\"move\"]");
    }

    /// Puts the array at this place into another order: for each place the index at which its element stood.
    pub fn order(&mut self, order: &[u32]) {
        self.begin();
        self.out.push(b',');
        json_array(self.out, order.iter(), |from, out| json::write_u64(out, u64::from(*from)));
        self.out.extend_from_slice(b",\"order\"]");
    }

    fn begin(&mut self) {
        if self.any() {
            self.out.push(b',');
        }
        self.out.extend_from_slice(b"[[");
        self.out.extend_from_slice(&self.path);
        self.out.push(b']');
    }

    fn within(&mut self, segment: impl FnOnce(&mut Vec<u8>), inside: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        if length > 0 {
            self.path.push(b',');
        }
        segment(&mut self.path);
        inside(self);
        self.path.truncate(length);
    }
}
