//! What changed in a copy, place by place.

mod compare;
mod moves;
mod path;
mod pattern;
mod watch;

use serde_json::Value;

pub(crate) use compare::compare;
pub(crate) use moves::moved;
pub use path::{Path, PathStep};
pub use pattern::{Pattern, PatternError};
pub(crate) use watch::Watch;

/// One place of a copy that came, went, or is another than before.
///
/// Values are as in the state's JSON. Changes come in an order in which they can be repeated on an
/// older copy: the index of an element is that in the list as the changes before left it.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// Where it happened.
    pub path: Path,
    /// What happened.
    pub kind: ChangeKind,
    /// What was there; nothing if it [entered](ChangeKind::Entered) or [moved](ChangeKind::Moved).
    pub old: Option<Value>,
    /// What is there now; nothing if it [left](ChangeKind::Left) or [moved](ChangeKind::Moved).
    pub new: Option<Value>,
}

/// What happened at the place of a [`Change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// A value is there where none was: an entry or an element that came, or something that came
    /// into view.
    Entered,
    /// A value is no longer there: an entry or an element that went, or something that went out of
    /// view.
    Left,
    /// The value is another one. Of what has places inside, those are told of that changed.
    Changed,
    /// An element of a list was taken out at another index, and put back in at this one.
    Moved {
        /// The index at which it was taken out.
        from: usize,
    },
}
