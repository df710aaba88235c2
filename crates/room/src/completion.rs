//! The outcome of a write, from the thread that wrote to the one that waits.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use crate::{StoreError, StoreErrorKind, Stored};

type Outcome = Result<(), StoreError>;

/// Takes the outcome of a write of a [`Store`](crate::Store), once, from any thread. One that is
/// dropped without an outcome reports an error.
///
/// ```
/// use playfield_room::Completion;
/// use std::sync::mpsc::channel;
///
/// let (sender, receiver) = channel();
/// let done = Completion::new(move |outcome| sender.send(outcome).unwrap());
/// done.complete(Ok(()));
/// assert_eq!(receiver.recv(), Ok(Ok(())));
/// ```
pub struct Completion(Option<Call>);

type Call = Box<dyn FnOnce(Outcome) + Send>;

impl Completion {
    /// Calls `call` with the outcome. It must not block: it runs on the thread that writes.
    pub fn new(call: impl FnOnce(Outcome) + Send + 'static) -> Self {
        Self(Some(Box::new(call)))
    }

    /// A completion, and the outcome that it is given as a future.
    #[must_use]
    pub fn awaited() -> (Self, Stored<()>) {
        let slot = Arc::new(Mutex::new(Slot::default()));
        let filled = Arc::clone(&slot);
        let done = Self::new(move |outcome| {
            let mut slot = lock(&filled);
            slot.outcome = Some(outcome);
            let waker = slot.waker.take();
            drop(slot);
            if let Some(waker) = waker {
                waker.wake();
            }
        });
        let outcome = std::future::poll_fn(move |cx| {
            let mut slot = lock(&slot);
            match slot.outcome.take() {
                Some(outcome) => Poll::Ready(outcome),
                None => {
                    slot.waker = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        });
        (done, Box::pin(outcome))
    }

    /// Reports the outcome.
    pub fn complete(mut self, outcome: Outcome) {
        if let Some(call) = self.0.take() {
            call(outcome);
        }
    }
}

impl Drop for Completion {
    fn drop(&mut self) {
        if let Some(call) = self.0.take() {
            let text = match std::thread::panicking() {
                true => "the store panicked",
                false => "the store dropped a write without saying how it ended",
            };
            call(Err(StoreError::new(StoreErrorKind::Other, text)));
        }
    }
}

impl fmt::Debug for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Completion")
    }
}

/// The outcome, or the task that waits for it.
#[derive(Default)]
struct Slot {
    outcome: Option<Outcome>,
    waker: Option<Waker>,
}

fn lock(slot: &Mutex<Slot>) -> MutexGuard<'_, Slot> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::{Context, Poll, Wake, Waker};

    use super::Completion;
    use crate::StoreErrorKind;

    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn an_outcome_wakes_the_one_task_that_waits_for_it() {
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let mut cx = Context::from_waker(&waker);
        let (done, mut outcome) = Completion::awaited();
        assert_eq!(outcome.as_mut().poll(&mut cx), Poll::Pending);
        done.complete(Ok(()));
        assert_eq!(woken.0.load(Ordering::Relaxed), 1);
        assert_eq!(outcome.as_mut().poll(&mut cx), Poll::Ready(Ok(())));
    }

    #[test]
    fn a_write_that_is_dropped_has_failed() {
        let (done, mut outcome) = Completion::awaited();
        drop(done);
        let Poll::Ready(Err(error)) =
            outcome.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        else {
            panic!("it has failed")
        };
        assert_eq!(error.kind(), StoreErrorKind::Other);
    }

    #[test]
    fn a_write_whose_thread_panics_has_failed() {
        let (done, mut outcome) = Completion::awaited();
        let writes = std::thread::spawn(|| {
            let _done = done;
            panic!("the disk is gone");
        });
        assert!(writes.join().is_err());
        let Poll::Ready(Err(error)) =
            outcome.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        else {
            panic!("it has failed")
        };
        assert_eq!(error.to_string(), "the store panicked");
    }

    #[test]
    fn nobody_has_to_wait() {
        let (done, outcome) = Completion::awaited();
        drop(outcome);
        done.complete(Ok(()));
    }
}
