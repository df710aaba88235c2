//! A thread with a connection, which does the calls for some of the saves, in their order.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

use playfield_room::StoreError;
use tokio::runtime::{Builder, Runtime};

use super::batch::{Batch, Op};
use super::database::Database;
use super::session::Session;
use crate::queue::Queue;

/// The bytes that are taken from the queue at once.
const TAKE_BYTES_MAX: usize = 16 << 20;

/// The time between two attempts to reach a database that is away: at first, and at most.
const PAUSE_MIN: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);

/// The time for which a store that is dropped waits for a database that is away.
const CLOSE_WAIT: Duration = Duration::from_secs(5);

pub(super) struct Lane {
    database: Arc<Database>,
    queue: Arc<Queue<Op>>,
    runtime: Runtime,
    session: Option<Session>,
    batch: Batch,
    pause: Duration,
    /// When the store is not waited for any more, once it is dropped.
    until: Option<Instant>,
}

impl Lane {
    pub(super) fn new(database: Arc<Database>, queue: Arc<Queue<Op>>) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
        let (batch, pause) = (Batch::default(), PAUSE_MIN);
        Ok(Self { database, queue, runtime, session: None, batch, pause, until: None })
    }

    /// Works until the queue is closed and empty. The first one makes the tables, and says how that
    /// ended.
    pub(super) fn run(mut self, started: Option<SyncSender<Result<(), StoreError>>>) {
        if let Some(started) = started {
            match self.runtime.block_on(self.database.connect_first()) {
                Ok(session) => {
                    self.session = Some(session);
                    let _ = started.send(Ok(()));
                }
                Err(error) => return drop(started.send(Err(error))),
            }
        }
        loop {
            if self.batch.is_empty() {
                match self.queue.take(TAKE_BYTES_MAX) {
                    Some(ops) => self.batch.add(ops),
                    None => return,
                }
            }
            match self.work() {
                Ok(()) => self.pause = PAUSE_MIN,
                Err(error) => self.wait(&error),
            }
        }
    }

    /// Does what waits. After an error the database is away.
    fn work(&mut self) -> Result<(), StoreError> {
        let Self { database, queue, session, batch, .. } = self;
        self.runtime.block_on(async {
            if let Some(used) = session {
                match batch.run(used, queue).await {
                    Ok(()) => return Ok(()),
                    // The connection may have broken long ago, as by a restart of the database.
                    Err(error) => log::debug!("a connection is replaced: {error}"),
                }
                *session = None;
            }
            let new = database.connect().await?;
            batch.run(&new, queue).await?;
            *session = Some(new);
            Ok(())
        })
    }

    /// Answers what reads, and lets some time pass.
    fn wait(&mut self, error: &StoreError) {
        if self.queue.is_closed() {
            let until = *self.until.get_or_insert_with(|| Instant::now() + CLOSE_WAIT);
            if Instant::now() >= until {
                let lost = self.batch.fail_all(error, &self.queue);
                if lost > 0 {
                    log::error!("{lost} saves were not written: {error}");
                }
                return;
            }
        }
        self.database.log_away(error);
        self.batch.fail_reads(error, &self.queue);
        if !self.batch.is_empty() || !self.queue.is_closed() {
            let more = self.queue.take_after(self.pause);
            self.batch.add(more);
            self.pause = (self.pause * 2).min(PAUSE_MAX);
        }
    }
}
