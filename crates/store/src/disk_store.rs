//! The store.

use std::fmt;
use std::future::ready;
use std::io;
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use playfield_room::{
    Completion, Fence, Loaded, Opened, Store, StoreError, StoreErrorKind, Stored,
};
use redb::Database;
use redb::backends::FileBackend;
use tokio::sync::oneshot;

use crate::file::{CheckedFile, DatabaseFile, Open};
use crate::queue::Name;
use crate::reader::{self, LOADS_MAX, Query, Request};
use crate::stored::{named, stored};
use crate::writer;
use crate::writes::{Coming, Writes};

/// The number of threads that read.
const READERS: usize = 2;

/// The settings of a [`DiskStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DiskOptions {
    /// The bytes of the file that are kept in memory. 64 MiB.
    pub cache_bytes: usize,
    /// The maximum number of bytes that wait to be written. A save beyond that fails with `Busy`.
    /// 256 MiB.
    pub waiting_bytes_max: usize,
}

impl Default for DiskOptions {
    fn default() -> Self {
        Self { cache_bytes: 64 << 20, waiting_bytes_max: 256 << 20 }
    }
}

/// Saves in one file.
///
/// A save is durable when it is completed: it survives a crash of the process and of the machine.
/// Saves that wait are committed together. After a crash a save is there as a whole or not at all.
/// Fences are kept in memory, since one process has the file.
///
/// After an error of the disk the store continues: a full disk refuses saves until there is space
/// again. Dropping the store waits until all accepted saves are written.
///
/// ```
/// use playfield_room::Store;
/// use playfield_store::DiskStore;
///
/// # let path = std::env::temp_dir().join(format!("playfield-doc-{}.redb", std::process::id()));
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// let store = DiskStore::open(&path)?;
/// let fence = store.open("document", "42").await?.fence;
/// store.save_and_wait("document", "42", fence, b"text".to_vec()).await?;
/// assert_eq!(store.load("document", "42").await?, Some(b"text".to_vec().into()));
/// # drop(store); std::fs::remove_file(&path).unwrap();
/// # Ok::<_, playfield_room::StoreError>(()) }).unwrap();
/// ```
pub struct DiskStore {
    writes: Arc<Writes>,
    file: Arc<DatabaseFile>,
    /// `None` while it is dropped.
    requests: Option<SyncSender<Request>>,
    threads: Vec<JoinHandle<()>>,
    options: DiskOptions,
}

impl DiskStore {
    /// Opens a file, and creates it if there is none: under the name with `.new` appended, and
    /// renamed once it is whole. A `.new` file that a killed process left behind is replaced.
    ///
    /// # Errors
    /// If another process, or another store in this one, has the file open, if it is damaged or not
    /// a store, or if the disk fails.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_with(path, DiskOptions::default())
    }

    /// Opens a store like [`open`](Self::open), with other settings.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with(path: impl AsRef<Path>, options: DiskOptions) -> Result<Self, StoreError> {
        let open = move |file: FileBackend| {
            let mut builder = Database::builder();
            // The older format is not read by later versions of the database.
            builder.create_with_file_format_v3(true).set_cache_size(options.cache_bytes);
            builder.create_with_backend(CheckedFile(file))
        };
        Self::start(path.as_ref(), Box::new(open), options)
    }

    fn start(path: &Path, open: Open, options: DiskOptions) -> Result<Self, StoreError> {
        let file = Arc::new(DatabaseFile::open(path, open)?);
        let writes = Arc::new(Writes::default());
        let (requests, receiver) = sync_channel(LOADS_MAX);
        let mut this = Self {
            writes: Arc::clone(&writes),
            file: Arc::clone(&file),
            requests: Some(requests),
            threads: Vec::new(),
            options,
        };
        let receiver = Arc::new(Mutex::new(receiver));
        for number in 0..READERS {
            let (file, receiver) = (Arc::clone(&file), Arc::clone(&receiver));
            this.spawn(format!("store-read-{number}"), move || reader::run(&file, &receiver))?;
        }
        this.spawn("store-write".into(), move || writer::run(&file, &writes))?;
        Ok(this)
    }

    fn spawn(
        &mut self,
        name: String,
        work: impl FnOnce() + Send + 'static,
    ) -> Result<(), StoreError> {
        let thread = thread::Builder::new().name(name).spawn(work);
        let failed = |error: io::Error| {
            StoreError::new(StoreErrorKind::Other, format!("can't start a thread: {error}"))
        };
        self.threads.push(thread.map_err(failed)?);
        Ok(())
    }

    fn write(&self, name: Name, fence: Fence, bytes: Option<Vec<u8>>, done: Completion) {
        let limit = self.options.waiting_bytes_max;
        self.writes.put(name, fence, bytes.map(Arc::new), done, limit);
    }

    /// Returns the save of a name, if that is what comes of it.
    fn find(&self, name: Name, coming: Coming) -> Stored<Option<Loaded>> {
        let coming = match coming {
            Coming::Nothing => {
                let (done, outcome) = oneshot::channel();
                self.read(Request::Load(name, done));
                return stored(outcome);
            }
            Coming::Removed => None,
            // The commit may fail.
            Coming::Saved(bytes) => Some(Loaded { bytes: bytes.to_vec(), is_durable: false }),
        };
        Box::pin(ready(Ok(coming)))
    }

    fn read(&self, request: Request) {
        if let Some(requests) = &self.requests {
            reader::put(requests, request);
        }
    }
}

impl Store for DiskStore {
    fn open(&self, room_type: &str, key: &str) -> Stored<Opened> {
        let name = named(room_type, key);
        let (fence, coming) = self.writes.open(&name);
        let found = self.find(name, coming);
        Box::pin(async move { Ok(Opened { fence, save: found.await? }) })
    }

    fn close(&self, room_type: &str, key: &str, fence: Fence) {
        self.writes.close_save(&named(room_type, key), fence);
    }

    fn load(&self, room_type: &str, key: &str) -> Stored<Option<Loaded>> {
        let name = named(room_type, key);
        let coming = self.writes.coming(&name);
        self.find(name, coming)
    }

    fn save(&self, room_type: &str, key: &str, fence: Fence, bytes: Vec<u8>, done: Completion) {
        self.write(named(room_type, key), fence, Some(bytes), done);
    }

    fn remove(&self, room_type: &str, key: &str, fence: Fence) -> Stored<()> {
        let (done, outcome) = Completion::awaited();
        self.write(named(room_type, key), fence, None, done);
        outcome
    }

    fn keys(&self, room_type: &str, after: Option<&str>, limit: usize) -> Stored<Vec<String>> {
        let query = Query { room_type: room_type.into(), after: after.map(Into::into), limit };
        let (done, outcome) = oneshot::channel();
        self.read(Request::Keys(query, done));
        stored(outcome)
    }

    fn release(&self) -> Result<(), StoreError> {
        self.writes.wait_until_written();
        self.file.close();
        Ok(())
    }
}

impl Drop for DiskStore {
    fn drop(&mut self) {
        self.writes.close();
        self.requests = None;
        for thread in self.threads.drain(..) {
            // The thread has reported the panic.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for DiskStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DiskStore").field("options", &self.options).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
