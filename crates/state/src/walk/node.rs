//! Data that a copy stores for each place in addition to its JSON: digests of leaves and slots of
//! maps.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{Access, MapShape, Shape, StructShape};
use crate::map::MAP_SLOTS_MAX;
use crate::{PlayerId, digest};

/// The most values that are created where nothing was sent because they are empty.
const BLANKS_MAX: usize = 1 << 12;

/// The data stored for each value of a copy, with the same shape.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// The digest of a value that is sent whole.
    Leaf(u64),
    Option(Option<Box<Node>>),
    /// The elements of a list or an array.
    Items(Vec<Node>),
    Map(Box<MapNode>),
    /// The fields; `None` for those that the viewer does not see.
    Struct(Vec<Option<Node>>),
    /// An atomic value, which is never patched.
    Atomic,
    /// The value is being read, and did not exist before.
    Missing,
}

/// The entries of a map, by slot and by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct MapNode {
    /// By slot. The player's own entries have no slots; they get numbers past all slots.
    pub(crate) slots: BTreeMap<u64, Entry>,
    pub(crate) index: BTreeMap<String, u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    /// The digest of the key.
    pub(crate) key: u64,
    /// The key, if it is a player.
    pub(crate) player: Option<PlayerId>,
    pub(crate) node: Node,
}

/// A value, and what is stored for it.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) value: Value,
    pub(crate) node: Node,
}

impl Made {
    pub(crate) fn leaf((value, digest): (Value, u64)) -> Self {
        Self { value, node: Node::Leaf(digest) }
    }

    pub(crate) fn nothing() -> Self {
        Self { value: Value::Null, node: Node::Option(None) }
    }

    pub(crate) fn some(self) -> Self {
        Self { value: self.value, node: Node::Option(Some(Box::new(self.node))) }
    }

    pub(crate) fn of_items(items: Vec<Self>) -> Self {
        let (values, nodes) = items.into_iter().map(|made| (made.value, made.node)).unzip();
        Self { value: Value::Array(values), node: Node::Items(nodes) }
    }

    pub(crate) fn empty_map() -> Self {
        Self { value: Value::Object(Map::new()), node: Node::Map(Box::default()) }
    }

    /// Returns what a copy holds for a visible value that no body has sent. Only an empty value may
    /// be left out. Adds the places that it visited to `blanks`.
    pub(crate) fn blank(shape: &Shape, blanks: &mut usize) -> Option<Self> {
        *blanks += 1;
        if *blanks > BLANKS_MAX {
            return None;
        }
        match shape {
            Shape::Map(_) => Some(Self::empty_map()),
            Shape::Array(inner, length) => {
                let made =
                    (0..*length).map(|_| Self::blank(inner, blanks)).collect::<Option<Vec<_>>>()?;
                Some(Self::of_items(made))
            }
            Shape::Struct(of) => {
                let (mut members, mut nodes) = (Map::new(), Vec::new());
                for field in &of.fields {
                    let made = match field.access {
                        Access::Open => Some(Self::blank(&field.of, blanks)?),
                        Access::OwnEntry | Access::ViewedMap => Some(Self::empty_map()),
                        Access::Owner => Self::blank(&field.of, blanks),
                        Access::Viewed => None,
                    };
                    nodes.push(made.map(|made| {
                        members.insert(field.name.clone(), made.value);
                        made.node
                    }));
                }
                Some(Self { value: Value::Object(members), node: Node::Struct(nodes) })
            }
            _ => None,
        }
    }

    /// A struct without its fields.
    pub(crate) fn structure(of: &StructShape) -> Self {
        let nodes = of.fields.iter().map(|_| None).collect();
        Self { value: Value::Object(Map::new()), node: Node::Struct(nodes) }
    }

    /// A place for a value that is about to be read.
    pub(crate) fn missing() -> Self {
        Self { value: Value::Null, node: Node::Missing }
    }

    /// Its place.
    pub(crate) fn target(&mut self) -> Target<'_> {
        Target { value: &mut self.value, node: &mut self.node }
    }
}

/// A place in a copy.
pub(crate) struct Target<'a> {
    pub(crate) value: &'a mut Value,
    pub(crate) node: &'a mut Node,
}

// A value and its node are created and changed together, by the same shape, so both always have the
// kind that the shape requires.

