//! The receiving side: every player's copy, updated from the messages and compared with the model.

use playfield_state::{Format, JsonMirror, Mirror, PlayerId, TreeFormat, view, view_in};
use playfield_wire::server::{self, ServerMessage};
use serde_json::Value;

use super::room::{EPOCH, ROOM, Room};
use crate::workloads::Workload;

/// The result of checking what was sent.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// Messages that were decoded and led to a copy that equals what its player may see.
    pub(crate) compared: u64,
    /// The first error.
    pub(crate) failure: Option<String>,
}

/// One player's copy.
struct PlayerCopy<T> {
    viewer: PlayerId,
    version: u64,
    state: CopyState<T>,
}

enum CopyState<T> {
    Packed(Box<Mirror<T>>),
    Tree(TreeFormat, JsonMirror),
}

/// The state that everyone sees in one turn, in the form that copies are compared with.
struct Expected<'a, W: Workload> {
    workload: &'a W,
    model: &'a W::Model,
    /// Created once per turn, if copies are trees.
    shared: Option<serde_json::Map<String, Value>>,
}

/// Processes everything that a room sent: snapshots, `steps` syncs, and final snapshots for
/// everyone as a newcomer.
pub(crate) fn check<W: Workload>(
    workload: &W,
    room: &Room<'_, W>,
    format: Format,
    steps: u64,
) -> Checked {
    let mut checked = Checked::default();
    let mut model = workload.model();
    let mut copies = newcomers(workload, format);
    for (turn, messages) in room.sent.turns().enumerate() {
        let turn = turn as u64;
        if (1..=steps).contains(&turn) {
            workload.step_model(&mut model, turn - 1);
        } else if turn > steps {
            copies = newcomers(workload, format);
        }
        let expected = Expected::new(workload, &model, format);
        let mut reached = vec![false; copies.len()];
        for (place, message) in messages {
            let copy = &mut copies[place];
            reached[place] = true;
            match copy.take(format, message).and_then(|()| expected.compare(copy)) {
                Ok(()) => checked.compared += 1,
                Err(what) => checked.fail(&format!("turn {turn}, player {}: {what}", copy.viewer)),
            }
        }
        // A player who received nothing must have missed nothing.
        for (copy, _) in copies.iter().zip(&reached).filter(|(_, reached)| !**reached) {
            if let Err(what) = expected.compare(copy) {
                checked.fail(&format!(
                    "turn {turn}, player {}, who received nothing: {what}",
                    copy.viewer
                ));
            }
        }
    }
    for copy in &copies {
        if !copy.sees(&room.state) {
            checked.fail(&format!(
                "at the end, player {}'s copy differs from the view of the state",
                copy.viewer
            ));
        }
    }
    checked
}

fn newcomers<W: Workload>(workload: &W, format: Format) -> Vec<PlayerCopy<W::State>> {
    workload.players().into_iter().map(|viewer| PlayerCopy::new(viewer, format)).collect()
}

impl Checked {
    fn fail(&mut self, what: &str) {
        self.failure.get_or_insert_with(|| what.to_owned());
    }
}

impl<T: playfield_state::State + Default> PlayerCopy<T> {
    fn new(viewer: PlayerId, format: Format) -> Self {
        let state = match format.tree() {
            None => CopyState::Packed(Box::default()),
            Some(format) => CopyState::Tree(format, JsonMirror::of(format)),
        };
        Self { viewer, version: 0, state }
    }

    /// Handles a message as a client does.
    fn take(&mut self, format: Format, message: &[u8]) -> Result<(), String> {
        let message = ServerMessage::decode(format, message).map_err(|error| error.to_string())?;
        if let ServerMessage::Check(server::Check { room: ROOM, version, digest }) = message {
            let own = match &self.state {
                CopyState::Packed(mirror) => mirror.digest(),
                CopyState::Tree(_, mirror) => mirror.digest(),
            };
            let is_right = version == self.version && own == digest;
            return if is_right {
                Ok(())
            } else {
                Err(format!("the digest differs at version {version}"))
            };
        }
        let (version, done) = match (message, &mut self.state) {
            (ServerMessage::Patch(server::Patch { room: ROOM, base, version, body }), state)
                if base == self.version =>
            {
                let done = match state {
                    CopyState::Packed(mirror) => mirror.patch(&body),
                    CopyState::Tree(_, mirror) => mirror.patch(&body),
                };
                (version, done)
            }
            (
                ServerMessage::Snapshot(server::Snapshot {
                    room: ROOM,
                    epoch: EPOCH,
                    version,
                    body,
                }),
                state,
            ) => {
                let done = match state {
                    CopyState::Packed(mirror) => mirror.snapshot(&body),
                    CopyState::Tree(_, mirror) => mirror.snapshot(&body),
                };
                (version, done)
            }
            (other, _) => {
                return Err(format!("{other:?} arrived for a copy at version {}", self.version));
            }
        };
        done.map_err(|error| error.to_string())?;
        if version <= self.version {
            return Err(format!("version {version} arrived after {}", self.version));
        }
        self.version = version;
        Ok(())
    }

    /// Returns whether the copy equals the live state as seen by the viewer.
    fn sees(&self, state: &T) -> bool {
        let viewer = Some(self.viewer);
        match &self.state {
            CopyState::Packed(mirror) => view(mirror.state(), viewer) == view(state, viewer),
            CopyState::Tree(format, mirror) => *mirror.state() == view_in(*format, state, viewer),
        }
    }
}

impl<'a, W: Workload> Expected<'a, W> {
    fn new(workload: &'a W, model: &'a W::Model, format: Format) -> Self {
        let shared = format.tree().map(|format| workload.shared_tree(model, format));
        Self { workload, model, shared }
    }

    fn compare(&self, copy: &PlayerCopy<W::State>) -> Result<(), String> {
        let same = match (&copy.state, &self.shared) {
            (CopyState::Packed(mirror), _) => {
                self.workload.matches_shared(mirror.state(), self.model)
                    && self.workload.matches_own(mirror.state(), self.model, copy.viewer)
            }
            (CopyState::Tree(_, mirror), Some(shared)) => {
                self.matches_tree(mirror.state(), shared, copy.viewer)
            }
            (CopyState::Tree(..), None) => false,
        };
        if same { Ok(()) } else { Err("the copy differs from what this player may see".into()) }
    }

    fn matches_tree(
        &self,
        copy: &Value,
        shared: &serde_json::Map<String, Value>,
        viewer: PlayerId,
    ) -> bool {
        let Value::Object(members) = copy else { return false };
        let (own_name, own) = self.workload.own_tree(self.model, viewer);
        members.len() == shared.len() + 1
            && members.get(own_name) == Some(&own)
            && shared.iter().all(|(name, value)| members.get(name) == Some(value))
    }
}
