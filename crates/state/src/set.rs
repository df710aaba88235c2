//! A set that tracks its changes.

use std::borrow::Borrow;
use std::collections::btree_map::{IntoKeys, Keys};
use std::fmt;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;
use playfield_wire::schema::Type;
use playfield_wire::tree::TreeWriter;
use serde_json::Value;

use crate::change::Watch;
use crate::data::unexpected;
use crate::lens::{Changed, Lens, Sight, Stamps, Step, Tracking};
use crate::ops::Ops;
use crate::slots::Bind;
use crate::state::{Compare, Describe, Read, Write};
use crate::{Data, Key, Map, Part};

/// A set of players, texts, integers or newtypes of these, iterated in their order on every
/// machine.
///
/// A sync sends the elements that were added and removed. In trees it is an object whose members
/// are all `true`.
pub struct Set<K> {
    map: Map<K, Present>,
}

impl<K: Key> Set<K> {
    /// An empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Returns whether the set is empty.
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Returns whether the set contains the element.
    pub fn contains<Q: Ord + ?Sized>(&self, element: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.map.contains_key(element)
    }

    /// Inserts an element. Returns whether it is new.
    pub fn insert(&mut self, element: K) -> bool {
        self.map.insert(element, Present).is_none()
    }

    /// Removes an element. Returns whether it was present.
    pub fn remove<Q: Ord + ?Sized>(&mut self, element: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.map.remove(element).is_some()
    }

    /// Removes all elements.
    pub fn clear(&mut self) {
        self.map.clear();
    }

    /// Keeps the elements for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(&K) -> bool) {
        self.map.retain(|element, _| keep(element));
    }

    /// All elements in order.
    pub fn iter(&self) -> Iter<'_, K> {
        Iter(self.map.index_keys())
    }
}

/// The elements of a [`Set`], in order.
pub struct Iter<'a, K>(Keys<'a, K, u32>);

impl<'a, K> Iterator for Iter<'a, K> {
    type Item = &'a K;

    fn next(&mut self) -> Option<&'a K> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K> DoubleEndedIterator for Iter<'_, K> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back()
    }
}

impl<K> ExactSizeIterator for Iter<'_, K> {}

/// The elements of a [`Set`] that was taken apart, in order.
pub struct IntoIter<K>(IntoKeys<K, u32>);

impl<K> Iterator for IntoIter<K> {
    type Item = K;

    fn next(&mut self) -> Option<K> {
        self.0.next()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.0.size_hint()
    }
}

impl<K> DoubleEndedIterator for IntoIter<K> {
    fn next_back(&mut self) -> Option<K> {
        self.0.next_back()
    }
}

impl<K> ExactSizeIterator for IntoIter<K> {}

impl<K: Key> IntoIterator for Set<K> {
    type Item = K;
    type IntoIter = IntoIter<K>;

    fn into_iter(self) -> IntoIter<K> {
        IntoIter(self.map.into_index_keys())
    }
}

impl<'a, K: Key> IntoIterator for &'a Set<K> {
    type Item = &'a K;
    type IntoIter = Iter<'a, K>;

    fn into_iter(self) -> Iter<'a, K> {
        self.iter()
    }
}

impl<K: Key> Set<K> {
    /// Reads a set like `Map::read_from`.
    pub(crate) fn read_from(reader: &mut Reader<'_>, count: usize) -> Result<Self, DecodeError> {
        Ok(Self { map: Map::read_from(reader, count, |_| Ok(Present))? })
    }
}

impl<K: Key> Clone for Set<K> {
    fn clone(&self) -> Self {
        Self { map: self.map.clone() }
    }
}

impl<K> Default for Set<K> {
    fn default() -> Self {
        Self { map: Map::default() }
    }
}

impl<K: Key> FromIterator<K> for Set<K> {
    fn from_iter<I: IntoIterator<Item = K>>(elements: I) -> Self {
        let mut set = Self::default();
        set.extend(elements);
        set
    }
}

impl<K: Key> Extend<K> for Set<K> {
    fn extend<I: IntoIterator<Item = K>>(&mut self, elements: I) {
        for element in elements {
            self.insert(element);
        }
    }
}

