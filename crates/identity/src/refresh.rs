//! Reading keys again: periodically, and when a token names an unknown key.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Instant;

use crate::key_set::KeyError;
use crate::keys::Pace;

/// A thread that reads keys. It ends when this is dropped.
pub(crate) struct Refresher {
    shared: Arc<Shared>,
    pace: Pace,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The number of attempts to read the keys, failed ones included.
    rounds: u64,
    /// When the last round began.
    began: Instant,
    /// The keys are being read, or have to be read now.
    wanted: bool,
    ends: bool,
    wakers: Vec<Waker>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing in here can panic half-way through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Refresher {
    /// Starts a thread that calls `load` at this pace, and `now` too.
    pub(crate) fn start(
        place: String,
        pace: Pace,
        now: bool,
        load: impl FnMut() -> Result<(), KeyError> + Send + 'static,
    ) -> Self {
        let state = State {
            rounds: 0,
            began: Instant::now(),
            wanted: now,
            ends: false,
            wakers: Vec::new(),
        };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let (worker, name) = (Arc::clone(&shared), "playfield-keys".to_owned());
        let started =
            thread::Builder::new().name(name).spawn(move || run(&worker, &place, pace, load));
        if let Err(error) = started {
            log::error!("keys can't be read again: no thread for it: {error}");
            shared.lock().ends = true;
        }
        Self { shared, pace }
    }

    /// Has the keys read. `None` if that happened a moment ago.
    pub(crate) fn ask(&self) -> Option<Refreshed> {
        let mut state = self.shared.lock();
        if state.ends {
            return None;
        }
        if !state.wanted {
            // Before the first round there is nothing to spare.
            if state.rounds > 0 && state.began.elapsed() < self.pace.at_least {
                return None;
            }
            state.wanted = true;
            self.shared.changed.notify_all();
        }
        let round = state.rounds;
        drop(state);
        Some(Refreshed { shared: Arc::clone(&self.shared), round })
    }
}

impl Drop for Refresher {
    fn drop(&mut self) {
        self.shared.lock().ends = true;
        self.shared.changed.notify_all();
    }
}

/// Is ready when keys were read again, or could not be.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Refreshed {
    shared: Arc<Shared>,
    round: u64,
}

impl Future for Refreshed {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.shared.lock();
        if state.rounds > self.round || state.ends {
            return Poll::Ready(());
        }
        state.wakers.push(cx.waker().clone());
        Poll::Pending
    }
}

fn run(shared: &Shared, place: &str, pace: Pace, mut load: impl FnMut() -> Result<(), KeyError>) {
    let mut has_failed = false;
    loop {
        let mut state = shared.lock();
        loop {
            let left = pace.every.saturating_sub(state.began.elapsed());
            if state.ends {
                return;
            }
            if state.wanted || left.is_zero() {
                break;
            }
            let waited = shared.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.wanted = true;
        state.began = Instant::now();
        drop(state);

        let loaded = catch_unwind(AssertUnwindSafe(&mut load))
            .unwrap_or_else(|_| Err(KeyError::new("reading them panicked")));
        match loaded {
            Ok(()) if has_failed => log::info!("the keys of {place} can be read again"),
            Ok(()) => {}
            Err(ref error) => log::warn!("the keys of {place} stay as they are: {error}"),
        }
        has_failed = loaded.is_err();

        let mut state = shared.lock();
        state.rounds += 1;
        state.wanted = false;
        let wakers = std::mem::take(&mut state.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }
}
