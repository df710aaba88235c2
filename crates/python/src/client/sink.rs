//! What happens to a client, as tuples for Python.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use playfield_client::Mirror as _;
use playfield_client::session::{
    ClientError, Event, Failure, Position, RoomCopy, Subscribed, SubscriptionNumber, Translation,
    Unusable, Update, UpdateKind,
};
use playfield_state::{Change, ChangeKind, DynamicMirror, PlayerId, ShapeError};
use playfield_wire::message::MessageRef;
use playfield_wire::{DecodeError, ErrorCode, RequestNumber, RoomNumber, server};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyList, PyTuple};

use super::check::Checker;
use super::values::{Shape, object, step};

/// The most bytes of updates that wait for the schema. Past it they are dropped, and a snapshot is
/// needed.
const HELD_BYTES_MAX: usize = 1 << 20;

/// The copy of a room's state, which the session keeps up to date.
#[derive(Clone, Debug, Default)]
pub(super) struct SharedCopy(Arc<Mutex<Copy>>);

#[derive(Debug, Default)]
struct Copy {
    /// `None` while the schema is unknown.
    mirror: Option<DynamicMirror>,
    has_state: bool,
    /// Updates that wait for the schema.
    held: Vec<(UpdateKind, Vec<u8>)>,
    held_bytes: usize,
    /// Whether its changes are wanted.
    is_watched: bool,
    /// The changes of the last update.
    changes: Vec<Change>,
}

impl Copy {
    fn hold(&mut self, kind: UpdateKind, body: &[u8]) -> Result<(), DecodeError> {
        if kind == UpdateKind::Snapshot {
            (self.held_bytes, self.held) = (0, Vec::new());
        }
        self.held_bytes += body.len();
        if kind == UpdateKind::Patch && self.held_bytes > HELD_BYTES_MAX {
            self.held = Vec::new();
            return Err(DecodeError::other("too many patches came before the schema"));
        }
        self.held.push((kind, body.to_vec()));
        Ok(())
    }

    fn apply(&mut self, kind: UpdateKind, body: &[u8]) -> Result<(), DecodeError> {
        let Self { mirror, is_watched, changes, has_state, .. } = self;
        let Some(mirror) = mirror else { return self.hold(kind, body) };
        changes.clear();
        let tell: &mut dyn FnMut(Change) = &mut |change| changes.push(change);
        mirror.apply(kind, body, is_watched.then_some(tell))?;
        *has_state = true;
        Ok(())
    }
}

impl SharedCopy {
    fn lock(&self) -> MutexGuard<'_, Copy> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, for Python; none if there is none yet. Another thread may ask for it meanwhile.
    fn state<'py>(
        &self,
        py: Python<'py>,
        shape: Option<Shape<'_>>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let copy = self.0.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        copy.mirror.as_ref().map(|mirror| object(py, mirror.state(), shape)).transpose()
    }
}

impl RoomCopy for SharedCopy {
    fn apply(&mut self, update: &Update<'_>) -> Result<(), DecodeError> {
        self.lock().apply(update.kind, update.body)
    }

    fn digest_is(&mut self, digest: u64) -> bool {
        self.lock().mirror.as_ref().is_none_or(|mirror| mirror.digest() == digest)
    }

    fn translate(
        &mut self,
        translation: &Translation,
        player: PlayerId,
    ) -> Result<bool, ShapeError> {
        let copy = &mut *self.lock();
        if let Translation::Learned(learned) = translation {
            copy.mirror = Some(DynamicMirror::new(&learned.schema.state, player)?);
        }
        let held = std::mem::take(&mut copy.held);
        let applied = held.into_iter().try_for_each(|(kind, body)| copy.apply(kind, &body));
        Ok(applied.is_err())
    }

    fn is_filled(&self) -> bool {
        self.lock().has_state
    }
}

/// What came for a room before its schema was known.
#[derive(Debug, Default)]
struct Early {
    /// The version of the last update.
    version: u64,
    /// Events, by their numbers in the schema.
    events: Vec<(u32, Vec<u8>)>,
}

/// The copies of the rooms' states, and what else is needed to read what comes.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    /// Those of rooms that were asked for, by request.
    asked: HashMap<RequestNumber, SharedCopy>,
    copies: HashMap<u32, SharedCopy>,
    /// The rooms that were not entered yet.
    early: HashMap<u32, Early>,
    /// The type of each room, and the fingerprint of its schema.
    types: HashMap<u32, (String, u64)>,
    /// The node's schemas, by room type.
    schemas: HashMap<String, Arc<Checker>>,
    /// The subscriptions whose payloads are bytes.
    of_bytes: HashSet<u32>,
    /// Whether the payloads of the fleet are bytes.
    fleet_has_bytes: bool,
    /// The reports that expect a reply.
    reports: HashSet<u32>,
}

