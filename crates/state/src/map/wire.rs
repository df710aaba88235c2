//! The parts of a map's patch.
//!
//! Packed, it is a byte of flags and up to four sections. The first three are lists of slots that
//! end with 0; a slot is written as its distance from the one before it in the section (the first:
//! from −1), so it is never 0. The last one is groups of entries that changed in the same fields: a
//! set of slots, then their changes in columns.

use playfield_wire::reader::Reader;
use playfield_wire::{DecodeError, writer};

use super::MAP_SLOTS_MAX;
use crate::patch_kind::read_kind;

pub(crate) const REMOVED: u8 = 1;
pub(crate) const DEFINED: u8 = 2;
pub(crate) const CHANGED: u8 = 4;
pub(crate) const COLUMNS: u8 = 8;
/// In a map with a view: entries that changed and are sent whole.
pub(crate) const REPLACED: u8 = 16;

/// Instead of the other sections: all entries follow.
pub(crate) const ALL: u8 = 1 << 7;

/// Below this number, entries that changed in the same fields are written one by one.
pub(crate) const COLUMN_MIN: usize = 4;

/// The most groups of entries, by the fields that changed, that are written in columns.
pub(crate) const GROUPS_MAX: usize = 8;

/// The first byte of the patch of an owner's entry, in a map where each player sees their own.
#[derive(Clone, Copy)]
pub(crate) enum OwnPatch {
    Gone = 0,
    Whole = 1,
    Patch = 2,
}

impl OwnPatch {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        read_kind(
            reader,
            &[Self::Gone, Self::Whole, Self::Patch],
            "the player's own entry begins with 0, 1 or 2",
        )
    }
}

/// Reads the flags of a map's patch.
pub(crate) fn read_flags(reader: &mut Reader<'_>) -> Result<u8, DecodeError> {
    let at = reader.offset();
    let flags = reader.u8()?;
    if flags & !(REMOVED | DEFINED | CHANGED | COLUMNS | REPLACED) != 0 {
        return Err(DecodeError::new(
            at,
            format!("the flags of a map's patch are below 32, not {flags}"),
        ));
    }
    Ok(flags)
}

/// Reads how many groups follow.
pub(crate) fn read_group_count(reader: &mut Reader<'_>) -> Result<u8, DecodeError> {
    let at = reader.offset();
    let groups = reader.u8()?;
    if groups == 0 || usize::from(groups) > GROUPS_MAX {
        return Err(DecodeError::new(
            at,
            format!("a map's patch has 1 to {GROUPS_MAX} groups, not {groups}"),
        ));
    }
    Ok(groups)
}

/// The position in a section of slots.
#[derive(Default)]
pub(crate) struct Slots {
    /// One more than the last slot.
    pub(super) next: u64,
}

impl Slots {
    #[inline]
    pub(super) fn put(&mut self, slot: u32, out: &mut Vec<u8>) {
        writer::put_varint(out, u64::from(slot) + 1 - self.next);
        self.next = u64::from(slot) + 1;
    }

    #[inline]
    pub(crate) fn next(&mut self, reader: &mut Reader<'_>) -> Result<Option<u32>, DecodeError> {
        let at = reader.offset();
        let distance = reader.varint()?;
        if distance == 0 {
            return Ok(None);
        }
        self.next = self.next.saturating_add(distance);
        if self.next > MAP_SLOTS_MAX as u64 {
            return Err(DecodeError::new(
                at,
                format!("slot {} is past the limit of {MAP_SLOTS_MAX}", self.next - 1),
            ));
        }
        Ok(Some((self.next - 1) as u32))
    }
}

