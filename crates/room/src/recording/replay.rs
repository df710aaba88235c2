//! A recorded room runs again.

mod difference;
mod error;
mod host;
mod verify;

use std::borrow::Cow;
use std::sync::Arc;

use playfield_state::{PlayerId, saved_as_json};
use playfield_wire::ErrorCode;
use playfield_wire::message::MessageRef;
use playfield_wire::reader::Reader;
use serde_json::Value;

pub use difference::Difference;
pub use error::ReplayError;
pub(super) use host::Host;
use host::NoStore;
pub use verify::Summary;

use super::read::{Content, Part};
use super::{Answer, Cursor, Entry, Input, Moment, Position, Recording};
use crate::frozen::{ForkError, Frozen, FrozenWriter, ThawError, fork};
use crate::{AnyRoom, Error, Link, RoomOutput, RoomType, Store, Thaw};

/// A room that runs from a recording: from its first keyframe, input by input.
pub struct Replay<'r, T: AnyRoom + ?Sized = dyn AnyRoom> {
    recording: &'r Recording,
    thaw: fn(Thaw<'_>) -> Result<Box<T>, ThawError>,
    room: Box<T>,
    position: Position,
    /// The number of the next part, and the entries of the present one.
    next: usize,
    entries: Reader<'r>,
    /// The room was the same here as when it was recorded.
    good: Position,
    /// Hashes of this build can be compared with those of the recording.
    is_comparable: bool,
    /// Why the next keyframe does not follow.
    gap: Option<&'r str>,
    links: u64,
    /// The last input, if only it has come since the room was compared.
    only: Option<Input<'r>>,
    /// This build gives messages other numbers than the one that recorded, so names count.
    renumbers: bool,
}

