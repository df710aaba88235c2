//! An excerpt of a recording: the room at a moment, and what each input after it changed.

use std::time::Duration;

use playfield_state::{Change, PlayerId, differences};
use serde_json::Value;

use super::playback::{Event, Happened, Playback};
use super::{Described, Difference, InputKind, Moment, Position, Recorded, Recording, ReplayError};
use crate::{Player, RoomType};

/// The most inputs of a frame that are described. The others are counted.
const DESCRIBED_MAX: usize = 50;
/// The most messages of a frame that are kept.
const MESSAGES_MAX: usize = 200;

/// The part of a recording that is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExcerptOf {
    /// The moment that is looked at.
    pub moment: Moment,
    /// The number of inputs before it with which the excerpt begins. It begins later if these
    /// change more than `bytes`.
    pub before: u64,
    /// The player whose view is wanted, and what this player was sent.
    pub viewer: Option<PlayerId>,
    /// The most frames after the moment.
    pub frames: usize,
    /// The time from one frame to the next; zero for a frame with each input.
    pub every: Duration,
    /// The approximate size limit before the moment, and after it: the bytes of all changes and
    /// payloads. One frame on each side may exceed it.
    pub bytes: usize,
}

/// A part of a recording, as it runs again. Differences from the recording are marked.
#[derive(Clone, Debug)]
pub struct Excerpt {
    /// The name of the room's type.
    pub room_type: String,
    /// The number of inputs before the moment.
    pub inputs: u64,
    /// The room at the begin; `None` if inputs are missing there.
    pub begin: Option<Shown>,
    /// The frames that follow.
    pub frames: Vec<Frame>,
    /// The requests that were not answered at the begin.
    pub requests: Vec<Recorded>,
    /// The recording ends after these frames.
    pub is_over: bool,
    /// The difference from what was recorded, if one is known, at the begin or after the last
    /// frame.
    pub difference: Option<Box<Difference>>,
    /// The whole excerpt, up to the difference, was compared with the recording.
    pub is_verified: bool,
    /// Hashes can't be compared: see [`Summary`](super::Summary::is_other_type).
    pub is_other_type: bool,
}

/// A room at a moment.
#[derive(Clone, Debug)]
pub struct Shown {
    /// The position.
    pub position: Position,
    /// The whole state, also what no player sees; `null` if the room has ended.
    pub state: Value,
    /// The viewer's view at the last sync; `null` if the viewer is not in the room.
    pub view: Value,
    /// The players.
    pub players: Vec<Player>,
    /// This build differs, or may differ, from the recording here.
    pub differs: bool,
}

/// One input, or several, and what they changed.
#[derive(Clone, Debug, Default)]
pub struct Frame {
    /// The position after them.
    pub position: Position,
    /// The inputs. A message among them is in `messages`, under this number.
    pub inputs: Vec<(Described, Option<u64>)>,
    /// The number of further inputs.
    pub more_inputs: usize,
    /// The players' messages, refusals, and what the viewer was sent.
    pub messages: Vec<Recorded>,
    /// The changes of the state.
    pub changes: Vec<Change>,
    /// The changes of the viewer's view.
    pub view_changes: Vec<Change>,
    /// Inputs are missing before the end of this frame: why.
    pub gap: Option<String>,
    /// A handler refused something, or the room failed.
    pub has_error: bool,
    /// Errors that reached no player: from joins and internal messages.
    pub unheard: Vec<String>,
    /// The players after it, if they are others or others are connected.
    pub players: Option<Vec<Player>>,
    /// The inputs are the recorded ones, but this build's results differ, or may differ.
    pub differs: bool,
}

impl Excerpt {
    /// Runs a part of a recording, as long as there is time.
    ///
    /// # Errors
    /// If the recording lacks the moment, is not valid, or the room can't go on in this build.
    pub fn run(
        recording: &Recording,
        room_type: &RoomType,
        of: &ExcerptOf,
        has_time: &mut dyn FnMut() -> bool,
    ) -> Result<Self, ReplayError> {
        let inputs = recording.inputs_until(of.moment)?;
        let first = inputs.saturating_sub(of.before).max(recording.begin().inputs);
        let mut playback = Playback::new(recording, room_type, Moment::Inputs(first))?;
        let is_there = playback.position().inputs == first;
        let mut taker = Taker::new(playback.position(), of);
        let mut this = Self {
            room_type: recording.about().room_type.clone(),
            inputs,
            begin: if is_there { Some(taker.begin(&mut playback)?) } else { None },
            frames: Vec::new(),
            requests: playback.requests.clone(),
            is_over: false,
            difference: None,
            is_verified: false,
            is_other_type: !playback.is_comparable(),
        };
        let (mut left, mut is_behind) = (of.frames, false);
        while this.begin.is_some() {
            if playback.position().inputs >= inputs {
                if !is_behind {
                    (is_behind, taker.bytes) = (true, 0);
                }
                if left == 0 || taker.bytes >= of.bytes || !has_time() {
                    break;
                }
                left -= 1;
            } else if taker.bytes >= of.bytes {
                // The inputs up to the moment are complete, so the excess is dropped at the start.
                this.begin = Some(taker.begin(&mut playback)?);
                this.frames.clear();
                this.requests.clone_from(&playback.requests);
                taker.bytes = 0;
            }
            let Some(frame) = taker.frame(&mut playback)? else { break };
            this.frames.push(frame);
        }
        let shown = playback.position().inputs;
        this.is_over = playback.is_over;
        playback.check()?;
        this.is_verified = playback.same_until >= shown && playback.is_comparable();
        this.difference = playback.difference;
        if let Some(difference) = &this.difference {
            let differs = |at: &Position| at.inputs > difference.same_until.inputs;
            for frame in &mut this.frames {
                frame.differs = differs(&frame.position);
            }
            if let Some(begin) = &mut this.begin {
                begin.differs = differs(&begin.position);
            }
            this.is_verified = true;
        }
        Ok(this)
    }
}

