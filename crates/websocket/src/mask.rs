//! Masking (RFC 6455, 5.3): each byte is XORed with the key byte at its position modulo four.

/// From this many bytes on, masking by aligned cache lines is faster, although the bytes before the
/// first line are masked separately.
const LONG_BYTES: usize = 4 << 10;

/// The cache line size of most processors.
const LINE_BYTES: usize = 64;

/// How many bytes of a long payload are masked at a time: the largest size for which the compiler
/// emits straight-line vector code.
const WIDE_BYTES: usize = 32;

/// Masks or unmasks a whole payload in place.
pub(crate) fn apply(payload: &mut [u8], key: [u8; 4]) {
    if payload.len() < LONG_BYTES {
        return by_words(payload, key);
    }
    // After a header, the payload is never aligned to a cache line, and an unaligned vector access
    // that crosses two lines costs twice.
    let before = payload.as_ptr().align_offset(LINE_BYTES).min(payload.len());
    let (first, lines) = payload.split_at_mut(before);
    by_words(first, key);
    let mut key = key;
    key.rotate_left(before % 4);
    let wide: [u8; WIDE_BYTES] = std::array::from_fn(|place| key[place % 4]);
    let (chunks, last) = lines.as_chunks_mut::<WIDE_BYTES>();
    for chunk in chunks {
        for (byte, key) in chunk.iter_mut().zip(wide) {
            *byte ^= key;
        }
    }
    by_words(last, key);
}

/// Eight bytes at a time, in a loop that the compiler turns into vector instructions.
fn by_words(payload: &mut [u8], key: [u8; 4]) {
    let [a, b, c, d] = key;
    let word = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    let (words, rest) = payload.as_chunks_mut::<8>();
    for bytes in words {
        *bytes = (u64::from_ne_bytes(*bytes) ^ word).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(key.iter().cycle()) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_masked_as_byte_by_byte() {
        let key = [0x37, 0xFA, 0x21, 0x3D];
        for length in (0..100).chain(LONG_BYTES - 1..LONG_BYTES + 100) {
            let plain: Vec<u8> = (0..length).map(|place| place as u8).collect();
            let expected: Vec<u8> =
                plain.iter().enumerate().map(|(i, byte)| byte ^ key[i % 4]).collect();
            let mut masked = plain.clone();
            apply(&mut masked, key);
            assert_eq!(masked, expected, "{length} bytes masked");
            apply(&mut masked, key);
            assert_eq!(masked, plain, "{length} bytes unmasked");
        }
    }

    #[test]
    fn wherever_it_begins_a_long_payload_is_masked_the_same() {
        let key = [0x37, 0xFA, 0x21, 0x3D];
        let plain: Vec<u8> = (0..LONG_BYTES + LINE_BYTES).map(|place| (place * 7) as u8).collect();
        for begin in 0..LINE_BYTES {
            let mut masked = plain.clone();
            apply(&mut masked[begin..], key);
            let expected = plain[begin..].iter().enumerate().map(|(i, byte)| byte ^ key[i % 4]);
            assert!(masked[begin..].iter().copied().eq(expected), "from byte {begin} on");
            assert_eq!(masked[..begin], plain[..begin]);
        }
    }

    #[test]
    fn the_example_of_the_rfc() {
        let mut payload = *b"\x7f\x9f\x4d\x51\x58";
        apply(&mut payload, [0x37, 0xFA, 0x21, 0x3D]);
        assert_eq!(&payload, b"Hello");
    }
}
