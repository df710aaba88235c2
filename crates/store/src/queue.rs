//! The queue of work for a thread, bounded by bytes.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
#[cfg(feature = "postgres")]
use std::time::{Duration, Instant};

use playfield_room::{StoreError, StoreErrorKind};

/// A room type and a key.
pub(crate) type Name = (Box<str>, Box<str>);

/// Work in a [`Queue`].
pub(crate) trait Item {
    /// The bytes for which it counts.
    fn size(&self) -> usize;
}

/// Work that waits for a thread.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    /// All that was accepted is done.
    drained: Condvar,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    /// The size of all items that were accepted and are not done.
    bytes: usize,
    is_closed: bool,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        let state = State { items: VecDeque::new(), bytes: 0, is_closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), drained: Condvar::new() }
    }
}

impl<T: Item> Queue<T> {
    /// Accepts an item, or returns it with an error if too much waits.
    pub(crate) fn put(&self, item: T, limit: usize) -> Result<(), (T, StoreError)> {
        let mut state = self.lock();
        let waiting = state.bytes;
        // An item larger than the limit is accepted if nothing else waits.
        if waiting > 0 && waiting.saturating_add(item.size()) > limit {
            drop(state);
            let text = format!(
                "the store is busy: {waiting} bytes wait to be written, and {limit} may (waiting_bytes_max)"
            );
            return Err((item, StoreError::new(StoreErrorKind::Busy, text)));
        }
        state.bytes += item.size();
        state.items.push_back(item);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Waits for items, and takes those that have at most `bytes_max` together, but at least one.
    /// `None` at the end.
    pub(crate) fn take(&self, bytes_max: usize) -> Option<Vec<T>> {
        let mut state = self.lock();
        while state.items.is_empty() {
            if state.is_closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let mut taken = Vec::new();
        let mut bytes = 0;
        while let Some(item) = state.items.front() {
            bytes += item.size();
            if bytes > bytes_max && !taken.is_empty() {
                break;
            }
            taken.extend(state.items.pop_front());
        }
        Some(taken)
    }

    /// Waits for a time, or until the queue is closed, and takes all items.
    #[cfg(feature = "postgres")]
    pub(crate) fn take_after(&self, wait: Duration) -> Vec<T> {
        let until = Instant::now() + wait;
        let mut state = self.lock();
        let was_closed = state.is_closed;
        while state.is_closed == was_closed {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.items.drain(..).collect()
    }

    /// Notes that items of this size are done.
    pub(crate) fn done(&self, bytes: usize) {
        let mut state = self.lock();
        state.bytes -= bytes;
        if state.bytes == 0 {
            self.drained.notify_all();
        }
    }

    /// Waits until all that was accepted is done, for so long at most. Returns whether it is.
    #[cfg(feature = "postgres")]
    pub(crate) fn is_done_by(&self, until: Instant) -> bool {
        let mut state = self.lock();
        while state.bytes > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.drained.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// Ends [`take`](Self::take), once all is taken.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    /// Returns whether the queue is closed.
    #[cfg(feature = "postgres")]
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().is_closed
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
