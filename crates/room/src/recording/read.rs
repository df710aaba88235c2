//! A recording, read from a file.

use std::fmt;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;

use super::coding::Coded;
use super::{About, BlockError, BlockKind, Blocks, HEAD, Position};

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

/// The end of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    /// The room failed: its code panicked.
    pub has_failed: bool,
    /// Why the recording ends.
    pub why: String,
}

impl Recording {
    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// If they are not a recording in a format that this build reads, or a part of one is not
    /// valid though its checksum is right.
    pub fn read(bytes: &[u8]) -> Result<Self, RecordingError> {
        let known = bytes.len().min(6);
        if bytes[..known] != HEAD[..known] || bytes.is_empty() {
            return Err(RecordingError::NotARecording);
        }
        let version = bytes.get(6..8).and_then(|version| version.first_chunk());
        let version = version.map(|version| u16::from_le_bytes(*version));
        if let Some(version) = version.filter(|version| *version != 1) {
            return Err(RecordingError::Format { version });
        }
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
            let reader = &mut Reader::new(&block.content);
            let content = match BlockKind::from_number(block.kind) {
                Some(BlockKind::About) => {
                    this.about = About::decode(&block.content).map_err(invalid)?;
                    has_about = true;
                    continue;
                }
                Some(BlockKind::Keyframe) => Content::Keyframe {
                    position: Coded::read(reader).map_err(invalid)?,
                    hash: reader.u64().map_err(invalid)?,
                    frozen: reader.rest().to_vec(),
                },
                Some(BlockKind::Inputs) => Content::Inputs {
                    position: Coded::read(reader).map_err(invalid)?,
                    entries: reader.rest().to_vec(),
                },
                Some(BlockKind::Gap) => Content::Gap(String::from_utf8_lossy(reader.rest()).into()),
                Some(BlockKind::End) => {
                    this.end = Some(End {
                        has_failed: Coded::read(reader).map_err(invalid)?,
                        why: Coded::read(reader).map_err(invalid)?,
                    });
                    continue;
                }
                // A later build has more to say.
                None => continue,
            };
            this.parts.push(Part { block: block.number, at: block.at, content });
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
