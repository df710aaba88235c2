//! Masking (RFC 6455, 5.3): each byte is XORed with the key's byte at its place modulo four.

/// Masks or unmasks a whole payload in place. Works on eight bytes at a time, in a loop that the compiler
/// turns into vector instructions.
pub(crate) fn apply(payload: &mut [u8], key: [u8; 4]) {
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
        for length in 0..100u8 {
            let plain: Vec<u8> = (0..length).collect();
            let expected: Vec<u8> = plain.iter().enumerate().map(|(i, byte)| byte ^ key[i % 4]).collect();
            let mut masked = plain.clone();
            apply(&mut masked, key);
            assert_eq!(masked, expected, "{length} bytes masked");
            apply(&mut masked, key);
            assert_eq!(masked, plain, "{length} bytes unmasked");
        }
    }

    #[test]
    fn the_example_of_the_rfc() {
        let mut payload = *b"\x7f\x9f\x4d\x51\x58";
        apply(&mut payload, [0x37, 0xFA, 0x21, 0x3D]);
        assert_eq!(&payload, b"Hello");
    }
}
