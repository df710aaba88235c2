//! What a save has for another build: fields that this build lacks, as bytes.
//!
//! They are in a tree beside the state. A step leads to a field by its name, to an entry of a map by
//! its key, to an element by its index (in memory, for a [`List`](crate::List), by its id), and into
//! a variant by its name. An option is no step.

use std::collections::BTreeMap;
use std::sync::Arc;

use playfield_wire::reader::Reader;
use playfield_wire::schema::{Field, Type};
use playfield_wire::{DecodeError, writer};

use super::skim::{plain_value, skip};
use super::{Save, layout};
use crate::State;

/// How deep the tree may be: a step for each type, and one for each variant.
const DEPTH_MAX: usize = 2 * layout::DEPTH_MAX + 2;

/// Fields of a save that this build lacks: bytes that a later save has again, so that a build which
/// has the fields finds them.
///
/// They follow what they belong to: the key of a map, the element of a [`List`](crate::List)
/// wherever it moves. In values that are sent as a whole, elements are recognized by what is in
/// them. What is removed takes them along.
#[derive(Clone, Debug, Default)]
pub struct Kept {
    columns: Vec<Arc<Column>>,
    root: Node,
    /// Elements of lists are found by their ids, not by their indexes.
    is_bound: bool,
}

/// A field that this build lacks.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: Box<str>,
    pub(super) of: Type,
    description: Vec<u8>,
}

/// What is kept beside a value, and inside it. For generated code.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// By the number of the column.
    fields: Vec<(u32, Arc<[u8]>)>,
    inside: BTreeMap<Box<[u8]>, Node>,
    /// Once it is bound, of a list: which one it was. Of one in a whole: how long it was.
    list: u64,
    /// Once it is bound, of an element: the hash of its bytes.
    print: u64,
}

/// Which way elements of lists are renamed. For generated code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Follow {
    /// From their indexes, as in a save, to what recognizes them in memory.
    ToMemory,
    /// From that to their indexes.
    ToSave,
}

pub(super) static NOTHING: Node =
    Node { fields: Vec::new(), inside: BTreeMap::new(), list: 0, print: 0 };

impl Kept {
    /// Whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// The names of the fields.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| &*column.name)
    }

    /// Takes note of which values they belong to. To be called when the state has been read and
    /// [tracked](crate::Tracker::new), before it changes.
    pub fn bind<S: State>(&mut self, state: &S) {
        if !self.is_empty() {
            self.root = state.follow(&self.root, Follow::ToMemory);
            self.is_bound = true;
        }
    }

    /// Appends what is kept beside the present state, if anything is. What has lost its place is
    /// forgotten.
    pub(super) fn write<S: State>(&mut self, state: &S, out: &mut Vec<u8>) {
        if !self.is_empty() {
            self.write_with(|node, how| state.follow(node, how), out);
        }
    }

    pub(super) fn write_with(&mut self, follow: impl Fn(&Node, Follow) -> Node, out: &mut Vec<u8>) {
        let now = match self.is_bound {
            true => follow(&self.root, Follow::ToSave),
            false => std::mem::take(&mut self.root),
        };
        self.root = follow(&now, Follow::ToMemory);
        self.is_bound = true;
        if now.is_empty() {
            return;
        }
        let mut used = Used { numbers: BTreeMap::new(), order: Vec::new() };
        let mut nodes = Vec::new();
        now.write(&mut used, &mut nodes);
        writer::put_varint(out, used.order.len() as u64);
        for number in used.order {
            let column = &self.columns[number as usize];
            writer::put_text(out, &column.name);
            out.extend_from_slice(&column.description);
        }
        out.extend_from_slice(&nodes);
    }

    /// Reads what [`write`](Self::write) wrote.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut columns = Vec::new();
        for _ in 0..reader.count()? {
            let name = reader.text()?.into();
            columns.push(Arc::new(Column::new(name, layout::get(reader, 0)?)));
        }
        let root = Node::read(reader, columns.len(), 0)?;
        reader.clone().finish()?;
        Ok(Self { columns, root, is_bound: false })
    }

    pub(super) fn of(columns: Vec<Arc<Column>>, root: Node) -> Self {
        Self { columns, root, is_bound: false }
    }

    pub(super) fn into_parts(self) -> (Vec<Arc<Column>>, Node) {
        (self.columns, self.root)
    }
}

impl Column {
    pub(super) fn new(name: Box<str>, of: Type) -> Self {
        let mut description = Vec::new();
        layout::put(&of, &mut description);
        Self { name, of, description }
    }
}

/// The columns that are written, and their new numbers.
struct Used {
    numbers: BTreeMap<u32, u32>,
    order: Vec<u32>,
}

impl Node {
    pub(super) fn is_empty(&self) -> bool {
        self.fields.is_empty() && self.inside.is_empty()
    }

