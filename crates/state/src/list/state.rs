//! Lists in step.
//!
//! Packed, a list's patch is a byte that says how: whole (a count, then the elements), or changes of shape (each a varint, twice
//! the count plus 0 for a removal or 1 for an insertion, and an index; ended by 0), then the elements that changed or came.

use playfield_wire::reader::Reader;
use playfield_wire::schema::Type;
use playfield_wire::tree::TreeWriter;
use playfield_wire::{DecodeError, writer};
use serde_json::Value;

use super::align::{Run, align};
use super::shadow::{Element, LIST_OPS_MAX, ListShadow, Op, Way};
use super::{Item, List};
use crate::data::write_array;
use crate::lens::{Changed, Lens, Sight, Stamps, Step, Tracking};
use crate::map::new_token;
use crate::ops::Ops;
use crate::{Part, State, digest};

const WHOLE: u8 = 0;
const ELEMENTS: u8 = 1;
const SHAPE_AND_ELEMENTS: u8 = 2;

impl<T: State> State for List<T> {
    type Shadow = ListShadow<T::Shadow>;

    const UNOWNED: Option<&'static str> = T::UNOWNED;
    const HAS_OWNED: bool = T::HAS_OWNED;
    const NESTED_OWNERS: bool = T::NESTED_OWNERS;
    const PLAIN: bool = T::PLAIN;

    fn schema() -> Type {
        Type::List(Box::new(T::schema()))
    }

    fn bind(&mut self, now: u64) -> Self::Shadow {
        let stamps = Stamps::new(now, T::HAS_OWNED);
        let elements = self.items.iter_mut().map(|item| element(item, now)).collect();
        let shadow = ListShadow::new(new_token(), elements, stamps, now);
        self.in_step(shadow.token);
        shadow
    }

    fn diff(&mut self, shadow: &mut Self::Shadow, step: Step) -> Changed {
        let another = self.token != shadow.token;
        if another {
            shadow.token = new_token(); // another list stands where the shadow's stood
        } else if step.tracking == Tracking::On && !self.touched && !self.shape {
            return Changed::NO;
        }
        let changed = self.diff_elements(shadow, step, another || step.tracking == Tracking::Off);
        self.in_step(shadow.token);
        shadow.stamps.note(changed, step.now);
        changed
    }

    fn same_shared(&self, shadow: &Self::Shadow, tracking: Tracking) -> bool {
        let in_step = self.token == shadow.token && tracking == Tracking::On && !self.shape;
        if in_step && !self.touched {
            return true;
        }
        self.len() == shadow.elements.len()
            && self.items.iter().zip(&shadow.elements).all(|(item, element)| {
                (in_step && !item.touched) || item.value.same_shared(&element.shadow, tracking)
            })
    }

    fn stamps(shadow: &Self::Shadow) -> Stamps {
        shadow.stamps
    }

    fn write_full(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>) {
        writer::put_varint(out, shadow.elements.len() as u64);
        for element in &shadow.elements {
            T::write_full(&element.shadow, lens, out);
        }
    }

    fn write_patch(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>) -> bool {
        let way = shadow.way(lens.since);
        let inside = ListShadow::<T::Shadow>::lens(&way, lens);
        if lens.part == Part::Owned {
            out.push(ELEMENTS);
            return write_elements::<T>(shadow, inside, out);
        }
        match way {
            Way::Whole => {
                out.push(WHOLE);
                Self::write_full(shadow, inside, out);
            }
            Way::Ops(log, first) if first == log.len() => {
                out.push(ELEMENTS);
                return write_elements::<T>(shadow, inside, out);
            }
            Way::Ops(log, first) => {
                out.push(SHAPE_AND_ELEMENTS);
                for (_, op) in log.range(first..) {
                    write_op(*op, out);
                }
                out.push(0);
                write_elements::<T>(shadow, inside, out);
            }
        }
        true
    }

    fn tree_full(shadow: &Self::Shadow, lens: Lens, out: TreeWriter<'_>) {
        write_array(out, shadow.elements.iter(), |element, out| T::tree_full(&element.shadow, lens, out));
    }

