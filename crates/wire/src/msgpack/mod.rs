//! The primitive types of the format `msgpack` (<https://msgpack.org>). Each `write_` function
//! appends to `out`, in the shortest form. [`read_value`] reads a value.

pub(crate) mod raw;
mod token;
mod value;

pub use value::{NESTING_MAX, read_value};

const ALWAYS: &str = "writing to a Vec can't fail";

/// Null.
pub fn write_null(out: &mut Vec<u8>) {
    rmp::encode::write_nil(out).expect(ALWAYS);
}

/// `true` or `false`.
pub fn write_bool(out: &mut Vec<u8>, value: bool) {
    rmp::encode::write_bool(out, value).expect(ALWAYS);
}

/// An unsigned integer.
#[inline]
pub fn write_u64(out: &mut Vec<u8>, value: u64) {
    rmp::encode::write_uint(out, value).expect(ALWAYS);
}

/// A signed integer.
#[inline]
pub fn write_i64(out: &mut Vec<u8>, value: i64) {
    rmp::encode::write_sint(out, value).expect(ALWAYS);
}

/// A 32-bit float. Its bits are kept, those of a NaN included.
#[inline]
pub fn write_f32(out: &mut Vec<u8>, value: f32) {
    rmp::encode::write_f32(out, value).expect(ALWAYS);
}

/// A 64-bit float. Its bits are kept, those of a NaN included.
#[inline]
pub fn write_f64(out: &mut Vec<u8>, value: f64) {
    rmp::encode::write_f64(out, value).expect(ALWAYS);
}

/// A text.
#[inline]
pub fn write_text(out: &mut Vec<u8>, value: &str) {
    rmp::encode::write_str(out, value).expect(ALWAYS);
}

/// Bytes.
pub fn write_bytes(out: &mut Vec<u8>, value: &[u8]) {
    rmp::encode::write_bin(out, value).expect(ALWAYS);
}

/// The head of an object with this many members.
pub(crate) fn write_object_head(out: &mut Vec<u8>, count: usize) {
    rmp::encode::write_map_len(out, count_u32(count)).expect(ALWAYS);
}

/// The head of an array with this many elements.
pub(crate) fn write_array_head(out: &mut Vec<u8>, count: usize) {
    rmp::encode::write_array_len(out, count_u32(count)).expect(ALWAYS);
}

/// The length in bytes of the head of an object or an array.
pub(crate) fn head_bytes(count: usize) -> usize {
    match count {
        0..16 => 1,
        16..0x1_0000 => 3,
        _ => 5,
    }
}

fn count_u32(count: usize) -> u32 {
    u32::try_from(count).expect("a message is shorter than 4 GiB")
}

/// Whether a byte begins a MessagePack map, as every message does.
pub(crate) fn begins_map(byte: u8) -> bool {
    matches!(byte, 0x80..=0x8f | 0xde | 0xdf)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out);
        out
    }

    #[test]
    fn integers_take_their_shortest_form() {
        let cases: [(i128, &[u8]); 16] = [
            (0, &[0]),
            (127, &[0x7f]),
            (128, &[0xcc, 0x80]),
            (255, &[0xcc, 0xff]),
            (256, &[0xcd, 1, 0]),
            (0xffff, &[0xcd, 0xff, 0xff]),
            (0x1_0000, &[0xce, 0, 1, 0, 0]),
            (0x1_0000_0000, &[0xcf, 0, 0, 0, 1, 0, 0, 0, 0]),
            (u64::MAX.into(), &[0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            (-1, &[0xff]),
            (-32, &[0xe0]),
            (-33, &[0xd0, 0xdf]),
            (-129, &[0xd1, 0xff, 0x7f]),
            (-32_769, &[0xd2, 0xff, 0xff, 0x7f, 0xff]),
            (-2_147_483_649, &[0xd3, 0xff, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]),
            (i64::MIN.into(), &[0xd3, 0x80, 0, 0, 0, 0, 0, 0, 0]),
        ];
        for (value, bytes) in cases {
            if let Ok(value) = u64::try_from(value) {
                assert_eq!(written(|out| write_u64(out, value)), bytes);
            }
            if let Ok(value) = i64::try_from(value) {
                assert_eq!(written(|out| write_i64(out, value)), bytes);
            }
        }
    }

    #[test]
    fn the_head_has_the_predicted_length() {
        for count in [0, 15, 16, 0xffff, 0x1_0000, u32::MAX as usize] {
            assert_eq!(written(|out| write_array_head(out, count)).len(), head_bytes(count));
            let object = written(|out| write_object_head(out, count));
            assert_eq!(object.len(), head_bytes(count));
            assert!(begins_map(object[0]));
        }
        let others = (0..=u8::MAX).filter(|byte| !begins_map(*byte)).count();
        assert_eq!(others, 256 - 18);
    }
}
