//! Writing the primitive types of the format `packed`: each appends to `out`.

use crate::reader::CONTINUED;

/// One byte.
#[inline]
pub fn put_u8(out: &mut Vec<u8>, value: u8) {
    out.push(value);
}

/// One byte, 0 or 1.
#[inline]
pub fn put_bool(out: &mut Vec<u8>, value: bool) {
    out.push(u8::from(value));
}

/// An unsigned integer in LEB128, in its shortest form: 1 to 10 bytes.
#[inline]
pub fn put_varint(out: &mut Vec<u8>, value: u64) {
    if value < 0x80 {
        out.push(value as u8);
    } else if value < 0x4000 {
        out.extend_from_slice(&[(value as u8) | 0x80, (value >> 7) as u8]);
    } else {
        put_varint_of_many(out, value);
    }
}

#[inline(never)]
fn put_varint_of_many(out: &mut Vec<u8>, value: u64) {
    // Copies of a fixed size: one of as many bytes as the number takes would be a call.
    let start = out.len();
    out.extend_from_slice(&(seven_in_each(value) | CONTINUED).to_le_bytes());
    let bits = 64 - value.leading_zeros();
    if bits <= 56 {
        let bytes = bits.div_ceil(7) as usize;
        out.truncate(start + bytes);
        out[start + bytes - 1] &= 0x7f;
    } else if bits <= 63 {
        out.push((value >> 56) as u8);
    } else {
        out.extend_from_slice(&[(value >> 56) as u8 | 0x80, 1]);
    }
}

/// The lower 56 bits of a number, seven in each byte.
fn seven_in_each(value: u64) -> u64 {
    let word = (value & 0x0000_0000_0fff_ffff) | (value & 0x00ff_ffff_f000_0000) << 4;
    let word = (word & 0x0000_3fff_0000_3fff) | (word & 0x0fff_c000_0fff_c000) << 2;
    (word & 0x007f_007f_007f_007f) | (word & 0x3f80_3f80_3f80_3f80) << 1
}

/// A signed integer, as the varint `(value << 1) ^ (value >> 63)`.
#[inline]
pub fn put_zigzag(out: &mut Vec<u8>, value: i64) {
    put_varint(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

/// A 32-bit float, little endian. Its bits are kept, those of a NaN included.
#[inline]
pub fn put_f32(out: &mut Vec<u8>, value: f32) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// A 64-bit float, little endian. Its bits are kept, those of a NaN included.
#[inline]
pub fn put_f64(out: &mut Vec<u8>, value: f64) {
    out.extend_from_slice(&value.to_le_bytes());
}

/// A text: its length in bytes, then the bytes.
#[inline]
pub fn put_text(out: &mut Vec<u8>, value: &str) {
    put_bytes(out, value.as_bytes());
}

/// Bytes, prefixed by their number.
#[inline]
pub fn put_bytes(out: &mut Vec<u8>, value: &[u8]) {
    put_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}
