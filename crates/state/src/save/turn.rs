//! Saves of other builds: their bytes, rewritten for the types of this build.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use playfield_wire::reader::Reader;
use playfield_wire::schema::{Enum, Struct, Type};
use playfield_wire::{DecodeError, writer};

use super::fate::{TWICE, differs, lacks, shown};
use super::kept::{Column, Kept, Node, step_to};
use super::saved::{Saved, SavedField};
use super::skim::{plain_value, skip};
use super::{Dropped, LoadError};

/// A save for the types of this build.
pub(super) struct Turned {
    /// The body, as this build would have written it.
    pub(super) body: Vec<u8>,
    /// The fields that this build lacks.
    pub(super) kept: Kept,
    /// The values that this build can't read.
    pub(super) dropped: Vec<Dropped>,
}

/// Rewrites a body, and what another build has kept beside it.
pub(super) fn turned(
    stored: &Type,
    kept: Kept,
    here: &Saved,
    bytes: &[u8],
    body: Range<usize>,
) -> Result<Turned, Failed> {
    let (known, before) = kept.into_parts();
    check_names(stored)?;
    known.iter().try_for_each(|column| check_names(&column.of))?;
    let mut reader = Reader::new(&bytes[..body.end]);
    reader.take(body.start)?;
    let mut turn = Turn {
        bytes,
        reader,
        out: Vec::with_capacity(body.len()),
        columns: known.clone(),
        dropped: BTreeMap::new(),
        path: Vec::new(),
        known: &known,
    };
    let root = turn.value(stored, here, &before)?;
    turn.reader.clone().finish()?;
    let Turn { out, columns, dropped, .. } = turn;
    let dropped =
        dropped.into_iter().map(|((place, why), count)| Dropped { place, why, count }).collect();
    Ok(Turned { body: out, kept: Kept::of(columns, root), dropped })
}

/// Why a body is not rewritten.
pub(super) enum Failed {
    /// The types do not fit, at the root.
    Load(LoadError),
    /// The bytes are wrong.
    Bytes(DecodeError),
}

impl From<DecodeError> for Failed {
    fn from(error: DecodeError) -> Self {
        Self::Bytes(error)
    }
}

impl From<Stop> for Failed {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Bytes(error) => Self::Bytes(error),
            Stop::Unfit(why) => Self::Load(LoadError::Incompatible { place: String::new(), why }),
        }
    }
}

/// Why a value is not rewritten.
enum Stop {
    /// This build has no such value. It is left out where that is possible.
    Unfit(String),
    Bytes(DecodeError),
}

impl From<DecodeError> for Stop {
    fn from(error: DecodeError) -> Self {
        Self::Bytes(error)
    }
}

/// Refuses types with two fields of one name.
fn check_names(of: &Type) -> Result<(), Failed> {
    let fields = |of: &Struct| {
        let mut names: Vec<&str> = of.fields.iter().map(|field| &*field.name).collect();
        names.sort_unstable();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            let place = shown(&[pair[0]]);
            return Err(Failed::Load(LoadError::Incompatible { place, why: TWICE.into() }));
        }
        of.fields.iter().try_for_each(|field| check_names(&field.of))
    };
    match of {
        Type::Option(of) | Type::List(of) | Type::Array(of, _) | Type::Map(_, of) => {
            check_names(of)
        }
        Type::Struct(of) => fields(of),
        Type::Enum(of) => of.variants.iter().try_for_each(fields),
        _ => Ok(()),
    }
}

struct Turn<'a> {
    /// The bytes that are read now: the save, or a kept field.
    bytes: &'a [u8],
    reader: Reader<'a>,
    out: Vec<u8>,
    /// The fields that were kept, and those that are from now on.
    columns: Vec<Arc<Column>>,
    /// By place and reason.
    dropped: BTreeMap<(String, String), u64>,
    path: Vec<&'a str>,
    known: &'a [Arc<Column>],
}

type Turning = Result<Node, Stop>;

