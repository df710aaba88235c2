//! What the connection's task and a handle share: a bounded queue.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// What arrives for a handle, oldest first, until the end.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    inner: Mutex<Inner<T>>,
    arrived: Notify,
    most: usize,
}

#[derive(Debug)]
struct Inner<T> {
    waiting: VecDeque<T>,
    /// Dropped before the oldest that waits.
    missed: u64,
    has_ended: bool,
}

/// The next of a queue.
#[derive(Debug)]
pub(crate) enum Next<T> {
    Item(T),
    /// So many were dropped, because they were not taken out in time.
    Missed(u64),
    Ended,
}

impl<T> Queue<T> {
    pub(crate) fn new(most: usize) -> Self {
        let inner = Inner { waiting: VecDeque::new(), missed: 0, has_ended: false };
        Self { inner: Mutex::new(inner), arrived: Notify::new(), most: most.max(1) }
    }

    /// Adds one. If it is too many, drops the oldest, which `weight` counts, and returns it.
    pub(crate) fn put(&self, item: T, weight: impl FnOnce(&T) -> u64) -> Option<T> {
        let mut inner = self.lock();
        let mut dropped = None;
        if inner.waiting.len() >= self.most
            && let Some(oldest) = inner.waiting.pop_front()
        {
            inner.missed += weight(&oldest);
            dropped = Some(oldest);
        }
        inner.waiting.push_back(item);
        drop(inner);
        self.arrived.notify_waiters();
        dropped
    }

    /// Nothing more will come.
    pub(crate) fn end(&self) {
        self.lock().has_ended = true;
        self.arrived.notify_waiters();
    }

    /// Waits for the next.
    ///
    /// Cancel safety: safe, nothing is lost.
    pub(crate) async fn next(&self) -> Next<T> {
        loop {
            // Created before the check, so that no notification is lost.
            let notified = self.arrived.notified();
            {
                let mut inner = self.lock();
                if inner.missed > 0 {
                    return Next::Missed(std::mem::take(&mut inner.missed));
                }
                if let Some(item) = inner.waiting.pop_front() {
                    return Next::Item(item);
                }
                if inner.has_ended {
                    return Next::Ended;
                }
            }
            notified.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
