//! A room: its state, what is watched in it, and its messages.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use playfield_client::poll::{EventPayload, QueueLimits, Room, RoomNews};
use playfield_client::session::Session;
use playfield_client::{Change, ChangeKind, Changes, DynamicCopy, Error, Pattern};
use playfield_wire::TreeFormat;
use playfield_wire::server::Joined;
use playfield_wire::tree::read_value;
use serde_json::Value;

use crate::client::{ClientCell, PfRoom, lock};
use crate::event::{PfChangeKind, PfEventKind, Report};
use crate::failure::{Failure, Outcome, PfCode, call};
use crate::handle::{self, Member, Object};
use crate::state::{Given, Message, News, Place, Seat, Sender, State, What};
use crate::text::{PfText, place};
use crate::value::{PfValue, Tree, path_text};

/// The most watches of a room.
pub const PF_WATCHES_MAX: usize = 1024;

/// The least that an event counts for, in bytes.
const EVENT_BYTES: usize = 24;

/// A room in the table of handles.
pub(crate) struct RoomCell {
    member: Member,
    handle: AtomicU64,
    place: Place,
    room: Room,
    joined: Joined<'static>,
    /// The address of its node, unless that is the first.
    node: String,
    view: Mutex<View>,
    watches: Mutex<Watches>,
    /// The numbers of the events that the program wants in `packed`.
    packed: Mutex<Vec<u32>>,
    /// The program will hear that there is a newer state.
    is_moving: AtomicBool,
    /// The program has heard that this client is no longer in the room.
    is_left: AtomicBool,
}

/// The state as the program sees it, which moves only in `pf_client_next`.
#[derive(Default)]
struct View {
    copy: Option<Arc<DynamicCopy>>,
    /// The root, if the program has asked for it.
    root: Option<PfValue>,
    /// What the node said of the room, if the program has asked for it.
    joined: Option<PfValue>,
}

impl View {
    /// Lets go of the copy.
    fn clear(&mut self) {
        if let Some(root) = self.root.take() {
            let _ = handle::remove::<Tree>(root.tree);
        }
        self.copy = None;
    }
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
    /// A room that was entered in this session, and its handle.
    pub(crate) fn enter(
        client: &Arc<ClientCell>,
        seat: &Seat,
        session: u32,
        node: String,
    ) -> Outcome<(u64, Arc<Self>)> {
        let copy = Some(seat.room.read());
        let cell = Arc::new(Self {
            member: Member::of(client),
            handle: AtomicU64::new(0),
            place: Place { session, number: seat.joined.room },
            room: seat.room.clone(),
            joined: seat.joined.clone(),
            node,
            view: Mutex::new(View { copy, ..View::default() }),
            watches: Mutex::default(),
            packed: Mutex::default(),
            is_moving: AtomicBool::new(false),
            is_left: AtomicBool::new(false),
        });
        let handle = handle::insert(Arc::clone(&cell))?;
        cell.handle.store(handle, Ordering::Release);
        Ok((handle, cell))
    }

    pub(crate) fn place(&self) -> Place {
        self.place
    }

    pub(crate) fn room(&self) -> &Room {
        &self.room
    }

    fn handle(&self) -> u64 {
        self.handle.load(Ordering::Acquire)
    }

    /// Lets go of the room.
    pub(crate) fn forget(&self) {
        let mut view = lock(&self.view);
        view.clear();
        if let Some(joined) = view.joined.take() {
            let _ = handle::remove::<Tree>(joined.tree);
        }
        drop(view);
        *lock(&self.watches) = Watches::default();
    }

