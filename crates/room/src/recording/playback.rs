//! A recording that is played: the state and a player's view after each input, and what was sent.

use playfield_state::{Format, JsonMirror, PlayerId};
use playfield_wire::ErrorCode;
use serde_json::Value;

use super::heard::Heard;
use super::{
    Described, Difference, Input, InputKind, Moment, Position, Recorded, RecordedKind, Recording,
    Replay, ReplayError, Step,
};
use crate::{Player, RoomType};

/// A room that runs from a recording for someone who looks.
pub(super) struct Playback<'r> {
    replay: Replay<'r>,
    heard: Heard,
    /// The number of the last message.
    number: u64,
    /// Requests that are not answered yet.
    pub(super) requests: Vec<Recorded>,
    /// The number of inputs until which the room was the same as when it was recorded.
    pub(super) same_until: u64,
    /// The first difference. From there to the next keyframe, the results are this build's.
    pub(super) difference: Option<Box<Difference>>,
    pub(super) is_over: bool,
    /// The room has differed up to a keyframe.
    is_cut: bool,
    failed: bool,
}

/// The next event.
pub(super) enum Event<'r> {
    Input(Happened),
    /// Inputs are missing.
    Gap(&'r str),
}

/// An input, and what it led to.
pub(super) struct Happened {
    pub(super) input: Described,
    /// The messages in and out: first the one that was the input.
    pub(super) messages: Vec<Recorded>,
    /// The first message is the input.
    pub(super) is_message: bool,
    /// The errors that no player heard.
    pub(super) unheard: Vec<String>,
    pub(super) has_error: bool,
    pub(super) has_internal_error: bool,
}

impl<'r> Playback<'r> {
    /// Runs until a moment, from the last keyframe on.
    pub(super) fn new(
        recording: &'r Recording,
        room_type: &RoomType,
        moment: Moment,
    ) -> Result<Self, ReplayError> {
        let inputs = recording.inputs_until(moment)?;
        let mut this = Self::at_keyframe(recording, room_type, inputs)?;
        while this.position().inputs < inputs && this.next()?.is_some() {}
        Ok(this)
    }

    /// Begins at the last keyframe with at most so many inputs before.
    pub(super) fn at_keyframe(
        recording: &'r Recording,
        room_type: &RoomType,
        inputs: u64,
    ) -> Result<Self, ReplayError> {
        let mut replay = Replay::new(recording, room_type)?;
        replay.begin_until(inputs)?;
        let mut heard = Heard::default();
        heard.meet(replay.room());
        let same_until = replay.position().inputs;
        Ok(Self {
            replay,
            heard,
            number: 0,
            requests: Vec::new(),
            same_until,
            difference: None,
            is_over: false,
            is_cut: false,
            failed: false,
        })
    }

    pub(super) fn position(&self) -> Position {
        self.replay.position()
    }

    pub(super) fn is_comparable(&self) -> bool {
        self.replay.is_comparable()
    }

    /// The room's state; `null` if it has ended.
    pub(super) fn state(&self) -> Result<Value, ReplayError> {
        self.replay.state()
    }

    /// Appends the room's state as a save, if it has one.
    pub(super) fn whole(&mut self, out: &mut Vec<u8>) -> bool {
        self.replay.room().whole(out)
    }

    pub(super) fn players(&mut self) -> Vec<Player> {
        self.replay.room().players(&mut |_| true)
    }

    pub(super) fn syncs(&mut self) -> bool {
        self.replay.room().sync_hz() > 0
    }

    /// The view of a player as of the last sync; `null` if the player is not in the room.
    pub(super) fn view(&mut self, player: PlayerId) -> Result<Value, ReplayError> {
        let room = self.replay.room();
        let is_here = !room.players(&mut |of| of.id == player).is_empty();
        if !is_here {
            return Ok(Value::Null);
        }
        let mut body = Vec::new();
        room.snapshot(player, Format::Json, &mut body);
        let mut mirror = JsonMirror::new();
        match mirror.snapshot(&body) {
            Ok(()) => Ok(mirror.state().clone()),
            // The code of a view has panicked.
            Err(_) if body.is_empty() => Ok(Value::Null),
            Err(error) => Err(self.replay.invalid(format!("the view of player {player}: {error}"))),
        }
    }

    /// Goes on until the room is compared with what was recorded, so that what was shown so far is
    /// known to be right, or not.
    pub(super) fn check(&mut self) -> Result<(), ReplayError> {
        let shown = self.position().inputs;
        if !self.is_comparable() {
            return Ok(());
        }
        while self.same_until < shown && self.difference.is_none() && self.next()?.is_some() {}
        Ok(())
    }

