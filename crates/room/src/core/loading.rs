//! A room whose save is being loaded. It is made when the save is there, or created if there is
//! none.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use playfield_state::{Dropped, Format, Kept, PlayerId, Restored, Tracker, Tracking, restore};
use playfield_wire::ErrorCode;

use super::guard::guard;
use super::saving::{Print, Saving};
use super::{Live, RoomCore, read_options};
use crate::context_state::{ContextState, Effect, Subject};
use crate::deferred_output::DeferredOutput;
use crate::seats::Seats;
use crate::{
    Context, Error, InternalMessage, KeyOrigin, Loaded, Result, Room, RoomOutput, StoreError,
    StoreErrorKind,
};

/// The outcomes of a load, as the names of the messages that end it.
const FOUND: &str = "playfield:found";
/// The same as [`FOUND`], with the save still on its way to the disk.
const FOUND_EARLY: &str = "playfield:found-early";
/// The save was found, and a thread that computes has read it.
const DECODED: &str = "playfield:decoded";
/// The save was read, but this build can't use all of it. Its copy is on disk, or can't be written.
const COPIED: &str = "playfield:copied";
const NOT_COPIED: &str = "playfield:not-copied";
const NOTHING: &str = "playfield:nothing";
/// The store can't be reached, or has too much to do.
const AWAY: &str = "playfield:away";
const FAILED: &str = "playfield:failed";

/// From this size on, a save is read by a thread that computes: the other rooms of the shard would
/// wait about 5 µs for each KiB.
const ELSEWHERE_BYTES: usize = 32 << 10;

/// The input from which a room is created if it has no save.
pub(super) struct Unborn<R: Room> {
    /// The number of the load.
    task: u64,
    options: Vec<u8>,
    format: Format,
    key_origin: KeyOrigin,
    tracking: Tracking,
    /// The number of players who have asked to join.
    joins: u64,
    /// The save as another thread has read it.
    decoded: Arc<Mutex<Option<Decoded<R>>>>,
}

/// The content of a save, or why it can't be read.
type Decoded<R> = Result<Ready<R>, String>;

/// The content of a save, ready to be synced.
struct Ready<R: Room> {
    live: Live<R>,
    /// See [`RoomCore::mark`].
    mark: u64,
    print: Print,
    /// The save is on disk.
    is_durable: bool,
    /// The parts that this build can't read. The next save is without it.
    dropped: Vec<Dropped>,
    /// The save, if it is of another build and this one can't use all of it, until a copy of it is
    /// kept.
    to_copy: Option<Vec<u8>>,
}

/// Players who wait have numbers from here. Those that the room gives them depend on the save.
const PROVISIONAL: u64 = 1 << 52;

impl<R: Room> Unborn<R> {
    /// Begins to load the save.
    pub(super) fn load(
        saving: &Saving,
        (options, format): (&[u8], Format),
        key_origin: KeyOrigin,
        tracking: Tracking,
        context: &mut ContextState,
        deferred: &mut DeferredOutput,
    ) -> Result<Self> {
        let task = context.number()?;
        let work = saving.open();
        let work = async move {
            let (name, payload) = match work.await {
                Ok(Some(Loaded { bytes, is_durable: true })) => (FOUND, bytes),
                Ok(Some(Loaded { bytes, is_durable: false })) => (FOUND_EARLY, bytes),
                Ok(None) => (NOTHING, Vec::new()),
                Err(error) => {
                    let is_away =
                        matches!(error.kind(), StoreErrorKind::Away | StoreErrorKind::Busy);
                    (if is_away { AWAY } else { FAILED }, error.to_string().into_bytes())
                }
            };
            InternalMessage { name: name.into(), payload }
        };
        deferred.spawn(task, Box::pin(work))?;
        let (options, decoded) = (options.to_vec(), Arc::default());
        Ok(Self { task, options, format, key_origin, tracking, joins: 0, decoded })
    }

    /// A number for a player who wants to join.
    pub(super) fn provisional(&mut self) -> PlayerId {
        self.joins += 1;
        PlayerId(PROVISIONAL + self.joins)
    }
}

/// Set in the mark of a save, beside the next player, if the room's key is a code.
const CODE: u64 = 1 << 63;

fn not_a_code() -> Error {
    Error::new(ErrorCode::RoomNotFound, "no saved room has this code")
}

