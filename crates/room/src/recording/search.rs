//! The next moment of a recording at which something happens, or the last one before.

use playfield_state::PlayerId;
use serde_json::Value;

use super::playback::{Event, Happened, Playback};
use super::{Difference, InputKind, Moment, Position, Recording, ReplayError};
use crate::RoomType;

/// A search in a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The number of inputs before the moment from which it searches.
    pub from: u64,
    /// Searches backwards.
    pub is_back: bool,
    /// The event that it searches for.
    pub wanted: Wanted,
}

/// The event that is searched for in a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// An input that does not come from the clock, of this player or of any.
    Input(Option<PlayerId>),
    /// An error for a player.
    Error,
    /// An internal error, or the room's failure.
    InternalError,
    /// A change of a value in the state, or in a player's view.
    Change {
        /// The place of the value: a JSON pointer (RFC 6901).
        pointer: String,
        /// The player whose view it is in; `None` for the state.
        viewer: Option<PlayerId>,
    },
    /// The first difference from what was recorded.
    Difference,
}

/// The outcome of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// After the last input of this position.
    At(Position),
    /// Nothing up to the end of the recording, or its begin.
    Nothing,
    /// Nothing up to here, and the time is over. It goes on from so many inputs.
    Until(u64),
    /// Nothing up to where the room differs from what was recorded.
    Differs(Box<Difference>),
}

impl Search {
    /// Searches, as long as there is time.
    ///
    /// # Errors
    /// If the recording lacks the moment, is not valid, or the room can't go on in this build.
    pub fn run(
        &self,
        recording: &Recording,
        room_type: &RoomType,
        has_time: &mut dyn FnMut() -> bool,
    ) -> Result<Found, ReplayError> {
        if self.is_back {
            return self.back(recording, room_type, has_time);
        }
        let mut playback = Playback::new(recording, room_type, Moment::Inputs(self.from))?;
        let mut watch = Watch::new(&self.wanted, &mut playback)?;
        while playback.difference.is_none()
            && let Some(event) = playback.next()?
            && playback.difference.is_none()
        {
            if watch.is_it(&event, &mut playback)? {
                return Ok(Found::At(playback.position()));
            }
            let until = match self.wanted {
                // The replay goes on from where the room was the same.
                Wanted::Difference => playback.same_until,
                _ => playback.position().inputs,
            };
            if until > self.from && !has_time() {
                return Ok(Found::Until(until));
            }
        }
        Ok(playback.difference.map_or(Found::Nothing, Found::Differs))
    }

    /// Searches from keyframe to keyframe, the last one first.
    fn back(
        &self,
        recording: &Recording,
        room_type: &RoomType,
        has_time: &mut dyn FnMut() -> bool,
    ) -> Result<Found, ReplayError> {
        let begin = recording.begin().inputs;
        let mut until = self.from;
        loop {
            let last = until.saturating_sub(1);
            if last <= begin {
                return Ok(Found::Nothing);
            }
            let mut playback = Playback::at_keyframe(recording, room_type, last - 1)?;
            // A keyframe belongs to the inputs before it.
            until = playback.position().inputs + 1;
            let mut watch = Watch::new(&self.wanted, &mut playback)?;
            let mut found = None;
            while playback.position().inputs < last
                && let Some(event) = playback.next()?
                && playback.difference.is_none()
            {
                if watch.is_it(&event, &mut playback)? {
                    found = Some(playback.position());
                }
            }
            match found {
                Some(found) => return Ok(Found::At(found)),
                None if has_time() => {}
                None => return Ok(Found::Until(until)),
            }
        }
    }
}

/// Looks out for what is searched for.
struct Watch<'w> {
    wanted: &'w Wanted,
    /// The value whose change is wanted.
    value: Option<Value>,
    /// The state that has it, as a save.
    whole: Vec<u8>,
}

impl<'w> Watch<'w> {
    fn new(wanted: &'w Wanted, playback: &mut Playback<'_>) -> Result<Self, ReplayError> {
        let mut this = Self { wanted, value: None, whole: Vec::new() };
        if matches!(wanted, Wanted::Change { .. }) {
            playback.whole(&mut this.whole);
            this.value = this.value(playback)?;
        }
        Ok(this)
    }

    /// Returns whether it has just happened.
    fn is_it(
        &mut self,
        event: &Event<'_>,
        playback: &mut Playback<'_>,
    ) -> Result<bool, ReplayError> {
        let Event::Input(Happened { input, has_error, has_internal_error, .. }) = event else {
            return Ok(false);
        };
        Ok(match self.wanted {
            Wanted::Input(player) => {
                !input.kind.is_clock() && (player.is_none() || input.player == *player)
            }
            Wanted::Error => *has_error,
            Wanted::InternalError => *has_internal_error,
            Wanted::Change { viewer, .. } => {
                // A view is as of the last sync.
                let may_be = match viewer {
                    Some(_) => input.kind == InputKind::Sync || !input.kind.is_clock(),
                    None => self.is_other_state(playback),
                };
                let now = if may_be { self.value(playback)? } else { return Ok(false) };
                now != std::mem::replace(&mut self.value, now.clone())
            }
            Wanted::Difference => false,
        })
    }

    fn is_other_state(&mut self, playback: &mut Playback<'_>) -> bool {
        let mut whole = Vec::new();
        playback.whole(&mut whole);
        whole != std::mem::replace(&mut self.whole, whole.clone())
    }

    fn value(&self, playback: &mut Playback<'_>) -> Result<Option<Value>, ReplayError> {
        let Wanted::Change { pointer, viewer } = self.wanted else { return Ok(None) };
        let whole = match viewer {
            Some(viewer) => playback.view(*viewer)?,
            None => playback.state()?,
        };
        Ok(whole.pointer(pointer).cloned())
    }
}
