//! Work beside the rooms: one thread for what waits, which are tasks of rooms, authenticators and
//! HTTP, and a few threads for tasks that compute.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use playfield_room::{Completion, Error, InternalMessage, Job, Mail, Task};
use playfield_wire::ErrorCode;
use tokio::runtime::{Builder, Handle};
use tokio::sync::Notify;

use crate::auth::{Deciding, authenticator_failed};
use crate::background::{Background, Begin, Origin, Underway};
use crate::counted::Counted;
use crate::event_loop::SharedRuntime;
use crate::memory::release;
use crate::panics::guard;
use crate::pulse::Called;
use crate::shard::keys::ConnectionKey;
use crate::shard::mail::ShardMail;

/// Runs the rooms' background work.
pub(crate) struct Control {
    shared: Arc<SharedRuntime>,
    runtime: Handle,
    queue: Arc<Queue>,
    tasks_max: usize,
    authentications_max: usize,
    /// The number of decisions that have begun.
    decisions: AtomicU64,
}

/// The most threads that read files, or run what handlers pass to `spawn_blocking`.
const BLOCKING_THREADS_MAX: usize = 64;

/// Its threads. Dropping them stops them: queued work is dropped, and each thread ends when its
/// current task ends.
pub(crate) struct ControlThreads {
    stops: Arc<Notify>,
    queue: Arc<Queue>,
    /// The thread for what waits, and what is disconnected at its end.
    waits: Option<JoinHandle<()>>,
    ended: Receiver<Infallible>,
}

/// Computations that wait for a thread.
struct Queue {
    jobs: Mutex<Jobs>,
    changed: Condvar,
    jobs_max: usize,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<(Origin, Job)>,
    /// The number of reserved places.
    kept: usize,
    stops: bool,
}

/// A reserved place in the queue for a computation.
struct Place(Arc<Queue>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.lock().kept -= 1;
    }
}

impl Control {
    /// Starts the threads.
    pub(crate) fn start(
        shared: Arc<SharedRuntime>,
        compute_threads: usize,
        jobs_max: usize,
        tasks_max: usize,
        authentications_max: usize,
    ) -> io::Result<(Self, ControlThreads)> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(BLOCKING_THREADS_MAX)
            .thread_name("playfield-blocking")
            .build()?;
        // A server starts once.
        let _ = shared.control.set(runtime.handle().clone());
        let stops = Arc::new(Notify::new());
        let queue = Arc::new(Queue { jobs: Mutex::default(), changed: Condvar::new(), jobs_max });
        let control = Self {
            shared: Arc::clone(&shared),
            runtime: runtime.handle().clone(),
            queue: Arc::clone(&queue),
            tasks_max,
            authentications_max,
            decisions: AtomicU64::new(0),
        };
        let (lives, ended) = sync_channel(1);
        let mut threads = ControlThreads { stops, queue, waits: None, ended };
        let stops = Arc::clone(&threads.stops);
        let waits = thread::Builder::new().name("playfield-control".into());
        threads.waits = Some(waits.spawn(move || {
            runtime.block_on(stops.notified());
            // Pending tasks are dropped with it.
            runtime.shutdown_background();
            drop(lives);
        })?);
        for number in 0..compute_threads {
            let (queue, shared) = (Arc::clone(&threads.queue), Arc::clone(&shared));
            let computes = thread::Builder::new().name(format!("playfield-compute-{number}"));
            computes.spawn(move || queue.work(&shared))?;
        }
        Ok((control, threads))
    }
}

impl Control {
    /// The runtime of the thread for what waits.
    pub(crate) fn runtime(&self) -> &Handle {
        &self.runtime
    }
}

impl Background for Control {
    fn spawn(&self, origin: Origin, work: Task) -> Result<(), Error> {
        let max = self.tasks_max;
        let runs = Counted::new(&self.shared.work.tasks, max).ok_or_else(|| {
            let text = format!("limits.queues.tasks: {max} background tasks are running already");
            Error::new(ErrorCode::Busy, text)
        })?;
        let shared = Arc::clone(&self.shared);
        self.runtime.spawn(async move {
            // A separate task, so that a panic in it is an error here.
            let message = tokio::spawn(as_task(Arc::clone(&shared), work)).await.ok();
            drop(runs);
            finish(&shared, origin, message);
        });
        Ok(())
    }

