//! A room: its state, what is watched in it, and its messages.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use playfield_client::{
    Change, ChangeKind, Changes, Dynamic, Error, HeldState, Pattern, Payload, Room, RoomEvent,
};
use playfield_wire::TreeFormat;
use playfield_wire::tree::read_value;
use serde_json::Value;

use crate::client::{ClientCell, PfRoom, Shared, lock};
use crate::event::{Happening, PfChangeKind, PfEventKind};
use crate::failure::{Failure, Outcome, PfCode, call};
use crate::handle::{self, Object};
use crate::text::{PfText, place};
use crate::turn::Turn;
use crate::value::{PfValue, Tree, path_text};

/// The most watches of a room.
pub const PF_WATCHES_MAX: usize = 1024;

/// A room in the table of handles.
pub(crate) struct RoomCell {
    client: u64,
    shared: Arc<Shared>,
    handle: Mutex<u64>,
    room: Mutex<Option<Arc<Room<Dynamic>>>>,
    view: Mutex<View>,
    watches: Mutex<Watches>,
    task: Mutex<u64>,
    /// The program will hear that there is a newer state.
    is_moving: AtomicBool,
}

/// The state as the program sees it, which moves only in `pf_client_next`.
#[derive(Default)]
struct View {
    held: Option<Arc<HeldState<Dynamic>>>,
    /// The root, if the program has asked for it.
    root: Option<PfValue>,
}

#[derive(Default)]
struct Watches {
    all: Vec<(u64, Pattern)>,
    changes: Option<Changes>,
}

impl Object for RoomCell {
    const KIND: u8 = 2;
    const NAME: &'static str = "a room";
}

impl RoomCell {
    /// A room that was entered. Returns its handle.
    pub(crate) fn enter(
        client: u64,
        shared: &Arc<Shared>,
        room: Room<Dynamic>,
    ) -> Outcome<(u64, impl Future<Output = ()> + Send + use<>)> {
        let room = Arc::new(room);
        let cell = Arc::new(Self {
            client,
            shared: Arc::clone(shared),
            handle: Mutex::new(0),
            room: Mutex::new(Some(Arc::clone(&room))),
            view: Mutex::default(),
            watches: Mutex::default(),
            task: Mutex::new(0),
            is_moving: AtomicBool::new(false),
        });
        lock(&cell.view).held = Some(Arc::new(room.hold()));
        let handle = handle::insert(Arc::clone(&cell))?;
        *lock(&cell.handle) = handle;
        lock(&shared.rooms).insert(handle, Arc::clone(&cell));
        Ok((handle, follow(cell, room)))
    }

    /// Lets go of the room.
    pub(crate) fn forget(&self) {
        let mut view = lock(&self.view);
        if let Some(root) = view.root.take() {
            let _ = handle::remove::<Tree>(root.tree);
        }
        view.held = None;
        drop(view);
        *lock(&self.watches) = Watches::default();
        *lock(&self.room) = None;
    }

    fn room(&self) -> Outcome<Arc<Room<Dynamic>>> {
        let room = lock(&self.room).clone();
        room.ok_or_else(|| Failure::new(PfCode::Freed, "the room was freed"))
    }

    /// There is a newer state: `refresh` moves to it when the program comes to this event.
    fn moves(&self) {
        if !self.is_moving.swap(true, Ordering::AcqRel) {
            self.happens(Happening::new(PfEventKind::State));
        }
    }

    /// Moves the state to the newest. Returns its version, and the changes that are watched. `None`
    /// if the room was freed.
    pub(crate) fn refresh(&self) -> Option<(u64, Vec<Happening>)> {
        let room = self.room().ok()?;
        self.is_moving.store(false, Ordering::Release);
        let mut view = lock(&self.view);
        if let Some(root) = view.root.take() {
            let _ = handle::remove::<Tree>(root.tree);
        }
        // What waited for this reader is applied now.
        view.held = None;
        view.held = Some(Arc::new(room.hold()));
        drop(view);
        self.shared.count(|counts| counts.updates += 1);
        Some((room.version(), self.changes()))
    }

