//! Maps and sets.

use playfield_wire::DecodeError;

use super::{Done, MapShape, PatchSink, Shape, Sink, Walk, refused};
use crate::Part;
use crate::map::TWO_SLOTS;
use crate::map::wire::{
    ALL, CHANGED, COLUMNS, DEFINED, OwnPatch, REMOVED, REPLACED, Slots, read_flags,
    read_group_count,
};

impl<S: Sink> Walk<'_, S> {
    pub(super) fn whole_map(&mut self, of: &MapShape, part: Part) -> Result<S::Made, DecodeError> {
        let mut entries = self.sink.entries();
        if of.has_slots {
            let mut slots = Slots::default();
            while let Some(slot) = slots.next(&mut self.reader)? {
                let at = self.reader.offset();
                let (key, made) = self.entry(of, part)?;
                if !self.sink.put_entry(&mut entries, Some(slot), key, made) {
                    return refused(at, TWO_SLOTS);
                }
            }
        } else {
            for _ in 0..self.reader.count()? {
                let at = self.reader.offset();
                let (key, made) = self.entry(of, part)?;
                if !self.sink.put_entry(&mut entries, None, key, made) {
                    return refused(at, "a key came twice in one map");
                }
            }
        }
        Ok(self.sink.map(entries))
    }

    /// Reads a key and its whole value.
    fn entry(&mut self, of: &MapShape, part: Part) -> Result<(S::Key, S::Made), DecodeError> {
        let key = self.sink.key(&mut self.reader, of.key)?;
        let made = self.under(S::player(&key), |walk| walk.whole(&of.value, part))?;
        Ok((key, made))
    }
}

impl<S: PatchSink> Walk<'_, S> {
    pub(super) fn patch_map(&mut self, of: &MapShape, mut at: S::At<'_>, part: Part) -> Done {
        let start = self.reader.offset();
        let flags = read_flags(&mut self.reader)?;
        if flags & (REMOVED | DEFINED) != 0 {
            self.came_and_went(of, flags, &mut at, part)?;
        }
        if flags & CHANGED != 0 {
            self.each_entry(of, &mut at, part, false)?;
        }
        if flags & REPLACED != 0 {
            self.each_entry(of, &mut at, part, true)?;
        }
        if flags & COLUMNS != 0 {
            if part == Part::Owned {
                return refused(start, "what an owner alone sees came in columns");
            }
            for _ in 0..read_group_count(&mut self.reader)? {
                let mut taken = self.sink.take(&mut self.reader, &mut at)?;
                let group = self.sink.group(&mut taken);
                self.columns(&of.value, group)?;
                self.sink.put_back(&mut at, taken);
            }
        }
        Ok(())
    }

    fn came_and_went(&mut self, of: &MapShape, flags: u8, at: &mut S::At<'_>, part: Part) -> Done {
        let start = self.reader.offset().saturating_sub(1);
        let mut news = S::News::default();
        if flags & REMOVED != 0 {
            let mut slots = Slots::default();
            while let Some(slot) = slots.next(&mut self.reader)? {
                self.sink.remove_entry(at, slot, &mut news);
            }
        }
        if flags & DEFINED != 0 {
            let mut slots = Slots::default();
            while let Some(slot) = slots.next(&mut self.reader)? {
                let (key, made) = self.entry(of, part)?;
                self.sink.define_entry(at, slot, key, made, &mut news);
            }
        }
        if self.sink.came_and_went(of, at, news) { Ok(()) } else { refused(start, TWO_SLOTS) }
    }

    /// Reads a section of entries that are here: each one whole, or its patch.
    fn each_entry(
        &mut self,
        of: &MapShape,
        at: &mut S::At<'_>,
        part: Part,
        is_whole: bool,
    ) -> Done {
        let mut slots = Slots::default();
        while let Some(slot) = slots.next(&mut self.reader)? {
            let start = self.reader.offset();
            let Some((mut entry, player)) = self.sink.entry(at, slot) else {
                return Err(empty(start, slot));
            };
            self.under(player, |walk| {
                if !is_whole {
                    return walk.patch(&of.value, entry, part);
                }
                let made = walk.whole(&of.value, part)?;
                walk.sink.replace(&of.value, &mut entry, made);
                Ok(())
            })?;
            self.sink.leave();
        }
        Ok(())
    }

    /// Reads what is in view of a map.
    pub(super) fn patch_view(&mut self, shape: &Shape, of: &MapShape, mut at: S::At<'_>) -> Done {
        if self.reader.peek() != Some(ALL) {
            return self.patch_map(of, at, Part::All);
        }
        self.reader.u8()?;
        let made = self.whole_map(of, Part::All)?;
        self.sink.replace(shape, &mut at, made);
        Ok(())
    }

    /// Reads a patch of one's own entry, which names the key and no slot.
    pub(super) fn patch_own(&mut self, of: &MapShape, mut at: S::At<'_>) -> Done {
        let start = self.reader.offset();
        let what = OwnPatch::read(&mut self.reader)?;
        let key = self.sink.key(&mut self.reader, of.key)?;
        self.sink.enter_own(&key);
        match what {
            OwnPatch::Gone => self.sink.remove_own(&mut at, &key),
            OwnPatch::Whole => {
                let made = self.under(S::player(&key), |walk| walk.whole(&of.value, Part::All))?;
                self.sink.put_own(of, &mut at, key, made);
            }
            OwnPatch::Patch => {
                let Some(entry) = self.sink.own_entry(&mut at, &key) else {
                    let what = "a change came for an entry of one's own that is not here";
                    return refused(start, what);
                };
                self.under(S::player(&key), |walk| walk.patch(&of.value, entry, Part::All))?;
            }
        }
        self.sink.leave();
        Ok(())
    }
}

pub(crate) fn empty(at: usize, slot: u32) -> DecodeError {
    DecodeError::new(at, format!("a change came for slot {slot}, which is empty here"))
}
