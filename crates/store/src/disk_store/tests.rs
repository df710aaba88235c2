//! A disk that fails, and one that is slow.

use std::io;
use std::path::PathBuf;
use std::sync::{Barrier, Condvar, PoisonError};
use std::time::Duration;

use playfield_room::sim::{ROOM_TYPE, Sim};
use playfield_room::{Context, EndReason, Message, On, Room, room};
use playfield_state::State;
use redb::{DatabaseError, StorageBackend};

use super::*;
use crate::file::create;

/// The behavior of the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Mood {
    #[default]
    Fine,
    Full,
    Broken,
    Stuck,
    /// Fine for this many calls, and then the process is as good as killed.
    Dies(u32),
}

#[derive(Debug, Default)]
struct Disk {
    mood: Mutex<Mood>,
    changed: Condvar,
}

impl Disk {
    fn set(&self, mood: Mood) {
        *self.mood.lock().unwrap() = mood;
        self.changed.notify_all();
    }

    fn write(&self) -> io::Result<()> {
        let mut mood = self.mood.lock().unwrap();
        while *mood == Mood::Stuck {
            mood = self.changed.wait(mood).unwrap_or_else(PoisonError::into_inner);
        }
        drop(mood);
        self.grow()
    }

    /// Fails or succeeds like [`write`](Self::write), but is never stuck: the database holds a lock
    /// meanwhile that loads need. It takes no time on a disk.
    fn grow(&self) -> io::Result<()> {
        match &mut *self.mood.lock().unwrap() {
            Mood::Dies(0) => Err(io::Error::other("killed")),
            Mood::Dies(left) => {
                *left -= 1;
                Ok(())
            }
            Mood::Full => Err(io::ErrorKind::StorageFull.into()),
            Mood::Broken => Err(io::Error::other("the cable is out")),
            Mood::Fine | Mood::Stuck => Ok(()),
        }
    }
}

#[derive(Debug)]
struct FailingFile {
    file: FileBackend,
    disk: Arc<Disk>,
}

impl StorageBackend for FailingFile {
    fn len(&self) -> io::Result<u64> {
        self.file.len()
    }
    fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
        self.file.read(offset, len)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.disk.grow()?;
        self.file.set_len(len)
    }
    fn sync_data(&self, eventual: bool) -> io::Result<()> {
        self.disk.write()?;
        self.file.sync_data(eventual)
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.disk.write()?;
        self.file.write(offset, data)
    }
}

fn on_disk(name: &str, options: DiskOptions) -> (DiskStore, Arc<Disk>, PathBuf) {
    let path = std::env::temp_dir().join(format!("playfield-{name}-{}.redb", std::process::id()));
    let disk = Arc::new(Disk::default());
    let of_store = Arc::clone(&disk);
    let store = DiskStore::start(&path, opens(of_store), options).unwrap();
    (store, disk, path)
}

/// Opens files on this disk.
fn opens(disk: Arc<Disk>) -> Open {
    Box::new(move |file| {
        let backend = FailingFile { file, disk: Arc::clone(&disk) };
        Database::builder().create_with_file_format_v3(true).create_with_backend(backend)
    })
}

