//! The store of a node, which is released at the node's end.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use playfield_room::{Store, StoreError, StoreErrorKind};

/// The time that the end of a node waits for its store to write what it has accepted, and to
/// release its file.
pub(crate) const STORE_CLOSE_MAX: Duration = Duration::from_secs(10);

/// The store of persistent rooms. Handles to the node outlive the node, and must not keep the
/// store.
pub(crate) struct KeptStore(Mutex<Option<Arc<dyn Store>>>);

impl KeptStore {
    pub(crate) fn new(store: Option<Arc<dyn Store>>) -> Self {
        Self(Mutex::new(store))
    }

    /// The store, for a new room.
    pub(crate) fn lend(&self) -> Option<Arc<dyn Store>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Writes what the store has accepted, and lets another process open it.
    ///
    /// # Errors
    /// If not all is written within `limit`, or the store panics. A thread that is left behind then
    /// goes on with it.
    pub(crate) fn release(&self, limit: Duration) -> Result<(), StoreError> {
        let Some(store) = self.lend() else { return Ok(()) };
        let (done, released) = sync_channel(1);
        let failed = |text: String| Err(StoreError::new(StoreErrorKind::Other, text));
        let release = move || drop(done.send(store.release()));
        let thread = thread::Builder::new().name("playfield-store-release".into()).spawn(release);
        if let Err(error) = thread {
            return failed(format!("can't start a thread: {error}"));
        }
        match released.recv_timeout(limit) {
            Ok(released) => released,
            Err(RecvTimeoutError::Timeout) => {
                failed(format!("the store has not written what it accepted within {limit:?}"))
            }
            Err(RecvTimeoutError::Disconnected) => {
                failed("the store panicked when it was released; see the log".to_owned())
            }
        }
    }

    /// Drops the store, once its rooms are gone, and waits for that; `false` if it takes longer
    /// than `limit`. A thread that is left behind then drops it.
    pub(crate) fn close(&self, limit: Duration) -> bool {
        let store = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(store) = store else { return true };
        let (done, closed) = sync_channel::<()>(0);
        let close = move || {
            drop(store);
            drop(done);
        };
        // If the thread can't be started, the store is dropped here.
        let _ = thread::Builder::new().name("playfield-store-close".into()).spawn(close);
        closed.recv_timeout(limit) != Err(RecvTimeoutError::Timeout)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, sync_channel};
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use playfield_room::{
        Completion, Fence, Loaded, MemoryStore, Opened, Store, StoreError, Stored,
    };

    use super::{KeptStore, STORE_CLOSE_MAX};

    /// A store whose end waits until it may.
    struct Slow {
        may_end: Mutex<Receiver<()>>,
        saves: MemoryStore,
        /// Panics when it is released.
        panics: bool,
    }

    impl Drop for Slow {
        fn drop(&mut self) {
            let _ = self.may_end.lock().unwrap().recv();
        }
    }

    impl Store for Slow {
        fn open(&self, room_type: &str, key: &str) -> Stored<Opened> {
            self.saves.open(room_type, key)
        }
        fn load(&self, room_type: &str, key: &str) -> Stored<Option<Loaded>> {
            self.saves.load(room_type, key)
        }
        fn save(&self, room_type: &str, key: &str, of: Fence, bytes: Vec<u8>, done: Completion) {
            self.saves.save(room_type, key, of, bytes, done);
        }
        fn remove(&self, room_type: &str, key: &str, fence: Fence) -> Stored<()> {
            self.saves.remove(room_type, key, fence)
        }
        fn keys(&self, room_type: &str, after: Option<&str>, limit: usize) -> Stored<Vec<String>> {
            self.saves.keys(room_type, after, limit)
        }
        fn release(&self) -> Result<(), StoreError> {
            assert!(!self.panics, "as it is to do");
            let _ = self.may_end.lock().unwrap().recv();
            Ok(())
        }
    }

    fn slow(may_end: Receiver<()>, panics: bool) -> KeptStore {
        let (may_end, saves) = (Mutex::new(may_end), MemoryStore::new());
        KeptStore::new(Some(Arc::new(Slow { may_end, saves, panics })))
    }

    #[test]
    fn a_store_is_released_in_time_or_it_is_an_error() {
        assert_eq!(KeptStore::new(None).release(Duration::ZERO), Ok(()));
        let (end, may_end) = sync_channel(2);
        let kept = slow(may_end, false);
        let error = kept.release(Duration::ZERO).unwrap_err();
        assert_eq!(error.to_string(), "the store has not written what it accepted within 0ns");
        end.send(()).unwrap();
        end.send(()).unwrap();
        assert_eq!(kept.release(STORE_CLOSE_MAX), Ok(()));
        drop(end);

        let (_, may_end) = sync_channel(1);
        let error = slow(may_end, true).release(STORE_CLOSE_MAX).unwrap_err();
        assert_eq!(error.to_string(), "the store panicked when it was released; see the log");
    }

    #[test]
    fn the_end_of_a_store_is_waited_for_and_no_longer_than_allowed() {
        let kept = KeptStore::new(None);
        assert!(kept.close(Duration::ZERO), "there is none");
        let (end, may_end) = sync_channel(1);
        let kept = slow(may_end, false);
        assert!(kept.lend().is_some());
        assert!(!kept.close(Duration::ZERO), "it may not end yet");
        assert!(kept.lend().is_none());
        end.send(()).unwrap();

        let (end, may_end) = sync_channel(1);
        end.send(()).unwrap();
        assert!(slow(may_end, false).close(STORE_CLOSE_MAX));
    }
}
