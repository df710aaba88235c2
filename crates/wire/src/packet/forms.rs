//! Forms that a field of a packet may say that it has.

use super::field::Done;
use super::{Order, PacketError, PacketErrorKind, PacketReader, PacketWriter};

/// An integer that can stand in a packet in LEB128: `#[packet(varint)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not stand in a packet in LEB128",
    label = "no integer of 16 bits and more",
    note = "`#[packet(varint)]` is for `u16` to `u64` and `i16` to `i64`: one of 8 bits takes a byte as it is; leave it off"
)]
pub trait Varint: Sized {
    /// Appends it.
    fn write<O: Order>(self, packet: &mut PacketWriter<'_, O>);

    /// Reads it.
    ///
    /// # Errors
    /// If it isn't there, or doesn't fit the type.
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

/// A text that can stand in a place of so many bytes: `#[packet(padded = …)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not filled up with zeros in a packet",
    label = "no text",
    note = "`#[packet(padded = …)]` is for `&str` and `String`: bytes of one length are a `[u8; N]` or a `&[u8; N]`, without it"
)]
pub trait Padded<'a>: Sized {
    /// Appends it.
    ///
    /// # Errors
    /// If it is longer than its place, or has a zero in it.
    fn write_padded<O: Order>(&self, width: usize, packet: &mut PacketWriter<'_, O>) -> Done;

    /// Reads it.
    ///
    /// # Errors
    /// If it isn't there, or something stands in the padding.
    fn read_padded<O: Order>(
        width: usize,
        packet: &mut PacketReader<'a, O>,
    ) -> Result<Self, PacketError>;
}

/// What can take all bytes that are left: `#[packet(rest)]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't take the rest of a packet",
    label = "no bytes",
    note = "`#[packet(rest)]` is for `&[u8]` and `Vec<u8>`: what they mean is read from them"
)]
pub trait Rest<'a>: Sized {
    /// Appends it.
    fn write_rest<O: Order>(&self, packet: &mut PacketWriter<'_, O>);

    /// Takes it.
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
