//! Values that are compared and sent as a whole.

use playfield_wire::reader::Reader;
use playfield_wire::schema::Type;
use playfield_wire::tree::{TreeWriter, read_value};
use playfield_wire::{DecodeError, TreeFormat};
use serde_json::Value;

use crate::change::Watch;
use crate::data::Data;
use crate::lens::{Changed, Lens, Sight, Stamp, Stamps, Step, Tracking};
use crate::ops::Ops;
use crate::quantized::{Float, Quantize, Quantized};
use crate::set::Present;
use crate::slots::Bind;
use crate::state::{Compare, Describe, Read, Write};
use crate::walk::PlainJson as Plain;
use crate::{Bytes, Part, PlayerId, column};

/// A value that is compared and sent as a whole. For generated code.
pub trait Atomic: Data + Clone + 'static {
    /// Its values take few bytes; see [`Describe::FIXED`].
    const FIXED: bool = false;

    /// The value as JSON.
    fn json(&self) -> Value {
        tree(self, TreeFormat::Json)
    }

    /// Appends the values at the places up to `count`, as a column.
    #[inline]
    fn put_column<'a>(out: &mut Vec<u8>, count: usize, at: impl Fn(usize) -> &'a Self) {
        column::put_each(out, count, at);
    }

    /// Reads what [`put_column`](Self::put_column) wrote, and passes each value to `set`.
    ///
    /// # Errors
    /// Anything but a column of `count` such values.
    fn get_column(
        reader: &mut Reader<'_>,
        count: usize,
        set: impl FnMut(usize, Self),
    ) -> Result<(), DecodeError> {
        column::get_each(reader, count, set)
    }
}

macro_rules! integers {
    ($($type:ty $(where [$($bounds:tt)*])?, $json:expr;)*) => {$(
        integers! { @one ($type) ($($($bounds)*)?) $json }
    )*};
    (@one ($type:ty) ($($bounds:tt)*) $json:expr) => {
        impl $($bounds)* Atomic for $type {
            const FIXED: bool = true;

            fn json(&self) -> Value {
                $json(self)
            }
            #[inline]
            fn put_column<'a>(out: &mut Vec<u8>, count: usize, at: impl Fn(usize) -> &'a Self) {
                column::put(out, count, at);
            }
            fn get_column(
                reader: &mut Reader<'_>,
                count: usize,
                set: impl FnMut(usize, Self),
            ) -> Result<(), DecodeError> {
                column::get(reader, count, set)
            }
        }
    };
}

integers! {
    bool, plain; u8, plain; u16, plain; u32, plain; u64, plain;
    i8, plain; i16, plain; i32, plain; i64, plain; PlayerId, plain;
    Quantized<F, Q> where [<F: Float + Data, Q: Quantize>], |of| tree(of, TreeFormat::Json);
}

impl Atomic for f32 {
    const FIXED: bool = true;
}

impl Atomic for f64 {
    const FIXED: bool = true;

    fn json(&self) -> Value {
        plain(self)
    }
}

impl Atomic for String {
    fn json(&self) -> Value {
        plain(self)
    }
}

impl Atomic for Bytes {}

impl Atomic for Present {}

/// The shadow of a value that is compared and sent as a whole.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<T> {
    value: T,
    stamp: Stamp,
}

#[diagnostic::do_not_recommend]
impl<T: Atomic> Describe for T {
    const COLUMN: bool = true;
    const PLAIN: bool = true;
    const REPORTS: bool = true;
    const FIXED: bool = <T as Atomic>::FIXED;

    fn shape() -> Type {
        <T as Data>::schema()
    }
}

#[diagnostic::do_not_recommend]
impl<T: Atomic> Compare for T {
    type Shadow = Leaf<T>;

