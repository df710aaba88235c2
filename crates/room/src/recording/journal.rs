//! Journals: what the rooms of a shard noted, in files that follow each other.

use std::collections::BTreeMap;
use std::fmt;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;
use playfield_wire::writer::{put_bytes, put_u8, put_varint};

use super::Recording;
use super::coding::Coded;
use super::read::{Content, Part};
use super::{About, Block, BlockError, BlockFault, BlockKind, BlockWriter, Blocks, End, HEAD};

/// The place of a file in a journal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The number of the process that wrote it.
    pub incarnation: u64,
    /// The number of its shard.
    pub shard: u64,
    /// The number of the file among those of the shard, from 0.
    pub number: u64,
    /// The number of its first block in the whole journal.
    pub first: u64,
    /// The program that wrote it.
    pub build: String,
}

impl Segment {
    fn encode(&self) -> Vec<u8> {
        let Self { incarnation, shard, number, first, build } = self;
        let mut out = Vec::new();
        [incarnation, shard, number, first].into_iter().for_each(|value| value.put(&mut out));
        build.put(&mut out);
        out
    }

    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let reader = &mut Reader::new(bytes);
        Ok(Self {
            incarnation: Coded::read(reader)?,
            shard: Coded::read(reader)?,
            number: Coded::read(reader)?,
            first: Coded::read(reader)?,
            build: Coded::read(reader)?,
        })
    }

    /// Reads the begin of a file; `None` if it has none, because it was cut.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let first = Blocks::new(bytes.strip_prefix(HEAD)?, 0).next()?.ok()?;
        let is_segment = first.kind == BlockKind::Segment as u8;
        is_segment.then(|| Self::decode(&first.content).ok()).flatten()
    }
}

/// Appends what a room noted to the content of a journal's block.
pub fn put_section(room: u64, kind: BlockKind, content: &[u8], out: &mut Vec<u8>) {
    put_varint(out, room);
    put_u8(out, kind as u8);
    put_bytes(out, content);
}

/// Makes the bytes of a file of a journal.
#[derive(Clone, Debug)]
pub struct SegmentWriter {
    blocks: BlockWriter,
}

impl SegmentWriter {
    /// Appends the begin of a file.
    pub fn begin(segment: &Segment, out: &mut Vec<u8>) -> Self {
        out.extend(HEAD);
        let mut blocks = BlockWriter::default();
        blocks.put(BlockKind::Segment as u8, &segment.encode(), false, out);
        Self { blocks }
    }

    /// Appends the last block of a file, which names the next file.
    pub fn end(&mut self, next: &Segment, out: &mut Vec<u8>) {
        self.blocks.put(BlockKind::Segment as u8, &next.encode(), false, out);
    }

    /// Appends a block: its number in the whole journal, and its [sections](put_section).
    pub fn block(&mut self, number: u64, sections: &[u8], out: &mut Vec<u8>) {
        let mut content = Vec::with_capacity(sections.len() + 10);
        put_varint(&mut content, number);
        content.extend(sections);
        self.blocks.put(BlockKind::Rooms as u8, &content, false, out);
    }
}

/// The part of a journal that is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JournalPart<'a> {
    /// All of it.
    #[default]
    All,
    /// The room with this id, up to about this many bytes. Its [bytes](Recording::bytes) tell
    /// whether it has more; the rest is skipped.
    Room(&'a str, u64),
    /// The start and the last position of each room, for a list: no room can be run.
    List,
}

/// The journal of a shard, read from its files.
///
/// A block that was not written whole at the end of the last file was never acknowledged to anyone,
/// and is left out. Any other fault is [damage](Self::damage) to the rooms whose inputs it may have
/// had.
#[derive(Debug, Default)]
pub struct Journal {
    rooms: BTreeMap<u64, Recording>,
    /// The damage behind which a room has no keyframe yet.
    damaged: BTreeMap<u64, JournalFault>,
    faults: Vec<JournalFault>,
    /// The number of the last block in the whole journal.
    last: Option<u64>,
    /// The names of the files so far.
    files: Vec<String>,
    /// The number of the next file, from the last block of the previous one.
    follows: Option<u64>,
    /// The last file is damaged, so rooms that began in it may be missing altogether.
    is_last_damaged: bool,
}

/// A fault of a file of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalFault {
    /// The name of the file.
    pub file: String,
    /// The fault, and its place.
    pub error: BlockError,
    /// Acknowledged blocks are lost with it, so it is not the torn end of a file.
    pub is_damage: bool,
    why: Option<String>,
}

impl fmt::Display for JournalFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, error, why, .. } = self;
        match why {
            Some(why) => {
                let BlockError { number, at, .. } = error;
                write!(f, "{file}: block {number}, at byte {at}, {why}")
            }
            None => write!(f, "{file}: {error}"),
        }
    }
}

