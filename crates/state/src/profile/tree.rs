//! The places of a state: one for each field, and one for all entries of a map or all elements of a
//! list.

use super::alternatives::Alternative;
use super::tally::Step;
use crate::PathStep;
use crate::quantized::Scale;
use crate::walk::{FieldShape, Plain, Shape};

/// The places of a state, the root first, each before those in it.
#[derive(Debug)]
pub(super) struct Tree {
    places: Vec<Place>,
}

#[derive(Debug)]
pub(super) struct Place {
    /// Steps from the root, with dots between them. Empty for the root.
    pub(super) path: String,
    /// Its type.
    pub(super) of: String,
    /// Its numbers, if that is what it holds.
    pub(super) numbers: Option<Numbers>,
    /// Types that it could have instead.
    pub(super) alternatives: Vec<Alternative>,
    /// The place of each player's own entry, if the policy `owner` is possible.
    pub(super) owned: Option<usize>,
    /// The first place after those in it.
    pub(super) end: usize,
    inner: Inner,
}

/// The encoding of the numbers of a place.
#[derive(Clone, Copy, Debug)]
pub(super) enum Numbers {
    Plain(Plain),
    Steps(Scale),
}

/// The places in a place.
#[derive(Debug)]
enum Inner {
    /// Sent as a unit.
    Nothing,
    /// That of all entries of a map.
    Entries(usize),
    /// That of all elements.
    Each(usize),
    /// The places of the fields.
    Fields(Vec<usize>),
}

impl Tree {
    pub(super) fn new(root: &Shape) -> Self {
        let mut tree = Self { places: Vec::new() };
        tree.add(String::new(), root, false);
        tree
    }

    pub(super) fn places(&self) -> &[Place] {
        &self.places
    }

    /// The place at a step from another. `None` if that is sent as a unit.
    pub(super) fn inside(&self, place: usize, step: Step) -> Option<usize> {
        match (&self.places[place].inner, step) {
            (Inner::Fields(places), Step::Field(field)) => places.get(field).copied(),
            (
                Inner::Each(place) | Inner::Entries(place),
                Step::Each { .. } | Step::Group { .. } | Step::Elements,
            ) => Some(*place),
            _ => None,
        }
    }

    /// Adds a place and those in it. `has_owner` says whether it is in an entry of a player.
    fn add(&mut self, path: String, shape: &Shape, has_owner: bool) -> usize {
        let place = self.places.len();
        let numbers = numbers(shape);
        self.places.push(Place {
            path: path.clone(),
            of: name(shape),
            numbers,
            alternatives: numbers.map(Alternative::of).unwrap_or_default(),
            owned: None,
            end: 0,
            inner: Inner::Nothing,
        });
        let inner = self.inner(&path, shape, has_owner);
        let end = self.places.len();
        let added = &mut self.places[place];
        (added.inner, added.end) = (inner, end);
        place
    }

    fn inner(&mut self, path: &str, shape: &Shape, has_owner: bool) -> Inner {
        let each = join(path, "*");
        match shape {
            Shape::Option(of) => self.inner(path, of, has_owner),
            Shape::List(of) | Shape::Array(of, _) => Inner::Each(self.add(each, of, has_owner)),
            Shape::Map(of) if !matches!(of.value, Shape::Present) => {
                Inner::Entries(self.add(each, &of.value, has_owner || of.key.is_player()))
            }
            Shape::Struct(of) => {
                let add = |field: &FieldShape| self.field(path, field, has_owner);
                Inner::Fields(of.fields.iter().map(add).collect())
            }
            _ => Inner::Nothing,
        }
    }

    fn field(&mut self, path: &str, field: &FieldShape, has_owner: bool) -> usize {
        let step = PathStep::Name(field.name.as_str().into()).to_string();
        let place = self.add(join(path, &step), &field.of, has_owner);
        self.places[place].owned = match (&field.of, &self.places[place].inner) {
            // In a map of players' own entries, each player sees one.
            (Shape::Map(of), Inner::Entries(each)) if of.key.is_player() => Some(*each),
            _ => has_owner.then_some(place),
        };
        place
    }
}

fn join(path: &str, step: &str) -> String {
    if path.is_empty() { step.to_owned() } else { format!("{path}.{step}") }
}

fn numbers(shape: &Shape) -> Option<Numbers> {
    match shape {
        Shape::Plain(plain) => Some(Numbers::Plain(*plain)),
        Shape::Steps(scale, _) => Some(Numbers::Steps(*scale)),
        Shape::Option(of) => numbers(of),
        _ => None,
    }
}

/// A type, for people.
fn name(shape: &Shape) -> String {
    match shape {
        Shape::Plain(plain) => plain.name().to_owned(),
        Shape::Steps(scale, _) => format!("quantized {}", scale.step()),
        Shape::Option(of) => format!("option<{}>", name(of)),
        Shape::List(_) => "list".to_owned(),
        Shape::Array(_, length) => format!("array of {length}"),
        Shape::Map(of) if matches!(of.value, Shape::Present) => "set".to_owned(),
        Shape::Map(_) => "map".to_owned(),
        Shape::Struct(of) => of.name.clone(),
        Shape::Enum(of) => of.name.clone(),
        Shape::Present => "unit".to_owned(),
    }
}
