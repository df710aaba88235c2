//! Data that a save keeps for another build: fields that this build lacks, as bytes.
//!
//! They are in a tree beside the state. A step leads to a field by its name, to an entry of a map
//! by its key, to an element by its index (in memory, for a [`List`](crate::List), by its id), and
//! into a variant by its name. An option is no step.

use std::any::TypeId;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use playfield_wire::reader::Reader;
use playfield_wire::schema::{Field, Type};
use playfield_wire::{DecodeError, writer};

use super::fate::shown;
use super::header::Header;
use super::layout::{self, fingerprint};
use super::skim::{plain_value, skip};
use super::{LoadError, Save};
use crate::State;
use crate::leaf::Atomic;

/// The maximum depth of the tree: a step for each type, and one for each variant.
const DEPTH_MAX: usize = 2 * layout::DEPTH_MAX + 2;

/// Fields of a save that this build lacks: bytes that a later save has again, so that a build which
/// has the fields finds them.
///
/// They stay at a place: a field of a struct, a variant, an option that is some, an index of an
/// array, a key of a map until the entry is removed, an element of a [`List`](crate::List) by its
/// id. In values that are sent as a whole, and in a `List` that was replaced, an element is
/// recognized by its content, if no other element has or had the same. What is not found is
/// [forgotten](Self::take_forgotten).
#[derive(Clone, Debug, Default)]
pub struct Kept {
    columns: Vec<Arc<Column>>,
    root: Node,
    forgotten: BTreeMap<String, u64>,
}

/// A field that this build lacks.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) name: Box<str>,
    pub(super) of: Type,
    description: Vec<u8>,
}

/// Fields kept beside a value, and inside it. For generated code.
#[derive(Clone, Debug, Default)]
pub struct Node {
    /// By the number of the column.
    fields: Vec<(u32, Arc<[u8]>)>,
    inside: BTreeMap<Box<[u8]>, Node>,
    /// The steps inside are keys or indexes, not names.
    is_keyed: bool,
    /// Of a list, once it is bound: what is in its elements, instead of `inside`.
    list: Option<Box<Elements>>,
    /// Once it is bound: of a value that is sent as a whole, the hash of its bytes; of a map, its
    /// origin.
    identity: u64,
}

/// The elements of a list that have something, sorted by their ids.
#[derive(Clone, Debug, Default)]
struct Elements {
    /// The token of the list; 0 if that is not known.
    token: u64,
    /// The hashes of all elements.
    prints: Vec<u64>,
    elements: Vec<Element>,
}

#[derive(Clone, Debug)]
struct Element {
    /// In a whole, 0.
    id: u64,
    index: usize,
    node: Node,
}

/// A walk through a state, beside what is kept. For generated code.
#[derive(Default)]
pub struct Follow {
    /// The state is the one that was read: indexes are those of the save.
    is_first: bool,
    path: Vec<Cow<'static, str>>,
    /// The number of times that each column was forgotten, by place.
    forgotten: Places,
    types: BTreeMap<TypeId, Rc<Type>>,
    bytes: Vec<u8>,
}

type Places = BTreeMap<(String, u32), u64>;

pub(super) static NOTHING: Node =
    Node { fields: Vec::new(), inside: BTreeMap::new(), is_keyed: false, list: None, identity: 0 };

impl Kept {
    /// Returns whether there is nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// The fields, such as `units.*.color`, and how many values each has.
    #[must_use]
    pub fn fields(&self) -> BTreeMap<String, u64> {
        let mut places = Places::new();
        self.root.note(&mut Vec::new(), &mut places);
        self.named(places)
    }

    /// The values that the saves since the last call no longer have, as [`fields`](Self::fields):
    /// what they belonged to was removed, or is not recognized.
    pub fn take_forgotten(&mut self) -> BTreeMap<String, u64> {
        std::mem::take(&mut self.forgotten)
    }

