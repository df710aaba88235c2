//! The files of a shard, without a shard.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use playfield_room::recording::Journal as Read;
use playfield_room::{Room, RoomType, room};
use playfield_state::State;

use super::Writer;
use crate::config;
use crate::journal::{ENDING, FileSink, Journal};
use crate::shard::journaled::{Block, Sink as _};

/// Only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(State, Default)]
struct Kept {
    number: u64,
}

#[room(persist = 1, durability = journal)]
impl Room for Kept {}

/// A folder that is removed when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let name = format!("playfield-journal-files-{}-{name}", std::process::id());
        Self(std::env::temp_dir().join(name))
    }

    fn open(&self) -> Arc<Journal> {
        self.open_for(&[RoomType::of::<Kept>("kept")]).unwrap()
    }

    fn open_for(&self, room_types: &[RoomType]) -> Option<Arc<Journal>> {
        let settings = config::Journal { folder: self.0.clone(), ..config::Journal::default() };
        Journal::open(&settings, room_types, 1, false).unwrap()
    }

    /// The files, oldest first.
    fn files(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        files.retain(|path| path.extension().is_some_and(|it| it == ENDING));
        files.sort();
        files
    }

    /// The last block in the files.
    fn last(&self) -> Option<u64> {
        let read = |path: &PathBuf| (path.display().to_string(), fs::read(path).unwrap());
        let files: Vec<_> = self.files().iter().map(read).collect();
        Read::read(files.iter().map(|(name, bytes)| (name.as_str(), &bytes[..]))).last()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn block(number: u64, begins_file: bool) -> Block {
    Block { number, sections: Vec::new(), begins_file }
}

#[test]
fn the_end_of_a_node_waits_until_all_is_written() {
    let folder = Folder::new("ends");
    let journal = folder.open();
    let mut sink = FileSink::start(&journal, 0, || {}).unwrap();
    for number in 0..200 {
        sink.append(block(number, number % 50 == 49));
    }
    drop(sink);
    assert!(journal.wait_until_written(Instant::now() + PATIENCE));
    assert_eq!(folder.last(), Some(199));
}

#[test]
fn the_end_of_a_node_does_not_wait_for_ever_for_a_disk_that_fails() {
    let folder = Folder::new("fails");
    let journal = folder.open();
    let mut sink = FileSink::start(&journal, 0, || {}).unwrap();
    fs::remove_dir_all(&folder.0).unwrap();
    sink.append(block(0, true));
    sink.append(block(1, true));
    drop(sink);
    let deadline = Instant::now() + Duration::from_millis(50);
    journal.ends_at(deadline);
    assert!(!journal.wait_until_written(deadline + PATIENCE), "it gives up by itself");
}

#[test]
fn a_disk_that_fails_to_sync_for_long_leaves_one_file() {
    let folder = Folder::new("syncs");
    let mut writer = Writer::new(folder.open(), 0);
    writer.open_next(0).unwrap();
    writer.write(&[block(0, false)]).unwrap();
    writer.give_up();
    for _ in 0..5 {
        writer.open_next(1).unwrap();
        writer.give_up();
    }
    assert_eq!(folder.files().len(), 2, "{:?}", folder.files());
    writer.write(&[block(1, false)]).unwrap();
    writer.write(&[block(2, true)]).unwrap();
    assert_eq!((folder.files().len(), folder.last()), (3, Some(2)));
    // With this block, all rooms are whole.
    writer.settle(2);
    assert_eq!((folder.files().len(), folder.last()), (1, Some(2)));
}

#[test]
fn a_program_without_journaled_rooms_names_a_journal_that_is_left() {
    let folder = Folder::new("left");
    let left_behind = |folder: &Path| super::super::left_behind(folder);
    assert_eq!(left_behind(&folder.0), None, "there is no folder");
    let journal = folder.open();
    assert_eq!(left_behind(&folder.0), None, "it has no files");
    drop(FileSink::start(&journal, 0, || {}).unwrap());
    let text = left_behind(&folder.0).expect("it has a file");
    let name = format!("{:?}", folder.0);
    for part in [name.as_str(), "durability = journal", "last saves", "move the folder away"] {
        assert!(text.contains(part), "{part} is missing in: {text}");
    }
    assert!(folder.open_for(&[]).is_none());
}

#[test]
fn a_folder_that_was_begun_on_a_full_disk_is_begun_again() {
    let folder = Folder::new("empty");
    fs::create_dir_all(&folder.0).unwrap();
    let owner = folder.0.join("owner");
    fs::write(&owner, "").unwrap();
    let journal = folder.open();
    let rooms = journal.recover(&[], None).unwrap();
    assert!(rooms.open.is_empty() && rooms.ending.is_empty());
    assert_eq!(fs::read_to_string(&owner).unwrap(), "0000000000000000 00000\n");
    drop(FileSink::start(&journal, 0, || {}).unwrap());
    journal.release();
    drop(journal);
    // Without an owner, the valid files are unknown.
    fs::write(&owner, "").unwrap();
    let settings = config::Journal { folder: folder.0.clone(), ..config::Journal::default() };
    let opened = Journal::open(&settings, &[RoomType::of::<Kept>("kept")], 1, false);
    let why = opened.err().expect("it does not start").to_string();
    for part in ["journal.folder", "missing or empty", "put it back"] {
        assert!(why.contains(part), "{part} is missing in: {why}");
    }
}

#[test]
fn an_owner_that_is_no_number_is_named_with_its_folder() {
    let folder = Folder::new("owner");
    fs::create_dir_all(&folder.0).unwrap();
    fs::write(folder.0.join("owner"), "me").unwrap();
    let why = folder.open().recover(&[], None).err().expect("it is not valid").to_string();
    let name = format!("{:?}", folder.0);
    for part in [name.as_str(), "`owner`", "\"me\""] {
        assert!(why.contains(part), "{part} is missing in: {why}");
    }
}

#[test]
fn an_owner_that_was_cut_is_not_taken_for_another_and_no_file_is_removed() {
    let folder = Folder::new("cut");
    three_files(&folder);
    let (files, owner) = (folder.files(), folder.0.join("owner"));
    let whole = fs::read_to_string(&owner).unwrap();
    for length in 1..whole.len() {
        fs::write(&owner, &whole[..length]).unwrap();
        let why = folder.open().recover(&[], None).err().expect("it is noticed").to_string();
        let has = format!("`owner` has {:?}", &whole[..length]);
        for part in [&has, "journal.folder", "put it back"] {
            assert!(why.contains(part), "{part} is missing in: {why}");
        }
    }
    assert_eq!(folder.files(), files);
    fs::write(&owner, &whole).unwrap();
    assert!(folder.open().recover(&[], None).unwrap().open.is_empty());
}

#[test]
fn the_oldest_file_of_a_shard_without_its_begin_is_named() {
    let folder = Folder::new("begin");
    three_files(&folder);
    let oldest = folder.files().remove(0);
    let bytes = fs::read(&oldest).unwrap();
    for content in [vec![], vec![0; bytes.len()], bytes[..20].to_vec()] {
        fs::write(&oldest, &content).unwrap();
        let why = folder.open().recover(&[], None).err().expect("it is noticed").to_string();
        let what = format!("{} is empty, or its first block is damaged", oldest.display());
        for part in [what.as_str(), "shard 0", "Nothing was changed"] {
            assert!(why.contains(part), "{part} is missing in: {why}");
        }
        assert_eq!(fs::read(&oldest).unwrap(), content);
    }
}

#[test]
fn files_that_are_none_of_a_journal_stay() {
    let folder = Folder::new("foreign");
    three_files(&folder);
    let notes = folder.0.join(format!("notes.{ENDING}"));
    fs::write(&notes, "mine").unwrap();
    let journal = folder.open();
    assert!(journal.recover(&[], None).unwrap().open.is_empty());
    let mut sink = FileSink::start(&journal, 0, || {}).unwrap();
    sink.append(block(0, false));
    sink.settled(0, 0);
    drop(sink);
    assert!(journal.wait_until_written(Instant::now() + PATIENCE));
    journal.release();
    assert_eq!(fs::read_to_string(&notes).unwrap(), "mine");
    assert_eq!(folder.files().len(), 2, "the files before are removed");
}

/// Begins three files, with two blocks in each, as a process that is killed leaves them.
fn three_files(folder: &Folder) {
    let journal = folder.open();
    let mut sink = FileSink::start(&journal, 0, || {}).unwrap();
    for number in 0..6 {
        sink.append(block(number, number == 2 || number == 4));
    }
    // The files are valid now.
    sink.settled(5, 0);
    drop(sink);
    assert!(journal.wait_until_written(Instant::now() + PATIENCE));
    journal.release();
    assert_eq!(folder.files().len(), 3);
}

#[test]
fn each_file_that_is_missing_is_named() {
    for missing in 1..3 {
        let folder = Folder::new("missing");
        three_files(&folder);
        let files = folder.files();
        fs::remove_file(&files[missing]).unwrap();
        let why = folder.open().recover(&[], None).err().expect("it is noticed").to_string();
        let before = files[missing - 1].display().to_string();
        let what = format!("file {missing} of shard 0 is missing, which follows {before}");
        for part in [what.as_str(), "Nothing was changed"] {
            assert!(why.contains(part), "{part} is missing in: {why}");
        }
    }
}

#[test]
fn a_shard_without_files_is_named() {
    let folder = Folder::new("none");
    three_files(&folder);
    let files = folder.files();
    let name = files[0].file_name().unwrap().to_str().unwrap();
    let prefix = name.rsplit_once('-').unwrap().0;
    files.iter().for_each(|path| fs::remove_file(path).unwrap());
    let why = folder.open().recover(&[], None).err().expect("it is noticed").to_string();
    for part in [&format!("{prefix}-*.journal are missing"), "1 shards", "Nothing was changed"] {
        assert!(why.contains(part), "{part} is missing in: {why}");
    }
}