    fn completion(&self, origin: Origin) -> Completion {
        let Origin { shard, room, task: save } = origin;
        let shared = Arc::clone(&self.shared);
        Completion::new(move |outcome| {
            let mail = ShardMail::Finished { room, mail: Mail::Saved { save, outcome } };
            // A room has one save under way.
            shared.mailboxes[usize::from(shard)].push_promised(mail);
        })
    }

    fn compute_later(&self, origin: Origin, job: Job) -> Result<Begin, Error> {
        let mut jobs = self.queue.lock();
        if jobs.waiting.len() + jobs.kept >= self.queue.jobs_max {
            let text = format!(
                "limits.queues.computations: {} computations are queued already",
                self.queue.jobs_max
            );
            return Err(Error::new(ErrorCode::Busy, text));
        }
        jobs.kept += 1;
        drop(jobs);
        let (place, shared) = (Place(Arc::clone(&self.queue)), Arc::clone(&self.shared));
        Ok(Box::new(move || {
            let mut jobs = place.0.lock();
            jobs.waiting.push_back((origin, job));
            shared.work.computations.store(jobs.waiting.len(), Ordering::Relaxed);
            drop(jobs);
            place.0.changed.notify_one();
        }))
    }

    fn decide(
        &self,
        shard: u16,
        connection: ConnectionKey,
        mut deciding: Deciding,
    ) -> Result<Underway, Error> {
        let max = self.authentications_max;
        let waits = Counted::new(&self.shared.work.authentications, max).ok_or_else(|| {
            let text =
                format!("limits.queues.authentications: {max} clients wait already; try again");
            Error::new(ErrorCode::Busy, text)
        })?;
        let shared = Arc::clone(&self.shared);
        let decision = self.decisions.fetch_add(1, Ordering::Relaxed) + 1;
        let task = self.runtime.spawn(async move {
            let decided = poll_fn(|cx| {
                shared.control_pulse.pulse.calls(Called::Authenticator);
                match guard("the authenticator", || deciding.as_mut().poll(cx)) {
                    Some(polled) => polled,
                    None => Poll::Ready(Err(authenticator_failed())),
                }
            })
            .await;
            drop(waits);
            let decided = Box::new(decided);
            let mail = ShardMail::Authenticated { connection, decision, decided };
            shared.mailboxes[usize::from(shard)].push_promised(mail);
        });
        Ok(Underway { task: Some(task.abort_handle()), decision })
    }
}

impl ControlThreads {
    /// Stops them, and waits for the one for what waits, but not longer than this: code of the
    /// program may block it. Returns the thread, and whether it has ended. A computation may take
    /// for ever; its thread ends after it, or with the process.
    pub(crate) fn end(mut self, wait: Duration) -> Option<(JoinHandle<()>, bool)> {
        self.stop();
        let has_ended = self.ended.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected);
        Some((self.waits.take()?, has_ended))
    }

    fn stop(&self) {
        self.stops.notify_one();
        self.queue.lock().stops = true;
        self.queue.changed.notify_all();
    }
}

impl Drop for ControlThreads {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Background work that the watchdog knows.
pub(crate) async fn as_task<F: Future>(shared: Arc<SharedRuntime>, work: F) -> F::Output {
    let mut work = pin!(work);
    poll_fn(|cx| {
        shared.control_pulse.pulse.calls(Called::Task);
        work.as_mut().poll(cx)
    })
    .await
}

impl Queue {
    /// The loop of a thread for computations.
    fn work(&self, shared: &SharedRuntime) {
        loop {
            let mut jobs = self.lock();
            let (origin, job) = loop {
                if jobs.stops {
                    return;
                }
                let next = jobs.waiting.pop_front();
                shared.work.computations.store(jobs.waiting.len(), Ordering::Relaxed);
                release(&mut jobs.waiting);
                match next {
                    Some(next) => break next,
                    None => jobs = self.changed.wait(jobs).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(jobs);
            let message = catch_unwind(AssertUnwindSafe(job)).ok();
            finish(shared, origin, message);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Jobs> {
        // Jobs run outside the lock.
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends the room the result of its work; `None` if the work panicked.
fn finish(shared: &SharedRuntime, origin: Origin, message: Option<InternalMessage>) {
    let Origin { shard, room, task } = origin;
    let mail = match message {
        Some(message) => Mail::Done { task, message },
        None => Mail::Panicked { task },
    };
    shared.mailboxes[usize::from(shard)].push_promised(ShardMail::Finished { room, mail });
}
