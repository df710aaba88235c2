//! A recording, read from a file.

use std::fmt;
use std::time::Duration;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;

use super::coding::Coded;
use super::{
    About, Block, BlockError, BlockKind, Blocks, Entry, HEAD, Moment, Position, ReplayError,
};

/// A recording of a room. If its file is damaged, the inputs from there to the next keyframe are
/// missing; if it was cut, it ends there. [`fault`](Self::fault) says where.
#[derive(Clone, Debug)]
pub struct Recording {
    about: About,
    pub(super) parts: Vec<Part>,
    fault: Option<BlockError>,
    end: Option<End>,
}

/// The content of a block behind the first one.
#[derive(Clone, Debug)]
pub(super) struct Part {
    /// The number of the block, and the byte of the file at which it begins.
    pub(super) block: u64,
    pub(super) at: usize,
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
    fn position(&self) -> Option<Position> {
        match &self.content {
            Content::Keyframe { position, .. } | Content::Inputs { position, .. } => {
                Some(*position)
            }
            Content::Gap(_) => None,
        }
    }

    /// Goes through the inputs, up to the first whose position is wanted. Returns the last
    /// position, if it has an input.
    fn run(&self, is_wanted: impl Fn(&Position) -> bool) -> Result<Option<Position>, ReplayError> {
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
    fn of(block: &Block<'_>) -> Result<Option<Self>, DecodeError> {
        let reader = &mut Reader::new(&block.content);
        Ok(match BlockKind::from_number(block.kind) {
            Some(BlockKind::Keyframe) => Some(Self::Keyframe {
                position: Coded::read(reader)?,
                hash: reader.u64()?,
                frozen: reader.rest().to_vec(),
            }),
            Some(BlockKind::Inputs) => Some(Self::Inputs {
                position: Coded::read(reader)?,
                entries: reader.rest().to_vec(),
            }),
            Some(BlockKind::Gap) => {
                Some(Self::Gap(String::from_utf8_lossy(reader.rest()).into_owned()))
            }
            Some(BlockKind::About | BlockKind::End) | None => None,
        })
    }
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
    fn decode(bytes: &[u8]) -> Result<Self, DecodeError> {
        let reader = &mut Reader::new(bytes);
        Ok(Self { has_failed: Coded::read(reader)?, why: Coded::read(reader)? })
    }
}

/// A look at the begin and the end of a recording's file, which takes little time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glance {
    /// The facts about the room.
    pub about: About,
    /// The time in the room between the first keyframe and the last input, if both are seen.
    pub length: Option<Duration>,
    /// Why it ends; `None` if it has no end yet, or was cut.
    pub end: Option<End>,
}

impl Glance {
    /// The bytes at each end that it looks at. A short file may be in one piece.
    pub const BYTES: usize = 128 << 10;

    /// Looks at the first and the last bytes of a file.
    ///
    /// # Errors
    /// If they are not those of a recording, or its begin is damaged.
    pub fn of(first: &[u8], last: &[u8]) -> Result<Self, RecordingError> {
        check_head(first)?;
        let mut blocks = Blocks::new(first, HEAD.len().min(first.len()));
        let about = match blocks.next() {
            Some(Ok(block)) if block.kind == BlockKind::About as u8 => {
                About::decode(&block.content).map_err(|error| RecordingError::Invalid {
                    block: block.number,
                    at: block.at,
                    why: error.to_string(),
                })?
            }
            Some(Err(fault)) => return Err(RecordingError::Block(fault)),
            _ => return Err(RecordingError::Empty),
        };
        let keyframe = blocks.peek(POSITION_BYTES_MAX);
        let keyframe = keyframe.filter(|(kind, _)| *kind == BlockKind::Keyframe as u8);
        let begin = keyframe.and_then(|(_, bytes)| Position::read(&mut Reader::new(&bytes)).ok());
        let (mut until, mut end) = (None, None);
        for block in Blocks::in_piece(last) {
            if block.kind == BlockKind::End as u8 {
                end = End::decode(&block.content).ok();
            } else if let Ok(Some(content)) = Content::of(&block) {
                let part = Part { block: block.number, at: block.at, content };
                until = part.run(|_| false).ok().flatten().or(part.position()).or(until);
            }
        }
        let length = begin.zip(until).map(|(begin, until)| until.at.saturating_sub(begin.at));
        Ok(Self { about, length, end })
    }
}

/// The most bytes of a position.
const POSITION_BYTES_MAX: usize = 40;

