//! Reporting changes while they are made.

use serde_json::Value;

use super::{Change, ChangeKind, Path, PathStep, compare};
use crate::walk::Shape;

/// The listener for changes, if there is one, and where the reader is. Without a listener nothing
/// is recorded.
pub(crate) struct Watch<'a> {
    path: Vec<PathStep>,
    tell: Option<&'a mut dyn FnMut(Change)>,
    /// How many levels deep reports are suppressed.
    muted: u32,
}

impl<'a> Watch<'a> {
    pub(crate) fn new(tell: Option<&'a mut dyn FnMut(Change)>) -> Self {
        Self { path: Vec::new(), tell, muted: 0 }
    }

    /// Whether there is a listener and reports are not suppressed.
    #[inline]
    pub(crate) fn listens(&self) -> bool {
        self.tell.is_some() && self.muted == 0
    }

    /// Suppresses reports, or resumes them. Used while reading a value that is reported as a whole.
    pub(crate) fn mute(&mut self, mute: bool) {
        if mute {
            self.muted += 1;
        } else {
            self.muted -= 1;
        }
    }

    /// One level down, to a member.
    #[inline]
    pub(crate) fn enter(&mut self, name: &str) {
        if self.listens() {
            self.path.push(PathStep::Name(name.into()));
        }
    }

    /// One level down, to an element.
    #[inline]
    pub(crate) fn enter_at(&mut self, index: usize) {
        if self.listens() {
            self.path.push(PathStep::Index(index));
        }
    }

    /// Some levels down.
    pub(crate) fn go(&mut self, first: Option<&PathStep>, then: &[PathStep]) {
        if self.listens() {
            self.path.extend(first.into_iter().chain(then).cloned());
        }
    }

    /// One level up.
    #[inline]
    pub(crate) fn leave(&mut self) {
        if self.listens() {
            self.path.pop();
        }
    }

    /// How many levels down.
    pub(crate) fn depth(&self) -> usize {
        self.path.len()
    }

    /// Up to that level.
    pub(crate) fn back_to(&mut self, depth: usize) {
        self.path.truncate(depth);
    }

    /// A value was added at this place.
    pub(crate) fn entered(&mut self, new: &Value) {
        self.say(ChangeKind::Entered, || (None, Some(new.clone())));
    }

    /// A value was removed from this place.
    pub(crate) fn left(&mut self, old: Value) {
        self.say(ChangeKind::Left, || (Some(old), None));
    }

    /// An element of this list moved to an index.
    pub(crate) fn moved(&mut self, to: usize, from: usize) {
        self.enter_at(to);
        self.say(ChangeKind::Moved { from }, || (None, None));
        self.leave();
    }

    /// The value at this place changed.
    #[inline]
    pub(crate) fn replaced(&mut self, of: Option<&Shape>, old: &Value, new: &Value) {
        if self.muted == 0
            && let Some(tell) = &mut self.tell
        {
            compare(of, old, new, &mut self.path, *tell);
        }
    }

    fn say(&mut self, kind: ChangeKind, values: impl FnOnce() -> (Option<Value>, Option<Value>)) {
        if self.muted == 0
            && let Some(tell) = &mut self.tell
        {
            let (old, new) = values();
            tell(Change { path: Path(self.path.clone()), kind, old, new });
        }
    }
}
