//! Masking (RFC 6455, 5.3): each byte is XORed with the key byte at its position modulo four.

/// From this many bytes on, masking by aligned cache lines is faster, although the bytes before the
/// first line are masked separately.
const LONG_BYTES: usize = 4 << 10;

/// The cache line size of most processors.
const LINE_BYTES: usize = 64;

/// The number of bytes of a long payload that are masked at a time: the largest size for which the
/// compiler emits straight-line vector code.
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

/// Masks or unmasks `count` bytes and moves them to the front, in one pass: from and to these
/// places, of which the second is not behind the first.
#[inline]
pub(crate) fn apply_moved(
    bytes: &mut [u8],
    (from, to): (usize, usize),
    count: usize,
    key: [u8; 4],
) {
    debug_assert!(to <= from, "what is written lies before all that is still to be read");
    if from == to {
        return apply(&mut bytes[from..][..count], key);
    }
    let mut done = 0;
    if count >= LINE_BYTES {
        let wide: [u8; LINE_BYTES] = std::array::from_fn(|place| key[place % 4]);
        while done + LINE_BYTES <= count {
            let Some(&(mut line)) = bytes[from + done..].first_chunk::<LINE_BYTES>() else { break };
            for (byte, key) in line.iter_mut().zip(wide) {
                *byte ^= key;
            }
            bytes[to + done..][..LINE_BYTES].copy_from_slice(&line);
            done += LINE_BYTES;
        }
    }
    let [a, b, c, d] = key;
    let word = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
    while done < count {
        // The last word may be more than what is left, as long as what is behind is not read after.
        let Some(&next) = bytes[from + done..].first_chunk() else { break };
        if to + done + 8 > from + count {
            break;
        }
        let plain = (u64::from_ne_bytes(next) ^ word).to_ne_bytes();
        bytes[to + done..][..8].copy_from_slice(&plain);
        done += 8;
    }
    for place in done..count {
        bytes[to + place] = bytes[from + place] ^ key[place % 4];
    }
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
    fn what_is_moved_is_masked_the_same_and_nothing_behind_it_changes() {
        let key = [0x37, 0xFA, 0x21, 0x3D];
        for length in (0..150).chain([1_000, LONG_BYTES + 3]) {
            for (from, to) in [(9, 9), (6, 0), (7, 6), (8, 0), (80, 3), (300, 0)] {
                let end = from + length;
                let before: Vec<u8> = (0..end + 20).map(|place| (place * 7) as u8).collect();
                let mut bytes = before.clone();
                apply_moved(&mut bytes, (from, to), length, key);
                let mut expected = before[from..end].to_vec();
                apply(&mut expected, key);
                let case = format!("{length} bytes from {from} to {to}");
                assert_eq!(bytes[to..][..length], expected, "{case}");
                assert_eq!(bytes[end..], before[end..], "{case}");
                assert_eq!(bytes[..to], before[..to], "{case}");
                // The end of the input is where the end of the payload is.
                let mut bytes = before[..end].to_vec();
                apply_moved(&mut bytes, (from, to), length, key);
                assert_eq!(bytes[to..][..length], expected, "{case}, at the end");
            }
        }
    }

    #[test]
    fn the_example_of_the_rfc() {
        let mut payload = *b"\x7f\x9f\x4d\x51\x58";
        apply(&mut payload, [0x37, 0xFA, 0x21, 0x3D]);
        assert_eq!(&payload, b"Hello");
    }
}
