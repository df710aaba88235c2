//! Recordings of rooms in files. A thread of its own writes them: a disk that is slow or full
//! disturbs no room.

mod files;
mod journals;

use std::collections::{HashMap, VecDeque};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use playfield_room::recording::{
    About, BlockKind, Files, Recorder, RecorderSettings, RecordingWriter, Why,
};
use playfield_room::{AnyRoom, Record, RoomType};

pub(crate) use self::files::Files as RecordingFiles;
pub use self::files::{RecordingFile, RecordingSource};
pub(crate) use self::journals::Journals;
use crate::config;
use crate::program::build;
use crate::room_id::RoomId;

/// The most that waits to be written: blocks, begins and ends, and the bytes of blocks.
const QUEUE_MAX: usize = 16_384;
const QUEUE_BYTES_MAX: usize = 64 << 20;

/// The most files that are open at once. Others are opened again for their next block.
const FILES_OPEN_MAX: usize = 64;

/// The least time between two looks whether a folder without space has some again.
const SPACE_EVERY: Duration = Duration::from_secs(1);

/// The ending of a recording's name.
const ENDING: &str = "rec";

/// The recordings of a node.
pub(crate) struct Recordings {
    queue: Queue,
    settings: RecorderSettings,
}

/// An order to the thread that writes.
enum Order {
    /// Begins the file of this number.
    Begin(u64, Box<About>),
    Block(u64, BlockKind, Vec<u8>),
    End(u64),
    /// Answers when all before is written.
    Flush(SyncSender<()>),
}

/// The way to the thread that writes.
#[derive(Clone)]
struct Queue {
    orders: SyncSender<Order>,
    /// The bytes of the blocks in it.
    bytes: Arc<AtomicUsize>,
    /// The number of recordings that could not be begun, or not be written to their end.
    lost: Arc<AtomicU64>,
}

impl Queue {
    fn new() -> (Self, Receiver<Order>) {
        let (orders, to_do) = sync_channel(QUEUE_MAX);
        (Self { orders, bytes: Arc::default(), lost: Arc::default() }, to_do)
    }

    /// Puts an order into it. Returns `false` if it is full.
    fn put(&self, order: Order) -> bool {
        let bytes = order.bytes();
        if bytes > 0 && self.bytes.load(Ordering::Relaxed).saturating_add(bytes) > QUEUE_BYTES_MAX {
            return false;
        }
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        // Without the thread, the node ends.
        let is_full = matches!(self.orders.try_send(order), Err(TrySendError::Full(_)));
        if is_full {
            self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        !is_full
    }

    fn lose(&self) {
        self.lost.fetch_add(1, Ordering::Relaxed);
    }
}

impl Order {
    fn bytes(&self) -> usize {
        if let Self::Block(_, _, content) = self { content.len() } else { 0 }
    }
}

/// Numbers the files of all nodes of the process.
static FILES: AtomicU64 = AtomicU64::new(0);

impl Recordings {
    /// Starts the thread; `None` if recordings have no folder.
    pub(crate) fn start(config: &config::Recordings) -> io::Result<Option<Self>> {
        if config.folder.as_os_str().is_empty() {
            return Ok(None);
        }
        let (queue, orders) = Queue::new();
        let folder = Folder { path: config.folder.clone(), bytes_max: config.folder_bytes as u64 };
        if let Err(error) = folder.make() {
            log::warn!(
                "recordings.folder = {:?}: {error}; rooms are not recorded until it can be used",
                folder.path
            );
        }
        let name = thread::Builder::new().name("playfield-recordings".into());
        let writer = Writer::new(folder, queue.clone());
        name.spawn(move || writer.run(&orders))?;
        let settings = RecorderSettings {
            keeps: config.keep,
            kept_bytes_max: config.room_bytes,
            ..RecorderSettings::default()
        };
        Ok(Some(Self { queue, settings }))
    }

    /// Records a room, as its type wants it.
    pub(crate) fn record(
        &self,
        room: Box<dyn AnyRoom>,
        id: RoomId,
        room_type: &RoomType,
    ) -> Box<dyn AnyRoom> {
        let record = room_type.settings.record;
        if record == Record::Never {
            return room;
        }
        let about = About {
            room_type: room_type.name.clone(),
            room_id: id.to_string(),
            key: room.summary().key.as_deref().map(str::to_owned),
            fingerprint: room_type.fingerprint,
            messages: Arc::clone(&room_type.messages),
            build: build().to_owned(),
            ..About::default()
        };
        let files = RoomFiles { queue: self.queue.clone(), about, number: 0, is_lost: false };
        let mut recorder = Recorder::new(room, Box::new(files), self.settings);
        if record == Record::Always {
            recorder.begin_file(&Why::Setting);
        }
        Box::new(recorder)
    }

    /// The number of recordings that could not be begun, or not be written to their end.
    pub(crate) fn lost(&self) -> u64 {
        self.queue.lost.load(Ordering::Relaxed)
    }

    /// Waits until all is written, for so long at most.
    pub(crate) fn flush(&self, wait: Duration) {
        let (done, is_done) = sync_channel(1);
        if self.queue.orders.try_send(Order::Flush(done)).is_err()
            || is_done.recv_timeout(wait).is_err()
        {
            log::warn!("recordings are not written to their end");
        }
    }
}

/// The files of a room's recorder.
struct RoomFiles {
    queue: Queue,
    about: About,
    /// The number of the file that is being written.
    number: u64,
    /// The queue was full: the rest of the file is not written.
    is_lost: bool,
}

impl RoomFiles {
    fn order(&mut self, order: Order) {
        if self.is_lost {
            // The file is closed as soon as there is space.
            if self.queue.put(Order::End(self.number)) {
                (self.is_lost, self.number) = (false, 0);
            }
            return;
        }
        if self.number == 0 {
            return;
        }
        if !self.queue.put(order) {
            self.is_lost = true;
            self.queue.lose();
            log::warn!(
                "the recording of room {} ends: the disk is too slow for what is recorded",
                self.about.room_id
            );
        }
    }
}

impl Files for RoomFiles {
    fn begin(&mut self, why: &Why) {
        if self.is_lost {
            return self.order(Order::End(self.number));
        }
        self.number = FILES.fetch_add(1, Ordering::Relaxed) + 1;
        let about = About { why: why.to_string(), ..self.about.clone() };
        self.order(Order::Begin(self.number, Box::new(about)));
    }

    fn block(&mut self, kind: BlockKind, content: Vec<u8>) {
        self.order(Order::Block(self.number, kind, content));
    }

    fn end(&mut self) {
        self.order(Order::End(self.number));
    }
}

/// The folder of recordings.
struct Folder {
    path: PathBuf,
    bytes_max: u64,
}

impl Folder {
    fn make(&self) -> io::Result<()> {
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
struct Writer {
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
    fn new(folder: Folder, queue: Queue) -> Self {
        Self { folder, queue, used: None, files: HashMap::new(), opened: VecDeque::new() }
    }

    fn run(mut self, orders: &Receiver<Order>) {
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
            // It is made again if it was moved away.
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

#[cfg(test)]
mod tests;
