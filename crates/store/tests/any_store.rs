//! The promises of every store.

use playfield_room::{Fence, Store, StoreError, StoreErrorKind, Stored};

use crate::store::wait;

/// Opens a save, and replaces it.
pub(crate) fn put(store: &dyn Store, room_type: &str, key: &str, bytes: Vec<u8>) -> Stored<()> {
    let fence = open(store, room_type, key);
    store.save_and_wait(room_type, key, fence, bytes)
}

fn open(store: &dyn Store, room_type: &str, key: &str) -> Fence {
    wait(store.open(room_type, key)).unwrap().fence
}

/// The store is empty at first. An old owner is refused in so many rounds.
pub(crate) fn keeps_all_promises(store: &dyn Store, rounds: u32) {
    keeps_saves(store);
    has_one_owner(store);
    refuses_each_late_save(store, rounds);
    takes_each_of_many(store);
}

fn keeps_saves(store: &dyn Store) {
    assert_eq!(wait(store.load("document", "1")), Ok(None));
    assert_eq!(wait(store.keys("document", None, 9)), Ok(vec![]));
    let work: Vec<_> = [("document", "2"), ("document", "10"), ("documents", "1"), ("arena", "z")]
        .iter()
        .map(|(room_type, key)| put(store, room_type, key, format!("{room_type} {key}").into()))
        .collect();
    // A load sees what was saved before it, durable or not.
    let loaded = wait(store.load("document", "2")).unwrap().unwrap();
    assert_eq!(loaded.bytes, b"document 2");
    for work in work {
        assert_eq!(wait(work), Ok(()));
    }
    wait(put(store, "document", "2", b"new".to_vec())).unwrap();
    wait(put(store, "document", "", Vec::new())).unwrap();
    assert_eq!(wait(store.load("document", "2")), Ok(Some(b"new".to_vec().into())));
    assert_eq!(wait(store.load("document", "")), Ok(Some(Vec::new().into())));
    let keys = |after, limit| wait(store.keys("document", after, limit)).unwrap();
    assert_eq!(keys(None, 9), ["", "10", "2"]);
    assert_eq!(keys(None, 2), ["", "10"]);
    assert_eq!(keys(Some("10"), 9), ["2"]);
    assert_eq!(keys(Some(""), 1), ["10"]);
    // In the order of their bytes, whatever language the system has.
    for key in ["a", "B", "é", "z"] {
        wait(put(store, "words", key, vec![1])).unwrap();
    }
    assert_eq!(wait(store.keys("words", None, usize::MAX)).unwrap(), ["B", "a", "z", "é"]);
    let fence = open(store, "document", "2");
    wait(store.remove("document", "2", fence)).unwrap();
    assert_eq!(wait(store.load("document", "2")), Ok(None));
    assert_eq!(keys(None, 9), ["", "10"]);
    // Its owner may go on.
    wait(store.save_and_wait("document", "2", fence, b"again".to_vec())).unwrap();
    assert_eq!(wait(store.load("document", "2")), Ok(Some(b"again".to_vec().into())));
    let fence = open(store, "document", "none");
    wait(store.remove("document", "none", fence)).unwrap();
    // One that was opened, and never saved, is none.
    assert_eq!(keys(None, 9), ["", "10", "2"]);
    store.close("document", "none", fence);
    assert_eq!(keys(None, 9), ["", "10", "2"]);
}

pub(crate) fn is_fenced<T>(outcome: Result<T, StoreError>) -> bool {
    outcome.is_err_and(|error| error.kind() == StoreErrorKind::Fenced)
}

fn has_one_owner(store: &dyn Store) {
    let save = |fence, text: &str| wait(store.save_and_wait("town", "1", fence, text.into()));
    let found = || wait(store.load("town", "1")).unwrap().map(|loaded| loaded.bytes);
    let first = open(store, "town", "1");
    assert_eq!(save(first, "first"), Ok(()));
    let opened = wait(store.open("town", "1")).unwrap();
    assert_eq!(opened.save.map(|save| save.bytes), Some(b"first".to_vec()));
    let second = opened.fence;
    assert!(second > first);
    assert!(is_fenced(save(first, "late")));
    assert!(is_fenced(wait(store.remove("town", "1", first))));
    assert_eq!(found(), Some(b"first".to_vec()));
    assert_eq!(save(second, "second"), Ok(()));
    // One that no longer owns it closes nothing.
    store.close("town", "1", first);
    assert_eq!(save(second, "third"), Ok(()));
    // Others are not concerned.
    let other = open(store, "town", "2");
    wait(store.save_and_wait("town", "2", other, vec![2])).unwrap();
    assert_eq!(save(second, "fourth"), Ok(()));
    assert!(is_fenced(save(Fence(second.0 + 1_000), "never handed out")));
    // After its end, and after that of a save, a fence does not come back.
    for removes in [false, true] {
        let owner = open(store, "town", "3");
        if removes {
            wait(store.save_and_wait("town", "3", owner, vec![3])).unwrap();
            wait(store.remove("town", "3", owner)).unwrap();
        }
        store.close("town", "3", owner);
        let next = open(store, "town", "3");
        assert!(next > owner);
        assert!(is_fenced(wait(store.save_and_wait("town", "3", owner, vec![3]))));
    }
    assert_eq!(wait(store.load("town", "3")), Ok(None));
    assert_eq!(found(), Some(b"fourth".to_vec()));
}

/// An old owner's save is held back until the save was opened again.
fn refuses_each_late_save(store: &dyn Store, rounds: u32) {
    let mut owner = open(store, "late", "1");
    let mut refused = 0;
    for round in 0..rounds {
        wait(store.save_and_wait("late", "1", owner, round.to_le_bytes().into())).unwrap();
        let opened = wait(store.open("late", "1")).unwrap();
        assert_eq!(opened.save.unwrap().bytes, round.to_le_bytes());
        let late = wait(store.save_and_wait("late", "1", owner, b"late".to_vec()));
        refused += u32::from(is_fenced(late));
        owner = opened.fence;
    }
    assert_eq!(refused, rounds);
    let last = wait(store.load("late", "1")).unwrap().unwrap().bytes;
    assert_eq!(last, (rounds - 1).to_le_bytes());
}

/// Of many that are written together, each has its own outcome, and the last one of a key counts.
fn takes_each_of_many(store: &dyn Store) {
    let key = |number: u32| format!("{number:04}");
    let fences: Vec<_> = (0..300).map(|number| open(store, "many", &key(number))).collect();
    for number in (0..300).step_by(3) {
        open(store, "many", &key(number));
    }
    let bytes = |number: u32, round: u32| vec![number as u8; 10 + round as usize];
    let saves: Vec<_> = (0..3_u32)
        .flat_map(|round| (0..300_u32).map(move |number| (number, round)))
        .map(|(number, round)| {
            let fence = fences[number as usize];
            (number, store.save_and_wait("many", &key(number), fence, bytes(number, round)))
        })
        .collect();
    for (number, saved) in saves {
        let saved = wait(saved);
        assert_eq!(is_fenced(saved.clone()), number % 3 == 0, "{number}: {saved:?}");
        assert_eq!(saved.is_ok(), number % 3 != 0, "{number}: {saved:?}");
    }
    let kept: Vec<String> = (0..300).filter(|number| number % 3 != 0).map(key).collect();
    assert_eq!(wait(store.keys("many", None, usize::MAX)).unwrap(), kept);
    for number in (0..300).filter(|number| number % 3 != 0) {
        let loaded = wait(store.load("many", &key(number))).unwrap().unwrap();
        assert_eq!(loaded.bytes, bytes(number, 2));
    }
}
