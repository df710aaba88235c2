//! Arrays: as many values as the type says.

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;
use playfield_wire::schema::Type;
use playfield_wire::tree::TreeWriter;
use serde_json::Value;

use crate::change::Watch;
use crate::data::{Data, unexpected, write_array};
use crate::lens::{Changed, Lens, Sight, Stamps, Step, Tracking};
use crate::ops::Ops;
use crate::slots::Bind;
use crate::state::{Compare, Describe, Read, Write};
use crate::{Part, PlayerId, State, digest};

/// The shadow of an array.
#[derive(Debug)]
pub struct ArrayShadow<S> {
    stamps: Stamps,
    items: Vec<S>,
}

/// The longest array whose unchanged elements a column may send with those that changed.
const FIXED_MAX: usize = 16;

impl<T: State, const N: usize> Describe for [T; N] {
    const UNOWNED: Option<&'static str> = {
        assert!(N > 0, "an array without elements has nothing to sync: give it a length");
        T::UNOWNED
    };
    const HAS_OWNED: bool = T::HAS_OWNED;
    const HYSTERESIS: bool = T::HYSTERESIS;
    const PLACED: bool = T::PLACED;
    const NESTED_OWNERS: bool = T::NESTED_OWNERS;
    const PLAIN: bool = T::PLAIN;
    const REPORTS: bool = T::REPORTS;
    const COLUMN: bool = Self::FIXED;
    const FIXED: bool = T::FIXED && N <= FIXED_MAX;

    fn shape() -> Type {
        Type::Array(Box::new(T::shape()), N)
    }
}

impl<T: State, const N: usize> Compare for [T; N] {
    type Shadow = ArrayShadow<T::Shadow>;

    fn bind<B: Bind>(&mut self, bind: B) -> Self::Shadow {
        let items = self.iter_mut().map(|item| item.bind(bind)).collect();
        ArrayShadow { stamps: Stamps::new(bind.now(), T::HAS_OWNED), items }
    }

    fn put_slots(shadow: &Self::Shadow, out: &mut Vec<u8>) {
        shadow.items.iter().for_each(|item| T::put_slots(item, out));
    }

    fn diff(&mut self, shadow: &mut Self::Shadow, step: Step) -> Changed {
        let mut changed = Changed::NO;
        let inside = step.each();
        for (item, last) in self.iter_mut().zip(&mut shadow.items) {
            changed |= item.diff(last, inside);
        }
        shadow.stamps.note(changed, step.now);
        changed
    }

    fn same_shared(&self, shadow: &Self::Shadow, tracking: Tracking) -> bool {
        self.iter().zip(&shadow.items).all(|(item, last)| item.same_shared(last, tracking))
    }

    fn stamps(shadow: &Self::Shadow) -> Stamps {
        shadow.stamps
    }

    fn left_out(shadow: &Self::Shadow, viewer: PlayerId) -> u64 {
        if !T::PLACED {
            return 0;
        }
        shadow.items.iter().map(|item| T::left_out(item, viewer)).sum()
    }

    fn digest(&self, part: Part) -> u64 {
        digest::of_elements(self.iter().map(|item| item.digest(part)))
    }

    fn view(&self, sight: Sight<'_>) -> Value {
        Value::Array(self.iter().enumerate().map(|(at, item)| item.view(sight.at(at))).collect())
    }
}

impl<T: State, const N: usize> Write for [T; N] {
    fn write_full(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>) {
        let lens = lens.each();
        shadow.items.iter().for_each(|item| T::write_full(item, lens, out));
    }

    fn write_patch(shadow: &Self::Shadow, lens: Lens, out: &mut Vec<u8>) -> bool {
        let mask_at = out.len();
        out.resize(mask_at + N.div_ceil(8), 0);
        let lens = lens.each();
        let mut any = false;
        for (place, item) in shadow.items.iter().enumerate() {
            if !T::stamps(item).after(lens) {
                continue;
            }
            let start = out.len();
            if T::write_patch(item, lens, out) {
                out[mask_at + place / 8] |= 1 << (place % 8);
                any = true;
            } else {
                out.truncate(start);
            }
        }
        any
    }

    fn column_key(shadow: &Self::Shadow, lens: Lens) -> Option<u64> {
        if !Self::FIXED {
            return None;
        }
        let changed =
            shadow.items.iter().enumerate().filter(|(_, item)| T::stamps(item).after(lens));
        Some(changed.fold(0, |key, (place, _)| key | 1 << place))
    }

