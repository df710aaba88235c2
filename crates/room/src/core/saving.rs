//! A persistent room: when it is saved, and who waits for that.

mod saves;
mod taking_over;
mod unsaved;

use std::future::ready;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use playfield_state::{Kept, save_kept};
use playfield_wire::ErrorCode;

pub use saves::Saves;
pub use unsaved::Unsaved;

use super::guard::guard;
use super::loading::places;
use super::{Live, RoomCore};
use crate::context_state::{Asked, PENDING_MAX};
use crate::copies::keep_copy;
use crate::frozen::FROZEN_BYTES_MAX;
use crate::frozen::parts::{self, Time};
use crate::hash::hash;
use crate::{
    Completion, Durability, Error, Fence, InternalMessage, Loaded, Opened, Room, RoomOutput, Stage,
    Store, StoreError, StoreErrorKind, Stored, Undone,
};

/// The time until a save that failed is tried again, while the room is open and while it ends.
const RETRY: Duration = Duration::from_secs(1);
const RETRY_AT_END: Duration = Duration::from_millis(100);

/// The least time between two lines of a room's log about unknown fields that it no longer has.
const FORGOTTEN_EVERY: Duration = Duration::from_secs(60);

/// The tasks that open the save again have numbers from here. Others count on as if they were not.
pub(crate) const REOPENINGS: u64 = 1 << 63;

/// The messages that end these tasks.
const OPENED: &str = "playfield:opened";
const NOT_OPENED: &str = "playfield:not-opened";

/// The place and the interval of a room's saves.
pub(super) struct Saving {
    owned: Arc<Owned>,
    every: Duration,
    /// The save on disk, if that is known.
    on_disk: Option<Print>,
    /// The saves that the store may have.
    saves: Saves,
    /// Since when the room's code has run that may have changed the state.
    changed_since: Option<Duration>,
    /// The parties that wait for the next save.
    asked: Vec<Asked>,
    in_flight: Option<InFlight>,
    /// The task that opens the save again, and the number of such tasks.
    reopening: Option<u64>,
    reopenings: u64,
    /// After a save that failed: when to try again, and why it failed.
    failed: Option<(Duration, String)>,
    /// The size of the last save.
    bytes: usize,
    /// When the last line about forgotten fields was logged.
    forgotten_at: Option<Duration>,
    /// The last state of a room that ended without being saved.
    left: Option<Box<Unsaved>>,
}

/// The room's save in the store, which is closed at the end.
struct Owned {
    store: Arc<dyn Store>,
    room_type: String,
    key: Arc<str>,
    /// Set once the save is open.
    fence: OnceLock<Fence>,
}

impl Owned {
    /// The same, not open.
    fn closed(&self) -> Arc<Self> {
        let Self { store, room_type, key, fence: _ } = self;
        let (store, room_type, key) = (Arc::clone(store), room_type.clone(), Arc::clone(key));
        Arc::new(Self { store, room_type, key, fence: OnceLock::new() })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        let Some(fence) = self.fence.get() else { return };
        if let Err(panic) = guard(|| self.store.close(&self.room_type, &self.key, *fence)) {
            log::error!(
                "{} {:?}: the store panicked in `close`: {panic}",
                self.room_type,
                self.key
            );
        }
    }
}

/// A save on its way to the disk.
struct InFlight {
    number: u64,
    print: Print,
    asked: Vec<Asked>,
    /// The value of [`Saving::changed_since`] for the changes in this save.
    changed_since: Option<Duration>,
}

/// The hash and the length of a save.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Print(u64, usize);

impl Print {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(hash(bytes), bytes.len())
    }
}

impl Saving {
    pub(super) fn new(
        store: Arc<dyn Store>,
        room_type: String,
        key: Arc<str>,
        every: Duration,
    ) -> Self {
        Self {
            owned: Arc::new(Owned { store, room_type, key, fence: OnceLock::new() }),
            every,
            on_disk: None,
            saves: Saves::default(),
            changed_since: None,
            asked: Vec::new(),
            in_flight: None,
            reopening: None,
            reopenings: 0,
            failed: None,
            bytes: 0,
            forgotten_at: None,
            left: None,
        }
    }

