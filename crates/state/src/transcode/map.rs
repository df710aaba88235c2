//! Maps and sets. Slots and keys stay as they are.

use playfield_wire::{DecodeError, writer};

use super::plan::MapPlan;
use super::walk::Walk;
use crate::Part;
use crate::map::wire::{
    ALL, CHANGED, COLUMNS, DEFINED, OwnPatch, REMOVED, REPLACED, Slots, count_slots, read_flags,
    read_group_count,
};

impl Walk<'_> {
    pub(super) fn whole_map(&mut self, map: &MapPlan, part: Part) -> Result<(), DecodeError> {
        if map.has_slots {
            return self.entries(map, part);
        }
        let count = self.reader.count()?;
        writer::put_varint(self.out, count as u64);
        (0..count).try_for_each(|_| self.entry(map, part))
    }

    /// Slots, each with a whole entry.
    fn entries(&mut self, map: &MapPlan, part: Part) -> Result<(), DecodeError> {
        self.section(|walk| walk.entry(map, part))
    }

    fn entry(&mut self, map: &MapPlan, part: Part) -> Result<(), DecodeError> {
        self.scalar(map.key)?;
        self.value(map, part)
    }

    fn value(&mut self, map: &MapPlan, part: Part) -> Result<(), DecodeError> {
        map.value.as_ref().map_or(Ok(()), |value| self.whole(value, part))
    }

    fn value_patch(&mut self, map: &MapPlan, part: Part) -> Result<(), DecodeError> {
        map.value.as_ref().map_or(Ok(()), |value| self.patch(value, part))
    }

    /// Slots up to the 0 that ends them; `pass` passes on what stands behind each.
    fn section(
        &mut self,
        mut pass: impl FnMut(&mut Self) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let mut slots = Slots::default();
        loop {
            let start = self.reader.offset();
            let slot = slots.next(&mut self.reader)?;
            self.pass_from(start);
            if slot.is_none() {
                return Ok(());
            }
            pass(self)?;
        }
    }

    pub(super) fn map_patch(&mut self, map: &MapPlan, part: Part) -> Result<(), DecodeError> {
        let at = self.reader.offset();
        let flags = read_flags(&mut self.reader)?;
        self.out.push(flags);
        if flags & REMOVED != 0 {
            self.section(|_| Ok(()))?;
        }
        if flags & DEFINED != 0 {
            self.entries(map, part)?;
        }
        if flags & CHANGED != 0 {
            self.section(|walk| walk.value_patch(map, part))?;
        }
        if flags & REPLACED != 0 {
            self.section(|walk| walk.value(map, part))?;
        }
        if flags & COLUMNS != 0 {
            if part == Part::Owned {
                return Err(DecodeError::new(at, "what an owner alone sees came in columns"));
            }
            self.groups(map)?;
        }
        Ok(())
    }

    fn groups(&mut self, map: &MapPlan) -> Result<(), DecodeError> {
        let groups = read_group_count(&mut self.reader)?;
        self.out.push(groups);
        (0..groups).try_for_each(|_| {
            let start = self.reader.offset();
            let count = count_slots(&mut self.reader)?;
            self.pass_from(start);
            map.value.as_ref().map_or(Ok(()), |value| self.columns(value, count))
        })
    }

    /// One's own entry, which has no slot.
    pub(super) fn own_entry(&mut self, map: &MapPlan) -> Result<(), DecodeError> {
        let what = OwnPatch::read(&mut self.reader)?;
        self.out.push(what as u8);
        self.scalar(map.key)?;
        match what {
            OwnPatch::Gone => Ok(()),
            OwnPatch::Whole => self.value(map, Part::All),
            OwnPatch::Patch => self.value_patch(map, Part::All),
        }
    }

    /// What is in view of a map, in slots of the viewer's own.
    pub(super) fn view_of_entries(&mut self, map: &MapPlan) -> Result<(), DecodeError> {
        if self.reader.peek() == Some(ALL) {
            self.byte()?;
            return self.entries(map, Part::All);
        }
        self.map_patch(map, Part::All)
    }
}
