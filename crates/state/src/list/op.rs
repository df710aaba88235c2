//! Changes of a list's shape, and their form on the wire.

use playfield_wire::reader::Reader;
use playfield_wire::{DecodeError, writer};

/// A change of shape. Its indices are those of the list after all earlier changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    Remove {
        index: u32,
        count: u32,
    },
    Insert {
        index: u32,
        count: u32,
    },
    /// `to` is an index in the list without them.
    Move {
        from: u32,
        to: u32,
        count: u32,
    },
    /// For each index of the new list, the old index of its element.
    Order(Box<[u32]>),
}

/// The most changes of shape in one patch. With more, the list is sent whole.
pub(crate) const LIST_OPS_MAX: usize = 1_024;

/// The most changes of shape in the patch of a list of this length: more would cost more than the
/// list itself.
pub(super) fn ops_max(length: usize) -> usize {
    (1 + length / 2).min(LIST_OPS_MAX)
}

/// Marks an inserted element where elements are named by their old index.
pub(crate) const INSERTED: u32 = u32::MAX;

pub(crate) const REMOVE: u64 = 0;
pub(crate) const INSERT: u64 = 1;
pub(crate) const MOVE: u64 = 2;
pub(crate) const ORDER: u64 = 3;

impl Op {
    /// The number of inserted elements.
    pub(super) fn inserted(&self) -> usize {
        match self {
            Self::Insert { count, .. } => *count as usize,
            Self::Remove { .. } | Self::Move { .. } | Self::Order(_) => 0,
        }
    }

    /// Applies the change to a list of indices.
    pub(crate) fn apply(&self, list: &mut Vec<u32>) {
        match *self {
            Self::Remove { index, count } => {
                drop(list.drain(index as usize..(index + count) as usize));
            }
            Self::Insert { index, count } => {
                let came = std::iter::repeat_n(INSERTED, count as usize);
                drop(list.splice(index as usize..index as usize, came));
            }
            Self::Move { from, to, count } => shift(list, from, to, count),
            Self::Order(ref order) => {
                *list = order.iter().map(|&from| list[from as usize]).collect();
            }
        }
    }

    /// Appends it: a varint (four times the count, plus the kind), then what the kind requires.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let mut word = |count: usize, kind| writer::put_varint(out, count as u64 * 4 + kind);
        match *self {
            Self::Remove { index, count } => {
                word(count as usize, REMOVE);
                writer::put_varint(out, index.into());
            }
            Self::Insert { index, count } => {
                word(count as usize, INSERT);
                writer::put_varint(out, index.into());
            }
            Self::Move { from, to, count } => {
                word(count as usize, MOVE);
                writer::put_varint(out, from.into());
                writer::put_varint(out, to.into());
            }
            Self::Order(ref order) => {
                word(order.len(), ORDER);
                order.iter().for_each(|&from| writer::put_varint(out, from.into()));
            }
        }
    }
}

/// Moves elements from one index to another.
pub(super) fn shift<T>(list: &mut [T], from: u32, to: u32, count: u32) {
    if to >= from {
        list[from as usize..(to + count) as usize].rotate_left(count as usize);
    } else {
        list[to as usize..(from + count) as usize].rotate_right(count as usize);
    }
}

/// Reads the changes of shape of a list of this length, up to the terminating 0, and checks that
/// they fit before any is applied. `usize::MAX` means that the length is unknown: the first order
/// states it.
pub(crate) fn read_ops(reader: &mut Reader<'_>, length: usize) -> Result<Vec<Op>, DecodeError> {
    let begin = reader.offset();
    // No more were inserted than are left now, and each of those was here before or is sent.
    let inserted_max = length.saturating_add(reader.remaining()) as u64;
    let mut is_known = length != usize::MAX;
    let mut length = length as u64;
    let mut inserted = 0_u64;
    let mut ops = Vec::new();
    loop {
        let at = reader.offset();
        let word = reader.varint()?;
        if word == 0 {
            break;
        }
        let refused = |what: String| DecodeError::new(at, what);
        if ops.len() == LIST_OPS_MAX {
            return Err(refused(format!("one list has more than {LIST_OPS_MAX} changes of shape")));
        }
        let count = word / 4;
        // Valid values are below this, except in a list longer than any that is sent.
        let fits = |n: u64| u32::try_from(n).ok().filter(|_| count > 0);
        match word % 4 {
            REMOVE => {
                let index = reader.varint()?;
                let (Some(count32), Some(index32), true) =
                    (fits(count), fits(index), index.saturating_add(count) <= length)
                else {
                    return Err(refused(format!(
                        "can't remove {count} elements at {index} of a list of {length}"
                    )));
                };
                length -= count;
                ops.push(Op::Remove { index: index32, count: count32 });
            }
            INSERT => {
                let index = reader.varint()?;
                let (Some(count32), Some(index32), true) =
                    (fits(count), fits(index), index <= length && count <= inserted_max - inserted)
                else {
                    return Err(refused(format!(
                        "can't insert {count} elements at {index} of a list of {length}"
                    )));
                };
                length = length.saturating_add(count);
                inserted += count;
                ops.push(Op::Insert { index: index32, count: count32 });
            }
            MOVE => {
                let (from, to) = (reader.varint()?, reader.varint()?);
                let last = from.max(to).saturating_add(count);
                let (Some(count32), Some(from32), Some(to32), true) =
                    (fits(count), fits(from), fits(to), last <= length)
                else {
                    return Err(refused(format!(
                        "can't move {count} elements from {from} to {to} of a list of {length}"
                    )));
                };
                ops.push(Op::Move { from: from32, to: to32, count: count32 });
            }
            _ if (count == length || !is_known) && count > 0 => {
                ops.push(Op::Order(read_order(reader, count)?));
                (length, is_known) = (count, true);
            }
            _ => {
                return Err(refused(format!(
                    "an order of {count} elements does not fit a list of {length}"
                )));
            }
        }
    }
    // If more elements were inserted than are left, the list is sent whole. So the work is
    // proportional to the list.
    if inserted > length {
        return Err(DecodeError::new(
            begin,
            format!("{inserted} elements were inserted into a list that has {length} at the end"),
        ));
    }
    Ok(ops)
}

/// Reads the old index of each element.
fn read_order(reader: &mut Reader<'_>, length: u64) -> Result<Box<[u32]>, DecodeError> {
    let begin = reader.offset();
    let Some(count) = usize::try_from(length).ok().filter(|&count| count <= reader.remaining())
    else {
        return Err(DecodeError::new(
            begin,
            format!("an order of {length} elements does not fit in {} bytes", reader.remaining()),
        ));
    };
    let mut taken = vec![false; count];
    let mut order = Vec::with_capacity(count);
    for _ in 0..count {
        let at = reader.offset();
        let from = reader.varint()?;
        match usize::try_from(from).ok().and_then(|from| taken.get_mut(from)) {
            Some(taken) if !*taken => *taken = true,
            Some(_) => {
                return Err(DecodeError::new(
                    at,
                    format!("an order names the element {from} twice"),
                ));
            }
            None => {
                return Err(DecodeError::new(
                    at,
                    format!("an order of {count} elements names the element {from}"),
                ));
            }
        }
        order.push(from as u32);
    }
    Ok(order.into())
}
