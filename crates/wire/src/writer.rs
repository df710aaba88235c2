//! Writing the primitive types of the format `packed`: each appends to `out`.

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
    } else {
        put_varint_of_many(out, value);
    }
}

#[inline(never)]
fn put_varint_of_many(out: &mut Vec<u8>, mut value: u64) {
    // Byte by byte: most take two or three, which is less than the call of a copy.
    while value >= 0x80 {
        out.push((value as u8) | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
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
