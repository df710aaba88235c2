//! Events that wait for a handle, and how many of them are kept.

#![cfg_attr(not(feature = "poll"), expect(unreachable_pub, reason = "`poll` shows them"))]

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The cost of an event beside its payload and its texts. The message of an event has at least 6
/// bytes beside these, so four times the bytes of all messages is always enough.
pub(crate) const EVENT_BYTES: usize = 24;

/// The limits of what a room, a channel, a device or a listener keeps until it is taken out. Past
/// them the oldest are dropped, which the next call that takes one out reports; the newest is
/// always kept.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// The most events of a room or a channel, changes of a listener, or commands to a device, at
    /// least 1. A room keeps more events while they are short. Default: 1024.
    pub events_max: usize,
    /// The most bytes of events that a room keeps past `events_max`. An event counts for its
    /// payload and 24 bytes. A client that comes back gets all events of its absence at once, so
    /// keep at least four times the node's `limits.session.resume_bytes`. Default: 1 MiB, which is
    /// that for a node's default settings.
    pub event_bytes_max: usize,
    /// The most bytes of events or commands, however few they are, if that is more than
    /// `event_bytes_max`. Refusals of sends count with their texts. Default: 64 MiB.
    pub queue_bytes_max: usize,
}

impl Default for QueueLimits {
    fn default() -> Self {
        Self { events_max: 1024, event_bytes_max: 1 << 20, queue_bytes_max: 64 << 20 }
    }
}

impl QueueLimits {
    /// The most bytes that are kept, but for the newest event alone.
    pub fn bytes_max(self) -> usize {
        self.queue_bytes_max.max(self.event_bytes_max)
    }
}

/// A state behind a lock, and who waits for a change of it.
#[derive(Debug)]
pub(crate) struct Monitor<S> {
    state: Mutex<S>,
    changed: Notify,
}

impl<S> Monitor<S> {
    pub(crate) fn new(state: S) -> Self {
        Self { state: Mutex::new(state), changed: Notify::new() }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, S> {
        // A panic leaves a room's copy half changed, as an error does, and the copy knows it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes those that wait.
    pub(crate) fn notify(&self) {
        self.changed.notify_waiters();
    }

    /// Changes the state, and wakes those that wait.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut S) -> T) -> T {
        let result = change(&mut self.lock());
        self.notify();
        result
    }

    /// Waits until `take` finds something.
    ///
    /// Cancel safety: safe, nothing is lost.
    pub(crate) async fn wait<T>(&self, mut take: impl FnMut(&mut S) -> Option<T>) -> T {
        loop {
            // Created before the check, so that no notification is lost.
            let notified = self.changed.notified();
            let found = take(&mut self.lock());
            match found {
                Some(found) => return found,
                None => notified.await,
            }
        }
    }
}

/// Events for a handle, oldest first, until the end.
#[derive(Debug)]
pub struct Queue<T> {
    inner: Monitor<Inner<T>>,
    most: usize,
    bytes_max: usize,
}

#[derive(Debug)]
struct Inner<T> {
    /// Each with the bytes that it counts for.
    waiting: VecDeque<(T, usize)>,
    /// The sum of the costs of all that wait.
    bytes: usize,
    /// Dropped before the oldest that waits.
    missed: u64,
    has_ended: bool,
}

/// The next of a queue.
#[derive(Debug)]
pub enum Next<T> {
    /// One that waited.
    Item(T),
    /// So many were dropped, because they were not taken out in time.
    Missed(u64),
    /// Nothing more will come.
    Ended,
}

impl<T> Queue<T> {
    /// A queue that keeps so much.
    #[must_use]
    pub fn new(kept: QueueLimits) -> Self {
        let inner = Inner { waiting: VecDeque::new(), bytes: 0, missed: 0, has_ended: false };
        let (most, bytes_max) = (kept.events_max.max(1), kept.bytes_max());
        Self { inner: Monitor::new(inner), most, bytes_max }
    }

    /// Adds one that has so many bytes of payload and texts. If that is too much, drops the oldest,
    /// which `weight` counts, and returns them.
    pub fn put(&self, item: T, bytes: usize, weight: impl Fn(&T) -> u64) -> Vec<T> {
        let bytes = EVENT_BYTES + bytes;
        self.inner.change(|inner| {
            let mut dropped = Vec::new();
            while (inner.waiting.len() >= self.most || inner.bytes + bytes > self.bytes_max)
                && let Some((oldest, bytes)) = inner.waiting.pop_front()
            {
                inner.bytes -= bytes;
                inner.missed += weight(&oldest);
                dropped.push(oldest);
            }
            inner.bytes += bytes;
            inner.waiting.push_back((item, bytes));
            dropped
        })
    }

    /// Nothing more will come.
    pub fn end(&self) {
        self.inner.change(|inner| inner.has_ended = true);
    }

    /// The next, if there is one.
    pub fn try_next(&self) -> Option<Next<T>> {
        self.inner.lock().next()
    }

    /// Waits for the next.
    ///
    /// Cancel safety: safe, nothing is lost.
    pub async fn next(&self) -> Next<T> {
        self.inner.wait(Inner::next).await
    }
}

impl<T> Inner<T> {
    fn next(&mut self) -> Option<Next<T>> {
        if self.missed > 0 {
            return Some(Next::Missed(std::mem::take(&mut self.missed)));
        }
        if let Some((item, bytes)) = self.waiting.pop_front() {
            self.bytes -= bytes;
            return Some(Next::Item(item));
        }
        self.has_ended.then_some(Next::Ended)
    }
}
