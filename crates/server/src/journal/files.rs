//! The files of a shard's journal, which a thread beside the shard writes: all that waits with one
//! write and one `fdatasync`, while the shard goes on.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use playfield_room::recording::{Segment, SegmentWriter};

use super::{ENDING, Journal, sync_folder};
use crate::shard::journaled::{Block, Sink};

/// The most bytes that are written at once, unless one block has more.
const WRITE_BYTES: usize = 512 << 10;
/// The time until a write that failed is tried again.
const RETRY: Duration = Duration::from_millis(100);

/// The way of a shard to its files.
pub(crate) struct FileSink(Arc<Shared>);

struct Shared {
    journal: Arc<Journal>,
    orders: Mutex<Orders>,
    changed: Condvar,
    /// The number of blocks that are durable.
    durable: AtomicU64,
    /// A file was given up.
    gave_up: AtomicBool,
}

/// The block with which all rooms are whole again, and the first block that is of use then.
type Settled = (u64, u64);

#[derive(Default)]
struct Orders {
    blocks: VecDeque<Block>,
    settled: Option<Settled>,
    ends: bool,
}

impl FileSink {
    /// Begins the files of a shard. `wake` begins a turn of it.
    ///
    /// # Errors
    /// If the first file can't be written, or a thread can't be started.
    pub(crate) fn start(
        journal: &Arc<Journal>,
        shard: u16,
        wake: impl Fn() + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let mut writer = Writer::new(Arc::clone(journal), shard);
        writer.open_next(0).map_err(|error| {
            io::Error::new(error.kind(), format!("journal.folder = {:?}: {error}", journal.folder))
        })?;
        let wakes = wake.clone();
        journal.wake.lock().unwrap_or_else(PoisonError::into_inner).push(Box::new(wakes));
        let shared = Arc::new(Shared {
            journal: Arc::clone(journal),
            orders: Mutex::default(),
            changed: Condvar::new(),
            durable: AtomicU64::new(0),
            gave_up: AtomicBool::new(false),
        });
        let name = format!("playfield-journal-{shard}");
        let thread = Arc::clone(&shared);
        let (gives_up, has_ended) = sync_channel(1);
        thread::Builder::new().name(name).spawn(move || writer.run(&thread, &wake, &gives_up))?;
        journal.writers().push(has_ended);
        Ok(Self(shared))
    }
}

impl Sink for FileSink {
    fn append(&mut self, block: Block) {
        self.0.orders().blocks.push_back(block);
        self.0.changed.notify_one();
    }

    fn settled(&mut self, block: u64, first: u64) {
        self.0.orders().settled = Some((block, first));
        self.0.changed.notify_one();
    }

    fn gave_up(&mut self) -> bool {
        self.0.gave_up.swap(false, Ordering::AcqRel)
    }

    fn durable(&self) -> u64 {
        match self.0.journal.is_owner.load(Ordering::Acquire) {
            true => self.0.durable.load(Ordering::Acquire),
            false => 0,
        }
    }
}

impl Drop for FileSink {
    fn drop(&mut self) {
        self.0.orders().ends = true;
        self.0.changed.notify_one();
    }
}

impl Shared {
    fn orders(&self) -> MutexGuard<'_, Orders> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what is to be written next; `None` at the end.
    fn next(&self) -> Option<(Vec<Block>, Option<Settled>)> {
        let mut orders = self.orders();
        loop {
            if !orders.blocks.is_empty() || orders.settled.is_some() {
                break;
            }
            if orders.ends {
                return None;
            }
            orders = self.changed.wait(orders).unwrap_or_else(PoisonError::into_inner);
        }
        let (mut blocks, mut bytes) = (Vec::new(), 0);
        while let Some(block) = orders.blocks.front()
            && (blocks.is_empty() || bytes + block.sections.len() <= WRITE_BYTES)
        {
            bytes += block.sections.len();
            blocks.extend(orders.blocks.pop_front());
        }
        Some((blocks, orders.settled.take()))
    }

    /// Waits until a write is tried again. Returns `true` if it is not, because the node ends.
    fn pause(&self) -> bool {
        let by = Instant::now() + RETRY;
        let mut orders = self.orders();
        while !orders.ends || self.journal.may_write() {
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let waited = self.changed.wait_timeout(orders, left);
            orders = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }
}

/// A file that is being written.
struct Open {
    path: PathBuf,
    file: File,
    blocks: SegmentWriter,
    /// The bytes of its begin, and those that are durable.
    begin: u64,
    bytes: u64,
}

/// The thread that writes.
struct Writer {
    journal: Arc<Journal>,
    shard: u64,
    /// The number of the next file.
    number: u64,
    open: Option<Open>,
    /// The files that are still of use, each with its first block.
    old: VecDeque<(u64, PathBuf)>,
    /// The last of them was given up before a block in it was durable: it is begun again.
    begins_again: bool,
    has_begun: bool,
}

impl Writer {
    fn new(journal: Arc<Journal>, shard: u16) -> Self {
        Self {
            journal,
            shard: shard.into(),
            number: 0,
            open: None,
            old: VecDeque::new(),
            begins_again: false,
            has_begun: false,
        }
    }

    fn run(mut self, shared: &Shared, wake: &dyn Fn(), gives_up: &SyncSender<()>) {
        let mut settled = None;
        while let Some((blocks, settles)) = shared.next() {
            settled = settles.or(settled);
            if let Some(last) = blocks.last().map(|block| block.number) {
                if !self.write_until_done(&blocks, shared) {
                    let _ = gives_up.try_send(());
                    return;
                }
                shared.durable.store(last + 1, Ordering::Release);
                wake();
            }
            let durable = shared.durable.load(Ordering::Relaxed);
            if let Some((_, first)) = settled.take_if(|(block, _)| *block < durable) {
                self.settle(first);
            }
        }
    }

