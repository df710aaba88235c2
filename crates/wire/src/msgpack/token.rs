//! A cursor over MessagePack.

use rmp::Marker;

use crate::error::{DecodeError, Kind};

/// A checked cursor. It never panics, and never announces more than there are bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// A scalar value, or the head of an array or a map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Token<'a> {
    Null,
    Bool(bool),
    Unsigned(u64),
    /// Below 0.
    Negative(i64),
    F32(f32),
    F64(f64),
    /// Not checked for UTF-8 yet.
    Text(&'a [u8]),
    Bytes(&'a [u8]),
    /// This many values follow.
    Array(usize),
    /// This many pairs of values follow.
    Map(usize),
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Returns the number of bytes read so far.
    pub(super) fn offset(&self) -> usize {
        self.at
    }

    pub(super) fn remaining(&self) -> usize {
        self.bytes.len() - self.at
    }

    /// The next value, or its head.
    pub(super) fn token(&mut self) -> Result<Token<'a>, DecodeError> {
        let at = self.at;
        let [byte] = self.array("a value")?;
        Ok(match Marker::from_u8(byte) {
            Marker::Null => Token::Null,
            Marker::False => Token::Bool(false),
            Marker::True => Token::Bool(true),
            Marker::FixPos(value) => Token::Unsigned(value.into()),
            Marker::FixNeg(value) => signed(value.into()),
            Marker::U8 => Token::Unsigned(self.array("an integer").map(u8::from_be_bytes)?.into()),
            Marker::U16 => {
                Token::Unsigned(self.array("an integer").map(u16::from_be_bytes)?.into())
            }
            Marker::U32 => {
                Token::Unsigned(self.array("an integer").map(u32::from_be_bytes)?.into())
            }
            Marker::U64 => Token::Unsigned(self.array("an integer").map(u64::from_be_bytes)?),
            Marker::I8 => signed(self.array("an integer").map(i8::from_be_bytes)?.into()),
            Marker::I16 => signed(self.array("an integer").map(i16::from_be_bytes)?.into()),
            Marker::I32 => signed(self.array("an integer").map(i32::from_be_bytes)?.into()),
            Marker::I64 => signed(self.array("an integer").map(i64::from_be_bytes)?),
            Marker::F32 => Token::F32(self.array("a float").map(f32::from_be_bytes)?),
            Marker::F64 => Token::F64(self.array("a float").map(f64::from_be_bytes)?),
            Marker::FixStr(length) => Token::Text(self.take(at, "text", length.into())?),
            Marker::Str8 => Token::Text(self.announced_u8(at, "text")?),
            Marker::Str16 => Token::Text(self.announced_u16(at, "text")?),
            Marker::Str32 => Token::Text(self.announced_u32(at, "text")?),
            Marker::Bin8 => Token::Bytes(self.announced_u8(at, "byte string")?),
            Marker::Bin16 => Token::Bytes(self.announced_u16(at, "byte string")?),
            Marker::Bin32 => Token::Bytes(self.announced_u32(at, "byte string")?),
            Marker::FixArray(count) => Token::Array(self.count(at, "list", count.into(), 1)?),
            Marker::Array16 => {
                let count = self.array("a count").map(u16::from_be_bytes)?;
                Token::Array(self.count(at, "list", count.into(), 1)?)
            }
            Marker::Array32 => {
                let count = self.array("a count").map(u32::from_be_bytes)?;
                Token::Array(self.count(at, "list", count, 1)?)
            }
            Marker::FixMap(count) => Token::Map(self.count(at, "map", count.into(), 2)?),
            Marker::Map16 => {
                let count = self.array("a count").map(u16::from_be_bytes)?;
                Token::Map(self.count(at, "map", count.into(), 2)?)
            }
            Marker::Map32 => {
                let count = self.array("a count").map(u32::from_be_bytes)?;
                Token::Map(self.count(at, "map", count, 2)?)
            }
            Marker::FixExt1
            | Marker::FixExt2
            | Marker::FixExt4
            | Marker::FixExt8
            | Marker::FixExt16
            | Marker::Ext8
            | Marker::Ext16
            | Marker::Ext32
            | Marker::Reserved => {
                return Err(DecodeError::new(
                    at,
                    format!("{byte:#04x} begins an extension type, which is not supported"),
                ));
            }
        })
    }

    /// Skips one value of any type, without recursion.
    pub(super) fn skip(&mut self) -> Result<(), DecodeError> {
        let mut pending = 1_usize;
        while pending > 0 {
            let at = self.at;
            pending -= 1;
            // Each value takes at least one byte, so the sum stays below the number of bytes.
            match self.token()? {
                Token::Array(count) => pending += count,
                Token::Map(count) => pending += 2 * count,
                _ => {}
            }
            if pending > self.remaining() {
                let (announced, remain) = (pending as u64, self.remaining());
                let kind = Kind::PastEnd { what: "tree", unit: "values", announced, remain };
                return Err(DecodeError::of(at, kind));
            }
        }
        Ok(())
    }

    /// The bytes of one value.
    pub(super) fn slice(&mut self) -> Result<&'a [u8], DecodeError> {
        let start = self.at;
        self.skip()?;
        Ok(&self.bytes[start..self.at])
    }

    /// Checks that all bytes have been read.
    pub(super) fn finish(self) -> Result<(), DecodeError> {
        match self.remaining() {
            0 => Ok(()),
            remain => Err(DecodeError::of(self.at, Kind::Trailing { remain })),
        }
    }

    fn array<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N], DecodeError> {
        let Some(array) = self.bytes[self.at..].first_chunk::<N>() else {
            return Err(DecodeError::of(
                self.at,
                Kind::Missing { expected, remain: self.remaining() },
            ));
        };
        self.at += N;
        Ok(*array)
    }

    fn announced_u8(&mut self, at: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let length = self.array("a length").map(u8::from_be_bytes)?;
        self.take(at, what, length.into())
    }

    fn announced_u16(&mut self, at: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let length = self.array("a length").map(u16::from_be_bytes)?;
        self.take(at, what, length.into())
    }

    fn announced_u32(&mut self, at: usize, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let length = self.array("a length").map(u32::from_be_bytes)?;
        self.take(at, what, length)
    }

    fn take(
        &mut self,
        at: usize,
        what: &'static str,
        length: u32,
    ) -> Result<&'a [u8], DecodeError> {
        let length = self.checked(at, what, "bytes", length, 1)?;
        let taken = &self.bytes[self.at..self.at + length];
        self.at += length;
        Ok(taken)
    }

    fn count(
        &self,
        at: usize,
        what: &'static str,
        count: u32,
        bytes: usize,
    ) -> Result<usize, DecodeError> {
        self.checked(at, what, if bytes == 1 { "elements" } else { "members" }, count, bytes)
    }

    /// A count of things that each take at least this many bytes.
    fn checked(
        &self,
        at: usize,
        what: &'static str,
        unit: &'static str,
        announced: u32,
        bytes: usize,
    ) -> Result<usize, DecodeError> {
        let remain = self.remaining();
        match usize::try_from(announced) {
            Ok(number) if number <= remain / bytes => Ok(number),
            _ => Err(DecodeError::of(
                at,
                Kind::PastEnd { what, unit, announced: announced.into(), remain },
            )),
        }
    }
}

/// An integer in a signed form. It may still be positive.
fn signed<'a>(value: i64) -> Token<'a> {
    u64::try_from(value).map_or(Token::Negative(value), Token::Unsigned)
}