impl<R: Room> RoomCore<R> {
    /// Returns what a save holds beside the state. Numbers of players are not used again, or
    /// players would see what others own.
    pub(super) fn mark(&self) -> u64 {
        self.next_player | if self.context.summary.is_code { CODE } else { 0 }
    }

    /// Returns whether its save is not there, or not read.
    pub(crate) fn is_loading(&self) -> bool {
        self.unborn.is_some()
    }

    /// Returns whether this is the end of the load.
    pub(super) fn is_load(&self, task: u64) -> bool {
        self.unborn.as_ref().is_some_and(|unborn| unborn.task == task)
    }

    /// The save is there, or there is none: the room begins. `None` is a load that panicked.
    pub(super) fn loaded(&mut self, outcome: Option<InternalMessage>, out: &mut dyn RoomOutput) {
        let Some(key_origin) = self.unborn.as_ref().map(|unborn| unborn.key_origin) else { return };
        let outcome = match outcome {
            Some(found)
                if matches!(&*found.name, FOUND | FOUND_EARLY)
                    && found.payload.len() >= ELSEWHERE_BYTES
                    && key_origin != KeyOrigin::Drawn =>
            {
                match self.decode_elsewhere(found, out) {
                    Ok(()) => return,
                    Err(found) => Some(found),
                }
            }
            outcome => outcome,
        };
        let outcome = self.decode_here(outcome, key_origin);
        let Some(outcome) = self.copy_first(outcome, out) else { return };
        let Some(unborn) = self.unborn.take() else { return };
        let made = match outcome {
            Some(InternalMessage { name, payload }) => match (&*name, key_origin) {
                (FOUND | FOUND_EARLY, KeyOrigin::Drawn) => {
                    let text = "the code that was drawn is that of a saved room; try again";
                    Err(Error::new(ErrorCode::RoomExists, text))
                }
                (DECODED, _) => {
                    let decoded = unborn.decoded.lock();
                    let decoded = decoded.unwrap_or_else(PoisonError::into_inner).take();
                    let decoded = decoded.unwrap_or_else(|| Err("it was not read".into()));
                    self.revive(decoded, key_origin, out)
                }
                (NOTHING, KeyOrigin::Spelled) => Err(not_a_code()),
                (NOTHING, _) => {
                    self.saving.iter_mut().for_each(Saving::was_not_found);
                    let Unborn { options, format, tracking, .. } = &unborn;
                    self.give_birth(*format, options, out).and_then(|mut state| {
                        let tracker = guard(|| Tracker::new(&mut state, *tracking));
                        let kept = Kept::default();
                        let live = tracker.map(|tracker| Live { state, tracker, kept });
                        live.map_err(|panic| self.not_created(&panic))
                    })
                }
                (AWAY, _) => Err(self.unreachable(&String::from_utf8_lossy(&payload))),
                _ => Err(self.unreadable(&String::from_utf8_lossy(&payload))),
            },
            None => Err(self.unreadable(&"the store panicked")),
        };
        let more = self.context.take_holds();
        match made {
            Ok(live) => {
                self.live = Some(live);
                self.renumber();
                self.note_changes();
                if let Some(opening) = &mut self.opening {
                    opening.holds = opening.holds + more - 1;
                    if opening.holds == 0 {
                        self.open(out);
                    }
                }
                self.settle(out);
            }
            Err(error) => {
                self.context.effects.clear();
                self.refuse_all(&error, out);
            }
        }
    }

    /// Gives those who wait their numbers.
    fn renumber(&mut self) {
        for (before, mut waiting) in std::mem::take(&mut self.waiting) {
            let id = PlayerId(self.next_player);
            self.next_player += 1;
            waiting.player.id = id;
            self.renumbered.insert(before, id);
            self.waiting.insert(id, waiting);
        }
    }

    /// Hands a save to a thread that computes. Returns it if too much waits for those threads.
    fn decode_elsewhere(
        &mut self,
        found: InternalMessage,
        out: &mut dyn RoomOutput,
    ) -> std::result::Result<(), InternalMessage> {
        let Some(unborn) = &mut self.unborn else { return Ok(()) };
        let InternalMessage { name, payload } = found;
        let bytes = Arc::new(payload);
        let (tracking, to) = (unborn.tracking, Arc::clone(&unborn.decoded));
        let is_durable = name == FOUND;
        let work = {
            let bytes = Arc::clone(&bytes);
            move || {
                let decoded = decode(&bytes, is_durable, tracking);
                *to.lock().unwrap_or_else(PoisonError::into_inner) = Some(decoded);
                InternalMessage { name: DECODED.into(), payload: Vec::new() }
            }
        };
        let begun = self.context.number().and_then(|task| {
            out.compute(task, Box::new(work))?;
            Ok(task)
        });
        match begun {
            Ok(task) => {
                unborn.task = task;
                Ok(())
            }
            Err(_) => Err(InternalMessage { name, payload: Arc::unwrap_or_clone(bytes) }),
        }
    }

