//! The parts of a map's patch.
//!
//! Packed, it is a byte of flags and up to three sections, each a list of slots that ends with 0. A slot is written as its distance
//! from the one before it in the section (the first: from −1), so it is never 0.

use playfield_wire::reader::Reader;
use playfield_wire::{DecodeError, writer};

use super::MAP_SLOTS_MAX;

pub(super) const REMOVED: u8 = 1;
pub(super) const DEFINED: u8 = 2;
pub(super) const CHANGED: u8 = 4;

/// What an owner's own entry came to, in a map of which each player sees their own.
pub(super) const OWN_GONE: u8 = 0;
pub(super) const OWN_WHOLE: u8 = 1;
pub(super) const OWN_PATCH: u8 = 2;

/// Where a section of slots stands.
#[derive(Default)]
pub(super) struct Slots {
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
    pub(super) fn next(&mut self, reader: &mut Reader<'_>) -> Result<Option<u32>, DecodeError> {
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