    /// Writes blocks, and tries again until they are durable. Returns `false` at the node's end.
    fn write_until_done(&mut self, blocks: &[Block], shared: &Shared) -> bool {
        let mut has_failed = false;
        while let Err(error) = self.write(blocks) {
            if self.open.is_none() {
                shared.gave_up.store(true, Ordering::Release);
            }
            if !std::mem::replace(&mut has_failed, true) {
                log::error!(
                    "the journal of shard {} can't be written in {:?}: {error}; what its rooms \
                     have sent since waits, and it is tried again",
                    self.shard,
                    self.journal.folder
                );
            }
            if shared.pause() {
                return false;
            }
        }
        if has_failed {
            log::info!("the journal of shard {} is written again", self.shard);
        }
        true
    }

    fn write(&mut self, blocks: &[Block]) -> io::Result<()> {
        let mut rest = blocks;
        while let Some(first) = rest.first() {
            if self.open.is_none()
                || first.begins_file && self.old.back().is_none_or(|(of, _)| *of != first.number)
            {
                self.open_next(first.number)?;
            }
            let next = rest[1..].iter().position(|block| block.begins_file);
            let (here, later) = rest.split_at(next.map_or(rest.len(), |next| next + 1));
            self.append(here)?;
            rest = later;
        }
        Ok(())
    }

    /// Appends blocks to the present file, and makes them durable. If that fails, the file is as it
    /// was, or is [given up](Self::give_up).
    fn append(&mut self, blocks: &[Block]) -> io::Result<()> {
        let Some(open) = &mut self.open else { return Ok(()) };
        let (mut bytes, mut writer) = (Vec::new(), open.blocks.clone());
        for block in blocks {
            writer.block(block.number, &block.sections, &mut bytes);
        }
        let written = open.file.write_all(&bytes);
        if let Err(error) = written {
            // Such as on a full disk: what was written of it is in nobody's way.
            let whole = open.bytes;
            let cut =
                open.file.set_len(whole).and_then(|()| open.file.seek(SeekFrom::Start(whole)));
            if cut.is_err() {
                self.give_up();
            }
            return Err(error);
        }
        if let Err(error) = open.file.sync_data() {
            self.give_up();
            return Err(error);
        }
        open.bytes += bytes.len() as u64;
        open.blocks = writer;
        Ok(())
    }

    /// Writes the present file no more: its content on disk is not known.
    fn give_up(&mut self) {
        let Some(open) = self.open.take() else { return };
        self.begins_again = open.bytes == open.begin;
    }

    /// Begins the next file, with this block. A file without a durable block is begun again
    /// instead, so a disk that fails for long does not fill the folder.
    fn open_next(&mut self, first: u64) -> io::Result<()> {
        let Journal { folder, incarnation, build, .. } = &*self.journal;
        let begins_again = self.begins_again;
        let (shard, number) = (self.shard, self.number - u64::from(begins_again));
        let path = folder.join(format!("{incarnation:016x}-{shard}-{number:06}.{ENDING}"));
        let segment =
            Segment { incarnation: *incarnation, shard, number, first, build: build.clone() };
        let mut bytes = Vec::new();
        let blocks = SegmentWriter::begin(&segment, &mut bytes);
        let mut options = OpenOptions::new();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let begun = options.write(true).create(true).truncate(true).open(&path);
        let begun = begun.and_then(|mut file| {
            file.write_all(&bytes)?;
            file.sync_all()?;
            sync_folder(folder)?;
            Ok(file)
        });
        let file = begun.inspect_err(|_| {
            // The file before it may name it.
            if !begins_again {
                drop(fs::remove_file(&path));
            }
        })?;
        match begins_again {
            true => drop(self.old.pop_back()),
            false => self.end_present(&segment),
        }
        self.old.push_back((first, path.clone()));
        let begin = bytes.len() as u64;
        self.open = Some(Open { path, file, blocks, begin, bytes: begin });
        (self.number, self.begins_again) = (number + 1, false);
        Ok(())
    }

    /// Notes the next file in the current one, if that can be written. Otherwise a missing file
    /// would go unnoticed.
    fn end_present(&mut self, next: &Segment) {
        let Some(mut open) = self.open.take() else { return };
        let mut bytes = Vec::new();
        open.blocks.end(next, &mut bytes);
        if let Err(error) = open.file.write_all(&bytes).and_then(|()| open.file.sync_data()) {
            log::warn!("{} of the journal has no end: {error}", open.path.display());
        }
    }

    /// All rooms are whole in files from this block on.
    fn settle(&mut self, first: u64) {
        if !std::mem::replace(&mut self.has_begun, true) {
            self.journal.begun();
        }
        if self.journal.has_unsaved() {
            return;
        }
        while self.old.get(1).is_some_and(|(next, _)| *next <= first)
            && let Some((_, path)) = self.old.front()
        {
            if let Err(error) = fs::remove_file(path)
                && error.kind() != io::ErrorKind::NotFound
            {
                // Later files stay, too: files are removed in order.
                log::warn!("{} of the journal is of no use, but is left: {error}", path.display());
                return;
            }
            self.old.pop_front();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        if let Some(Open { path, bytes, .. }) = &self.open {
            log::debug!("{} of the journal ends at byte {bytes}", path.display());
        }
    }
}

#[cfg(test)]
mod tests;
