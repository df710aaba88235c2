//! Recordings of rooms in files. A thread of its own writes them: a disk that is slow or full
//! disturbs no room.

mod files;
mod journals;
mod writer;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use playfield_room::recording::{About, BlockKind, Files, Recorder, RecorderSettings, Why};
use playfield_room::{AnyRoom, Record, RoomType};

pub(crate) use self::files::Files as RecordingFiles;
pub use self::files::{RecordingFile, RecordingSource};
pub(crate) use self::journals::Journals;
use self::writer::{Folder, Writer};
use crate::config;
use crate::program::build;
use crate::room_id::RoomId;

/// The limits on pending writes: blocks, begins and ends, and the bytes of blocks.
const QUEUE_MAX: usize = 16_384;
const QUEUE_BYTES_MAX: usize = 64 << 20;

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

/// The queue of the thread that writes.
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

#[cfg(test)]
mod tests;
