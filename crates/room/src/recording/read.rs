//! A recording, read from a file.

mod error;
mod limit;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;

pub use error::RecordingError;
pub use limit::ReadLimit;

use super::coding::Coded;
use super::{
    About, Block, BlockError, BlockFault, BlockKind, Blocks, Entry, HEAD, Moment, Position,
    ReplayError,
};

/// A recording of a room. If its file is damaged, the inputs from there to the next keyframe are
/// missing; if it was cut, it ends there. [`fault`](Self::fault) says where.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    pub(super) about: About,
    pub(super) parts: Vec<Part>,
    pub(super) fault: Option<BlockError>,
    pub(super) end: Option<End>,
    pub(super) host: Vec<u8>,
    /// The names of the files of the journal that it is from.
    pub(super) files: Vec<String>,
    /// The bytes that it has in the journal, and when the room was last written whole there, in
    /// milliseconds since 1970.
    pub(super) bytes: u64,
    pub(super) last_whole_ms: u64,
}

/// The content of a block behind the first one.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// The number of the block, and the byte of the file at which it begins.
    pub(super) block: u64,
    pub(super) at: usize,
    /// The place of its file among the [files](Recording::files).
    pub(super) file: usize,
    pub(super) content: Content,
}

#[derive(Clone, Debug)]
pub(super) enum Content {
    Keyframe { position: Position, hash: u64, frozen: Vec<u8> },
    Inputs { position: Position, entries: Vec<u8> },
    Gap(String),
}

impl Part {
    /// The position at its begin.
    pub(super) fn position(&self) -> Option<Position> {
        match &self.content {
            Content::Keyframe { position, .. } | Content::Inputs { position, .. } => {
                Some(*position)
            }
            Content::Gap(_) => None,
        }
    }

    /// Goes through the inputs, up to the first whose position is wanted. Returns the last
    /// position, if it has an input.
    pub(super) fn run(
        &self,
        is_wanted: impl Fn(&Position) -> bool,
    ) -> Result<Option<Position>, ReplayError> {
        let Content::Inputs { position, entries } = &self.content else { return Ok(None) };
        let (mut reader, mut cursor) = (Reader::new(entries), position.cursor());
        let (mut inputs, mut last) = (position.inputs, None);
        while !reader.is_empty() {
            let entry = cursor.read(&mut reader).map_err(|error| ReplayError::Invalid {
                block: self.block,
                at: self.at,
                why: error.to_string(),
            })?;
            if let Entry::Input(at, _) = entry {
                inputs += 1;
                last = Some(Position { inputs, at, tick: cursor.tick });
                if last.as_ref().is_some_and(&is_wanted) {
                    break;
                }
            }
        }
        Ok(last)
    }
}

impl Content {
    /// The content of a block; `None` of other kinds: a later build has more to say.
    pub(super) fn of(block: &Block<'_>) -> Result<Option<Self>, DecodeError> {
        match BlockKind::from_number(block.kind) {
            Some(kind) => Self::read(kind, &block.content),
            None => Ok(None),
        }
    }

    /// The content of a block of this kind; `None` if it is none of the room's life.
    pub(super) fn read(kind: BlockKind, content: &[u8]) -> Result<Option<Self>, DecodeError> {
        let reader = &mut Reader::new(content);
        Ok(match kind {
            BlockKind::Keyframe => Some(Self::Keyframe {
                position: Coded::read(reader)?,
                hash: reader.u64()?,
                frozen: reader.rest().to_vec(),
            }),
            BlockKind::Inputs => Some(Self::Inputs {
                position: Coded::read(reader)?,
                entries: reader.rest().to_vec(),
            }),
            BlockKind::Gap => Some(Self::Gap(String::from_utf8_lossy(reader.rest()).into_owned())),
            BlockKind::About
            | BlockKind::End
            | BlockKind::Segment
            | BlockKind::Rooms
            | BlockKind::Host => None,
        })
    }

    /// Keeps only the position of a keyframe.
    pub(super) fn forget_room(&mut self) {
        if let Self::Keyframe { frozen, .. } = self {
            *frozen = Vec::new();
        }
    }
}

/// A position that is searched for.
enum Reached {
    At(Position),
    /// Behind a gap, where the recording goes on: why.
    Behind(Position, String),
}

/// The end of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The room failed: its code panicked.
    pub has_failed: bool,
    /// Why the recording ends.
    pub why: String,
}

