//! Reading the primitive types of the format `packed`.

use crate::error::{DecodeError, Kind};

/// A checked cursor over bytes in the format `packed`.
///
/// What it returns borrows from those bytes. It never panics, and never announces more than there
/// are bytes.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader at the start of `bytes`.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, offset: 0 }
    }

    /// Returns the number of bytes read so far.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the number of bytes left.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.offset
    }

    /// The next byte, without reading it.
    #[must_use]
    pub fn peek(&self) -> Option<u8> {
        self.bytes.get(self.offset).copied()
    }

    /// Whether all bytes have been read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }

    /// One byte.
    ///
    /// # Errors
    /// If no byte is left.
    #[inline]
    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        let Some(&byte) = self.bytes.get(self.offset) else {
            return Err(self.missing("a byte"));
        };
        self.offset += 1;
        Ok(byte)
    }

    /// One byte, 0 or 1.
    ///
    /// # Errors
    /// If no byte is left, or it is neither 0 nor 1.
    #[inline]
    pub fn bool(&mut self) -> Result<bool, DecodeError> {
        let at = self.offset;
        match self.bytes.get(at) {
            Some(&byte @ (0 | 1)) => {
                self.offset += 1;
                Ok(byte == 1)
            }
            Some(&value) => Err(DecodeError::of(at, Kind::Bool { value })),
            None => Err(self.missing("a bool")),
        }
    }

    /// An unsigned integer in LEB128, in its shortest form.
    ///
    /// # Errors
    /// If it is truncated, not in its shortest form, or longer than 64 bits.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        match *self.bytes.get(self.offset..).unwrap_or_default() {
            [byte, ..] if byte < 0x80 => {
                self.offset += 1;
                Ok(u64::from(byte))
            }
            [low, high, ..] if (1..0x80).contains(&high) => {
                self.offset += 2;
                Ok(u64::from(low & 0x7f) | u64::from(high) << 7)
            }
            _ => self.varint_of_many(),
        }
    }

    #[inline(never)]
    fn varint_of_many(&mut self) -> Result<u64, DecodeError> {
        let rest = &self.bytes[self.offset..];
        let Some((first, rest)) = rest.split_first_chunk() else {
            return self.varint_byte_by_byte();
        };
        let word = u64::from_le_bytes(*first);
        let last = !word & CONTINUED;
        if last == 0 {
            // Eight bytes hold 56 bits.
            return self.varint_of_most(seven_of_each(word), rest);
        }
        // The bits up to the end of the first byte that is the last.
        let bits = last.trailing_zeros() + 1;
        let value = seven_of_each(word & (u64::MAX >> (64 - bits)));
        let bytes = (bits / 8) as usize;
        if bytes > 1 && value >> (7 * (bytes - 1)) == 0 {
            return Err(DecodeError::of(self.offset, Kind::VarintNotShortest));
        }
        self.offset += bytes;
        Ok(value)
    }

    /// A varint of nine or ten bytes: `value` is that of the first eight, `rest` what follows them.
    fn varint_of_most(&mut self, value: u64, rest: &[u8]) -> Result<u64, DecodeError> {
        let (bytes, high, last) = match *rest {
            [ninth, ..] if ninth < 0x80 => (9, u64::from(ninth), ninth),
            // Nine bytes hold 63 bits. The tenth may only add the last one, and must end the number.
            [_, tenth, ..] if tenth > 1 => {
                return Err(DecodeError::of(self.offset, Kind::VarintOverflow));
            }
            [ninth, tenth, ..] => (10, u64::from(ninth & 0x7f) | u64::from(tenth) << 7, tenth),
            _ => return Err(self.missing("a varint")),
        };
        if last == 0 {
            return Err(DecodeError::of(self.offset, Kind::VarintNotShortest));
        }
        self.offset += bytes;
        Ok(value | high << 56)
    }

    /// A varint near the end of the input, of less than eight bytes.
    fn varint_byte_by_byte(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0;
        for (index, &byte) in self.bytes[self.offset..].iter().enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * index);
            if byte < 0x80 {
                if byte == 0 && index > 0 {
                    return Err(DecodeError::of(self.offset, Kind::VarintNotShortest));
                }
                self.offset += index + 1;
                return Ok(value);
            }
        }
        Err(self.missing("a varint"))
    }

    /// A varint that must fit 32 bits.
    ///
    /// # Errors
    /// As [`varint`](Self::varint), and if it is past `u32::MAX`.
    #[inline]
    pub fn varint_u32(&mut self) -> Result<u32, DecodeError> {
        let at = self.offset;
        let value = self.varint()?;
        u32::try_from(value).map_err(|_| DecodeError::of(at, Kind::PastU32 { value }))
    }

    /// A signed integer.
    ///
    /// # Errors
    /// As [`varint`](Self::varint).
    #[inline]
    pub fn zigzag(&mut self) -> Result<i64, DecodeError> {
        let value = self.varint()?;
        Ok((value >> 1).cast_signed() ^ -(value & 1).cast_signed())
    }

    /// A 32-bit float, little endian.
    ///
    /// # Errors
    /// If fewer than 4 bytes are left.
    #[inline]
    pub fn f32(&mut self) -> Result<f32, DecodeError> {
        self.array("an f32").map(f32::from_le_bytes)
    }

    /// A 64-bit float, little endian.
    ///
    /// # Errors
    /// If fewer than 8 bytes are left.
    #[inline]
    pub fn f64(&mut self) -> Result<f64, DecodeError> {
        self.array("an f64").map(f64::from_le_bytes)
    }

    /// Eight bytes, little endian.
    ///
    /// # Errors
    /// If fewer are left.
    #[inline]
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array("a u64").map(u64::from_le_bytes)
    }

    /// A text: its length in bytes, then UTF-8.
    ///
    /// # Errors
    /// If it is truncated or not UTF-8.
    pub fn text(&mut self) -> Result<&'a str, DecodeError> {
        let bytes = self.announced("text")?;
        let start = self.offset - bytes.len();
        std::str::from_utf8(bytes)
            .map_err(|error| DecodeError::of(start + error.valid_up_to(), Kind::NotUtf8))
    }

    /// Bytes, prefixed by their number.
    ///
    /// # Errors
    /// If they are truncated.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        self.announced("byte string")
    }

    /// The number of elements of a list, each of which takes at least one byte.
    ///
    /// # Errors
    /// As [`varint`](Self::varint), and if there are fewer bytes left than elements announced.
    pub fn count(&mut self) -> Result<usize, DecodeError> {
        self.length("list", "elements")
    }

    /// All bytes that are left.
    pub fn rest(&mut self) -> &'a [u8] {
        let rest = &self.bytes[self.offset..];
        self.offset = self.bytes.len();
        rest
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// If fewer are left.
    #[inline]
    pub fn take(&mut self, count: usize) -> Result<&'a [u8], DecodeError> {
        let Some(taken) = self.bytes[self.offset..].get(..count) else {
            let announced = count as u64;
            let remain = self.remaining();
            let kind = Kind::PastEnd { what: "field", unit: "bytes", announced, remain };
            return Err(DecodeError::of(self.offset, kind));
        };
        self.offset += count;
        Ok(taken)
    }

    /// Checks that all bytes have been read.
    ///
    /// # Errors
    /// If bytes are left.
    #[inline]
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.remaining() {
            0 => Ok(()),
            remain => Err(DecodeError::of(self.offset, Kind::Trailing { remain })),
        }
    }

    fn array<const N: usize>(&mut self, expected: &'static str) -> Result<[u8; N], DecodeError> {
        let Some(array) = self.bytes[self.offset..].first_chunk::<N>() else {
            return Err(self.missing(expected));
        };
        self.offset += N;
        Ok(*array)
    }

    #[inline]
    fn announced(&mut self, what: &'static str) -> Result<&'a [u8], DecodeError> {
        let length = self.length(what, "bytes")?;
        self.take(length)
    }

    /// A count of things that take at least one byte each.
    #[inline]
    fn length(&mut self, what: &'static str, unit: &'static str) -> Result<usize, DecodeError> {
        let at = self.offset;
        let announced = self.varint()?;
        let remain = self.remaining();
        match usize::try_from(announced) {
            Ok(length) if length <= remain => Ok(length),
            _ => Err(DecodeError::of(at, Kind::PastEnd { what, unit, announced, remain })),
        }
    }

    #[cold]
    fn missing(&self, expected: &'static str) -> DecodeError {
        DecodeError::of(self.offset, Kind::Missing { expected, remain: self.remaining() })
    }
}