    fn tree_patch(shadow: &Self::Shadow, lens: Lens, ops: &mut Ops<'_, '_>) {
        let way = shadow.way_in_tree(lens.since);
        let inside = ListShadow::<T::Shadow>::lens(&way, lens);
        if lens.part != Part::Owned {
            match way {
                Way::Whole => return ops.set(|out| Self::tree_full(shadow, inside, out)),
                Way::Ops(log, first) => {
                    for (_, op) in log.range(first..) {
                        tree_op::<T>(shadow, *op, inside, ops);
                    }
                }
            }
        }
        for (index, element) in shadow.elements.iter().enumerate() {
            let inserted = element.defined > lens.since && lens.part != Part::Owned;
            let lens = inside.of(element.defined);
            if !inserted && element.stamps.after(lens) {
                ops.element(index, |ops| T::tree_patch(&element.shadow, lens, ops));
            }
        }
    }

    fn read_full(reader: &mut Reader<'_>, part: Part) -> Result<Self, DecodeError> {
        let count = reader.count()?;
        let mut list = Self::new();
        for _ in 0..count {
            list.push(T::read_full(reader, part)?);
        }
        Ok(list)
    }

    fn read_patch(&mut self, reader: &mut Reader<'_>, part: Part) -> Result<(), DecodeError> {
        let at = reader.offset();
        match reader.u8()? {
            WHOLE => {
                *self = Self::read_full(reader, part)?;
                Ok(())
            }
            ELEMENTS => self.read_elements(reader, part),
            SHAPE_AND_ELEMENTS => self.read_shape(reader, part),
            other => Err(DecodeError::new(at, format!("a list's patch begins with 0, 1 or 2, {other} came"))),
        }
    }

    fn digest(&self) -> u64 {
        digest::of_elements(self.iter().map(T::digest)).wrapping_add(digest::of_length(self.len()))
    }

    fn shadow_digest(shadow: &Self::Shadow, lens: Lens) -> u64 {
        let elements = shadow.elements.iter().map(|element| T::shadow_digest(&element.shadow, lens));
        let length = if lens.part == Part::Owned { 0 } else { digest::of_length(shadow.elements.len()) };
        digest::of_elements(elements).wrapping_add(length)
    }

    fn view(&self, sight: Sight) -> Value {
        Value::Array(self.iter().map(|value| value.view(sight)).collect())
    }
}

// The server compares.

fn element<T: State>(item: &mut Item<T>, now: u64) -> Element<T::Shadow> {
    item.touched = false;
    Element { shadow: item.value.bind(now), defined: now, stamps: Stamps::new(now, T::HAS_OWNED) }
}

fn compare<T: State>(item: &mut Item<T>, element: &mut Element<T::Shadow>, step: Step) -> Changed {
    let changed = item.value.diff(&mut element.shadow, step);
    element.stamps.note(changed, step.now);
    changed
}

impl<T: State> List<T> {
    /// Pairs the elements with what was last synced and compares them: all, or those that were touched or moved.
    fn diff_elements(&mut self, shadow: &mut ListShadow<T::Shadow>, step: Step, everything: bool) -> Changed {
        let known =
            |item: &Item<T>, place: usize| !everything && !item.touched && item.place as usize == place;
        let runs = align(shadow.elements.len(), self.items.len(), |old, new| {
            let item = &self.items[new];
            known(item, old) || item.value.same_shared(&shadow.elements[old].shadow, step.tracking)
        });
        let mut changed = Changed::NO;
        let (mut old, mut at) = (0, 0);
        let all = [Run::Pair(self.items.len())];
        for run in runs.as_deref().unwrap_or(&all) {
            match *run {
                Run::Pair(count) => {
                    for (item, element) in
                        self.items[at..at + count].iter_mut().zip(&mut shadow.elements[at..])
                    {
                        if !known(item, old) {
                            item.touched = false;
                            changed |= compare(item, element, step);
                        }
                        old += 1;
                    }
                    at += count;
                }
                Run::Remove(count) => {
                    shadow.elements.drain(at..at + count);
                    old += count;
                }
                Run::Insert(count) => {
                    let came = self.items[at..at + count].iter_mut().map(|item| element(item, step.now));
                    shadow.elements.splice(at..at, came);
                    at += count;
                }
            }
        }
        if let Some(runs) = runs {
            changed |= Changed::whole(T::HAS_OWNED);
            shadow.log(&runs, step.now);
        }
        changed
    }

    fn in_step(&mut self, token: u64) {
        let places = self.shape || self.token != token;
        self.token = token;
        self.touched = false;
        self.shape = false;
        if places {
            for (place, item) in self.items.iter_mut().enumerate() {
                item.place = place as u32;
            }
        }
    }
}

// The server writes.

