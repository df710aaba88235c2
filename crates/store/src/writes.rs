//! The saves that wait to be written to the file, and who may write.

use std::collections::HashMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use playfield_room::{Completion, Fence, Fences, StoreError};

use crate::queue::{Item, Name, Queue};

/// The maximum number of bytes in one commit. A save larger than that is a commit of its own.
const COMMIT_BYTES_MAX: usize = 64 << 20;

/// The bytes of a save, or `None` to remove it.
pub(crate) type Bytes = Option<Arc<Vec<u8>>>;

/// A save to write, or to remove.
pub(crate) struct Write {
    number: u64,
    pub(crate) name: Name,
    pub(crate) bytes: Bytes,
    pub(crate) done: Completion,
}

impl Item for Write {
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
pub(crate) struct Writes {
    queue: Queue<Write>,
    /// Locked while a write is queued, so that who opens a save sees it or refuses it.
    names: Mutex<Names>,
    /// Something was written.
    written: Condvar,
}

#[derive(Default)]
struct Names {
    /// The newest write of each name that is not done: its number, and its bytes.
    newest: HashMap<Name, (u64, Bytes)>,
    next: u64,
    fences: Fences,
}

impl Names {
    fn coming(&self, name: &Name) -> Coming {
        match self.newest.get(name) {
            None => Coming::Nothing,
            Some((_, None)) => Coming::Removed,
            Some((_, Some(bytes))) => Coming::Saved(Arc::clone(bytes)),
        }
    }
}

impl Writes {
    /// Hands out the newest fence of a name, and what its owner must see of writes that are not
    /// done yet.
    pub(crate) fn open(&self, name: &Name) -> (Fence, Coming) {
        let mut names = self.names();
        (names.fences.open(&name.0, &name.1), names.coming(name))
    }

    pub(crate) fn close_save(&self, name: &Name, fence: Fence) {
        self.names().fences.close(&name.0, &name.1, fence);
    }

    /// Accepts a write, unless the fence is not the newest one or too much waits.
    pub(crate) fn put(
        &self,
        name: Name,
        fence: Fence,
        bytes: Bytes,
        done: Completion,
        limit: usize,
    ) {
        let mut names = self.names();
        let refused = match names.fences.check(&name.0, &name.1, fence) {
            Err(error) => Some((done, error)),
            Ok(()) => {
                let newest = (names.next, bytes.clone());
                let write = Write { number: names.next, name: name.clone(), bytes, done };
                match self.queue.put(write, limit) {
                    Ok(()) => {
                        names.next += 1;
                        names.newest.insert(name, newest);
                        None
                    }
                    Err((write, error)) => Some((write.done, error)),
                }
            }
        };
        drop(names);
        if let Some((done, error)) = refused {
            done.complete(Err(error));
        }
    }

    /// Returns what a load of this name must see of writes that are not done yet.
    pub(crate) fn coming(&self, name: &Name) -> Coming {
        self.names().coming(name)
    }

    /// Waits for writes, and takes those of one commit. `None` at the end.
    pub(crate) fn take(&self) -> Option<Vec<Write>> {
        self.queue.take(COMMIT_BYTES_MAX)
    }

    /// Forgets writes that are done, and says so.
    pub(crate) fn finish(&self, writes: Vec<Write>, outcome: &Result<(), StoreError>) {
        let mut names = self.names();
        for write in &writes {
            if names.newest.get(&write.name).is_some_and(|(number, _)| *number == write.number) {
                names.newest.remove(&write.name);
            }
        }
        drop(names);
        self.written.notify_all();
        self.queue.done(writes.iter().map(Item::size).sum());
        for write in writes {
            write.done.complete(outcome.clone());
        }
    }

    /// Waits until all that was accepted is written, or has failed.
    pub(crate) fn wait_until_written(&self) {
        let mut names = self.names();
        while !names.newest.is_empty() {
            names = self.written.wait(names).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends [`take`](Self::take), once all is taken.
    pub(crate) fn close(&self) {
        self.queue.close();
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