    /// Returns what goes on in another process. No save is in flight.
    pub(super) fn freeze(
        &self,
        mut message: impl FnMut(&InternalMessage) -> parts::Message,
    ) -> parts::Saving {
        let asked = self.asked.iter().filter_map(Asked::as_saved).map(&mut message);
        parts::Saving {
            on_disk: self.on_disk.map(|Print(hash, bytes)| [hash, bytes as u64]),
            changed_since: self.changed_since.map(Time),
            failed: self.failed.as_ref().map(|(again, why)| {
                let (again, why) = (Time(*again), why.clone());
                parts::Failed { again, why }
            }),
            bytes: self.bytes as u64,
            forgotten_at: self.forgotten_at.map(Time),
            asked: asked.collect(),
        }
    }

    /// Goes on from what [`freeze`](Self::freeze) returned.
    pub(super) fn thaw(
        &mut self,
        frozen: parts::Saving,
        now: Duration,
        message: impl FnMut(parts::Message) -> Result<InternalMessage, String>,
    ) -> Result<(), String> {
        let parts::Saving { on_disk, changed_since, failed, bytes, forgotten_at, asked } = frozen;
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(0).min(FROZEN_BYTES_MAX);
        if asked.len() > PENDING_MAX {
            return Err(format!("at most {PENDING_MAX} messages wait for a save"));
        }
        self.on_disk = on_disk.map(|[hash, bytes]| Print(hash, size(bytes)));
        self.changed_since = changed_since.map(|Time(since)| since);
        self.failed = failed.map(|parts::Failed { again, why }| (again.0, why));
        self.bytes = size(bytes);
        self.forgotten_at = forgotten_at.map(|Time(at)| at.min(now));
        self.asked = asked
            .into_iter()
            .map(message)
            .map(|asked| asked.map(Asked::Saved))
            .collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Returns whether [`capture`](Self::capture) has all.
    pub(super) fn is_captured(&self) -> bool {
        let waiting = self.in_flight.as_ref().map_or(&[][..], |save| &save.asked);
        !self.asked.iter().chain(waiting).any(Asked::is_once)
    }

    /// The task that opens the save again.
    pub(super) fn reopening(&self) -> Option<u64> {
        self.reopening
    }

    /// Goes on while that task is under way, in a replay.
    pub(super) fn resume_reopening(&mut self, task: Option<u64>) {
        self.reopening = task;
    }

    /// Returns what a replay needs to go on at any time; `None` while someone waits for the outcome
    /// of a save.
    pub(super) fn capture(
        &self,
        mut message: impl FnMut(&InternalMessage) -> parts::Message,
    ) -> Option<parts::OpenSave> {
        if !self.is_captured() {
            return None;
        }
        let in_flight = self.in_flight.as_ref().map(|save| parts::SaveInFlight {
            number: save.number,
            hash: save.print.0,
            bytes: save.print.1 as u64,
            changed_since: save.changed_since.map(Time),
            asked: save.asked.iter().filter_map(Asked::as_saved).map(&mut message).collect(),
        });
        let fence = self.fence().map(|Fence(fence)| fence);
        Some(parts::OpenSave { fence, reopenings: self.reopenings, in_flight })
    }

    /// Goes on from what [`capture`](Self::capture) returned, in a replay.
    pub(super) fn resume(
        &mut self,
        open: parts::OpenSave,
        message: impl FnMut(parts::Message) -> Result<InternalMessage, String>,
    ) -> Result<(), String> {
        let parts::OpenSave { fence, reopenings, in_flight } = open;
        if let Some(fence) = fence {
            // Nobody has set it before.
            let _ = self.owned.fence.set(Fence(fence));
        }
        self.reopenings = reopenings;
        self.in_flight = in_flight
            .map(|save| {
                let asked = save.asked.into_iter().map(message).map(|it| it.map(Asked::Saved));
                let size = usize::try_from(save.bytes).unwrap_or(0).min(FROZEN_BYTES_MAX);
                Ok::<_, String>(InFlight {
                    number: save.number,
                    print: Print(save.hash, size),
                    asked: asked.collect::<Result<_, _>>()?,
                    changed_since: save.changed_since.map(|Time(since)| since),
                })
            })
            .transpose()?;
        Ok(())
    }

    /// The number of messages that wait for a save.
    pub(super) fn asked_len(&self) -> usize {
        self.asked.len() + self.in_flight.as_ref().map_or(0, |save| save.asked.len())
    }

    /// The room was frozen. It opens its save again if it goes on here, as it would elsewhere: the
    /// other process may have opened it, and saved it, before it failed.
    pub(super) fn disown(&mut self, now: Duration) {
        self.owned = self.owned.closed();
        self.on_disk = None;
        self.saves.forget();
        self.changed_since.get_or_insert(now);
    }

    /// Returns whether a save is in flight or being opened again, or someone waits for the outcome
    /// of one.
    pub(super) fn is_saving(&self) -> bool {
        let is_asked = || self.asked.iter().any(Asked::is_once);
        self.in_flight.is_some() || self.reopening.is_some() || is_asked()
    }

    /// The outcome of the save in flight will not be known: it may reach the disk, or not. Returns
    /// the messages of those who waited for it.
    pub(super) fn give_up(&mut self, why: &Error) -> Vec<InternalMessage> {
        let mut asked = Vec::new();
        if self.reopening.take().is_some() {
            self.owned = self.owned.closed();
        }
        if let Some(InFlight { asked: first, changed_since, .. }) = self.in_flight.take() {
            asked = first;
            self.on_disk = None;
            self.changed_since = changed_since.or(self.changed_since);
        }
        asked.append(&mut self.asked);
        let (once, again) = asked.into_iter().partition(Asked::is_once);
        self.asked = again;
        let once: Vec<Asked> = once;
        once.into_iter().map(|asked| asked.message(Err(why.clone()))).collect()
    }

    /// Opens the save. The work does not keep the store: it may outlive the room and the node.
    pub(super) fn open(&self) -> Stored<Option<Loaded>> {
        let Owned { store, room_type, key, .. } = &*self.owned;
        let opening = guard(|| store.open(room_type, key)).unwrap_or_else(|panic| {
            let text = format!("the store panicked in `open`: {panic}");
            Box::pin(ready(Err(StoreError::new(StoreErrorKind::Other, text))))
        });
        let (owned, store) = (Arc::downgrade(&self.owned), Arc::downgrade(store));
        let (room_type, key) = (room_type.clone(), Arc::clone(key));
        Box::pin(async move {
            let Opened { fence, save } = opening.await?;
            match (owned.upgrade(), store.upgrade()) {
                (Some(owned), _) => drop(owned.fence.set(fence)),
                // The room is gone.
                (None, Some(store)) => drop(Owned { store, room_type, key, fence: fence.into() }),
                (None, None) => {}
            }
            Ok(save)
        })
    }

    /// Keeps a copy of a save, and returns its number.
    pub(super) fn copy(&self, bytes: Vec<u8>) -> Stored<u64> {
        let Owned { store, room_type, key, .. } = &*self.owned;
        let (store, room_type, key) = (Arc::clone(store), room_type.clone(), Arc::clone(key));
        Box::pin(async move { keep_copy(&store, &room_type, &key, bytes).await })
    }

    /// Begins a save. If the store panics, it drops the completion, and the save has failed.
    fn save(&self, fence: Fence, bytes: Vec<u8>, done: Completion) {
        let Owned { store, room_type, key, .. } = &*self.owned;
        if let Err(panic) = guard(|| store.save(room_type, key, fence, bytes, done)) {
            log::error!("{}: the store panicked in `save`: {panic}", self.name());
        }
    }

    /// The room was made of this save. If it may not reach the disk, the room is unsaved.
    pub(super) fn was_loaded(&mut self, print: Print, is_durable: bool) {
        self.on_disk = is_durable.then_some(print);
        if is_durable {
            self.saves.is(Some(print));
        }
        self.bytes = print.1;
    }

    /// The store has no save of the room.
    pub(super) fn was_not_found(&mut self) {
        self.saves.is(None);
    }

    /// The saves that the store may have.
    pub(super) fn saves(&self) -> &Saves {
        &self.saves
    }

    /// Freezes these saves for another process.
    pub(super) fn freeze_saves(&self) -> parts::Saves {
        self.saves.freeze()
    }

    /// Restores the result of [`freeze_saves`](Self::freeze_saves).
    pub(super) fn thaw_saves(&mut self, frozen: parts::Saves) {
        self.saves = Saves::thaw(frozen);
    }

    /// Its type and key, for the log.
    pub(super) fn name(&self) -> String {
        format!("{} {:?}", self.owned.room_type, self.owned.key)
    }

    /// `None` until the save is open, and the room knows.
    fn fence(&self) -> Option<Fence> {
        self.owned.fence.get().copied().filter(|_| self.reopening.is_none())
    }

    /// Returns whether something is to be saved.
    fn is_behind(&self) -> bool {
        self.changed_since.is_some() || !self.asked.is_empty()
    }

    /// Returns whether a save is in flight or missing.
    fn is_pending(&self) -> bool {
        self.in_flight.is_some() || self.is_behind()
    }

    /// Logs which unknown fields are lost since the last line, unless that was just now.
    fn log_forgotten(&mut self, kept: &mut Kept, now: Duration) {
        let next = self.forgotten_at.map_or(Duration::ZERO, |last| last + FORGOTTEN_EVERY);
        if now < next {
            return;
        }
        let forgotten = kept.take_forgotten();
        if !forgotten.is_empty() {
            self.forgotten_at = Some(now);
            log::warn!(
                "{} no longer has fields that this build lacks, since what they belonged to was \
                 removed or is not recognized: {}",
                self.name(),
                places(&forgotten)
            );
        }
    }

    /// When the next save is due, if none is in flight, or when the save is to be opened again.
    fn due_at(&self) -> Option<Duration> {
        if self.in_flight.is_some() || self.reopening.is_some() {
            return None;
        }
        if self.fence().is_none() {
            return Some(self.failed.as_ref().map_or(Duration::ZERO, |(again, _)| *again));
        }
        let due = self.changed_since.map(|since| since.saturating_add(self.every));
        match &self.failed {
            Some((again, _)) => self.is_behind().then_some(*again),
            None if !self.asked.is_empty() => Some(Duration::ZERO),
            None => due,
        }
    }
}

impl<R: Room> RoomCore<R> {
    /// After the room's code has run: the state may have changed.
    pub(super) fn note_changes(&mut self) {
        if let Some(saving) = &mut self.saving {
            saving.changed_since.get_or_insert(self.context.now);
        }
    }