impl End {
    /// The content of a block of this kind.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.has_failed.put(&mut out);
        self.why.put(&mut out);
        out
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let reader = &mut Reader::new(bytes);
        Ok(Self { has_failed: Coded::read(reader)?, why: Coded::read(reader)? })
    }
}

/// Checks the first bytes of a file.
pub(super) fn check_head(bytes: &[u8]) -> Result<(), RecordingError> {
    let known = bytes.len().min(6);
    if bytes[..known] != HEAD[..known] || bytes.is_empty() {
        return Err(RecordingError::NotARecording);
    }
    let version = bytes.get(6..8).and_then(|version| version.first_chunk());
    let version = version.map(|version| u16::from_le_bytes(*version));
    if let Some(version) = version.filter(|version| *version != 1) {
        return Err(RecordingError::Format { version });
    }
    Ok(())
}

impl Recording {
    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// If they are not a recording in a format that this build reads, or a part of one is not
    /// valid though its checksum is right.
    pub fn read(bytes: &[u8]) -> Result<Self, RecordingError> {
        Self::read_within(bytes, usize::MAX)
    }

    /// Reads the bytes of a file whose inflated size is limited: a small file may need much memory.
    fn read_within(bytes: &[u8], limit: usize) -> Result<Self, RecordingError> {
        check_head(bytes)?;
        let mut this = Self::default();
        let mut has_about = false;
        let mut blocks = Blocks::new(bytes, HEAD.len().min(bytes.len())).within(limit);
        while let Some(block) = blocks.next() {
            let block = match block {
                Ok(block) => block,
                Err(BlockError { number: block, at, fault: BlockFault::OverLimit { limit } }) => {
                    return Err(RecordingError::TooLarge { limit, block, at });
                }
                Err(fault) if !has_about => return Err(RecordingError::Block(fault)),
                Err(fault) => {
                    if blocks.skip_fault() {
                        let (block, at, why) = (fault.number, fault.at, fault.to_string());
                        this.parts.push(Part { block, at, file: 0, content: Content::Gap(why) });
                    }
                    this.fault.get_or_insert(fault);
                    continue;
                }
            };
            let invalid = |error: DecodeError| RecordingError::Invalid {
                block: block.number,
                at: block.at,
                why: error.to_string(),
            };
            if block.kind == BlockKind::About as u8 {
                this.about = About::decode(&block.content).map_err(invalid)?;
                has_about = true;
            } else if block.kind == BlockKind::End as u8 {
                this.end = Some(End::decode(&block.content).map_err(invalid)?);
            } else if let Some(content) = Content::of(&block).map_err(invalid)? {
                let (block, at) = (block.number, block.at);
                this.parts.push(Part { block, at, file: 0, content });
            }
        }
        match this.fault.clone() {
            Some(fault) if this.first().is_none() => Err(RecordingError::Block(fault)),
            _ if !has_about || this.first().is_none() => Err(RecordingError::Empty),
            _ => Ok(this),
        }
    }

    /// The facts about the room.
    #[must_use]
    pub fn about(&self) -> &About {
        &self.about
    }

    /// The first fault of the file, if it has one. What is before that block is whole.
    #[must_use]
    pub fn fault(&self) -> Option<&BlockError> {
        self.fault.as_ref()
    }

    /// The facts that its host had about the room, if it is from a journal.
    #[must_use]
    pub fn host(&self) -> &[u8] {
        &self.host
    }

    /// The names of the files of the journal that it is from, the oldest first.
    #[must_use]
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// The bytes that it has in the journal that it is from.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The time at which the room was last written whole in the journal that it is from, in
    /// milliseconds since 1970.
    #[must_use]
    pub fn last_whole_ms(&self) -> u64 {
        self.last_whole_ms
    }

    /// Why it ends; `None` if the process ended before.
    #[must_use]
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// The positions from which a replay can begin.
    #[must_use]
    pub fn keyframe_positions(&self) -> Vec<Position> {
        self.keyframes().map(|(_, position)| position).collect()
    }

    /// The places where inputs are missing: the position from which the room goes on, and why.
    #[must_use]
    pub fn gaps(&self) -> Vec<(Position, &str)> {
        let gaps = self.parts.iter().enumerate().filter_map(|(place, part)| match &part.content {
            Content::Gap(why) => Some((place, why.as_str())),
            _ => None,
        });
        let next = |place: usize| {
            let keyframes = self.keyframes();
            keyframes.into_iter().find(|(at, _)| *at > place).map(|(_, position)| position)
        };
        gaps.filter_map(|(place, why)| Some((next(place)?, why))).collect()
    }

