//! The queue of saves that wait to be written.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use playfield_room::{Completion, StoreError, StoreErrorKind};

/// The maximum number of bytes in one commit. A save larger than that is a commit of its own.
const COMMIT_BYTES_MAX: usize = 64 << 20;

/// A room type and a key.
pub(crate) type Name = (Box<str>, Box<str>);

/// The bytes of a save, or `None` to remove it.
pub(crate) type Bytes = Option<Arc<Vec<u8>>>;

/// A save to write, or to remove.
pub(crate) struct Write {
    number: u64,
    pub(crate) name: Name,
    pub(crate) bytes: Bytes,
    pub(crate) done: Completion,
}

impl Write {
    fn size(&self) -> usize {
        self.name.0.len() + self.name.1.len() + self.bytes.as_ref().map_or(0, |bytes| bytes.len())
    }
}

/// The result that the newest write of a name will have.
pub(crate) enum Coming {
    Nothing,
    Removed,
    Saved(Arc<Vec<u8>>),
}

#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
    /// Something was written.
    written: Condvar,
}

#[derive(Default)]
struct State {
    writes: VecDeque<Write>,
    /// The size of all writes that were accepted and are not done.
    bytes: usize,
    /// The newest write of each name that is not done: its number, and its bytes.
    newest: HashMap<Name, (u64, Bytes)>,
    next: u64,
    is_closed: bool,
}

impl Queue {
    /// Accepts a write, unless too much waits.
    pub(crate) fn put(&self, name: Name, bytes: Bytes, done: Completion, limit: usize) {
        let mut state = self.lock();
        let write = Write { number: state.next, name, bytes, done };
        let waiting = state.bytes;
        // A save larger than the limit is accepted if nothing else waits.
        if waiting > 0 && waiting.saturating_add(write.size()) > limit {
            drop(state);
            let text = format!(
                "the store is busy: {waiting} bytes wait to be written, and {limit} may (waiting_bytes_max)"
            );
            write.done.complete(Err(StoreError::new(StoreErrorKind::Busy, text)));
            return;
        }
        state.next += 1;
        state.bytes += write.size();
        state.newest.insert(write.name.clone(), (write.number, write.bytes.clone()));
        state.writes.push_back(write);
        drop(state);
        self.changed.notify_one();
    }

    /// Returns what a load of this name must see of writes that are not done yet.
    pub(crate) fn coming(&self, name: &Name) -> Coming {
        match self.lock().newest.get(name) {
            None => Coming::Nothing,
            Some((_, None)) => Coming::Removed,
            Some((_, Some(bytes))) => Coming::Saved(Arc::clone(bytes)),
        }
    }

    /// Waits for writes, and takes those of one commit. `None` at the end.
    pub(crate) fn take(&self) -> Option<Vec<Write>> {
        let mut state = self.lock();
        while state.writes.is_empty() {
            if state.is_closed {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let mut taken = Vec::new();
        let mut bytes = 0;
        while let Some(write) = state.writes.front() {
            bytes += write.size();
            if bytes > COMMIT_BYTES_MAX && !taken.is_empty() {
                break;
            }
            taken.extend(state.writes.pop_front());
        }
        Some(taken)
    }

    /// Forgets writes that are done, and says so.
    pub(crate) fn finish(&self, writes: Vec<Write>, outcome: &Result<(), StoreError>) {
        let mut state = self.lock();
        for write in &writes {
            state.bytes -= write.size();
            if state.newest.get(&write.name).is_some_and(|(number, _)| *number == write.number) {
                state.newest.remove(&write.name);
            }
        }
        drop(state);
        self.written.notify_all();
        for write in writes {
            write.done.complete(outcome.clone());
        }
    }

    /// Waits until all that was accepted is written, or has failed.
    pub(crate) fn wait_until_written(&self) {
        let mut state = self.lock();
        while !state.newest.is_empty() {
            state = self.written.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends [`take`](Self::take), once all is taken.
    pub(crate) fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
