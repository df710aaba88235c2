//! Work that must not hold up a shard: what waits, and what computes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use playfield_room::{Error, Job, Mail, Note, Result, Task};
use playfield_wire::ErrorCode;

use crate::mailbox::Mailboxes;
use crate::shard::{RoomAddress, ShardMail};

/// Where rooms send their work. What it ends with comes back as mail.
pub(crate) trait Background: Send + Sync {
    /// Starts work that waits.
    fn spawn(&self, from: RoomAddress, task: u64, work: Task);

    /// Queues work that computes.
    ///
    /// # Errors
    /// `busy` when the queue is full.
    fn compute(&self, from: RoomAddress, task: u64, job: Job) -> Result<()>;
}

/// One tokio thread for what waits, and a pool with a bounded queue for what computes.
pub(crate) struct Threads {
    runtime: tokio::runtime::Handle,
    queue: SyncSender<(RoomAddress, u64, Job)>,
    queue_max: usize,
    mailboxes: Arc<Mailboxes>,
}

/// Keeps the threads of [`Threads`] until it is dropped. Waiting work is given up then, and computations that began are left to end.
pub(crate) struct Keeper {
    _stop: tokio::sync::oneshot::Sender<()>,
}

impl Threads {
    pub(crate) fn start(
        mailboxes: Arc<Mailboxes>,
        threads: usize,
        queue_max: usize,
    ) -> std::io::Result<(Self, Keeper)> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        thread::Builder::new().name("playfield-wait".into()).spawn(move || {
            // An error means that the keeper was dropped, which is how it says stop.
            let _ = runtime.block_on(stopped);
        })?;
        let (queue, jobs) = sync_channel(queue_max);
        let jobs = Arc::new(Mutex::new(jobs));
        for number in 0..threads {
            let (jobs, mailboxes) = (Arc::clone(&jobs), Arc::clone(&mailboxes));
            thread::Builder::new()
                .name(format!("playfield-compute-{number}"))
                .spawn(move || compute(&jobs, &mailboxes))?;
        }
        Ok((Self { runtime: handle, queue, queue_max, mailboxes }, Keeper { _stop: stop }))
    }
}

impl Background for Threads {
    fn spawn(&self, from: RoomAddress, task: u64, work: Task) {
        let mailboxes = Arc::clone(&self.mailboxes);
        let work = self.runtime.spawn(work);
        self.runtime.spawn(async move { report(&mailboxes, from, task, work.await.ok()) });
    }

    fn compute(&self, from: RoomAddress, task: u64, job: Job) -> Result<()> {
        self.queue.try_send((from, task, job)).map_err(|error| match error {
            TrySendError::Full(_) => Error::new(
                ErrorCode::Busy,
                format!("compute_queue_max = {} computations wait", self.queue_max),
            ),
            TrySendError::Disconnected(_) => Error::new(ErrorCode::Internal, "the node is ending"),
        })
    }
}

fn compute(jobs: &Mutex<Receiver<(RoomAddress, u64, Job)>>, mailboxes: &Mailboxes) {
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((from, task, job)) = next else { return };
        report(mailboxes, from, task, catch_unwind(AssertUnwindSafe(job)).ok());
    }
}

/// `None`: the work panicked.
fn report(mailboxes: &Mailboxes, to: RoomAddress, task: u64, note: Option<Note>) {
    let mail = note.map_or(Mail::Lost { task }, |note| Mail::Done { task, note });
    mailboxes.post(to.shard, [ShardMail::Room { room: to.room, mail }]);
}
