//! Numbers that show whether a copy is right.
//!
//! The digest of a value is a sum over its parts. What everyone sees of a state and what only one
//! player sees have digests of their own, and that player's copy has their sum. The digest of a map
//! is the sum over its entries, each times a number made from its key, so a changed entry doesn't
//! need the others. Digests find faults; they do not protect against forgery.
//!
//! A leaf's digest is its number, as an integer of 64 bits or the bits of a float, or else its
//! bytes, mixed (the finalizer of SplitMix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom
//! Number Generators", 2014). All sums and products are modulo 2^64.

/// The factor for the digest of a field or an element: odd, and different for each place.
#[inline]
pub const fn weight(place: u64) -> u64 {
    mix(place.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x7069_6563_6573_2121) | 1
}

/// Counts that a value is present.
pub(crate) const PRESENT: u64 = mix(0x7072_6573_656e_7421);

/// The digest of bytes.
pub(crate) fn of_bytes(bytes: &[u8]) -> u64 {
    let mut state = 0x6469_6765_7374_2121 ^ bytes.len() as u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        state = mix(state ^ u64::from_le_bytes(word));
    }
    mix(state)
}

/// The digest of a number.
#[inline]
pub(crate) fn of_word(word: u64) -> u64 {
    mix(word ^ 0x6e75_6d62_6572_2121)
}

/// The digest of a field that not everyone sees. The copy of a player who doesn't see it has the
/// default there, so the default has the digest 0.
pub fn of_private(digest: u64, default: u64) -> u64 {
    if digest == default { 0 } else { digest }
}

/// The digest of elements in their order.
pub(crate) fn of_elements(elements: impl Iterator<Item = u64>) -> u64 {
    elements.enumerate().fold(0, |sum, (place, digest)| {
        u64::wrapping_add(sum, digest.wrapping_mul(weight(place as u64)))
    })
}

/// The digest of an option.
pub(crate) fn of_option(value: Option<u64>) -> u64 {
    value.map_or(0, |value| value.wrapping_mul(weight(0)).wrapping_add(PRESENT))
}

/// The digest of a number of elements.
pub(crate) fn of_length(length: usize) -> u64 {
    mix(PRESENT ^ length as u64)
}

/// The digest of an entry, from those of its key and its value. With `there`, its presence counts
/// too.
pub(crate) fn of_entry(key: u64, value: u64, there: bool) -> u64 {
    value.wrapping_mul(weight(key)).wrapping_add(if there { mix(key ^ PRESENT) } else { 0 })
}

const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
