//! Copies of saves in a store: how many are kept, and that none is lost where the store fails.

use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use playfield_room::copies::{COPIES_MAX, copies, keep_copy, load_copy, restore_copy};
use playfield_room::sim::{ROOM_TYPE, Sim};
use playfield_room::{
    Completion, EndReason, Fence, Loaded, MemoryStore, Opened, Room, Store, StoreError,
    StoreErrorKind, Stored, room,
};
use playfield_state::{List, State, load, save};

use crate::support::logged;

/// A store that refuses all saves but copies of towns once it is full.
#[derive(Clone, Default)]
struct Limited {
    inner: MemoryStore,
    is_full: Arc<AtomicBool>,
}

impl Store for Limited {
    fn open(&self, room_type: &str, key: &str) -> Stored<Opened> {
        self.inner.open(room_type, key)
    }
    fn load(&self, room_type: &str, key: &str) -> Stored<Option<Loaded>> {
        self.inner.load(room_type, key)
    }
    fn save(&self, room_type: &str, key: &str, fence: Fence, bytes: Vec<u8>, done: Completion) {
        if room_type != "town~copies" && self.is_full.load(Ordering::Relaxed) {
            let error = StoreError::new(StoreErrorKind::Other, "the disk is full");
            return done.complete(Err(error));
        }
        self.inner.save(room_type, key, fence, bytes, done);
    }
    fn remove(&self, room_type: &str, key: &str, fence: Fence) -> Stored<()> {
        self.inner.remove(room_type, key, fence)
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
    put(store, "town", vec![9; 8]).await;
}

/// Replaces the save of a room.
async fn put(store: &Arc<dyn Store>, room_type: &str, bytes: Vec<u8>) {
    let fence = store.open(room_type, "elm").await.unwrap().fence;
    store.save_and_wait(room_type, "elm", fence, bytes).await.unwrap();
}

#[test]
fn the_oldest_copy_but_the_first_gives_way_and_the_same_save_is_not_copied_again() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    wait(async {
        full_of_copies(&store).await;
        assert_eq!(keep_copy(&store, "town", "elm", vec![4; 8]).await.unwrap(), 4);
        assert_eq!(copies(&store, "town", "elm").await.unwrap(), [1, 2, 3, 4]);
        assert_eq!(keep_copy(&store, "town", "elm", vec![5; 8]).await.unwrap(), 5);
        assert_eq!(copies(&store, "town", "elm").await.unwrap(), [1, 3, 4, 5]);
        // Those of a key that begins like another belong to that key alone.
        keep_copy(&store, "town", "elm@", vec![6]).await.unwrap();
        assert_eq!(copies(&store, "town", "elm").await.unwrap(), [1, 3, 4, 5]);
    });
}

#[test]
fn the_copy_that_would_give_way_is_restored() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    wait(async {
        full_of_copies(&store).await;
        assert_eq!(restore_copy(&store, "town", "elm", 2).await.unwrap(), Some(5));
        let saved = store.load("town", "elm").await.unwrap().unwrap();
        assert_eq!(saved.bytes, [2; 8]);
        assert_eq!(copies(&store, "town", "elm").await.unwrap(), [1, 3, 4, 5]);
    });
}

#[test]
fn a_copy_that_cant_be_restored_is_still_there() {
    let limited = Limited::default();
    let store: Arc<dyn Store> = Arc::new(limited.clone());
    wait(async {
        full_of_copies(&store).await;
        limited.is_full.store(true, Ordering::Relaxed);
        restore_copy(&store, "town", "elm", 2).await.unwrap_err();
        let copy = load_copy(&store, "town", "elm", 2).await.unwrap();
        assert_eq!(copy, Some(vec![2; 8]));
        limited.is_full.store(false, Ordering::Relaxed);
        restore_copy(&store, "town", "elm", 2).await.unwrap();
    });
}