    /// Takes note of which values they belong to. To be called when the state is
    /// [tracked](crate::Tracker::new), before it changes.
    pub fn bind<S: State>(&mut self, state: &S) {
        if !self.is_empty() {
            state.follow(&mut self.root, &mut Follow::first());
        }
    }

    /// Appends what is kept beside the present state, if anything is.
    pub(super) fn write<S: State>(&mut self, state: &S, out: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        let mut how = Follow::default();
        state.follow(&mut self.root, &mut how);
        for (place, count) in self.named(how.forgotten) {
            *self.forgotten.entry(place).or_default() += count;
        }
        self.put(out);
    }

    pub(super) fn put(&self, out: &mut Vec<u8>) {
        if self.is_empty() {
            return;
        }
        let mut used = Used { numbers: BTreeMap::new(), order: Vec::new() };
        let mut nodes = Vec::new();
        self.root.write(&mut used, &mut nodes);
        writer::put_varint(out, used.order.len() as u64);
        for number in used.order {
            let column = &self.columns[number as usize];
            writer::put_text(out, &column.name);
            out.extend_from_slice(&column.description);
        }
        out.extend_from_slice(&nodes);
    }

    /// Reads what is kept in a save.
    pub(super) fn of_save(bytes: &[u8], header: &Header) -> Result<Self, LoadError> {
        let Some(place) = header.kept() else { return Ok(Self::default()) };
        let mut reader = Reader::new(&bytes[..place.end]);
        let kept = reader.take(place.start).and_then(|_| Self::read(&mut reader));
        kept.map_err(LoadError::of)
    }

