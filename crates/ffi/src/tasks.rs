//! What a client waits for: futures that only `pf_client_next` and the commands poll, so that all
//! happens on the program's threads.

use std::collections::{HashMap, VecDeque};
use std::future::Future;
use std::hash::{BuildHasherDefault, Hasher};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};
use std::time::Instant;

type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The futures of one client.
pub(crate) struct Tasks {
    all: HashMap<u64, (Arc<TaskWaker>, Waker, Task), BuildHasherDefault<NumberHasher>>,
    last: u64,
    /// How many of them are commands.
    commands: usize,
    ready: Arc<Ready>,
}

/// For numbers that count up, which nobody else chooses.
#[derive(Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, number: u64) {
        // The table uses the upper bits and the lower ones: 2^64 divided by the golden ratio.
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
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
    /// How many threads wait. To notify nobody would be a system call too.
    waiting: usize,
    /// They are notified, or will be.
    is_notified: bool,
    /// There is something else to look at.
    is_nudged: bool,
    /// Waiters are to return.
    is_interrupted: bool,
}

struct TaskWaker {
    task: u64,
    is_command: bool,
    is_queued: AtomicBool,
    ready: Arc<Ready>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_queued.swap(true, Ordering::AcqRel) {
            self.ready.change(|state| state.tasks.push_back(self.task));
        }
    }
}

impl Tasks {
    pub(crate) fn new(ready: Arc<Ready>) -> Self {
        Self { all: HashMap::default(), last: 0, commands: 0, ready }
    }