impl std::error::Error for JournalFault {}

impl Journal {
    /// Returns whether these are the first bytes of a file of a journal, and not of a recording.
    #[must_use]
    pub fn is_journal(bytes: &[u8]) -> bool {
        Segment::read(bytes).is_some()
    }

    /// Reads the files of a shard's journal, with their names, oldest first.
    #[must_use]
    pub fn read<'a>(files: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        Self::read_part(files, JournalPart::All)
    }

    /// Reads a part of a shard's journal. At most two of the files are held at a time.
    #[must_use]
    pub fn read_part<N: AsRef<str>, B: AsRef<[u8]>>(
        files: impl IntoIterator<Item = (N, B)>,
        part: JournalPart<'_>,
    ) -> Self {
        let mut this = Self::default();
        let mut files = files.into_iter().peekable();
        while let Some((name, bytes)) = files.next() {
            this.files.push(name.as_ref().to_owned());
            this.follows = None;
            let fault = this.read_file(name.as_ref(), bytes.as_ref(), part);
            let Some(mut fault) = fault else { continue };
            // A file that could not be written on is followed by another, which has all again that
            // was not acknowledged.
            let next = files.peek();
            let next = next.map(|(_, bytes)| Segment::read(bytes.as_ref()).map(|of| of.first));
            let is_torn = matches!(fault.error.fault, BlockFault::Torn { .. });
            fault.is_damage = match next {
                None => !is_torn,
                Some(next) => next.is_none_or(|first| first > this.last.map_or(0, |it| it + 1)),
            };
            if fault.is_damage {
                this.is_last_damaged |= next.is_none();
                this.damage_all(&fault);
            }
            this.faults.push(fault);
        }
        for (number, room) in &mut this.rooms {
            room.files.clone_from(&this.files);
            if room.end.is_none() && room.first().is_none() && !room.parts.is_empty() {
                let Part { block, at, .. } = room.parts[0];
                let error = BlockError { number: block, at, fault: BlockFault::Damaged };
                let why = Some("follows a keyframe of the room that is missing".to_owned());
                let file = this.files[room.parts[0].file].clone();
                let fault = JournalFault { file, error, is_damage: true, why };
                this.damaged.entry(*number).or_insert(fault);
            }
            // A file begins before its rooms are whole, and the one before it may be gone.
            let first = room.keyframes().next();
            room.parts.drain(..first.map_or(0, |(place, _)| place));
        }
        this
    }

    /// Reads a file. Returns the fault that ends it.
    fn read_file(
        &mut self,
        name: &str,
        bytes: &[u8],
        part: JournalPart<'_>,
    ) -> Option<JournalFault> {
        let fault = |error| {
            let (file, is_damage, why) = (name.to_owned(), false, None);
            Some(JournalFault { file, error, is_damage, why })
        };
        let torn = BlockFault::Torn { missing: None };
        let Some(body) = bytes.strip_prefix(HEAD) else {
            let is_cut = bytes.len() < HEAD.len() && HEAD.starts_with(bytes);
            let is_empty = bytes.iter().all(|byte| *byte == 0);
            let fault_of = if is_cut || is_empty { torn } else { BlockFault::Damaged };
            return fault(BlockError { number: 0, at: 0, fault: fault_of });
        };
        if body.is_empty() {
            return fault(BlockError { number: 0, at: HEAD.len(), fault: torn });
        }
        for block in Blocks::new(body, 0) {
            let block = match block {
                Ok(block) => block,
                Err(error) => return fault(BlockError { at: error.at + HEAD.len(), ..error }),
            };
            if let Err(error) = self.take(&block, name, part) {
                let (number, at) = (block.number, block.at + HEAD.len());
                let error_at = BlockError { number, at, fault: BlockFault::Damaged };
                let why = Some(format!("is not valid: {error}"));
                let (file, is_damage) = (name.to_owned(), true);
                return Some(JournalFault { file, error: error_at, is_damage, why });
            }
        }
        None
    }

    fn take(
        &mut self,
        block: &Block<'_>,
        file: &str,
        part: JournalPart<'_>,
    ) -> Result<(), DecodeError> {
        if block.kind == BlockKind::Segment as u8 {
            let Segment { number, first, .. } = Segment::decode(&block.content)?;
            // The first block names its own file, any other the next one.
            self.follows = (block.number > 0).then_some(number);
            self.follow(first, block, file);
            return Ok(());
        }
        if block.kind != BlockKind::Rooms as u8 {
            // A later build has more to say.
            return Ok(());
        }
        let mut reader = Reader::new(&block.content);
        let number = reader.varint()?;
        if self.last.is_some_and(|last| number <= last) {
            // The block is the same as in the file before, which could not be written on.
            return Ok(());
        }
        self.follow(number, block, file);
        self.last = Some(number);
        while !reader.is_empty() {
            let (room, kind) = (reader.varint()?, reader.u8()?);
            let content = reader.bytes()?;
            if let Some(kind) = BlockKind::from_number(kind) {
                self.section(room, kind, content, block, part)?;
            }
        }
        Ok(())
    }

    /// Notes that blocks before this one are missing, unless it is the next, or the first.
    fn follow(&mut self, number: u64, block: &Block<'_>, file: &str) {
        let Some(last) = self.last.filter(|last| number > last + 1) else { return };
        let at = block.at + HEAD.len();
        let error = BlockError { number: block.number, at, fault: BlockFault::Damaged };
        let first = last + 1;
        let why = format!("follows missing blocks: {first} to {} of the journal", number - 1);
        let fault = JournalFault { file: file.to_owned(), error, is_damage: true, why: Some(why) };
        self.damage_all(&fault);
        self.faults.push(fault);
        self.last = Some(number - 1);
    }

    fn section(
        &mut self,
        number: u64,
        kind: BlockKind,
        content: &[u8],
        block: &Block<'_>,
        part: JournalPart<'_>,
    ) -> Result<(), DecodeError> {
        let file = self.files.len() - 1;
        let room = match part {
            JournalPart::All => self.rooms.entry(number).or_default(),
            // Sections before the first keyframe, and so before this one, are useless.
            _ if kind == BlockKind::About => {
                let about = About::decode(content)?;
                if matches!(part, JournalPart::Room(id, _) if about.room_id != id) {
                    return Ok(());
                }
                self.rooms.entry(number).or_default()
            }
            _ => match self.rooms.get_mut(&number) {
                Some(room) => room,
                None => return Ok(()),
            },
        };
        room.bytes += content.len() as u64;
        let is_beyond = matches!(part, JournalPart::Room(_, max) if room.bytes > max);
        if is_beyond && room.first().is_some() {
            return Ok(());
        }
        match kind {
            BlockKind::About => {
                let about = About::decode(content)?;
                room.last_whole_ms = about.unix_ms;
                let is_first = room.first().is_none();
                let unix_ms = if is_first { about.unix_ms } else { room.about.unix_ms };
                room.about = About { unix_ms, ..about };
            }
            BlockKind::Host => room.host = content.to_vec(),
            BlockKind::End => {
                room.end = Some(End::decode(content)?);
                self.damaged.remove(&number);
            }
            kind => {
                if kind == BlockKind::Keyframe {
                    self.damaged.remove(&number);
                    room.fault = None;
                }
                if let Some(mut content) = Content::read(kind, content)? {
                    if part == JournalPart::List {
                        let first = room.keyframes().next();
                        room.parts.truncate(first.map_or(0, |(place, _)| place + 1));
                        content.forget_room();
                    }
                    let (block, at) = (block.number, block.at + HEAD.len());
                    room.parts.push(Part { block, at, file, content });
                }
            }
        }
        Ok(())
    }

    /// Blocks of the journal are lost: each room that is there may have had inputs in them.
    fn damage_all(&mut self, fault: &JournalFault) {
        for (number, room) in self.rooms.iter_mut().filter(|(_, room)| room.end.is_none()) {
            self.damaged.entry(*number).or_insert_with(|| fault.clone());
            room.fault.get_or_insert_with(|| fault.error.clone());
            let (BlockError { number: block, at, .. }, content) =
                (fault.error.clone(), Content::Gap(format!("the journal is damaged: {fault}")));
            let file = self.files.len() - 1;
            room.parts.push(Part { block, at, file, content });
        }
    }

    /// The rooms that have been in the journal, by their numbers there: those that have ended, too.
    pub fn rooms(&self) -> impl Iterator<Item = (u64, &Recording)> {
        self.rooms.iter().filter(|(_, room)| room.first().is_some()).map(|(of, room)| (*of, room))
    }

    /// Returns whether the last that a room did, or a whole room, is lost.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.is_last_damaged || !self.damaged.is_empty()
    }

    /// The damage to a room: what it did last is lost.
    #[must_use]
    pub fn damage(&self, room: u64) -> Option<&JournalFault> {
        self.damaged.get(&room)
    }

    /// The rooms that have not ended, but lack their last whole form or what came after.
    pub fn damaged(&self) -> impl Iterator<Item = (&About, &JournalFault)> {
        self.damaged.iter().filter_map(|(room, fault)| Some((&self.rooms.get(room)?.about, fault)))
    }

    /// The faults of the files.
    #[must_use]
    pub fn faults(&self) -> &[JournalFault] {
        &self.faults
    }

    /// The number of the file that follows the last one, if that says so.
    #[must_use]
    pub fn follows(&self) -> Option<u64> {
        self.follows
    }

    /// The number of the last whole block in the whole journal.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        self.last
    }
}
