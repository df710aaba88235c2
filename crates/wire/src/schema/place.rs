//! Places in a schema, as errors name them.

use std::fmt;

/// A place, such as `state.seats.*.hp`: its parent, and the step from there.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    before: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root(&'a str),
    Name(&'a str),
    JoinedRoom(&'static str),
}

impl<'a> Place<'a> {
    /// The start of a path.
    pub(super) fn root(name: &'a str) -> Self {
        Self { before: None, step: Step::Root(name) }
    }

    /// A field, a variant or a message.
    pub(super) fn named<'b>(&'b self, name: &'b str) -> Place<'b> {
        Place { before: Some(self), step: Step::Name(name) }
    }

    /// Every element or value.
    pub(super) fn each<'b>(&'b self) -> Place<'b> {
        Place { before: Some(self), step: Step::JoinedRoom(".*") }
    }

    /// The key of a map or a set.
    pub(super) fn key<'b>(&'b self) -> Place<'b> {
        Place { before: Some(self), step: Step::JoinedRoom(" (its key)") }
    }

    /// The reply to a message.
    pub(super) fn reply<'b>(&'b self) -> Place<'b> {
        Place { before: Some(self), step: Step::JoinedRoom(" (its reply)") }
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(before) = self.before {
            before.fmt(f)?;
        }
        match self.step {
            Step::Root(name) => f.write_str(name),
            Step::Name(name) => write!(f, ".{}", crate::excerpt(name, 64)),
            Step::JoinedRoom(what) => f.write_str(what),
        }
    }
}
