//! A list that tracks its changes.

mod align;
mod iter;
pub(crate) mod op;
mod pairing;
mod shadow;
pub(crate) mod state;

use std::fmt;
use std::ops::RangeBounds;

use crate::map::new_token;

/// An ordered list of state.
///
/// It tracks which elements were borrowed mutably and which are new, so a sync sends only the
/// changes. It can't be borrowed as a slice, since it would not see writes through one.
///
/// Each element has an [`ElementId`], which it keeps wherever it moves.
///
/// ```
/// use playfield_state::List;
///
/// let mut queue = List::from(["Ann", "Bob", "Cleo"]);
/// let bob = queue.id_at(1).unwrap();
/// queue.move_to(1, 2);
/// queue.remove(0);
/// assert_eq!(queue.index_of(bob), Some(1));
/// queue.sort();
/// assert_eq!(queue.get_by_id(bob), Some(&"Bob"));
/// ```
pub struct List<T> {
    items: Vec<Item<T>>,
    /// The number of ids given so far.
    ids: u64,
    /// The shadow that this list is in sync with; 0 = none.
    token: u64,
    /// Some element was borrowed mutably.
    touched: bool,
    /// Elements were inserted, removed or moved.
    shape: bool,
}

/// The identity of a list's element: a number that it keeps until it is removed, and that no other
/// element of the list ever has.
///
/// Ids are not sent. A client's copy assigns its own: an element keeps its id through patches, as
/// long as the list is not sent whole. A snapshot makes new lists with new ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ElementId(u64);

struct Item<T> {
    value: T,
    id: ElementId,
    /// Its place in the shadow; [`FRESH`] until the first sync that sees it.
    place: u32,
    touched: bool,
}

/// Not in the shadow yet.
const FRESH: u32 = u32::MAX;

impl<T> Item<T> {
    /// Returns whether it is known to be unchanged since the last sync, at this place.
    fn is_still(&self, place: usize) -> bool {
        !self.touched && self.place as usize == place
    }
}

impl<T> List<T> {
    /// An empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty list with room for some elements.
    pub(crate) fn with_room(count: usize) -> Self {
        Self { items: Vec::with_capacity(count), ..Self::default() }
    }

    /// Creates a list like [`with_room`](Self::with_room), with a token, so that it differs from a
    /// list that replaces it even if it is not synced.
    pub(crate) fn loaded(count: usize) -> Self {
        Self { token: new_token(), ..Self::with_room(count) }
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// The element at an index.
    pub fn get(&self, index: usize) -> Option<&T> {
        self.items.get(index).map(|item| &item.value)
    }

    /// The element at an index, borrowed mutably.
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
        let item = self.fresh(value);
        self.items.push(item);
    }

    /// Removes the last element.
    pub fn pop(&mut self) -> Option<T> {
        let item = self.items.pop()?;
        self.shape = true;
        Some(item.value)
    }

    /// Inserts an element at an index; those from there on move up by one.
    ///
    /// # Panics
    /// If the index is past the end.
    pub fn insert(&mut self, index: usize, value: T) {
        assert!(index <= self.len(), "index {index} is past the end of a list of {}", self.len());
        self.shape = true;
        let item = self.fresh(value);
        self.items.insert(index, item);
    }

    /// Moves the element at one index to another; those between them move by one.
    ///
    /// # Panics
    /// If an index is past the end.
    pub fn move_to(&mut self, from: usize, to: usize) {
        let last = from.max(to);
        assert!(last < self.len(), "index {last} is past the end of a list of {}", self.len());
        self.shape |= from != to;
        if from < to {
            self.items[from..=to].rotate_left(1);
        } else {
            self.items[to..=from].rotate_right(1);
        }
    }

    /// Removes the element at an index; those after it move down by one.
    pub fn remove(&mut self, index: usize) -> Option<T> {
        if index >= self.len() {
            return None;
        }
        self.shape = true;
        Some(self.items.remove(index).value)
    }

    /// Removes the element at an index, and moves the last element to its place.
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

    /// Removes all elements.
    pub fn clear(&mut self) {
        self.truncate(0);
    }

    /// Removes all elements from an index on.
    pub fn truncate(&mut self, length: usize) {
        self.shape |= length < self.len();
        self.items.truncate(length);
    }

    /// Removes the elements in a range of indices, even if the iterator is not read to its end.
    ///
    /// # Panics
    /// If the range ends past the end of the list, or before it begins.
    pub fn drain(
        &mut self,
        range: impl RangeBounds<usize>,
    ) -> impl DoubleEndedIterator<Item = T> + ExactSizeIterator {
        self.shape = true;
        self.items.drain(range).map(|item| item.value)
    }

    /// Keeps the elements for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let before = self.len();
        self.items.retain(|item| keep(&item.value));
        self.shape |= self.len() < before;
    }

    /// Reverses the order of the elements.
    pub fn reverse(&mut self) {
        self.shape = true;
        self.items.reverse();
    }

    /// Sorts the elements; equal ones keep their order.
    pub fn sort(&mut self)
    where
        T: Ord,
    {
        self.sort_by(T::cmp);
    }

    /// Sorts the elements by what `key` returns; equal ones keep their order.
    pub fn sort_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.sort_by(|a, b| key(a).cmp(&key(b)));
    }

    /// Sorts the elements; equal ones keep their order.
    pub fn sort_by(&mut self, mut compare: impl FnMut(&T, &T) -> std::cmp::Ordering) {
        self.shape = true;
        self.items.sort_by(|a, b| compare(&a.value, &b.value));
    }

    /// The ids of all elements, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = ElementId> + ExactSizeIterator {
        self.items.iter().map(|item| item.id)
    }

    /// Differs in a list that has replaced this one; 0 if it is new.
    pub(crate) fn token(&self) -> u64 {
        self.token
    }

    /// The elements and their ids.
    pub(crate) fn with_ids(&self) -> impl Iterator<Item = (u64, &T)> {
        self.items.iter().map(|item| (item.id.0, &item.value))
    }

    /// The id of the element at an index.
    pub fn id_at(&self, index: usize) -> Option<ElementId> {
        self.items.get(index).map(|item| item.id)
    }

    /// The index of an element by its id. The search is linear.
    pub fn index_of(&self, id: ElementId) -> Option<usize> {
        self.ids().position(|one| one == id)
    }

    /// An element by its id. The search is linear.
    pub fn get_by_id(&self, id: ElementId) -> Option<&T> {
        self.get(self.index_of(id)?)
    }

    /// An element by its id, borrowed mutably. The search is linear.
    pub fn get_by_id_mut(&mut self, id: ElementId) -> Option<&mut T> {
        self.get_mut(self.index_of(id)?)
    }

    fn fresh(&mut self, value: T) -> Item<T> {
        let id = ElementId(self.ids);
        self.ids += 1;
        Item { value, id, place: FRESH, touched: true }
    }
}

impl<T> Default for List<T> {
    fn default() -> Self {
        Self { items: Vec::new(), ids: 0, token: 0, touched: false, shape: false }
    }
}

/// A clone is a separate list: it has no shadow yet.
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

impl<T> From<Vec<T>> for List<T> {
    fn from(values: Vec<T>) -> Self {
        values.into_iter().collect()
    }
}

impl<T, const N: usize> From<[T; N]> for List<T> {
    fn from(values: [T; N]) -> Self {
        values.into_iter().collect()
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
        self.get_mut(index)
            .unwrap_or_else(|| panic!("index {index} is past the end of a list of {length}"))
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
