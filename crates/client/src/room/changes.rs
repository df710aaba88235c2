//! Reports the changes of a room's copy to its listeners.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use playfield_state::{Change, DynamicMirror, Pattern};
use playfield_wire::DecodeError;

use crate::queue::Monitor;
use crate::session::UpdateKind;
use crate::{Error, Mirror};

/// The changes of a room's copy, one by one. Returned by [`Room::changes`](crate::Room::changes);
/// drop it to stop listening.
///
/// ```no_run
/// # use playfield_client::{Error, Kind, Room};
/// # async fn example<R: Kind>(room: Room<R>) -> Result<(), Error> {
/// let mut changes = room.changes().await?;
/// loop {
///     match changes.next().await {
///         Ok(change) => println!("{} {:?}: {:?}", change.path, change.kind, change.new),
///         Err(error) if error.is_missed() => println!("{error}"),
///         Err(error) => return Err(error),
///     }
/// }
/// # }
/// ```
pub struct Changes {
    queue: Arc<Queue>,
    room: Weak<dyn Listened>,
}

/// A room with listeners.
pub(super) trait Listened: Send + Sync {
    /// Forgets the listeners that were dropped.
    fn forget_gone(&self);
}

impl Changes {
    pub(super) fn new(queue: Arc<Queue>, room: Weak<dyn Listened>) -> Self {
        Self { queue, room }
    }

    /// Waits for the copy from which on changes are reported.
    pub(super) async fn begun(&self) -> Result<(), Error> {
        self.queue.wait(|state| state.begun.then_some(Ok(()))).await
    }

    /// Waits for the next change, in the order in which they were made.
    ///
    /// The copy is frozen while a [`StateRef`](crate::StateRef) exists, so drop it before waiting
    /// here.
    ///
    /// # Errors
    /// If changes were [missed](Error::is_missed), because more came than [are
    /// kept](crate::Connect::queue_limits) or the copy had to be replaced; later changes follow. Or
    /// if this client is no longer in the room.
    ///
    /// # Cancel safety
    /// Safe: no change is lost.
    pub async fn next(&mut self) -> Result<Change, Error> {
        self.queue.wait(QueueState::next).await
    }