impl Rooms {
    /// A request to enter a room, and the copy of its state.
    pub(super) fn entering(&mut self, request: RequestNumber, copy: SharedCopy) {
        self.asked.insert(request, copy);
    }

    pub(super) fn state<'py>(
        &self,
        py: Python<'py>,
        room: u32,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let shape = self.schema_of(room).map(|checker| checker.state());
        match self.copies.get(&room) {
            Some(copy) => copy.state(py, shape),
            None => Ok(None),
        }
    }

    pub(super) fn watch(&mut self, room: u32) {
        if let Some(copy) = self.copies.get(&room) {
            copy.lock().is_watched = true;
        }
    }

    pub(super) fn reported(&mut self, request: u32) {
        self.reports.insert(request);
    }

    pub(super) fn unsubscribed(&mut self, subscription: u32) {
        self.of_bytes.remove(&subscription);
    }

    pub(super) fn schema(&self, room_type: &str) -> Option<&Arc<Checker>> {
        self.schemas.get(room_type)
    }

    /// The schema of a room, if it is the known one of its type.
    pub(super) fn schema_of(&self, room: u32) -> Option<&Arc<Checker>> {
        let (room_type, fingerprint) = self.types.get(&room)?;
        self.schema(room_type).filter(|checker| checker.fingerprint == *fingerprint)
    }

    /// The client is no longer in the room. Returns the last copy of its state.
    fn remove(&mut self, room: u32) -> Option<LastState> {
        let checker = self.schema_of(room).cloned();
        self.types.remove(&room);
        self.early.remove(&room);
        self.copies.remove(&room).map(|copy| LastState { copy, checker })
    }
}

/// The last copy of a room's state, which goes with the news that the client is no longer in the room:
/// the number may be another room's by then.
#[pyclass(frozen, module = "playfield._playfield")]
#[derive(Debug)]
pub struct LastState {
    copy: SharedCopy,
    checker: Option<Arc<Checker>>,
}

#[pymethods]
impl LastState {
    /// The copy.
    fn state<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let shape = self.checker.as_ref().map(|checker| checker.state());
        let state = self.copy.state(py, shape)?;
        Ok(state.unwrap_or_else(|| py.None().into_bound(py)))
    }
}

/// Turns what the client reports into tuples.
pub(super) struct Sink<'a, 'py> {
    events: Bound<'py, PyList>,
    rooms: &'a mut Rooms,
    failed: PyResult<()>,
}

/// A change: the path, what happened, and the old and the new value.
type Told = (Vec<Py<PyAny>>, &'static str, Py<PyAny>, Py<PyAny>);

impl<'a, 'py> Sink<'a, 'py> {
    pub(super) fn new(events: Bound<'py, PyList>, rooms: &'a mut Rooms) -> Self {
        Self { events, rooms, failed: Ok(()) }
    }

    /// What went wrong while the list was filled.
    pub(super) fn end(self) -> PyResult<()> {
        self.failed
    }

    fn tell(
        &mut self,
        event: impl IntoPyObject<'py, Target = PyTuple, Output = Bound<'py, PyTuple>, Error = PyErr>,
    ) {
        let told = event.into_pyobject(self.events.py());
        let told = told.and_then(|event| self.events.append(event));
        if self.failed.is_ok() {
            self.failed = told;
        }
    }

    fn bytes(&self, bytes: &[u8]) -> Bound<'py, PyBytes> {
        PyBytes::new(self.events.py(), bytes)
    }
}

