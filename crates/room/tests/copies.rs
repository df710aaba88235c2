//! Copies of saves in a store: how many are kept, and that none is lost where the store fails.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};

use playfield_room::copies::{COPIES_MAX, copies, keep_copy, load_copy, restore_copy};
use playfield_room::{Loaded, MemoryStore, Store, StoreError, StoreErrorKind, Stored};

/// A store that refuses saves of rooms once it is full.
#[derive(Default)]
struct Limited {
    inner: MemoryStore,
    is_full: AtomicBool,
}

impl Store for Limited {
    fn load(&self, room_type: &str, key: &str) -> Stored<Option<Loaded>> {
        self.inner.load(room_type, key)
    }
    fn save(&self, room_type: &str, key: &str, bytes: Vec<u8>) -> Stored<()> {
        if room_type == "town" && self.is_full.load(Ordering::Relaxed) {
            let error = StoreError::new(StoreErrorKind::Other, "the disk is full");
            return Box::pin(async { Err(error) });
        }
        self.inner.save(room_type, key, bytes)
    }
    fn remove(&self, room_type: &str, key: &str) -> Stored<()> {
        self.inner.remove(room_type, key)
    }
    fn keys(&self, room_type: &str, after: Option<&str>, limit: usize) -> Stored<Vec<String>> {
        self.inner.keys(room_type, after, limit)
    }
}

/// Ends work that never waits, as that of a store in memory.
fn wait(work: impl Future<Output = ()>) {
    assert_eq!(pin!(work).poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()));
}

async fn full_of_copies(store: &Arc<dyn Store>) {
    for number in 1..=COPIES_MAX as u8 {
        keep_copy(store, "town", "elm", vec![number; 8]).await.unwrap();
    }
    store.save("town", "elm", vec![9; 8]).await.unwrap();
}

#[test]
fn the_oldest_copy_gives_way_and_the_same_save_is_not_copied_again() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    wait(async {
        full_of_copies(&store).await;
        assert_eq!(keep_copy(&store, "town", "elm", vec![4; 8]).await.unwrap(), 4);
        assert_eq!(copies(&store, "town", "elm").await.unwrap(), [1, 2, 3, 4]);
        assert_eq!(keep_copy(&store, "town", "elm", vec![5; 8]).await.unwrap(), 5);
        assert_eq!(copies(&store, "town", "elm").await.unwrap(), [2, 3, 4, 5]);
        // Those of a key that begins like another belong to that key alone.
        keep_copy(&store, "town", "elm@", vec![6]).await.unwrap();
        assert_eq!(copies(&store, "town", "elm").await.unwrap(), [2, 3, 4, 5]);
    });
}

#[test]
fn the_oldest_copy_is_restored() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    wait(async {
        full_of_copies(&store).await;
        assert_eq!(restore_copy(&store, "town", "elm", 1).await.unwrap(), Some(5));
        let saved = store.load("town", "elm").await.unwrap().unwrap();
        assert_eq!(saved.bytes, [1; 8]);
        assert_eq!(copies(&store, "town", "elm").await.unwrap(), [2, 3, 4, 5]);
    });
}

#[test]
fn a_copy_that_cant_be_restored_is_still_there() {
    let limited = Arc::new(Limited::default());
    let store: Arc<dyn Store> = limited.clone();
    wait(async {
        full_of_copies(&store).await;
        limited.is_full.store(true, Ordering::Relaxed);
        restore_copy(&store, "town", "elm", 1).await.unwrap_err();
        let copy = load_copy(&store, "town", "elm", 1).await.unwrap();
        assert_eq!(copy, Some(vec![1; 8]));
        limited.is_full.store(false, Ordering::Relaxed);
        restore_copy(&store, "town", "elm", 1).await.unwrap();
    });
}