    /// The next input; `None` at the end, or at a keyframe up to which the room differs from what
    /// was recorded.
    pub(super) fn next(&mut self) -> Result<Option<Event<'r>>, ReplayError> {
        while !self.is_cut {
            self.heard.begin();
            match self.replay.step(Some(&mut self.heard))? {
                Some(Step::Input(position, input)) => {
                    return Ok(Some(Event::Input(self.happened(position, &input))));
                }
                Some(Step::Same(position)) if self.difference.is_none() => {
                    self.same_until = position.inputs;
                }
                Some(Step::Same(_)) => {}
                Some(Step::Differs(difference)) => {
                    self.is_cut = self.replay.is_at_keyframe();
                    self.difference.get_or_insert(difference);
                }
                Some(Step::Gap(position, why)) => {
                    if self.difference.is_some() {
                        self.is_cut = true;
                        break;
                    }
                    self.same_until = position.inputs;
                    self.requests.clear();
                    self.heard.forget_players();
                    self.heard.meet(self.replay.room());
                    return Ok(Some(Event::Gap(why)));
                }
                None => {
                    self.is_over = true;
                    break;
                }
            }
        }
        Ok(None)
    }

    fn happened(&mut self, position: Position, input: &Input<'r>) -> Happened {
        let mut described = input.describe();
        let mut messages = Vec::new();
        if let Input::Message { player, message, payload, request } = input {
            self.number += 1;
            let kind = RecordedKind::message(message, *request);
            let format = self.heard.format_of(*player);
            let asked = Recorded::new(self.number, position.at, *player, format, kind, payload);
            if request.is_some() {
                self.requests.push(asked.clone());
            }
            messages.push(asked);
        }
        if described.kind == InputKind::Join || self.heard.has_admitted {
            let new = self.heard.meet(self.replay.room());
            if described.kind == InputKind::Join {
                described.player = new.first().copied();
            }
        }
        let has_internal_error = self.heard.errors.contains(&ErrorCode::Internal);
        let has_error = !self.heard.errors.is_empty();
        let is_message = !messages.is_empty();
        messages.extend(self.heard.take(position.at, &mut self.number));
        self.requests.retain(|asked| !messages.iter().any(|message| answers(message, asked)));
        let has_failed = self.has_just_failed();
        Happened {
            input: described,
            messages,
            is_message,
            unheard: std::mem::take(&mut self.heard.unheard),
            has_error: has_error || has_failed,
            has_internal_error: has_internal_error || has_failed,
        }
    }

    /// Returns whether the room has failed since the input before.
    fn has_just_failed(&mut self) -> bool {
        let room = self.replay.room();
        if self.failed || !room.is_closed() {
            return false;
        }
        let why = room.opened().and_then(Result::err);
        self.failed = why.is_some_and(|why| why.code() == ErrorCode::RoomFailed);
        self.failed
    }
}

impl Recording {
    /// Forks the room after so many inputs: see [`fork`](crate::frozen::fork). Returns the frozen
    /// fork and the position.
    ///
    /// # Errors
    /// If the recording lacks the input, is not valid, the room can't go on in this build, differs
    /// there from what was recorded, or has ended.
    pub fn fork(
        &self,
        room_type: &RoomType,
        inputs: u64,
        id: &str,
        of: &str,
    ) -> Result<(Vec<u8>, Position), ReplayError> {
        let mut checked = Playback::new(self, room_type, Moment::Inputs(inputs))?;
        checked.check()?;
        if let Some(difference) = checked.difference
            && difference.same_until.inputs < inputs
        {
            return Err(ReplayError::Differs(difference));
        }
        let mut replay = Replay::new(self, room_type)?;
        replay.seek(Moment::Inputs(inputs))?;
        let position = replay.position();
        Ok((replay.fork(id, of)?, position))
    }
}

/// Returns whether a message answers a request.
fn answers(message: &Recorded, asked: &Recorded) -> bool {
    let RecordedKind::Message(_, request) = &asked.kind else { return false };
    let answered = match &message.kind {
        RecordedKind::Reply(request) => Some(*request),
        RecordedKind::Error(_, request) => *request,
        RecordedKind::Message(..) | RecordedKind::Event(_) => None,
    };
    answered.is_some() && answered == *request && message.player == asked.player
}