fn write_op(op: Op, out: &mut Vec<u8>) {
    let (count, kind, index) = match op {
        Op::Remove { index, count } => (count, 0, index),
        Op::Insert { index, count } => (count, 1, index),
    };
    writer::put_varint(out, u64::from(count) * 2 + kind);
    writer::put_varint(out, u64::from(index));
}

/// Writes the elements that came (whole) or changed, each after its distance from the one before (the first: from −1); then 0.
fn write_elements<T: State>(shadow: &ListShadow<T::Shadow>, lens: Lens, out: &mut Vec<u8>) -> bool {
    let mut next = 0;
    let mut any = false;
    for (index, element) in shadow.elements.iter().enumerate() {
        let inside = lens.of(element.defined);
        if !element.stamps.after(inside) {
            continue;
        }
        let start = out.len();
        writer::put_varint(out, (index + 1 - next) as u64);
        if lens.part != Part::Owned && element.defined > lens.since {
            T::write_full(&element.shadow, inside, out);
        } else if !T::write_patch(&element.shadow, inside, out) {
            out.truncate(start);
            continue;
        }
        next = index + 1;
        any = true;
    }
    out.push(0);
    any
}

fn tree_op<T: State>(shadow: &ListShadow<T::Shadow>, op: Op, lens: Lens, ops: &mut Ops<'_, '_>) {
    match op {
        Op::Remove { index, count } => {
            for _ in 0..count {
                ops.element(index as usize, Ops::remove);
            }
        }
        Op::Insert { index, count } => {
            for index in index as usize..(index + count) as usize {
                let lens = lens.of(shadow.elements[index].defined);
                ops.element(index, |ops| {
                    ops.insert(|out| T::tree_full(&shadow.elements[index].shadow, lens, out));
                });
            }
        }
    }
}

// The client reads.

/// Reads the index that follows the last one.
fn next_index(reader: &mut Reader<'_>, next: &mut u64, length: usize) -> Result<Option<usize>, DecodeError> {
    let at = reader.offset();
    let distance = reader.varint()?;
    if distance == 0 {
        return Ok(None);
    }
    *next = next.saturating_add(distance);
    if *next > length as u64 {
        return Err(DecodeError::new(
            at,
            format!("index {} is past the end of a list of {length}", *next - 1),
        ));
    }
    Ok(Some((*next - 1) as usize))
}

impl<T: State> List<T> {
    fn read_elements(&mut self, reader: &mut Reader<'_>, part: Part) -> Result<(), DecodeError> {
        let mut next = 0;
        while let Some(index) = next_index(reader, &mut next, self.items.len())? {
            self.items[index].value.read_patch(reader, part)?;
        }
        Ok(())
    }

    fn read_shape(&mut self, reader: &mut Reader<'_>, part: Part) -> Result<(), DecodeError> {
        let ops = read_ops(reader, self.items.len())?;
        let mut items: Vec<Option<T>> = self.items.drain(..).map(|item| Some(item.value)).collect();
        for op in ops {
            match op {
                Op::Remove { index, count } => drop(items.drain(index as usize..(index + count) as usize)),
                Op::Insert { index, count } => {
                    drop(items.splice(index as usize..index as usize, (0..count).map(|_| None)));
                }
            }
        }
        let mut next = 0;
        while let Some(index) = next_index(reader, &mut next, items.len())? {
            match &mut items[index] {
                Some(value) => value.read_patch(reader, part)?,
                none => *none = Some(T::read_full(reader, part)?),
            }
        }
        let at = reader.offset();
        let whole: Option<Vec<T>> = items.into_iter().collect();
        let whole =
            whole.ok_or_else(|| DecodeError::new(at, "an element that came to a list was not sent"))?;
        self.extend(whole);
        Ok(())
    }
}

