//! A room goes on from a journal whose process has ended.

use std::fmt;

use playfield_wire::ErrorCode;

use super::coding::Coded;
use super::read::Content;
use super::replay::{Host, Replay};
use super::{BlockKind, Position, Recording, ReplayError, Step};
use crate::frozen::parts::{Part, Pending};
use crate::frozen::{FreezeError, Frozen, FrozenWriter};
use crate::{AnyRoom, Error, RoomType, Saves, Stage};

/// A room that was run to the end of a journal.
#[derive(Debug)]
pub struct Recovered {
    /// The room.
    pub room: RecoveredRoom,
    /// The position at which it is.
    pub position: Position,
    /// The number of inputs that were run.
    pub inputs: u64,
    /// The reason why the room is not at the end of the journal, but at the last position at which
    /// it is known to match.
    pub stopped: Option<String>,
    /// The last position at which the room is known to match. If another build runs it, the state
    /// after this position may differ.
    pub known: Position,
    /// The saves that the store may have, if nobody else has saved the room.
    pub saves: Saves,
}

/// The form in which a recovered room continues.
#[derive(Debug)]
pub enum RecoveredRoom {
    /// A [frozen room](crate::frozen), without the work that was in flight, to which the host may
    /// add its parts.
    Open(FrozenWriter),
    /// The room was ending, and this is its save.
    Ending(Vec<u8>),
    /// The room had ended, and was saved.
    Ended,
}

