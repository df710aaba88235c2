//! A node's client, without I/O: bytes and time in; events, copies of states and bytes out.

mod check;
mod copy;
mod event;
mod route;
mod values;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use playfield_client::session::{
    Build, ClientConfig, CommandError, Creation, Masks, Patience, Position, Reach, Session, Step,
    SubscriptionNumber, Target, Transport, Url,
};
use playfield_wire::{ErrorCode, RequestNumber, RoomNumber};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyBytes;

pub use copy::RoomCopy;
pub(crate) use event::Event;
pub use route::Route;

use event::Copies;

/// A client of a node. Values come in as JSON text, and are sent in `packed`. Any thread may use
/// it.
#[pyclass(frozen, module = "playfield._playfield")]
#[derive(Debug)]
pub struct Core {
    /// The URL that the program has given, and the node that the session begins at: that URL, or
    /// one that a redirect has named.
    url: Url,
    node: Url,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    client: Session,
    copies: Copies,
}

fn parsed(url: &str) -> PyResult<Url> {
    url.parse().map_err(|error| PyValueError::new_err(format!("{error}")))
}

fn transport(url: &Url) -> PyResult<Transport> {
    let Some((host, target)) = url.web_socket.clone() else { return Ok(Transport::Native) };
    let (mut key, mut seed) = ([0; 16], [0; 16]);
    for bytes in [&mut key, &mut seed] {
        getrandom::fill(bytes).map_err(|error| PyOSError::new_err(error.to_string()))?;
    }
    Ok(Transport::WebSocket { host, target, key, masks: Masks::seeded(seed) })
}

/// Why a command was not queued: as the package's own exception, if the protocol has a code for it.
fn refused(error: CommandError) -> PyErr {
    let code = match error {
        CommandError::TooLarge { .. } => ErrorCode::TooLarge,
        CommandError::Busy { .. } => ErrorCode::Busy,
        CommandError::NotJoined { .. } => ErrorCode::NotJoined,
        CommandError::Unconfirmed { .. } | CommandError::Subscriptions { .. } => ErrorCode::Limit,
        CommandError::Away => ErrorCode::ConnectionLost,
        CommandError::Closed => {
            let with = ("the client is closed", ErrorCode::Left.name());
            return Python::attach(|py| exception(py, "SessionEnded", with));
        }
        // The protocol has no code for what the node never hears of.
        _ => return Python::attach(|py| exception(py, "Refused", (py.None(), error.to_string()))),
    };
    Python::attach(|py| exception(py, "Refused", (code.name(), error.to_string())))
}

/// Returns a mismatch with the node's schema as an exception of the package.
fn mismatch(py: Python<'_>, what: String) -> PyErr {
    exception(py, "SchemaError", (what,))
}

fn exception<'py>(py: Python<'py>, name: &str, with: impl PyCallArgs<'py>) -> PyErr {
    let class = py.import("playfield._errors").and_then(|module| module.getattr(name));
    match class.and_then(|class| class.call1(with)) {
        Ok(error) => PyErr::from_value(error),
        Err(error) => error,
    }
}

