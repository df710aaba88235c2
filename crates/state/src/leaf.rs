//! Values that are compared and sent whole.

use playfield_wire::reader::Reader;
use playfield_wire::schema::Type;
use playfield_wire::tree::{TreeWriter, read_value};
use playfield_wire::{DecodeError, TreeFormat};
use serde_json::Value;

use crate::data::Data;
use crate::lens::{Changed, Lens, Sight, Stamp, Stamps, Step, Tracking};
use crate::ops::Ops;
use crate::quantized::{Float, Quantize, Quantized};
use crate::set::Present;
use crate::{Bytes, Part, PlayerId, State, column};

/// The shadow of a value that is compared and sent whole.
#[derive(Clone, Copy, Debug)]
pub struct Leaf<T> {
    value: T,
    stamp: Stamp,
}

impl<T: Data + Clone> Leaf<T> {
    /// As it is, now.
    #[inline]
    pub fn new(value: &T, now: u64) -> Self {
        Self { value: value.clone(), stamp: Stamp::new(now) }
    }

    /// Takes the value over if it differs.
    #[inline]
    pub fn diff(&mut self, value: &T, step: Step) -> Changed {
        if self.value.same(value) {
            return Changed::NO;
        }
        self.value.clone_from(value);
        self.stamp = Stamp::new(step.now);
        Changed { shared: true, owned: false }
    }

    /// When it last changed.
    #[inline]
    pub fn stamps(&self) -> Stamps {
        Stamps::of_shared(self.stamp)
    }

    /// What was last synced.
    #[inline]
    pub fn value(&self) -> &T {
        &self.value
    }
}

/// A value as the tree that is read of it in this format.
pub fn tree(value: &impl Data, format: TreeFormat) -> Value {
    let mut bytes = Vec::new();
    value.to_tree(TreeWriter::new(format, &mut bytes));
    // What `to_tree` writes is a tree; the alternative keeps a broken impl visible instead of
    // panicking.
    read_value(format, &bytes).unwrap_or_else(|error| Value::String(error.to_string()))
}

/// Makes a type a leaf: it is compared and sent whole.
macro_rules! leaf {
    ($fixed:literal, $put:expr, $get:expr; $($type:ty $(where [$($bounds:tt)*])?;)*) => {$(
        leaf! { @one $fixed, $put, $get; ($type) ($($($bounds)*)?) }
    )*};
    (@one $fixed:literal, $put:expr, $get:expr; ($type:ty) ($($bounds:tt)*)) => {
        impl $($bounds)* State for $type {
            type Shadow = Leaf<Self>;

            const UNOWNED: Option<&'static str> = None;
            const HAS_OWNED: bool = false;
            const NESTED_OWNERS: bool = false;
            const COLUMN: bool = true;
            const PLAIN: bool = true;
            const FIXED: bool = $fixed;

            fn schema() -> Type {
                <Self as Data>::schema()
            }
            #[inline]
            fn bind(&mut self, now: u64) -> Leaf<Self> {
                Leaf::new(self, now)
            }
            #[inline]
            fn diff(&mut self, shadow: &mut Leaf<Self>, step: Step) -> Changed {
                shadow.diff(self, step)
            }
            #[inline]
            fn same_shared(&self, shadow: &Leaf<Self>, _: Tracking) -> bool {
                shadow.value().same(self)
            }
            #[inline]
            fn look(&self) -> u64 {
                Data::digest(self)
            }
            #[inline]
            fn stamps(shadow: &Leaf<Self>) -> Stamps {
                shadow.stamps()
            }
            #[inline]
            fn write_full(shadow: &Leaf<Self>, _: Lens, out: &mut Vec<u8>) {
                shadow.value().encode(out);
            }
            #[inline]
            fn write_patch(shadow: &Leaf<Self>, _: Lens, out: &mut Vec<u8>) -> bool {
                shadow.value().encode(out);
                true
            }
            #[inline]
            fn column_key(_: &Leaf<Self>, _: Lens) -> Option<u64> {
                Some(1)
            }
            #[inline]
            fn write_columns<'a>(
                count: usize,
                at: impl Fn(usize) -> &'a Leaf<Self> + Copy,
                _: u64,
                _: Lens,
                out: &mut Vec<u8>,
            ) {
                $put(out, count, |place| at(place).value());
            }
            fn tree_full(shadow: &Leaf<Self>, _: Lens, out: TreeWriter<'_>) {
                shadow.value().to_tree(out);
            }
            fn tree_patch(shadow: &Leaf<Self>, _: Lens, ops: &mut Ops<'_, '_>) {
                ops.set(|out| shadow.value().to_tree(out));
            }
            #[inline]
            fn read_full(reader: &mut Reader<'_>, _: Part) -> Result<Self, DecodeError> {
                Self::decode(reader)
            }
            #[inline]
            fn read_patch(&mut self, reader: &mut Reader<'_>, _: Part) -> Result<(), DecodeError> {
                *self = Self::decode(reader)?;
                Ok(())
            }
            fn read_columns(targets: &mut [&mut Self], reader: &mut Reader<'_>) -> Result<(), DecodeError> {
                $get(reader, targets.len(), |place: usize, value| *targets[place] = value)
            }
            fn digest(&self) -> u64 {
                Data::digest(self)
            }
            fn shadow_digest(shadow: &Leaf<Self>, lens: Lens) -> u64 {
                if lens.part == Part::Owned { 0 } else { Data::digest(shadow.value()) }
            }
            fn view(&self, sight: Sight) -> Value {
                tree(self, sight.format)
            }
        }
    };
}

leaf! { true, column::put, column::get;
    bool; u8; u16; u32; u64; i8; i16; i32; i64; PlayerId;
    Quantized<F, Q> where [<F: Float + Data, Q: Quantize>];
}
leaf! { true, column::put_each, column::get_each; f32; f64; }
leaf! { false, column::put_each, column::get_each; String; Bytes; Present; }
