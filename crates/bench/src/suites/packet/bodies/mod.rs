//! The operations of the rows.

pub(super) mod bulk;
pub(super) mod many;
pub(super) mod numbers;
pub(super) mod packets;
pub(super) mod threads;

/// Keeps a value that was read, so that the compiler can't remove the read. Returns whether there
/// was one.
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

/// A payload that contains every byte value.
fn payload(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|place| (place * 7 + place / 256) as u8).collect()
}