impl<K: Key> PartialEq for Set<K> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl<K: Key + fmt::Debug> fmt::Debug for Set<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// Synced as a map whose values are empty.
impl<K: Key> Describe for Set<K> {
    const KEYED_BY_PLAYER: bool = K::IS_PLAYER;
    const REPORTS: bool = true;

    fn shape() -> Type {
        Type::Set(Box::new(K::schema()))
    }
}

impl<K: Key> Compare for Set<K> {
    type Shadow = <Map<K, Present> as Compare>::Shadow;

    fn bind<B: Bind>(&mut self, bind: B) -> Self::Shadow {
        self.map.bind(bind)
    }

    fn put_slots(shadow: &Self::Shadow, out: &mut Vec<u8>) {
        Map::<K, Present>::put_slots(shadow, out);
    }

    fn diff(&mut self, shadow: &mut Self::Shadow, step: Step) -> Changed {
        self.map.diff(shadow, step)
    }

    fn same_shared(&self, shadow: &Self::Shadow, tracking: Tracking) -> bool {
        self.map.same_shared(shadow, tracking)
    }

    fn stamps(shadow: &Self::Shadow) -> Stamps {
        Map::<K, Present>::stamps(shadow)
    }

    fn digest(&self, part: Part) -> u64 {
        self.map.digest(part)
    }

    fn view(&self, sight: Sight<'_>) -> Value {
        self.map.view(sight)
    }

    fn owner_view(&self, sight: Sight<'_>) -> Option<Value> {
        self.map.owner_view(sight)
    }
}

impl<K: Key> Write for Set<K> {
    fn write_full(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>) {
        Map::<K, Present>::write_full(shadow, lens, out);
    }

    fn write_patch(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>) -> bool {
        Map::<K, Present>::write_patch(shadow, lens, out)
    }

    fn write_owner_patch(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>) -> bool {
        Map::<K, Present>::write_owner_patch(shadow, lens, out)
    }

    fn tree_full(shadow: &Self::Shadow, lens: Lens, out: TreeWriter<'_>) {
        Map::<K, Present>::tree_full(shadow, lens, out);
    }

    fn tree_patch(shadow: &Self::Shadow, lens: Lens, ops: &mut Ops<'_, '_>) {
        Map::<K, Present>::tree_patch(shadow, lens, ops);
    }

    fn tree_owner_patch(shadow: &Self::Shadow, lens: Lens, ops: &mut Ops<'_, '_>) {
        Map::<K, Present>::tree_owner_patch(shadow, lens, ops);
    }

    fn tree_owner_full(shadow: &Self::Shadow, lens: Lens, out: TreeWriter<'_>) -> bool {
        Map::<K, Present>::tree_owner_full(shadow, lens, out)
    }

    fn shadow_digest(shadow: &Self::Shadow, lens: Lens) -> u64 {
        Map::<K, Present>::shadow_digest(shadow, lens)
    }

    fn owner_digest(shadow: &Self::Shadow, lens: Lens) -> u64 {
        Map::<K, Present>::owner_digest(shadow, lens)
    }
}

impl<K: Key> Read for Set<K> {
    fn read_full(reader: &mut Reader<'_>, part: Part) -> Result<Self, DecodeError> {
        Ok(Self { map: Map::read_full(reader, part)? })
    }

    fn read_patch(
        &mut self,
        reader: &mut Reader<'_>,
        part: Part,
        watch: &mut Watch<'_>,
    ) -> Result<(), DecodeError> {
        self.map.read_patch(reader, part, watch)
    }

    fn read_owner_patch(
        &mut self,
        reader: &mut Reader<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<(), DecodeError> {
        self.map.read_owner_patch(reader, watch)
    }

    fn empty_maps(&mut self) {
        *self = Self::new();
    }
}

/// The value of a set's elements. It takes no bytes: a slot and a key precede it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Present;

impl Data for Present {
    fn schema() -> Type {
        Type::Unit
    }
    fn encode(&self, _: &mut Vec<u8>) {}
    fn decode(_: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self)
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        out.bool(true);
    }
    fn same(&self, _: &Self) -> bool {
        true
    }
    fn from_json(value: &Value) -> Result<Self, DecodeError> {
        if *value == Value::Bool(true) { Ok(Self) } else { Err(unexpected("true", value)) }
    }
}
