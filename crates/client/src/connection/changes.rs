//! The changes of a room's copy, for those who listen.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use playfield_state::{Change, Pattern};
use playfield_wire::DecodeError;
use tokio::sync::Notify;

use crate::{ChangeMirror, Error};

/// The changes of a room's copy, one after the other. Made by
/// [`Room::changes`](crate::Room::changes); dropping it ends the listening.
pub struct Changes {
    queue: Arc<Queue>,
    room: Weak<dyn Listened>,
}

/// A room that is listened to.
pub(super) trait Listened: Send + Sync {
    /// Forgets those who listen no longer.
    fn forget_gone(&self);
}

impl Changes {
    pub(super) fn new(queue: Arc<Queue>, room: Weak<dyn Listened>) -> Self {
        Self { queue, room }
    }

    /// Waits for the copy from which changes are told.
    pub(super) async fn begun(&self) -> Result<(), Error> {
        self.queue.wait(|state| state.begun.then_some(Ok(()))).await
    }

    /// The next change, in the order in which they were made.
    ///
    /// # Errors
    /// If changes were [missed](Error::is_missed), since more came than [are
    /// kept](crate::Connect::events_max) or the copy had to be mended; those that come after
    /// follow. Or if this client is no longer in the room.
    ///
    /// # Cancel safety
    /// Safe: no change is lost.
    pub async fn next(&mut self) -> Result<Change, Error> {
        self.queue.wait(QueueState::next).await
    }

    /// All that is there, of which there is something, and how many were missed before.
    async fn batch(&self) -> Result<(u64, VecDeque<Change>), Error> {
        self.queue
            .wait(|state| {
                let missed =
                    std::mem::take(&mut state.missed) + u64::from(std::mem::take(&mut state.torn));
                let changes = std::mem::take(&mut state.changes);
                if missed > 0 || !changes.is_empty() {
                    return Some(Ok((missed, changes)));
                }
                state.ended.clone().map(Err)
            })
            .await
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.queue.gone.store(true, Ordering::Relaxed);
        if let Some(room) = self.room.upgrade() {
            room.forget_gone();
        }
    }
}

impl fmt::Debug for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Changes").finish_non_exhaustive()
    }
}

/// Has a function called back for changes. Made by [`Room::on_change`](crate::Room::on_change);
/// dropping it ends that: a call that has begun is finished, and no other begins.
#[derive(Debug)]
#[must_use = "dropped, it ends at once"]
pub struct Subscription {
    missed: Arc<AtomicU64>,
    stopped: Arc<AtomicBool>,
    task: tokio::task::AbortHandle,
}

impl Subscription {
    /// Calls back until it is dropped, the function panics, or this client is no longer in the
    /// room.
    pub(super) fn begin(changes: Changes, mut call: impl FnMut(Change) + Send + 'static) -> Self {
        let (missed, stopped) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, stops) = (Arc::clone(&missed), Arc::clone(&stopped));
        let task = tokio::spawn(async move {
            while let Ok((missed, changes)) = changes.batch().await {
                counted.fetch_add(missed, Ordering::Relaxed);
                let stops = Arc::clone(&stops);
                // Where blocking is allowed: a slow function holds up neither the connection nor
                // any other task.
                let called = tokio::task::spawn_blocking(move || {
                    for change in changes {
                        if stops.load(Ordering::Acquire) {
                            break;
                        }
                        call(change);
                    }
                    call
                });
                match called.await {
                    Ok(back) => call = back,
                    // It has panicked, or the runtime ends.
                    Err(_) => break,
                }
            }
        });
        Self { missed, stopped, task: task.abort_handle() }
    }

    /// How many changes were missed, since the function was too slow for them; at least.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Whether nothing more will be called: the function has panicked, or this client is no longer
    /// in the room.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.task.is_finished()
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.stopped.store(true, Ordering::Release);
        self.task.abort();
    }
}

/// Changes that wait for one who listens.
pub(super) struct Queue {
    state: Mutex<QueueState>,
    arrived: Notify,
    /// Who listened is gone.
    gone: AtomicBool,
    changes_max: usize,
}

#[derive(Default)]
struct QueueState {
    /// There is a copy from which changes are told.
    begun: bool,
    changes: VecDeque<Change>,
    missed: u64,
    /// The copy had to be mended: nobody knows what changed then.
    torn: bool,
    ended: Option<Error>,
}

