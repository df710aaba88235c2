//! The store of rooms' saves.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use crate::Completion;

/// The result of a [`Store`]: work that needs no particular runtime.
pub type Stored<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// Keeps saves by room type and key. It outlives the process.
///
/// A save has one owner, the room that has opened it last. [`open`](Self::open) hands out a
/// [`Fence`], and only the newest one of a save may write it: a room that goes on by mistake, on a
/// node that was cut off or beside the one that replaced it, overwrites nothing.
///
/// A call begins its work at once, whether or not a future is polled, and calls take effect in
/// their order: [`open`](Self::open) and [`load`](Self::load) return what was saved before them.
/// Calls must not block; they come from shards. A call that panics has failed, as one that ends in
/// an error.
pub trait Store: Send + Sync {
    /// Opens the save of a room for a new owner, and returns it with a fence above all that were
    /// handed out for this save. From then on, those are refused.
    ///
    /// If the newest save is still on its way to the disk, a store may return that one: see
    /// [`Loaded::is_durable`].
    fn open(&self, room_type: &str, key: &str) -> Stored<Opened>;

    /// Notes that the owner with this fence is gone and writes nothing more, so that the store may
    /// forget what it keeps for it. A store that keeps fences beside the saves has nothing to do.
    fn close(&self, room_type: &str, key: &str, fence: Fence) {
        let _ = (room_type, key, fence);
    }

    /// Returns the save of a room, or `None` if there is none, as [`open`](Self::open) does, but
    /// leaves it to its owner: for tools.
    fn load(&self, room_type: &str, key: &str) -> Stored<Option<Loaded>>;

    /// Replaces the save of a room, and completes `done` when the save is durable: it is there
    /// after a crash of the process or the machine. After an error the save from before is still
    /// there.
    ///
    /// Fails with [`StoreErrorKind::Fenced`] if the fence is not the newest one that was handed out
    /// for this save.
    fn save(&self, room_type: &str, key: &str, fence: Fence, bytes: Vec<u8>, done: Completion);

    /// Saves as [`save`](Self::save) does; the future ends when the save is durable.
    fn save_and_wait(
        &self,
        room_type: &str,
        key: &str,
        fence: Fence,
        bytes: Vec<u8>,
    ) -> Stored<()> {
        let (done, outcome) = Completion::awaited();
        self.save(room_type, key, fence, bytes, done);
        outcome
    }

    /// Removes the save of a room, if there is one. The future ends when that is durable. Its owner
    /// may save again.
    ///
    /// Fails as [`save`](Self::save) does.
    fn remove(&self, room_type: &str, key: &str, fence: Fence) -> Stored<()>;

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

    /// Returns whether several nodes may use the saves at a time.
    fn is_shared(&self) -> bool {
        false
    }
}

/// The permission to write a save, until the save is opened again. Later fences of a save are
/// greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

/// A save that was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The fence of the new owner.
    pub fence: Fence,
    /// The save, if there is one.
    pub save: Option<Loaded>,
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
    /// The save was opened again since: the room that has this fence no longer owns it.
    Fenced,
    /// The store can't be reached now, such as a database that is restarted. Try again later.
    Away,
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

    /// The error of a write with a fence that is not the newest one of its save.
    #[must_use]
    pub fn fenced(room_type: &str, key: &str, fence: Fence) -> Self {
        let Fence(number) = fence;
        let text = format!(
            "the save of {room_type} {key:?} was opened again since: fence {number} is not the \
             newest, and may not write it"
        );
        Self::new(StoreErrorKind::Fenced, text)
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
