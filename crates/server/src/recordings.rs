//! Recordings of rooms in files. A thread of its own writes them: a disk that is slow or full
//! disturbs no room.

mod files;
mod journals;

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, SystemTime};

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

/// The most blocks that wait to be written.
const QUEUE_MAX: usize = 1_024;

/// The ending of a recording's name.
const ENDING: &str = "rec";

/// The recordings of a node.
pub(crate) struct Recordings {
    queue: SyncSender<Order>,
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

/// Numbers the files of all nodes of the process.
static FILES: AtomicU64 = AtomicU64::new(0);

impl Recordings {
    /// Starts the thread; `None` if recordings have no folder.
    pub(crate) fn start(config: &config::Recordings) -> io::Result<Option<Self>> {
        if config.folder.as_os_str().is_empty() {
            return Ok(None);
        }
        let (queue, orders) = sync_channel(QUEUE_MAX);
        let folder = Folder { path: config.folder.clone(), bytes_max: config.folder_bytes as u64 };
        if let Err(error) = folder.make() {
            log::warn!(
                "recordings.folder = {:?}: {error}; rooms are not recorded until it can be used",
                folder.path
            );
        }
        let name = thread::Builder::new().name("playfield-recordings".into());
        name.spawn(move || Writer { folder, used: 0, files: HashMap::new() }.run(&orders))?;
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

    /// Waits until all is written, for so long at most.
    pub(crate) fn flush(&self, wait: Duration) {
        let (done, is_done) = sync_channel(1);
        if self.queue.try_send(Order::Flush(done)).is_err() || is_done.recv_timeout(wait).is_err() {
            log::warn!("recordings are not written to their end");
        }
    }
}

/// The files of a room's recorder.
struct RoomFiles {
    queue: SyncSender<Order>,
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
            if self.queue.try_send(Order::End(self.number)).is_ok() {
                (self.is_lost, self.number) = (false, 0);
            }
            return;
        }
        if self.number == 0 {
            return;
        }
        if let Err(TrySendError::Full(_)) = self.queue.try_send(order) {
            self.is_lost = true;
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
    /// The bytes in the folder.
    used: u64,
    files: HashMap<u64, Open>,
}

/// A file that is being written.
struct Open {
    path: PathBuf,
    file: File,
    blocks: RecordingWriter,
    about: Box<About>,
}

impl Writer {
    fn run(mut self, orders: &Receiver<Order>) {
        while let Ok(order) = orders.recv() {
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
                self.files.insert(number, Open { path, file, blocks, about });
            }
            Err(error) => {
                let About { room_id, why, .. } = &*about;
                log::error!(
                    "room {room_id} is not recorded ({why}): a file in {:?} can't be begun: {error}",
                    self.folder.path
                );
            }
        }
    }

    fn open(&mut self, about: &About) -> io::Result<(PathBuf, File, RecordingWriter)> {
        self.folder.make()?;
        // Others may have moved recordings away.
        self.used = self.folder.bytes()?;
        let mut bytes = Vec::new();
        let blocks = RecordingWriter::begin(about, &mut bytes);
        self.take(bytes.len())?;
        let (path, mut file) = self.folder.open(about)?;
        file.write_all(&bytes)?;
        Ok((path, file, blocks))
    }

    /// Takes space in the folder.
    fn take(&mut self, bytes: usize) -> io::Result<()> {
        let used = self.used.saturating_add(bytes as u64);
        if used > self.folder.bytes_max {
            return Err(self.folder.full());
        }
        self.used = used;
        Ok(())
    }

    fn block(&mut self, number: u64, kind: BlockKind, content: &[u8]) {
        let Some(mut open) = self.files.remove(&number) else { return };
        let mut bytes = Vec::new();
        open.blocks.block(kind, content, &mut bytes);
        match self.take(bytes.len()).and_then(|()| open.file.write_all(&bytes)) {
            Ok(()) => drop(self.files.insert(number, open)),
            Err(error) => log::error!(
                "the recording of room {} ends: {} can't be written: {error}",
                open.about.room_id,
                open.path.display()
            ),
        }
    }

    fn end(&mut self, number: u64) {
        let Some(Open { path, about, .. }) = self.files.remove(&number) else { return };
        log::info!("room {} was recorded in {}: {}", about.room_id, path.display(), about.why);
    }
}

#[cfg(test)]
mod tests;
