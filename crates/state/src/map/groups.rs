//! Entries of a map that changed in the same fields, written together.

use std::borrow::Cow;

use super::wire::{COLUMN_MIN, COLUMNS, GROUPS_MAX, put_slots};
use crate::State;
use crate::lens::Lens;

/// The changed slots of a patch: groups whose changes are written in columns, and the others.
pub(super) struct Groups<'a, V: State> {
    groups: Vec<Group<'a, V>>,
    /// Slots outside the groups.
    pub(super) rest: Cow<'a, [u32]>,
}

struct Group<'a, V: State> {
    key: u64,
    slots: Vec<u32>,
    shadows: Vec<&'a V::Shadow>,
}

impl<'a, V: State> Group<'a, V> {
    fn new(key: u64, slot: u32, value: &'a V::Shadow, room: usize) -> Self {
        let mut group =
            Self { key, slots: Vec::with_capacity(room), shadows: Vec::with_capacity(room) };
        group.put(slot, value);
        group
    }

    fn put(&mut self, slot: u32, value: &'a V::Shadow) {
        self.slots.push(slot);
        self.shadows.push(value);
    }
}

impl<'a, V: State> Groups<'a, V> {
    /// Groups the slots `found`. `at` returns the change in a slot, if any.
    pub(super) fn of(found: &'a [u32], at: impl Fn(u32) -> Option<(Lens, &'a V::Shadow)>) -> Self {
        if found.len() < COLUMN_MIN {
            return Self { groups: Vec::new(), rest: Cow::Borrowed(found) };
        }
        Self::of_changes(found.len(), found.iter().map(|slot| (*slot, at(*slot))))
    }

    /// Groups slots in rising order, each with the change in it, if any. There are about `count`.
    #[inline]
    pub(super) fn of_changes(
        count: usize,
        changes: impl Iterator<Item = (u32, Option<(Lens, &'a V::Shadow)>)>,
    ) -> Self {
        let mut groups: Vec<Group<'a, V>> = Vec::new();
        let mut rest = Vec::new();
        for (slot, change) in changes {
            let keyed = |(lens, value)| V::column_key(value, lens).map(|key| (key, value));
            let Some((key, value)) = change.and_then(keyed) else {
                rest.push(slot);
                continue;
            };
            match groups.iter().position(|group| group.key == key) {
                Some(place) => groups[place].put(slot, value),
                None if groups.len() < GROUPS_MAX => {
                    groups.push(Group::new(key, slot, value, count));
                }
                None => rest.push(slot),
            }
        }
        let few = groups.extract_if(.., |group| group.slots.len() < COLUMN_MIN);
        rest.extend(few.flat_map(|group| group.slots));
        rest.sort_unstable();
        Self { groups, rest: Cow::Owned(rest) }
    }

    /// Appends the groups: their number, then the slots and columns of each. Without groups it
    /// appends nothing.
    pub(super) fn write(&self, lens: Lens, out: &mut Vec<u8>) -> u8 {
        if self.groups.is_empty() {
            return 0;
        }
        out.push(self.groups.len() as u8);
        for Group { key, slots, shadows } in &self.groups {
            put_slots(slots, out);
            V::write_columns(shadows.len(), |place| shadows[place], *key, lens.each(), out);
            lens.here();
        }
        COLUMNS
    }
}
