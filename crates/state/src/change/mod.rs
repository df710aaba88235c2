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

/// The differences between two values in JSON, place by place: the changes that make the second one
/// of the first.
///
/// ```
/// use playfield_state::differences;
/// use serde_json::json;
///
/// let (old, new) = (json!({"hp": 3, "bag": [1, 2]}), json!({"hp": 3, "bag": [1, 5]}));
/// let changes = differences(&old, &new);
/// assert_eq!(changes[0].path.to_string(), "bag.1");
/// assert_eq!((&changes[0].old, &changes[0].new), (&Some(json!(2)), &Some(json!(5))));
/// ```
#[must_use]
pub fn differences(old: &Value, new: &Value) -> Vec<Change> {
    let mut changes = Vec::new();
    compare(None, old, new, &mut Vec::new(), &mut |change| changes.push(change));
    changes
}

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
