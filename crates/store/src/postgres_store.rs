//! The store in PostgreSQL.

mod batch;
mod database;
mod lane;
mod migrations;
mod session;
mod trouble;

use std::fmt;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use playfield_room::{
    Completion, Fence, Loaded, Opened, Store, StoreError, StoreErrorKind, Stored,
};
use tokio::sync::oneshot;
use tokio_postgres::tls::{MakeTlsConnect, TlsConnect};
use tokio_postgres::{NoTls, Socket};

use self::batch::{Op, Write};
use self::database::Database;
use self::lane::Lane;
use crate::queue::{Name, Queue};
use crate::reader::Query;
use crate::stored::{named, stored};

/// The time for which a store that is released waits for its saves to be written.
const RELEASE_WAIT: Duration = Duration::from_secs(5);

/// The settings of a [`PostgresStore`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PostgresOptions {
    /// The number of connections, each with a thread. All calls for a save go over one of them, in
    /// their order. 2.
    pub connections: usize,
    /// The maximum number of bytes of one save. Larger ones fail. 64 MiB.
    pub save_bytes_max: usize,
    /// The maximum number of bytes that wait to be written. A save beyond that fails with `Busy`.
    /// 256 MiB, of which each connection has its share.
    pub waiting_bytes_max: usize,
    /// The longest time to connect. 5 s.
    pub connect_timeout: Duration,
    /// The longest time for a statement. 30 s.
    pub statement_timeout: Duration,
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            connections: 2,
            save_bytes_max: 64 << 20,
            waiting_bytes_max: 256 << 20,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
        }
    }
}

/// Saves in a PostgreSQL database, version 12 or later. Several nodes may use it at a time: the
/// fences are in the database.
///
/// A save is completed when it is committed, which is durable if the database says so
/// (`synchronous_commit`). Saves that wait are written together, by one statement; each has its own
/// outcome.
///
/// While the database is away, saves wait, and are written once it is back; calls that read fail
/// with [`StoreErrorKind::Away`]. Dropping the store waits until all accepted saves are written, or
/// for 5 s if the database is away.
///
/// The store makes its tables by itself, in the first schema of the user's `search_path`. Every
/// connection is one session, so a pooler in between must not be in transaction mode.
pub struct PostgresStore {
    queues: Vec<Arc<Queue<Op>>>,
    threads: Vec<JoinHandle<()>>,
    options: PostgresOptions,
    place: Arc<str>,
}

impl PostgresStore {
    /// Connects to a database and makes the tables, if they are not there. `url` is such as
    /// `postgres://user:password@host:5432/database`, with
    /// [parameters](tokio_postgres::Config) such as `?target_session_attrs=read-write`.
    ///
    /// # Errors
    /// If the URL is invalid, the database can't be reached or refuses the user, or its tables are
    /// of a newer build.
    pub fn connect(url: &str) -> Result<Self, StoreError> {
        Self::connect_with(url, PostgresOptions::default())
    }

    /// Connects like [`connect`](Self::connect), with other settings.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect).
    pub fn connect_with(url: &str, options: PostgresOptions) -> Result<Self, StoreError> {
        Self::connect_tls(url, options, NoTls)
    }

    /// Connects like [`connect`](Self::connect), with TLS by a connector of `tokio-postgres`, such
    /// as the one in `tokio-postgres-rustls`. The URL says whether it is required:
    /// `?sslmode=require`.
    ///
    /// # Errors
    /// The errors of [`connect`](Self::connect).
    pub fn connect_tls<T>(url: &str, options: PostgresOptions, tls: T) -> Result<Self, StoreError>
    where
        T: MakeTlsConnect<Socket> + Clone + Send + Sync + 'static,
        T::TlsConnect: Send,
        T::Stream: Send + 'static,
        <T::TlsConnect as TlsConnect<Socket>>::Future: Send,
    {
        let database = Arc::new(Database::new(url, options, tls)?);
        let place = Arc::clone(&database.place);
        let mut this = Self { queues: Vec::new(), threads: Vec::new(), options, place };
        let (tells, started) = sync_channel(1);
        let mut tells = Some(tells);
        for number in 0..options.connections.max(1) {
            let queue = Arc::new(Queue::default());
            this.queues.push(Arc::clone(&queue));
            let lane = Lane::new(Arc::clone(&database), queue).map_err(|error| failed(&error))?;
            let tells = tells.take();
            let work = move || lane.run(tells);
            let thread = thread::Builder::new().name(format!("store-postgres-{number}"));
            this.threads.push(thread.spawn(work).map_err(|error| failed(&error))?);
            if number == 0 {
                let stopped = |_| StoreError::new(StoreErrorKind::Other, "the store has stopped");
                started.recv().map_err(stopped)??;
            }
        }
        Ok(this)
    }

    /// Hands work to the thread of this save.
    fn put(&self, name: &Name, op: Op) {
        // The same in each run, so that tests are, too.
        let hasher = BuildHasherDefault::<DefaultHasher>::default();
        let lane = hasher.hash_one(name) as usize % self.queues.len();
        let limit = self.options.waiting_bytes_max / self.queues.len();
        if let Err((op, error)) = self.queues[lane].put(op, limit) {
            op.fail(&error);
        }
    }

    fn write(&self, name: Name, fence: Fence, bytes: Option<Vec<u8>>, done: Completion) {
        let (size, limit) = (bytes.as_ref().map_or(0, Vec::len), self.options.save_bytes_max);
        if size > limit {
            let (room_type, key) = name;
            let text = format!(
                "the save of {room_type} {key:?} has {size} bytes, and may have {limit}: keep less in \
                 the state, or raise save_bytes_max"
            );
            return done.complete(Err(StoreError::new(StoreErrorKind::Other, text)));
        }
        let write = Write { name: name.clone(), fence, bytes, done };
        self.put(&name, Op::Write(write));
    }
}

fn failed(error: &io::Error) -> StoreError {
    StoreError::new(StoreErrorKind::Other, format!("can't start a thread: {error}"))
}

impl Store for PostgresStore {
    fn open(&self, room_type: &str, key: &str) -> Stored<Opened> {
        let name = named(room_type, key);
        let (done, outcome) = oneshot::channel();
        self.put(&name, Op::Open(name.clone(), done));
        stored(outcome)
    }

    fn close(&self, room_type: &str, key: &str, fence: Fence) {
        let name = named(room_type, key);
        self.put(&name, Op::Close(name.clone(), fence));
    }

    fn load(&self, room_type: &str, key: &str) -> Stored<Option<Loaded>> {
        let name = named(room_type, key);
        let (done, outcome) = oneshot::channel();
        self.put(&name, Op::Load(name.clone(), done));
        stored(outcome)
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
        self.put(&named(room_type, ""), Op::Keys(query, done));
        stored(outcome)
    }

    fn release(&self) -> Result<(), StoreError> {
        let until = Instant::now() + RELEASE_WAIT;
        if self.queues.iter().all(|queue| queue.is_done_by(until)) {
            return Ok(());
        }
        let place = &self.place;
        let text =
            format!("the store {place} has not written what it accepted within {RELEASE_WAIT:?}");
        Err(StoreError::new(StoreErrorKind::Away, text))
    }

    fn is_shared(&self) -> bool {
        true
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.queues.iter().for_each(|queue| queue.close());
        for thread in self.threads.drain(..) {
            // The thread has reported the panic.
            let _ = thread.join();
        }
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("PostgresStore");
        debug.field("place", &self.place).field("options", &self.options).finish_non_exhaustive()
    }
}
