//! Reporting changes while they are made.

use serde_json::Value;

use super::{Change, ChangeKind, Path, PathStep, compare, moved};
use crate::lens::Sight;
use crate::state::State;
use crate::walk::Shape;
use crate::{Key, TreeFormat};

/// The listener for changes, if there is one, and where the reader is. Without a listener nothing
/// is recorded.
pub struct Watch<'a> {
    path: Vec<PathStep>,
    tell: Option<&'a mut dyn FnMut(Change)>,
    /// The number of nested levels with suppressed reports.
    muted: u32,
    /// Entries of a map whose changes are read together.
    group: Group,
}

/// Entries of a map whose changes are read together.
#[derive(Default)]
pub(crate) struct Group {
    names: Vec<PathStep>,
    /// The level of their names in the path.
    depth: usize,
}

impl<'a> Watch<'a> {
    /// A watch without a listener.
    #[inline]
    pub const fn idle() -> Self {
        Self::new(None)
    }

    #[inline]
    pub(crate) const fn new(tell: Option<&'a mut dyn FnMut(Change)>) -> Self {
        let group = Group { names: Vec::new(), depth: 0 };
        Self { path: Vec::new(), tell, muted: 0, group }
    }

    /// One level down in a typed copy, to the entry of a map.
    #[inline]
    pub(crate) fn enter_entry(&mut self, key: &impl Key) {
        if self.listens() {
            self.path.push(name_of(key));
        }
    }

    /// Changes a value of a typed copy, and reports the difference.
    pub(crate) fn replace<T: State, E>(
        &mut self,
        value: &mut T,
        change: impl FnOnce(&mut T) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.listens() {
            return change(value);
        }
        let old = copy_json(value);
        change(value)?;
        self.replaced_as::<T>(&old, &copy_json(value));
        Ok(())
    }

    /// The value of this type at this place changed.
    pub(crate) fn replaced_as<T: State>(&mut self, old: &Value, new: &Value) {
        if old != new {
            let shape = Shape::part(&T::shape()).ok();
            self.replaced(shape.as_ref(), old, new);
        }
    }

    /// One level down, to the first of these entries. Returns the group around.
    pub(crate) fn enter_group(&mut self, names: Vec<PathStep>) -> Group {
        let depth = self.path.len();
        self.path.extend(names.first().cloned());
        std::mem::replace(&mut self.group, Group { names, depth })
    }

    /// On to another entry of the group, at the same place in it.
    #[inline]
    pub(crate) fn select(&mut self, place: usize) {
        if self.listens() {
            self.path[self.group.depth] = self.group.names[place].clone();
        }
    }

    /// One level up from a group, to that around it.
    pub(crate) fn leave_group(&mut self, around: Group) {
        self.path.truncate(self.group.depth);
        self.group = around;
    }

    /// Returns whether there is a listener and reports are not suppressed.
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
    pub fn enter(&mut self, name: &str) {
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
    pub fn leave(&mut self) {
        if self.listens() {
            self.path.pop();
        }
    }

    /// Returns the number of levels on the path.
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

    /// Elements of this list were removed, inserted and moved. `left` has an element for each before,
    /// the value of those that were removed; `old_indices` has one for each now.
    pub(crate) fn reshaped(&mut self, left: Vec<Option<Value>>, old_indices: &[u32]) {
        // How many were removed before each place: the elements after it moved down by that many.
        let mut gone = Vec::with_capacity(left.len());
        let mut count = 0;
        for item in &left {
            gone.push(count);
            count += usize::from(item.is_some());
        }
        for (index, item) in left.into_iter().enumerate().rev() {
            if let Some(value) = item {
                self.enter_at(index);
                self.left(value);
                self.leave();
            }
        }
        let kept =
            old_indices.iter().filter_map(|from| Some(*from as usize - gone.get(*from as usize)?));
        for (to, from) in moved(&kept.collect::<Vec<_>>()) {
            self.moved(to, from);
        }
    }

    /// An element of this list moved to an index.
    fn moved(&mut self, to: usize, from: usize) {
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

/// A value of a typed copy, as JSON.
pub(crate) fn copy_json<T: State>(value: &T) -> Value {
    let format = TreeFormat::Json;
    value.view(Sight { viewer: None, owner: None, format, before: None, is_copy: true })
}

/// The step to an entry.
pub(crate) fn name_of(key: &impl Key) -> PathStep {
    PathStep::Name(key.name().into())
}
