//! Reading maps, on the client.

use std::collections::BTreeMap;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;
use serde_json::Value;

use super::wire::{
    CHANGED, COLUMNS, DEFINED, OwnPatch, REMOVED, REPLACED, Slots, read_flags, read_group_count,
    read_slots,
};
use super::{Entry, Map};
use crate::change::{Watch, copy_json, name_of};
use crate::{Key, Part, State};

impl<K: Key, V: State> Map<K, V> {
    /// A whole map.
    pub(super) fn read_entries(reader: &mut Reader<'_>, part: Part) -> Result<Self, DecodeError> {
        let mut map = Self::default();
        let mut slots = Slots::default();
        while let Some(slot) = slots.next(reader)? {
            let at = reader.offset();
            let (key, value) = (K::decode(reader)?, V::read_full(reader, part)?);
            map.displace(slot);
            if map.put(slot, key, value).is_some() {
                return Err(DecodeError::new(at, TWO_SLOTS));
            }
        }
        Ok(map)
    }

    /// A patch of a map.
    pub(super) fn read_changes(
        &mut self,
        reader: &mut Reader<'_>,
        part: Part,
        watch: &mut Watch<'_>,
    ) -> Result<(), DecodeError> {
        let at = reader.offset();
        let flags = read_flags(reader)?;
        if flags & (REMOVED | DEFINED) != 0 {
            self.read_came_and_went(reader, flags, part, watch)?;
        }
        if flags & CHANGED != 0 {
            let mut slots = Slots::default();
            while let Some(slot) = slots.next(reader)? {
                let entry = self.entry_in(slot, reader.offset())?;
                watch.enter_entry(&entry.key);
                entry.value.read_patch(reader, part, watch)?;
                watch.leave();
            }
        }
        if flags & REPLACED != 0 {
            let mut slots = Slots::default();
            while let Some(slot) = slots.next(reader)? {
                let entry = self.entry_in(slot, reader.offset())?;
                watch.enter_entry(&entry.key);
                watch.replace(&mut entry.value, |value| {
                    *value = V::read_full(reader, part)?;
                    Ok(())
                })?;
                watch.leave();
            }
        }
        if flags & COLUMNS != 0 {
            if part == Part::Owned {
                return Err(DecodeError::new(
                    at,
                    "a field that only its owner sees was sent in columns",
                ));
            }
            self.read_groups(reader, watch)?;
        }
        Ok(())
    }

    /// The entries that left, and those that came.
    fn read_came_and_went(
        &mut self,
        reader: &mut Reader<'_>,
        flags: u8,
        part: Part,
        watch: &mut Watch<'_>,
    ) -> Result<(), DecodeError> {
        let at = reader.offset() - 1;
        let mut news = News { gone: BTreeMap::new(), came: Vec::new() };
        let listens = watch.listens();
        if flags & REMOVED != 0 {
            let mut slots = Slots::default();
            while let Some(slot) = slots.next(reader)? {
                // The entry may have been added and removed since the copy's version.
                let gone = self.displace(slot);
                if listens && let Some(Entry { key, value, .. }) = gone {
                    news.left(key, copy_json(&value));
                }
            }
        }
        if flags & DEFINED != 0 {
            let mut slots = Slots::default();
            // A key that moved to a lower slot is still in the old one until that is replaced too.
            let mut left = Vec::new();
            while let Some(slot) = slots.next(reader)? {
                let (key, value) = (K::decode(reader)?, V::read_full(reader, part)?);
                let gone = self.displace(slot);
                if listens {
                    if let Some(Entry { key, value, .. }) = gone {
                        news.left(key, copy_json(&value));
                    }
                    // If the key is still in another slot, its value is removed now.
                    if let Some(old) = self.get(&key) {
                        news.left(key.clone(), copy_json(old));
                    }
                    news.came.push(key.clone());
                }
                left.extend(self.put(slot, key, value));
            }
            if left.iter().any(|&slot| !self.is_consistent(slot)) {
                return Err(DecodeError::new(at, TWO_SLOTS));
            }
        }
        if listens {
            self.report_entries(news, watch);
        }
        Ok(())
    }

    /// Reports what left, then what came. An entry that left and came back changed.
    fn report_entries(&self, news: News<K>, watch: &mut Watch<'_>) {
        let (back, gone): (BTreeMap<_, _>, BTreeMap<_, _>) =
            news.gone.into_iter().partition(|(_, (key, _))| self.contains_key(key));
        for (name, (_, old)) in gone {
            watch.enter(&name);
            watch.left(old);
            watch.leave();
        }
        for key in news.came {
            let Some(new) = self.get(&key).map(copy_json) else { continue };
            watch.enter_entry(&key);
            match back.get(&*key.name()) {
                Some((_, old)) => watch.replaced_as::<V>(old, &new),
                None => watch.entered(&new),
            }
            watch.leave();
        }
    }

