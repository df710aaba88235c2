//! A node's client, without I/O: bytes and time in; events, copies of states and bytes out.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use playfield_client::core::{
    Client, ClientConfig, ClientError, CommandError, Creation, Failure, Handler, Joined, Masks,
    OutOfStep, Resumed, RoomEvent, Transport, Update, UpdateKind, Url, Welcome,
};
use playfield_state::{Change, ChangeKind, JsonMirror, PathStep};
use playfield_wire::message::MessageRef;
use playfield_wire::{DecodeError, ErrorCode, Format, RequestNumber, RoomNumber};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyTuple};

/// A client of a node. All values are JSON text. What happens is returned as tuples that begin with
/// a name.
#[pyclass(module = "playfield._playfield")]
#[derive(Debug)]
pub struct Core {
    client: Client,
    url: Url,
    rooms: Rooms,
}

/// The copies of the rooms' states.
#[derive(Debug, Default)]
struct Rooms {
    copies: HashMap<u32, JsonMirror>,
    /// The rooms whose changes are wanted.
    watched: HashSet<u32>,
}

/// Turns what the client reports into tuples.
struct Sink<'a, 'py> {
    events: Bound<'py, PyList>,
    rooms: &'a mut Rooms,
    failed: PyResult<()>,
}

/// A change: the path, what happened, and the old and the new value.
type Told = (Vec<Py<PyAny>>, &'static str, Option<String>, Option<String>);

impl<'py> Sink<'_, 'py> {
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

impl Handler for Sink<'_, '_> {
    fn welcome(&mut self, welcome: &Welcome<'_>) {
        self.tell(("welcome", welcome.session));
    }

    fn connection_lost(&mut self, error: &ClientError) {
        self.tell(("lost", error.to_string()));
    }

    fn resumed(&mut self, _: &Resumed<'_>) {
        self.tell(("resumed",));
    }

    fn new_session(&mut self, welcome: &Welcome<'_>) {
        self.rooms.copies.clear();
        self.rooms.watched.clear();
        self.tell(("new_session", welcome.session));
    }

    fn joined(&mut self, request: RequestNumber, joined: &Joined<'_>) {
        self.rooms.copies.insert(joined.room.0, JsonMirror::new());
        self.tell((
            "joined",
            request.0,
            joined.room.0,
            &*joined.id,
            &*joined.room_type,
            joined.key.as_deref(),
            joined.player,
        ));
    }

    fn left(
        &mut self,
        room: RoomNumber,
        request: Option<RequestNumber>,
        code: ErrorCode,
        text: &str,
    ) {
        self.rooms.copies.remove(&room.0);
        self.rooms.watched.remove(&room.0);
        self.tell(("left", room.0, request.map(|request| request.0), &*code.name(), text));
    }

    fn reply(&mut self, request: RequestNumber, payload: &[u8]) {
        self.tell(("reply", request.0, self.bytes(payload)));
    }

    fn failed(&mut self, request: RequestNumber, failure: &Failure<'_>) {
        let (code, text) = match failure {
            Failure::Refused { code, text, .. } | Failure::Left { code, text } => {
                (Some(code.name()), &**text)
            }
            Failure::Lost => (None, "the connection was lost; it is unknown whether it was done"),
            Failure::Closed => (None, "the connection ended before the answer came"),
        };
        self.tell(("failed", request.0, code.as_deref(), text));
    }

    fn event(&mut self, event: &RoomEvent<'_>) {
        let name = match &event.message {
            MessageRef::Name(name) => &**name,
            MessageRef::Index(_) => "",
        };
        self.tell(("event", event.room.0, name, self.bytes(&event.payload)));
    }

    fn missed(&mut self, room: RoomNumber, events: u64) {
        self.tell(("missed", room.0, events));
    }

    fn update(&mut self, room: RoomNumber, update: &Update<'_>) -> Result<(), DecodeError> {
        let py = self.events.py();
        let Some(copy) = self.rooms.copies.get_mut(&room.0) else { return Ok(()) };
        let mut changes: Vec<Told> = Vec::new();
        let tell = |change: Change| changes.push(told(py, &change));
        match (update.kind, self.rooms.watched.contains(&room.0)) {
            (UpdateKind::Snapshot, true) => copy.snapshot_with(update.body, tell)?,
            (UpdateKind::Snapshot, false) => copy.snapshot(update.body)?,
            (UpdateKind::Patch, true) => copy.patch_with(update.body, tell)?,
            (UpdateKind::Patch, false) => copy.patch(update.body)?,
        }
        self.tell(("state", room.0, update.version, changes));
        Ok(())
    }

    fn check(&mut self, room: RoomNumber, digest: u64) -> bool {
        self.rooms.copies.get(&room.0).is_none_or(|copy| copy.digest() == digest)
    }

    fn out_of_step(&mut self, room: RoomNumber, why: &OutOfStep) {
        if let OutOfStep::NoSnapshot(error) = why {
            self.tell(("error", room.0, "", error.to_string()));
        }
    }

    fn error(&mut self, room: Option<RoomNumber>, code: ErrorCode, text: &str) {
        self.tell(("error", room.map(|room| room.0), &*code.name(), text));
    }

    fn retry_after(&mut self, retry_after: Duration) {
        self.tell(("retry_after", retry_after.as_secs_f64()));
    }

    fn goodbye(&mut self, code: ErrorCode, text: &str) {
        self.tell(("goodbye", &*code.name(), text));
    }

    fn closed(&mut self, error: Option<&ClientError>) {
        self.tell(("closed", error.map(ToString::to_string)));
    }
}

fn told(py: Python<'_>, change: &Change) -> Told {
    let step = |step: &PathStep| -> Option<Py<PyAny>> {
        match step {
            PathStep::Name(name) => Some((&**name).into_pyobject(py).ok()?.into_any().unbind()),
            PathStep::Index(index) => Some(index.into_pyobject(py).ok()?.into_any().unbind()),
        }
    };
    let kind = match change.kind {
        ChangeKind::Entered => "entered",
        ChangeKind::Left => "left",
        ChangeKind::Changed => "changed",
        ChangeKind::Moved { .. } => "moved",
    };
    let text = |value: &Option<serde_json::Value>| value.as_ref().map(ToString::to_string);
    (
        change.path.steps().iter().filter_map(step).collect(),
        kind,
        text(&change.old),
        text(&change.new),
    )
}

fn transport(url: &Url) -> PyResult<Transport> {
    let Some((host, target)) = url.web_socket.clone() else { return Ok(Transport::Native) };
    let (mut key, mut seed) = ([0; 16], [0; 16]);
    for bytes in [&mut key, &mut seed] {
        getrandom::fill(bytes).map_err(|error| PyOSError::new_err(error.to_string()))?;
    }
    Ok(Transport::WebSocket { host, target, key, masks: Masks::seeded(seed) })
}

fn refused(error: CommandError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

fn time(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

impl Core {
    /// Does something with the client, and returns what happened.
    fn happened<'py>(
        &mut self,
        py: Python<'py>,
        act: impl FnOnce(&mut Client, &mut Sink<'_, 'py>),
    ) -> PyResult<Bound<'py, PyList>> {
        let events = PyList::empty(py);
        let mut sink = Sink { events: events.clone(), rooms: &mut self.rooms, failed: Ok(()) };
        act(&mut self.client, &mut sink);
        sink.failed?;
        Ok(events)
    }
}

#[pymethods]
impl Core {
    #[new]
    fn new(url: &str, name: String, token: Vec<u8>) -> PyResult<Self> {
        let url: Url = url.parse().map_err(|error| PyValueError::new_err(format!("{error}")))?;
        let config =
            ClientConfig { name, token, ..ClientConfig::new(Format::Json, transport(&url)?) };
        let client =
            Client::new(config).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Self { client, url, rooms: Rooms::default() })
    }

    /// Where to connect: host, port, and whether by TLS.
    #[getter]
    fn address(&self) -> (&str, &str, bool) {
        let port = self.url.authority.rsplit(':').next().unwrap_or_default();
        (self.url.host(), port, self.url.is_secure)
    }

    /// Goes on over another connection.
    fn reconnect(&mut self) -> PyResult<()> {
        let transport = transport(&self.url)?;
        self.client.reconnect(transport).map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Takes received bytes.
    fn received<'py>(&mut self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyList>> {
        let mut bytes = bytes.to_vec();
        self.happened(py, |client, sink| client.received(&mut bytes, sink))
    }

    /// Takes the time, in seconds since any fixed moment.
    fn advance<'py>(&mut self, py: Python<'py>, now: f64) -> PyResult<Bound<'py, PyList>> {
        self.happened(py, |client, sink| client.advance(time(now), sink))
    }

    /// The connection has ended.
    fn ended<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.happened(py, |client, sink| client.ended(sink))
    }

    /// There will be no other connection.
    fn give_up<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        self.happened(py, |client, sink| client.give_up(sink))
    }

    /// When to call `advance` again.
    #[getter]
    fn due_at(&self) -> Option<f64> {
        self.client.due_at().map(|due| due.as_secs_f64())
    }

    /// How long the node keeps the session and its seats, in seconds.
    #[getter]
    fn grace(&self) -> f64 {
        self.client.shortest_grace().as_secs_f64()
    }

    #[getter]
    fn is_away(&self) -> bool {
        self.client.is_away()
    }

    #[getter]
    fn is_finished(&self) -> bool {
        self.client.is_finished()
    }

    /// The bytes to send.
    fn take_output<'py>(&mut self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut out = Vec::new();
        self.client.take_output(&mut out);
        PyBytes::new(py, &out)
    }

    fn join(&mut self, id: &str) -> PyResult<u32> {
        self.client.join(id).map(|request| request.0).map_err(refused)
    }

    fn join_by_key(&mut self, room_type: &str, key: &str) -> PyResult<u32> {
        self.client.join_by_key(room_type, key).map(|request| request.0).map_err(refused)
    }

    fn join_or_create(
        &mut self,
        room_type: &str,
        key: Option<&str>,
        options: &[u8],
    ) -> PyResult<u32> {
        match key {
            Some(key) => self.client.join_or_create_by_key(room_type, key, options),
            None => self.client.join_or_create(room_type, options),
        }
        .map(|request| request.0)
        .map_err(refused)
    }

    fn create(
        &mut self,
        room_type: &str,
        private: bool,
        code: bool,
        key: Option<String>,
        options: &[u8],
    ) -> PyResult<u32> {
        let creation = Creation::new();
        let creation = if private { creation.private() } else { creation };
        let creation = if code { creation.code() } else { creation };
        let creation = match key {
            Some(key) => creation.key(key),
            None => creation,
        };
        self.client.create(room_type, &creation, options).map(|request| request.0).map_err(refused)
    }

    fn leave(&mut self, room: u32) -> PyResult<u32> {
        self.client.leave(RoomNumber(room)).map(|request| request.0).map_err(refused)
    }

    fn request(&mut self, room: u32, name: &str, payload: &[u8]) -> PyResult<u32> {
        self.client
            .request(RoomNumber(room), 0, name, payload)
            .map(|request| request.0)
            .map_err(refused)
    }

    fn send(&mut self, room: u32, name: &str, payload: &[u8]) -> PyResult<()> {
        self.client.send(RoomNumber(room), 0, name, payload).map_err(refused)
    }

    fn goodbye(&mut self) {
        self.client.goodbye();
    }

    /// The copy of a room's state.
    fn state(&self, room: u32) -> Option<String> {
        self.rooms.copies.get(&room).map(|copy| copy.state().to_string())
    }

    /// Has changes of a room reported, place by place.
    fn watch(&mut self, room: u32) {
        self.rooms.watched.insert(room);
    }
}