    /// What is watched and has changed.
    fn changes(&self) -> Vec<Happening> {
        let mut happenings = Vec::new();
        let mut watches = lock(&self.watches);
        let Watches { all, changes } = &mut *watches;
        let Some(changes) = changes else { return happenings };
        let room = *lock(&self.handle);
        while let Some(change) = now(changes.next()) {
            match change {
                Ok(change) => {
                    for (watch, _) in
                        all.iter().filter(|(_, pattern)| pattern.matches(&change.path))
                    {
                        happenings.push(Happening { room, ..changed(*watch, &change) });
                    }
                }
                Err(error) if error.is_missed() => {
                    happenings.push(Happening { room, ..missed(error) });
                }
                Err(_) => break,
            }
        }
        happenings
    }

    /// Reports an event. Returns whether this client is still in the room.
    fn report(&self, room: &Arc<Room<Dynamic>>, event: Result<RoomEvent<Dynamic>, Error>) -> bool {
        match event {
            Ok(event) => {
                // What was synced before the event is seen before it.
                if event.version() > room.version() {
                    self.moves();
                }
                self.shared.count(|counts| counts.events += 1);
                let (number, version) = (event.sequence(), event.version());
                let (name, value) = event.into_parts();
                let (value, failure) = match value {
                    Ok(value) => (Some(value), None),
                    Err(error) => (None, Some(Box::new(error.into()))),
                };
                self.happens(Happening {
                    name: name.into_owned(),
                    number,
                    version,
                    value,
                    failure,
                    ..Happening::new(PfEventKind::Event)
                });
            }
            Err(error) if error.is_left() || error.is_closed() => {
                // What came before, since this was looked at last.
                if let Some(Ok(())) = now(room.updated()) {
                    self.moves();
                }
                self.happens(Happening::new(PfEventKind::Left).because(error));
                return false;
            }
            Err(error) if error.is_missed() => {
                self.happens(missed(error));
            }
            Err(error) => self.happens(Happening::new(PfEventKind::Error).because(error)),
        }
        true
    }

    fn happens(&self, happening: Happening) {
        self.shared.happens(Happening { room: *lock(&self.handle), ..happening });
    }
}

/// The output of a future, if it is there.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn missed(error: Error) -> Happening {
    let number = error.missed_count();
    Happening { number, ..Happening::new(PfEventKind::Missed).because(error) }
}

fn changed(watch: u64, change: &Change) -> Happening {
    let (kind, number) = match change.kind {
        ChangeKind::Entered => (PfChangeKind::Entered, 0),
        ChangeKind::Changed => (PfChangeKind::Changed, 0),
        ChangeKind::Left => (PfChangeKind::Left, 0),
        ChangeKind::Moved { from } => (PfChangeKind::Moved, from as u64),
    };
    Happening {
        change: kind,
        watch,
        number,
        name: path_text(&change.path),
        value: change.new.clone(),
        old: change.old.clone(),
        ..Happening::new(PfEventKind::Change)
    }
}

/// Reports what happens in a room until this client is in it no longer.
async fn follow(cell: Arc<RoomCell>, room: Arc<Room<Dynamic>>) {
    let mut turn = Turn::default();
    loop {
        let mut next = tokio::select! {
            biased;
            Ok(()) = room.updated() => {
                cell.moves();
                turn.report(0);
                None
            }
            event = room.next_event() => Some(event),
        };
        // An event, and those that came with it.
        while let Some(event) = next {
            turn.report(match &event {
                Ok(event) => event.payload_bytes(),
                Err(error) => error.text().len(),
            });
            if !cell.report(&room, event) {
                return;
            }
            next = if turn.is_over() { None } else { now(room.next_event()) };
        }
        turn.pause().await;
    }
}

impl ClientCell {
    /// Adds a future that enters a room. Returns the request's number.
    pub(crate) fn enter<F>(self: &Arc<Self>, client: u64, entering: F) -> Outcome<u64>
    where
        F: Future<Output = Result<Room<Dynamic>, Error>> + Send + 'static,
    {
        let shared = Arc::clone(&self.shared);
        let cell = Arc::downgrade(self);
        self.ask(move |request| async move {
            let answer = Happening::answer(PfEventKind::Joined, request);
            let room = match entering.await {
                Ok(room) => room,
                Err(error) => return answer.because(error),
            };
            let (number, name) = (room.player().0, room.id().to_owned());
            let entered = RoomCell::enter(client, &shared, room);
            match (entered, cell.upgrade()) {
                (Ok((room, task)), Some(_)) => {
                    let rooms = Arc::clone(&shared);
                    shared.begins(move |tasks| {
                        // It may have been freed meanwhile.
                        if let Some(cell) = lock(&rooms.rooms).get(&room) {
                            *lock(&cell.task) = tasks.spawn_after(task);
                        }
                    });
                    Happening { room, number, name, ..answer }
                }
                (Err(failure), _) => answer.because(failure),
                (_, None) => answer,
            }
        })
    }
}