    /// Notes changes, unless the state is as it is on disk.
    pub(super) fn note_changes_if_any(&mut self) {
        let mark = self.mark();
        let Self { saving: Some(saving), live: Some(Live { state, kept, .. }), .. } = self else {
            return;
        };
        if saving.changed_since.is_some() {
            return;
        }
        let mut bytes = Vec::with_capacity(saving.bytes);
        let saved = guard(|| save_kept(state, mark, kept, &mut bytes));
        if saved.is_err() || saving.on_disk != Some(Print::of(&bytes)) {
            self.note_changes();
        }
    }

    /// Someone waits until the present state is on disk.
    pub(super) fn ask_for_save(&mut self, asked: Asked) {
        if let Some(saving) = &mut self.saving {
            saving.asked.push(asked);
        }
    }

    /// When [`save_if_due`](Self::save_if_due) has something to do.
    pub(super) fn save_due_at(&self) -> Option<Duration> {
        let saving = self.saving.as_ref().filter(|_| self.live.is_some())?;
        saving.due_at().map(|at| at.max(self.context.now))
    }

    pub(super) fn save_if_due(&mut self, out: &mut dyn RoomOutput) {
        if self.save_due_at().is_none_or(|due| due > self.context.now) {
            return;
        }
        match self.saving.as_ref().and_then(Saving::fence) {
            Some(_) => self.save_now(out),
            None => self.reopen(out),
        }
    }