    /// Reads a save that was found, unless another thread has.
    fn decode_here(
        &mut self,
        outcome: Option<InternalMessage>,
        key_origin: KeyOrigin,
    ) -> Option<InternalMessage> {
        let (Some(unborn), Some(found)) = (&self.unborn, &outcome) else { return outcome };
        if !matches!(&*found.name, FOUND | FOUND_EARLY) || key_origin == KeyOrigin::Drawn {
            return outcome;
        }
        let decoded = decode(&found.payload, found.name == FOUND, unborn.tracking);
        *unborn.decoded.lock().unwrap_or_else(PoisonError::into_inner) = Some(decoded);
        Some(InternalMessage { name: DECODED.into(), payload: Vec::new() })
    }

    /// Keeps a copy of a save that this build can't use whole, before the room saves itself. `None`
    /// while that is under way.
    fn copy_first(
        &mut self,
        outcome: Option<InternalMessage>,
        out: &mut dyn RoomOutput,
    ) -> Option<Option<InternalMessage>> {
        let (Some(unborn), Some(saving), Some(message)) =
            (&mut self.unborn, &self.saving, &outcome)
        else {
            return Some(outcome);
        };
        let mut decoded = unborn.decoded.lock().unwrap_or_else(PoisonError::into_inner);
        let why = match (&*message.name, decoded.as_mut()) {
            (DECODED, Some(Ok(ready))) => {
                let Some(bytes) = ready.to_copy.take() else {
                    drop(decoded);
                    return Some(outcome);
                };
                let begun = self.context.number().and_then(|task| {
                    let work = saving.copy(bytes);
                    out.spawn(task, Box::pin(async move { copied(work.await) }))?;
                    Ok(task)
                });
                match begun {
                    Ok(task) => {
                        unborn.task = task;
                        return None;
                    }
                    Err(error) => error.text().to_owned(),
                }
            }
            (COPIED, Some(Ok(ready))) => {
                let number = String::from_utf8_lossy(&message.payload).into_owned();
                log::warn!(
                    "the save of {} is of another build. {}The save as it was is copy {number} of \
                     this room: see `help saves`",
                    saving.name(),
                    unused(&ready.dropped, &ready.live.kept)
                );
                drop(decoded);
                return Some(Some(InternalMessage { name: DECODED.into(), payload: Vec::new() }));
            }
            (NOT_COPIED, _) => String::from_utf8_lossy(&message.payload).into_owned(),
            _ => {
                drop(decoded);
                return Some(outcome);
            }
        };
        *decoded = Some(Err(format!(
            "it is of another build, this build can't use all of it, and no copy could be kept: {why}"
        )));
        drop(decoded);
        Some(Some(InternalMessage { name: DECODED.into(), payload: Vec::new() }))
    }

    /// Makes what the save leaves out.
    fn revive(
        &mut self,
        decoded: Decoded<R>,
        key_origin: KeyOrigin,
        out: &mut dyn RoomOutput,
    ) -> Result<Live<R>> {
        let Ready { mut live, mark, print, is_durable, .. } =
            decoded.map_err(|why| self.unreadable(&why))?;
        let is_code = mark & CODE != 0;
        if key_origin == KeyOrigin::Spelled && !is_code {
            // Its destructor is user code.
            let _ = guard(|| drop(live));
            return Err(not_a_code());
        }
        self.context.summary.is_code = is_code;
        self.next_player = self.next_player.max(mark & !CODE);
        if let Some(saving) = &mut self.saving {
            saving.was_loaded(print, is_durable);
        }
        let (seats, context) = (&self.seats, &mut self.context);
        context.subject = Some(Subject::Room);
        // What it changes is compared before anyone gets a copy, as what `join` changes is.
        let rebuilt = guard(|| live.state.rebuild(&mut Context::new(seats, context, out, None)));
        rebuilt.map_err(|panic| self.not_created(&panic))?;
        Ok(live)
    }

