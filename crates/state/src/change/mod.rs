//! Changes of a copy, place by place.

mod compare;
mod moves;
mod path;
mod pattern;
mod watch;

use serde_json::Value;

pub(crate) use compare::compare;
use moves::moved;
pub use path::{Path, PathStep};
pub use pattern::{Pattern, PatternError};
pub use watch::Watch;
pub(crate) use watch::{copy_json, name_of};

/// One place of a copy that entered, left, moved or changed.
///
/// Values are those of the state's JSON. Applied in order to the older copy, changes make the newer
/// one: the index of an element is that in the list after the changes before.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The place.
    pub path: Path,
    /// The kind of change.
    pub kind: ChangeKind,
    /// The old value; none if it [entered](ChangeKind::Entered) or [moved](ChangeKind::Moved).
    pub old: Option<Value>,
    /// The new value; none if it [left](ChangeKind::Left) or [moved](ChangeKind::Moved).
    pub new: Option<Value>,
}

/// The kind of a [`Change`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// A new value: an entry or an element that was added, or something that came into view.
    Entered,
    /// A value is gone: an entry or an element that was removed, or something that left the view.
    Left,
    /// The value changed. Of a struct, a map or a list, the innermost places that changed are
    /// reported.
    Changed,
    /// An element of a list moved to this index.
    Moved {
        /// Its index before.
        from: usize,
    },
}