    fn write_columns<'a>(
        count: usize,
        at: impl Fn(usize) -> &'a Self::Shadow + Copy,
        key: u64,
        lens: Lens,
        out: &mut Vec<u8>,
    ) {
        out.extend_from_slice(&key.to_le_bytes()[..N.div_ceil(8)]);
        let lens = lens.each();
        for item in (0..N).filter(|item| key >> item & 1 == 1) {
            let inner = InArray { at, item };
            inner.write::<T>(count, lens, out);
        }
    }

    fn tree_full(shadow: &Self::Shadow, lens: Lens, out: TreeWriter<'_>) {
        write_array(out, shadow.items.iter(), |item, out| T::tree_full(item, lens, out));
    }

    fn tree_patch(shadow: &Self::Shadow, lens: Lens, ops: &mut Ops<'_, '_>) {
        for (place, item) in shadow.items.iter().enumerate() {
            if T::stamps(item).after(lens) {
                ops.element(place, |ops| T::tree_patch(item, lens, ops));
            }
        }
    }

    fn shadow_digest(shadow: &Self::Shadow, lens: Lens) -> u64 {
        if lens.part == Part::Owned && !T::HAS_OWNED {
            return 0;
        }
        digest::of_elements(shadow.items.iter().map(|item| T::shadow_digest(item, lens)))
    }
}

impl<T: State, const N: usize> Read for [T; N] {
    fn read_full(reader: &mut Reader<'_>, part: Part) -> Result<Self, DecodeError> {
        from_each(|| T::read_full(reader, part))
    }

    fn read_patch(
        &mut self,
        reader: &mut Reader<'_>,
        part: Part,
        watch: &mut Watch<'_>,
    ) -> Result<(), DecodeError> {
        for place in read_marked(reader, N)? {
            watch.enter_at(place);
            self[place].read_patch(reader, part, watch)?;
            watch.leave();
        }
        Ok(())
    }

    fn read_columns(
        targets: &mut [&mut Self],
        reader: &mut Reader<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<(), DecodeError> {
        for place in read_marked(reader, N)? {
            let mut inner: Vec<&mut T> =
                targets.iter_mut().map(|target| &mut target[place]).collect();
            watch.enter_at(place);
            T::read_columns(&mut inner, reader, watch)?;
            watch.leave();
        }
        Ok(())
    }

    fn empty_maps(&mut self) {
        self.iter_mut().for_each(T::empty_maps);
    }
}

/// The elements at one index of many arrays.
#[derive(Clone, Copy)]
struct InArray<A> {
    at: A,
    item: usize,
}

impl<A: Copy> InArray<A> {
    fn write<'a, T: State>(self, count: usize, lens: Lens, out: &mut Vec<u8>)
    where
        A: Fn(usize) -> &'a ArrayShadow<T::Shadow>,
    {
        let at = move |place| &(self.at)(place).items[self.item];
        let key =
            (0..count).fold(0, |key, place| key | T::column_key(at(place), lens).unwrap_or(0));
        T::write_columns(count, at, key, lens, out);
    }
}

/// Reads a mask of `count` bits. Returns the positions of those that are set.
pub(crate) fn read_marked(
    reader: &mut Reader<'_>,
    count: usize,
) -> Result<Vec<usize>, DecodeError> {
    let at = reader.offset();
    let mask = reader.take(count.div_ceil(8))?;
    let marked: Vec<usize> =
        (0..8 * mask.len()).filter(|place| mask[place / 8] >> (place % 8) & 1 == 1).collect();
    match marked.last() {
        Some(&last) if last >= count => Err(DecodeError::new(
            at,
            format!("element {last} is past the end of an array of {count}"),
        )),
        _ => Ok(marked),
    }
}

fn from_each<T, const N: usize>(
    mut next: impl FnMut() -> Result<T, DecodeError>,
) -> Result<[T; N], DecodeError> {
    let items: Vec<T> = (0..N).map(|_| next()).collect::<Result<_, _>>()?;
    Ok(items.try_into().unwrap_or_else(|_| unreachable!("exactly `N` elements were read")))
}

impl<T: Data, const N: usize> Data for [T; N] {
    fn schema() -> Type {
        Type::Array(Box::new(T::schema()), N)
    }
    fn encode(&self, out: &mut Vec<u8>) {
        const { assert!(N > 0, "an array without elements has nothing to send: give it a length") }
        self.iter().for_each(|item| item.encode(out));
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        from_each(|| T::decode(reader))
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        write_array(out, self.iter(), T::to_tree);
    }
    fn same(&self, other: &Self) -> bool {
        self.iter().zip(other).all(|(one, two)| one.same(two))
    }
    fn from_json(value: &Value) -> Result<Self, DecodeError> {
        let items = value.as_array().filter(|items| items.len() == N);
        let mut items =
            items.ok_or_else(|| unexpected("an array of the length of its type", value))?.iter();
        from_each(|| {
            items.next().map_or_else(|| Err(unexpected("an element", value)), T::from_json)
        })
    }
}