impl QueueState {
    fn next(&mut self) -> Option<Result<Change, Error>> {
        let missed = std::mem::take(&mut self.missed);
        if std::mem::take(&mut self.torn) || missed > 0 {
            return Some(Err(Error::missed_changes(missed)));
        }
        if let Some(change) = self.changes.pop_front() {
            return Some(Ok(change));
        }
        self.ended.clone().map(Err)
    }
}

impl Queue {
    fn new(changes_max: usize) -> Arc<Self> {
        let (state, arrived) = (Mutex::default(), Notify::new());
        Arc::new(Self { state, arrived, gone: AtomicBool::new(false), changes_max })
    }

    /// Waits until there is something, or the room has ended.
    async fn wait<T>(
        &self,
        mut take: impl FnMut(&mut QueueState) -> Option<Result<T, Error>>,
    ) -> Result<T, Error> {
        loop {
            // Made before looking, so that no notice falls between.
            let notified = self.arrived.notified();
            {
                let mut state = self.lock();
                if let Some(found) = take(&mut state) {
                    return found;
                }
                if let Some(error) = &state.ended {
                    return Err(error.clone());
                }
            }
            notified.await;
        }
    }

    fn put(&self, change: Change) {
        let mut state = self.lock();
        if state.changes.len() >= self.changes_max {
            state.changes.pop_front();
            state.missed += 1;
        }
        state.changes.push_back(change);
    }

    /// Does something and tells whoever waits.
    fn tell(&self, work: impl FnOnce(&mut QueueState)) {
        work(&mut self.lock());
        self.arrived.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A second copy of a room's state, kept while someone listens, which tells what changes in it.
pub(super) struct Watcher {
    mirror: Box<dyn ChangeMirror>,
    /// It has a copy that can be patched.
    in_step: bool,
    listeners: Vec<Listener>,
}

struct Listener {
    /// Which changes are meant; all, if none are named.
    pattern: Option<Pattern>,
    queue: Arc<Queue>,
}

impl Watcher {
    /// One that begins with the next snapshot.
    pub(super) fn new(mirror: Box<dyn ChangeMirror>) -> Self {
        Self { mirror, in_step: false, listeners: Vec::new() }
    }

    pub(super) fn listen(&mut self, pattern: Option<Pattern>, changes_max: usize) -> Arc<Queue> {
        let queue = Queue::new(changes_max);
        queue.lock().begun = self.in_step;
        self.listeners.push(Listener { pattern, queue: Arc::clone(&queue) });
        queue
    }

    /// Forgets those who listen no longer. Says whether anyone is left.
    pub(super) fn forget_gone(&mut self) -> bool {
        self.listeners.retain(|listener| !listener.queue.gone.load(Ordering::Relaxed));
        !self.listeners.is_empty()
    }

    pub(super) fn snapshot(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        let Self { mirror, listeners, .. } = self;
        mirror.snapshot_with(body, &mut |change| put(listeners, change))?;
        let torn = !std::mem::replace(&mut self.in_step, true);
        for listener in &self.listeners {
            listener.queue.tell(|state| {
                // One who has just begun has missed nothing.
                state.torn |= torn && state.begun;
                state.begun = true;
            });
        }
        Ok(())
    }

    pub(super) fn patch(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        if !self.in_step {
            return Ok(()); // the snapshot that was asked for is on its way
        }
        let Self { mirror, listeners, .. } = self;
        let read = mirror.patch_with(body, &mut |change| put(listeners, change));
        self.in_step = read.is_ok();
        self.listeners.iter().for_each(|listener| listener.queue.arrived.notify_waiters());
        read
    }

    pub(super) fn end(&self, error: &Error) {
        for listener in &self.listeners {
            listener.queue.tell(|state| state.ended = Some(error.clone()));
        }
    }
}

fn put(listeners: &[Listener], change: Change) {
    let mut meant = listeners
        .iter()
        .filter(|listener| {
            listener.pattern.as_ref().is_none_or(|pattern| pattern.matches(&change.path))
        })
        .peekable();
    while let Some(listener) = meant.next() {
        if meant.peek().is_none() {
            return listener.queue.put(change);
        }
        listener.queue.put(change.clone());
    }
}

impl fmt::Debug for Watcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watcher").field("listeners", &self.listeners.len()).finish_non_exhaustive()
    }
}