fn wait<T>(work: Stored<T>) -> Result<T, StoreError> {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

/// Opens a save, and replaces it.
fn put(store: &DiskStore, room_type: &str, key: &str, bytes: Vec<u8>) -> Stored<()> {
    let fence = wait(store.open(room_type, key)).unwrap().fence;
    store.save_and_wait(room_type, key, fence, bytes)
}

#[test]
fn a_full_or_broken_disk_is_an_error_and_the_store_continues() {
    let (store, disk, path) = on_disk("full", DiskOptions::default());
    let fence = wait(store.open("document", "1")).unwrap().fence;
    wait(store.save_and_wait("document", "1", fence, b"old".to_vec())).unwrap();
    for (mood, kind) in [(Mood::Full, StoreErrorKind::Full), (Mood::Broken, StoreErrorKind::Io)] {
        disk.set(mood);
        for _ in 0..2 {
            let saving = store.save_and_wait("document", "1", fence, vec![1; 100_000]);
            let error = wait(saving).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
        }
        disk.set(Mood::Fine);
        // What failed was not written, and what was written before is still there.
        assert_eq!(wait(store.load("document", "1")), Ok(Some(b"old".to_vec().into())));
        wait(put(&store, "document", "2", b"new".to_vec())).unwrap();
    }
    drop(store);
    let store = DiskStore::open(&path).unwrap();
    assert_eq!(wait(store.load("document", "1")), Ok(Some(b"old".to_vec().into())));
    assert_eq!(wait(store.load("document", "2")), Ok(Some(b"new".to_vec().into())));
    drop(store);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn loads_do_not_wait_for_a_commit_and_a_full_queue_refuses_saves() {
    let options = DiskOptions { waiting_bytes_max: 1_000, ..DiskOptions::default() };
    let (store, disk, path) = on_disk("stuck", options);
    let fence = wait(store.open("t", "1")).unwrap().fence;
    wait(store.save_and_wait("t", "1", fence, b"old".to_vec())).unwrap();
    disk.set(Mood::Stuck);
    let name = "t".len() + "2".len();
    let first = put(&store, "t", "2", vec![2; 600 - name]);
    let second = put(&store, "t", "3", vec![3; 400 - name]);
    assert_eq!(wait(store.load("t", "1")), Ok(Some(b"old".to_vec().into())));
    let coming = Loaded { bytes: vec![3; 400 - name], is_durable: false };
    assert_eq!(wait(store.load("t", "3")), Ok(Some(coming)));
    let error = wait(store.remove("t", "1", fence)).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Busy);
    assert_eq!(
        error.to_string(),
        "the store is busy: 1000 bytes wait to be written, and 1000 may (waiting_bytes_max)"
    );
    disk.set(Mood::Fine);
    assert_eq!((wait(first), wait(second)), (Ok(()), Ok(())));
    // A save larger than the limit is accepted when nothing else waits.
    wait(put(&store, "t", "4", vec![4; 5_000])).unwrap();
    wait(store.remove("t", "1", fence)).unwrap();
    drop(store);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_process_that_is_killed_while_it_creates_the_file_leaves_none_that_does_not_open() {
    let path = std::env::temp_dir().join(format!("playfield-first-{}.redb", std::process::id()));
    let new = path.with_extension("redb.new");
    let mut died = 0;
    for calls in 0.. {
        let disk = Arc::new(Disk::default());
        disk.set(Mood::Dies(calls));
        let first = DiskStore::start(&path, opens(disk), DiskOptions::default());
        died += u32::from(first.is_err());
        let was_created = first.is_ok();
        assert_eq!(path.exists(), was_created, "after {calls} calls");
        drop(first);
        // As does one that was killed before it wrote, or that has left something else.
        if calls == 0 {
            std::fs::write(&new, b"no store").unwrap();
        }
        let store = DiskStore::open(&path).unwrap();
        wait(put(&store, "t", "1", b"one".to_vec())).unwrap();
        drop(store);
        let store = DiskStore::open(&path).unwrap();
        assert_eq!(wait(store.load("t", "1")), Ok(Some(b"one".to_vec().into())));
        drop(store);
        assert!(!new.exists());
        std::fs::remove_file(&path).unwrap();
        if was_created {
            break;
        }
    }
    assert!(died > 2, "it died at {died} places");
}

#[test]
fn of_many_who_create_one_file_one_gets_it_and_keeps_it() {
    let path = std::env::temp_dir().join(format!("playfield-race-{}.redb", std::process::id()));
    for round in 0..20 {
        let barrier = Barrier::new(4);
        let opened: Vec<_> = thread::scope(|scope| {
            let open = || {
                barrier.wait();
                DiskStore::open(&path)
            };
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let (stores, errors): (Vec<_>, Vec<_>) = opened.into_iter().partition(Result::is_ok);
        assert_eq!(stores.len(), 1, "round {round}");
        for error in errors {
            assert_eq!(error.unwrap_err().kind(), StoreErrorKind::InUse);
        }
        let store = stores.into_iter().next().unwrap().unwrap();
        wait(put(&store, "t", "1", b"one".to_vec())).unwrap();
        drop(store);
        let store = DiskStore::open(&path).unwrap();
        assert_eq!(wait(store.load("t", "1")), Ok(Some(b"one".to_vec().into())));
        drop(store);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn who_is_slower_to_create_the_file_takes_nothing_from_who_has_it() {
    let path = std::env::temp_dir().join(format!("playfield-slow-{}.redb", std::process::id()));
    let store = DiskStore::open(&path).unwrap();
    wait(put(&store, "t", "1", b"one".to_vec())).unwrap();
    // They looked before the file was there.
    let slower = || create(&path, &opens(Arc::default()));
    assert!(matches!(slower(), Err(DatabaseError::DatabaseAlreadyOpen)));
    drop(store);
    drop(slower().unwrap());
    let store = DiskStore::open(&path).unwrap();
    assert_eq!(wait(store.load("t", "1")), Ok(Some(b"one".to_vec().into())));
    drop(store);
    std::fs::remove_file(&path).unwrap();
    assert!(!path.with_extension("redb.new").exists());
}

#[derive(State, Default)]
struct Page {
    text: String,
}

#[derive(Message)]
struct Write(String);

#[room(internal(Write), persist = 10, empty_ms = 600_000)]
impl Room for Page {}

impl On<Write> for Page {
    fn on(&mut self, write: Write, _: &mut Context<Self>) -> playfield_room::Result<()> {
        self.text = write.0;
        Ok(())
    }
}

/// A store that several rooms use.
struct Shared(Arc<DiskStore>);

impl Store for Shared {
    fn open(&self, room_type: &str, key: &str) -> Stored<Opened> {
        Store::open(&*self.0, room_type, key)
    }
    fn close(&self, room_type: &str, key: &str, fence: Fence) {
        self.0.close(room_type, key, fence);
    }
    fn load(&self, room_type: &str, key: &str) -> Stored<Option<Loaded>> {
        self.0.load(room_type, key)
    }
    fn save(&self, room_type: &str, key: &str, fence: Fence, bytes: Vec<u8>, done: Completion) {
        self.0.save(room_type, key, fence, bytes, done);
    }
    fn remove(&self, room_type: &str, key: &str, fence: Fence) -> Stored<()> {
        self.0.remove(room_type, key, fence)
    }
    fn keys(&self, room_type: &str, after: Option<&str>, limit: usize) -> Stored<Vec<String>> {
        self.0.keys(room_type, after, limit)
    }
}

/// Until the room's save, or its load, has ended.
fn run(sim: &mut Sim<Page>) {
    while sim.run_background() == 0 {
        thread::yield_now();
    }
}

#[test]
fn a_room_made_of_a_save_whose_commit_fails_is_saved_nevertheless() {
    let (store, disk, path) = on_disk("coming", DiskOptions::default());
    let store = Arc::new(store);
    let fence = wait(Store::open(&*store, "t", "other")).unwrap().fence;
    let open = || Sim::<Page>::with_store(1, &(), "1", Shared(Arc::clone(&store)));
    let mut first = open();
    run(&mut first);
    first.tell(&Write("old".into()));
    first.advance(Duration::from_secs(10));
    run(&mut first);
    disk.set(Mood::Stuck);
    first.tell(&Write("new".into()));
    first.advance(Duration::from_secs(10));
    // It ends before its save does.
    drop(first);
    let mut second = open();
    run(&mut second);
    assert_eq!(second.room().text, "new");
    disk.set(Mood::Full);
    // The first commit to begin after this one has failed.
    assert!(wait(store.save_and_wait("t", "other", fence, Vec::new())).is_err());
    disk.set(Mood::Fine);
    second.close(EndReason::Closed);
    while !second.is_closed() {
        run(&mut second);
        second.advance(Duration::from_millis(100));
    }
    let loaded = wait(store.load(ROOM_TYPE, "1")).unwrap().unwrap();
    assert!(loaded.is_durable);
    assert_eq!(playfield_state::load::<Page>(&loaded.bytes).unwrap().text, "new");
    drop((open, second));
    drop(store);
    std::fs::remove_file(path).unwrap();
}
