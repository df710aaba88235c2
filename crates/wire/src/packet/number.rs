//! Numbers of a fixed width, in either byte order.

use std::fmt;

/// The order of a number's bytes.
pub trait Order: Copy + fmt::Debug + Default + 'static {
    /// Whether the most significant byte comes first.
    const BIG: bool;
}

/// Little endian: the least significant byte first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Little;

/// Big endian: the most significant byte first, which RFCs call network byte order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Big;

impl Order for Little {
    const BIG: bool = false;
}

impl Order for Big {
    const BIG: bool = true;
}

/// A number of a fixed width: `u8` to `u64`, `i8` to `i64`, `f32`, `f64`.
pub trait Number: Copy + PartialEq + fmt::Debug {
    /// Its name, for errors.
    const NAME: &'static str;
    /// Its size in bytes.
    const BYTES: usize;
    /// Its bytes.
    type Bytes: Copy + AsRef<[u8]> + AsMut<[u8]> + Default;

    /// Its bytes, in this order.
    fn to_bytes<O: Order>(self) -> Self::Bytes;

    /// The number whose bytes these are.
    fn from_bytes<O: Order>(bytes: Self::Bytes) -> Self;

    /// The bytes at the front, and the remaining ones.
    fn split(bytes: &[u8]) -> Option<(Self::Bytes, &[u8])>;

    /// The value of an integer, or the bits of a float.
    fn bits(self) -> u64;
}

macro_rules! numbers {
    ($($of:ident $bytes:literal, $bits:expr;)*) => {$(
        impl Number for $of {
            const NAME: &'static str = stringify!($of);
            const BYTES: usize = $bytes;
            type Bytes = [u8; $bytes];

            #[inline]
            fn to_bytes<O: Order>(self) -> [u8; $bytes] {
                if O::BIG { self.to_be_bytes() } else { self.to_le_bytes() }
            }

            #[inline]
            fn from_bytes<O: Order>(bytes: [u8; $bytes]) -> Self {
                if O::BIG { Self::from_be_bytes(bytes) } else { Self::from_le_bytes(bytes) }
            }

            #[inline]
            fn split(bytes: &[u8]) -> Option<([u8; $bytes], &[u8])> {
                bytes.split_first_chunk().map(|(front, behind)| (*front, behind))
            }

            fn bits(self) -> u64 {
                let bits: fn($of) -> u64 = $bits;
                bits(self)
            }
        }
    )*};
}

numbers! {
    u8 1, u64::from;
    u16 2, u64::from;
    u32 4, u64::from;
    u64 8, |number| number;
    i8 1, |number| i64::from(number).cast_unsigned();
    i16 2, |number| i64::from(number).cast_unsigned();
    i32 4, |number| i64::from(number).cast_unsigned();
    i64 8, i64::cast_unsigned;
    f32 4, |number| number.to_bits().into();
    f64 8, f64::to_bits;
}
