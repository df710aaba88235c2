//! Saves rooms that ended while the store was unavailable, once it is back, and failed rooms in
//! their state before the failure. Their keys are busy until then.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use playfield_room::recording::recover_save;
use playfield_room::{StoreError, StoreErrorKind, panic_text};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::Journal;
use crate::recordings::Journals;
use crate::shard::journaled::LateRoom;

/// The time between two attempts to save a room.
const RETRY: Duration = Duration::from_secs(1);
/// The time until the journal is read again for the last inputs of a room. It doubles up to
/// `RETRY`.
const JOURNAL_RETRY: Duration = Duration::from_millis(20);
/// The number of reads before the delay is logged.
const READ_MAX: u32 = 8;
/// The time that an attempt may take.
const ATTEMPT: Duration = Duration::from_secs(10);
/// The time that the end of a node waits for an attempt to end.
const STOP_WAIT: Duration = Duration::from_secs(2);

/// The rooms that are to be saved.
#[derive(Default)]
pub(super) struct Saver {
    work: Mutex<Work>,
    stops: Notify,
}

#[derive(Default)]
struct Work {
    rooms: VecDeque<LateRoom>,
    /// Reports the end of the thread that saves.
    thread: Option<Receiver<()>>,
    has_stopped: bool,
}

/// The outcome of an attempt.
enum Attempt {
    Done,
    /// Tries again after this time.
    Again(Duration),
    Stopped,
}

impl Saver {
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal {
    /// Saves a room that has ended or failed, as soon as the store accepts it. Then the journal
    /// gets the room's end, and the key is free.
    pub(crate) fn save_later(self: &Arc<Self>, room: LateRoom) {
        let mut work = self.saver.work();
        if work.has_stopped {
            return;
        }
        work.rooms.push_back(room);
        if work.thread.is_some() {
            return;
        }
        let (done, has_ended) = sync_channel(1);
        let journal = Arc::clone(self);
        let thread = thread::Builder::new().name("playfield-journal-saver".into());
        match thread.spawn(move || journal.save_all(&done)) {
            Ok(_) => work.thread = Some(has_ended),
            Err(error) => log::error!(
                "rooms that ended without being saved stay in the journal until the next start: a \
                 thread can't be started: {error}"
            ),
        }
    }

    /// Returns whether rooms wait to be saved.
    pub(crate) fn saves_rooms(&self) -> bool {
        self.saver.work().thread.is_some()
    }

    /// Stops the work of [`save_later`](Self::save_later): the store is about to be closed.
    pub(crate) fn stop_saving(&self) {
        let mut work = self.saver.work();
        work.has_stopped = true;
        let rooms = std::mem::take(&mut work.rooms);
        let thread = work.thread.take();
        drop(work);
        drop(rooms);
        self.saver.stops.notify_one();
        if let Some(thread) = thread {
            // The thread drops the sender, too.
            let _ = thread.recv_timeout(STOP_WAIT);
        }
    }

    fn save_all(&self, done: &SyncSender<()>) {
        match Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => while self.save_next(&runtime) {},
            Err(error) => log::error!("the journal can't save rooms that have ended: {error}"),
        }
        let _ = done.try_send(());
    }

    /// Tries to save the next room. Returns `false` if there is none.
    fn save_next(&self, runtime: &Runtime) -> bool {
        let mut work = self.saver.work();
        let Some(mut late) = work.rooms.pop_front() else {
            work.thread = None;
            return false;
        };
        drop(work);
        match self.attempt(&mut late, runtime) {
            Attempt::Stopped => false,
            Attempt::Done => {
                late.end();
                self.wake_shards();
                true
            }
            Attempt::Again(after) => {
                let mut work = self.saver.work();
                if work.has_stopped {
                    return false;
                }
                work.rooms.push_back(late);
                drop(work);
                runtime.block_on(async {
                    tokio::select! {
                        () = sleep(after) => {}
                        () = self.saver.stops.notified() => {}
                    }
                });
                true
            }
        }
    }

    fn attempt(&self, late: &mut LateRoom, runtime: &Runtime) -> Attempt {
        let name = format!("{} {:?}", late.room.room_type(), late.room.key());
        let mut before = None;
        if let Some(until) = late.until.filter(|_| !late.room.is_known()) {
            match self.state_before(late, until) {
                Ok(Some(save)) => before = Some(save),
                Ok(None) => {
                    late.reads += 1;
                    if late.reads == READ_MAX {
                        log::warn!(
                            "room {} ({name}) failed, and waits until its last inputs are in the \
                             journal in {:?}; its key is busy until then",
                            late.id,
                            self.folder
                        );
                    }
                    let wait = JOURNAL_RETRY.saturating_mul(1 << late.reads.min(READ_MAX));
                    return Attempt::Again(wait.min(RETRY));
                }
                Err(why) => {
                    log::error!(
                        "room {} ({name}) failed, and can't go on from its journal, so it starts \
                         from its last save: {why}",
                        late.id
                    );
                    return Attempt::Done;
                }
            }
        }
        let attempt = AssertUnwindSafe(|| {
            let saving = async {
                if let Some(save) = before {
                    late.room.replace(save).await?;
                }
                late.room.save().await
            };
            runtime.block_on(async {
                tokio::select! {
                    saved = timeout(ATTEMPT, saving) => Some(saved.unwrap_or_else(|_| {
                        let text = format!("it did not answer within {ATTEMPT:?}");
                        Err(StoreError::new(StoreErrorKind::Away, text))
                    })),
                    () = self.saver.stops.notified() => None,
                }
            })
        });
        let saved = catch_unwind(attempt).unwrap_or_else(|panic| {
            let text = format!("it panicked: {}", panic_text(&*panic));
            Some(Err(StoreError::new(StoreErrorKind::Other, text)))
        });
        match (saved, late.until) {
            (None, _) => return Attempt::Stopped,
            (Some(Ok(())), None) => log::info!("{name} is saved now, so its key is free again"),
            (Some(Ok(())), Some(until)) => log::info!(
                "room {} ({name}) failed, and goes on as it was after input {until} of its \
                 journal; the save before is kept as a copy",
                late.id
            ),
            (Some(Err(error)), _) if error.kind() == StoreErrorKind::Fenced => {
                log::error!("the changes of {name} since its last save are lost: {error}");
            }
            (Some(Err(error)), _) => {
                log::debug!("{name} is still not saved: {error}");
                return Attempt::Again(RETRY);
            }
        }
        Attempt::Done
    }

    /// The save of a room before its failure. `None` if the journal is not complete up to there
    /// yet.
    fn state_before(&self, late: &LateRoom, until: u64) -> Result<Option<Vec<u8>>, String> {
        let id = late.id.to_string();
        let journals = Journals(&self.folder);
        let recording =
            journals.find(self.incarnation, &id).map_err(|error| error.text().to_owned())?;
        let Some(recording) = recording else { return Ok(None) };
        let last = recording.last().map_err(|error| error.to_string())?;
        if last.inputs < until {
            return Ok(None);
        }
        let save =
            catch_unwind(AssertUnwindSafe(|| recover_save(&recording, &late.room_type, until)));
        match save {
            Ok(save) => save.map(Some).map_err(|error| error.to_string()),
            Err(panic) => Err(format!("it panicked: {}", panic_text(&*panic))),
        }
    }
}
