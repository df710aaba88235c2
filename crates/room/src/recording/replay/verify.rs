//! Comparison of a room that runs again with its recording.

use playfield_state::{Format, differences, saved_as_json};

use super::difference::short;
use super::{Difference, Host, Replay, ReplayError, Step};
use crate::AnyRoom;
use crate::frozen::Frozen;
use crate::frozen::parts::Part as FrozenPart;
use crate::recording::Position;

/// The outcome of a replay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The position at the end.
    pub position: Position,
    /// The number of hashes that were equal.
    pub compared: u64,
    /// The first difference.
    pub difference: Option<Box<Difference>>,
    /// Gaps in the recording: where, and why.
    pub gaps: Vec<(Position, String)>,
    /// The room failed when it was recorded, and does not here.
    pub is_fixed: bool,
    /// Hashes can't be compared: the room has another type of state in this build, or its `moved`
    /// changes more than skipped fields.
    pub is_other_type: bool,
}

impl<'r, T: AnyRoom + ?Sized> Replay<'r, T> {
    /// Runs to the end, and compares the room with its recording, up to the first difference.
    ///
    /// # Errors
    /// The same as [`step`](Self::step).
    pub fn verify(&mut self) -> Result<Summary, ReplayError> {
        let mut summary = Summary::default();
        loop {
            match self.step(None)? {
                Some(Step::Input(..)) => {}
                Some(Step::Same(_)) => summary.compared += u64::from(self.is_comparable),
                Some(Step::Gap(position, why)) => summary.gaps.push((position, why.to_owned())),
                Some(Step::Differs(difference)) => {
                    let first = summary.difference.get_or_insert(difference.clone());
                    // A keyframe shows the fields.
                    if !difference.fields.is_empty() {
                        first.fields.clone_from(&difference.fields);
                        break;
                    }
                }
                None => break,
            }
        }
        summary.position = self.position;
        summary.is_fixed = self.is_fixed();
        summary.is_other_type = !self.is_comparable;
        Ok(summary)
    }

    /// Returns whether a room that failed in the recording does not fail here.
    fn is_fixed(&mut self) -> bool {
        let is_at_end = self.next == self.recording.parts.len() && self.entries.is_empty();
        if !is_at_end || !self.recording.end().is_some_and(|end| end.has_failed) {
            return false;
        }
        // Views and masks are code of the room: they may have failed while patches were written.
        for player in self.room.players(&mut |_| true) {
            self.room.snapshot(player.id(), Format::Packed, &mut Vec::new());
        }
        let mut out = Host { answers: Vec::new(), question: 0, out: None };
        if self.room.wake_at().is_some_and(|due| due <= self.position.at) {
            self.room.wake(self.position.at, &mut out);
        }
        !self.room.is_closed()
    }

    pub(super) fn compare(&mut self, recorded: u64, frozen: Option<&[u8]>) -> Step<'r> {
        let replayed = self.room.state_hash();
        let same_until = self.good;
        if !self.is_comparable || replayed == Some(recorded) {
            self.good = self.position;
            return Step::Same(self.position);
        }
        let fields = frozen.map(|frozen| self.fields(frozen)).unwrap_or_default();
        let (position, input) = (self.position, self.only.as_ref());
        let input = input.map(|input| short(format_args!("{input:?}")));
        let difference = Difference { same_until, position, recorded, replayed, input, fields };
        Step::Differs(Box::new(difference))
    }

    /// The fields that differ from a frozen room.
    fn fields(&self, frozen: &[u8]) -> Vec<[String; 3]> {
        let mut whole = Vec::new();
        let recorded = Frozen::read(frozen).ok();
        let recorded = recorded.and_then(|frozen| {
            frozen.part(FrozenPart::State).ok().and_then(|state| saved_as_json(state).ok())
        });
        let (Some(recorded), true) = (recorded, self.room.whole(&mut whole)) else {
            return Vec::new();
        };
        let Ok(here) = saved_as_json(&whole) else { return Vec::new() };
        let text = |value: Option<_>| value.map_or_else(|| "nothing".to_owned(), short);
        let changes = differences(&recorded, &here).into_iter();
        changes
            .map(|change| [change.path.to_string(), text(change.old), text(change.new)])
            .collect()
    }
}