#[test]
fn a_copy_that_another_node_keeps_meanwhile_is_not_overwritten() {
    /// Lists no copies, as before the other node kept one.
    struct Early(MemoryStore);

    impl Store for Early {
        fn open(&self, room_type: &str, key: &str) -> Stored<Opened> {
            self.0.open(room_type, key)
        }
        fn load(&self, room_type: &str, key: &str) -> Stored<Option<Loaded>> {
            self.0.load(room_type, key)
        }
        fn save(&self, room_type: &str, key: &str, of: Fence, bytes: Vec<u8>, done: Completion) {
            self.0.save(room_type, key, of, bytes, done);
        }
        fn remove(&self, room_type: &str, key: &str, fence: Fence) -> Stored<()> {
            self.0.remove(room_type, key, fence)
        }
        fn keys(&self, _: &str, _: Option<&str>, _: usize) -> Stored<Vec<String>> {
            Box::pin(ready(Ok(Vec::new())))
        }
    }

    let saves = MemoryStore::new();
    let (store, early): (Arc<dyn Store>, Arc<dyn Store>) =
        (Arc::new(saves.clone()), Arc::new(Early(saves)));
    wait(async {
        assert_eq!(keep_copy(&store, "town", "elm", vec![1]).await.unwrap(), 1);
        assert_eq!(keep_copy(&early, "town", "elm", vec![2]).await.unwrap(), 2);
        assert_eq!(load_copy(&store, "town", "elm", 1).await.unwrap(), Some(vec![1]));
    });
}

#[test]
fn a_room_that_is_open_while_a_copy_is_restored_ends() {
    let limited = Limited::default();
    let store: Arc<dyn Store> = Arc::new(limited.clone());
    let bytes = save(&old::Town::default());
    wait(async { assert_eq!(keep_copy(&store, ROOM_TYPE, "elm", bytes.clone()).await, Ok(1)) });
    let mut sim = open(&limited);
    sim.room_mut().houses.push(old::House::default());
    wait(async { assert_eq!(restore_copy(&store, ROOM_TYPE, "elm", 1).await, Ok(None)) });
    sim.close(EndReason::Closed);
    while sim.run_background() > 0 {}
    assert!(sim.is_closed());
    wait(async {
        assert_eq!(store.load(ROOM_TYPE, "elm").await.unwrap().unwrap().bytes, bytes);
    });
}

mod old {
    use super::*;

    #[derive(State, Default)]
    pub(super) struct Town {
        pub(super) houses: List<House>,
    }

    #[derive(State, Default)]
    pub(super) struct House {
        pub(super) size: u32,
    }

    #[room(persist = 1)]
    impl Room for Town {}
}

mod new {
    use super::*;

    #[derive(State, Default)]
    pub(super) struct Town {
        pub(super) houses: List<House>,
    }

    #[derive(State, Default)]
    pub(super) struct House {
        pub(super) color: String,
        pub(super) size: u32,
    }
}

fn open(store: &Limited) -> Sim<old::Town> {
    let mut sim = Sim::with_store(1, &(), "elm", store.clone());
    while sim.run_background() > 0 {}
    sim
}