    fn give_birth(
        &mut self,
        format: Format,
        options: &[u8],
        out: &mut dyn RoomOutput,
    ) -> Result<R> {
        create(format, options, &self.seats, &mut self.context, out)
            .unwrap_or_else(|panic| Err(self.not_created(&panic)))
    }

    /// The store can't be asked now. Players don't learn why.
    fn unreachable(&self, why: &str) -> Error {
        let name = self.saving.as_ref().map(Saving::name).unwrap_or_default();
        log::warn!(
            "the save of {name} can't be loaded now, so room {} is not created: {why}",
            self.context.id()
        );
        let text = format!("the save of {name} can't be loaded now; try again later");
        Error::new(ErrorCode::Busy, text)
    }

    /// The save can't be read. It is not overwritten: no room is created. Players don't learn why.
    fn unreadable(&self, why: &dyn std::fmt::Display) -> Error {
        let name = self.saving.as_ref().map(Saving::name).unwrap_or_default();
        log::error!(
            "the save of {name} can't be read, so room {} is not created: {why}",
            self.context.id()
        );
        Error::new(ErrorCode::RoomFailed, "the room's save can't be read; it was left as it is")
    }

    fn not_created(&self, panic: &str) -> Error {
        log::error!("room {} panicked while it was created: {panic}", self.context.id());
        Error::new(ErrorCode::Internal, "the room could not be created")
    }
}

/// Reads a save, on any thread. Its decoders and defaults are user code, so it may panic.
fn decode<R: Room>(bytes: &[u8], is_durable: bool, tracking: Tracking) -> Decoded<R> {
    guard(|| {
        let Restored { mut state, mark, mut kept, dropped, is_foreign } =
            restore::<R>(bytes).map_err(|error| error.to_string())?;
        let tracker = Tracker::new(&mut state, tracking);
        kept.bind(&state);
        let live = Live { state, tracker, kept };
        let uses_all = dropped.is_empty() && live.kept.is_empty();
        let to_copy = (is_foreign && !uses_all).then(|| bytes.to_vec());
        Ok(Ready { live, mark, print: Print::of(bytes), is_durable, dropped, to_copy })
    })?
}

fn copied(number: std::result::Result<u64, StoreError>) -> InternalMessage {
    let (name, text) = match number {
        Ok(number) => (COPIED, number.to_string()),
        Err(error) => (NOT_COPIED, error.to_string()),
    };
    InternalMessage { name: name.into(), payload: text.into_bytes() }
}

/// The most places that an entry of the log names.
const LISTED_MAX: usize = 8;

/// Returns what this build does with the parts of a save that it can't use.
fn unused(dropped: &[Dropped], kept: &Kept) -> String {
    let mut text = String::new();
    if !dropped.is_empty() {
        let places = dropped
            .iter()
            .map(|Dropped { place, why, count }| format!("{place} ({count} values): {why}"));
        text += &format!("This build drops what it can't read: {}. ", listed(places));
    }
    if !kept.is_empty() {
        let fields = places(&kept.fields());
        text += &format!("This build lacks fields, and keeps them as bytes: {fields}. ");
    }
    text
}

/// Fields, and how many values each has.
pub(super) fn places(fields: &BTreeMap<String, u64>) -> String {
    listed(fields.iter().map(|(place, count)| format!("{place} ({count} values)")))
}

fn listed(places: impl ExactSizeIterator<Item = String>) -> String {
    let more = places.len().saturating_sub(LISTED_MAX);
    let mut named: Vec<String> = places.take(LISTED_MAX).collect();
    if more > 0 {
        named.push(format!("and {more} more"));
    }
    named.join("; ")
}

/// Calls `create`. The outer error is a panic: defaults, decoders and destructors are user code as
/// well.
pub(super) fn create<R: Room>(
    format: Format,
    options: &[u8],
    seats: &Seats,
    context: &mut ContextState,
    out: &mut dyn RoomOutput,
) -> Result<Result<R>, String> {
    guard(|| {
        let options = read_options::<R>(format, options)?;
        context.subject = Some(Subject::Room);
        let state = R::create(options, &mut Context::new(seats, context, out, None))?;
        if let Some(text) = context.effects.iter().find_map(Effect::as_close) {
            return Err(Error::new(ErrorCode::Refused, text));
        }
        Ok(state)
    })
}
