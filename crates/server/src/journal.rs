//! The journal of a node: the inputs of rooms with `durability = journal`, in files of each shard.
//!
//! The files of one process have its *incarnation* in their names: a random number. The file
//! `owner` says which incarnation counts. A process that takes rooms over, from files or from
//! another process, writes them whole into files of its own, and then its number into `owner`.
//! Until then nothing that its rooms send leaves the node, so a crash at any time finds either the
//! old files or the new ones.

mod files;
mod newest;
mod recovery;
mod saver;

use std::collections::HashSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use playfield_room::{Durability, RoomType, Settings};

use crate::config;
use crate::entropy::Entropy;
use crate::program::build;
pub(crate) use files::FileSink;
pub(crate) use recovery::{Ending, Recovering, parts};
use saver::Saver;

/// The file that says which files count.
const OWNER: &str = "owner";
/// The ending of a file's name.
pub(crate) const ENDING: &str = "journal";
/// The folder of files that this build could not run to their end.
pub(crate) const KEPT: &str = "kept";
/// The time that a process which has handed over has to unlock the folder.
const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Returns whether rooms of this type with a key are journaled.
pub(crate) fn is_journaled(settings: &Settings) -> bool {
    settings.durability == Durability::Journal && settings.persist_s > 0
}

/// The journal of a node.
pub(crate) struct Journal {
    folder: PathBuf,
    settings: config::Journal,
    incarnation: u64,
    shards: usize,
    build: String,
    /// The file `owner`, which is locked.
    owner: Mutex<Option<File>>,
    /// The files of this process count, so that what its rooms send may leave.
    is_owner: AtomicBool,
    /// The shards that have yet to write all their rooms whole.
    to_begin: AtomicUsize,
    /// Files of other incarnations are moved, not removed.
    keeps_others: AtomicBool,
    /// The rooms that were dropped without being saved, by type and key. Their states are in the
    /// journal, until the store has them, or for the next start.
    unsaved: Mutex<HashSet<(String, String)>>,
    saver: Saver,
    /// Receivers that report the end of each thread that writes a shard's files.
    writers: Mutex<Vec<Receiver<()>>>,
    /// The time at which those threads stop writing, because the node ends.
    ends_at: Mutex<Option<Instant>>,
    /// Wakes the shards when the files count.
    wake: Mutex<Vec<Box<dyn Fn() + Send>>>,
    progress: Mutex<Vec<Arc<Progress>>>,
    /// The number of times that a shard stalled because its journal was too late.
    stalls: AtomicU64,
}

/// The numbers of blocks that a shard has made, and that it knows to be durable.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) made: AtomicU64,
    pub(crate) durable: AtomicU64,
}

