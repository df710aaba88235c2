//! The frozen form of a room: all that it is, as bytes from which it goes on in another process.
//!
//! | bytes | content |
//! |---|---|
//! | 7 | `PFROOM`, then a byte 0x0a |
//! | 1 | the version of this format: 1 |
//! | 8 | the number of all bytes |
//! | 4 | the CRC-32 of the bytes so far |
//!
//! Parts follow. A later build may add some, and a reader passes over those that it doesn't know:
//!
//! | bytes | content |
//! |---|---|
//! | 1 | the part's number |
//! | 4 | the length of its content |
//! | | the content |
//! | 4 | the CRC-32 of the part so far |
//!
//! Numbers are little endian. The content of most parts is a value in `packed` (`parts.rs`); the
//! state is a [save](playfield_state::save). Parts from [`HOST_PARTS`] on belong to the host.

mod error;
mod fork;
pub(crate) mod parts;

use std::ops::Range;

use playfield_state::{Data, Format};
use playfield_wire::DecodeError;

pub use self::error::{FreezeError, InFlight, ThawError};
pub use self::fork::{FORK_METADATA, ForkError, fork};
use self::parts::{About, Part};
use crate::Settings;

const MAGIC: &[u8; 7] = b"PFROOM\n";
const VERSION: u8 = 1;
const HEADER_BYTES: usize = 20;
/// The number and the length before a part's content, and the checksum after it.
const PART_HEAD_BYTES: usize = 5;
const CHECK_BYTES: usize = 4;

/// The most bytes of a frozen room.
pub const FROZEN_BYTES_MAX: usize = 1 << 28;

/// The most parts of a frozen room.
const PARTS_MAX: usize = 64;

/// The numbers of the parts that a host writes for itself, such as its bookkeeping of members.
pub const HOST_PARTS: Range<u8> = 64..128;

/// Writes a frozen room. [`AnyRoom::freeze`](crate::AnyRoom::freeze) writes the room's parts, and a
/// host may add parts of its own.
#[derive(Debug)]
pub struct FrozenWriter {
    bytes: Vec<u8>,
    /// The state may have changed since the last sync.
    pub(crate) is_unsynced: bool,
}

impl FrozenWriter {
    /// Without parts yet.
    #[must_use]
    pub fn new() -> Self {
        Self { bytes: vec![0; HEADER_BYTES], is_unsynced: false }
    }

    /// For a room that may have changed since its last sync. No copy of its state goes on from
    /// what is written: all get snapshots.
    #[must_use]
    pub fn unsynced() -> Self {
        Self { is_unsynced: true, ..Self::new() }
    }

    /// Appends a part of the host: `number` is one of [`HOST_PARTS`].
    ///
    /// # Panics
    /// If the number is another one.
    pub fn host_part(&mut self, number: u8, write: impl FnOnce(&mut Vec<u8>)) {
        assert!(HOST_PARTS.contains(&number), "{number} is not the number of a host's part");
        self.raw(number, write);
    }

    /// Appends a value as a part.
    pub(crate) fn value(&mut self, part: Part, value: &impl Data) {
        self.raw(part as u8, |out| value.encode(out));
    }

    pub(crate) fn part(&mut self, part: Part, write: impl FnOnce(&mut Vec<u8>)) {
        self.raw(part as u8, write);
    }

    fn raw(&mut self, number: u8, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len();
        self.bytes.extend([number, 0, 0, 0, 0]);
        write(&mut self.bytes);
        let length = self.bytes.len() - start - PART_HEAD_BYTES;
        // One that is too long for this is too long for the whole.
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.bytes[start + 1..start + PART_HEAD_BYTES].copy_from_slice(&length.to_le_bytes());
        let check = crc32fast::hash(&self.bytes[start..]);
        self.bytes.extend(check.to_le_bytes());
    }

    /// The frozen room.
    ///
    /// # Errors
    /// If it has more than [`FROZEN_BYTES_MAX`] bytes.
    pub fn finish(mut self) -> Result<Vec<u8>, FreezeError> {
        let bytes = self.bytes.len();
        if bytes > FROZEN_BYTES_MAX {
            return Err(FreezeError::TooLarge { bytes });
        }
        self.bytes[..7].copy_from_slice(MAGIC);
        self.bytes[7] = VERSION;
        self.bytes[8..16].copy_from_slice(&(bytes as u64).to_le_bytes());
        let check = crc32fast::hash(&self.bytes[..16]);
        self.bytes[16..HEADER_BYTES].copy_from_slice(&check.to_le_bytes());
        Ok(self.bytes)
    }
}

impl Default for FrozenWriter {
    fn default() -> Self {
        Self::new()
    }
}

/// A frozen room that is whole and undamaged. [`RoomType::thaw`](crate::RoomType::thaw) makes a
/// room of it.
#[derive(Debug)]
pub struct Frozen<'a> {
    bytes: &'a [u8],
    /// The content of each part, in rising order of their numbers.
    parts: Vec<(u8, Range<usize>)>,
    pub(crate) about: About,
}

