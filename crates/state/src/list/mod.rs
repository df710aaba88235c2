//! A list that knows which of its elements were touched, and which came.

mod align;
pub(crate) mod op;
mod pairing;
mod shadow;
pub(crate) mod state;

use std::fmt;

/// An ordered list of state.
///
/// It notes which elements were borrowed mutably and which are new, so that a sync sends what changed and not the list. It can't
/// be borrowed as a slice, since writes through one would go unseen.
pub struct List<T> {
    items: Vec<Item<T>>,
    /// Which shadow this list is in step with; 0 = none.
    token: u64,
    /// Some element was borrowed mutably.
    touched: bool,
    /// Elements came, went or moved.
    shape: bool,
}

struct Item<T> {
    value: T,
    /// Its place in the shadow; [`FRESH`] until the first sync that sees it.
    place: u32,
    touched: bool,
}

/// Not in the shadow yet.
const FRESH: u32 = u32::MAX;

impl<T> Item<T> {
    fn fresh(value: T) -> Self {
        Self { value, place: FRESH, touched: true }
    }

    /// It is known to be as it was last synced, at this place.
    fn is_still(&self, place: usize) -> bool {
        !self.touched && self.place as usize == place
    }
}

impl<T> List<T> {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The element at an index.
    pub fn get(&self, index: usize) -> Option<&T> {
        self.items.get(index).map(|item| &item.value)
    }

    /// The element at an index, to change it.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let item = self.items.get_mut(index)?;
        item.touched = true;
        self.touched = true;
        Some(&mut item.value)
    }

    /// The first element.
    pub fn first(&self) -> Option<&T> {
        self.get(0)
    }

    /// The last element.
    pub fn last(&self) -> Option<&T> {
        self.items.last().map(|item| &item.value)
    }

    /// Appends an element.
    pub fn push(&mut self, value: T) {
        self.shape = true;
        self.items.push(Item::fresh(value));
    }

    /// Takes the last element off.
    pub fn pop(&mut self) -> Option<T> {
        let item = self.items.pop()?;
        self.shape = true;
        Some(item.value)
    }

    /// Puts an element at an index; those from there on move up by one.
    ///
    /// # Panics
    /// If the index is past the end.
    pub fn insert(&mut self, index: usize, value: T) {
        assert!(index <= self.len(), "index {index} is past the end of a list of {}", self.len());
        self.shape = true;
        self.items.insert(index, Item::fresh(value));
    }

    /// Takes the element at an index out; those behind it move down by one.
    pub fn remove(&mut self, index: usize) -> Option<T> {
        if index >= self.len() {
            return None;
        }
        self.shape = true;
        Some(self.items.remove(index).value)
    }

    /// Puts the last element in the place of the one at an index, which it returns.
    pub fn swap_remove(&mut self, index: usize) -> Option<T> {
        if index >= self.len() {
            return None;
        }
        self.shape = true;
        Some(self.items.swap_remove(index).value)
    }

    /// Exchanges two elements.
    ///
    /// # Panics
    /// If an index is past the end.
    pub fn swap(&mut self, a: usize, b: usize) {
        self.shape |= a != b;
        self.items.swap(a, b);
    }

    /// Takes all elements out.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Takes out all elements from an index on.
    pub fn truncate(&mut self, length: usize) {
        self.shape |= length < self.len();
        self.items.truncate(length);
    }

    /// Keeps the elements for which `keep` says so.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let before = self.len();
        self.items.retain(|item| keep(&item.value));
        self.shape |= self.len() < before;
    }

    /// Orders the elements; equal ones keep their order.
    pub fn sort_by(&mut self, mut compare: impl FnMut(&T, &T) -> std::cmp::Ordering) {
        self.shape = true;
        self.items.sort_by(|a, b| compare(&a.value, &b.value));
    }

    /// All elements in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &T> + ExactSizeIterator {
        self.items.iter().map(|item| &item.value)
    }

    /// All elements in order, to change them. Each that is handed out counts as touched.
    pub fn iter_mut(&mut self) -> impl DoubleEndedIterator<Item = &mut T> + ExactSizeIterator {
        self.touched = true;
        self.items.iter_mut().map(|item| {
            item.touched = true;
            &mut item.value
        })
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { items: Vec::new(), token: 0, touched: false, shape: false }
    }
}

/// A clone is a list of its own: it is in step with no shadow.
impl<T: Clone> Clone for List<T> {
    fn clone(&self) -> Self {
        self.iter().cloned().collect()
    }
}

impl<T> FromIterator<T> for List<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        let mut list = Self::default();
        list.extend(values);
        list
    }
}

impl<T> Extend<T> for List<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, values: I) {
        for value in values {
            self.push(value);
        }
    }
}

impl<T> std::ops::Index<usize> for List<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        &self.items[index].value
    }
}

impl<T> std::ops::IndexMut<usize> for List<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        let length = self.len();
        self.get_mut(index).unwrap_or_else(|| panic!("index {index} is past the end of a list of {length}"))
    }
}

impl<T: PartialEq> PartialEq for List<T> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<T: fmt::Debug> fmt::Debug for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