    /// The fields that are lacking here, by the numbers of their columns.
    pub(super) fn fields(&self) -> impl Iterator<Item = (usize, &Arc<[u8]>)> {
        self.fields.iter().map(|(column, bytes)| (*column as usize, bytes))
    }

    pub(super) fn add_field(&mut self, column: usize, bytes: Arc<[u8]>) {
        self.fields.push((column as u32, bytes));
    }

    /// What is inside, at a step.
    pub(super) fn at(&self, step: &[u8]) -> &Self {
        self.inside.get(step).unwrap_or(&NOTHING)
    }

    pub(super) fn put(&mut self, step: &[u8], node: Self) {
        if !node.is_empty() {
            self.inside.insert(step.into(), node);
        }
    }

    /// What is inside, with the steps that lead there.
    pub(super) fn steps(&self) -> impl Iterator<Item = (&[u8], &Self)> {
        self.inside.iter().map(|(step, node)| (&**step, node))
    }

    /// The elements that have something, by their indexes.
    fn elements(&self) -> impl Iterator<Item = (usize, &Self)> {
        let index = |step: &[u8]| usize::try_from(Reader::new(step).varint().ok()?).ok();
        self.inside.iter().filter_map(move |(step, node)| Some((index(step)?, node)))
    }

    /// What a struct with these fields goes on with: what it lacks, and all in there.
    #[must_use]
    pub fn beside(&self, names: &[&str]) -> Self {
        let is_own = |step: &[u8]| names.iter().any(|name| name.as_bytes() == step);
        let others = self.inside.iter().filter(|(step, _)| !is_own(step));
        let inside = others.map(|(step, node)| (step.clone(), node.clone())).collect();
        Self { fields: self.fields.clone(), inside, ..Self::default() }
    }

    /// Follows a field of a struct.
    pub fn follow_field<T: Save>(&self, to: &mut Self, name: &str, value: &T, how: Follow) {
        let inside = self.at(name.as_bytes());
        if !inside.is_empty() {
            to.put(name.as_bytes(), value.follow(inside, how));
        }
    }

    fn write(&self, used: &mut Used, out: &mut Vec<u8>) {
        writer::put_varint(out, self.fields.len() as u64);
        for (column, bytes) in &self.fields {
            let next = used.order.len() as u32;
            let number = *used.numbers.entry(*column).or_insert_with(|| {
                used.order.push(*column);
                next
            });
            writer::put_varint(out, number.into());
            writer::put_bytes(out, bytes);
        }
        writer::put_varint(out, self.inside.len() as u64);
        for (step, node) in &self.inside {
            writer::put_bytes(out, step);
            node.write(used, out);
        }
    }

    fn read(reader: &mut Reader<'_>, columns: usize, depth: usize) -> Result<Self, DecodeError> {
        let at = reader.offset();
        if depth > DEPTH_MAX {
            return Err(DecodeError::new(at, "what is kept is nested too deep"));
        }
        let mut node = Self::default();
        for _ in 0..reader.count()? {
            let at = reader.offset();
            let column = reader.varint_u32()?;
            if column as usize >= columns {
                return Err(DecodeError::new(at, format!("no kept field has the number {column}")));
            }
            node.fields.push((column, reader.bytes()?.into()));
        }
        for _ in 0..reader.count()? {
            let step = reader.bytes()?;
            node.inside.insert(step.into(), Self::read(reader, columns, depth + 1)?);
        }
        Ok(node)
    }
}

/// The step to an element.
pub(super) fn step_to(index: usize) -> Vec<u8> {
    let mut step = Vec::new();
    writer::put_varint(&mut step, index as u64);
    step
}

type Followed = Result<Node, DecodeError>;

