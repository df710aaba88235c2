//! Iterators over lists.

use super::{Item, List};

/// The elements of a [`List`], in order.
pub struct IntoIter<T>(std::vec::IntoIter<Item<T>>);

/// The elements of a [`List`], in order, borrowed.
pub struct Iter<'a, T>(std::slice::Iter<'a, Item<T>>);

/// The elements of a [`List`], in order, borrowed mutably.
pub struct IterMut<'a, T>(std::slice::IterMut<'a, Item<T>>);

macro_rules! iterator {
    ([$($generics:tt)*] $name:ty => $item:ty, $value:expr) => {
        impl<$($generics)*> Iterator for $name {
            type Item = $item;

            #[inline]
            fn next(&mut self) -> Option<$item> {
                self.0.next().map($value)
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                self.0.size_hint()
            }
        }

        impl<$($generics)*> DoubleEndedIterator for $name {
            #[inline]
            fn next_back(&mut self) -> Option<$item> {
                self.0.next_back().map($value)
            }
        }

        impl<$($generics)*> ExactSizeIterator for $name {}
    };
}

iterator!([T] IntoIter<T> => T, |item| item.value);
iterator!(['a, T] Iter<'a, T> => &'a T, |item| &item.value);
iterator!(['a, T] IterMut<'a, T> => &'a mut T, |item| {
    item.touched = true;
    &mut item.value
});

impl<T> List<T> {
    /// All elements in order.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter(self.items.iter())
    }

    /// All elements in order, borrowed mutably. Each one that the iterator returns counts as touched.
    pub fn iter_mut(&mut self) -> IterMut<'_, T> {
        self.touched = true;
        IterMut(self.items.iter_mut())
    }
}

impl<T> IntoIterator for List<T> {
    type Item = T;
    type IntoIter = IntoIter<T>;

    fn into_iter(self) -> IntoIter<T> {
        IntoIter(self.items.into_iter())
    }
}

impl<'a, T> IntoIterator for &'a List<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// Iterates like [`List::iter_mut`]: each element that the iterator returns counts as touched.
impl<'a, T> IntoIterator for &'a mut List<T> {
    type Item = &'a mut T;
    type IntoIter = IterMut<'a, T>;

    fn into_iter(self) -> IterMut<'a, T> {
        self.iter_mut()
    }
}
