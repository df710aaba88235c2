//! The store of a node, which is released at the node's end.

use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use playfield_room::{Store, StoreError};

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
    pub(crate) fn release(&self) -> Result<(), StoreError> {
        self.lend().map_or(Ok(()), |store| store.release())
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

    use playfield_room::{Completion, Fence, Loaded, MemoryStore, Opened, Store, Stored};

    use super::{KeptStore, STORE_CLOSE_MAX};

    /// A store whose end waits until it may.
    struct Slow {
        may_end: Mutex<Receiver<()>>,
        saves: MemoryStore,
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
    }

    #[test]
    fn the_end_of_a_store_is_waited_for_and_no_longer_than_allowed() {
        let kept = KeptStore::new(None);
        assert!(kept.close(Duration::ZERO), "there is none");
        let (end, may_end) = sync_channel(1);
        let slow = Slow { may_end: Mutex::new(may_end), saves: MemoryStore::new() };
        let kept = KeptStore::new(Some(Arc::new(slow)));
        assert!(kept.lend().is_some());
        assert!(!kept.close(Duration::ZERO), "it may not end yet");
        assert!(kept.lend().is_none());
        end.send(()).unwrap();

        let (end, may_end) = sync_channel(1);
        let slow = Slow { may_end: Mutex::new(may_end), saves: MemoryStore::new() };
        end.send(()).unwrap();
        assert!(KeptStore::new(Some(Arc::new(slow))).close(STORE_CLOSE_MAX));
    }
}
