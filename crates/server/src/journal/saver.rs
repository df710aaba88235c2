//! Saves rooms that ended while the store was away, once it is back. Their keys are busy until
//! then.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use playfield_room::{StoreError, StoreErrorKind, Unsaved, panic_text};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::Journal;
use crate::shard::journaled::RoomEnd;

/// The time between two attempts to save a room.
const RETRY: Duration = Duration::from_secs(1);
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
    rooms: VecDeque<(Unsaved, RoomEnd)>,
    /// The thread that saves says by this that it has ended.
    thread: Option<Receiver<()>>,
    has_stopped: bool,
}

impl Saver {
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Journal {
    /// Saves a room that has ended, as soon as the store takes it. Then the journal gets the room's
    /// end, and the key is free.
    pub(crate) fn save_later(self: &Arc<Self>, room: Unsaved, end: RoomEnd) {
        let mut work = self.saver.work();
        if work.has_stopped {
            return;
        }
        work.rooms.push_back((room, end));
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

    /// Ends what [`save_later`](Self::save_later) began: the store is about to be closed.
    pub(crate) fn stop_saving(&self) {
        let mut work = self.saver.work();
        work.has_stopped = true;
        let rooms = std::mem::take(&mut work.rooms);
        let thread = work.thread.take();
        drop(work);
        drop(rooms);
        self.saver.stops.notify_one();
        if let Some(thread) = thread {
            // It drops the other end, too.
            let _ = thread.recv_timeout(STOP_WAIT);
        }
    }

    fn save_all(&self, done: &SyncSender<()>) {
        let runtime = Builder::new_current_thread().enable_all().build();
        match runtime {
            Ok(runtime) => while self.save_next(&runtime) {},
            Err(error) => log::error!("the journal can't save rooms that have ended: {error}"),
        }
        let _ = done.try_send(());
    }

    /// Tries to save the next room. Returns `false` if there is none.
    fn save_next(&self, runtime: &Runtime) -> bool {
        let mut work = self.saver.work();
        let Some((room, end)) = work.rooms.pop_front() else {
            work.thread = None;
            return false;
        };
        drop(work);
        let attempt = AssertUnwindSafe(|| {
            runtime.block_on(async {
                tokio::select! {
                    saved = timeout(ATTEMPT, room.save()) => Some(saved.unwrap_or_else(|_| {
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
        let name = format!("{} {:?}", room.room_type(), room.key());
        match saved {
            None => return false,
            Some(Ok(())) => log::info!("{name} is saved now, so its key is free again"),
            Some(Err(error)) if error.kind() == StoreErrorKind::Fenced => {
                log::error!("the changes of {name} since its last save are lost: {error}");
            }
            Some(Err(error)) => {
                log::debug!("{name} is still not saved: {error}");
                let mut work = self.saver.work();
                if work.has_stopped {
                    return false;
                }
                work.rooms.push_back((room, end));
                drop(work);
                runtime.block_on(async {
                    tokio::select! {
                        () = sleep(RETRY) => {}
                        () = self.saver.stops.notified() => {}
                    }
                });
                return true;
            }
        }
        end.put();
        self.wake_shards();
        true
    }
}
