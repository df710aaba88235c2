//! What a client waits for: futures that only `pf_client_next` and the commands poll, so that all
//! happens on the program's threads.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};
use std::time::Instant;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The futures of one client.
pub(crate) struct Tasks {
    all: HashMap<u64, (Arc<TaskWaker>, Waker, Task)>,
    last: u64,
    ready: Arc<Ready>,
}

/// Which futures can make progress. Wakers of any thread write to it.
#[derive(Debug, Default)]
pub(crate) struct Ready {
    state: Mutex<ReadyState>,
    arrived: Condvar,
}

#[derive(Debug, Default)]
struct ReadyState {
    tasks: VecDeque<u64>,
    /// There is something else to look at.
    is_nudged: bool,
    /// Whoever waits is to return.
    is_interrupted: bool,
}

struct TaskWaker {
    task: u64,
    is_queued: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::AcqRel) {
            self.ready.lock().tasks.push_back(self.task);
            self.ready.arrived.notify_all();
        }
    }
}

impl Tasks {
    pub(crate) fn new(ready: Arc<Ready>) -> Self {
        Self { all: HashMap::new(), last: 0, ready }
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// Adds a future, and polls it once. Returns its number.
    pub(crate) fn spawn(&mut self, future: impl Future<Output = ()> + Send + 'static) -> u64 {
        self.last += 1;
        let task = self.last;
        let is_queued = AtomicBool::new(false);
        let waker = Arc::new(TaskWaker { task, is_queued, ready: Arc::clone(&self.ready) });
        let entry = (Arc::clone(&waker), Waker::from(waker), Box::pin(future) as Task);
        self.all.insert(task, entry);
        self.poll(task);
        task
    }

    /// Polls the futures that can make progress.
    pub(crate) fn run(&mut self) {
        // Those that wake themselves wait for the next call.
        let tasks = std::mem::take(&mut self.ready.lock().tasks);
        for task in tasks {
            self.poll(task);
        }
    }

    /// Drops all.
    pub(crate) fn clear(&mut self) {
        self.all.clear();
    }

    /// Drops one.
    pub(crate) fn cancel(&mut self, task: u64) {
        self.all.remove(&task);
    }

    fn poll(&mut self, task: u64) {
        // A waker may outlive its future.
        let Some((own, waker, future)) = self.all.get_mut(&task) else { return };
        // A swap, so that what was done before a wake that it undoes is seen by the future.
        own.is_queued.swap(false, Ordering::AcqRel);
        if future.as_mut().poll(&mut Context::from_waker(waker)).is_ready() {
            self.all.remove(&task);
        }
    }
}

impl Ready {
    /// Waits until a future can make progress, the time is over, or someone interrupts.
    pub(crate) fn wait(&self, until: Instant) {
        let mut state = self.lock();
        while state.tasks.is_empty()
            && !state.is_interrupted
            && !std::mem::take(&mut state.is_nudged)
        {
            let now = Instant::now();
            if now >= until {
                return;
            }
            state = self
                .arrived
                .wait_timeout(state, until - now)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Has whoever waits look again.
    pub(crate) fn nudge(&self) {
        self.lock().is_nudged = true;
        self.arrived.notify_all();
    }

    pub(crate) fn interrupt(&self) {
        self.lock().is_interrupted = true;
        self.arrived.notify_all();
    }

    pub(crate) fn take_interrupt(&self) -> bool {
        std::mem::take(&mut self.lock().is_interrupted)
    }

    fn lock(&self) -> MutexGuard<'_, ReadyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