    #[inline]
    fn bind<B: Bind>(&mut self, bind: B) -> Leaf<T> {
        Leaf { value: self.clone(), stamp: Stamp::new(bind.now()) }
    }
    #[inline]
    fn diff(&mut self, shadow: &mut Leaf<T>, step: Step) -> Changed {
        if shadow.value.same(self) {
            return Changed::NO;
        }
        shadow.value.clone_from(self);
        shadow.stamp = Stamp::new(step.now);
        Changed { shared: true, owned: false }
    }
    #[inline]
    fn same_shared(&self, shadow: &Leaf<T>, _: Tracking) -> bool {
        shadow.value.same(self)
    }
    #[inline]
    fn stamps(shadow: &Leaf<T>) -> Stamps {
        Stamps::of_shared(shadow.stamp)
    }
    #[inline]
    fn digest(&self, _: Part) -> u64 {
        Data::digest(self)
    }
    fn view(&self, sight: Sight<'_>) -> Value {
        tree(self, sight.format)
    }
}

#[diagnostic::do_not_recommend]
impl<T: Atomic> Write for T {
    #[inline]
    fn write_full(shadow: &Leaf<T>, _: Lens, out: &mut Vec<u8>) {
        shadow.value.encode(out);
    }
    #[inline]
    fn write_patch(shadow: &Leaf<T>, _: Lens, out: &mut Vec<u8>) -> bool {
        shadow.value.encode(out);
        true
    }
    #[inline]
    fn column_key(_: &Leaf<T>, _: Lens) -> Option<u64> {
        Some(1)
    }
    #[inline]
    fn write_columns<'a>(
        count: usize,
        at: impl Fn(usize) -> &'a Leaf<T> + Copy,
        _: u64,
        _: Lens,
        out: &mut Vec<u8>,
    ) {
        T::put_column(out, count, |place| &at(place).value);
    }
    fn tree_full(shadow: &Leaf<T>, _: Lens, out: TreeWriter<'_>) {
        shadow.value.to_tree(out);
    }
    fn tree_patch(shadow: &Leaf<T>, _: Lens, ops: &mut Ops<'_, '_>) {
        ops.set(|out| shadow.value.to_tree(out));
    }
    fn shadow_digest(shadow: &Leaf<T>, lens: Lens) -> u64 {
        if lens.part == Part::Owned { 0 } else { Data::digest(&shadow.value) }
    }
}

#[diagnostic::do_not_recommend]
impl<T: Atomic> Read for T {
    #[inline]
    fn read_full(reader: &mut Reader<'_>, _: Part) -> Result<T, DecodeError> {
        T::decode(reader)
    }
    #[inline]
    fn read_patch(
        &mut self,
        reader: &mut Reader<'_>,
        _: Part,
        watch: &mut Watch<'_>,
    ) -> Result<(), DecodeError> {
        replace(self, T::decode(reader)?, watch);
        Ok(())
    }
    fn read_columns(
        targets: &mut [&mut T],
        reader: &mut Reader<'_>,
        watch: &mut Watch<'_>,
    ) -> Result<(), DecodeError> {
        if !watch.listens() {
            return T::get_column(reader, targets.len(), |place, value| *targets[place] = value);
        }
        T::get_column(reader, targets.len(), |place, value| {
            watch.select(place);
            replace(targets[place], value, watch);
        })
    }
}

#[inline]
fn replace<T: Atomic>(value: &mut T, new: T, watch: &mut Watch<'_>) {
    if watch.listens() && !value.same(&new) {
        watch.replaced(None, &value.json(), &new.json());
    }
    *value = new;
}

/// A value that is neither a struct nor an enum, as JSON.
fn plain(value: &(impl Plain + Clone)) -> Value {
    value.clone().into_json()
}

/// A value as it is in a copy read from this format.
fn tree(value: &impl Data, format: TreeFormat) -> Value {
    let mut bytes = Vec::new();
    value.to_tree(TreeWriter::new(format, &mut bytes));
    // `to_tree` must write a valid tree. If an implementation doesn't, the string shows the error.
    read_value(format, &bytes).unwrap_or_else(|error| Value::String(error.to_string()))
}