/// Takes frames from a playback.
struct Taker {
    viewer: Option<PlayerId>,
    every: Duration,
    at: Duration,
    state: Value,
    view: Value,
    /// The state as a save.
    whole: Vec<u8>,
    /// The players, and whether each is connected.
    seats: Vec<(PlayerId, bool)>,
    bytes: usize,
}

impl Taker {
    fn new(position: Position, of: &ExcerptOf) -> Self {
        Self {
            viewer: of.viewer,
            every: of.every,
            at: position.at,
            state: Value::Null,
            view: Value::Null,
            whole: Vec::new(),
            seats: Vec::new(),
            bytes: 0,
        }
    }

    fn begin(&mut self, playback: &mut Playback<'_>) -> Result<Shown, ReplayError> {
        playback.whole(&mut self.whole);
        self.state = playback.state()?;
        if let Some(viewer) = self.viewer {
            self.view = playback.view(viewer)?;
        }
        Ok(Shown {
            position: playback.position(),
            state: self.state.clone(),
            view: self.view.clone(),
            players: self.seated(playback),
            differs: false,
        })
    }

    fn seated(&mut self, playback: &mut Playback<'_>) -> Vec<Player> {
        let players = playback.players();
        self.seats = players.iter().map(|player| (player.id, player.is_connected)).collect();
        players
    }

    /// The players, if they are others than before, or others are connected.
    fn others(&mut self, playback: &mut Playback<'_>) -> Option<Vec<Player>> {
        let before = std::mem::take(&mut self.seats);
        let players = self.seated(playback);
        (self.seats != before).then_some(players)
    }

    /// The next frame; `None` at the end.
    fn frame(&mut self, playback: &mut Playback<'_>) -> Result<Option<Frame>, ReplayError> {
        let mut frame = Frame::default();
        let (mut is_synced, mut has_others, mut count) = (false, false, 0);
        let syncs = playback.syncs();
        while let Some(event) = playback.next()? {
            count += 1;
            let kind = match event {
                Event::Gap(why) => {
                    frame.gap = Some(why.to_owned());
                    (is_synced, has_others) = (true, true);
                    break;
                }
                Event::Input(happened) => {
                    let kind = happened.input.kind;
                    self.take(&mut frame, happened);
                    kind
                }
            };
            is_synced |= kind == InputKind::Sync;
            has_others |= !kind.is_clock();
            let passed = playback.position().at.saturating_sub(self.at);
            // A view is as of a sync, so a frame ends with one.
            let is_last = kind == InputKind::Sync || !syncs || passed > self.every * 2;
            if self.every.is_zero() || passed >= self.every && is_last {
                break;
            }
        }
        if count == 0 {
            return Ok(None);
        }
        frame.position = playback.position();
        self.at = frame.position.at;
        let mut whole = Vec::new();
        playback.whole(&mut whole);
        if whole != self.whole || whole.is_empty() {
            let state = playback.state()?;
            frame.changes = differences(&self.state, &state);
            (self.state, self.whole) = (state, whole);
        }
        if has_others {
            frame.players = self.others(playback);
        }
        if let Some(viewer) = self.viewer.filter(|_| is_synced || frame.players.is_some()) {
            let view = playback.view(viewer)?;
            frame.view_changes = differences(&self.view, &view);
            self.view = view;
        }
        let changes = frame.changes.iter().chain(&frame.view_changes);
        self.bytes += changes.map(weight).sum::<usize>() + 100;
        Ok(Some(frame))
    }

    fn take(&mut self, frame: &mut Frame, happened: Happened) {
        let Happened { input, messages, is_message, unheard, has_error, .. } = happened;
        frame.has_error |= has_error;
        frame.unheard.extend(unheard);
        let number = messages.first().filter(|_| is_message).map(|message| message.number);
        if frame.inputs.len() == DESCRIBED_MAX {
            frame.more_inputs += 1;
        } else {
            frame.inputs.push((input, number));
        }
        for (place, message) in messages.into_iter().enumerate() {
            let is_input = is_message && place == 0;
            let is_for_viewer = self.viewer == Some(message.player);
            let is_error = matches!(message.kind, super::RecordedKind::Error(..));
            if (is_input || is_for_viewer || is_error) && frame.messages.len() < MESSAGES_MAX {
                self.bytes += message.payload.as_ref().map_or(0, Vec::len) + 50;
                frame.messages.push(message);
            }
        }
    }
}

/// About how many bytes a change takes as text.
fn weight(change: &Change) -> usize {
    fn of(value: &Value) -> usize {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 8,
            Value::String(text) => 2 + text.len(),
            Value::Array(all) => 2 + all.iter().map(of).sum::<usize>(),
            Value::Object(all) => {
                2 + all.iter().map(|(name, value)| name.len() + 4 + of(value)).sum::<usize>()
            }
        }
    }
    let values = [&change.old, &change.new].into_iter().flatten();
    40 + change.path.steps().len() * 10 + values.map(of).sum::<usize>()
}
