//! The store of rooms' saves.

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, ready};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use crate::Completion;

/// The result of a [`Store`]: work that needs no particular runtime.
pub type Stored<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// Keeps saves by room type and key. It outlives the process.
///
/// A call begins its work at once, whether or not a future is polled, and calls take effect in
/// their order: a load returns what was saved before it. Calls must not block; they come from
/// shards. A call that panics has failed, as one that ends in an error.
pub trait Store: Send + Sync {
    /// The save of a room, or `None` if there is none. If the newest save is still on its way to
    /// the disk, a store may return that one: see [`Loaded::is_durable`].
    fn load(&self, room_type: &str, key: &str) -> Stored<Option<Loaded>>;

    /// Replaces the save of a room, and completes `done` when the save is durable: it is there
    /// after a crash of the process or the machine. After an error the save from before is still
    /// there.
    fn save(&self, room_type: &str, key: &str, bytes: Vec<u8>, done: Completion);

    /// Saves as [`save`](Self::save) does; the future ends when the save is durable.
    fn save_and_wait(&self, room_type: &str, key: &str, bytes: Vec<u8>) -> Stored<()> {
        let (done, outcome) = Completion::awaited();
        self.save(room_type, key, bytes, done);
        outcome
    }

    /// Removes the save of a room, if there is one. The future ends when that is durable.
    fn remove(&self, room_type: &str, key: &str) -> Stored<()>;

    /// The keys of a room type's saves in order: those after `after`, at most `limit`. It may lack
    /// what is being saved.
    fn keys(&self, room_type: &str, after: Option<&str>, limit: usize) -> Stored<Vec<String>>;

    /// Writes all that it has accepted, and gives up what only one process can have, such as the
    /// lock of a file: another process of the program is about to take over. If it does not, the
    /// store is used again, and opens by itself what it has given up. Unlike other calls it may
    /// block, since no shard makes it.
    ///
    /// # Errors
    /// If not all could be written.
    fn release(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// A save, as a [`Store`] loads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The save.
    pub bytes: Vec<u8>,
    /// Whether it is there after a crash. If not, it is the newest save, but writing it may still
    /// fail: a room that is made of it saves itself again, even if it does not change.
    pub is_durable: bool,
}

/// A durable save.
impl From<Vec<u8>> for Loaded {
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, is_durable: true }
    }
}

impl fmt::Debug for dyn Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store")
    }
}

/// Why a [`Store`] failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    kind: StoreErrorKind,
    text: String,
}

/// The kinds of failures of a [`Store`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The store's queue of reads and writes is full. Try again later.
    Busy,
    /// Another process uses the store, or another store in this one.
    InUse,
    /// The disk is full.
    Full,
    /// The disk failed otherwise.
    Io,
    /// The data on disk is not a store, or is damaged.
    Damaged,
    /// Anything else.
    Other,
}

impl StoreError {
    /// An error of this kind. The text says what failed, and what to do.
    pub fn new(kind: StoreErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// Returns the kind of failure.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for StoreError {}

/// A store in memory, for tests: what it keeps ends with the process. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Mutex<Saves>>);

/// By room type and key.
type Saves = BTreeMap<(String, String), Vec<u8>>;

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of saves.
    #[must_use]
    pub fn len(&self) -> usize {
        self.with(|saves| saves.len())
    }

    /// Returns whether there are no saves.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The save of a room.
    #[must_use]
    pub fn get(&self, room_type: &str, key: &str) -> Option<Vec<u8>> {
        self.with(|saves| saves.get(&named(room_type, key)).cloned())
    }

    /// Sets the save of a room.
    pub fn set(&self, room_type: &str, key: &str, bytes: Vec<u8>) {
        self.with(|saves| drop(saves.insert(named(room_type, key), bytes)));
    }

    fn with<R>(&self, work: impl FnOnce(&mut Saves) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn named(room_type: &str, key: &str) -> (String, String) {
    (room_type.to_owned(), key.to_owned())
}

impl Store for MemoryStore {
    fn load(&self, room_type: &str, key: &str) -> Stored<Option<Loaded>> {
        Box::pin(ready(Ok(self.get(room_type, key).map(Loaded::from))))
    }

    fn save(&self, room_type: &str, key: &str, bytes: Vec<u8>, done: Completion) {
        self.set(room_type, key, bytes);
        done.complete(Ok(()));
    }

    fn remove(&self, room_type: &str, key: &str) -> Stored<()> {
        self.with(|saves| drop(saves.remove(&named(room_type, key))));
        Box::pin(ready(Ok(())))
    }

    fn keys(&self, room_type: &str, after: Option<&str>, limit: usize) -> Stored<Vec<String>> {
        let found = self.with(|saves| {
            let from = named(room_type, after.unwrap_or_default());
            let from_here = saves.range(from..).map(|(name, _)| name);
            from_here
                .take_while(|(of, _)| of == room_type)
                .map(|(_, key)| key)
                .filter(|key| after != Some(key.as_str()))
                .take(limit)
                .cloned()
                .collect()
        });
        Box::pin(ready(Ok(found)))
    }
}
