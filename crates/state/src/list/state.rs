//! Syncing lists.
//!
//! Packed, a list's patch begins with a byte for its kind: the whole list (a count, then the
//! elements), or changes of shape (ended by 0), then the elements that changed or were inserted.

use playfield_wire::reader::Reader;
use playfield_wire::schema::Type;
use playfield_wire::tree::TreeWriter;
use playfield_wire::{DecodeError, writer};
use serde_json::Value;

use super::op::{Op, read_ops, shift};
use super::pairing::{Looks, pair};
use super::shadow::{Element, ListShadow, Way};
use super::{Item, List};
use crate::change::{Watch, copy_json};
use crate::data::write_array;
use crate::lens::{Changed, Lens, Sight, Stamps, Step, Tracking};
use crate::map::new_token;
use crate::ops::Ops;
use crate::patch_kind::read_kind;
use crate::slots::{Bind, New};
use crate::state::{Compare, Describe, Read, Write, diff_inside};
use crate::{Part, PlayerId, State, digest};

/// The first byte of a list's patch.
#[derive(Clone, Copy)]
pub(crate) enum ListPatch {
    Whole = 0,
    Elements = 1,
    ShapeAndElements = 2,
}

impl ListPatch {
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        read_kind(
            reader,
            &[Self::Whole, Self::Elements, Self::ShapeAndElements],
            "a list's patch begins with 0, 1 or 2",
        )
    }
}

impl<T: State> Describe for List<T> {
    const UNOWNED: Option<&'static str> = T::UNOWNED;
    const HAS_OWNED: bool = T::HAS_OWNED;
    const HYSTERESIS: bool = T::HYSTERESIS;
    const PLACED: bool = T::PLACED;
    const NESTED_OWNERS: bool = T::NESTED_OWNERS;
    const PLAIN: bool = T::PLAIN;
    const REPORTS: bool = T::REPORTS;

    fn shape() -> Type {
        Type::List(Box::new(T::shape()))
    }
}

impl<T: State> Compare for List<T> {
    type Shadow = ListShadow<T::Shadow>;

    fn bind<B: Bind>(&mut self, bind: B) -> Self::Shadow {
        let stamps = Stamps::new(bind.now(), T::HAS_OWNED);
        let elements = self.items.iter_mut().map(|item| element(item, bind)).collect();
        let shadow = ListShadow::new(new_token(), elements, stamps, bind.now());
        self.in_sync(shadow.token);
        shadow
    }

    fn put_slots(shadow: &Self::Shadow, out: &mut Vec<u8>) {
        shadow.elements.iter().for_each(|element| T::put_slots(&element.shadow, out));
    }

    fn diff(&mut self, shadow: &mut Self::Shadow, step: Step) -> Changed {
        let another = self.token != shadow.token;
        if another {
            shadow.token = new_token(); // the list was replaced
        } else if step.tracking() == Tracking::On && !self.touched && !self.shape {
            return Changed::NO;
        }
        let changed = self.diff_elements(shadow, step, another || step.tracking() == Tracking::Off);
        self.in_sync(shadow.token);
        shadow.stamps.note(changed, step.now);
        changed
    }

    fn same_shared(&self, shadow: &Self::Shadow, tracking: Tracking) -> bool {
        let in_sync = self.token == shadow.token && tracking == Tracking::On && !self.shape;
        if in_sync && !self.touched {
            return true;
        }
        self.len() == shadow.elements.len()
            && self.items.iter().zip(&shadow.elements).all(|(item, element)| {
                (in_sync && !item.touched) || item.value.same_shared(&element.shadow, tracking)
            })
    }

    fn stamps(shadow: &Self::Shadow) -> Stamps {
        shadow.stamps
    }

    fn left_out(shadow: &Self::Shadow, viewer: PlayerId) -> u64 {
        if !T::PLACED {
            return 0;
        }
        shadow.elements.iter().map(|element| T::left_out(&element.shadow, viewer)).sum()
    }

    fn digest(&self, part: Part) -> u64 {
        digest::of_elements(self.iter().map(|item| item.digest(part)))
            .wrapping_add(digest::of_length(self.len()))
    }

    fn view(&self, sight: Sight<'_>) -> Value {
        Value::Array(self.iter().enumerate().map(|(at, value)| value.view(sight.at(at))).collect())
    }
}