/// Follows a value that is sent as a whole. The reader is at its bytes, which are in `bytes`.
pub(super) fn follow_whole(
    of: &Type,
    (bytes, reader): (&[u8], &mut Reader<'_>),
    kept: &Node,
    how: Follow,
) -> Followed {
    if kept.is_empty() {
        skip(of, reader)?;
        return Ok(Node::default());
    }
    let mut to = Node::default();
    match of {
        Type::Option(of) => {
            if reader.bool()? {
                to = follow_whole(of, (bytes, reader), kept, how)?;
            }
        }
        Type::List(of) => {
            let places = places(of, reader)?;
            let print = |index: usize| layout::fingerprint(&bytes[places[index].clone()]);
            let found = match how {
                Follow::ToMemory => kept.elements().collect(),
                Follow::ToSave => found(kept, places.len(), print, Some(kept.list)),
            };
            for (index, node) in found.into_iter().filter(|(index, _)| *index < places.len()) {
                let place = places[index].clone();
                let mut inner = Reader::new(&bytes[..place.end]);
                inner.take(place.start)?;
                let mut node = follow_whole(of, (bytes, &mut inner), node, how)?;
                node.print = print(index);
                to.put(&step_to(index), node);
            }
            to.list = places.len() as u64;
        }
        Type::Array(of, length) => {
            for index in 0..*length {
                let step = step_to(index);
                let node = follow_whole(of, (bytes, reader), kept.at(&step), how)?;
                to.put(&step, node);
            }
        }
        Type::Map(key, of) => {
            for _ in 0..reader.count()? {
                let start = reader.offset();
                plain_value(key, reader)?;
                let step = &bytes[start..reader.offset()];
                let node = follow_whole(of, (bytes, reader), kept.at(step), how)?;
                to.put(step, node);
            }
        }
        Type::Struct(of) if of.fields.is_empty() => {
            reader.u8()?;
            to = kept.beside(&[]);
        }
        Type::Struct(of) => to = follow_fields(&of.fields, (bytes, reader), kept, how)?,
        Type::Enum(of) => {
            let at = reader.offset();
            let number = reader.varint()?;
            let variant = usize::try_from(number).ok().and_then(|place| of.variants.get(place));
            let variant =
                variant.ok_or_else(|| DecodeError::new(at, "no variant has this number"))?;
            let step = variant.name.as_bytes();
            let node = follow_fields(&variant.fields, (bytes, reader), kept.at(step), how)?;
            to.put(step, node);
        }
        plain => plain_value(plain, reader)?,
    }
    Ok(to)
}

fn follow_fields(
    fields: &[Field],
    (bytes, reader): (&[u8], &mut Reader<'_>),
    kept: &Node,
    how: Follow,
) -> Followed {
    let names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
    let mut to = kept.beside(&names);
    for field in fields {
        let step = field.name.as_bytes();
        let node = follow_whole(&field.of, (bytes, reader), kept.at(step), how)?;
        to.put(step, node);
    }
    Ok(to)
}

/// Where the elements of a list are.
fn places(of: &Type, reader: &mut Reader<'_>) -> Result<Vec<std::ops::Range<usize>>, DecodeError> {
    let mut places = Vec::new();
    for _ in 0..reader.count()? {
        let start = reader.offset();
        skip(of, reader)?;
        places.push(start..reader.offset());
    }
    Ok(places)
}

/// Recognizes elements without ids: those with the same bytes, the one at the same index first. If
/// the list is as long as before, one that has changed is still at its index.
pub(super) fn found(
    kept: &Node,
    count: usize,
    print: impl Fn(usize) -> u64,
    length_before: Option<u64>,
) -> Vec<(usize, &Node)> {
    let prints: Vec<u64> = (0..count).map(print).collect();
    let mut is_taken = vec![false; count];
    let (mut found, mut moved) = (Vec::new(), Vec::new());
    for (index, node) in kept.elements() {
        if prints.get(index) == Some(&node.print) {
            is_taken[index] = true;
            found.push((index, node));
        } else {
            moved.push((index, node));
        }
    }
    let mut by_print: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
    for index in (0..count).rev().filter(|index| !is_taken[*index]) {
        by_print.entry(prints[index]).or_default().push(index);
    }
    let mut changed = Vec::new();
    for (index, node) in moved {
        match by_print.get_mut(&node.print).and_then(Vec::pop) {
            Some(now) => {
                is_taken[now] = true;
                found.push((now, node));
            }
            None => changed.push((index, node)),
        }
    }
    if length_before == Some(count as u64) {
        let still = changed.into_iter().filter(|(index, _)| *index < count && !is_taken[*index]);
        found.extend(still);
    }
    found
}

impl Node {
    /// Follows the elements of a list. In a list that was replaced, ids say nothing.
    pub(super) fn follow_list<'a, T: Save + 'a>(
        &self,
        token: u64,
        items: impl Iterator<Item = ([u8; 8], &'a T)>,
        how: Follow,
    ) -> Self {
        let mut to = Self { list: token, ..Self::default() };
        let print = |value: &T| {
            let mut bytes = Vec::new();
            value.write_save(&mut bytes);
            layout::fingerprint(&bytes)
        };
        match how {
            Follow::ToMemory => {
                for (index, (id, value)) in items.enumerate() {
                    let node = self.at(&step_to(index));
                    if !node.is_empty() {
                        let mut node = value.follow(node, how);
                        node.print = print(value);
                        to.put(&id, node);
                    }
                }
            }
            Follow::ToSave if self.list == token => {
                for (index, (id, value)) in items.enumerate() {
                    let node = self.at(&id);
                    if !node.is_empty() {
                        to.put(&step_to(index), value.follow(node, how));
                    }
                }
            }
            Follow::ToSave => {
                // Their order in the list that is gone is that of their ids.
                let mut by_index = Self::default();
                for (index, node) in self.inside.values().enumerate() {
                    by_index.inside.insert(step_to(index).into(), node.clone());
                }
                let values: Vec<&T> = items.map(|(_, value)| value).collect();
                for (index, node) in
                    found(&by_index, values.len(), |index| print(values[index]), None)
                {
                    to.put(&step_to(index), values[index].follow(node, how));
                }
            }
        }
        to
    }
}
