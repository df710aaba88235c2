//! Counts that have a maximum.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts one more, unless there are `max`.
pub(crate) fn add_below(count: &AtomicUsize, max: usize) -> bool {
    let is_below = count.fetch_add(1, Ordering::Relaxed) < max;
    if !is_below {
        count.fetch_sub(1, Ordering::Relaxed);
    }
    is_below
}

/// One of a limited number, until it is dropped.
pub(crate) struct Counted(Arc<AtomicUsize>);

impl Counted {
    /// Counts one more; `None` if there are `max`.
    pub(crate) fn new(count: &Arc<AtomicUsize>, max: usize) -> Option<Self> {
        add_below(count, max).then(|| Self(Arc::clone(count)))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