impl<'a> Frozen<'a> {
    /// Checks bytes that [`FrozenWriter`] wrote.
    ///
    /// # Errors
    /// If they are not a whole, undamaged frozen room in a format that this build reads.
    pub fn read(bytes: &'a [u8]) -> Result<Self, ThawError> {
        check_header(bytes)?;
        let mut parts = Vec::new();
        let mut at = HEADER_BYTES;
        while at < bytes.len() {
            let content = content_at(bytes, at)?;
            if parts.len() == PARTS_MAX {
                let why = format!("more than {PARTS_MAX} parts");
                return Err(ThawError::Invalid { part: parts::name(bytes[at]), at, why });
            }
            let next = content.end + CHECK_BYTES;
            parts.push((bytes[at], content));
            at = next;
        }
        parts.sort_by_key(|(number, _)| *number);
        if let Some(pair) = parts.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let (part, why) = (parts::name(pair[1].0), "it is there twice".into());
            return Err(ThawError::Invalid { part, at: pair[1].1.start, why });
        }
        let mut this = Self { bytes, parts, about: About::default() };
        this.about = this.value(Part::About)?;
        Ok(this)
    }

    /// The room's id.
    #[must_use]
    pub fn room_id(&self) -> &str {
        &self.about.id
    }

    /// The name of the room's type, which is to [thaw](crate::RoomType::thaw) it.
    #[must_use]
    pub fn room_type(&self) -> &str {
        &self.about.room_type
    }

    /// The room's key, if it has one.
    #[must_use]
    pub fn key(&self) -> Option<&str> {
        self.about.key.as_deref()
    }

    /// The settings by which the room was made, and goes on.
    ///
    /// # Errors
    /// If that part is missing or wrong.
    pub fn settings(&self) -> Result<Settings, ThawError> {
        self.value::<parts::Settings>(Part::Settings).map(Settings::from)
    }

    /// The content of a part of the host; `None` if there is none of this number.
    #[must_use]
    pub fn host_part(&self, number: u8) -> Option<&'a [u8]> {
        let content = self.content(number).filter(|_| HOST_PARTS.contains(&number))?;
        Some(&self.bytes[content])
    }

    fn content(&self, number: u8) -> Option<Range<usize>> {
        let place = self.parts.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        Some(self.parts[place].1.clone())
    }

    pub(crate) fn part(&self, part: Part) -> Result<&'a [u8], ThawError> {
        let content = self.content(part as u8).ok_or(ThawError::Missing { part: part.name() })?;
        Ok(&self.bytes[content])
    }

    /// Reads a part that is a value.
    pub(crate) fn value<T: Data>(&self, part: Part) -> Result<T, ThawError> {
        T::read(Format::Packed, self.part(part)?).map_err(|error| self.wrong(part, error))
    }

    /// The error for a part that is wrong.
    pub(crate) fn wrong(&self, part: Part, error: DecodeError) -> ThawError {
        let start = self.content(part as u8).map_or(0, |content| content.start);
        let at = start + error.offset().unwrap_or(0);
        let why = error.without_offset().to_string();
        ThawError::Invalid { part: part.name(), at, why }
    }

    /// Something in a part that can't be.
    pub(crate) fn refused(&self, part: Part, why: impl Into<String>) -> ThawError {
        self.wrong(part, DecodeError::other(why.into()))
    }
}

fn check_header(bytes: &[u8]) -> Result<(), ThawError> {
    let known = bytes.len().min(MAGIC.len());
    if bytes[..known] != MAGIC[..known] || bytes.is_empty() {
        return Err(ThawError::NotFrozen);
    }
    if bytes.len() > FROZEN_BYTES_MAX {
        return Err(ThawError::TooLarge { bytes: bytes.len() });
    }
    if let Some(&version) = bytes.get(7).filter(|version| **version != VERSION) {
        return Err(ThawError::Format { version });
    }
    let Some(header) = bytes.first_chunk::<HEADER_BYTES>() else {
        return Err(ThawError::Truncated { bytes: bytes.len(), expected: HEADER_BYTES as u64 });
    };
    if crc32fast::hash(&header[..16]).to_le_bytes() != header[16..] {
        return Err(ThawError::Damaged { part: "header", at: 0 });
    }
    let expected = u64::from_le_bytes(*header[8..].first_chunk().expect("8 bytes"));
    match (bytes.len() as u64).cmp(&expected) {
        std::cmp::Ordering::Less => Err(ThawError::Truncated { bytes: bytes.len(), expected }),
        std::cmp::Ordering::Greater => Err(ThawError::TooLong { bytes: bytes.len(), expected }),
        std::cmp::Ordering::Equal => Ok(()),
    }
}

/// The content of the part that begins here.
fn content_at(bytes: &[u8], at: usize) -> Result<Range<usize>, ThawError> {
    let damaged = || ThawError::Damaged { part: parts::name(bytes[at]), at };
    let (head, rest) = bytes[at..].split_first_chunk::<PART_HEAD_BYTES>().ok_or_else(damaged)?;
    let length = u32::from_le_bytes(*head[1..].first_chunk().expect("4 bytes")) as usize;
    if length.checked_add(CHECK_BYTES).is_none_or(|length| length > rest.len()) {
        return Err(damaged());
    }
    let content = at + PART_HEAD_BYTES..at + PART_HEAD_BYTES + length;
    if crc32fast::hash(&bytes[at..content.end]).to_le_bytes() != rest[length..][..CHECK_BYTES] {
        return Err(damaged());
    }
    Ok(content)
}