impl<T: State> Write for List<T> {
    fn write_full(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>) {
        writer::put_varint(out, shadow.elements.len() as u64);
        let lens = lens.each();
        for element in &shadow.elements {
            T::write_full(&element.shadow, lens, out);
        }
    }

    fn write_patch(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>) -> bool {
        let way = shadow.way(lens.since);
        let inside = ListShadow::<T::Shadow>::lens(&way, lens);
        if lens.part == Part::Owned {
            out.push(ListPatch::Elements as u8);
            return write_elements::<T>(shadow, inside, out);
        }
        match way {
            Way::Whole => {
                out.push(ListPatch::Whole as u8);
                Self::write_full(shadow, inside, out);
            }
            Way::Ops(log, first) if first == log.len() => {
                out.push(ListPatch::Elements as u8);
                return write_elements::<T>(shadow, inside, out);
            }
            Way::Ops(log, first) => {
                out.push(ListPatch::ShapeAndElements as u8);
                for (_, op) in log.range(first..) {
                    op.write(out);
                }
                out.push(0);
                write_elements::<T>(shadow, inside, out);
            }
        }
        true
    }

    fn tree_full(shadow: &Self::Shadow, lens: Lens, out: TreeWriter<'_>) {
        write_array(out, shadow.elements.iter(), |element, out| {
            T::tree_full(&element.shadow, lens, out);
        });
    }