impl Sink<'_, '_> {
    /// Tells what has happened.
    pub(super) fn hear(&mut self, event: Event<'_>) {
        match event {
            Event::Welcome(welcome) => self.welcome(&welcome),
            Event::ConnectionLost { error } => self.connection_lost(&error),
            Event::Resumed(resumed) => self.resumed(&resumed),
            Event::Weak { is_weak } => self.weak(is_weak),
            Event::NewSession(welcome) => self.new_session(&welcome),
            Event::Unconfirmed { sends } => self.unconfirmed(sends),
            Event::Joined(joined) => self.joined(&joined),
            Event::Entered { room, translation } => self.entered(room, &translation),
            Event::Unusable { room, why } => self.unusable(room, &why),
            Event::Listed(listed) => self.listed(&listed),
            Event::Schema(schema) => self.schema(&schema),
            Event::Left(left) => self.left(&left),
            Event::Reply(reply) => self.reply(&reply),
            Event::Failed { request, failure } => self.failed(request, &failure),
            Event::Event(event) => self.event(&event),
            Event::Missed { room, events } => self.missed(room, events),
            Event::Update { room, version, .. } => self.updated(room, version),
            Event::Error(error) => self.error(&error),
            Event::Subscribed(subscription, subscribed) => {
                self.subscribed(subscription, &subscribed);
            }
            Event::Unsubscribed { subscription, code, text } => {
                self.unsubscribed(subscription, code, &text);
            }
            Event::Publication(subscription, publication) => {
                self.publication(subscription, &publication);
            }
            Event::PublicationsMissed { subscription, publications } => {
                self.publications_missed(subscription, publications);
            }
            Event::Presence(subscription, presence) => self.presence(subscription, &presence),
            Event::Published(published) => self.published(&published),
            Event::Members(members) => self.members(&members),
            Event::History(history) => self.history(&history),
            Event::Registered { request, is_new, bytes } => {
                self.registered(request, is_new, bytes);
            }
            Event::Unregistered { code, text } => self.unregistered(code, &text),
            Event::Command(command) => self.command(&command),
            Event::Pong { nonce, round_trip } => self.pong(nonce, round_trip),
            Event::Goodbye(goodbye) => self.goodbye(&goodbye),
            Event::Closed { error } => self.closed(error.as_ref()),
            Event::AttemptFailed { error, is_last } => {
                self.tell(("attempt_failed", error.to_string(), is_last));
            }
            Event::OutOfStep { .. } | Event::Checked { .. } | Event::PublicationIgnored { .. } => {}
        }
    }

    fn welcome(&mut self, welcome: &server::Welcome<'_>) {
        self.tell(("welcome", welcome.session));
    }

    fn connection_lost(&mut self, error: &ClientError) {
        let code = match error {
            ClientError::TurnedAway { code, .. } => *code,
            _ => ErrorCode::ConnectionLost,
        };
        self.tell(("lost", &*code.name(), error.to_string()));
    }

    fn resumed(&mut self, resumed: &server::Resumed) {
        let lost: Vec<_> =
            resumed.lost.iter().map(|lost| (lost.room.map(|room| room.0), lost.messages)).collect();
        self.tell(("resumed", lost));
    }

    fn weak(&mut self, is_weak: bool) {
        self.tell(("weak", is_weak));
    }

    fn new_session(&mut self, welcome: &server::Welcome<'_>) {
        self.rooms.of_bytes.clear();
        let joined: Vec<_> = self.rooms.copies.keys().copied().collect();
        let last: HashMap<_, _> =
            joined.into_iter().map(|room| (room, self.rooms.remove(room))).collect();
        self.tell(("new_session", welcome.session, last));
    }

    fn joined(&mut self, joined: &server::Joined<'_>) {
        let copy = self.rooms.asked.remove(&joined.request).unwrap_or_default();
        self.rooms.copies.insert(joined.room.0, copy);
        self.rooms.early.insert(joined.room.0, Early::default());
        let (room_type, fingerprint) = (&*joined.room_type, joined.fingerprint);
        self.rooms.types.insert(joined.room.0, (room_type.to_owned(), fingerprint));
        // After an update of the node, its rooms may have another schema.
        let known = self.rooms.schemas.get(room_type).map(|checker| checker.fingerprint);
        if known.is_some_and(|known| known != fingerprint) {
            self.rooms.schemas.remove(room_type);
        }
        self.tell((
            "joined",
            joined.request.0,
            joined.room.0,
            &*joined.id,
            &*joined.room_type,
            joined.key.as_deref(),
            joined.player,
        ));
    }

    /// A room has its copy, and its schema is known.
    fn entered(&mut self, room: RoomNumber, translation: &Translation) {
        let Some((room_type, _)) = self.rooms.types.get(&room.0) else { return };
        let mut text = None;
        if let (Translation::Learned(learned), None) = (translation, self.rooms.schema(room_type)) {
            let checker = Checker::of(Arc::clone(learned));
            text = Some(checker.text());
            self.rooms.schemas.insert(room_type.clone(), Arc::new(checker));
        }
        let text = text.map(|text| self.bytes(text.as_bytes()));
        self.tell(("entered", room.0, text));
        let Early { version, events } = self.rooms.early.remove(&room.0).unwrap_or_default();
        if version > 0 {
            self.updated(room, version);
        }
        for (index, payload) in events {
            self.tell_event(room, index, &payload);
        }
    }

    /// This client can't be in a room, and leaves it.
    fn unusable(&mut self, room: RoomNumber, why: &Unusable) {
        self.tell(("unusable", room.0, why.to_string()));
    }

