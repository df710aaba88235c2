//! Files of a journal that are damaged, or in use.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use super::{Files, IGNORED, PATIENCE, World, play_and_kill};

#[test]
fn a_torn_block_is_left_out_and_a_damaged_one_is_named() {
    let files = Files::new("torn");
    let world = Arc::new(World::default());
    play_and_kill(&files, &world, 100);
    // The process ended while it wrote.
    for file in files.journal() {
        let mut bytes = std::fs::read(&file).unwrap();
        let whole = bytes.len();
        bytes.extend_from_within(whole / 2..);
        bytes.truncate(whole);
        bytes.extend(b"PFBLOCK");
        std::fs::write(&file, bytes).unwrap();
    }
    play_and_kill(&files, &world, 100);
    // A bit of what was acknowledged has flipped.
    let largest = files.journal().into_iter().max_by_key(|path| path.metadata().unwrap().len());
    let largest = largest.unwrap();
    let bytes = std::fs::read(&largest).unwrap();
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2] ^= 4;
    std::fs::write(&largest, &damaged).unwrap();
    let why = files.start().err().expect("it does not start");
    let name = largest.file_name().unwrap().to_str().unwrap();
    for part in [name, "is damaged", "at byte", "\"ledger\" \"ledger-", "Nothing was changed"] {
        assert!(why.contains(part), "{part} is missing in: {why}");
    }
    assert_eq!(std::fs::read(&largest).unwrap(), damaged, "nothing was changed");
    // The bytes as they were.
    std::fs::write(&largest, bytes).unwrap();
    play_and_kill(&files, &world, 100);
}

#[test]
fn two_processes_do_not_use_one_journal() {
    let files = Files::new("two");
    let _node = files.start().unwrap();
    let other = Files { store: files.store.with_extension("other"), journal: PathBuf::new() };
    let why = Command::new(std::env::current_exe().unwrap())
        .arg("node")
        .args(IGNORED)
        .env("PLAYFIELD_TEST_STORE", &other.store)
        .env("PLAYFIELD_TEST_SETTINGS", format!("journal.folder={}", files.journal.display()))
        .output()
        .unwrap();
    let why = String::from_utf8_lossy(&why.stdout).into_owned();
    assert!(why.contains("another process uses it"), "{why}");
}

#[test]
fn files_are_kept_if_another_build_runs_inputs_that_it_cannot_compare() {
    let files = Files::new("build");
    let world = Arc::new(World::default());
    play_and_kill(&files, &world, 100);
    let names = |paths: Vec<PathBuf>| -> Vec<_> {
        paths.iter().map(|path| path.file_name().unwrap().to_owned()).collect()
    };
    let before = names(files.journal());
    let other = files.store.with_extension("other");
    std::fs::copy(std::env::current_exe().unwrap(), &other).unwrap();
    let started = files.start_build(&other, "");
    std::fs::remove_file(&other).unwrap();
    let _node = started.unwrap();
    // They are moved once all rooms are whole in new files.
    let kept = || {
        let entries = std::fs::read_dir(files.journal.join("kept"));
        let entries = entries.into_iter().flatten().map(|entry| entry.unwrap().path());
        let mut kept = names(entries.collect());
        kept.sort();
        kept
    };
    let by = Instant::now() + PATIENCE;
    while kept() != before {
        assert!(Instant::now() < by, "{:?} of {before:?}", kept());
        std::thread::yield_now();
    }
}
