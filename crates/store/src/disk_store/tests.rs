//! A disk that fails, and one that is slow.

use std::fs::OpenOptions;
use std::io;
use std::path::PathBuf;
use std::sync::{Condvar, PoisonError};

use redb::StorageBackend;
use redb::backends::FileBackend;

use super::*;

/// What the disk does.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum Mood {
    #[default]
    Fine,
    Full,
    Broken,
    Stuck,
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
        match *mood {
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
        self.disk.write()?;
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
    let open = move |path: &Path| {
        let mut how = OpenOptions::new();
        let file = how.read(true).write(true).create(true).truncate(false).open(path)?;
        let backend = FailingFile { file: FileBackend::new(file)?, disk: Arc::clone(&of_store) };
        Database::builder().create_with_file_format_v3(true).create_with_backend(backend)
    };
    (DiskStore::start(&path, Box::new(open), options).unwrap(), disk, path)
}

fn wait<T>(work: Stored<T>) -> Result<T, StoreError> {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(work)
}

#[test]
fn a_full_or_broken_disk_is_an_error_and_the_store_continues() {
    let (store, disk, path) = on_disk("full", DiskOptions::default());
    wait(store.save("document", "1", b"old".to_vec())).unwrap();
    for (mood, kind) in [(Mood::Full, StoreErrorKind::Full), (Mood::Broken, StoreErrorKind::Io)] {
        disk.set(mood);
        for _ in 0..2 {
            let error = wait(store.save("document", "1", vec![1; 100_000])).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
        }
        disk.set(Mood::Fine);
        // What failed was not written, and what was written before is still there.
        assert_eq!(wait(store.load("document", "1")), Ok(Some(b"old".to_vec())));
        wait(store.save("document", "2", b"new".to_vec())).unwrap();
    }
    drop(store);
    let store = DiskStore::open(&path).unwrap();
    assert_eq!(wait(store.load("document", "1")), Ok(Some(b"old".to_vec())));
    assert_eq!(wait(store.load("document", "2")), Ok(Some(b"new".to_vec())));
    drop(store);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn loads_do_not_wait_for_a_commit_and_a_full_queue_refuses_saves() {
    let options = DiskOptions { waiting_bytes_max: 1_000, ..DiskOptions::default() };
    let (store, disk, path) = on_disk("stuck", options);
    wait(store.save("t", "1", b"old".to_vec())).unwrap();
    disk.set(Mood::Stuck);
    let name = "t".len() + "2".len();
    let first = store.save("t", "2", vec![2; 600 - name]);
    let second = store.save("t", "3", vec![3; 400 - name]);
    assert_eq!(wait(store.load("t", "1")), Ok(Some(b"old".to_vec())));
    assert_eq!(wait(store.load("t", "3")), Ok(Some(vec![3; 400 - name])));
    let error = wait(store.remove("t", "1")).unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Busy);
    assert_eq!(
        error.to_string(),
        "the store is busy: 1000 bytes wait to be written, and 1000 may (waiting_bytes_max)"
    );
    disk.set(Mood::Fine);
    assert_eq!((wait(first), wait(second)), (Ok(()), Ok(())));
    // A save larger than the limit is accepted when nothing else waits.
    wait(store.save("t", "4", vec![4; 5_000])).unwrap();
    wait(store.remove("t", "1")).unwrap();
    drop(store);
    std::fs::remove_file(path).unwrap();
}