/// Appends a set of at least one slot, in rising order: as runs, or as one bit for each slot from
/// the first to the last, if that is shorter.
///
/// Runs: twice their number as a varint, then for each the distance from the end of the one before
/// it and its length. Bits: twice the number of bytes, plus 1; the first slot; the bytes, whose
/// lowest bits come first.
pub(super) fn put_slots(slots: &[u32], out: &mut Vec<u8>) {
    let (start, first) = (out.len(), slots[0]);
    let bytes = (slots[slots.len() - 1] - first) as usize / 8 + 1;
    let runs = slots.chunk_by(|one, two| one + 1 == *two);
    writer::put_varint(out, 2 * runs.clone().count() as u64);
    let mut end = 0;
    for run in runs {
        writer::put_varint(out, u64::from(run[0] - end));
        writer::put_varint(out, run.len() as u64);
        end = run[run.len() - 1] + 1;
    }
    if out.len() - start <= bytes + 2 {
        return;
    }
    out.truncate(start);
    writer::put_varint(out, 2 * bytes as u64 + 1);
    writer::put_varint(out, u64::from(first));
    let bits = out.len();
    out.resize(bits + bytes, 0);
    for slot in slots {
        let bit = (slot - first) as usize;
        out[bits + bit / 8] |= 1 << (bit % 8);
    }
}

/// Reads what [`put_slots`] wrote, and passes each slot to `take`, which rejects impossible ones.
/// So a few bytes that name many slots cost no more than the existing slots.
pub(crate) fn read_slots(
    reader: &mut Reader<'_>,
    mut take: impl FnMut(u32) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let at = reader.offset();
    let word = reader.varint()?;
    let mut slot_at = |slot: u64| match u32::try_from(slot) {
        Ok(slot) if (slot as usize) < MAP_SLOTS_MAX => take(slot),
        _ => Err(DecodeError::new(at, format!("slot {slot} is past the limit of {MAP_SLOTS_MAX}"))),
    };
    if word % 2 == 1 {
        let bytes = usize::try_from(word / 2).unwrap_or(usize::MAX);
        let first = reader.varint()?;
        for (place, byte) in reader.take(bytes)?.iter().enumerate() {
            for bit in (0..8).filter(|bit| byte >> bit & 1 == 1) {
                slot_at(first.saturating_add(8 * place as u64 + bit))?;
            }
        }
        return Ok(());
    }
    let mut end = 0_u64;
    for _ in 0..word / 2 {
        let first = end.saturating_add(reader.varint()?);
        end = first.saturating_add(reader.varint()?);
        (first..end).try_for_each(&mut slot_at)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn read(bytes: &[u8]) -> Result<Vec<u32>, DecodeError> {
        let mut reader = Reader::new(bytes);
        let mut slots = Vec::new();
        read_slots(&mut reader, |slot| {
            slots.push(slot);
            Ok(())
        })?;
        reader.finish()?;
        Ok(slots)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn sets_of_slots_come_back(
            some in proptest::collection::btree_set(0..MAP_SLOTS_MAX as u32, 1..20),
            runs in proptest::collection::vec((0..2_000_u32, 1..50_u32), 0..20),
        ) {
            let runs = runs.into_iter().flat_map(|(first, length)| first..first + length);
            let slots: BTreeSet<u32> = runs.chain(some).collect();
            let slots: Vec<u32> = slots.into_iter().collect();
            let mut out = Vec::new();
            put_slots(&slots, &mut out);
            prop_assert_eq!(read(&out), Ok(slots));
        }
    }

    #[test]
    fn slots_are_written_in_runs_or_as_bits() {
        let written = |slots: &[u32]| {
            let mut out = Vec::new();
            put_slots(slots, &mut out);
            out
        };
        assert_eq!(written(&[0, 1, 2, 3]), [2, 0, 4]);
        assert_eq!(written(&[5, 6, 90]), [4, 5, 2, 83, 1]);
        assert_eq!(written(&[1, 3, 5, 7, 9]), [5, 1, 0b0101_0101, 1]);
    }

    #[test]
    fn a_slot_set_is_rejected_at_the_first_slot_past_the_limit() {
        assert_eq!(
            read(&[2, 0x80, 0x80, 0x40, 1]).unwrap_err().to_string(),
            "at byte 0: slot 1048576 is past the limit of 1048576"
        );
        let mut body = vec![2];
        writer::put_varint(&mut body, u64::MAX);
        body.push(5);
        assert_eq!(read(&body), Ok(Vec::new()));
    }
}
