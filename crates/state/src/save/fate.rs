//! The fate of a save in another build, judged by the types alone.

use std::fmt;

use playfield_wire::excerpt;
use playfield_wire::schema::{Struct, Type};

use super::saved::{Saved, SavedField};

/// The longest name that a place shows, in bytes.
pub(super) const NAME_BYTES_MAX: usize = 64;

/// A part of a save that another build can't use as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveDifference {
    /// The field, such as `units.*.name`; empty for the root.
    pub place: String,
    /// The fate of the part.
    pub fate: SaveFate,
    /// The difference.
    pub why: String,
}

/// The fate of a part of a save that a build can't use as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaveFate {
    /// The build lacks the field: it is kept as bytes, and written back.
    Kept,
    /// The value can't be read where it is such a one. The field has its default then; an element
    /// or an entry is left out.
    Dropped,
    /// The save can't be read.
    Refused,
}

impl fmt::Display for SaveDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.place.is_empty() {
            f.write_str(&self.why)
        } else {
            write!(f, "{}: {}", self.place, self.why)
        }
    }
}

/// Returns the places at which a build whose state is of the type `here` can't use saves of the
/// type `stored` as they are. Both are types of saves, as [`saved_type`](super::saved_type) returns
/// them. The list is empty if the saves are those of an older build with a compatible state.
#[must_use]
pub fn save_differences(stored: &Type, here: &Type) -> Vec<SaveDifference> {
    if let (Type::Struct(stored), Type::Struct(here)) = (stored, here)
        && stored.name != here.name
    {
        let why = other_name(&stored.name, &here.name);
        return vec![SaveDifference { place: String::new(), fate: SaveFate::Refused, why }];
    }
    differences(stored, &here.clone().into())
}

pub(super) fn other_name(stored: &str, here: &str) -> String {
    let named = |name: &str| match name {
        "" => "collection".to_owned(),
        name => format!("`{name}`"),
    };
    format!(
        "this is a save of a {}, not of a {}: the name of the type that is saved must stay the same",
        named(stored),
        named(here)
    )
}

pub(super) fn differences(stored: &Type, here: &Saved) -> Vec<SaveDifference> {
    let mut judge = Judge { path: Vec::new(), found: Vec::new() };
    judge.value(stored, here);
    judge.found
}

struct Judge<'a> {
    path: Vec<&'a str>,
    found: Vec<SaveDifference>,
}

impl<'a> Judge<'a> {
    fn value(&mut self, stored: &'a Type, here: &Saved) {
        match (stored, here) {
            (Type::Option(stored), Saved::Option(here)) => self.value(stored, here),
            (Type::List(stored), Saved::List(here)) => self.at("*", |to| to.value(stored, here)),
            (Type::Array(stored, length), Saved::Array(here, other)) if length == other => {
                self.at("*", |to| to.value(stored, here));
            }
            (Type::Map(key, stored), Saved::Map(other, here)) if **key == *other => {
                self.at("*", |to| to.value(stored, here));
            }
            (Type::Map(key, _), Saved::Map(other, _)) => self.differs(key, &other.clone().into()),
            (Type::Set(key), Saved::Set(other)) if **key == *other => {}
            (Type::Struct(stored), Saved::Struct(_, here)) => self.fields(stored, here),
            (Type::Enum(stored), Saved::Enum(_, here)) => {
                for variant in &stored.variants {
                    let known = here.iter().find(|(name, _)| *name == variant.name);
                    self.at(&variant.name, |to| match known {
                        Some((_, fields)) => to.fields(variant, fields),
                        None => to.note(SaveFate::Dropped, lacks("variant")),
                    });
                }
            }
            (plain, Saved::Plain(here)) if plain == here => {}
            _ => self.differs(stored, here),
        }
    }

    fn fields(&mut self, stored: &'a Struct, here: &[SavedField]) {
        for (place, field) in stored.fields.iter().enumerate() {
            self.at(&field.name, |to| {
                if stored.fields[..place].iter().any(|other| other.name == field.name) {
                    return to.note(SaveFate::Refused, TWICE.into());
                }
                match here.iter().find(|other| other.name == field.name) {
                    Some(here) => to.value(&field.of, &here.of),
                    None => to.note(SaveFate::Kept, lacks("field")),
                }
            });
        }
    }

    fn differs(&mut self, stored: &Type, here: &Saved) {
        let fate = if self.path.is_empty() { SaveFate::Refused } else { SaveFate::Dropped };
        self.note(fate, differs(stored, here));
    }

    fn at(&mut self, step: &'a str, judge: impl FnOnce(&mut Self)) {
        self.path.push(step);
        judge(self);
        self.path.pop();
    }

    fn note(&mut self, fate: SaveFate, why: String) {
        self.found.push(SaveDifference { place: shown(&self.path), fate, why });
    }
}

pub(super) const TWICE: &str = "the save has two fields of this name";

pub(super) fn shown(path: &[&str]) -> String {
    let path: Vec<&str> = path.iter().map(|step| excerpt(step, NAME_BYTES_MAX)).collect();
    path.join(".")
}

pub(super) fn lacks(what: &str) -> String {
    format!(
        "the save has this {what}, which this build lacks: the save is of a newer build, or the {what} was removed or renamed"
    )
}

pub(super) fn differs(stored: &Type, here: &Saved) -> String {
    let (stored, here) = (kind(stored), kind(&here.schema()));
    format!(
        "the save has {stored}, this build has {here}: keep the type, and add a field with another name"
    )
}

/// A type in a few words.
fn kind(of: &Type) -> String {
    match of {
        Type::Option(of) => format!("an option of {}", kind(of)),
        Type::List(_) => "a list".into(),
        Type::Array(_, length) => format!("an array of {length}"),
        Type::Map(..) => "a map".into(),
        Type::Set(_) => "a set".into(),
        Type::Struct(_) => "a struct".into(),
        Type::Enum(_) => "an enum".into(),
        plain => format!("{plain:?}").to_lowercase(),
    }
}