impl Journal {
    /// Opens the journal of a node with this many shards, if a room type needs one. A process that
    /// takes over from another can't lock it yet.
    ///
    /// # Errors
    /// If the folder is missing in the settings, can't be made, or is in use.
    pub(crate) fn open(
        settings: &config::Journal,
        room_types: &[RoomType],
        shards: usize,
        is_successor: bool,
    ) -> io::Result<Option<Arc<Self>>> {
        let Some(first) =
            room_types.iter().find(|of| of.settings.durability == Durability::Journal)
        else {
            if let Some(text) = left_behind(&settings.folder) {
                log::warn!("{text}");
            }
            return Ok(None);
        };
        if !is_journaled(&first.settings) {
            let text = format!(
                "rooms of the type {:?} have `durability = journal`, but are never saved: give \
                 the type `persist`, too",
                first.name
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let folder = settings.folder.clone();
        if folder.as_os_str().is_empty() {
            let text = format!(
                "rooms of the type {:?} have `durability = journal`, but journal.folder is not set",
                first.name
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("journal.folder = {folder:?}: {error}"))
        };
        builder.recursive(true).create(&folder).map_err(named)?;
        let this = Self {
            folder: folder.clone(),
            settings: settings.clone(),
            incarnation: Entropy::System.number().max(1),
            shards,
            build: build().to_owned(),
            owner: Mutex::new(None),
            is_owner: AtomicBool::new(false),
            to_begin: AtomicUsize::new(shards),
            keeps_others: AtomicBool::new(false),
            unsaved: Mutex::default(),
            saver: Saver::default(),
            writers: Mutex::default(),
            ends_at: Mutex::default(),
            wake: Mutex::default(),
            progress: Mutex::default(),
            stalls: AtomicU64::new(0),
        };
        if !is_successor {
            this.lock().map_err(named)?;
        }
        Ok(Some(Arc::new(this)))
    }

    /// A journal whose blocks a test keeps.
    #[cfg(test)]
    pub(crate) fn of_test(settings: config::Journal) -> Arc<Self> {
        Arc::new(Self {
            folder: PathBuf::new(),
            settings,
            incarnation: 1,
            shards: 1,
            build: "test".into(),
            owner: Mutex::new(None),
            is_owner: AtomicBool::new(true),
            to_begin: AtomicUsize::new(0),
            keeps_others: AtomicBool::new(false),
            unsaved: Mutex::default(),
            saver: Saver::default(),
            writers: Mutex::default(),
            ends_at: Mutex::default(),
            wake: Mutex::default(),
            progress: Mutex::default(),
            stalls: AtomicU64::new(0),
        })
    }

    /// Locks the folder. A new one has no files that count.
    fn lock(&self) -> io::Result<()> {
        let path = self.folder.join(OWNER);
        let has_files = self.others()?.next().is_some();
        let is_missing = || {
            let text = "it has files of a journal, but its file `owner` is missing or empty, which \
                        says which of them count: put it back, or move the files away to start \
                        rooms from their saves";
            io::Error::other(text)
        };
        if has_files && !path.exists() {
            return Err(is_missing());
        }
        let mut options = OpenOptions::new();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.read(true).write(true).create(true).truncate(false).open(&path)?;
        lock(&file)?;
        // A process that began the folder may have ended before it had written its first number,
        // or on a full disk.
        if file.metadata()?.len() == 0 {
            if has_files {
                return Err(is_missing());
            }
            write_owner(&file, 0, 0)?;
            sync_folder(&self.folder)?;
        }
        *self.owner() = Some(file);
        Ok(())
    }

    /// The incarnation that counts, and the number of its shards.
    fn counts(&self) -> io::Result<(u64, u32)> {
        let mut text = String::new();
        if let Some(file) = &mut *self.owner() {
            file.seek(SeekFrom::Start(0))?;
            file.read_to_string(&mut text)?;
        }
        let numbers = text.trim_end().split_once(' ').and_then(|(incarnation, shards)| {
            Some((u64::from_str_radix(incarnation, 16).ok()?, shards.parse().ok()?))
        });
        // A cut number would be that of a process without files.
        let whole = numbers.filter(|(incarnation, shards)| owner(*incarnation, *shards) == text);
        whole.ok_or_else(|| {
            let text = format!(
                "its file `owner` has {text:?} instead of 16 hexadecimal digits and a number of \
                 shards of 5 digits: put it back, or move the files of the journal away with it to \
                 start rooms from their saves"
            );
            io::Error::new(io::ErrorKind::InvalidData, text)
        })
    }

    /// Another process has handed over, and ends: the folder is locked once it lets go of it.
    pub(crate) fn take_over(&self) {
        let by = Instant::now() + LOCK_WAIT;
        while let Err(error) = self.lock() {
            if Instant::now() > by {
                log::error!(
                    "journal.folder = {:?}: {error}; rooms with `durability = journal` stand still",
                    self.folder
                );
                return;
            }
            #[expect(clippy::disallowed_methods, reason = "no event says that a lock is free")]
            thread::sleep(Duration::from_millis(1));
        }
        self.own_if_ready();
    }

    /// The node ends: its files are written until this deadline at most.
    pub(crate) fn ends_at(&self, deadline: Instant) {
        *self.ends_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(deadline);
    }

    /// Returns whether a shard that has ended tries again to write its files.
    fn may_write(&self) -> bool {
        let ends_at = *self.ends_at.lock().unwrap_or_else(PoisonError::into_inner);
        ends_at.is_some_and(|at| Instant::now() < at)
    }

    /// Waits until all notes of the ended shards are durable. Returns whether they are.
    pub(crate) fn wait_until_written(&self, deadline: Instant) -> bool {
        let writers = std::mem::take(&mut *self.writers());
        writers.iter().all(|writer| {
            let left = deadline.saturating_duration_since(Instant::now());
            // Each thread drops its sender, unless it gives up.
            writer.recv_timeout(left) == Err(RecvTimeoutError::Disconnected)
        })
    }

    /// Lets another process have the folder.
    pub(crate) fn release(&self) {
        *self.owner() = None;
    }

    /// No other process has taken over after all: what it wrote does not count.
    pub(crate) fn keep(&self) {
        if self.is_owner.load(Ordering::Acquire) {
            self.remove_others();
        }
    }

    /// A shard has all its rooms in its files.
    fn begun(&self) {
        self.to_begin.fetch_sub(1, Ordering::AcqRel);
        self.own_if_ready();
    }

    /// Makes the files of this process count, if they have all rooms and the folder is locked.
    fn own_if_ready(&self) {
        let mut owner = self.owner();
        if self.to_begin.load(Ordering::Acquire) > 0 || self.is_owner.load(Ordering::Acquire) {
            return;
        }
        let Some(file) = &mut *owner else { return };
        while let Err(error) = write_owner(file, self.incarnation, self.shards as u32) {
            log::error!("journal.folder = {:?}: `owner` can't be written: {error}", self.folder);
            #[expect(clippy::disallowed_methods, reason = "no event says that a disk works again")]
            thread::sleep(Duration::from_secs(1));
        }
        self.is_owner.store(true, Ordering::Release);
        drop(owner);
        self.remove_others();
        self.wake_shards();
    }

    /// The files of other incarnations. Files with other names are none of a journal.
    fn others(&self) -> io::Result<impl Iterator<Item = PathBuf>> {
        let own = format!("{:016x}-", self.incarnation);
        let entries = fs::read_dir(&self.folder)?.filter_map(Result::ok);
        Ok(entries.map(|entry| entry.path()).filter(move |path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            parts(path).is_some() && !name.starts_with(&own)
        }))
    }

    /// Removes the files that do not count, or moves them.
    fn remove_others(&self) {
        let keeps = self.keeps_others.load(Ordering::Relaxed);
        let kept = self.folder.join(KEPT);
        let removed = self.others().and_then(|others| {
            if keeps {
                fs::create_dir_all(&kept)?;
            }
            for path in others {
                match path.file_name() {
                    Some(name) if keeps => fs::rename(&path, kept.join(name))?,
                    _ => fs::remove_file(&path)?,
                }
            }
            Ok(())
        });
        if let Err(error) = removed {
            log::warn!("files of the journal that are of no use are left: {error}");
        }
    }

    /// A room ended without being saved: its state stays in the journal.
    pub(crate) fn note_unsaved(&self, room_type: &str, key: &str) {
        self.unsaved().insert((room_type.to_owned(), key.to_owned()));
    }

    /// Returns whether the last state of a room is only in the journal.
    pub(crate) fn is_unsaved(&self, room_type: &str, key: &str) -> bool {
        let unsaved = self.unsaved();
        !unsaved.is_empty() && unsaved.contains(&(room_type.to_owned(), key.to_owned()))
    }

    /// Forgets an unsaved room: it is saved now, and the journal has its end.
    pub(crate) fn forget_unsaved(&self, room_type: &str, key: &str) {
        self.unsaved().remove(&(room_type.to_owned(), key.to_owned()));
    }

    /// Adds a shard to those whose [blocks](Self::made) are counted.
    pub(crate) fn count_blocks(&self) -> Arc<Progress> {
        let progress = Arc::default();
        self.progress().push(Arc::clone(&progress));
        progress
    }

    /// The number of blocks that each shard has made.
    pub(crate) fn made(&self) -> Vec<u64> {
        self.progress().iter().map(|shard| shard.made.load(Ordering::Acquire)).collect()
    }

    /// Returns whether this many blocks of each shard are durable.
    pub(crate) fn has_written(&self, made: &[u64]) -> bool {
        let mut shards = self.progress().clone().into_iter().zip(made);
        shards.all(|(shard, made)| shard.durable.load(Ordering::Acquire) >= *made)
    }

    /// Counts a shard that stalls.
    pub(crate) fn stalls(&self) {
        self.stalls.fetch_add(1, Ordering::AcqRel);
    }

    /// The number of times that a shard has stalled.
    pub(crate) fn stalls_so_far(&self) -> u64 {
        self.stalls.load(Ordering::Acquire)
    }

    fn wake_shards(&self) {
        self.wake.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(|wake| wake());
    }

    fn has_unsaved(&self) -> bool {
        !self.unsaved().is_empty()
    }

    /// The time after which rooms whose journal can't be written are not called.
    pub(crate) fn wait(&self) -> Duration {
        self.settings.wait
    }

    pub(crate) fn file_bytes(&self) -> usize {
        self.settings.file_bytes
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn build(&self) -> &str {
        &self.build
    }

    fn owner(&self) -> MutexGuard<'_, Option<File>> {
        self.owner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn writers(&self) -> MutexGuard<'_, Vec<Receiver<()>>> {
        self.writers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn progress(&self) -> MutexGuard<'_, Vec<Arc<Progress>>> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unsaved(&self) -> MutexGuard<'_, HashSet<(String, String)>> {
        self.unsaved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A warning for a build without journaled rooms, if the folder has a journal.
fn left_behind(folder: &Path) -> Option<String> {
    let mut entries = fs::read_dir(folder).ok()?.filter_map(Result::ok);
    let has_files =
        entries.any(|entry| entry.path().extension().is_some_and(|ending| ending == ENDING));
    has_files.then(|| {
        format!(
            "journal.folder = {folder:?} has the journal of an earlier process, but no room type \
             of this program has `durability = journal`: rooms start from their last saves, \
             without what only the journal has. Start the earlier program to get that back, or \
             move the folder away"
        )
    })
}

/// The content of the file `owner`. Its length is fixed, so that no rest of another number remains.
fn owner(incarnation: u64, shards: u32) -> String {
    format!("{incarnation:016x} {shards:05}\n")
}

fn write_owner(mut file: &File, incarnation: u64, shards: u32) -> io::Result<()> {
    file.seek(SeekFrom::Start(0))?;
    // With one write: a process that is killed leaves no part of it.
    file.write_all(owner(incarnation, shards).as_bytes())?;
    file.sync_all()
}

/// Locks a file for this process.
fn lock(file: &File) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FlockOperation, flock};
        flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => io::Error::new(
                io::ErrorKind::AddrInUse,
                "another process uses it: give each node a folder of its own",
            ),
            error => error.into(),
        })?;
    }
    let _ = file;
    Ok(())
}

/// Makes the names of files durable.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}