/// Why a room can't be recovered.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecoverError {
    /// The journal can't be run.
    Replay {
        /// The name of its file.
        file: String,
        /// The reason, and its place.
        error: Box<ReplayError>,
    },
    /// The room fails here, where it did not before.
    Fails {
        /// The name of the last file of the journal.
        file: String,
        /// The position at which it fails.
        at: Position,
    },
    /// The room can't be written whole.
    Freeze(FreezeError),
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Replay { file, error } => write!(f, "{file}: {error}"),
            Self::Fails { file, at } => write!(f, "{file}: the room fails at {at}, too"),
            Self::Freeze(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RecoverError {}

impl Recording {
    /// Returns the fence of the room's save when it was last written whole: rooms that open the
    /// save later have greater ones. `None` if the room has no save, or came from another process
    /// and had yet to open it.
    #[must_use]
    pub fn fence(&self) -> Option<u64> {
        let (place, _) = self.keyframes().last()?;
        let Content::Keyframe { frozen, .. } = &self.parts[place].content else { return None };
        let pending: Pending = Frozen::read(frozen).ok()?.value(Part::Pending).ok()?;
        pending.save?.fence
    }

    /// Notes the room in another journal: all that this one has from its last keyframe on.
    pub fn carry(&self, mut note: impl FnMut(BlockKind, &[u8])) {
        let Some((place, _)) = self.keyframes().last() else { return };
        note(BlockKind::About, &self.about.encode());
        note(BlockKind::Host, &self.host);
        for part in &self.parts[place..] {
            let mut content = Vec::new();
            let kind = match &part.content {
                Content::Keyframe { position, hash, frozen } => {
                    position.put(&mut content);
                    content.extend(hash.to_le_bytes());
                    content.extend(frozen);
                    BlockKind::Keyframe
                }
                Content::Inputs { position, entries } => {
                    position.put(&mut content);
                    content.extend(entries);
                    BlockKind::Inputs
                }
                Content::Gap(why) => {
                    content.extend(why.as_bytes());
                    BlockKind::Gap
                }
            };
            note(kind, &content);
        }
    }
}

/// Runs a room from its last keyframe to the end of the journal, and freezes it. If it does
/// otherwise than when it was journaled, because its code is not deterministic or is another, it
/// stops at the last place at which it was the same.
///
/// # Errors
/// If the recording is not valid, or the room can't go on from it in this build.
pub fn recover(recording: &Recording, room_type: &RoomType) -> Result<Recovered, RecoverError> {
    let mut replay = last(recording, room_type)?;
    let first = replay.position();
    let is_comparable = replay.is_comparable();
    let mut same = first;
    let stopped = loop {
        let step = replay.step(None);
        match step.map_err(|error| named(&replay, recording, error))? {
            Some(Step::Same(position)) if is_comparable => same = position,
            Some(Step::Differs(difference)) => {
                let file = recording.files.get(replay.file()).map_or("", String::as_str);
                break Some(format!("{file}: {difference}"));
            }
            Some(Step::Input(position, input)) if has_failed(replay.room()) => {
                same = Position { inputs: position.inputs - 1, ..same };
                break Some(format!(
                    "the room fails at {position}, as it did not before: {input:?}"
                ));
            }
            // A gap at the end is where the room was frozen.
            Some(_) => {}
            None => break None,
        }
    };
    if stopped.is_some() {
        replay = last(recording, room_type)?;
        while replay.position().inputs < same.inputs && matches!(replay.step(None), Ok(Some(_))) {}
    }
    let position = replay.position();
    let mut saves = replay.room().saves().unwrap_or_default();
    if saves.has_grown && !is_comparable {
        // Another build made these saves, so their contents may differ.
        saves.forget();
    }
    let room = freeze(replay.room(), position)?;
    let inputs = position.inputs - first.inputs;
    Ok(Recovered { room, position, inputs, stopped, known: same, saves })
}

/// Runs a failed room up to this many inputs of its journal, just before the input that made it
/// fail. Returns its save at that point.
///
/// # Errors
/// If the recording is not valid, or ends before, or the room behaves differently than it did
/// originally.
pub fn recover_save(
    recording: &Recording,
    room_type: &RoomType,
    inputs: u64,
) -> Result<Vec<u8>, RecoverError> {
    let file = || recording.files.last().cloned().unwrap_or_default();
    let failed = |error| RecoverError::Replay { file: file(), error: Box::new(error) };
    let mut replay = Replay::new(recording, room_type).map_err(failed)?;
    replay.begin_until(inputs).map_err(failed)?;
    while replay.position().inputs < inputs {
        let step = replay.step(None);
        match step.map_err(|error| named(&replay, recording, error))? {
            Some(Step::Differs(difference)) => {
                return Err(named(&replay, recording, ReplayError::Differs(difference)));
            }
            Some(Step::Input(at, _)) if has_failed(replay.room()) => {
                return Err(RecoverError::Fails { file: file(), at });
            }
            Some(_) => {}
            None => {
                let (first, last) = (recording.begin().inputs, replay.position().inputs);
                let error = ReplayError::NoInput { inputs, first, last };
                return Err(named(&replay, recording, error));
            }
        }
    }
    let (mut save, at) = (Vec::new(), replay.position());
    match replay.room().save(&mut save) {
        true => Ok(save),
        false => Err(RecoverError::Fails { file: file(), at }),
    }
}

/// The replay from the last keyframe.
fn last<'r>(recording: &'r Recording, room_type: &RoomType) -> Result<Replay<'r>, RecoverError> {
    let file = || {
        let place = recording.keyframes().last().map(|(place, _)| recording.parts[place].file);
        place.and_then(|file| recording.files.get(file)).cloned().unwrap_or_default()
    };
    let failed = |error| RecoverError::Replay { file: file(), error: Box::new(error) };
    Replay::at_last(recording, room_type).map_err(failed)
}

/// The error of a step, with the file.
fn named(replay: &Replay<'_>, recording: &Recording, error: ReplayError) -> RecoverError {
    let file = recording.files.get(replay.file()).cloned().unwrap_or_default();
    RecoverError::Replay { file, error: Box::new(error) }
}

fn has_failed(room: &dyn AnyRoom) -> bool {
    let failed = |why: Result<(), Error>| why.is_err_and(|it| it.code() == ErrorCode::RoomFailed);
    room.is_closed() && room.opened().is_some_and(failed)
}

fn freeze(room: &mut dyn AnyRoom, position: Position) -> Result<RecoveredRoom, RecoverError> {
    match room.stage() {
        Stage::Open => {
            let mut form = FrozenWriter::new();
            let why = Error::new(ErrorCode::Internal, "the process that ran the room has ended");
            let frozen = room.freeze_after(position.at, &why, &mut form, &mut Host::default());
            frozen.map(|()| RecoveredRoom::Open(form)).map_err(RecoverError::Freeze)
        }
        Stage::Closing | Stage::Finishing => {
            let mut save = Vec::new();
            match room.save(&mut save) {
                true => Ok(RecoveredRoom::Ending(save)),
                false => Ok(RecoveredRoom::Ended),
            }
        }
        Stage::Ended => Ok(RecoveredRoom::Ended),
    }
}