/// Reads a message: no text is `null`.
pub(crate) fn message(bytes: &[u8]) -> Outcome<Value> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    read_value(TreeFormat::Json, bytes).map_err(|error| Failure::argument("the JSON", error))
}

/// What is published or reported: bytes as they are, or JSON.
pub(crate) fn payload(bytes: &[u8], is_bytes: bool) -> Outcome<Payload> {
    Ok(if is_bytes { Payload::from(bytes) } else { Payload::from(message(bytes)?) })
}

/// A room, with its client.
type Found = (Arc<ClientCell>, Arc<RoomCell>, Arc<Room<Dynamic>>);

fn found(room: PfRoom) -> Outcome<Found> {
    let cell = handle::find::<RoomCell>(room.id)?;
    let client = handle::find::<ClientCell>(cell.client)?;
    let room = cell.room()?;
    Ok((client, cell, room))
}

/// Sets `out` to the state's root, which is current until `pf_client_next` reports
/// `PF_EVENT_KIND_STATE` of the room.
///
/// # Safety
/// `out` points to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_room_state(room: PfRoom, out: *mut PfValue) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let out = unsafe { place(out, "the place for the state") }?;
        *out = PfValue::default();
        let cell = handle::find::<RoomCell>(room.id)?;
        let mut view = lock(&cell.view);
        if let Some(root) = view.root {
            *out = root;
            return Ok(());
        }
        let held = view.held.clone();
        let held = held.ok_or_else(|| Failure::new(PfCode::Freed, "the room was freed"))?;
        *out = Tree::State(held).publish()?;
        view.root = Some(*out);
        Ok(())
    })
}

/// What the node said about a room.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct PfRoomInfo {
    /// This client's player in the room.
    pub player: u64,
    /// The version of the state; 0 if there is none.
    pub version: u64,
    /// Ticks per second.
    pub tick_hz: u32,
    /// Syncs per second; 0 if the room sends a patch after each change.
    pub sync_hz: u32,
    /// The room's id, by which others can join it. Valid until the room is freed.
    pub id: PfText,
    /// The room's type. Valid until the room is freed.
    pub room_type: PfText,
    /// The room's key or code; empty if it has none. Valid until the room is freed.
    pub key: PfText,
}

/// Sets `out` to what is known of a room.
///
/// # Safety
/// `out` points to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_room_get_info(room: PfRoom, out: *mut PfRoomInfo) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let out = unsafe { place(out, "the place for the info") }?;
        let (_, _, room) = found(room)?;
        let joined = room.joined();
        *out = PfRoomInfo {
            player: joined.player,
            version: room.version(),
            tick_hz: joined.tick_hz,
            sync_hz: joined.sync_hz,
            id: PfText::of(&joined.id),
            room_type: PfText::of(&joined.room_type),
            key: PfText::of(joined.key.as_deref().unwrap_or_default()),
        };
        Ok(())
    })
}

/// Sends the message of this name, without a reply. `json` is the message; empty if it has no
/// members. If the room refuses it, `PF_EVENT_KIND_ERROR` says so.
///
/// # Safety
/// `name` and `json` point to text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_room_send(room: PfRoom, name: PfText, json: PfText) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (name, json) = unsafe { (name.text("the message's name")?, json.bytes("the JSON")?) };
        let (client, _, to) = found(room)?;
        let message = message(json)?;
        // Usually there is place in the queue. If not, nothing was queued, and another waits.
        if let Some(sent) = now(to.send(name, &message)) {
            client.shared.count(|counts| counts.sends += 1);
            return Ok(sent?);
        }
        // There will be, if what is held back goes.
        client.shared.cork(false);
        let name = name.to_owned();
        client.tell(async move { to.send(&name, &message).await }, move |error| Happening {
            room: room.id,
            ..Happening::new(PfEventKind::Error).because(error)
        })
    })
}

