//! The thread that writes the files of recordings.

use std::collections::{HashMap, VecDeque};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant, SystemTime};

use playfield_room::recording::{About, BlockKind, RecordingWriter};

use super::{ENDING, Order, Queue};

/// The maximum number of open files. Others are opened again for their next block.
pub(super) const FILES_OPEN_MAX: usize = 64;

/// The shortest time between two checks for space in a full folder.
const SPACE_EVERY: Duration = Duration::from_secs(1);

/// The folder of recordings.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    pub(super) bytes_max: u64,
}

impl Folder {
    pub(super) fn make(&self) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(&self.path)
    }

    /// The bytes of all recordings.
    fn bytes(&self) -> io::Result<u64> {
        let mut bytes = 0;
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.path().extension().is_some_and(|ending| ending == ENDING) {
                bytes += entry.metadata()?.len();
            }
        }
        Ok(bytes)
    }

    fn full(&self) -> io::Error {
        let text = format!(
            "recordings.folder_bytes = {}: the folder has no space; move recordings away, or raise it",
            self.bytes_max
        );
        io::Error::new(io::ErrorKind::StorageFull, text)
    }

    /// Opens a file that is not there yet, which only this user can read.
    fn open(&self, about: &About) -> io::Result<(PathBuf, File)> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let room_type = about.room_type.replace(|c| !is_plain(c), "_");
        let name = format!("{room_type}-{}-{}.{ENDING}", about.room_id, about.unix_ms);
        let path = self.path.join(name);
        let mut options = OpenOptions::new();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.write(true).create_new(true).open(&path)?;
        Ok((path, file))
    }
}

/// The thread that writes.
pub(super) struct Writer {
    folder: Folder,
    queue: Queue,
    /// The bytes in the folder, and when it was looked through.
    used: Option<(u64, Instant)>,
    files: HashMap<u64, Open>,
    /// The numbers of those that are open, the one that was written longest ago first.
    opened: VecDeque<u64>,
}

/// A file that is being written.
struct Open {
    path: PathBuf,
    /// `None` while it is closed.
    file: Option<File>,
    blocks: RecordingWriter,
    about: Box<About>,
}

impl Writer {
    pub(super) fn new(folder: Folder, queue: Queue) -> Self {
        Self { folder, queue, used: None, files: HashMap::new(), opened: VecDeque::new() }
    }

    pub(super) fn run(mut self, orders: &Receiver<Order>) {
        while let Ok(order) = orders.recv() {
            self.queue.bytes.fetch_sub(order.bytes(), Ordering::Relaxed);
            match order {
                Order::Begin(number, about) => self.begin(number, about),
                Order::Block(number, kind, content) => self.block(number, kind, &content),
                Order::End(number) => self.end(number),
                Order::Flush(done) => drop(done.try_send(())),
            }
        }
    }

    fn begin(&mut self, number: u64, mut about: Box<About>) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        about.unix_ms = now.as_millis() as u64;
        match self.open(&about) {
            Ok((path, file, blocks)) => {
                self.files.insert(number, Open { path, file: Some(file), blocks, about });
                self.opened.push_back(number);
                self.close_beyond();
            }
            Err(error) => {
                self.queue.lose();
                let About { room_id, why, .. } = &*about;
                log::error!(
                    "room {room_id} is not recorded ({why}): a file in {:?} can't be begun: {error}",
                    self.folder.path
                );
            }
        }
    }

    fn open(&mut self, about: &About) -> io::Result<(PathBuf, File, RecordingWriter)> {
        let mut bytes = Vec::new();
        let blocks = RecordingWriter::begin(about, &mut bytes);
        self.take(bytes.len())?;
        let opened = self.folder.open(about);
        let (path, mut file) = match opened {
            // Creates the folder again if it was moved away.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.folder.make()?;
                self.folder.open(about)?
            }
            opened => opened?,
        };
        file.write_all(&bytes)?;
        Ok((path, file, blocks))
    }

    /// Takes space in the folder.
    fn take(&mut self, bytes: usize) -> io::Result<()> {
        let bytes = bytes as u64;
        let fits = |used: u64| used.saturating_add(bytes) <= self.folder.bytes_max;
        let (mut used, mut looked) = match self.used {
            Some(used) => used,
            None => (self.folder.bytes()?, Instant::now()),
        };
        // Others may have moved recordings away.
        if !fits(used) && looked.elapsed() >= SPACE_EVERY {
            (used, looked) = (self.folder.bytes()?, Instant::now());
        }
        let has_space = fits(used);
        self.used = Some((if has_space { used + bytes } else { used }, looked));
        if has_space { Ok(()) } else { Err(self.folder.full()) }
    }

    /// The file of a recording, which is opened again if it was closed.
    fn write(&mut self, number: u64, open: &mut Open, bytes: &[u8]) -> io::Result<()> {
        match self.opened.iter().position(|of| *of == number) {
            Some(place) => drop(self.opened.remove(place)),
            None => open.file = Some(OpenOptions::new().append(true).open(&open.path)?),
        }
        self.opened.push_back(number);
        let Some(file) = &mut open.file else { return Ok(()) };
        file.write_all(bytes)
    }

    /// Closes the files that were written longest ago, if too many are open.
    fn close_beyond(&mut self) {
        while self.opened.len() > FILES_OPEN_MAX {
            let oldest = self.opened.pop_front();
            if let Some(open) = oldest.and_then(|number| self.files.get_mut(&number)) {
                open.file = None;
            }
        }
    }

    fn block(&mut self, number: u64, kind: BlockKind, content: &[u8]) {
        let Some(mut open) = self.files.remove(&number) else { return };
        let mut bytes = Vec::new();
        open.blocks.block(kind, content, &mut bytes);
        let written = self.take(bytes.len());
        match written.and_then(|()| self.write(number, &mut open, &bytes)) {
            Ok(()) => {
                self.files.insert(number, open);
                self.close_beyond();
            }
            Err(error) => {
                self.opened.retain(|of| *of != number);
                self.queue.lose();
                log::error!(
                    "the recording of room {} ends: {} can't be written: {error}",
                    open.about.room_id,
                    open.path.display()
                );
            }
        }
    }

    fn end(&mut self, number: u64) {
        let Some(Open { path, about, .. }) = self.files.remove(&number) else { return };
        self.opened.retain(|of| *of != number);
        log::info!("room {} was recorded in {}: {}", about.room_id, path.display(), about.why);
    }
}
