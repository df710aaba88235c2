//! This process's allocation statistics. Only the program knows its allocator.

use std::sync::OnceLock;

/// A process's allocations so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    /// The number of allocations and reallocations.
    pub count: u64,
    /// The number of bytes currently allocated.
    pub live_bytes: u64,
}

static COUNTER: OnceLock<fn() -> Allocations> = OnceLock::new();

/// Registers a function that returns this process's allocations. Without it, allocation figures are
/// omitted from the reports.
pub fn count_allocations_by(counter: fn() -> Allocations) {
    // The first counter wins: there is only one allocator.
    let _ = COUNTER.set(counter);
}

/// The allocations so far, if a counter is registered.
pub(crate) fn so_far() -> Option<Allocations> {
    COUNTER.get().map(|counter| counter())
}