impl<'a> Target<'a> {
    /// The same place again.
    pub(crate) fn again(&mut self) -> Target<'_> {
        Target { value: self.value, node: self.node }
    }

    pub(crate) fn is_missing(&self) -> bool {
        matches!(self.node, Node::Missing)
    }

    pub(crate) fn set(&mut self, made: Made) {
        *self.value = made.value;
        *self.node = made.node;
    }

    pub(crate) fn items(self) -> (&'a mut Vec<Value>, &'a mut Vec<Node>) {
        match (self.value, self.node) {
            (Value::Array(values), Node::Items(nodes)) => (values, nodes),
            _ => unreachable!("a list or an array is an array in JSON"),
        }
    }

    pub(crate) fn map(self) -> (&'a mut Map<String, Value>, &'a mut MapNode) {
        match (self.value, self.node) {
            (Value::Object(members), Node::Map(node)) => (members, node),
            _ => unreachable!("a map is an object in JSON"),
        }
    }

    pub(crate) fn fields(self) -> (&'a mut Map<String, Value>, &'a mut Vec<Option<Node>>) {
        match (self.value, self.node) {
            (Value::Object(members), Node::Struct(nodes)) => (members, nodes),
            _ => unreachable!("a struct is an object in JSON"),
        }
    }
}

/// The place of a field, if it is visible.
pub(crate) fn field_of<'a>(
    of: &StructShape,
    place: usize,
    members: &'a mut Map<String, Value>,
    nodes: &'a mut [Option<Node>],
) -> Option<Target<'a>> {
    let node = nodes[place].as_mut()?;
    let value = members.get_mut(&of.fields[place].name).expect("a visible field is a member");
    Some(Target { value, node })
}

impl MapNode {
    /// Puts an entry into an empty slot. Returns the slot that its key was in, if there was one.
    pub(crate) fn put(&mut self, slot: u64, entry: Entry) -> Option<u64> {
        let other = self.index.insert(entry.name.clone(), slot);
        self.slots.insert(slot, entry);
        other
    }

    /// Empties a slot. Returns its key, unless that has moved to another slot.
    pub(crate) fn displace(&mut self, slot: u64) -> Option<String> {
        let entry = self.slots.remove(&slot)?;
        if self.index.get(&entry.name) != Some(&slot) {
            return None;
        }
        self.index.remove(&entry.name);
        Some(entry.name)
    }

    /// Returns whether the slot is empty, or is the one that its key is in.
    pub(crate) fn is_consistent(&self, slot: u64) -> bool {
        self.slots.get(&slot).is_none_or(|entry| self.index.get(&entry.name) == Some(&slot))
    }

    /// A slot number for the player's own entry.
    pub(crate) fn own_slot(&self) -> u64 {
        let last = self.slots.last_key_value().map_or(0, |(slot, _)| slot + 1);
        last.max(MAP_SLOTS_MAX as u64)
    }
}

impl Shape {
    /// The digest of a copy.
    pub(crate) fn digest(&self, node: &Node) -> u64 {
        match (self, node) {
            (_, Node::Leaf(digest)) => *digest,
            (Self::Option(of), Node::Option(Some(node))) => {
                of.digest(node).wrapping_mul(digest::weight(0)).wrapping_add(digest::PRESENT)
            }
            (Self::List(of), Node::Items(nodes)) => {
                let elements = digest::of_elements(nodes.iter().map(|node| of.digest(node)));
                elements.wrapping_add(digest::of_length(nodes.len()))
            }
            (Self::Array(of, _), Node::Items(nodes)) => {
                digest::of_elements(nodes.iter().map(|node| of.digest(node)))
            }
            (Self::Map(of), Node::Map(node)) => of.digest(node),
            (Self::Struct(of), Node::Struct(nodes)) => of.digest(nodes),
            _ => 0,
        }
    }
}

impl MapShape {
    fn digest(&self, node: &MapNode) -> u64 {
        node.slots.values().fold(0, |sum, entry| {
            sum.wrapping_add(digest::of_entry(entry.key, self.value.digest(&entry.node), true))
        })
    }
}

impl StructShape {
    fn digest(&self, nodes: &[Option<Node>]) -> u64 {
        let mut sum = 0_u64;
        for (place, (field, node)) in self.fields.iter().zip(nodes).enumerate() {
            let Some(node) = node else { continue };
            let digest = field.of.digest(node);
            let digest = match field.access {
                Access::Open => digest,
                _ => digest::of_private(digest, field.default),
            };
            sum = sum.wrapping_add(digest.wrapping_mul(digest::weight(place as u64)));
        }
        sum
    }
}