#[test]
fn a_save_with_unknown_fields_is_copied_once_and_what_is_forgotten_is_logged() {
    let limited = Limited::default();
    let store: Arc<dyn Store> = Arc::new(limited.clone());
    let house = |color: &str| new::House { color: color.into(), size: 3 };
    let town = new::Town { houses: [house("red"), house("blue")].into_iter().collect() };
    let bytes = save(&town);
    wait(async { put(&store, ROOM_TYPE, bytes.clone()).await });

    let log = logged(|| {
        // A node that is killed before it saves the room reads the same save again.
        drop(open(&limited));
        let mut sim = open(&limited);
        sim.room_mut().houses.push(old::House::default());
        sim.close(EndReason::ShuttingDown);
        while sim.run_background() > 0 {}
    });
    let said = "the save of sim \"elm\" is of another build. This build lacks fields, and keeps them \
                as bytes: houses.*.color (2 values). The save as it was is copy 1 of this room: see \
                `help saves`";
    assert_eq!(log.iter().filter(|line| line.contains(said)).count(), 2, "{log:?}");
    assert_eq!(log.len(), 2, "{log:?}");

    // From here on, the saves are of this build.
    let log = logged(|| {
        let mut sim = open(&limited);
        sim.room_mut().houses.remove(0);
        sim.close(EndReason::ShuttingDown);
        while sim.run_background() > 0 {}
    });
    let said = "sim \"elm\" no longer has fields that this build lacks, since what they belonged to \
                was removed or is not recognized: houses.*.color (1 values)";
    assert!(log.len() == 1 && log[0].contains(said), "{log:?}");
    wait(async {
        assert_eq!(copies(&store, ROOM_TYPE, "elm").await.unwrap(), [1]);
        let copy = load_copy(&store, ROOM_TYPE, "elm", 1).await.unwrap();
        assert_eq!(copy, Some(bytes));
        let saved = store.load(ROOM_TYPE, "elm").await.unwrap().unwrap().bytes;
        let houses = load::<new::Town>(&saved).unwrap().houses;
        let colors: Vec<&str> = houses.iter().map(|house| &*house.color).collect();
        assert_eq!(colors, ["blue", ""]);
    });
}

#[test]
fn what_is_forgotten_is_logged_at_most_once_a_minute_and_at_the_end() {
    let limited = Limited::default();
    let store: Arc<dyn Store> = Arc::new(limited.clone());
    let house = |size: u32| new::House { color: "red".into(), size };
    let town = new::Town { houses: (0..8).map(house).collect() };
    wait(async { put(&store, ROOM_TYPE, save(&town)).await });
    let mut sim = open(&limited);
    let remove = |sim: &mut Sim<old::Town>, seconds: u64| {
        sim.room_mut().houses.remove(0);
        // The room is saved after its code has run.
        sim.join("Ann").unwrap();
        sim.advance(Duration::from_secs(seconds));
        while sim.run_background() > 0 {}
    };
    let values = |log: &[String]| {
        let counts = log.iter().map(|line| {
            let (_, counts) =
                line.split_once("houses.*.color (").unwrap_or_else(|| panic!("{line}"));
            counts.strip_suffix(" values)").unwrap().parse().unwrap()
        });
        counts.collect::<Vec<u32>>()
    };
    let log = logged(|| (0..4).for_each(|_| remove(&mut sim, 10)));
    assert_eq!(values(&log), [1], "{log:?}");
    sim.advance(Duration::from_secs(30));
    let log = logged(|| remove(&mut sim, 10));
    assert_eq!(values(&log), [4], "{log:?}");
    let log = logged(|| remove(&mut sim, 10));
    assert!(log.is_empty(), "{log:?}");
    let log = logged(|| {
        sim.room_mut().houses.remove(0);
        sim.close(EndReason::ShuttingDown);
        while sim.run_background() > 0 {}
    });
    assert_eq!(values(&log), [2], "{log:?}");
}

#[test]
fn a_room_whose_save_cant_be_copied_is_not_created_and_its_save_is_left_as_it_is() {
    let limited = Limited::default();
    let store: Arc<dyn Store> = Arc::new(limited.clone());
    let town = new::Town { houses: [new::House::default()].into_iter().collect() };
    let bytes = save(&town);
    wait(async { put(&store, ROOM_TYPE, bytes.clone()).await });
    limited.is_full.store(true, Ordering::Relaxed);
    let log = logged(|| {
        let mut sim = Sim::<old::Town>::with_store(1, &(), "elm", limited.clone());
        let ann = sim.join_begin("Ann").unwrap();
        while sim.run_background() > 0 {}
        assert!(sim.why_gone(ann).is_some() && sim.is_closed());
    });
    assert!(log.iter().any(|line| line.contains("no copy could be kept: ")), "{log:?}");
    limited.is_full.store(false, Ordering::Relaxed);
    wait(async {
        assert_eq!(store.load(ROOM_TYPE, "elm").await.unwrap().unwrap().bytes, bytes);
        assert!(copies(&store, ROOM_TYPE, "elm").await.unwrap().is_empty());
    });
}