/// Reads the changes of shape of a list of this length, and sees that they fit it before any is made.
fn read_ops(reader: &mut Reader<'_>, length: usize) -> Result<Vec<Op>, DecodeError> {
    let begin = reader.offset();
    // No more came than are left now, and of those each stood here before or is sent.
    let inserted_max = (length + reader.remaining()) as u64;
    let mut length = length as u64;
    let mut inserted = 0_u64;
    let mut ops = Vec::new();
    loop {
        let at = reader.offset();
        let word = reader.varint()?;
        if word == 0 {
            break;
        }
        if ops.len() == LIST_OPS_MAX {
            return Err(DecodeError::new(
                at,
                format!("more than {LIST_OPS_MAX} changes of shape came for one list"),
            ));
        }
        let (count, index) = (word / 2, reader.varint()?);
        let fits = match word % 2 {
            0 => index.saturating_add(count) <= length,
            _ => index <= length && count <= inserted_max - inserted,
        };
        let (Ok(count32), Ok(index32), true) =
            (u32::try_from(count), u32::try_from(index), fits && count > 0)
        else {
            let verb = if word % 2 == 0 { "go from" } else { "come at" };
            return Err(DecodeError::new(
                at,
                format!("{count} elements can't {verb} {index} of a list of {length}"),
            ));
        };
        if word % 2 == 0 {
            length -= count;
            ops.push(Op::Remove { index: index32, count: count32 });
        } else {
            length += count;
            inserted += count;
            ops.push(Op::Insert { index: index32, count: count32 });
        }
    }
    // A list to which more came than are left is sent whole; so the work is in proportion to the list.
    if inserted > length {
        return Err(DecodeError::new(
            begin,
            format!("{inserted} elements came to a list, of which {length} are left"),
        ));
    }
    Ok(ops)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(list: &[u8], body: &[u8]) -> Result<Vec<u8>, String> {
        let mut list: List<u8> = list.iter().copied().collect();
        let mut reader = Reader::new(body);
        list.read_patch(&mut reader, Part::Shared).map_err(|error| error.to_string())?;
        reader.finish().map_err(|error| error.to_string())?;
        Ok(list.iter().copied().collect())
    }

    #[test]
    fn changes_of_shape_are_made_in_their_order() {
        // One removed from the front, two put behind the next; then the two that came, and the last one changed.
        let body = [SHAPE_AND_ELEMENTS, 2, 0, 5, 1, 0, 2, 8, 1, 9, 1, 7, 0];
        assert_eq!(read(&[1, 2, 3], &body), Ok(vec![2, 8, 9, 7]));
        assert_eq!(read(&[1, 2, 3], &[WHOLE, 2, 5, 6]), Ok(vec![5, 6]));
        assert_eq!(read(&[1, 2, 3], &[ELEMENTS, 2, 9, 0]), Ok(vec![1, 9, 3]));
    }

    #[test]
    fn what_does_not_fit_a_list_is_refused() {
        let say = |body: &[u8]| read(&[1, 2, 3], body).unwrap_err();
        assert_eq!(say(&[3]), "at byte 0: a list's patch begins with 0, 1 or 2, 3 came");
        assert_eq!(say(&[ELEMENTS, 4, 9, 0]), "at byte 1: index 3 is past the end of a list of 3");
        assert_eq!(
            say(&[SHAPE_AND_ELEMENTS, 4, 2, 0, 0]),
            "at byte 1: 2 elements can't go from 2 of a list of 3"
        );
        assert_eq!(
            say(&[SHAPE_AND_ELEMENTS, 3, 4, 0, 0]),
            "at byte 1: 1 elements can't come at 4 of a list of 3"
        );
        assert_eq!(
            say(&[SHAPE_AND_ELEMENTS, 3, 0, 0, 0]),
            "at byte 5: an element that came to a list was not sent"
        );
        // More than could ever be sent.
        let mut body = vec![SHAPE_AND_ELEMENTS];
        writer::put_varint(&mut body, u64::MAX);
        body.extend([0, 0, 0]);
        assert!(say(&body).contains("elements can't come at 0"));
    }

    #[test]
    fn elements_that_come_only_to_go_are_bounded_by_those_that_stay() {
        let mut body = vec![SHAPE_AND_ELEMENTS];
        body.extend([41, 0, 40, 0]); // 20 come, 20 go
        body.extend([0; 30]);
        assert_eq!(
            read(&[1, 2, 3], &body).unwrap_err(),
            "at byte 1: 20 elements came to a list, of which 3 are left"
        );
        assert_eq!(read(&[1, 2, 3], &[SHAPE_AND_ELEMENTS, 7, 0, 6, 0, 0, 0]), Ok(vec![1, 2, 3]));
    }

    #[test]
    fn changes_of_shape_are_limited_in_number() {
        let ops = |count: usize| {
            let mut body = vec![SHAPE_AND_ELEMENTS];
            (0..count).for_each(|_| body.extend([2, 0]));
            body.extend([0, 0]);
            read(&[7; LIST_OPS_MAX + 1], &body)
        };
        assert_eq!(ops(LIST_OPS_MAX), Ok(vec![7]));
        assert!(ops(LIST_OPS_MAX + 1).unwrap_err().contains("more than 1024 changes of shape"));
    }
}
