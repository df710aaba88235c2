//! A hash of bytes that stays the same across builds and machines.

/// A hash of several GB/s, since a room's shard waits for it. It finds changes, not forgery.
///
/// Four lanes take eight bytes each in turn; the rest, padded with zeros, and the length follow.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    // Both halves of the product: the lower one alone would pass the highest bit on as one bit,
    // which a bit of the next word could undo.
    let mix = |lane: u64, word: u64| {
        let product = u128::from(lane ^ word) * u128::from(FACTOR);
        product as u64 ^ (product >> 64) as u64
    };
    let mut lanes = [1_u64, 2, 3, 4];
    let (blocks, rest) = bytes.as_chunks::<32>();
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            *lane = mix(*lane, u64::from_le_bytes(*word));
        }
    }
    let mut last = [0; 32];
    last[..rest.len()].copy_from_slice(rest);
    let words = last.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let all = lanes.into_iter().chain(words).chain([bytes.len() as u64]);
    let mut hash = all.fold(0, mix);
    // The finalizer of SplitMix64, by Steele, Lea and Flood.
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::hash;

    #[test]
    fn no_bit_undoes_another_of_the_next_word_of_its_lane() {
        let bytes = [5; 128];
        for (one, other) in (0..64).flat_map(|one| (0..64).map(move |other| (one, other))) {
            let mut flipped = bytes;
            flipped[one / 8] ^= 1 << (one % 8);
            flipped[32 + other / 8] ^= 1 << (other % 8);
            assert_ne!(hash(&flipped), hash(&bytes), "bits {one} and {other}");
        }
    }

    #[test]
    fn each_flipped_bit_and_each_length_has_another_hash() {
        let bytes: Vec<u8> = (0..100).collect();
        let mut seen = BTreeSet::new();
        for length in 0..=bytes.len() {
            assert!(seen.insert(hash(&bytes[..length])));
            assert!(seen.insert(hash(&vec![0; length])) || length < 2);
        }
        for bit in 0..8 * bytes.len() {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(seen.insert(hash(&flipped)), "bit {bit}");
        }
    }
}
