//! Collections in a save: a count, then what they hold.

use playfield_wire::reader::Reader;
use playfield_wire::{DecodeError, writer};

use super::kept::index_of;
use super::{Follow, Node, Save, Saved};
use crate::{Key, List, Map, Set, State};

/// For how many elements there is room before any is read. An announced count is not trusted.
const ROOM: usize = 1 << 16;

impl<T: State> Save for Option<T> {
    const SKIPS: bool = T::SKIPS;

    fn saved() -> Saved {
        Saved::Option(Box::new(T::saved()))
    }
    #[inline]
    fn write_save(&self, out: &mut Vec<u8>) {
        writer::put_bool(out, self.is_some());
        if let Some(value) = self {
            value.write_save(out);
        }
    }
    #[inline]
    fn read_save(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.bool()?.then(|| T::read_save(reader)).transpose()
    }
    fn follow(&self, kept: &mut Node, how: &mut Follow) {
        match self {
            Some(value) => value.follow(kept, how),
            None => how.forget(kept),
        }
    }
}

impl<T: State, const N: usize> Save for [T; N] {
    const SKIPS: bool = T::SKIPS;

    fn saved() -> Saved {
        const { assert!(N > 0, "an array without elements has nothing to save: give it a length") }
        Saved::Array(Box::new(T::saved()), N)
    }
    fn write_save(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|item| item.write_save(out));
    }
    fn read_save(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut error = None;
        let items = std::array::from_fn(|_| match (&error, T::read_save(reader)) {
            (None, Ok(item)) => Some(item),
            (None, Err(found)) => {
                error = Some(found);
                None
            }
            (Some(_), _) => None,
        });
        match error {
            Some(error) => Err(error),
            None => Ok(items.map(|item| item.expect("without an error, each was read"))),
        }
    }
    fn follow(&self, kept: &mut Node, how: &mut Follow) {
        kept.follow_entries(how, |step, node, how| {
            match index_of(step).and_then(|index| self.get(index)) {
                Some(value) => value.follow(node, how),
                None => how.forget(node),
            }
        });
    }
}

impl<T: State> Save for List<T> {
    const SKIPS: bool = T::SKIPS;

    fn saved() -> Saved {
        Saved::List(Box::new(T::saved()))
    }
    fn write_save(&self, out: &mut Vec<u8>) {
        writer::put_varint(out, self.len() as u64);
        self.iter().for_each(|item| item.write_save(out));
    }
    fn read_save(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = reader.count()?;
        let mut list = Self::loaded(count.min(ROOM));
        for _ in 0..count {
            list.push(T::read_save(reader)?);
        }
        Ok(list)
    }
    fn follow(&self, kept: &mut Node, how: &mut Follow) {
        kept.follow_list(self.token(), &self.with_ids().collect::<Vec<_>>(), how);
    }
}

impl<K: Key, V: State> Save for Map<K, V> {
    const SKIPS: bool = V::SKIPS;

    fn saved() -> Saved {
        Saved::Map(K::schema(), Box::new(V::saved()))
    }
    fn write_save(&self, out: &mut Vec<u8>) {
        writer::put_varint(out, self.len() as u64);
        for (key, value) in self {
            key.encode(out);
            value.write_save(out);
        }
    }
    fn read_save(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = reader.count()?;
        Self::loaded(reader, count, V::read_save)
    }
    fn follow(&self, kept: &mut Node, how: &mut Follow) {
        kept.follow_map(self.origin(), how, |step| {
            let key = K::decode(&mut Reader::new(step)).ok()?;
            self.get_with_origin(&key)
        });
    }
}

impl<K: Key> Save for Set<K> {
    fn saved() -> Saved {
        Saved::Set(K::schema())
    }
    fn write_save(&self, out: &mut Vec<u8>) {
        writer::put_varint(out, self.len() as u64);
        self.iter().for_each(|key| key.encode(out));
    }
    fn read_save(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = reader.count()?;
        Self::read_from(reader, count)
    }
    fn follow(&self, kept: &mut Node, how: &mut Follow) {
        how.forget(kept);
    }
}