impl<'a> Turn<'a> {
    /// Rewrites a value, beside or in which something may be kept. Returns what is kept from now
    /// on.
    fn value(&mut self, stored: &'a Type, here: &Saved, kept: &'a Node) -> Turning {
        match (stored, here) {
            (Type::Option(of), Saved::Option(here)) => self.option(of, here, kept),
            (Type::List(of), Saved::List(here)) => {
                let count = self.reader.count()?;
                let mut list = Node::default();
                self.each(count, |turn, index, left| {
                    let (read, now) = (step_to(index), step_to(index - left));
                    let found = turn.at("*", |turn| turn.attempt(of, here, kept.at(&read)))?;
                    Ok(found.map(|node| list.put(&now, node)).is_some())
                })?;
                Ok(list)
            }
            (Type::Array(of, length), Saved::Array(here, other)) if length == other => {
                let mut array = Node::default();
                for index in 0..*length {
                    let step = step_to(index);
                    match self.at("*", |turn| turn.attempt(of, here, kept.at(&step)))? {
                        Some(node) => array.put(&step, node),
                        None => here.put_empty(&mut self.out),
                    }
                }
                Ok(array)
            }
            (Type::Map(key, of), Saved::Map(other, here)) if **key == *other => {
                let count = self.reader.count()?;
                let mut map = Node::default();
                self.each(count, |turn, _, _| {
                    let start = turn.reader.offset();
                    let begin = turn.out.len();
                    turn.plain(key)?;
                    let step = &turn.bytes[start..turn.reader.offset()];
                    let found = turn.at("*", |turn| turn.attempt(of, here, kept.at(step)))?;
                    match found {
                        Some(node) => map.put(step, node),
                        None => {
                            turn.out.truncate(begin);
                            return Ok(false);
                        }
                    }
                    Ok(true)
                })?;
                Ok(map)
            }
            (Type::Set(key), Saved::Set(other)) if **key == *other => {
                let count = self.reader.count()?;
                writer::put_varint(&mut self.out, count as u64);
                (0..count).try_for_each(|_| self.plain(key))?;
                Ok(Node::default())
            }
            (Type::Struct(of), Saved::Struct(_, here)) => self.fields(of, here, kept, true),
            (Type::Enum(of), Saved::Enum(_, here)) => self.variant(of, here, kept),
            (plain, Saved::Plain(here)) if plain == here => {
                self.plain(plain)?;
                Ok(Node::default())
            }
            _ => Err(Stop::Unfit(differs(stored, here))),
        }
    }

    /// Rewrites a value like [`value`](Self::value). `None` if this build has no such value: it is
    /// passed over.
    fn attempt(
        &mut self,
        stored: &'a Type,
        here: &Saved,
        kept: &'a Node,
    ) -> Result<Option<Node>, Stop> {
        let (start, begin) = (self.reader.clone(), self.out.len());
        match self.value(stored, here, kept) {
            Ok(node) => Ok(Some(node)),
            Err(Stop::Unfit(why)) => {
                self.out.truncate(begin);
                self.reader = start;
                skip(stored, &mut self.reader)?;
                *self.dropped.entry((shown(&self.path), why)).or_default() += 1;
                Ok(None)
            }
            Err(stop) => Err(stop),
        }
    }

    fn option(&mut self, of: &'a Type, here: &Saved, kept: &'a Node) -> Turning {
        let at = self.out.len();
        let is_some = self.reader.bool()?;
        writer::put_bool(&mut self.out, is_some);
        if !is_some {
            return Ok(Node::default());
        }
        Ok(self.attempt(of, here, kept)?.unwrap_or_else(|| {
            self.out[at] = 0;
            Node::default()
        }))
    }

    /// Rewrites elements or entries. `next` gets the index, and how many were left out before it;
    /// it returns whether there is one more.
    fn each(
        &mut self,
        count: usize,
        mut next: impl FnMut(&mut Self, usize, usize) -> Result<bool, Stop>,
    ) -> Result<(), Stop> {
        let begin = self.out.len();
        writer::put_varint(&mut self.out, count as u64);
        let first = self.out.len();
        let mut left = 0;
        for index in 0..count {
            left += usize::from(!next(self, index, left)?);
        }
        if left > 0 {
            let mut number = Vec::new();
            writer::put_varint(&mut number, (count - left) as u64);
            self.out.splice(begin..first, number);
        }
        Ok(())
    }

