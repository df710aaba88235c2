//! Reading packets.

use std::marker::PhantomData;

use super::{Little, Number, Order, PacketError, PacketErrorKind, Prefix};

/// A checked cursor over a packet in the byte order `O`. What it returns borrows from the packet.
/// It never panics.
#[derive(Clone, Debug)]
pub struct PacketReader<'a, O = Little> {
    rest: &'a [u8],
    bytes: usize,
    field: &'static str,
    order: PhantomData<O>,
}

type Read<T> = Result<T, PacketError>;

macro_rules! gets {
    ($($of:ident $about:literal;)*) => {$(
        #[doc = $about]
        ///
        /// # Errors
        /// If fewer bytes remain.
        #[inline]
        pub fn $of(&mut self) -> Read<$of> {
            self.get()
        }
    )*};
}

impl<'a, O: Order> PacketReader<'a, O> {
    /// A reader at the first byte of `packet`.
    #[inline]
    #[must_use]
    pub fn new(packet: &'a [u8]) -> Self {
        Self { rest: packet, bytes: packet.len(), field: "", order: PhantomData }
    }

    /// Names the field that is read next, for errors.
    #[inline]
    pub fn at(&mut self, field: &'static str) -> &mut Self {
        self.field = field;
        self
    }

    /// Returns the number of bytes read so far.
    #[inline]
    #[must_use]
    pub fn offset(&self) -> usize {
        self.bytes - self.rest.len()
    }