    /// Waits for changes and takes all, with the number that was missed before them.
    async fn batch(&self) -> Result<(u64, VecDeque<Change>), Error> {
        self.queue
            .wait(|state| {
                let missed =
                    std::mem::take(&mut state.missed) + u64::from(std::mem::take(&mut state.torn));
                let changes = std::mem::take(&mut state.changes);
                (missed > 0 || !changes.is_empty()).then_some(Ok((missed, changes)))
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

/// A function that is called for changes. Returned by [`Room::on_change`](crate::Room::on_change).
/// Drop it to stop: a call that has begun finishes, and no other begins.
#[derive(Debug)]
#[must_use = "dropping it stops the calls"]
pub struct Subscription {
    missed: Arc<AtomicU64>,
    stopped: Arc<AtomicBool>,
    task: tokio::task::AbortHandle,
}

impl Subscription {
    /// Calls until this is dropped, the function panics, or this client is no longer in the room.
    pub(super) fn begin(changes: Changes, mut call: impl FnMut(Change) + Send + 'static) -> Self {
        let (missed, stopped) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, stops) = (Arc::clone(&missed), Arc::clone(&stopped));
        let task = tokio::spawn(async move {
            while let Ok((missed, changes)) = changes.batch().await {
                counted.fetch_add(missed, Ordering::Relaxed);
                let stops = Arc::clone(&stops);
                // On a thread that may block, so that a slow function delays no task.
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
                    // The function panicked, or the runtime is shutting down.
                    Err(_) => break,
                }
            }
        });
        Self { missed, stopped, task: task.abort_handle() }
    }

    /// At least how many changes were missed, because the function was too slow or the copy had to
    /// be replaced.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }

    /// Returns whether the function is called no more: it panicked, or this client is no longer
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

/// The changes that wait for one listener.
pub(super) struct Queue {
    state: Monitor<QueueState>,
    /// The listener was dropped.
    gone: AtomicBool,
    changes_max: usize,
}

#[derive(Default)]
struct QueueState {
    /// There is a copy from which on changes are reported.
    begun: bool,
    changes: VecDeque<Change>,
    missed: u64,
    /// The copy was replaced, and what changed by that is unknown.
    torn: bool,
    ended: Option<Error>,
}

impl QueueState {
    fn next(&mut self) -> Option<Result<Change, Error>> {
        let missed = std::mem::take(&mut self.missed);
        if std::mem::take(&mut self.torn) || missed > 0 {
            return Some(Err(Error::missed_changes(missed)));
        }
        self.changes.pop_front().map(Ok)
    }
}

impl Queue {
    /// Waits until `take` finds something, or the room has ended.
    async fn wait<T>(
        &self,
        mut take: impl FnMut(&mut QueueState) -> Option<Result<T, Error>>,
    ) -> Result<T, Error> {
        self.state.wait(|state| take(state).or_else(|| state.ended.clone().map(Err))).await
    }

    fn put(&self, change: Change) {
        let mut state = self.state.lock();
        if state.changes.len() >= self.changes_max {
            state.changes.pop_front();
            state.missed += 1;
        }
        state.changes.push_back(change);
    }
}

/// All listeners of one room.
pub(super) struct Listeners {
    /// A second copy that reports changes, if the room's own copy can't.
    second: Option<DynamicMirror>,
    /// There is a copy from which on changes are reported.
    begun: bool,
    /// A patch failed on the copy that reports: the next snapshot can't report changes.
    torn: bool,
    all: Vec<Listener>,
}

struct Listener {
    /// The pattern of the changes to report; `None` for all.
    pattern: Option<Pattern>,
    queue: Arc<Queue>,
}

impl Listeners {
    /// With a second copy, reporting begins with the next snapshot; else at once, if there is a
    /// copy.
    pub(super) fn new(second: Option<DynamicMirror>, has_copy: bool) -> Self {
        Self { begun: second.is_none() && has_copy, second, torn: false, all: Vec::new() }
    }

    pub(super) fn listen(&mut self, pattern: Option<Pattern>, changes_max: usize) -> Arc<Queue> {
        let state = QueueState { begun: self.begun, ..QueueState::default() };
        let (state, gone) = (Monitor::new(state), AtomicBool::new(false));
        let queue = Arc::new(Queue { state, gone, changes_max });
        self.all.push(Listener { pattern, queue: Arc::clone(&queue) });
        queue
    }

    /// Forgets the listeners that were dropped. Returns whether any are left.
    pub(super) fn forget_gone(&mut self) -> bool {
        self.all.retain(|listener| !listener.queue.gone.load(Ordering::Relaxed));
        !self.all.is_empty()
    }

    /// Applies an update to the room's copy, and reports what changes.
    pub(super) fn apply<M: Mirror>(
        &mut self,
        mirror: &mut M,
        kind: UpdateKind,
        body: &[u8],
    ) -> Result<(), DecodeError> {
        let all = &self.all;
        let mut report = |change| put(all, change);
        match &mut self.second {
            None => {
                let applied = mirror.apply(kind, body, Some(&mut report));
                self.torn |= applied.is_err() && kind == UpdateKind::Patch;
                applied?;
            }
            Some(second) => {
                mirror.apply(kind, body, None)?;
                if (self.begun || kind == UpdateKind::Snapshot)
                    && let Err(error) = second.apply(kind, body, Some(&mut report))
                {
                    // The room's own copy is right: only the listening ends.
                    self.end(&Error::payload("what changed", error));
                    return Ok(());
                }
            }
        }
        let is_snapshot = kind == UpdateKind::Snapshot;
        let torn = is_snapshot && std::mem::take(&mut self.torn);
        self.begun |= is_snapshot;
        for listener in &self.all {
            listener.queue.state.change(|state| {
                // A listener that has just begun has missed nothing.
                state.torn |= torn && state.begun;
                state.begun |= is_snapshot;
            });
        }
        Ok(())
    }

    pub(super) fn end(&mut self, error: &Error) {
        for listener in self.all.drain(..) {
            listener.queue.state.change(|state| state.ended = Some(error.clone()));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

fn put(listeners: &[Listener], change: Change) {
    let mut matching = listeners
        .iter()
        .filter(|listener| {
            listener.pattern.as_ref().is_none_or(|pattern| pattern.matches(&change.path))
        })
        .peekable();
    while let Some(listener) = matching.next() {
        if matching.peek().is_none() {
            return listener.queue.put(change);
        }
        listener.queue.put(change.clone());
    }
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listeners").field("count", &self.all.len()).finish_non_exhaustive()
    }
}