    /// The position of the first keyframe.
    #[must_use]
    pub fn begin(&self) -> Position {
        self.first().unwrap_or_default()
    }

    /// The position after the last input.
    ///
    /// # Errors
    /// If the inputs are not valid.
    pub fn last(&self) -> Result<Position, ReplayError> {
        let Some((part, position)) = self.reached().last() else { return Ok(self.begin()) };
        Ok(part.run(|_| false)?.unwrap_or(position))
    }

    /// The number of inputs until a moment.
    ///
    /// # Errors
    /// If the recording lacks the moment, or it lies in a gap, or the inputs are not valid.
    pub fn inputs_until(&self, moment: Moment) -> Result<u64, ReplayError> {
        let (begin, last) = (self.begin(), self.last()?);
        match moment {
            Moment::Inputs(inputs) if inputs < begin.inputs || inputs > last.inputs => {
                Err(ReplayError::NoInput { inputs, first: begin.inputs, last: last.inputs })
            }
            Moment::Inputs(inputs) => match self.reach(|next| next.inputs >= inputs)? {
                Reached::Behind(next, why) if next.inputs != inputs => {
                    Err(ReplayError::MissingInput { inputs, why })
                }
                _ => Ok(inputs),
            },
            Moment::Tick(tick) if tick < begin.tick => {
                Err(ReplayError::NoTick { tick, first: begin.tick, last: None })
            }
            Moment::Tick(tick) if tick > last.tick => {
                let (first, last) = (begin.tick, Some(last.tick));
                Err(ReplayError::NoTick { tick, first, last })
            }
            Moment::Tick(tick) => match self.reach(|next| next.tick >= tick)? {
                Reached::Behind(next, why) if next.tick != tick => {
                    Err(ReplayError::Missing { tick, why })
                }
                Reached::At(next) | Reached::Behind(next, _) => Ok(next.inputs),
            },
            Moment::At(at) => {
                let before = self.reached().take_while(|(_, position)| position.at <= at).last();
                let Some((part, position)) = before else { return Ok(begin.inputs) };
                // The one that is later, or the last one.
                let found = part.run(|next| next.at > at)?.unwrap_or(position);
                Ok(found.inputs - u64::from(found.at > at))
            }
        }
    }

    /// The first position that is wanted: those before are not, and those after are.
    fn reach(&self, is_wanted: impl Fn(&Position) -> bool) -> Result<Reached, ReplayError> {
        let before = self.reached().take_while(|(_, position)| !is_wanted(position)).last();
        let Some((part, _)) = before else { return Ok(Reached::At(self.begin())) };
        if let Some(found) = part.run(&is_wanted)?.filter(&is_wanted) {
            return Ok(Reached::At(found));
        }
        let mut rest = self.parts.iter().skip_while(|of| !std::ptr::eq(*of, part)).skip(1);
        let mut gap = None;
        let next = rest.find_map(|part| match &part.content {
            Content::Gap(why) => {
                gap.get_or_insert(why.as_str());
                None
            }
            Content::Keyframe { position, .. } => Some(*position),
            Content::Inputs { position, .. } => (gap.is_none()).then_some(*position),
        });
        let position = match next {
            Some(position) => position,
            None => self.last()?,
        };
        Ok(match gap {
            Some(why) => Reached::Behind(position, why.to_owned()),
            None => Reached::At(position),
        })
    }

    /// The parts that a replay reaches, with the position at the begin of each. After a gap, it
    /// goes on at the next keyframe.
    fn reached(&self) -> impl Iterator<Item = (&Part, Position)> {
        let mut is_lost = false;
        self.parts.iter().filter_map(move |part| {
            is_lost = match part.content {
                Content::Gap(_) => true,
                Content::Keyframe { .. } => false,
                Content::Inputs { .. } => is_lost,
            };
            part.position().filter(|_| !is_lost).map(|position| (part, position))
        })
    }

    /// The position of the first keyframe.
    pub(super) fn first(&self) -> Option<Position> {
        self.keyframes().next().map(|(_, position)| position)
    }

    /// The keyframes: each with its place among the parts.
    pub(super) fn keyframes(&self) -> impl Iterator<Item = (usize, Position)> {
        self.parts.iter().enumerate().filter_map(|(place, part)| match part.content {
            Content::Keyframe { position, .. } => Some((place, position)),
            _ => None,
        })
    }
}
