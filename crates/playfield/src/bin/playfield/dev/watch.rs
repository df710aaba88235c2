//! The files that have changed.
//!
//! It compares the times and sizes of files. A library that is called by the system would be
//! quicker in folders with very many files, but what this program depends on, every game would
//! compile; and it would hear nothing of folders that are shared with other machines.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

/// The least time for which a change is not seen.
const PAUSE_MIN: Duration = Duration::from_millis(20);

/// Looking at the files takes at most one part in this many of a core's time.
const SHARE: u32 = 50;

/// The most files that are watched.
pub(super) const FILES_MAX: usize = 10_000;

/// Folders that hold what is made, not written.
const MADE: [&str; 2] = ["target", "node_modules"];

/// Files, and those in folders.
pub(super) struct Watch {
    paths: Vec<PathBuf>,
    left_out: Vec<PathBuf>,
    known: HashMap<PathBuf, Stamp>,
    pause: Duration,
}

/// The parts of a file's metadata that differ after a save.
#[derive(PartialEq)]
struct Stamp {
    modified: Option<SystemTime>,
    length: u64,
}

impl Watch {
    /// Watches files and folders, but for those in `left_out`, and what is in the folders under a
    /// name that begins with a dot.
    pub(super) fn new(paths: Vec<PathBuf>, left_out: Vec<PathBuf>) -> io::Result<Self> {
        let mut watch = Self { paths, left_out, known: HashMap::new(), pause: PAUSE_MIN };
        watch.has_changed()?;
        Ok(watch)
    }

    /// Returns the time to wait before the next look.
    pub(super) fn pause(&self) -> Duration {
        self.pause
    }

    /// Whether a file has changed, come or gone since the last look.
    pub(super) fn has_changed(&mut self) -> io::Result<bool> {
        let began = Instant::now();
        let mut files = HashMap::with_capacity(self.known.len());
        for path in &self.paths {
            match fs::metadata(path) {
                Ok(metadata) if metadata.is_dir() => self.look(path, &mut files)?,
                Ok(metadata) => _ = files.insert(path.clone(), Stamp::of(&metadata)),
                // It may come.
                Err(_) => {}
            }
        }
        let has_changed = files != self.known;
        self.known = files;
        self.pause = PAUSE_MIN.max(began.elapsed() * SHARE);
        Ok(has_changed)
    }

    fn look(&self, folder: &Path, files: &mut HashMap<PathBuf, Stamp>) -> io::Result<()> {
        // A folder that is gone has no files.
        let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
        for entry in entries.flatten() {
            let (name, path) = (entry.file_name(), entry.path());
            if name.as_encoded_bytes().starts_with(b".") || self.left_out.contains(&path) {
                continue;
            }
            // Links are not followed to folders, which may hold them.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if !MADE.iter().any(|made| name == *made) {
                    self.look(&path, files)?;
                }
            } else if let Ok(metadata) = fs::metadata(&path) {
                if files.len() >= FILES_MAX {
                    return Err(io::Error::other(format!(
                        "more than {FILES_MAX} files are to be watched, the last in {}: move what \
                         is not part of the game elsewhere",
                        folder.display()
                    )));
                }
                files.insert(path, Stamp::of(&metadata));
            }
        }
        Ok(())
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self { modified: metadata.modified().ok(), length: metadata.len() }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::{FILES_MAX, Watch};

    /// A folder that is removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("playfield-{name}-{}", std::process::id()));
            fs::create_dir_all(path.join("src")).unwrap();
            Self(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn files_that_are_saved_come_or_go_are_seen_once() {
        let folder = Folder::new("watch");
        let at = |name: &str| folder.0.join(name);
        for made in ["src/target", "src/node_modules", "src/web", "src/.git"] {
            fs::create_dir(at(made)).unwrap();
        }
        fs::write(at("src/main.rs"), "a").unwrap();
        let mut watch = Watch::new(vec![at("src"), at("build.rs")], vec![at("src/web")]).unwrap();
        let mut is_seen = |change: &dyn Fn()| {
            change();
            let is_seen = watch.has_changed().unwrap();
            assert!(!watch.has_changed().unwrap());
            is_seen
        };
        assert!(is_seen(&|| fs::write(at("src/main.rs"), "ab").unwrap()));
        assert!(is_seen(&|| fs::write(at("src/other.rs"), "").unwrap()));
        assert!(is_seen(&|| fs::rename(at("src/other.rs"), at("src/third.rs")).unwrap()));
        assert!(is_seen(&|| fs::remove_file(at("src/third.rs")).unwrap()));
        assert!(is_seen(&|| fs::write(at("build.rs"), "").unwrap()));
        for elsewhere in ["src/target/x", "src/node_modules/x", "src/web/x", "src/.git/x", "src/.x"]
        {
            assert!(!is_seen(&|| fs::write(at(elsewhere), "x").unwrap()), "{elsewhere}");
        }
        assert!(!is_seen(&|| fs::write(at("saves.redb"), "x").unwrap()));
    }

    #[test]
    fn too_many_files_are_an_error() {
        let folder = Folder::new("watch-many");
        for number in 0..FILES_MAX {
            fs::write(folder.0.join("src").join(number.to_string()), "").unwrap();
        }
        let mut watch = Watch::new(vec![folder.0.clone()], vec![]).unwrap();
        fs::write(folder.0.join("src/one-more"), "").unwrap();
        assert!(watch.has_changed().unwrap_err().to_string().contains("more than 10000 files"));
    }
}
