//! Writing packets.

use std::marker::PhantomData;

use super::{Little, Number, Order, PacketError, PacketErrorKind, Prefix};
use crate::writer::put_varint;

/// Appends the parts of a packet to a buffer, in the byte order `O`.
///
/// Writing can't fail, except for lengths that are too large for their prefix.
#[derive(Debug)]
pub struct PacketWriter<'o, O = Little> {
    out: &'o mut Vec<u8>,
    start: usize,
    field: &'static str,
    order: PhantomData<O>,
}

/// The place reserved for a number that is written later.
#[derive(Debug)]
#[must_use = "it is zero until it is set"]
pub struct Later<N> {
    at: usize,
    of: PhantomData<N>,
}

macro_rules! puts {
    ($($of:ident $about:literal;)*) => {$(
        #[doc = $about]
        #[inline]
        pub fn $of(&mut self, value: $of) {
            self.put(value);
        }
    )*};
}

impl<'o, O: Order> PacketWriter<'o, O> {
    /// Creates a writer that appends to `out`.
    #[inline]
    pub fn new(out: &'o mut Vec<u8>) -> Self {
        let start = out.len();
        Self { out, start, field: "", order: PhantomData }
    }

    /// Names the field that is written next, for errors.
    #[inline]
    pub fn at(&mut self, field: &'static str) -> &mut Self {
        self.field = field;
        self
    }

    /// Returns the length of the packet so far, in bytes.
    #[must_use]
    #[inline]
    pub fn bytes_written(&self) -> usize {
        self.out.len() - self.start
    }

    /// A number of any width.
    #[inline]
    pub fn put<N: Number>(&mut self, value: N) {
        self.out.extend_from_slice(value.to_bytes::<O>().as_ref());
    }

    /// Numbers one after the other.
    #[inline]
    pub fn numbers<N: Number>(&mut self, all: &[N]) {
        let start = self.out.len();
        self.out.resize(start + all.len() * N::BYTES, 0);
        for (place, value) in self.out[start..].chunks_exact_mut(N::BYTES).zip(all) {
            place.copy_from_slice(value.to_bytes::<O>().as_ref());
        }
    }

    puts! {
        u8 "One byte.";
        u16 "Two bytes.";
        u32 "Four bytes.";
        u64 "Eight bytes.";
        i8 "One byte, in two's complement.";
        i16 "Two bytes, in two's complement.";
        i32 "Four bytes, in two's complement.";
        i64 "Eight bytes, in two's complement.";
        f32 "Four bytes, as IEEE 754 has them; those of a NaN are kept.";
        f64 "Eight bytes, as IEEE 754 has them; those of a NaN are kept.";
    }

    /// One byte, 0 or 1.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.out.push(value.into());
    }

    /// An unsigned number in LEB128, in its shortest form: 1 to 10 bytes.
    #[inline]
    pub fn varint(&mut self, value: u64) {
        put_varint(self.out, value);
    }

    /// A signed number as the varint `(value << 1) ^ (value >> 63)`.
    #[inline]
    pub fn zigzag(&mut self, value: i64) {
        crate::writer::put_zigzag(self.out, value);
    }

    /// Bytes as they are, without a length.
    #[inline]
    pub fn raw(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    /// Length-prefixed bytes.
    ///
    /// # Errors
    /// If there are more than the prefix allows. Nothing is written then.
    #[inline]
    pub fn bytes(&mut self, prefix: Prefix, bytes: &[u8]) -> Result<(), PacketError> {
        self.length(prefix, bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// A text, prefixed by its length in bytes.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes).
    #[inline]
    pub fn text(&mut self, prefix: Prefix, text: &str) -> Result<(), PacketError> {
        self.bytes(prefix, text.as_bytes())
    }

    /// A text of this width in bytes, padded with zeros.
    ///
    /// # Errors
    /// If it is longer, or contains a zero, which a reader would take for its end. Nothing is
    /// written then.
    pub fn padded(&mut self, text: &str, width: usize) -> Result<(), PacketError> {
        if text.len() > width {
            return Err(self.error(PacketErrorKind::TooLong { length: text.len(), max: width }));
        }
        if text.as_bytes().contains(&0) {
            return Err(self.error(PacketErrorKind::ZeroInText));
        }
        self.out.extend_from_slice(text.as_bytes());
        self.out.resize(self.out.len() + width - text.len(), 0);
        Ok(())
    }

    /// A length, or the number of a list's elements.
    ///
    /// # Errors
    /// If it is more than the prefix allows. Nothing is written then.
    #[inline]
    pub fn length(&mut self, prefix: Prefix, length: usize) -> Result<(), PacketError> {
        if length > prefix.max() {
            return Err(self.error(PacketErrorKind::TooLong { length, max: prefix.max() }));
        }
        match prefix {
            Prefix::U8 => self.put(length as u8),
            Prefix::U16 => self.put(length as u16),
            Prefix::U32 => self.put(length as u32),
            Prefix::Varint => self.varint(length as u64),
        }
        Ok(())
    }

    /// Reserves space for a number that is not known yet: a count, a length, a checksum.
    #[inline]
    pub fn later<N: Number>(&mut self) -> Later<N> {
        let at = self.bytes_written();
        self.out.extend_from_slice(N::Bytes::default().as_ref());
        Later { at, of: PhantomData }
    }

    /// Writes a number into its reserved space. A place past the end of this packet is ignored.
    #[inline]
    pub fn set<N: Number>(&mut self, place: Later<N>, value: N) {
        let at = self.start + place.at;
        if let Some(room) = self.out.get_mut(at..at + N::BYTES) {
            room.copy_from_slice(value.to_bytes::<O>().as_ref());
        }
    }

    /// Returns the number of bytes after the space reserved for a number.
    #[must_use]
    #[inline]
    pub fn bytes_since<N: Number>(&self, place: &Later<N>) -> usize {
        self.bytes_written().saturating_sub(place.at + N::BYTES)
    }

    #[cold]
    fn error(&self, kind: PacketErrorKind) -> PacketError {
        PacketError::new(self.bytes_written(), self.field, kind)
    }
}
