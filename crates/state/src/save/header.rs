//! The parts around a saved body.
//!
//! | bytes | content |
//! |---|---|
//! | 7 | `PFSAVE`, then a byte 0x0a |
//! | 1 | the version of this format: 1, or 2 if something is kept for another build |
//! | 8 | the fingerprint of the description of types |
//! | 8 | the length of that description |
//! | 8 | the length of the body |
//! | 8 | a number that the writer chose; of a room, its next player and whether it has a code |
//! | 4 | the CRC-32 of the bytes so far |
//! | | the description of types, then the body |
//! | 4 each | the CRC-32 of each 64 KiB of these two; the last block may be shorter |
//!
//! Numbers are little endian. In version 2, what is [kept](super::Kept) follows the state in the
//! body, then its length in 8 bytes.

use std::ops::Range;

use playfield_wire::DecodeError;

use super::LoadError;
use super::layout::{self, Layout};
use super::skim;

const MAGIC: &[u8; 7] = b"PFSAVE\n";
const VERSION: u8 = 1;
/// That of saves in which something is kept.
const VERSION_KEPT: u8 = 2;
/// The offset of the header's own checksum.
const CHECK_AT: usize = 40;
/// The offset of the description of types.
pub(super) const BODY_AT: usize = CHECK_AT + 4;
/// The bytes that one checksum covers. So an error says where the damage is.
pub(super) const BLOCK_BYTES: usize = 1 << 16;

pub(super) struct Header {
    pub(super) fingerprint: u64,
    schema_bytes: usize,
    body_bytes: usize,
    /// Of what is kept, if anything is.
    kept_bytes: Option<usize>,
    pub(super) mark: u64,
}

/// Fills in the header, once description and body are there, and appends the checksums. What is
/// kept begins at `kept_at`.
pub(super) fn finish(out: &mut Vec<u8>, layout: &Layout, mark: u64, kept_at: usize) {
    let kept_bytes = (out.len() - kept_at) as u64;
    if kept_bytes > 0 {
        out.extend_from_slice(&kept_bytes.to_le_bytes());
    }
    let schema_bytes = layout.schema.len() as u64;
    let body_bytes = (out.len() - BODY_AT) as u64 - schema_bytes;
    out[..7].copy_from_slice(MAGIC);
    out[7] = if kept_bytes > 0 { VERSION_KEPT } else { VERSION };
    out[8..16].copy_from_slice(&layout.fingerprint.to_le_bytes());
    out[16..24].copy_from_slice(&schema_bytes.to_le_bytes());
    out[24..32].copy_from_slice(&body_bytes.to_le_bytes());
    out[32..CHECK_AT].copy_from_slice(&mark.to_le_bytes());
    let check = crc32fast::hash(&out[..CHECK_AT]);
    out[CHECK_AT..BODY_AT].copy_from_slice(&check.to_le_bytes());
    let end = out.len();
    for start in (BODY_AT..end).step_by(BLOCK_BYTES) {
        let check = crc32fast::hash(&out[start..end.min(start + BLOCK_BYTES)]);
        out.extend_from_slice(&check.to_le_bytes());
    }
}

impl Header {
    /// Reads the header of a save, and checks that the save is whole and undamaged.
    pub(super) fn read(bytes: &[u8]) -> Result<Self, LoadError> {
        let known = bytes.len().min(MAGIC.len());
        if bytes[..known] != MAGIC[..known] || bytes.is_empty() {
            return Err(LoadError::NotASave);
        }
        if let Some(&version) =
            bytes.get(7).filter(|version| !matches!(**version, VERSION | VERSION_KEPT))
        {
            return Err(LoadError::Format { version });
        }
        let Some(start) = bytes.first_chunk::<BODY_AT>() else {
            let expected = BODY_AT as u64;
            return Err(LoadError::Truncated { bytes: bytes.len(), expected, place: None });
        };
        let [fingerprint, schema_bytes, body_bytes, mark] = [8, 16, 24, 32]
            .map(|at| u64::from_le_bytes(*start[at..].first_chunk().expect("8 bytes")));
        if start[CHECK_AT..] != crc32fast::hash(&start[..CHECK_AT]).to_le_bytes() {
            return Err(LoadError::Damaged { bytes: 0..BODY_AT, place: None });
        }
        let content = u128::from(schema_bytes) + u128::from(body_bytes);
        let expected = BODY_AT as u128 + content + 4 * content.div_ceil(BLOCK_BYTES as u128);
        let has = bytes.len() as u128;
        if has > expected {
            let expected = bytes.len() - (has - expected) as usize;
            return Err(LoadError::TooLong { bytes: bytes.len(), expected });
        }
        if has < expected {
            let place = place(bytes, schema_bytes, bytes.len());
            let expected = u64::try_from(expected).unwrap_or(u64::MAX);
            return Err(LoadError::Truncated { bytes: bytes.len(), expected, place });
        }
        let mut this = Self {
            fingerprint,
            schema_bytes: schema_bytes as usize,
            body_bytes: body_bytes as usize,
            kept_bytes: None,
            mark,
        };
        let end = this.body().end;
        let checks = bytes[end..].chunks_exact(4);
        for (start, check) in (BODY_AT..end).step_by(BLOCK_BYTES).zip(checks) {
            let block = start..end.min(start + BLOCK_BYTES);
            if crc32fast::hash(&bytes[block.clone()]).to_le_bytes() != check {
                return Err(LoadError::Damaged {
                    place: place(bytes, schema_bytes, block.start),
                    bytes: block,
                });
            }
        }
        if start[7] == VERSION_KEPT {
            this.split_off_kept(bytes)?;
        }
        Ok(this)
    }

    /// Takes what is kept off the end of the body.
    fn split_off_kept(&mut self, bytes: &[u8]) -> Result<(), LoadError> {
        let end = self.body().end;
        let wrong = || LoadError::of(DecodeError::new(end, "what is kept is longer than the body"));
        let rest = self.body_bytes.checked_sub(8).ok_or_else(wrong)?;
        let length = u64::from_le_bytes(*bytes[end - 8..].first_chunk().expect("8 bytes"));
        let length = usize::try_from(length).ok().filter(|length| *length <= rest);
        let length = length.ok_or_else(wrong)?;
        self.body_bytes = rest - length;
        self.kept_bytes = Some(length);
        Ok(())
    }

    /// Returns the range of the description of types.
    pub(super) fn schema(&self) -> Range<usize> {
        BODY_AT..BODY_AT + self.schema_bytes
    }

    /// Returns the range of the body.
    pub(super) fn body(&self) -> Range<usize> {
        let start = BODY_AT + self.schema_bytes;
        start..start + self.body_bytes
    }

    /// Returns the range of what is kept, if anything is.
    pub(super) fn kept(&self) -> Option<Range<usize>> {
        let start = self.body().end;
        self.kept_bytes.map(|length| start..start + length)
    }
}

/// The field at this byte, if all before it is good.
fn place(bytes: &[u8], schema_bytes: u64, at: usize) -> Option<String> {
    let body = usize::try_from(schema_bytes).ok()?.checked_add(BODY_AT)?;
    if at < body {
        return None;
    }
    let stored = layout::read(bytes, BODY_AT..body).ok()?;
    skim::place(&stored.of, bytes, body..at, Some(at))
}