    /// Reads what [`put`](Self::put) wrote.
    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut columns = Vec::new();
        for _ in 0..reader.count()? {
            let name = reader.text()?.into();
            columns.push(Arc::new(Column::new(name, layout::get(reader, 0)?)));
        }
        let root = Node::read(reader, columns.len(), 0)?;
        reader.clone().finish()?;
        Ok(Self::of(columns, root))
    }

    pub(super) fn of(columns: Vec<Arc<Column>>, root: Node) -> Self {
        Self { columns, root, forgotten: BTreeMap::new() }
    }

    pub(super) fn into_parts(self) -> (Vec<Arc<Column>>, Node) {
        (self.columns, self.root)
    }

    fn named(&self, places: Places) -> BTreeMap<String, u64> {
        let name = |place: &str, column: u32| {
            let name = shown(&[&self.columns[column as usize].name]);
            if place.is_empty() { name } else { format!("{place}.{name}") }
        };
        let places = places.into_iter();
        places.map(|((place, column), count)| (name(&place, column), count)).collect()
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
        self.fields.is_empty() && self.inside.is_empty() && self.list.is_none()
    }

    /// The fields that are lacking here, by the numbers of their columns.
    pub(super) fn fields(&self) -> impl Iterator<Item = (usize, &Arc<[u8]>)> {
        self.fields.iter().map(|(column, bytes)| (*column as usize, bytes))
    }

    pub(super) fn add_field(&mut self, column: usize, bytes: Arc<[u8]>) {
        self.fields.push((column as u32, bytes));
    }

    /// Returns what is inside, at a step of a save.
    pub(super) fn at(&self, step: &[u8]) -> &Self {
        self.inside.get(step).unwrap_or(&NOTHING)
    }

    pub(super) fn put(&mut self, step: &[u8], node: Self) {
        if !node.is_empty() {
            self.inside.insert(step.into(), node);
        }
    }

    /// Follows a field of a struct.
    pub fn follow_field<T: Save>(&mut self, name: &'static str, value: &T, how: &mut Follow) {
        self.step(name.into(), how, |node, how| value.follow(node, how));
    }

    /// Goes to what has this name, if anything is kept there.
    fn step<T>(
        &mut self,
        name: Cow<'static, str>,
        how: &mut Follow,
        follow: impl FnOnce(&mut Self, &mut Follow) -> T,
    ) -> Option<T> {
        let node = self.inside.get_mut(name.as_bytes())?;
        how.path.push(name);
        let result = follow(node, how);
        let name = how.path.pop();
        if node.is_empty() {
            self.inside.remove(name?.as_bytes());
        }
        Some(result)
    }

    /// Follows the entries of a map, or the elements of an array.
    pub(super) fn follow_entries(
        &mut self,
        how: &mut Follow,
        mut follow: impl FnMut(&[u8], &mut Self, &mut Follow),
    ) {
        self.is_keyed = true;
        how.path.push("*".into());
        self.inside.retain(|step, node| {
            follow(step, node, how);
            !node.is_empty()
        });
        how.path.pop();
    }

    /// Follows the entries of a map, by their keys. `find` also says whether an entry was inserted
    /// after the map was read: then it is another one, unless the whole map is new.
    pub(super) fn follow_map<'a, T: Save + 'a>(
        &mut self,
        origin: u64,
        how: &mut Follow,
        find: impl Fn(&[u8]) -> Option<(&'a T, bool)>,
    ) {
        if how.is_first {
            self.identity = origin;
        }
        let (is_new, is_same) = (origin == 0, origin == self.identity);
        self.follow_entries(how, |step, node, how| match find(step) {
            Some((value, is_inserted)) if is_new || is_same && !is_inserted => {
                value.follow(node, how);
            }
            _ => how.forget(node),
        });
    }

    /// Follows the elements of a list, which have ids.
    pub(super) fn follow_list<T: Save>(
        &mut self,
        token: u64,
        items: &[(u64, &T)],
        how: &mut Follow,
    ) {
        let mut print = |value: &T| {
            how.bytes.clear();
            value.write_save(&mut how.bytes);
            fingerprint(&how.bytes)
        };
        let prints: Vec<u64> = items.iter().map(|(_, value)| print(value)).collect();
        let mut list = self.take_list();
        match how.is_first {
            true => {}
            false if token != 0 && list.token == token => {
                list.find_by_id(items.iter().map(|(id, _)| *id));
            }
            false => list.find_by_content(&prints),
        }
        list.follow(prints.len(), how, |index, node, how| items[index].1.follow(node, how));
        list.elements.iter_mut().for_each(|element| element.id = items[element.index].0);
        list.elements.sort_unstable_by_key(|element| element.id);
        (list.token, list.prints) = (token, prints);
        self.list = Some(list).filter(|list| !list.elements.is_empty());
    }

    /// Follows a value that is sent as a whole.
    pub(super) fn follow_atomic<T: Atomic>(&mut self, value: &T, how: &mut Follow) {
        let mut bytes = std::mem::take(&mut how.bytes);
        bytes.clear();
        value.encode(&mut bytes);
        let print = fingerprint(&bytes);
        if how.is_first || print != self.identity {
            let of = how.types.entry(TypeId::of::<T>()).or_insert_with(|| Rc::new(T::schema()));
            let (of, depth) = (Rc::clone(of), how.path.len());
            // It was just written, so it can be read.
            if self.follow_whole(&of, (&bytes, &mut Reader::new(&bytes)), how).is_err() {
                how.path.truncate(depth);
                how.forget(self);
            }
            self.identity = print;
        }
        how.bytes = bytes;
    }

    /// Follows a part of a value that is sent as a whole. The reader is at it.
    pub(super) fn follow_whole(
        &mut self,
        of: &Type,
        (bytes, reader): (&[u8], &mut Reader<'_>),
        how: &mut Follow,
    ) -> Result<(), DecodeError> {
        if self.is_empty() {
            return skip(of, reader);
        }
        // Of an entry or an element: where it is.
        let at = |of: &Type, place: &Range<usize>, node: &mut Self, how: &mut Follow| {
            let mut reader = Reader::new(&bytes[..place.end]);
            let read = reader.take(place.start).map(drop);
            if read.and_then(|()| node.follow_whole(of, (bytes, &mut reader), how)).is_err() {
                how.forget(node);
            }
        };
        match of {
            Type::Option(of) => match reader.bool()? {
                true => self.follow_whole(of, (bytes, reader), how)?,
                false => how.forget(self),
            },
            Type::List(of) => {
                let count = reader.count()?;
                let places = places(of, count, reader)?;
                let print = |place: &Range<usize>| fingerprint(&bytes[place.clone()]);
                let prints: Vec<u64> = places.iter().map(print).collect();
                let mut list = self.take_list();
                if !how.is_first {
                    list.find_by_content(&prints);
                }
                list.follow(places.len(), how, |index, node, how| {
                    at(of, &places[index], node, how);
                });
                list.prints = prints;
                self.list = Some(list).filter(|list| !list.elements.is_empty());
            }
            Type::Array(of, length) => {
                let places = places(of, *length, reader)?;
                self.follow_entries(how, |step, node, how| {
                    match index_of(step).and_then(|index| places.get(index)) {
                        Some(place) => at(of, place, node, how),
                        None => how.forget(node),
                    }
                });
            }
            Type::Map(key, of) => {
                let mut places = BTreeMap::new();
                for _ in 0..reader.count()? {
                    let start = reader.offset();
                    plain_value(key, reader)?;
                    let step = &bytes[start..reader.offset()];
                    let start = reader.offset();
                    skip(of, reader)?;
                    places.insert(step, start..reader.offset());
                }
                self.follow_entries(how, |step, node, how| match places.get(step) {
                    Some(place) => at(of, place, node, how),
                    None => how.forget(node),
                });
            }
            Type::Struct(of) if of.fields.is_empty() => drop(reader.u8()?),
            Type::Struct(of) => self.follow_fields(&of.fields, (bytes, reader), how)?,
            Type::Enum(of) => {
                let at = reader.offset();
                let number = reader.varint()?;
                let variant = usize::try_from(number).ok().and_then(|place| of.variants.get(place));
                let variant =
                    variant.ok_or_else(|| DecodeError::new(at, "no variant has this number"))?;
                let mut others = std::mem::take(&mut self.inside);
                if let Some((step, node)) = others.remove_entry(variant.name.as_bytes()) {
                    self.inside.insert(step, node);
                }
                how.forget(&mut Self { inside: others, ..Self::default() });
                let fields = &variant.fields;
                let done = self.step(variant.name.clone(), how, |node, how| {
                    node.follow_fields(fields, (bytes, &mut *reader), how)
                });
                match done {
                    Some(done) => done?,
                    None => fields.iter().try_for_each(|field| skip(&field.of, reader))?,
                }
            }
            plain => {
                plain_value(plain, reader)?;
                how.forget(self);
            }
        }
        Ok(())
    }

    fn follow_fields(
        &mut self,
        fields: &[Field],
        (bytes, reader): (&[u8], &mut Reader<'_>),
        how: &mut Follow,
    ) -> Result<(), DecodeError> {
        for field in fields {
            let done = self.step(field.name.clone(), how, |node, how| {
                node.follow_whole(&field.of, (bytes, &mut *reader), how)
            });
            match done {
                Some(done) => done?,
                None => skip(&field.of, reader)?,
            }
        }
        Ok(())
    }

    /// The elements, which are steps inside before they are followed for the first time.
    fn take_list(&mut self) -> Box<Elements> {
        self.list.take().unwrap_or_else(|| {
            let element = |(step, node): (Box<[u8]>, Self)| {
                Some(Element { id: 0, index: index_of(&step)?, node })
            };
            let inside = std::mem::take(&mut self.inside);
            let elements = inside.into_iter().filter_map(element).collect();
            Box::new(Elements { elements, ..Elements::default() })
        })
    }

    /// Counts the fields by their places.
    fn note(&self, path: &mut Vec<Cow<'static, str>>, places: &mut Places) {
        if !self.fields.is_empty() {
            let place: Vec<&str> = path.iter().map(|step| &**step).collect();
            let place = shown(&place);
            for (column, _) in &self.fields {
                *places.entry((place.clone(), *column)).or_default() += 1;
            }
        }
        for (step, node) in &self.inside {
            path.push(match std::str::from_utf8(step) {
                Ok(name) if !self.is_keyed => Cow::Owned(name.to_owned()),
                _ => "*".into(),
            });
            node.note(path, places);
            path.pop();
        }
        for element in self.list.iter().flat_map(|list| &list.elements) {
            path.push("*".into());
            element.node.note(path, places);
            path.pop();
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
        let list = self.list.iter().flat_map(|list| &list.elements);
        let mut elements: Vec<&Element> = list.collect();
        elements.sort_by_key(|element| element.index);
        writer::put_varint(out, (self.inside.len() + elements.len()) as u64);
        for (step, node) in &self.inside {
            writer::put_bytes(out, step);
            node.write(used, out);
        }
        for Element { index, node, .. } in elements {
            writer::put_bytes(out, &step_to(*index));
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

impl Elements {
    /// Ids mostly ascend, so the next element is tried first.
    fn find_by_id(&mut self, ids: impl Iterator<Item = u64>) {
        self.elements.iter_mut().for_each(|element| element.index = usize::MAX);
        let mut next = 0;
        for (index, id) in ids.enumerate() {
            let is_next = self.elements.get(next).is_some_and(|element| element.id == id);
            let found = if is_next {
                Ok(next)
            } else {
                self.elements.binary_search_by_key(&id, |element| element.id)
            };
            if let Ok(place) = found {
                self.elements[place].index = index;
                next = place + 1;
            }
        }
    }

    /// Elements with the same content can't be told apart, so none of them is found, unless the
    /// list is the same as before.
    fn find_by_content(&mut self, prints: &[u64]) {
        if self.prints == prints {
            return;
        }
        let unique = |prints: &[u64]| {
            let mut places = BTreeMap::new();
            for (index, print) in prints.iter().enumerate() {
                places.entry(*print).and_modify(|place| *place = None).or_insert(Some(index));
            }
            places
        };
        let (before, now) = (unique(&self.prints), unique(prints));
        for element in &mut self.elements {
            let print = self.prints.get(element.index);
            let found = print.and_then(|print| before[print].and_then(|_| *now.get(print)?));
            element.index = found.unwrap_or(usize::MAX);
        }
    }

    /// Follows the elements that are there, and forgets the others.
    fn follow(
        &mut self,
        count: usize,
        how: &mut Follow,
        mut follow: impl FnMut(usize, &mut Node, &mut Follow),
    ) {
        how.path.push("*".into());
        self.elements.retain_mut(|Element { index, node, .. }| {
            if *index < count {
                follow(*index, node, how);
            } else {
                how.forget(node);
            }
            !node.is_empty()
        });
        how.path.pop();
    }
}

impl Follow {
    pub(super) fn first() -> Self {
        Self { is_first: true, ..Self::default() }
    }

    pub(super) fn forget(&mut self, node: &mut Node) {
        std::mem::take(node).note(&mut self.path, &mut self.forgotten);
    }
}

/// The step to an element of a save.
pub(super) fn step_to(index: usize) -> Vec<u8> {
    let mut step = Vec::new();
    writer::put_varint(&mut step, index as u64);
    step
}

pub(super) fn index_of(step: &[u8]) -> Option<usize> {
    usize::try_from(Reader::new(step).varint().ok()?).ok()
}

/// Returns the ranges of the elements.
fn places(
    of: &Type,
    count: usize,
    reader: &mut Reader<'_>,
) -> Result<Vec<Range<usize>>, DecodeError> {
    let place = |_| {
        let start = reader.offset();
        skip(of, reader)?;
        Ok(start..reader.offset())
    };
    (0..count).map(place).collect()
}