fn check_head(bytes: &[u8]) -> Result<(), RecordingError> {
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
        check_head(bytes)?;
        let mut this = Self { about: About::default(), parts: Vec::new(), fault: None, end: None };
        let mut has_about = false;
        let mut blocks = Blocks::new(bytes, HEAD.len().min(bytes.len()));
        while let Some(block) = blocks.next() {
            let block = match block {
                Ok(block) => block,
                Err(fault) if !has_about => return Err(RecordingError::Block(fault)),
                Err(fault) => {
                    if blocks.skip_fault() {
                        let (block, at, why) = (fault.number, fault.at, fault.to_string());
                        this.parts.push(Part { block, at, content: Content::Gap(why) });
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
                this.parts.push(Part { block, at, content });
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
        let next = |place: usize| self.parts[place..].iter().find_map(Part::position);
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
        let last = self.parts.iter().rev().find_map(|part| Some((part, part.position()?)));
        let Some((part, position)) = last else { return Ok(self.begin()) };
        Ok(part.run(|_| false)?.unwrap_or(position))
    }

    /// The number of inputs until a moment.
    ///
    /// # Errors
    /// If the recording lacks the moment, or its inputs are not valid.
    pub fn inputs_until(&self, moment: Moment) -> Result<u64, ReplayError> {
        let begin = self.begin();
        match moment {
            Moment::Inputs(inputs) => {
                let last = self.last()?.inputs;
                if (begin.inputs..=last).contains(&inputs) {
                    return Ok(inputs);
                }
                Err(ReplayError::NoInput { inputs, first: begin.inputs, last })
            }
            Moment::Tick(tick) if tick < begin.tick => {
                Err(ReplayError::NoTick { tick, first: begin.tick, last: None })
            }
            Moment::Tick(tick) if tick == begin.tick => Ok(begin.inputs),
            Moment::Tick(tick) => {
                let (before, after) = self.split(|position| position.tick < tick);
                if let Some(found) = before.map(|part| part.run(|next| next.tick >= tick))
                    && let Some(found) = found?.filter(|found| found.tick >= tick)
                {
                    return Ok(found.inputs);
                }
                let last = Some(self.last()?.tick);
                let none = ReplayError::NoTick { tick, first: begin.tick, last };
                after.map(|position| position.inputs).ok_or(none)
            }
            Moment::At(at) => {
                let (before, _) = self.split(|position| position.at <= at);
                let Some(part) = before else { return Ok(begin.inputs) };
                // The one that is later, or the last one.
                let found = part.run(|next| next.at > at)?.or(part.position()).unwrap_or(begin);
                Ok(found.inputs - u64::from(found.at > at))
            }
        }
    }

    /// The last part with a position that is before something, and the position of the part after
    /// that.
    fn split(&self, is_before: impl Fn(Position) -> bool) -> (Option<&Part>, Option<Position>) {
        let mut placed =
            self.parts.iter().filter_map(|part| Some((part, part.position()?))).peekable();
        let mut before = None;
        while let Some((part, _)) = placed.next_if(|(_, position)| is_before(*position)) {
            before = Some(part);
        }
        (before, placed.next().map(|(_, position)| position))
    }

    /// The position of the first keyframe.
    fn first(&self) -> Option<Position> {
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

/// Why a recording can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecordingError {
    /// The bytes do not begin like a recording.
    NotARecording,
    /// The format is that of a newer Playfield.
    Format {
        /// The version of that format.
        version: u16,
    },
    /// The first block is damaged or missing, or one is, and no keyframe is whole.
    Block(BlockError),
    /// A block is not what it should be.
    Invalid {
        /// The number of the block.
        block: u64,
        /// The byte of the file at which it begins.
        at: usize,
        /// The fault, with its byte in the block's content.
        why: String,
    },
    /// The recording ends before its first keyframe, so it has nothing of the room.
    Empty,
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotARecording => {
                f.write_str("these bytes are not a recording: they do not begin with \"PFREC\"")
            }
            Self::Format { version } => write!(
                f,
                "the recording has the format {version}; this build reads the format 1: update \
                 Playfield"
            ),
            Self::Block(error) => error.fmt(f),
            Self::Invalid { block, at, why } => {
                write!(f, "block {block}, at byte {at}, is not valid: {why}")
            }
            Self::Empty => f.write_str("the recording ends before the first keyframe of the room"),
        }
    }
}

impl std::error::Error for RecordingError {}