/// A step of a replay.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Step<'r> {
    /// An input, after which the room is there.
    Input(Position, Input<'r>),
    /// The room is the same here as when it was recorded.
    Same(Position),
    /// The room differs from the recorded one.
    Differs(Box<Difference>),
    /// Inputs are missing. The room is at this position: that of the next keyframe, or before the
    /// gap if no keyframe follows.
    Gap(Position, &'r str),
}

impl<'r> Replay<'r> {
    /// Begins a replay at the first keyframe.
    ///
    /// # Errors
    /// If the room can't go on in this build.
    pub fn new(recording: &'r Recording, room_type: &RoomType) -> Result<Self, ReplayError> {
        Self::with(recording, room_type.thaw, &room_type.messages)
    }

    /// Begins a replay at the last keyframe.
    pub(super) fn at_last(
        recording: &'r Recording,
        room_type: &RoomType,
    ) -> Result<Self, ReplayError> {
        let (place, _) = recording.keyframes().last().ok_or(ReplayError::NoKeyframe)?;
        Self::from(recording, room_type.thaw, &room_type.messages, place)
    }
}

impl<'r, T: AnyRoom + ?Sized> Replay<'r, T> {
    pub(crate) fn with(
        recording: &'r Recording,
        thaw: fn(Thaw<'_>) -> Result<Box<T>, ThawError>,
        messages: &[String],
    ) -> Result<Self, ReplayError> {
        let (place, _) = recording.keyframes().next().ok_or(ReplayError::NoKeyframe)?;
        Self::from(recording, thaw, messages, place)
    }

    fn from(
        recording: &'r Recording,
        thaw: fn(Thaw<'_>) -> Result<Box<T>, ThawError>,
        messages: &[String],
        place: usize,
    ) -> Result<Self, ReplayError> {
        let (room, position, is_comparable, links) = thawed(recording, place, thaw)?;
        Ok(Self {
            recording,
            thaw,
            room,
            position,
            next: place + 1,
            entries: Reader::new(&[]),
            good: position,
            is_comparable,
            gap: None,
            links,
            only: None,
            renumbers: !messages.starts_with(&recording.about().messages),
        })
    }

    /// The room as it is.
    pub fn room(&mut self) -> &mut T {
        &mut self.room
    }

    /// The room as it is, which goes on elsewhere.
    pub(crate) fn into_room(self) -> Box<T> {
        self.room
    }

    /// The number of links that were given to players: their greatest number.
    pub(crate) fn links(&self) -> u64 {
        self.links
    }

    /// The position.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// The room's state as it is; `null` if it has ended.
    ///
    /// # Errors
    /// If a panic in the code of a type has left a state that can't be read.
    pub fn state(&self) -> Result<Value, ReplayError> {
        let mut whole = Vec::new();
        if !self.room.whole(&mut whole) {
            return Ok(Value::Null);
        }
        saved_as_json(&whole).map_err(|error| self.invalid(error.to_string()))
    }

    /// A [fork](crate::frozen::fork) of the room as it is, frozen, with this id: `of` says what it
    /// is a fork of.
    ///
    /// # Errors
    /// If the room has ended or ends.
    pub fn fork(&mut self, id: &str, of: &str) -> Result<Vec<u8>, ReplayError> {
        let why = Error::new(ErrorCode::RoomClosed, "the room is forked");
        let mut out = Host { answers: Vec::new(), question: 0, out: None };
        let mut form = FrozenWriter::new();
        let frozen = self.room.freeze_after(self.position.at, &why, &mut form, &mut out);
        let frozen = frozen.and_then(|()| form.finish()).map_err(ForkError::from);
        let forked = frozen.and_then(|frozen| fork(&Frozen::read(&frozen)?, id, of));
        forked.map_err(ReplayError::Fork)
    }

    /// Runs until a moment. To go back, or far on, it begins at a keyframe.
    ///
    /// # Errors
    /// If the recording has no such moment, or as [`step`](Self::step).
    pub fn seek(&mut self, moment: Moment) -> Result<(), ReplayError> {
        let inputs = self.recording.inputs_until(moment)?;
        let (place, position) = self.keyframe_until(inputs)?;
        let is_ahead = (position.inputs..=inputs).contains(&self.position.inputs);
        if !is_ahead {
            self.jump(place)?;
        }
        while self.position.inputs < inputs && self.step(None)?.is_some() {}
        Ok(())
    }

    /// The place of the present part's file among those of the recording.
    pub(super) fn file(&self) -> usize {
        let part = self.next.checked_sub(1).and_then(|last| self.recording.parts.get(last));
        part.map_or(0, |part| part.file)
    }

    /// Does the next step; `None` at the end. The players' output goes to `out`.
    ///
    /// # Errors
    /// If the recording is not valid, or the room can't go on from a keyframe after a gap.
    pub fn step(
        &mut self,
        mut out: Option<&mut dyn RoomOutput>,
    ) -> Result<Option<Step<'r>>, ReplayError> {
        loop {
            if !self.entries.is_empty() {
                return self.entry(out.take()).map(Some);
            }
            let Some(part) = self.recording.parts.get(self.next) else {
                return Ok(self.gap.take().map(|why| Step::Gap(self.position, why)));
            };
            let place = self.next;
            self.next += 1;
            match &part.content {
                // The first of several tells most.
                Content::Gap(why) => self.gap = self.gap.or(Some(why.as_str())),
                Content::Inputs { .. } if self.gap.is_some() => {}
                Content::Inputs { position, entries } if *position == self.position => {
                    self.entries = Reader::new(entries);
                }
                Content::Inputs { position, .. } => {
                    let why = format!("it begins at {position}, and {} is next", self.position);
                    return Err(ReplayError::Invalid { block: part.block, at: part.at, why });
                }
                Content::Keyframe { position, .. } if *position != self.position => {
                    let why = self.gap.unwrap_or("inputs are missing");
                    self.jump(place)?;
                    return Ok(Some(Step::Gap(self.position, why)));
                }
                Content::Keyframe { .. } if self.gap.is_some() => {
                    let why = self.gap.unwrap_or_default();
                    self.jump(place)?;
                    return Ok(Some(Step::Gap(self.position, why)));
                }
                Content::Keyframe { hash, frozen, .. } => {
                    if self.is_comparable {
                        return Ok(Some(self.compare(*hash, Some(frozen))));
                    }
                }
            }
        }
    }

    /// Returns whether the last step was a comparison with a keyframe.
    pub(super) fn is_at_keyframe(&self) -> bool {
        let part = self.next.checked_sub(1).and_then(|last| self.recording.parts.get(last));
        self.entries.is_empty()
            && part.is_some_and(|part| matches!(part.content, Content::Keyframe { .. }))
    }

    /// Returns whether hashes of this build can be compared with those of the recording.
    pub(super) fn is_comparable(&self) -> bool {
        self.is_comparable
    }

    /// The last keyframe with at most so many inputs before.
    fn keyframe_until(&self, inputs: u64) -> Result<(usize, Position), ReplayError> {
        let before = self.recording.keyframes().filter(|(_, position)| position.inputs <= inputs);
        before.last().ok_or(ReplayError::NoKeyframe)
    }

    /// Goes on from there.
    pub(super) fn begin_until(&mut self, inputs: u64) -> Result<(), ReplayError> {
        let (place, _) = self.keyframe_until(inputs)?;
        self.jump(place)
    }

    /// Goes on from a keyframe.
    fn jump(&mut self, place: usize) -> Result<(), ReplayError> {
        let (room, position, is_comparable, links) = thawed(self.recording, place, self.thaw)?;
        (self.room, self.position, self.is_comparable) = (room, position, is_comparable);
        (self.next, self.entries, self.good) = (place + 1, Reader::new(&[]), position);
        self.links = self.links.max(links);
        (self.gap, self.only) = (None, None);
        Ok(())
    }

    fn entry(&mut self, out: Option<&mut dyn RoomOutput>) -> Result<Step<'r>, ReplayError> {
        let mut cursor = self.position.cursor();
        let entry = cursor.read(&mut self.entries);
        let entry = entry.map_err(|error| self.invalid(error.to_string()))?;
        match entry {
            Entry::Input(at, mut input) => {
                let answers = self.answers(&mut cursor)?;
                match &mut input {
                    Input::Join(entrant) => {
                        self.links += 1;
                        entrant.to_mut().link = Link(self.links);
                    }
                    Input::Message { message, .. } if self.renumbers => self.renumber(message),
                    _ => {}
                }
                let step = input.clone();
                let mut out = Host { answers, question: 0, out };
                if let Some(Err(error)) = input.apply(at, &mut *self.room, &mut out) {
                    out.unheard(&error);
                }
                let inputs = self.position.inputs + 1;
                self.only = (inputs == self.good.inputs + 1).then(|| step.clone());
                self.position = Position { inputs, at: cursor.at, tick: cursor.tick };
                Ok(Step::Input(self.position, step))
            }
            Entry::Hash(hash) => Ok(self.compare(hash, None)),
            Entry::Answer(..) => Err(self.invalid("an answer of the host follows no input".into())),
        }
    }

    /// Gives a message its name, by the number that it had.
    fn renumber(&self, message: &mut MessageRef<'r>) {
        if let MessageRef::Index(index) = message
            && let Some(name) = self.recording.about().messages.get(*index as usize)
        {
            *message = MessageRef::Name(Cow::Borrowed(name));
        }
    }

    /// The host's answers to the input that was just read.
    fn answers(&mut self, cursor: &mut Cursor) -> Result<Vec<(u64, Answer)>, ReplayError> {
        let mut answers = Vec::new();
        loop {
            let (mut ahead, mut next) = (self.entries.clone(), *cursor);
            if ahead.is_empty() {
                return Ok(answers);
            }
            match next.read(&mut ahead) {
                Ok(Entry::Answer(question, answer)) => answers.push((question, answer)),
                Ok(_) => return Ok(answers),
                Err(error) => return Err(self.invalid(error.to_string())),
            }
            (self.entries, *cursor) = (ahead, next);
        }
    }

    pub(super) fn invalid(&self, why: String) -> ReplayError {
        let part = self.next.checked_sub(1).and_then(|last| self.recording.parts.get(last));
        let (block, at) = part.map_or((0, 0), |part| (part.block, part.at));
        ReplayError::Invalid { block, at, why }
    }
}

type Thawed<T> = (Box<T>, Position, bool, u64);

fn thawed<T: AnyRoom + ?Sized>(
    recording: &Recording,
    place: usize,
    thaw: fn(Thaw<'_>) -> Result<Box<T>, ThawError>,
) -> Result<Thawed<T>, ReplayError> {
    let Part { block, at, content, file: _ } = &recording.parts[place];
    let Content::Keyframe { position, hash, frozen } = content else {
        return Err(ReplayError::NoKeyframe);
    };
    let failed = |error| ReplayError::Thaw { block: *block, at: *at, error };
    let frozen = Frozen::read(frozen).map_err(failed)?;
    let mut links = 0;
    let mut link = |_: PlayerId| {
        links += 1;
        Link(links)
    };
    let store: Option<Arc<dyn Store>> = Some(Arc::new(NoStore));
    let mut room = thaw(Thaw { frozen: &frozen, store, link: &mut link }).map_err(failed)?;
    let mut out = Host { answers: Vec::new(), question: 0, out: None };
    room.moved(position.at, &mut out);
    let is_comparable = room.state_hash() == Some(*hash);
    Ok((room, *position, is_comparable, links))
}