/// The bit of each byte of a varint that says that another follows.
pub(crate) const CONTINUED: u64 = 0x8080_8080_8080_8080;

/// The lower seven bits of each of eight bytes, side by side.
fn seven_of_each(word: u64) -> u64 {
    let word = word & !CONTINUED;
    let word = (word & 0x00ff_00ff_00ff_00ff) | (word & 0xff00_ff00_ff00_ff00) >> 1;
    let word = (word & 0x0000_ffff_0000_ffff) | (word & 0xffff_0000_ffff_0000) >> 2;
    (word & 0x0000_0000_ffff_ffff) | (word & 0xffff_ffff_0000_0000) >> 4
}

#[cfg(test)]
mod tests {
    use super::Reader;
    use crate::writer::put_varint;

    #[test]
    fn varints_are_read_at_every_length() {
        let cases: [(&[u8], u64); 6] = [
            (&[0], 0),
            (&[0x7f], 127),
            (&[0x80, 1], 128),
            (&[0xac, 2], 300),
            (&[0xff, 0xff, 0xff, 0xff, 0x0f], u64::from(u32::MAX)),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], u64::MAX),
        ];
        for (bytes, value) in cases {
            let mut reader = Reader::new(bytes);
            assert_eq!(reader.varint(), Ok(value));
            assert_eq!(reader.offset(), bytes.len());
            assert!(reader.is_empty());
        }
    }

    #[test]
    fn a_varint_is_the_same_whatever_follows_it() {
        let mut bytes = Vec::new();
        for bits in 0..=64_u32 {
            let most = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
            for value in [most, most / 2 + 1, most ^ (most / 3), most & 0x5555_5555_5555_5555] {
                bytes.clear();
                put_varint(&mut bytes, value);
                for padded in [false, true] {
                    let whole = bytes.len();
                    let follow = [&bytes[..], &[0xff; 10]].concat();
                    for end in whole..=follow.len() {
                        let mut reader = Reader::new(&follow[..end]);
                        if padded {
                            let error = reader.varint().unwrap_err().to_string();
                            let text = match whole {
                                11 => "at byte 0: a varint is past 64 bits",
                                _ => "at byte 0: a varint is not in its shortest form",
                            };
                            assert_eq!(error, text, "{value} in {whole} bytes, then {end}");
                        } else {
                            assert_eq!(reader.varint(), Ok(value), "then {end}");
                            assert_eq!(reader.offset(), whole);
                        }
                    }
                    for end in 0..whole {
                        let error = Reader::new(&bytes[..end]).varint().unwrap_err();
                        assert!(error.is_truncated() || end == 10, "{value}: {error}");
                    }
                    // The same number with a byte too many.
                    *bytes.last_mut().unwrap() |= 0x80;
                    bytes.push(0);
                }
            }
        }
    }

    #[test]
    fn truncated_padded_or_too_large_varints_are_rejected() {
        let say = |bytes: &[u8]| Reader::new(bytes).varint().unwrap_err().to_string();
        assert_eq!(say(&[]), "at byte 0: a varint was expected, 0 bytes remain");
        assert_eq!(say(&[0x80]), "at byte 0: a varint was expected, 1 bytes remain");
        assert_eq!(say(&[0x80, 0]), "at byte 0: a varint is not in its shortest form");
        assert_eq!(say(&[0xff, 0x80, 0]), "at byte 0: a varint is not in its shortest form");
        let nine = [0xff; 9];
        for tenth in [2, 0x7f, 0x80, 0x81, 0xff] {
            let bytes = [&nine[..], &[tenth, 0]].concat();
            assert_eq!(say(&bytes), "at byte 0: a varint is past 64 bits");
        }
        assert_eq!(
            say(&[&nine[..], &[0]].concat()),
            "at byte 0: a varint is not in its shortest form"
        );
    }

    #[test]
    fn numbers_out_of_range_are_rejected() {
        let mut reader = Reader::new(&[0x80, 0x80, 0x80, 0x80, 0x10]);
        let error = reader.varint_u32().unwrap_err();
        assert_eq!(error.to_string(), "at byte 0: the number 4294967296 is past 4294967295");
        assert_eq!(
            Reader::new(&[2]).bool().unwrap_err().to_string(),
            "at byte 0: a bool is 0 or 1, not 2"
        );
    }

    #[test]
    fn lengths_past_the_end_are_rejected_before_anything_is_read() {
        let mut bytes = vec![9; 7];
        bytes.extend([0xac, 2]);
        bytes.extend([b'x'; 12]);
        let mut reader = Reader::new(&bytes);
        reader.take(7).unwrap();
        let error = reader.clone().text().unwrap_err();
        assert_eq!(error.to_string(), "at byte 7: a text of 300 bytes was announced, 12 remain");
        assert!(error.is_truncated());
        let error = reader.count().unwrap_err();
        assert_eq!(error.to_string(), "at byte 7: a list of 300 elements was announced, 12 remain");
    }

    #[test]
    fn a_text_that_is_not_utf8_is_rejected_at_the_byte() {
        let error = Reader::new(&[3, b'a', 0xff, b'b']).text().unwrap_err();
        assert_eq!(error.to_string(), "at byte 2: a text is not UTF-8");
    }

    #[test]
    fn bytes_after_the_end_are_rejected() {
        let mut reader = Reader::new(&[1, 2, 3]);
        assert_eq!(reader.u8(), Ok(1));
        assert_eq!(
            reader.clone().finish().unwrap_err().to_string(),
            "at byte 1: the end was expected, 2 bytes remain"
        );
        assert_eq!(reader.rest(), [2, 3]);
        assert!(reader.rest().is_empty());
        assert_eq!(reader.finish(), Ok(()));
    }
}