    /// There is a newer state. Returns whether that is news.
    pub(crate) fn moves(&self) -> bool {
        !self.is_moving.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn announces(&self, kept: &QueueLimits) -> bool {
        self.member.announces(kept.events_max.max(kept.event_bytes_max / EVENT_BYTES) + 1)
    }

    /// Moves the state to the newest. The changes that are watched follow. `None` if the room was
    /// freed.
    pub(crate) fn refresh(state: &mut State, handle: u64) -> Option<Report> {
        let cell = Arc::clone(state.rooms.get(&handle)?);
        cell.is_moving.store(false, Ordering::Release);
        let mut view = lock(&cell.view);
        // What waited for this reader is applied now.
        view.clear();
        if let Some(repair) = cell.room.settle() {
            let Place { session, number } = cell.place;
            state.in_session(session, |state| {
                state.tell_quietly(move |session| session.repair(number, repair));
            });
        }
        view.copy = Some(cell.room.read());
        drop(view);
        state.counts.updates += 1;
        for change in cell.changes().into_iter().rev() {
            state.news.push_front(News::Report(Box::new(change)));
        }
        let number = cell.room.version();
        Some(Report { room: handle, number, ..Report::new(PfEventKind::State) })
    }

    /// What is watched and has changed.
    fn changes(&self) -> Vec<Report> {
        let mut reports = Vec::new();
        let mut watches = lock(&self.watches);
        let Watches { all, changes } = &mut *watches;
        let Some(changes) = changes else { return reports };
        let room = self.handle();
        while let Some(change) = Room::next_change(changes) {
            match change {
                Ok(change) => {
                    for (watch, _) in
                        all.iter().filter(|(_, pattern)| pattern.matches(&change.path))
                    {
                        reports.push(Report { room, ..changed(*watch, &change) });
                    }
                }
                Err(error) if error.is_missed() => reports.push(Report { room, ..missed(error) }),
                Err(_) => break,
            }
        }
        reports
    }

    /// Returns whether the next in the room's queue is an event that the program wants in `packed`.
    pub(crate) fn is_next_packed(&self) -> bool {
        self.room.is_next_packed(&lock(&self.packed))
    }

    /// The next that waits in the room's queue. `None` if it was dropped, or the room was freed.
    pub(crate) fn take(state: &mut State, handle: u64) -> Option<Report> {
        let cell = Arc::clone(state.rooms.get(&handle)?);
        cell.member.taken();
        let news = cell.room.next(&lock(&cell.packed))?;
        let report = match news {
            RoomNews::Event { name, sequence: number, version, payload } => {
                state.counts.events += 1;
                let (value, bytes) = match payload {
                    EventPayload::Value(value) => (Some(value), Vec::new()),
                    EventPayload::Packed(bytes) => (None, bytes),
                };
                let event = Report::new(PfEventKind::Event);
                Report { name, number, version, value, bytes, ..event }
            }
            RoomNews::Failed(error) if error.is_missed() => {
                // What it stands for may have been announced.
                state.news.push_front(News::Room(handle));
                missed(error)
            }
            RoomNews::Failed(error) => Report::new(PfEventKind::Error).because(error),
            RoomNews::Ended(error) => {
                if cell.is_left.swap(true, Ordering::AcqRel) {
                    return None;
                }
                Report::new(PfEventKind::Left).because(error)
            }
        };
        Some(Report { room: handle, ..report })
    }
}

fn missed(error: Error) -> Report {
    let number = error.missed_count();
    Report { number, ..Report::new(PfEventKind::Missed).because(error) }
}

fn changed(watch: u64, change: &Change) -> Report {
    let (kind, number) = match change.kind {
        ChangeKind::Entered => (PfChangeKind::Entered, 0),
        ChangeKind::Changed => (PfChangeKind::Changed, 0),
        ChangeKind::Left => (PfChangeKind::Left, 0),
        ChangeKind::Moved { from } => (PfChangeKind::Moved, from as u64),
    };
    Report {
        change: kind,
        watch,
        number,
        name: path_text(&change.path),
        value: change.new.clone(),
        old: change.old.clone(),
        ..Report::new(PfEventKind::Change)
    }
}

/// Reads a message: no text is `null`.
pub(crate) fn message(bytes: &[u8]) -> Outcome<Value> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    read_value(TreeFormat::Json, bytes).map_err(|error| Failure::argument("the JSON", error))
}

