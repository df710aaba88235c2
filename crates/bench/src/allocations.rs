//! What this process asks of its allocator, which only the program knows.

use std::sync::OnceLock;

/// What a process has asked of its allocator so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    /// How often it asked for memory, or for more of it.
    pub count: u64,
    /// How many bytes it holds.
    pub live_bytes: u64,
}

static COUNTER: OnceLock<fn() -> Allocations> = OnceLock::new();

/// Tells how to learn what this process has allocated so far. Unless this was told, what is counted
/// so is left out of the reports.
pub fn count_allocations_by(counter: fn() -> Allocations) {
    // Told twice, the first holds: there is one allocator.
    let _ = COUNTER.set(counter);
}

/// So far, where it is known.
pub(crate) fn so_far() -> Option<Allocations> {
    COUNTER.get().map(|counter| counter())
}