    fn tree_patch(shadow: &Self::Shadow, lens: Lens, ops: &mut Ops<'_, '_>) {
        let way = shadow.way_in_tree(lens.since);
        let inside = ListShadow::<T::Shadow>::lens(&way, lens);
        if lens.part != Part::Owned {
            match way {
                Way::Whole => return ops.set(|out| Self::tree_full(shadow, inside, out)),
                Way::Ops(log, first) => {
                    for (_, op) in log.range(first..) {
                        tree_op::<T>(shadow, op, inside, ops);
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

    fn shadow_digest(shadow: &Self::Shadow, lens: Lens) -> u64 {
        if lens.part == Part::Owned && !T::HAS_OWNED {
            return 0;
        }
        let elements =
            shadow.elements.iter().map(|element| T::shadow_digest(&element.shadow, lens));
        let length =
            if lens.part == Part::Owned { 0 } else { digest::of_length(shadow.elements.len()) };
        digest::of_elements(elements).wrapping_add(length)
    }
}

impl<T: State> Read for List<T> {
    fn read_full(reader: &mut Reader<'_>, part: Part) -> Result<Self, DecodeError> {
        let count = reader.count()?;
        let mut list = Self::new();
        for _ in 0..count {
            list.push(T::read_full(reader, part)?);
        }
        Ok(list)
    }

    fn read_patch(
        &mut self,
        reader: &mut Reader<'_>,
        part: Part,
        watch: &mut Watch<'_>,
    ) -> Result<(), DecodeError> {
        match ListPatch::read(reader)? {
            // All elements get new ids.
            ListPatch::Whole => watch.replace(self, |list| {
                let whole = Self::read_full(reader, part)?;
                list.clear();
                list.extend(whole);
                Ok(())
            }),
            ListPatch::Elements => self.read_elements(reader, part, watch),
            ListPatch::ShapeAndElements => self.read_shape(reader, part, watch),
        }
    }
}

// The server compares.

fn element<T: State, B: Bind>(item: &mut Item<T>, bind: B) -> Element<T::Shadow> {
    item.touched = false;
    let (now, shadow) = (bind.now(), item.value.bind(bind));
    Element { shadow, defined: now, stamps: Stamps::new(now, T::HAS_OWNED) }
}

fn compare<T: State>(item: &mut Item<T>, element: &mut Element<T::Shadow>, step: Step) -> Changed {
    let changed = diff_inside(&mut item.value, &mut element.shadow, step);
    element.stamps.note(changed, step.now);
    changed
}

/// A list's shadow, and the list.
struct Sides<'a, T: State> {
    elements: &'a [Element<T::Shadow>],
    items: &'a [Item<T>],
    tracking: Tracking,
    everything: bool,
}

impl<T: State> Looks for Sides<'_, T> {
    fn same(&self, old: usize, new: usize) -> bool {
        let item = &self.items[new];
        (!self.everything && item.is_still(old))
            || item.value.same_shared(&self.elements[old].shadow, self.tracking)
    }

    fn old_look(&self, index: usize) -> u64 {
        T::shadow_digest(&self.elements[index].shadow, seen_by_all())
    }

    fn new_look(&self, index: usize) -> u64 {
        self.items[index].value.digest(Part::Shared)
    }

    fn size(&self, index: usize) -> usize {
        let mut out = Vec::new();
        T::write_full(&self.elements[index].shadow, seen_by_all(), &mut out);
        out.len()
    }
}

/// Returns a lens for what everyone sees, without its history.
fn seen_by_all() -> Lens {
    Lens { fresh: true, ..Lens::new(Part::Shared, PlayerId(0), 0, 0) }
}

impl<T: State> List<T> {
    /// Pairs the elements with the shadow and compares them: all, or those that were touched or
    /// moved.
    fn diff_elements(
        &mut self,
        shadow: &mut ListShadow<T::Shadow>,
        step: Step,
        everything: bool,
    ) -> Changed {
        let sides = Sides {
            elements: &shadow.elements,
            items: &self.items,
            tracking: step.tracking(),
            everything,
        };
        let pairing = pair(shadow.elements.len(), self.items.len(), &sides);
        if let Some(pairing) = &pairing {
            pairing.ops.iter().for_each(|op| self.reshape(&mut shadow.elements, op, step.now));
        }
        let mut changed = Changed::NO;
        for (index, (item, element)) in self.items.iter_mut().zip(&mut shadow.elements).enumerate()
        {
            let from = pairing.as_ref().map_or(Some(index), |pairing| pairing.from(index));
            if let Some(from) = from
                && (everything || !item.is_still(from))
            {
                item.touched = false;
                changed |= compare(item, element, step);
            }
        }
        if let Some(pairing) = pairing {
            changed |= Changed::whole(T::HAS_OWNED);
            shadow.log(pairing.ops, step.now);
        }
        changed
    }

    /// Applies a change of shape. Insertions are last, so their indices are those of this list.
    fn reshape(&mut self, elements: &mut Vec<Element<T::Shadow>>, op: &Op, now: u64) {
        match *op {
            Op::Remove { index, count } => {
                drop(elements.drain(index as usize..(index + count) as usize));
            }
            Op::Insert { index, count } => {
                let place = index as usize..(index + count) as usize;
                let came = self.items[place].iter_mut().map(|item| element(item, New(now)));
                drop(elements.splice(index as usize..index as usize, came));
            }
            Op::Move { from, to, count } => shift(elements, from, to, count),
            Op::Order(ref order) => {
                let mut old: Vec<Option<_>> = elements.drain(..).map(Some).collect();
                elements.extend(order.iter().filter_map(|&from| old[from as usize].take()));
            }
        }
    }

    fn in_sync(&mut self, token: u64) {
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

/// Writes the elements that were inserted (whole) or changed, each after its distance from the
/// previous one (the first: from −1). A 0 ends them.
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
        let is_written = if lens.part != Part::Owned && element.defined > lens.since {
            T::write_full(&element.shadow, inside.each(), out);
            true
        } else {
            T::write_patch(&element.shadow, inside.each(), out)
        };
        lens.here();
        if !is_written {
            out.truncate(start);
            continue;
        }
        next = index + 1;
        any = true;
    }
    out.push(0);
    any
}

fn tree_op<T: State>(shadow: &ListShadow<T::Shadow>, op: &Op, lens: Lens, ops: &mut Ops<'_, '_>) {
    match *op {
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
        // One at a time: when moving towards the end, each in turn is the first of those that are
        // left.
        Op::Move { from, to, count } => {
            for place in 0..count {
                let (from, to) =
                    if to > from { (from, to + count - 1) } else { (from + place, to + place) };
                ops.element(from as usize, |ops| ops.move_to(to as usize));
            }
        }
        Op::Order(ref order) => ops.order(order),
    }
}

// The client reads.

/// Reads the index that follows the last one.
pub(crate) fn next_index(
    reader: &mut Reader<'_>,
    next: &mut u64,
    length: usize,
) -> Result<Option<usize>, DecodeError> {
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
    fn read_elements(
        &mut self,
        reader: &mut Reader<'_>,
        part: Part,
        watch: &mut Watch<'_>,
    ) -> Result<(), DecodeError> {
        let mut next = 0;
        while let Some(index) = next_index(reader, &mut next, self.items.len())? {
            watch.enter_at(index);
            self.items[index].value.read_patch(reader, part, watch)?;
            watch.leave();
        }
        Ok(())
    }

    fn read_shape(
        &mut self,
        reader: &mut Reader<'_>,
        part: Part,
        watch: &mut Watch<'_>,
    ) -> Result<(), DecodeError> {
        let ops = read_ops(reader, self.items.len())?;
        let mut old_indices: Vec<u32> = (0..self.items.len() as u32).collect();
        ops.iter().for_each(|op| op.apply(&mut old_indices));
        let mut old: Vec<Option<Item<T>>> = self.items.drain(..).map(Some).collect();
        self.shape = true;
        let kept: Vec<Option<Item<T>>> =
            old_indices.iter().map(|from| old.get_mut(*from as usize)?.take()).collect();
        if watch.listens() {
            let left = old.into_iter().map(|item| item.map(|item| copy_json(&item.value)));
            let left = left.collect();
            watch.reshaped(left, &old_indices);
        }
        let mut next = 0;
        let mut following = next_index(reader, &mut next, old_indices.len())?;
        for (index, item) in kept.into_iter().enumerate() {
            let is_named = following == Some(index);
            match item {
                Some(mut item) => {
                    if is_named {
                        watch.enter_at(index);
                        item.value.read_patch(reader, part, watch)?;
                        watch.leave();
                    }
                    self.items.push(item);
                }
                None if is_named => {
                    let value = T::read_full(reader, part)?;
                    if watch.listens() {
                        watch.enter_at(index);
                        watch.entered(&copy_json(&value));
                        watch.leave();
                    }
                    self.push(value);
                }
                None => {
                    return Err(DecodeError::new(
                        reader.offset(),
                        "an inserted list element was not sent",
                    ));
                }
            }
            if is_named {
                following = next_index(reader, &mut next, old_indices.len())?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::op::LIST_OPS_MAX;
    use super::*;

    const WHOLE: u8 = ListPatch::Whole as u8;
    const ELEMENTS: u8 = ListPatch::Elements as u8;
    const SHAPE_AND_ELEMENTS: u8 = ListPatch::ShapeAndElements as u8;

    fn read(list: &[u8], body: &[u8]) -> Result<Vec<u8>, String> {
        let mut list: List<u8> = list.iter().copied().collect();
        let mut reader = Reader::new(body);
        list.read_patch(&mut reader, Part::Shared, &mut Watch::idle())
            .map_err(|error| error.to_string())?;
        reader.finish().map_err(|error| error.to_string())?;
        Ok(list.iter().copied().collect())
    }

    #[test]
    fn changes_of_shape_are_applied_in_order() {
        // One is removed from the front and two are inserted after the next; then the two inserted
        // elements follow, and the last one changes.
        let body = [SHAPE_AND_ELEMENTS, 4, 0, 9, 1, 0, 2, 8, 1, 9, 1, 7, 0];
        assert_eq!(read(&[1, 2, 3], &body), Ok(vec![2, 8, 9, 7]));
        assert_eq!(read(&[1, 2, 3], &[WHOLE, 2, 5, 6]), Ok(vec![5, 6]));
        assert_eq!(read(&[1, 2, 3], &[ELEMENTS, 2, 9, 0]), Ok(vec![1, 9, 3]));
    }

    #[test]
    fn list_patches_that_do_not_fit_are_rejected() {
        let say = |body: &[u8]| read(&[1, 2, 3], body).unwrap_err();
        assert_eq!(say(&[3]), "at byte 0: a list's patch begins with 0, 1 or 2, not 3");
        assert_eq!(say(&[ELEMENTS, 4, 9, 0]), "at byte 1: index 3 is past the end of a list of 3");
        assert_eq!(
            say(&[SHAPE_AND_ELEMENTS, 8, 2, 0, 0]),
            "at byte 1: can't remove 2 elements at 2 of a list of 3"
        );
        assert_eq!(
            say(&[SHAPE_AND_ELEMENTS, 5, 4, 0, 0]),
            "at byte 1: can't insert 1 elements at 4 of a list of 3"
        );
        assert_eq!(
            say(&[SHAPE_AND_ELEMENTS, 5, 0, 0, 0]),
            "at byte 5: an inserted list element was not sent"
        );
        // More than could ever be sent.
        let mut body = vec![SHAPE_AND_ELEMENTS];
        writer::put_varint(&mut body, u64::MAX - 2);
        body.extend([0, 0, 0]);
        assert!(say(&body).contains("elements at 0 of a list"));
    }

    #[test]
    fn transient_insertions_are_bounded_by_the_final_length() {
        let mut body = vec![SHAPE_AND_ELEMENTS];
        body.extend([81, 0, 80, 0]); // 20 inserted, 20 removed
        body.extend([0; 30]);
        assert_eq!(
            read(&[1, 2, 3], &body).unwrap_err(),
            "at byte 1: 20 elements were inserted into a list that has 3 at the end"
        );
        assert_eq!(read(&[1, 2, 3], &[SHAPE_AND_ELEMENTS, 13, 0, 12, 0, 0, 0]), Ok(vec![1, 2, 3]));
    }

    #[test]
    fn elements_move() {
        let moved =
            |op: [u8; 3]| read(&[1, 2, 3, 4, 5], &[SHAPE_AND_ELEMENTS, op[0], op[1], op[2], 0, 0]);
        assert_eq!(moved([6, 0, 4]), Ok(vec![2, 3, 4, 5, 1]));
        assert_eq!(moved([6, 4, 0]), Ok(vec![5, 1, 2, 3, 4]));
        assert_eq!(moved([10, 1, 3]), Ok(vec![1, 4, 5, 2, 3]));
        assert_eq!(moved([10, 3, 1]), Ok(vec![1, 4, 5, 2, 3]));
        assert_eq!(moved([22, 0, 0]), Ok(vec![1, 2, 3, 4, 5]));
        for (op, said) in [
            ([22, 0, 1], "at byte 1: can't move 5 elements from 0 to 1 of a list of 5"),
            ([6, 5, 0], "at byte 1: can't move 1 elements from 5 to 0 of a list of 5"),
            ([6, 0, 5], "at byte 1: can't move 1 elements from 0 to 5 of a list of 5"),
            ([2, 0, 0], "at byte 1: can't move 0 elements from 0 to 0 of a list of 5"),
        ] {
            assert_eq!(moved(op).unwrap_err(), said);
        }
    }

    #[test]
    fn a_list_is_reordered() {
        let ordered =
            |op: &[u8]| read(&[1, 2, 3], &[&[SHAPE_AND_ELEMENTS], op, &[0, 2, 9, 0]].concat());
        assert_eq!(ordered(&[15, 2, 0, 1]), Ok(vec![3, 9, 2]));
        for (op, said) in [
            (&[15, 2, 0, 2][..], "at byte 4: an order names the element 2 twice"),
            (&[15, 2, 0, 3], "at byte 4: an order of 3 elements names the element 3"),
            (&[11, 1, 0], "at byte 1: an order of 2 elements does not fit a list of 3"),
            (&[19, 1, 0, 2, 3], "at byte 1: an order of 4 elements does not fit a list of 3"),
            (&[3], "at byte 1: an order of 0 elements does not fit a list of 3"),
        ] {
            assert_eq!(ordered(op).unwrap_err(), said);
        }
        assert_eq!(
            read(&[1; 100], &[SHAPE_AND_ELEMENTS, 0x93, 3, 0, 1]).unwrap_err(),
            "at byte 3: an order of 100 elements does not fit in 2 bytes"
        );
        assert!(
            read(&[], &[SHAPE_AND_ELEMENTS, 3, 0, 0])
                .unwrap_err()
                .contains("an order of 0 elements")
        );
    }

    #[test]
    fn changes_of_shape_are_limited_in_number() {
        let ops = |count: usize| {
            let mut body = vec![SHAPE_AND_ELEMENTS];
            (0..count).for_each(|_| body.extend([4, 0]));
            body.extend([0, 0]);
            read(&[7; LIST_OPS_MAX + 1], &body)
        };
        assert_eq!(ops(LIST_OPS_MAX), Ok(vec![7]));
        assert!(ops(LIST_OPS_MAX + 1).unwrap_err().contains("more than 1024 changes of shape"));
    }
}
