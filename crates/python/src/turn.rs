//! A lock that may be held for long: whoever waits for it hears signals and keeps to a deadline.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::sync::MutexExt;

/// The time that a thread waits until it looks for signals.
const LOOK: Duration = Duration::from_millis(50);

/// The number of the running thread; never 0.
pub(crate) fn this_thread() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local! {
        static NUMBER: u64 = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    NUMBER.with(|number| *number)
}

/// Wakes threads that wait until something is so.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    waiting: AtomicUsize,
    rings: Mutex<u64>,
    rung: Condvar,
}

impl Bell {
    /// To be called after each change that a thread may wait for.
    pub(crate) fn ring(&self) {
        if self.waiting.load(Ordering::SeqCst) > 0 {
            *self.rings.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            self.rung.notify_all();
        }
    }

    /// Waits until `ready` returns something, or until the deadline: then it is `None`.
    ///
    /// # Errors
    /// What a signal handler raises, or `ready`.
    pub(crate) fn wait<R>(
        &self,
        py: Python<'_>,
        deadline: Option<Instant>,
        mut ready: impl FnMut() -> PyResult<Option<R>>,
    ) -> PyResult<Option<R>> {
        loop {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            let seen = *self.rings.lock().unwrap_or_else(PoisonError::into_inner);
            let found = ready();
            if let Ok(None) = found {
                let limit = deadline.map_or(LOOK, |deadline| {
                    deadline.saturating_duration_since(Instant::now()).min(LOOK)
                });
                py.detach(|| {
                    let rings = self.rings.lock().unwrap_or_else(PoisonError::into_inner);
                    drop(self.rung.wait_timeout_while(rings, limit, |rings| *rings == seen));
                });
            }
            self.waiting.fetch_sub(1, Ordering::SeqCst);
            if let Some(found) = found? {
                return Ok(Some(found));
            }
            py.check_signals()?;
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Ok(None);
            }
        }
    }
}

/// A value that one thread at a time uses.
#[derive(Debug)]
pub(crate) struct Turn<T> {
    value: Mutex<T>,
    /// The thread that uses it; 0 for none.
    holder: AtomicU64,
    free: Bell,
}

/// The use of a [`Turn`].
#[derive(Debug)]
pub(crate) struct Held<'a, T> {
    turn: &'a Turn<T>,
    /// `None` only while it is dropped.
    value: Option<MutexGuard<'a, T>>,
}

impl<T> Turn<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), holder: AtomicU64::new(0), free: Bell::default() }
    }

    /// Takes it unless a thread, perhaps this one, uses it.
    pub(crate) fn try_take(&self) -> Option<Held<'_, T>> {
        let value = match self.value.try_lock() {
            Ok(value) => value,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        self.holder.store(this_thread(), Ordering::Relaxed);
        Some(Held { turn: self, value: Some(value) })
    }

    /// Waits for it, until the deadline: then it is `None`. A thread that uses it already would wait
    /// for itself: see [`is_mine`](Self::is_mine).
    ///
    /// # Errors
    /// What a signal handler raises.
    pub(crate) fn take(
        &self,
        py: Python<'_>,
        deadline: Option<Instant>,
    ) -> PyResult<Option<Held<'_, T>>> {
        match self.try_take() {
            Some(held) => Ok(Some(held)),
            None => self.free.wait(py, deadline, || Ok(self.try_take())),
        }
    }

    /// Waits for it, deaf to signals: for what is used only for a moment.
    pub(crate) fn lock(&self, py: Python<'_>) -> Held<'_, T> {
        let value = self.value.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        self.holder.store(this_thread(), Ordering::Relaxed);
        Held { turn: self, value: Some(value) }
    }

    /// Whether this thread uses it.
    pub(crate) fn is_mine(&self) -> bool {
        let holder = self.holder.load(Ordering::Relaxed);
        holder != 0 && holder == this_thread()
    }
}

impl<T> std::ops::Deref for Held<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.value.as_ref().expect("held until it is dropped")
    }
}

impl<T> std::ops::DerefMut for Held<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.value.as_mut().expect("held until it is dropped")
    }
}

impl<T> Drop for Held<'_, T> {
    fn drop(&mut self) {
        self.turn.holder.store(0, Ordering::Relaxed);
        self.value = None;
        self.turn.free.ring();
    }
}