    /// The entry whose change is at this offset.
    fn entry_in(&mut self, slot: u32, at: usize) -> Result<&mut Entry<K, V>, DecodeError> {
        let entry = self.place_of(slot).and_then(|place| self.entries[place as usize].as_mut());
        entry.ok_or_else(|| empty(slot, at))
    }

    /// Groups of entries that changed in the same fields.
    fn read_groups(
        &mut self,
        reader: &mut Reader<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<(), DecodeError> {
        (0..read_group_count(reader)?).try_for_each(|_| self.read_group(reader, watch))
    }

    fn read_group(
        &mut self,
        reader: &mut Reader<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<(), DecodeError> {
        let at = reader.offset();
        let mut places = Vec::with_capacity(self.index.len());
        read_slots(reader, |slot| {
            let place = self.place_of(slot).filter(|place| self.entries[*place as usize].is_some());
            places.push(place.ok_or_else(|| empty(slot, at))? as usize);
            Ok(())
        })?;
        let mut targets = Vec::with_capacity(places.len());
        let mut names = Vec::new();
        // Most patches name the places in order.
        let order = (!places.is_sorted()).then(|| {
            let mut order: Vec<usize> = (0..places.len()).collect();
            order.sort_unstable_by_key(|at| places[*at]);
            order
        });
        let (mut rest, mut passed) = (&mut self.entries[..], 0);
        for rank in 0..places.len() {
            let place = places[order.as_ref().map_or(rank, |order| order[rank])];
            // None can be named twice.
            let from = place.checked_sub(passed).ok_or_else(|| empty(place as u32, at))?;
            let (head, tail) = rest.split_at_mut(from + 1);
            (rest, passed) = (tail, place + 1);
            if let Some(Entry { key, value, .. }) = &mut head[from] {
                if watch.listens() {
                    names.push(name_of(key));
                }
                targets.push(value);
            }
        }
        if let Some(order) = order {
            arrange(&order, &mut targets);
            arrange(&order, &mut names);
        }
        let around = watch.listens().then(|| watch.enter_group(names));
        V::read_columns(&mut targets, reader, watch)?;
        if let Some(around) = around {
            watch.leave_group(around);
        }
        Ok(())
    }

    /// A patch of the player's own entry, which names the key and not the slot.
    pub(super) fn read_own(
        &mut self,
        reader: &mut Reader<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<(), DecodeError> {
        let at = reader.offset();
        let what = OwnPatch::read(reader)?;
        let key = K::decode(reader)?;
        watch.enter_entry(&key);
        match what {
            OwnPatch::Gone => {
                let gone = self.remove(&key);
                if watch.listens()
                    && let Some(old) = gone
                {
                    watch.left(copy_json(&old));
                }
            }
            OwnPatch::Whole => {
                let value = V::read_full(reader, Part::All)?;
                if watch.listens() {
                    let new = copy_json(&value);
                    match self.get(&key).map(copy_json) {
                        Some(old) => watch.replaced_as::<V>(&old, &new),
                        None => watch.entered(&new),
                    }
                }
                self.insert(key, value);
            }
            OwnPatch::Patch => self
                .get_mut(&key)
                .ok_or_else(|| {
                    DecodeError::new(
                        at,
                        "the player's own entry was changed, but this copy has none",
                    )
                })?
                .read_patch(reader, Part::All, watch)?,
        }
        watch.leave();
        Ok(())
    }

    /// Puts an entry into an empty slot. Returns the other slot that held its key.
    fn put(&mut self, slot: u32, key: K, value: V) -> Option<u32> {
        let place = self.room_for(slot);
        self.in_order = false;
        self.entries[place as usize] =
            Some(Entry { key: key.clone(), value, slot, touched: false, inserted: false });
        let other = self.index.insert(key, place);
        other.and_then(|place| self.entries[place as usize].as_ref()).map(|entry| entry.slot)
    }

    /// The place of a slot's entry: the place of that number, or the one in `far`.
    fn place_of(&self, slot: u32) -> Option<u32> {
        match self.entries.get(slot as usize) {
            Some(Some(entry)) if entry.slot == slot => Some(slot),
            _ => self.far.get(&slot).copied(),
        }
    }

    /// A free place for an empty slot. A slot far beyond the number of entries gets another place,
    /// so that the size of the table is proportional to what arrived.
    fn room_for(&mut self, slot: u32) -> u32 {
        let wanted = slot as usize;
        let places = self.entries.len();
        if wanted == places || (places..=2 * self.index.len()).contains(&wanted) {
            self.entries.resize_with(wanted + 1, || None);
        }
        if self.entries.get(wanted).is_some_and(Option::is_none) {
            return slot;
        }
        let freed = loop {
            match self.free.pop() {
                Some(place) if self.entries[place as usize].is_some() => {}
                other => break other,
            }
        };
        let place = freed.unwrap_or(self.entries.len() as u32);
        if freed.is_none() {
            self.entries.push(None);
        }
        self.far.insert(slot, place);
        place
    }

    /// Empties a slot. Returns its entry, unless the key has moved to another slot.
    fn displace(&mut self, slot: u32) -> Option<Entry<K, V>> {
        let place = self.place_of(slot)?;
        if place != slot {
            self.far.remove(&slot);
            self.free.push(place);
        }
        let entry = self.entries[place as usize].take()?;
        let is_there = self.index.get(&entry.key) == Some(&place);
        is_there.then(|| {
            self.index.remove(&entry.key);
            entry
        })
    }

    /// Returns whether the slot is empty, or the index maps its key to it.
    fn is_consistent(&self, slot: u32) -> bool {
        let Some(place) = self.place_of(slot) else { return true };
        match &self.entries[place as usize] {
            Some(entry) => self.index.get(&entry.key) == Some(&place),
            None => true,
        }
    }
}

/// The entries that entered or left the map, for a listener.
struct News<K> {
    gone: BTreeMap<String, (K, Value)>,
    came: Vec<K>,
}

impl<K: Key> News<K> {
    fn left(&mut self, key: K, old: Value) {
        self.gone.entry(key.name().into_owned()).or_insert((key, old));
    }
}

/// Arranges in their first order elements that were sorted into `order`.
fn arrange<T>(order: &[usize], sorted: &mut Vec<T>) {
    let mut pairs: Vec<_> = order.iter().zip(sorted.drain(..)).collect();
    pairs.sort_unstable_by_key(|(at, _)| **at);
    sorted.extend(pairs.into_iter().map(|(_, element)| element));
}

fn empty(slot: u32, at: usize) -> DecodeError {
    DecodeError::new(at, format!("slot {slot} was changed, but it is empty in this copy"))
}

pub(crate) const TWO_SLOTS: &str = "one key is in two slots of a map";

#[cfg(test)]
mod tests {
    use playfield_wire::writer::put_varint;
    use proptest::prelude::*;

    use super::*;
    use crate::state::Read as _;

    /// A section of a patch for some slots: the new value of each, or that it is empty.
    fn section(entries: impl Iterator<Item = (u32, Option<u8>)>) -> Vec<u8> {
        let (mut body, mut slots) = (Vec::new(), Slots::default());
        for (slot, value) in entries {
            slots.put(slot, &mut body);
            if let Some(value) = value {
                put_varint(&mut body, u64::from(slot) + 7); // the key
                body.push(value);
            }
        }
        body.push(0);
        body
    }

    fn slot() -> impl Strategy<Value = u32> {
        prop_oneof![6 => 0..12_u32, 2 => 0..200_u32, 1 => 0..super::super::MAP_SLOTS_MAX as u32]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn slots_near_and_far_hold_what_was_put_there(
            patches in proptest::collection::vec(
                proptest::collection::btree_map(slot(), any::<Option<u8>>(), 0..12), 1..20
            )
        ) {
            let mut map = Map::<u32, u8>::new();
            let mut model = BTreeMap::new();
            let mut most = 0;
            for patch in patches {
                let gone = patch.iter().filter(|(_, value)| value.is_none());
                let came = patch.iter().filter(|(_, value)| value.is_some());
                let mut body = vec![REMOVED | DEFINED];
                body.extend(section(gone.map(|(slot, _)| (*slot, None))));
                body.extend(section(came.map(|(slot, value)| (*slot, *value))));
                map.read_patch(&mut Reader::new(&body), Part::Shared, &mut Watch::idle()).unwrap();
                for (slot, value) in patch {
                    model.remove(&slot);
                    model.extend(value.map(|value| (slot, value)));
                }
                prop_assert!(map.iter().map(|(key, value)| (key - 7, *value)).eq(model.clone()));
                most = most.max(model.len());
                prop_assert!(map.entries.len() <= 3 * most + 1, "{} places for {most}", map.entries.len());
                prop_assert!(map.free.len() <= map.entries.len() && map.far.len() <= most);
                for (slot, value) in &mut model {
                    *value = value.wrapping_add(1);
                    let mut body = vec![CHANGED];
                    body.extend(section([(*slot, None)].into_iter()));
                    body.insert(body.len() - 1, *value);
                    map.read_patch(&mut Reader::new(&body), Part::Shared, &mut Watch::idle()).unwrap();
                }
            }
        }
    }

    #[test]
    fn a_slot_at_the_limit_costs_one_place_and_one_beyond_is_rejected() {
        let last = super::super::MAP_SLOTS_MAX as u32 - 1;
        let body = section([(last, Some(1))].into_iter());
        let map = Map::<u32, u8>::read_full(&mut Reader::new(&body), Part::Shared).unwrap();
        assert_eq!((map.len(), map.entries.len()), (1, 1));
        let body = section([(last + 1, Some(1))].into_iter());
        let error = Map::<u32, u8>::read_full(&mut Reader::new(&body), Part::Shared).unwrap_err();
        assert_eq!(error.to_string(), "at byte 0: slot 1048576 is past the limit of 1048576");
    }

    #[test]
    fn a_slot_at_the_place_of_its_number_is_not_far() {
        let mut map = Map::<u32, u8>::new();
        for slot in 0..5 {
            let gone = [slot].into_iter().filter(|slot| *slot > 0).map(|slot| (slot - 1, None));
            let mut body = vec![REMOVED | DEFINED];
            body.extend(section(gone));
            body.extend(section([(slot, Some(1))].into_iter()));
            map.read_patch(&mut Reader::new(&body), Part::Shared, &mut Watch::idle()).unwrap();
            assert_eq!((map.len(), map.far.len()), (1, 0));
        }
    }

    #[test]
    fn a_copy_whose_entries_are_changed_in_place_still_knows_its_slots() {
        // Keys 7, 9 and 907 in slots 0, 2 and 900, and key 0 in slot 3.
        let mut body = vec![1, 7, 1, 2, 9, 2, 1, 0, 3];
        put_varint(&mut body, 900 - 3);
        put_varint(&mut body, 907);
        body.extend([3, 0]);
        let mut map = Map::<u32, u8>::read_full(&mut Reader::new(&body), Part::Shared).unwrap();
        map.values_mut().for_each(|value| *value += 10);
        map.read_patch(
            &mut Reader::new(&[CHANGED, 1, 51, 2, 52, 1, 53, 0]),
            Part::Shared,
            &mut Watch::idle(),
        )
        .unwrap();
        assert_eq!(map.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [53, 51, 52, 13]);
    }

    #[test]
    fn a_key_that_moves_to_another_slot_must_leave_its_old_one() {
        let body = [1, 5, 10, 1, 6, 20, 0]; // key 5 in slot 0, key 6 in slot 1
        let whole = || Map::<u32, u8>::read_full(&mut Reader::new(&body), Part::Shared).unwrap();
        // They swap slots.
        let mut map = whole();
        map.read_patch(
            &mut Reader::new(&[DEFINED, 1, 6, 21, 1, 5, 11, 0]),
            Part::Shared,
            &mut Watch::idle(),
        )
        .unwrap();
        assert_eq!(map.iter().collect::<Vec<_>>(), [(&5, &11), (&6, &21)]);
        // One is put into the other's slot, but also stays in its own.
        let error = whole()
            .read_patch(&mut Reader::new(&[DEFINED, 1, 6, 21, 0]), Part::Shared, &mut Watch::idle())
            .unwrap_err();
        assert_eq!(error.to_string(), "at byte 0: one key is in two slots of a map");
        let body = [1, 5, 10, 1, 5, 20, 0];
        let error = Map::<u32, u8>::read_full(&mut Reader::new(&body), Part::Shared).unwrap_err();
        assert_eq!(error.to_string(), "at byte 4: one key is in two slots of a map");
    }

    #[test]
    fn map_patches_that_do_not_fit_are_rejected() {
        let say = |body: &[u8]| {
            let mut map = Map::<u32, u8>::new();
            map.read_patch(&mut Reader::new(body), Part::Shared, &mut Watch::idle())
                .unwrap_err()
                .to_string()
        };
        assert_eq!(say(&[32]), "at byte 0: the flags of a map's patch are below 32, not 32");
        assert_eq!(
            say(&[CHANGED, 3, 1, 0]),
            "at byte 2: slot 2 was changed, but it is empty in this copy"
        );
        let mut own = Map::<crate::PlayerId, u8>::new();
        let mut read = |body: &[u8]| {
            own.read_owner_patch(&mut Reader::new(body), &mut Watch::idle())
                .unwrap_err()
                .to_string()
        };
        assert_eq!(read(&[3, 1]), "at byte 0: the player's own entry begins with 0, 1 or 2, not 3");
        assert_eq!(
            read(&[OwnPatch::Patch as u8, 1, 1]),
            "at byte 0: the player's own entry was changed, but this copy has none"
        );
    }
}
