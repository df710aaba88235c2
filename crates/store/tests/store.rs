//! The promises of a store, on disk and in memory.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use playfield_room::{MemoryStore, Store, StoreErrorKind, Stored};
use playfield_store::DiskStore;

use crate::any_store::{keeps_all_promises, put};

/// The path of a store that does not exist yet.
pub(crate) fn fresh() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let name = format!("playfield-store-{}-{number}.redb", std::process::id());
    std::env::temp_dir().join(name)
}

/// Waits for the outcome.
pub(crate) fn wait<T>(work: Stored<T>) -> Result<T, playfield_room::StoreError> {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

#[test]
fn a_store_keeps_saves_by_room_type_and_key_for_their_owners() {
    keeps_all_promises(&MemoryStore::new(), 1_000);
    let path = fresh();
    // Each round reaches the disk.
    keeps_all_promises(&DiskStore::open(&path).unwrap(), 10);
    std::fs::remove_file(path).unwrap();
}

/// A room that ended in an earlier process writes nothing either: its fences ended with it.
#[test]
fn a_fence_is_of_one_process() {
    let path = fresh();
    let store = DiskStore::open(&path).unwrap();
    let fence = wait(store.open("document", "1")).unwrap().fence;
    drop(store);
    let store = DiskStore::open(&path).unwrap();
    let refused = wait(store.save_and_wait("document", "1", fence, vec![7])).unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Fenced);
    drop(store);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn saves_are_there_when_the_store_is_opened_again() {
    let path = fresh();
    let store = DiskStore::open(&path).unwrap();
    // Nobody waits for it: dropping the store does.
    drop(put(&store, "document", "1", vec![7; 3_000_000]));
    drop(store);
    let store = DiskStore::open(&path).unwrap();
    assert_eq!(wait(store.load("document", "1")), Ok(Some(vec![7; 3_000_000].into())));
    drop(store);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_store_that_is_released_can_be_opened_by_another_and_used_again_after_it() {
    let path = fresh();
    let store = DiskStore::open(&path).unwrap();
    let fence = wait(Store::open(&store, "document", "1")).unwrap().fence;
    drop(store.save_and_wait("document", "1", fence, vec![7; 3_000_000]));
    store.release().unwrap();
    let other = DiskStore::open(&path).unwrap();
    assert_eq!(wait(other.load("document", "1")), Ok(Some(vec![7; 3_000_000].into())));
    let refused = wait(store.load("document", "1")).unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::InUse);
    let of_other = wait(Store::open(&other, "document", "1")).unwrap().fence;
    wait(other.save_and_wait("document", "1", of_other, b"of the other".to_vec())).unwrap();
    drop(other);
    assert_eq!(wait(store.load("document", "1")), Ok(Some(b"of the other".to_vec().into())));
    // Saves that were opened before are still open.
    wait(store.save_and_wait("document", "1", fence, b"of the first".to_vec())).unwrap();
    assert_eq!(wait(store.load("document", "1")), Ok(Some(b"of the first".to_vec().into())));
    drop(store);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_file_that_is_in_use_or_no_store_is_refused() {
    let path = fresh();
    let store = DiskStore::open(&path).unwrap();
    // The lock is that of the open file: another process is refused like this one.
    let error = DiskStore::open(&path).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::InUse);
    assert!(
        error.to_string().contains("is in use by another process, or by another store in this one"),
        "{error}"
    );
    let mut other = Command::new(std::env::current_exe().unwrap());
    other.args(["store::opens_the_file_of_the_environment", "--exact", "--ignored"]);
    other.env("PLAYFIELD_STORE", &path).stdout(Stdio::null()).stderr(Stdio::null());
    assert!(!other.status().unwrap().success(), "another process opened it");
    drop(store);
    assert!(other.status().unwrap().success());
    std::fs::write(&path, b"this is not a store, but a text that someone wrote").unwrap();
    let error = DiskStore::open(&path).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Damaged, "{error}");
    let folder = path.join("none");
    assert_eq!(DiskStore::open(folder).unwrap_err().kind(), StoreErrorKind::Io);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_truncated_file_is_refused_in_one_line_without_a_panic() {
    let path = fresh();
    let store = DiskStore::open(&path).unwrap();
    wait(put(&store, "document", "1", vec![7; 30_000])).unwrap();
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    for bytes in [0, 9, 100, 320, 4_096, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&path, &whole[..bytes]).unwrap();
        let mut other = Command::new(std::env::current_exe().unwrap());
        other.args(["store::says_why_the_file_does_not_open", "--exact", "--ignored"]);
        let said = other.arg("--nocapture").env("PLAYFIELD_STORE", &path).output().unwrap();
        let said = String::from_utf8(said.stderr).unwrap();
        let of = if bytes < 320 { 320 } else { whole.len() };
        let expected = format!(
            "can't open the store {}: DB corrupted: it ends at byte {bytes} of {of}: restore it from a \
             backup\n",
            path.display()
        );
        assert_eq!(said, expected);
    }
    std::fs::remove_file(path).unwrap();
}

/// Changed bytes may be unused: then there is nothing to say.
#[test]
fn a_file_with_changed_bytes_is_read_or_refused_in_one_line_without_a_panic() {
    let path = fresh();
    let store = DiskStore::open(&path).unwrap();
    for key in ["1", "2", "3"] {
        wait(put(&store, "document", key, vec![7; 30_000])).unwrap();
    }
    drop(store);
    let whole = std::fs::read(&path).unwrap();
    // The header, then the pages from the start, the middle and the end of the file.
    let middle = (8..40).map(|part| part * whole.len() / 40);
    let mut refused = 0;
    for at in (0..320).step_by(8).chain(middle).chain([4_096, 4_100, whole.len() - 1]) {
        let mut bytes = whole.clone();
        bytes[at..(at + 16).min(whole.len())].iter_mut().for_each(|byte| *byte ^= 0xff);
        std::fs::write(&path, bytes).unwrap();
        let mut other = Command::new(std::env::current_exe().unwrap());
        other.args(["store::says_why_the_file_does_not_open", "--exact", "--ignored"]);
        let said = other.arg("--nocapture").env("PLAYFIELD_STORE", &path).output().unwrap();
        let text = String::from_utf8(said.stderr).unwrap();
        assert!(said.status.success(), "byte {at}: {text}");
        assert!(text.lines().count() <= 1 && !text.contains("panicked at"), "byte {at}: {text}");
        refused += text.lines().count();
    }
    assert!(refused > 0, "no byte mattered");
    std::fs::remove_file(path).unwrap();
}

/// Says it once, if it opens or not: the first error.
#[test]
#[ignore = "a process that another test starts"]
fn says_why_the_file_does_not_open() {
    let read = DiskStore::open(std::env::var_os("PLAYFIELD_STORE").unwrap()).and_then(|store| {
        let keys = wait(store.keys("document", None, 9))?;
        keys.iter().try_for_each(|key| wait(store.load("document", key)).map(drop))?;
        let fence = wait(store.open("document", "4"))?.fence;
        wait(store.save_and_wait("document", "4", fence, vec![7; 30_000]))
    });
    if let Err(error) = read {
        eprintln!("{error}");
    }
}

#[test]
#[ignore = "a process that another test starts"]
fn opens_the_file_of_the_environment() {
    DiskStore::open(std::env::var_os("PLAYFIELD_STORE").unwrap()).unwrap();
}