    /// Returns whether this is the end of an attempt to open the save again.
    pub(super) fn is_reopening(&self, task: u64) -> bool {
        self.saving.as_ref().is_some_and(|saving| saving.reopening == Some(task))
    }

    /// Begins to open the save of a room that was frozen. Its state is newer than the save.
    fn reopen(&mut self, out: &mut dyn RoomOutput) {
        let Some(saving) = &mut self.saving else { return };
        let task = REOPENINGS + saving.reopenings;
        saving.reopenings += 1;
        let (opening, owned) = (saving.open(), Arc::downgrade(&saving.owned));
        let fence = move || owned.upgrade()?.fence.get().map(|Fence(fence)| *fence);
        let work = async move {
            let (name, payload) = match opening.await {
                // A replay opens nothing: it has the fence from here.
                Ok(_) => (OPENED, fence().unwrap_or_default().to_le_bytes().to_vec()),
                Err(error) => (NOT_OPENED, error.to_string().into_bytes()),
            };
            InternalMessage { name: name.into(), payload }
        };
        saving.reopening = Some(task);
        if let Err(error) = out.spawn(task, Box::pin(work)) {
            self.reopened(Err(error.text()), out);
        }
    }

    /// An attempt to open the save again has ended. `None` is one that panicked.
    pub(super) fn reopening_ended(
        &mut self,
        outcome: Option<InternalMessage>,
        out: &mut dyn RoomOutput,
    ) {
        match outcome {
            Some(message) if message.name == OPENED => {
                let fence = <[u8; 8]>::try_from(&message.payload[..]).unwrap_or_default();
                if let Some(saving) = &self.saving {
                    // Outside a replay, it is set.
                    let _ = saving.owned.fence.set(Fence(u64::from_le_bytes(fence)));
                }
                self.reopened(Ok(()), out);
            }
            Some(message) => self.reopened(Err(&String::from_utf8_lossy(&message.payload)), out),
            None => self.reopened(Err("the store panicked"), out),
        }
    }