/// A payload that is published or reported: bytes as they are, or JSON.
pub(crate) fn payload(bytes: &[u8], is_bytes: bool) -> Outcome<Vec<u8>> {
    Ok(if is_bytes { bytes.to_vec() } else { message(bytes)?.to_string().into_bytes() })
}

/// A room, with its client.
fn found(room: PfRoom) -> Outcome<(Arc<ClientCell>, Arc<RoomCell>)> {
    let cell = handle::find::<RoomCell>(room.id)?;
    Ok((cell.member.client::<RoomCell>()?, cell))
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
        let copy = view.copy.clone();
        let copy = copy.ok_or_else(|| Failure::new(PfCode::Freed, "the room was freed"))?;
        *out = Tree::State(copy).publish()?;
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
    /// The address of the room's node; empty if it is the one that the client has connected to.
    /// Valid until the room is freed.
    pub node: PfText,
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
        let cell = handle::find::<RoomCell>(room.id)?;
        let joined = &cell.joined;
        *out = PfRoomInfo {
            player: joined.player,
            version: cell.room.version(),
            tick_hz: joined.tick_hz,
            sync_hz: joined.sync_hz,
            id: PfText::of(&joined.id),
            room_type: PfText::of(&joined.room_type),
            key: PfText::of(joined.key.as_deref().unwrap_or_default()),
            node: PfText::of(&cell.node),
        };
        Ok(())
    })
}

/// Sets `out` to all that the node said of a room when this client joined it: a map of the fields
/// of
/// `joined` in docs/protocol.md, by their names. Valid until the room is freed.
///
/// # Safety
/// `out` points to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_room_joined(room: PfRoom, out: *mut PfValue) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let out = unsafe { place(out, "the place for what was said") }?;
        *out = PfValue::default();
        let cell = handle::find::<RoomCell>(room.id)?;
        let mut view = lock(&cell.view);
        if view.copy.is_none() {
            return Err(Failure::new(PfCode::Freed, "the room was freed"));
        }
        let joined = match view.joined {
            Some(joined) => joined,
            None => Tree::Own(cell.joined.to_value()).publish()?,
        };
        view.joined = Some(joined);
        *out = joined;
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
        let (client, cell) = found(room)?;
        let (index, payload) = cell.room.message(name, &message(json)?)?;
        send(room, &client, &cell, index, &payload)
    })
}

/// Sends the message of this name, without a reply, as `pf_room_send` does. `packed` is the message
/// in `packed`: its fields in the order of the room's schema (docs/state.md). Nothing is converted,
/// so this takes a fraction of the time.
///
/// # Errors
/// `PF_CODE_FAILED` if the room has no such message, or the bytes are not one; `pf_error_message`
/// says at which byte.
///
/// # Safety
/// `name` points to text, `packed` to bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_room_send_packed(room: PfRoom, name: PfText, packed: PfText) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (name, payload) =
            unsafe { (name.text("the message's name")?, packed.bytes("the message")?) };
        let (client, cell) = found(room)?;
        let index = cell.room.packed_message(name, payload)?;
        send(room, &client, &cell, index, payload)
    })
}

fn send(room: PfRoom, client: &ClientCell, cell: &RoomCell, index: u32, payload: &[u8]) -> Outcome {
    if let Some(error) = cell.room.ended() {
        return Err(error.into());
    }
    let place = cell.place;
    client.act(|state| {
        let message = Message { place, index, payload, is_request: false };
        state.tell(Some(place), Sender::Room(room.id), message)
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
        let (client, cell) = found(room)?;
        let message = cell.room.message(name, &message(json)?);
        let message = message.as_ref().map(|(index, payload)| (*index, &**payload));
        *out = ask(room, &client, cell, message.map_err(Clone::clone), false)?;
        Ok(())
    })
}