    /// Returns the number of bytes left.
    #[inline]
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.rest.len()
    }

    /// A number of any width.
    ///
    /// # Errors
    /// If fewer bytes remain.
    #[inline]
    pub fn get<N: Number>(&mut self) -> Read<N> {
        let Some((bytes, rest)) = N::split(self.rest) else { return Err(self.truncated(N::NAME)) };
        self.rest = rest;
        Ok(N::from_bytes::<O>(bytes))
    }

    gets! {
        u8 "One byte.";
        u16 "Two bytes.";
        u32 "Four bytes.";
        u64 "Eight bytes.";
        i8 "One byte, in two's complement.";
        i16 "Two bytes, in two's complement.";
        i32 "Four bytes, in two's complement.";
        i64 "Eight bytes, in two's complement.";
        f32 "Four bytes, as IEEE 754 has them.";
        f64 "Eight bytes, as IEEE 754 has them.";
    }

    /// One byte, 0 or 1.
    ///
    /// # Errors
    /// If none remains, or it is neither 0 nor 1.
    #[inline]
    pub fn bool(&mut self) -> Read<bool> {
        match self.rest.split_first() {
            Some((byte @ (0 | 1), rest)) => {
                self.rest = rest;
                Ok(*byte == 1)
            }
            Some((&value, _)) => Err(self.error(PacketErrorKind::Bool { value })),
            None => Err(self.truncated("a bool")),
        }
    }

    /// An unsigned number in LEB128, in its shortest form.
    ///
    /// # Errors
    /// If it is truncated, not in its shortest form, or longer than 64 bits.
    #[inline]
    pub fn varint(&mut self) -> Read<u64> {
        match self.rest.split_first() {
            Some((&byte, rest)) if byte < 0x80 => {
                self.rest = rest;
                Ok(byte.into())
            }
            _ => self.varint_of_many(),
        }
    }

    #[inline(never)]
    fn varint_of_many(&mut self) -> Read<u64> {
        let mut reader = crate::reader::Reader::new(self.rest);
        match reader.varint() {
            Ok(value) => {
                self.rest = &self.rest[reader.offset()..];
                Ok(value)
            }
            Err(error) if error.is_truncated() => Err(self.truncated("a varint")),
            Err(_) => Err(self.error(PacketErrorKind::Varint)),
        }
    }

    /// A signed number, from the varint `(value << 1) ^ (value >> 63)`.
    ///
    /// # Errors
    /// As [`varint`](Self::varint).
    #[inline]
    pub fn zigzag(&mut self) -> Read<i64> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// If fewer remain.
    #[inline]
    pub fn raw(&mut self, count: usize) -> Read<&'a [u8]> {
        let Some((taken, rest)) = self.rest.split_at_checked(count) else {
            let kind =
                PacketErrorKind::PastEnd { announced: count as u64, remain: self.remaining() };
            return Err(self.error(kind));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// The next `N` bytes.
    ///
    /// # Errors
    /// If fewer remain.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Read<&'a [u8; N]> {
        let Some((taken, rest)) = self.rest.split_first_chunk() else {
            let kind = PacketErrorKind::PastEnd { announced: N as u64, remain: self.remaining() };
            return Err(self.error(kind));
        };
        self.rest = rest;
        Ok(taken)
    }

    /// All bytes that remain.
    #[inline]
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    /// Length-prefixed bytes.
    ///
    /// # Errors
    /// If they are truncated.
    #[inline]
    pub fn bytes(&mut self, prefix: Prefix) -> Read<&'a [u8]> {
        let length = self.length(prefix, 1)?;
        self.raw(length)
    }

    /// A text, prefixed by its length in bytes.
    ///
    /// # Errors
    /// If it is truncated or not UTF-8.
    #[inline]
    pub fn text(&mut self, prefix: Prefix) -> Read<&'a str> {
        let bytes = self.bytes(prefix)?;
        self.utf8(bytes)
    }

    /// A text of this width in bytes, padded with zeros.
    ///
    /// # Errors
    /// If it is truncated or not UTF-8, or if anything but zeros follows its first zero.
    pub fn padded(&mut self, width: usize) -> Read<&'a str> {
        let place = self.raw(width)?;
        let end = place.iter().position(|byte| *byte == 0).unwrap_or(width);
        let (text, padding) = place.split_at(end);
        if let Some(at) = padding.iter().position(|byte| *byte != 0) {
            let offset = self.offset() - padding.len() + at;
            return Err(PacketError::new(
                offset,
                self.field,
                PacketErrorKind::Padding { value: padding[at] },
            ));
        }
        std::str::from_utf8(text).map_err(|error| {
            let offset = self.offset() - width + error.valid_up_to();
            PacketError::new(offset, self.field, PacketErrorKind::NotUtf8)
        })
    }

    /// A length, or the number of a list's elements, each of which takes at least `least` bytes.
    ///
    /// # Errors
    /// If it is truncated, or announces more than the remaining bytes can hold. So nothing is
    /// allocated for what was not sent.
    #[inline]
    pub fn length(&mut self, prefix: Prefix, least: usize) -> Read<usize> {
        let before = self.clone();
        let announced = match prefix {
            Prefix::U8 => self.u8()?.into(),
            Prefix::U16 => self.u16()?.into(),
            Prefix::U32 => self.u32()?.into(),
            Prefix::Varint => self.varint()?,
        };
        let remain = self.remaining();
        match usize::try_from(announced) {
            Ok(length) if length.checked_mul(least).is_some_and(|bytes| bytes <= remain) => {
                Ok(length)
            }
            _ => {
                *self = before;
                Err(self.error(PacketErrorKind::PastEnd { announced, remain }))
            }
        }
    }

    /// Checks that all bytes have been read.
    ///
    /// # Errors
    /// If bytes are left.
    #[inline]
    pub fn finish(self) -> Read<()> {
        match self.remaining() {
            0 => Ok(()),
            remain => Err(self.error(PacketErrorKind::Trailing { remain })),
        }
    }

    #[inline]
    fn utf8(&self, bytes: &'a [u8]) -> Read<&'a str> {
        std::str::from_utf8(bytes).map_err(|error| {
            let offset = self.offset() - bytes.len() + error.valid_up_to();
            PacketError::new(offset, self.field, PacketErrorKind::NotUtf8)
        })
    }

    #[cold]
    fn truncated(&self, expected: &'static str) -> PacketError {
        self.error(PacketErrorKind::Truncated { expected, remain: self.remaining() })
    }

    /// An error for the value that is read next.
    #[cold]
    pub fn error(&self, kind: PacketErrorKind) -> PacketError {
        PacketError::new(self.offset(), self.field, kind)
    }
}
