//! Reading maps, on the client.

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;

use super::wire::{
    CHANGED, COLUMNS, DEFINED, OwnPatch, REMOVED, REPLACED, Slots, read_flags, read_group_count,
    read_slots,
};
use super::{Entry, Map};
use crate::{Key, Part, State};

impl<K: Key, V: State> Map<K, V> {
    /// A whole map.
    pub(super) fn read_entries(reader: &mut Reader<'_>, part: Part) -> Result<Self, DecodeError> {
        let mut map = Self::default();
        let mut slots = Slots::default();
        while let Some(slot) = slots.next(reader)? {
            let at = reader.offset();
            if map.read_entry(reader, slot, part)?.is_some() {
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
    ) -> Result<(), DecodeError> {
        let at = reader.offset();
        let flags = read_flags(reader)?;
        if flags & REMOVED != 0 {
            let mut slots = Slots::default();
            while let Some(slot) = slots.next(reader)? {
                // The entry may have been added and removed since the copy's version.
                self.displace(slot);
            }
        }
        if flags & DEFINED != 0 {
            let mut slots = Slots::default();
            // A key that moved to a lower slot is still in the old one until that is replaced too.
            let mut left = Vec::new();
            while let Some(slot) = slots.next(reader)? {
                left.extend(self.read_entry(reader, slot, part)?);
            }
            if left.iter().any(|&slot| !self.is_consistent(slot)) {
                return Err(DecodeError::new(at, TWO_SLOTS));
            }
        }
        if flags & CHANGED != 0 {
            let mut slots = Slots::default();
            while let Some(slot) = slots.next(reader)? {
                self.entry_in(slot, reader.offset())?.value.read_patch(reader, part)?;
            }
        }
        if flags & REPLACED != 0 {
            let mut slots = Slots::default();
            while let Some(slot) = slots.next(reader)? {
                let entry = self.entry_in(slot, reader.offset())?;
                entry.value = V::read_full(reader, part)?;
            }
        }
        if flags & COLUMNS != 0 {
            if part == Part::Owned {
                return Err(DecodeError::new(
                    at,
                    "a field that only its owner sees was sent in columns",
                ));
            }
            self.read_groups(reader)?;
        }
        Ok(())
    }

    /// The entry whose change is at this offset.
    fn entry_in(&mut self, slot: u32, at: usize) -> Result<&mut Entry<K, V>, DecodeError> {
        let entry = self.place_of(slot).and_then(|place| self.entries[place as usize].as_mut());
        entry.ok_or_else(|| {
            DecodeError::new(at, format!("slot {slot} was changed, but it is empty in this copy"))
        })
    }

    /// Groups of entries that changed in the same fields.
    fn read_groups(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        (0..read_group_count(reader)?).try_for_each(|_| {
            // The entries are taken out of the table while they are changed, so none can be named
            // twice.
            let mut taken = Vec::new();
            let read = self.read_group(reader, &mut taken);
            for (place, entry) in taken {
                self.entries[place as usize] = Some(entry);
            }
            read
        })
    }

    fn read_group(
        &mut self,
        reader: &mut Reader<'_>,
        taken: &mut Vec<(u32, Entry<K, V>)>,
    ) -> Result<(), DecodeError> {
        let at = reader.offset();
        read_slots(reader, |slot| {
            let place = self.place_of(slot);
            let entry = place.and_then(|place| Some((place, self.entries[place as usize].take()?)));
            taken.push(entry.ok_or_else(|| {
                DecodeError::new(
                    at,
                    format!("slot {slot} was changed, but it is empty in this copy"),
                )
            })?);
            Ok(())
        })?;
        let mut targets: Vec<&mut V> =
            taken.iter_mut().map(|(_, entry)| &mut entry.value).collect();
        V::read_columns(&mut targets, reader)
    }

    /// A patch of the player's own entry, which names the key and not the slot.
    pub(super) fn read_own(&mut self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        let at = reader.offset();
        let what = OwnPatch::read(reader)?;
        let key = K::decode(reader)?;
        match what {
            OwnPatch::Gone => {
                self.remove(&key);
            }
            OwnPatch::Whole => {
                let value = V::read_full(reader, Part::All)?;
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
                .read_patch(reader, Part::All)?,
        }
        Ok(())
    }

    /// Reads a whole entry into a slot, and drops the previous one. Returns the other slot that held
    /// its key.
    fn read_entry(
        &mut self,
        reader: &mut Reader<'_>,
        slot: u32,
        part: Part,
    ) -> Result<Option<u32>, DecodeError> {
        let key = K::decode(reader)?;
        let value = V::read_full(reader, part)?;
        self.displace(slot);
        let place = self.room_for(slot);
        self.in_order = false;
        self.entries[place as usize] =
            Some(Entry { key: key.clone(), value, slot, touched: false, inserted: false });
        let other = self.index.insert(key, place);
        Ok(other.and_then(|place| self.entries[place as usize].as_ref()).map(|entry| entry.slot))
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

    fn displace(&mut self, slot: u32) {
        let Some(place) = self.place_of(slot) else { return };
        if place != slot {
            self.far.remove(&slot);
            self.free.push(place);
        }
        if let Some(entry) = self.entries[place as usize].take()
            && self.index.get(&entry.key) == Some(&place)
        {
            self.index.remove(&entry.key);
        }
    }

    /// Whether the slot is empty, or the index maps its key to it.
    fn is_consistent(&self, slot: u32) -> bool {
        let Some(place) = self.place_of(slot) else { return true };
        match &self.entries[place as usize] {
            Some(entry) => self.index.get(&entry.key) == Some(&place),
            None => true,
        }
    }
}

pub(crate) const TWO_SLOTS: &str = "one key is in two slots of a map";

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
                map.read_patch(&mut Reader::new(&body), Part::Shared).unwrap();
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
                    map.read_patch(&mut Reader::new(&body), Part::Shared).unwrap();
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
            map.read_patch(&mut Reader::new(&body), Part::Shared).unwrap();
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
        map.read_patch(&mut Reader::new(&[CHANGED, 1, 51, 2, 52, 1, 53, 0]), Part::Shared).unwrap();
        assert_eq!(map.iter().map(|(_, value)| *value).collect::<Vec<_>>(), [53, 51, 52, 13]);
    }

    #[test]
    fn a_key_that_moves_to_another_slot_must_leave_its_old_one() {
        let body = [1, 5, 10, 1, 6, 20, 0]; // key 5 in slot 0, key 6 in slot 1
        let whole = || Map::<u32, u8>::read_full(&mut Reader::new(&body), Part::Shared).unwrap();
        // They swap slots.
        let mut map = whole();
        map.read_patch(&mut Reader::new(&[DEFINED, 1, 6, 21, 1, 5, 11, 0]), Part::Shared).unwrap();
        assert_eq!(map.iter().collect::<Vec<_>>(), [(&5, &11), (&6, &21)]);
        // One is put into the other's slot, but also stays in its own.
        let error = whole()
            .read_patch(&mut Reader::new(&[DEFINED, 1, 6, 21, 0]), Part::Shared)
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
            map.read_patch(&mut Reader::new(body), Part::Shared).unwrap_err().to_string()
        };
        assert_eq!(say(&[32]), "at byte 0: the flags of a map's patch are below 32, not 32");
        assert_eq!(
            say(&[CHANGED, 3, 1, 0]),
            "at byte 2: slot 2 was changed, but it is empty in this copy"
        );
        let mut own = Map::<crate::PlayerId, u8>::new();
        let mut read =
            |body: &[u8]| own.read_owner_patch(&mut Reader::new(body)).unwrap_err().to_string();
        assert_eq!(read(&[3, 1]), "at byte 0: the player's own entry begins with 0, 1 or 2, not 3");
        assert_eq!(
            read(&[OwnPatch::Patch as u8, 1, 1]),
            "at byte 0: the player's own entry was changed, but this copy has none"
        );
    }
}
