//! A look at a recording without reading all of it.

use std::time::Duration;

use playfield_wire::reader::Reader;

use super::coding::Coded;
use super::read::{Content, Part, check_head};
use super::{About, BlockKind, Blocks, End, HEAD, Position, Recording, RecordingError};

/// The most bytes of a position.
const POSITION_BYTES_MAX: usize = 40;

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
        let mut blocks = Blocks::in_piece(last);
        while let Some(block) = blocks.next() {
            let Ok(block) = block else {
                blocks.skip_fault();
                continue;
            };
            if block.kind == BlockKind::End as u8 {
                end = End::decode(&block.content).ok();
            } else if let Ok(Some(content)) = Content::of(&block) {
                let part = Part { block: block.number, at: block.at, file: 0, content };
                until = part.run(|_| false).ok().flatten().or(part.position()).or(until);
            }
        }
        let length = begin.zip(until).map(|(begin, until)| until.at.saturating_sub(begin.at));
        Ok(Self { about, length, end })
    }
}

impl Recording {
    /// Returns the same facts of a recording that was read.
    #[must_use]
    pub fn glance(&self) -> Glance {
        let length = self.last().ok().map(|last| last.at.saturating_sub(self.begin().at));
        Glance { about: self.about().clone(), length, end: self.end().cloned() }
    }
}
