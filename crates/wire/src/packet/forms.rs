//! Encodings that a packet field can choose.

use super::field::Done;
use super::{Order, PacketError, PacketErrorKind, PacketReader, PacketWriter};

/// An integer that can be written in LEB128: `#[packet(varint)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be written in LEB128",
    label = "not an integer of at least 16 bits",
    note = "`#[packet(varint)]` is for `u16` to `u64` and `i16` to `i64`; an 8-bit integer always takes one byte: remove it"
)]
pub trait Varint: Sized {
    /// Appends it.
    fn write<O: Order>(self, packet: &mut PacketWriter<'_, O>);

    /// Reads it.
    ///
    /// # Errors
    /// If the bytes are not a varint, or it doesn't fit the type.
    fn read<O: Order>(packet: &mut PacketReader<'_, O>) -> Result<Self, PacketError>;
}

macro_rules! varints {
    ($($of:ident $method:ident $wide:ident;)*) => {$(
        impl Varint for $of {
            #[inline]
            fn write<O: Order>(self, packet: &mut PacketWriter<'_, O>) {
                packet.$method($wide::from(self));
            }

            #[inline]
            fn read<O: Order>(packet: &mut PacketReader<'_, O>) -> Result<Self, PacketError> {
                let before = packet.clone();
                let value = packet.$method()?;
                Self::try_from(value).map_err(|_| before.error(PacketErrorKind::Varint))
            }
        }
    )*};
}

varints! {
    u16 varint u64;
    u32 varint u64;
    u64 varint u64;
    i16 zigzag i64;
    i32 zigzag i64;
    i64 zigzag i64;
}

/// A text of fixed width in bytes: `#[packet(padded = …)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be padded with zeros in a packet",
    label = "not a text",
    note = "`#[packet(padded = …)]` is for `&str` and `String`: for bytes of a fixed length, use a `[u8; N]` or a `&[u8; N]` without it"
)]
pub trait Padded<'a>: Sized {
    /// Appends it.
    ///
    /// # Errors
    /// If it is longer than its width, or contains a zero.
    fn write_padded<O: Order>(&self, width: usize, packet: &mut PacketWriter<'_, O>) -> Done;

    /// Reads it.
    ///
    /// # Errors
    /// If bytes are missing, or the padding is not all zeros.
    fn read_padded<O: Order>(
        width: usize,
        packet: &mut PacketReader<'a, O>,
    ) -> Result<Self, PacketError>;
}

/// A value that can take all remaining bytes: `#[packet(rest)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't take the rest of a packet",
    label = "not bytes",
    note = "`#[packet(rest)]` is for `&[u8]` and `Vec<u8>`: parse their content yourself"
)]
pub trait Rest<'a>: Sized {
    /// Appends it.
    fn write_rest<O: Order>(&self, packet: &mut PacketWriter<'_, O>);

    /// Reads it.
    fn read_rest<O: Order>(packet: &mut PacketReader<'a, O>) -> Self;
}

macro_rules! padded {
    ($($of:ty)*) => {$(
        impl<'a> Padded<'a> for $of {
            #[inline]
            fn write_padded<O: Order>(&self, width: usize, packet: &mut PacketWriter<'_, O>) -> Done {
                packet.padded(self, width)
            }

            #[inline]
            fn read_padded<O: Order>(
                width: usize,
                packet: &mut PacketReader<'a, O>,
            ) -> Result<Self, PacketError> {
                packet.padded(width).map(Self::from)
            }
        }
    )*};
}

padded! { &'a str String }

macro_rules! rest {
    ($($of:ty)*) => {$(
        impl<'a> Rest<'a> for $of {
            #[inline]
            fn write_rest<O: Order>(&self, packet: &mut PacketWriter<'_, O>) {
                packet.raw(self);
            }

            #[inline]
            fn read_rest<O: Order>(packet: &mut PacketReader<'a, O>) -> Self {
                packet.rest().into()
            }
        }
    )*};
}

rest! { &'a [u8] Vec<u8> }
