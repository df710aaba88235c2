//! A list that knows which of its elements were touched, and which came.

mod align;
pub(crate) mod op;
mod pairing;
mod shadow;
pub(crate) mod state;

use std::fmt;
use std::ops::RangeBounds;

/// An ordered list of state.
///
/// It notes which elements were borrowed mutably and which are new, so that a sync sends what
/// changed and not the list. It can't be borrowed as a slice, since writes through one would go
/// unseen.
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
    /// How many ids were given.
    ids: u64,
    /// Which shadow this list is in step with; 0 = none.
    token: u64,
    /// Some element was borrowed mutably.
    touched: bool,
    /// Elements came, went or moved.
    shape: bool,
}

/// Which of a list's elements one is: a number that it has from when it is put in until it is taken
/// out, and no other element of that list ever has.
///
/// Ids don't travel. A client's copy gives its own, which are as stable: an element keeps its id
/// through patches, as long as the list is not sent whole. A snapshot is another copy, with other
/// lists.
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
        let item = self.fresh(value);
        self.items.push(item);
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
        let item = self.fresh(value);
        self.items.insert(index, item);
    }

    /// Takes the element at one index out, and puts it back in at another; those between them move
    /// by one.
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

    /// Takes the elements of a range of indices out, those that are not read as well.
    ///
    /// # Panics
    /// If the range ends past the end, or before it begins.
    pub fn drain(
        &mut self,
        range: impl RangeBounds<usize>,
    ) -> impl DoubleEndedIterator<Item = T> + ExactSizeIterator {
        self.shape = true;
        self.items.drain(range).map(|item| item.value)
    }

    /// Keeps the elements for which `keep` says so.
    pub fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let before = self.len();
        self.items.retain(|item| keep(&item.value));
        self.shape |= self.len() < before;
    }

    /// Puts the elements into the other order.
    pub fn reverse(&mut self) {
        self.shape = true;
        self.items.reverse();
    }

    /// Orders the elements; equal ones keep their order.
    pub fn sort(&mut self)
    where
        T: Ord,
    {
        self.sort_by(T::cmp);
    }

    /// Orders the elements by what `key` makes of them; equal ones keep their order.
    pub fn sort_by_key<K: Ord>(&mut self, mut key: impl FnMut(&T) -> K) {
        self.sort_by(|a, b| key(a).cmp(&key(b)));
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

    /// The ids of all elements, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = ElementId> + ExactSizeIterator {
        self.items.iter().map(|item| item.id)
    }

    /// The id of the element at an index.
    pub fn id_at(&self, index: usize) -> Option<ElementId> {
        self.items.get(index).map(|item| item.id)
    }

    /// Where the element of an id is. It looks through the list.
    pub fn index_of(&self, id: ElementId) -> Option<usize> {
        self.ids().position(|one| one == id)
    }

    /// The element of an id. It looks through the list.
    pub fn get_by_id(&self, id: ElementId) -> Option<&T> {
        self.get(self.index_of(id)?)
    }

    /// The element of an id, to change it. It looks through the list.
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

impl<T> IntoIterator for List<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self.items.into_iter())
    }
}

/// The elements of a [`List`], in order.
pub struct IntoIter<T>(std::vec::IntoIter<Item<T>>);

impl<T> Iterator for IntoIter<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.next().map(|item| item.value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<T> DoubleEndedIterator for IntoIter<T> {
    fn next_back(&mut self) -> Option<T> {
        self.0.next_back().map(|item| item.value)
    }
}

impl<T> ExactSizeIterator for IntoIter<T> {}

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
