//! The inputs of a run that the room refused.

use std::collections::BTreeMap;
use std::fmt;

use crate::Error;

/// The inputs of one kind that a room refused in an audit, in the run with the first secret.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusals {
    /// The name of the message, or `join`.
    pub name: String,
    /// The number of refused inputs.
    pub refused: usize,
    /// The number of all inputs of this kind.
    pub given: usize,
    /// The first refusal: its code and its text.
    pub first: String,
}

impl fmt::Display for Refusals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, refused, given, first } = self;
        write!(f, "{name}: {refused} of {given}, the first with {first}")
    }
}

/// Counts the inputs of a run, and those that were refused.
#[derive(Default)]
pub(super) struct Tally {
    kinds: BTreeMap<Kind, Counts>,
}

/// The kind of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Join,
    /// A message, by its number.
    Message(u32),
}

#[derive(Default)]
struct Counts {
    given: usize,
    refused: usize,
    first: Option<Error>,
}

impl Tally {
    pub(super) fn give(&mut self, kind: Kind) {
        self.kinds.entry(kind).or_default().given += 1;
    }

    pub(super) fn refuse(&mut self, kind: Kind, why: &Error) {
        let counts = self.kinds.entry(kind).or_default();
        counts.refused += 1;
        counts.first.get_or_insert_with(|| why.clone());
    }

    /// The kinds of the refused inputs. `name` names messages.
    pub(super) fn refusals(&self, name: impl Fn(u32) -> String) -> Vec<Refusals> {
        let kinds = self.kinds.iter().filter_map(|(kind, counts)| {
            let Counts { given, refused, first: Some(first) } = counts else { return None };
            let name = match *kind {
                Kind::Join => "join".to_owned(),
                Kind::Message(index) => name(index),
            };
            Some(Refusals { name, refused: *refused, given: *given, first: first.to_string() })
        });
        kinds.collect()
    }
}