    fn reopened(&mut self, outcome: Result<(), &str>, out: &mut dyn RoomOutput) {
        let Some(saving) = &mut self.saving else { return };
        saving.reopening = None;
        if let Err(why) = outcome {
            let why = format!("the save can't be opened: {why}");
            let told = self.not_saved(Vec::new(), None, &why);
            return self.tell_saved(told, out);
        }
        if saving.failed.take().is_some() {
            log::info!("the save of {} is open again", saving.name());
        }
        if self.stage_now() == Stage::Open {
            self.save_if_due(out);
        }
    }

    /// Saves the state if it may have changed, or if someone waits for that. One save at a time: if
    /// one is in flight, the next follows it.
    pub(super) fn save_now(&mut self, out: &mut dyn RoomOutput) {
        let mark = self.mark();
        let Self { saving: Some(saving), live: Some(Live { state, kept, .. }), context, .. } = self
        else {
            return;
        };
        let Some(fence) = saving.fence() else { return };
        if saving.in_flight.is_some() || !saving.is_behind() {
            return;
        }
        let mut bytes = Vec::with_capacity(saving.bytes + saving.bytes / 8);
        // The comparison of custom keys is user code.
        if let Err(panic) = guard(|| save_kept(state, mark, kept, &mut bytes)) {
            return self.fail(&panic, out);
        }
        if self.ending.is_none() {
            saving.log_forgotten(kept, context.now);
        }
        saving.bytes = bytes.len();
        let print = Print::of(&bytes);
        if saving.asked.is_empty() && saving.on_disk == Some(print) {
            (saving.changed_since, saving.failed) = (None, None);
            return;
        }
        match context.number() {
            Ok(number) => {
                saving.saves.add(print);
                saving.save(fence, bytes, out.completion(number));
                let asked = std::mem::take(&mut saving.asked);
                let changed_since = saving.changed_since.take();
                saving.in_flight = Some(InFlight { number, print, asked, changed_since });
            }
            Err(error) => self.save_failed(error.text()),
        }
    }

    /// A save has ended.
    pub(super) fn saved(
        &mut self,
        number: u64,
        outcome: Result<(), StoreError>,
        out: &mut dyn RoomOutput,
    ) {
        let Some(saving) = &mut self.saving else { return };
        if saving.in_flight.as_ref().is_none_or(|save| save.number != number) {
            return;
        }
        if let Err(error) = &outcome
            && error.kind() == StoreErrorKind::Fenced
        {
            if out.fenced() {
                return saving.is_refused(error, self.context.now);
            }
            return self.lose(error, out);
        }
        let Some(InFlight { print, asked, changed_since, .. }) = saving.in_flight.take() else {
            return;
        };
        let told = match outcome {
            Ok(()) => {
                saving.on_disk = Some(print);
                saving.saves.is(Some(print));
                if saving.failed.take().is_some() {
                    log::info!("{} is saved again", saving.name());
                }
                asked.into_iter().map(|asked| asked.message(Ok(()))).collect::<Vec<_>>()
            }
            Err(why) => {
                // It may have reached the disk nevertheless.
                saving.on_disk = None;
                self.not_saved(asked, changed_since, &why.to_string())
            }
        };
        self.tell_saved(told, out);
    }

    /// Lets those who asked for a save that failed wait for the next one, before all others.
    /// Returns the messages of those who don't.
    fn not_saved(
        &mut self,
        mut asked: Vec<Asked>,
        changed_since: Option<Duration>,
        why: &str,
    ) -> Vec<InternalMessage> {
        let Some(saving) = &mut self.saving else { return Vec::new() };
        saving.changed_since = changed_since.or(saving.changed_since);
        let error = Error::new(ErrorCode::Internal, format!("the room was not saved: {why}"));
        if saving.fence().is_none() {
            asked.append(&mut saving.asked);
        }
        let (once, again): (Vec<_>, _) = asked.into_iter().partition(Asked::is_once);
        let later = std::mem::replace(&mut saving.asked, again);
        saving.asked.extend(later);
        self.save_failed(why);
        once.into_iter().map(|asked| asked.message(Err(error.clone()))).collect()
    }