/// Sends the message of this name, in `packed` as for `pf_room_send_packed`. `PF_EVENT_KIND_REPLY`
/// has the reply in `packed`, as its `bytes`, or says why the message was not sent.
///
/// # Safety
/// `name` points to text, `packed` to bytes, `request` to a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_room_request_packed(
    room: PfRoom,
    name: PfText,
    packed: PfText,
    request: *mut u64,
) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let (name, payload, out) = unsafe {
            (
                name.text("the message's name")?,
                packed.bytes("the message")?,
                place(request, "the place for the request")?,
            )
        };
        let (client, cell) = found(room)?;
        let index = cell.room.packed_message(name, payload);
        *out = ask(room, &client, cell, index.map(|index| (index, payload)), true)?;
        Ok(())
    })
}

fn ask(
    room: PfRoom,
    client: &ClientCell,
    cell: Arc<RoomCell>,
    message: Result<(u32, &[u8]), Error>,
    is_packed: bool,
) -> Outcome<u64> {
    let place = cell.place;
    client.act(|state| match message {
        Ok((index, payload)) => {
            let what = What::Reply { room: room.id, of: cell, index, is_packed };
            state.ask(Some(place), what, Message { place, index, payload, is_request: true })
        }
        // Like all that is wrong with a request, it is its answer.
        Err(error) => state.refuse(What::Leave { room: room.id }, error),
    })
}

/// Has the events of this name come in `packed`, as `bytes` and without a `value`, or again as
/// values. Those that wait for `pf_client_next` count too.
///
/// # Errors
/// `PF_CODE_NOT_FOUND` if the room has no such event.
///
/// # Safety
/// `name` points to text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pf_room_set_packed(room: PfRoom, name: PfText, is_packed: bool) -> PfCode {
    call(|| {
        // SAFETY: the caller promises it.
        let name = unsafe { name.text("the event's name") }?;
        let cell = handle::find::<RoomCell>(room.id)?;
        let number = cell.room.event_number(name)?.ok_or_else(|| {
            Failure::new(PfCode::NotFound, format!("the room has no event {name:?}"))
        })?;
        let mut packed = lock(&cell.packed);
        packed.retain(|known| *known != number);
        if is_packed {
            packed.push(number);
        }
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
        let (client, cell) = found(room)?;
        let pattern: Pattern =
            pattern.parse().map_err(|error| Failure::argument("the pattern", error))?;
        // Freeing a client locks the client first, then the watches of its rooms: keep this order.
        let number = client.lock().next_request();
        let mut watches = lock(&cell.watches);
        if watches.all.len() >= PF_WATCHES_MAX {
            let text = format!("the room has {PF_WATCHES_MAX} watches already; end some");
            return Err(Failure::new(PfCode::Busy, text));
        }
        if watches.changes.is_none() {
            // A room that was entered has its copy: there is nothing to wait for.
            watches.changes = Some(cell.room.changes(&cell.joined)?);
        }
        *out = number;
        watches.all.push((number, pattern));
        Ok(())
    })
}

/// Ends a watch: nothing more is reported of it.
#[unsafe(no_mangle)]
pub extern "C" fn pf_room_unwatch(room: PfRoom, watch: u64) -> PfCode {
    call(|| {
        let (client, cell) = found(room)?;
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
        drop(watches);
        client.lock().drop_reports(|report| report.watch == watch);
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
        let (client, cell) = found(room)?;
        let place = cell.place;
        *out = client.act(|state| {
            state.ask(Some(place), What::Leave { room: room.id }, move |session: &mut Session| {
                session.leave(place.number).map(Given::Request)
            })
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
        if let Ok(client) = cell.member.client::<RoomCell>() {
            client.act(|state| {
                state.rooms.remove(&room.id);
                state.drop_reports(|report| report.room == room.id);
                let Place { session, number } = cell.place;
                state.in_session(session, |state| {
                    let seat = state.node.seats.get(&number);
                    if seat.is_some_and(|seat| seat.handle == room.id) {
                        state.forsake(cell.place);
                    }
                });
                Ok(())
            })?;
        }
        cell.forget();
        Ok(())
    })
}