    /// How many commands wait.
    pub(crate) fn commands(&self) -> usize {
        self.commands
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Adds a future that lasts as long as what it follows, and polls it once. Returns its number.
    pub(crate) fn spawn(&mut self, future: impl Future<Output = ()> + Send + 'static) -> u64 {
        self.add(false, future)
    }

    /// Adds a future, and polls it after those that can make progress already. Returns its number.
    pub(crate) fn spawn_after(&mut self, future: impl Future<Output = ()> + Send + 'static) -> u64 {
        let (task, waker) = self.insert(false, future);
        waker.wake_by_ref();
        task
    }

    /// Adds a future that carries out a command, and polls it once.
    pub(crate) fn command(&mut self, future: impl Future<Output = ()> + Send + 'static) {
        self.add(true, future);
    }

    fn add(&mut self, is_command: bool, future: impl Future<Output = ()> + Send + 'static) -> u64 {
        let (task, _) = self.insert(is_command, future);
        self.poll(task);
        task
    }

    fn insert(
        &mut self,
        is_command: bool,
        future: impl Future<Output = ()> + Send + 'static,
    ) -> (u64, Arc<TaskWaker>) {
        self.commands += usize::from(is_command);
        self.last += 1;
        let task = self.last;
        let is_queued = AtomicBool::new(false);
        let waker =
            Arc::new(TaskWaker { task, is_command, is_queued, ready: Arc::clone(&self.ready) });
        let std_waker = Waker::from(Arc::clone(&waker));
        self.all.insert(task, (Arc::clone(&waker), std_waker, Box::pin(future) as Task));
        (task, waker)
    }

    /// Polls the futures that can make progress.
    pub(crate) fn run(&mut self) {
        // Those that wake themselves wait for the next call.
        let tasks = std::mem::take(&mut self.ready.lock().tasks);
        for task in tasks {
            self.poll(task);
        }
    }

    /// Polls the commands that can make progress: those that wait for a place in the queue wait for
    /// one another.
    pub(crate) fn run_commands(&mut self) {
        while self.commands > 0 {
            let mut ready = self.ready.lock();
            let is_command =
                |task: &u64| self.all.get(task).is_some_and(|(own, ..)| own.is_command);
            let (commands, others) = ready.tasks.drain(..).partition(is_command);
            ready.tasks = others;
            drop(ready);
            let commands: VecDeque<u64> = commands;
            if commands.is_empty() {
                return;
            }
            commands.into_iter().for_each(|task| self.poll(task));
        }
    }

    /// Drops all.
    pub(crate) fn clear(&mut self) {
        self.all.clear();
        self.commands = 0;
    }

    /// Drops one.
    pub(crate) fn cancel(&mut self, task: u64) {
        if let Some((own, ..)) = self.all.remove(&task) {
            self.commands -= usize::from(own.is_command);
        }
    }

    fn poll(&mut self, task: u64) {
        // A waker may outlive its future.
        let Some((own, waker, future)) = self.all.get_mut(&task) else { return };
        // A swap, so that what was done before a wake that it undoes is seen by the future.
        own.is_queued.swap(false, Ordering::AcqRel);
        if future.as_mut().poll(&mut Context::from_waker(waker)).is_ready() {
            self.cancel(task);
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
            state.waiting += 1;
            state.is_notified = false;
            state = self
                .arrived
                .wait_timeout(state, until - now)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            state.waiting -= 1;
        }
    }

    /// Whether a future can make progress.
    pub(crate) fn is_ready(&self) -> bool {
        !self.lock().tasks.is_empty()
    }

    /// Makes waiters look again.
    pub(crate) fn nudge(self: &Arc<Self>) {
        self.change(|state| state.is_nudged = true);
    }

    pub(crate) fn interrupt(self: &Arc<Self>) {
        self.change(|state| state.is_interrupted = true);
    }

    /// Changes what is waited for, and wakes the waiters.
    fn change(self: &Arc<Self>, change: impl FnOnce(&mut ReadyState)) {
        let mut state = self.lock();
        change(&mut state);
        let is_waited_for = state.waiting > 0 && !std::mem::replace(&mut state.is_notified, true);
        drop(state);
        later::notify(is_waited_for.then_some(self));
    }

    pub(crate) fn take_interrupt(&self) -> bool {
        std::mem::take(&mut self.lock().is_interrupted)
    }

    fn lock(&self) -> MutexGuard<'_, ReadyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Notifies program threads when the library's thread has nothing more to do: one that runs at once
/// would find the first event of many, and wait again.
pub(crate) mod later {
    use std::cell::RefCell;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use super::Ready;

    /// How long a thread that waits may be left waiting, while the library's thread has more to do.
    const LATE: Duration = Duration::from_micros(200);

    #[derive(Default)]
    struct Notices {
        /// Since when, and for whom.
        due: Option<Instant>,
        waiting: Vec<Arc<Ready>>,
    }

    thread_local! {
        /// Of the library's thread only.
        static NOTICES: RefCell<Option<Notices>> = const { RefCell::new(None) };
    }

    /// This is the library's thread, which calls `flush` before it waits.
    pub(crate) fn begin() {
        NOTICES.set(Some(Notices::default()));
    }

    /// Notifies the waiters, later if this is the library's thread.
    pub(super) fn notify(who: Option<&Arc<Ready>>) {
        let is_now = NOTICES.try_with(|notices| {
            let mut notices = notices.borrow_mut();
            let Some(Notices { due, waiting }) = &mut *notices else { return true };
            if let Some(who) = who {
                due.get_or_insert_with(|| Instant::now() + LATE);
                waiting.push(Arc::clone(who));
            }
            let is_late = due.is_some_and(|due| Instant::now() >= due);
            drop(notices);
            if is_late {
                flush();
            }
            false
        });
        if let Some(who) = who.filter(|_| is_now.unwrap_or(true)) {
            who.arrived.notify_all();
        }
    }

    /// Notifies all.
    pub(crate) fn flush() {
        let waiting = NOTICES.with_borrow_mut(|notices| match notices {
            Some(notices) => std::mem::take(notices).waiting,
            None => Vec::new(),
        });
        for who in waiting {
            who.arrived.notify_all();
        }
    }
}