    /// Tells the room the outcome of a save, and begins the next if it is due.
    fn tell_saved(&mut self, told: Vec<InternalMessage>, out: &mut dyn RoomOutput) {
        self.context.saves_asked -= told.len();
        for message in told {
            self.internal_message_or_log(&message, out);
        }
        if self.stage_now() == Stage::Open {
            self.save_if_due(out);
        }
    }

    /// Ends a room that no longer owns its save: the room that does may be running by now, so no
    /// code of this one is called any more.
    fn lose(&mut self, why: &StoreError, out: &mut dyn RoomOutput) {
        let Some(saving) = self.saving.as_ref().filter(|_| self.live.is_some()) else { return };
        log::error!(
            "{}: room {} ends without a further call, and its changes since its last save are \
             lost: {why}",
            saving.name(),
            self.context.id()
        );
        self.undone = Some(Undone::Save);
        let error = Error::new(
            ErrorCode::RoomClosed,
            "the room's save was opened elsewhere, so this room ended; join it again",
        );
        self.stop(&error, out);
    }

    /// Notes that a save failed, and when to try again.
    fn save_failed(&mut self, why: &str) {
        let wait = if self.ending.is_some() { RETRY_AT_END } else { RETRY };
        let Some(saving) = &mut self.saving else { return };
        // At the end it may be tried often.
        if saving.failed.as_ref().is_none_or(|(_, known)| known != why) {
            log::error!("{} was not saved, and is tried again: {why}", saving.name());
        }
        saving.failed = Some((self.context.now.saturating_add(wait), why.to_owned()));
    }

    /// At the room's end: whether all is on disk. If not, a save is begun unless one is in flight
    /// or has just failed.
    pub(super) fn is_saved(&mut self, out: &mut dyn RoomOutput) -> bool {
        if self.saving.as_ref().is_some_and(|saving| saving.failed.is_none()) {
            self.save_now(out);
        }
        if let (Some(saving), Some(live)) = (&mut self.saving, &mut self.live) {
            saving.forgotten_at = None;
            saving.log_forgotten(&mut live.kept, self.context.now);
        }
        self.saving.as_ref().is_none_or(|saving| !saving.is_pending())
    }

    /// Returns the saving, if a save is in flight or missing.
    pub(super) fn unsaved(&self) -> Option<&Saving> {
        self.saving.as_ref().filter(|saving| self.live.is_some() && saving.is_pending())
    }

    /// Keeps the state of a room that is dropped without being saved, if its journal has it.
    pub(super) fn keep_unsaved(&mut self) {
        let mut save = Vec::new();
        let is_journaled = self.settings.durability == Durability::Journal;
        if is_journaled
            && self.unsaved().is_some()
            && self.write_save(&mut save)
            && let Some(saving) = &mut self.saving
        {
            saving.left = Some(Box::new(Unsaved::of(saving, Some(save))));
        }
    }

    /// Keeps the save of a failed room open, if the journal has the room's earlier state.
    pub(super) fn keep_failed(&mut self) {
        let is_journaled = self.settings.durability == Durability::Journal;
        if is_journaled
            && self.live.is_some()
            && let Some(saving) = &mut self.saving
        {
            saving.left = Some(Box::new(Unsaved::of(saving, None)));
        }
    }

    /// Takes the remains of a room that ended without being saved, or failed.
    pub(super) fn take_left(&mut self) -> Option<Box<Unsaved>> {
        self.saving.as_mut()?.left.take()
    }

    /// Says what is lost if the room is dropped now.
    pub(super) fn log_unsaved(&self) {
        let Some(saving) = self.unsaved() else { return };
        if saving.left.is_some() {
            log::error!(
                "{} ended without being saved: its last state is in the journal, and its key is \
                 busy until the store takes it",
                saving.name()
            );
        } else if let Some(save) = &saving.in_flight {
            log::error!(
                "{} ended before it was known to be saved (save {})",
                saving.name(),
                save.number
            );
        } else {
            let why = saving.failed.as_ref().map_or("", |(_, why)| why);
            log::error!(
                "{} ended without being saved, and its last changes are lost: {why}",
                saving.name()
            );
        }
    }
}