    fn left(&mut self, left: &server::Left<'_>) {
        let &server::Left { request, room, code, ref text } = left;
        let last = self.rooms.remove(room.0);
        self.tell(("left", room.0, request.map(|request| request.0), &*code.name(), &**text, last));
    }

    fn listed(&mut self, listed: &server::Listed<'_>) {
        let rooms: Vec<_> = listed
            .rooms
            .iter()
            .map(|room| {
                let metadata: Vec<_> =
                    room.metadata.iter().map(|(name, value)| (&**name, &**value)).collect();
                let (id, room_type, key) = (&*room.id, &*room.room_type, room.key.as_deref());
                (id, room_type, key, room.players, room.capacity, room.locked, metadata)
            })
            .collect();
        self.tell(("listed", listed.request.0, rooms));
    }

    fn schema(&mut self, schema: &server::Schema<'_>) {
        let server::Schema { request, room_type, schema } = schema;
        let wrong = match Checker::new(schema) {
            Ok(checker) => {
                self.rooms.schemas.insert(room_type.to_string(), Arc::new(checker));
                None
            }
            Err(wrong) => Some(wrong),
        };
        self.tell(("schema", request.map(|request| request.0), wrong, self.bytes(schema)));
    }

    fn reply(&mut self, reply: &server::Reply<'_>) {
        let server::Reply { request, payload } = reply;
        let is_report = self.rooms.reports.remove(&request.0);
        let is_bytes = is_report && self.rooms.fleet_has_bytes;
        self.tell(("reply", request.0, is_bytes, self.bytes(payload)));
    }

    fn failed(&mut self, request: RequestNumber, failure: &Failure<'_>) {
        self.rooms.reports.remove(&request.0);
        self.rooms.asked.remove(&request);
        let said;
        let (code, text, retry_after) = match failure {
            Failure::Refused { code, text, retry_after } => (*code, &**text, *retry_after),
            Failure::Left { code, text } => (*code, &**text, None),
            Failure::Lost => (
                ErrorCode::ConnectionLost,
                "the answer was lost with the connection: it is unknown whether this was done",
                None,
            ),
            Failure::Closed => (
                ErrorCode::ConnectionLost,
                "the session ended before the answer came: it is unknown whether this was done",
                None,
            ),
            Failure::Unusable(Unusable::Options(why)) => {
                return self.tell(("mismatch", request.0, format!("the options: {why}")));
            }
            Failure::Unusable(_) | Failure::NotSent(_) => {
                said = failure.to_string();
                (ErrorCode::Refused, &*said, None)
            }
        };
        let retry_after = retry_after.map(|wait| wait.as_secs_f64());
        self.tell(("failed", request.0, &*code.name(), text, retry_after));
    }

    fn event(&mut self, event: &server::Event<'_>) {
        let MessageRef::Index(index) = event.message else { return };
        match self.rooms.early.get_mut(&event.room.0) {
            Some(early) => early.events.push((index, event.payload.to_vec())),
            None => self.tell_event(event.room, index, &event.payload),
        }
    }

    fn tell_event(&mut self, room: RoomNumber, index: u32, payload: &[u8]) {
        let Some(checker) = self.rooms.schema_of(room.0).cloned() else { return };
        // An event that the schema does not have can't be read.
        if let Some(name) = checker.event_name(index) {
            self.tell(("event", room.0, name, self.bytes(payload)));
        }
    }

    fn missed(&mut self, room: RoomNumber, events: u64) {
        self.tell(("missed", room.0, events));
    }

    /// The copy of a room has changed.
    fn updated(&mut self, room: RoomNumber, version: u64) {
        let py = self.events.py();
        let Some(copy) = self.rooms.copies.get(&room.0) else { return };
        if let Some(early) = self.rooms.early.get_mut(&room.0) {
            early.version = version;
            return;
        }
        let changes = std::mem::take(&mut copy.lock().changes);
        let shape = self.rooms.schema_of(room.0).map(|checker| checker.state());
        let told: PyResult<Vec<Told>> =
            changes.iter().map(|change| told(py, change, shape)).collect();
        match told {
            Ok(changes) => self.tell(("state", room.0, version, changes)),
            Err(error) if self.failed.is_ok() => self.failed = Err(error),
            Err(_) => {}
        }
    }

    fn error(&mut self, error: &server::Error<'_>) {
        let (code, text) = (error.code, &*error.text);
        // An error that closes the connection is why it ends.
        match error.room {
            None if code.closes() => self.tell(("goodbye", &*code.name(), text)),
            room => self.tell(("error", room.map(|room| room.0), &*code.name(), text)),
        }
    }

