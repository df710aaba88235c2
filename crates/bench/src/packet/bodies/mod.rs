//! What is done in the rows.

pub(super) mod bulk;
pub(super) mod many;
pub(super) mod numbers;
pub(super) mod packets;
pub(super) mod threads;

/// Keeps what was read, so that the reading can't be left out, and says whether it was there.
#[inline(always)]
fn kept<T, E>(read: Result<T, E>) -> bool {
    match read {
        Ok(value) => {
            std::hint::black_box(value);
            true
        }
        Err(_) => false,
    }
}

/// 38 characters.
const TEXT: &str = "The quick brown fox jumps over a dog..";

/// Bytes of all values.
fn payload(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|place| (place * 7 + place / 256) as u8).collect()
}