fn time(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// A duration; one that is too long, or infinite, is as long as can be.
fn limit(seconds: f64) -> Duration {
    const LONGEST: Duration = Duration::from_secs(u32::MAX as u64);
    match Duration::try_from_secs_f64(seconds) {
        Ok(duration) => duration.min(LONGEST),
        Err(_) if seconds > 0.0 => LONGEST,
        Err(_) => Duration::ZERO,
    }
}

fn pairs(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
    pairs.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

fn position(since: Option<(u64, u64)>) -> Option<Position> {
    since.map(|(epoch, offset)| Position { epoch, offset })
}

impl Core {
    /// The node to dial: at first, or for a client that is away.
    fn dials<'a>(&'a self, client: &'a Session) -> &'a Url {
        let again = client.is_away().then(|| client.dial_to().unwrap_or(&self.url));
        again.unwrap_or(&self.node)
    }

    fn inner<'a>(&'a self, py: Python<'_>) -> MutexGuard<'a, Inner> {
        self.inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends a request, and returns its number.
    fn ask(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&mut Session) -> Result<RequestNumber, CommandError>,
    ) -> PyResult<u32> {
        ask(&mut self.inner(py).client).map(|request| request.0).map_err(refused)
    }
}

#[pymethods]
impl Core {
    /// Times are in seconds, since any fixed moment. `node` is the address of a redirect, if the
    /// session begins there. `patience` has the times to restore a lost connection, of an attempt,
    /// and of the first wait and the longest.
    #[new]
    #[pyo3(signature = (url, node, name, token, *, renews_token, patience))]
    fn new(
        url: &str,
        node: Option<&str>,
        name: String,
        token: Vec<u8>,
        renews_token: bool,
        patience: (f64, f64, (f64, f64)),
    ) -> PyResult<Self> {
        let url = parsed(url)?;
        let node = node.map_or_else(|| Ok(url.clone()), parsed)?;
        let (reconnect_timeout, timeout, (backoff_first, backoff_most)) = patience;
        let patience = Patience {
            reconnect_timeout: limit(reconnect_timeout),
            timeout: limit(timeout),
            backoff_first: limit(backoff_first),
            backoff_most: limit(backoff_most),
        };
        let mut seed = [0; 16];
        // Without random numbers the waits are only less random.
        let _ = getrandom::fill(&mut seed);
        let config = ClientConfig {
            name,
            token,
            resumable: !patience.reconnect_timeout.is_zero(),
            patience,
            renews_token,
            seed,
            redirects: Some(Reach::by(&node, true)),
            ..ClientConfig::new(transport(&node)?)
        };
        let client =
            Session::new(config).map_err(|error| PyValueError::new_err(error.to_string()))?;
        let inner = Inner { client, copies: Copies::default() };
        Ok(Self { url, node, inner: Mutex::new(inner) })
    }

    /// Returns the address to connect to: host, port, and whether by TLS.
    #[getter]
    fn address(&self, py: Python<'_>) -> (String, String, bool) {
        let url = self.dials(&self.inner(py).client).clone();
        let port = url.authority.rsplit(':').next().unwrap_or_default();
        (url.host().to_owned(), port.to_owned(), url.is_secure)
    }

    /// Says whether the session is at the node with this address.
    fn is_at(&self, py: Python<'_>, address: &str) -> PyResult<bool> {
        let (address, inner) = (parsed(address)?, self.inner(py));
        let own = inner.client.addresses();
        Ok(own.contains(&address) || own.is_empty() && address == self.node)
    }

    /// Goes on over another connection.
    fn reconnect(&self, py: Python<'_>) -> PyResult<()> {
        let client = &mut self.inner(py).client;
        let transport = transport(self.dials(client))?;
        let reconnected = client.reconnect(transport);
        reconnected.map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// Takes received bytes. Poll until there is no event after each call that takes the time or
    /// tells of the connection.
    fn received(&self, py: Python<'_>, now: f64, bytes: &[u8]) {
        let client = &mut self.inner(py).client;
        client.advance(time(now));
        client.received(bytes);
    }

    /// The next event.
    fn poll(&self, py: Python<'_>) -> PyResult<Option<Event>> {
        let Inner { client, copies } = &mut *self.inner(py);
        while let Some(event) = client.poll_event() {
            if let Some(event) = Event::of(py, event, copies)? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// Takes the time.
    fn advance(&self, py: Python<'_>, now: f64) {
        self.inner(py).client.advance(time(now));
    }

    /// The connection has ended.
    fn ended(&self, py: Python<'_>, now: f64) {
        let client = &mut self.inner(py).client;
        client.advance(time(now));
        client.ended();
    }

    /// There will be no other connection.
    fn give_up(&self, py: Python<'_>) {
        self.inner(py).client.give_up();
    }

    /// When to call `advance` again.
    #[getter]
    fn due_at(&self, py: Python<'_>) -> Option<f64> {
        self.inner(py).client.due_at().map(|due| due.as_secs_f64())
    }

    // Restoring a lost connection.

    /// The next step of a client that is away: to `wait` until `due_at`, to get a `token`
    /// (`set_token`), or to `dial` (`reconnect`), within so many seconds. A step that fails is an
    /// attempt that has failed.
    fn step(&self, py: Python<'_>, now: f64) -> (&'static str, f64) {
        let client = &mut self.inner(py).client;
        client.advance(time(now));
        match client.next_step() {
            Step::Wait => ("wait", 0.0),
            Step::Token(limit) => ("token", limit.as_secs_f64()),
            Step::Dial(limit) => ("dial", limit.as_secs_f64()),
        }
    }

    /// Returns whether the session gives up.
    fn attempt_failed(&self, py: Python<'_>, now: f64) -> bool {
        let client = &mut self.inner(py).client;
        client.advance(time(now));
        client.attempt_failed()
    }

    /// Returns the time that the attempts took.
    #[getter]
    fn tried(&self, py: Python<'_>) -> f64 {
        self.inner(py).client.tried().as_secs_f64()
    }

    fn set_token(&self, py: Python<'_>, token: Vec<u8>) {
        self.inner(py).client.set_token(token);
    }

    #[getter]
    fn is_away(&self, py: Python<'_>) -> bool {
        self.inner(py).client.is_away()
    }

    #[getter]
    fn is_finished(&self, py: Python<'_>) -> bool {
        self.inner(py).client.is_finished()
    }

    /// Whether messages would be refused, because too much is unconfirmed.
    #[getter]
    fn is_full(&self, py: Python<'_>) -> bool {
        self.inner(py).client.is_full()
    }

    /// Returns the number of messages without an answer that the node has not confirmed.
    #[getter]
    fn unconfirmed_sends(&self, py: Python<'_>) -> u64 {
        self.inner(py).client.unconfirmed_sends()
    }

    /// The bytes to send.
    fn take_output<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut out = Vec::new();
        self.inner(py).client.take_output(&mut out);
        PyBytes::new(py, &out)
    }

    fn goodbye(&self, py: Python<'_>) {
        self.inner(py).client.goodbye();
    }

    fn ping(&self, py: Python<'_>) -> PyResult<u64> {
        self.inner(py).client.ping().map_err(refused)
    }

    // Rooms.

    fn list(
        &self,
        py: Python<'_>,
        room_type: Option<&str>,
        filter: Vec<(String, String)>,
        limit: u32,
    ) -> PyResult<u32> {
        self.ask(py, |client| client.list(room_type, &pairs(&filter), limit))
    }

    fn schema(&self, py: Python<'_>, room_type: &str) -> PyResult<u32> {
        self.ask(py, |client| client.schema(room_type))
    }

    fn join(&self, py: Python<'_>, id: &str) -> PyResult<u32> {
        self.enter(py, Target::Join { id: id.to_owned() })
    }

    fn join_by_key(&self, py: Python<'_>, room_type: &str, key: &str) -> PyResult<u32> {
        let (room_type, key) = (room_type.to_owned(), key.to_owned());
        self.enter(py, Target::JoinByKey { room_type, key })
    }

    fn join_or_create(
        &self,
        py: Python<'_>,
        room_type: &str,
        key: Option<&str>,
        options: &[u8],
    ) -> PyResult<u32> {
        let (room_type, key) = (room_type.to_owned(), key.map(str::to_owned));
        self.enter(py, Target::JoinOrCreate { room_type, key, options: options.to_vec() })
    }

    fn create(
        &self,
        py: Python<'_>,
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
        let room_type = room_type.to_owned();
        self.enter(py, Target::Create { room_type, creation, options: options.to_vec() })
    }

    fn leave(&self, py: Python<'_>, room: u32) -> PyResult<u32> {
        self.ask(py, |client| client.leave(RoomNumber(room)))
    }

    fn request(
        &self,
        py: Python<'_>,
        room: u32,
        copy: &RoomCopy,
        name: &str,
        payload: &[u8],
    ) -> PyResult<u32> {
        let (index, payload) = copy.message(py, RoomNumber(room), name, payload)?;
        self.ask(py, |client| client.request(RoomNumber(room), index, &payload))
    }

    fn send(
        &self,
        py: Python<'_>,
        room: u32,
        copy: &RoomCopy,
        name: &str,
        payload: &[u8],
    ) -> PyResult<()> {
        let (index, payload) = copy.message(py, RoomNumber(room), name, payload)?;
        self.inner(py).client.send(RoomNumber(room), index, &payload).map_err(refused)
    }

    // Channels.

    fn subscribe(
        &self,
        py: Python<'_>,
        channel: &str,
        since: Option<(u64, u64)>,
        presence: bool,
    ) -> PyResult<u32> {
        let client = &mut self.inner(py).client;
        let subscription = client.subscribe(channel, position(since), presence);
        subscription.map(|subscription| subscription.0).map_err(refused)
    }

    fn unsubscribe(&self, py: Python<'_>, subscription: u32) {
        self.inner(py).client.unsubscribe(SubscriptionNumber(subscription));
    }

    /// The epoch and the offset that a subscription has reached.
    fn position(&self, py: Python<'_>, subscription: u32) -> Option<(u64, u64)> {
        let position = self.inner(py).client.position(SubscriptionNumber(subscription));
        position.map(|position| (position.epoch, position.offset))
    }

    /// Returns the number of a request, if it is to be confirmed.
    fn publish(
        &self,
        py: Python<'_>,
        channel: &str,
        message: &[u8],
        confirm: bool,
    ) -> PyResult<Option<u32>> {
        let request = self.inner(py).client.publish(channel, message, confirm);
        request.map(|request| request.map(|request| request.0)).map_err(refused)
    }

    fn members(&self, py: Python<'_>, channel: &str) -> PyResult<u32> {
        self.ask(py, |client| client.members(channel))
    }

    fn history(
        &self,
        py: Python<'_>,
        channel: &str,
        since: Option<(u64, u64)>,
        limit: u32,
    ) -> PyResult<u32> {
        self.ask(py, |client| client.history(channel, position(since), limit))
    }

    // Devices.

    fn register(
        &self,
        py: Python<'_>,
        device: &str,
        metadata: Vec<(String, String)>,
        tags: Vec<String>,
    ) -> PyResult<u32> {
        let tags: Vec<_> = tags.iter().map(String::as_str).collect();
        self.ask(py, |client| client.register(device, &pairs(&metadata), &tags))
    }

    /// Returns the number of a request, if there is to be a reply.
    fn report(&self, py: Python<'_>, message: &[u8], reply: bool) -> PyResult<Option<u32>> {
        let request = self.inner(py).client.report(message, reply).map_err(refused)?;
        Ok(request.map(|request| request.0))
    }

    /// Answers a command by a payload, or by why there is none.
    fn answer(
        &self,
        py: Python<'_>,
        command: u64,
        message: &[u8],
        error: Option<&str>,
    ) -> PyResult<()> {
        let answer = error.map_or(Ok(message), Err);
        self.inner(py).client.answer(command, answer).map_err(refused)
    }
}

impl Core {
    fn reach(&self, py: Python<'_>) -> Reach {
        self.inner(py).client.reach().unwrap_or_else(|| Reach::by(&self.node, true))
    }

    /// Asks to enter a room, whose state is copied from then on.
    fn enter(&self, py: Python<'_>, target: Target) -> PyResult<u32> {
        let Inner { client, copies } = &mut *self.inner(py);
        let copy = RoomCopy::default();
        let asked = client.enter(target, Build::Any, Box::new(copy.clone()));
        let request = asked.map_err(refused)?;
        copies.insert(request, copy);
        Ok(request.0)
    }
}