/// Sends the message of this name; `PF_EVENT_KIND_REPLY` has the reply.
///
/// # Safety
/// `name` and `json` point to text, `request` to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_room_request(
    room: PfRoom,
    name: PfText,
    json: PfText,
    request: *mut u64,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (name, json, out) = unsafe {
            (
                name.text("the message's name")?,
                json.bytes("the JSON")?,
                place(request, "the place for the request")?,
            )
        };
        let (client, cell, room) = found(room)?;
        let (name, message) = (name.to_owned(), message(json)?);
        let handle = *lock(&cell.handle);
        *out = client.ask(|request| async move {
            let answer =
                Happening { room: handle, ..Happening::answer(PfEventKind::Reply, request) };
            match room.request(&name, &message).await {
                Ok(value) => Happening { value: Some(value), ..answer },
                Err(error) => answer.because(error),
            }
        })?;
        Ok(())
    })
}

/// Reports changes at places that match a pattern, such as `players.*.hp` or `**`, as
/// `PF_EVENT_KIND_CHANGE`, after the state has moved. Watching begins with the state as it is.
///
/// # Safety
/// `pattern` points to text, `watch` to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_room_watch(room: PfRoom, pattern: PfText, watch: *mut u64) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (pattern, out) =
            unsafe { (pattern.text("the pattern")?, place(watch, "the place for the watch")?) };
        let (_, cell, room) = found(room)?;
        let pattern: Pattern =
            pattern.parse().map_err(|error| Failure::argument("the pattern", error))?;
        let mut watches = lock(&cell.watches);
        if watches.all.len() >= PF_WATCHES_MAX {
            let text = format!("the room has {PF_WATCHES_MAX} watches already; end some");
            return Err(Failure::new(PfCode::Busy, text));
        }
        if watches.changes.is_none() {
            // A dynamic room that was entered has its copy: there is nothing to wait for.
            let changes = now(async { room.changes().await });
            let waits = || Failure::new(PfCode::Usage, "the room has no state yet");
            watches.changes = Some(changes.ok_or_else(waits)??);
        }
        *out = cell.shared.next_request();
        watches.all.push((*out, pattern));
        Ok(())
    })
}

/// Ends a watch: nothing more is reported of it.
#[unsafe(no_mangle)]
pub extern "C" fn pf_room_unwatch(room: PfRoom, watch: u64) -> PfCode {
    call(|| {
        let cell = handle::find::<RoomCell>(room.id)?;
        let mut watches = lock(&cell.watches);
        let before = watches.all.len();
        watches.all.retain(|(other, _)| *other != watch);
        if watches.all.len() == before {
            let text = format!("the room has no watch {watch}");
            return Err(Failure::new(PfCode::NotFound, text));
        }
        if watches.all.is_empty() {
            watches.changes = None;
        }
        cell.shared.drop_events(|happening| happening.watch == watch);
        Ok(())
    })
}

/// Leaves a room; `PF_EVENT_KIND_REPLY` confirms it. Free the handle too.
///
/// # Safety
/// `request` points to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_room_leave(room: PfRoom, request: *mut u64) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let out = unsafe { place(request, "the place for the request") }?;
        let (client, cell, room) = found(room)?;
        let handle = *lock(&cell.handle);
        *out = client.ask(|request| async move {
            let answer =
                Happening { room: handle, ..Happening::answer(PfEventKind::Reply, request) };
            match room.leave_shared().await {
                Ok(()) => answer,
                Err(error) => answer.because(error),
            }
        })?;
        Ok(())
    })
}

/// Frees a room, and leaves it if this client is still in it. Nothing more is reported of it but
/// answers to requests.
#[unsafe(no_mangle)]
pub extern "C" fn pf_room_free(room: PfRoom) -> PfCode {
    call(|| {
        let cell = handle::remove::<RoomCell>(room.id)?;
        if let Ok(client) = handle::find::<ClientCell>(cell.client) {
            let forget = || {
                lock(&cell.shared.rooms).remove(&room.id);
                *lock(&cell.task)
            };
            client.cancel(forget, |happening| happening.room == room.id);
        }
        cell.forget();
        Ok(())
    })
}