    fn subscribed(&mut self, subscription: SubscriptionNumber, subscribed: &Subscribed) {
        let Subscribed { position: Position { epoch, offset }, .. } = *subscribed;
        if subscribed.bytes {
            self.rooms.of_bytes.insert(subscription.0);
        } else {
            self.rooms.of_bytes.remove(&subscription.0);
        }
        let Subscribed { recovered, missed, members, bytes, .. } = *subscribed;
        let (position, number) = ((epoch, offset), subscription.0);
        self.tell(("subscribed", number, position, recovered, missed, members, bytes));
    }

    fn unsubscribed(&mut self, subscription: SubscriptionNumber, code: ErrorCode, text: &str) {
        self.rooms.unsubscribed(subscription.0);
        self.tell(("unsubscribed", subscription.0, &*code.name(), text));
    }

    fn publication(
        &mut self,
        subscription: SubscriptionNumber,
        publication: &server::Publication<'_>,
    ) {
        let is_bytes = self.rooms.of_bytes.contains(&subscription.0);
        let payload = self.bytes(&publication.payload);
        let server::Publication { offset, user, .. } = publication;
        self.tell(("publication", subscription.0, *offset, user.as_deref(), is_bytes, payload));
    }

    fn publications_missed(&mut self, subscription: SubscriptionNumber, publications: u64) {
        self.tell(("publications_missed", subscription.0, publications));
    }

    fn presence(&mut self, subscription: SubscriptionNumber, presence: &server::Presence<'_>) {
        let &server::Presence { sequence, joined, session, ref user, ref name, .. } = presence;
        let (number, user) = (subscription.0, user.as_deref());
        self.tell(("presence", number, sequence, joined, session, user, &**name));
    }

    fn published(&mut self, published: &server::Published) {
        self.tell(("published", published.request.0, published.offset));
    }

    fn members(&mut self, members: &server::Members<'_>) {
        let &server::Members { request, sequence, count, ref members } = members;
        let members: Vec<_> = members
            .iter()
            .map(|member| (member.session, member.user.as_deref(), &*member.name))
            .collect();
        self.tell(("members", request.0, sequence, count, members));
    }

    fn history(&mut self, history: &server::History<'_>) {
        let &server::History { request, epoch, offset, bytes, ref publications } = history;
        let publications: Vec<_> = publications
            .iter()
            .map(|past| (past.offset, past.user.as_deref(), bytes, self.bytes(&past.payload)))
            .collect();
        self.tell(("history", request.0, (epoch, offset), bytes, publications));
    }

    fn registered(&mut self, request: Option<RequestNumber>, is_new: bool, bytes: bool) {
        self.rooms.fleet_has_bytes = bytes;
        self.tell(("registered", request.map(|request| request.0), is_new, bytes));
    }

    fn unregistered(&mut self, code: ErrorCode, text: &str) {
        self.tell(("unregistered", &*code.name(), text));
    }

    fn command(&mut self, command: &server::Command<'_>) {
        let server::Command { command, payload } = command;
        let is_bytes = self.rooms.fleet_has_bytes;
        self.tell(("command", *command, is_bytes, self.bytes(payload)));
    }

    fn unconfirmed(&mut self, sends: u64) {
        self.tell(("unconfirmed", sends));
    }

    fn pong(&mut self, nonce: u64, round_trip: Duration) {
        self.tell(("pong", nonce, round_trip.as_secs_f64()));
    }

    fn goodbye(&mut self, goodbye: &server::Goodbye<'_>) {
        self.tell(("goodbye", &*goodbye.code.name(), &*goodbye.text));
    }

    fn closed(&mut self, error: Option<&ClientError>) {
        self.tell(("closed", error.map(ToString::to_string)));
    }
}

fn told(py: Python<'_>, change: &Change, root: Option<Shape<'_>>) -> PyResult<Told> {
    let (mut path, mut shape) = (Vec::new(), root);
    for place in change.path.steps() {
        let (place, to) = step(py, place, shape)?;
        path.push(place.unbind());
        shape = to;
    }
    let kind = match change.kind {
        ChangeKind::Entered => "entered",
        ChangeKind::Left => "left",
        ChangeKind::Changed => "changed",
        ChangeKind::Moved { .. } => "moved",
    };
    let value = |value: &Option<serde_json::Value>| match value {
        Some(value) => object(py, value, shape).map(Bound::unbind),
        None => Ok(py.None()),
    };
    Ok((path, kind, value(&change.old)?, value(&change.new)?))
}