    fn variant(
        &mut self,
        stored: &'a Enum,
        here: &[(Cow<'static, str>, Vec<SavedField>)],
        kept: &'a Node,
    ) -> Turning {
        let at = self.reader.offset();
        let number = self.reader.varint()?;
        let variant = usize::try_from(number).ok().and_then(|number| stored.variants.get(number));
        let variant = variant
            .ok_or_else(|| DecodeError::new(at, format!("no variant has the number {number}")))?;
        let place = here.iter().position(|(name, _)| *name == variant.name);
        let Some(place) = place else {
            return Err(Stop::Unfit(format!("{}: {}", variant.name, lacks("variant"))));
        };
        writer::put_varint(&mut self.out, place as u64);
        let (_, fields) = &here[place];
        let step = variant.name.as_bytes();
        let inside =
            self.at(&variant.name, |turn| turn.fields(variant, fields, kept.at(step), false))?;
        let mut node = Node::default();
        node.put(step, inside);
        Ok(node)
    }

    /// Rewrites fields in the order of this build. A struct without fields is one byte 0 (`pad`).
    fn fields(
        &mut self,
        stored: &'a Struct,
        here: &[SavedField],
        kept: &'a Node,
        pad: bool,
    ) -> Turning {
        if stored.fields.is_empty() && pad {
            skip(&Type::Unit, &mut self.reader)?;
        }
        // As they are stored, each into its own piece of the output; then in this build's order.
        let start = self.out.len();
        let mut pieces = vec![None; here.len()];
        let mut node = Node::default();
        for field in &stored.fields {
            let (name, inside) = (&*field.name, kept.at(field.name.as_bytes()));
            let Some(place) = position(here, name) else {
                let from = self.reader.offset();
                skip(&field.of, &mut self.reader)?;
                let value = self.bytes[from..self.reader.offset()].into();
                node.add_field(self.column(name, &field.of), value);
                node.put(name.as_bytes(), inside.clone());
                continue;
            };
            let from = self.out.len();
            let found = self.at(name, |turn| turn.attempt(&field.of, &here[place].of, inside))?;
            if let Some(found) = found {
                node.put(name.as_bytes(), found);
                pieces[place] = Some(from..self.out.len());
            }
        }
        self.kept_fields(stored, here, kept, &mut node, &mut pieces)?;
        if here.is_empty() && pad {
            self.out.push(0);
        }
        let in_order = pieces.iter().flatten().is_sorted_by_key(|piece| piece.start);
        if in_order && pieces.iter().all(Option::is_some) {
            return Ok(node);
        }
        let found = self.out.split_off(start);
        for (place, piece) in pieces.into_iter().enumerate() {
            match piece {
                Some(piece) => {
                    self.out.extend_from_slice(&found[piece.start - start..piece.end - start]);
                }
                None => here[place].put_default(&mut self.out),
            }
        }
        Ok(node)
    }

    /// Takes fields that another build has kept: those that this build has are read, the others are
    /// kept on.
    fn kept_fields(
        &mut self,
        stored: &Struct,
        here: &[SavedField],
        kept: &'a Node,
        node: &mut Node,
        pieces: &mut [Option<Range<usize>>],
    ) -> Result<(), Stop> {
        for (number, value) in kept.fields() {
            let column = &self.known[number];
            let (name, inside) = (&*column.name, kept.at(column.name.as_bytes()));
            // The build that kept it lacked it, so its save does not have it.
            if stored.fields.iter().any(|field| field.name == name) {
                continue;
            }
            let Some(place) = position(here, name) else {
                node.add_field(number, Arc::clone(value));
                node.put(name.as_bytes(), inside.clone());
                continue;
            };
            if pieces[place].is_some() {
                continue;
            }
            let from = self.out.len();
            let outside = (self.bytes, self.reader.clone());
            (self.bytes, self.reader) = (value, Reader::new(value));
            let found = self.at(name, |turn| turn.attempt(&column.of, &here[place].of, inside));
            let rest = self.reader.clone().finish();
            (self.bytes, self.reader) = outside;
            // Its bytes are counted from its own start.
            let apart = |error: DecodeError| Stop::Bytes(error.without_offset());
            let found = found.map_err(|stop| match stop {
                Stop::Bytes(error) => apart(error),
                unfit @ Stop::Unfit(_) => unfit,
            })?;
            rest.map_err(apart)?;
            if let Some(found) = found {
                node.put(name.as_bytes(), found);
                pieces[place] = Some(from..self.out.len());
            }
        }
        Ok(())
    }

    /// The number of a field that is kept.
    fn column(&mut self, name: &str, of: &Type) -> usize {
        let known = self.columns.iter().position(|known| *known.name == *name && known.of == *of);
        known.unwrap_or_else(|| {
            self.columns.push(Arc::new(Column::new(name.into(), of.clone())));
            self.columns.len() - 1
        })
    }

    fn at<T>(&mut self, step: &'a str, turn: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let turned = turn(self);
        self.path.pop();
        turned
    }

    /// Copies a value without parts.
    fn plain(&mut self, of: &Type) -> Result<(), Stop> {
        let start = self.reader.offset();
        plain_value(of, &mut self.reader)?;
        self.out.extend_from_slice(&self.bytes[start..self.reader.offset()]);
        Ok(())
    }
}

fn position(fields: &[SavedField], name: &str) -> Option<usize> {
    fields.iter().position(|field| field.name == name)
}
