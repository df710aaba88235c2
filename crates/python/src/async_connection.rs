//! A connection on an event loop.

use std::os::fd::AsRawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use playfield_websocket::Opcode;
use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyRuntimeError, PySystemExit};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::{MutexExt, PyOnceLock};
use pyo3::types::{PyBytes, PyString};

use crate::exit;
use crate::handshake::Handshake;
use crate::message::{Payload, converted};
use crate::receive::{Done, Receive, Wakeup, Wanted};
use crate::socket;
use crate::stream::Stream;
use crate::tls::{About, Tls};

/// Once this many bytes wait, they are written without waiting for the end of the loop's turn: the
/// peer works on them while more are encoded. Measured with 100 messages of 512 B: 64 KiB takes
/// from 1.1 to 1.6 times as long, and 8 KiB, two more system calls, up to 1.1 times.
const WRITE_BYTES: usize = 16 << 10;

/// A connection that has written nothing for this long is idle: what is sent is written at once.
const IDLE: Duration = Duration::from_micros(100);

/// The part of an asynchronous connection that runs for each message. `playfield.websocket` has a
/// subclass, whose methods this one calls: `_closed_error`, `_concurrency_error`, `_send_slowly`,
/// `_wait_drained`, `_drained`, `_write_failed`, `_pong`, `_closing`, `_callback_failed` and `_lost`.
#[pyclass(frozen, subclass, weakref, module = "playfield._playfield")]
#[derive(Debug)]
pub struct AsyncConnection {
    event_loop: Py<PyAny>,
    queue_max: usize,
    write_limit: usize,
    /// Messages go to `on_message`, and nobody receives.
    calls_back: bool,
    /// The number of forks before this connection was made. The child of a later one must leave the
    /// socket alone.
    forks: usize,
    inner: Mutex<Stream>,
}

/// The next step of a receiver.
pub(crate) enum Next<'py> {
    Message(Bound<'py, PyAny>),
    Wait(Py<Wakeup>),
}

impl AsyncConnection {
    pub(crate) fn event_loop<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.event_loop.bind(py)
    }

    fn inner(&self, py: Python<'_>) -> MutexGuard<'_, Stream> {
        let mut inner = self.inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner);
        if self.forks != exit::forks() {
            inner.leave();
        }
        inner
    }

    /// Returns what is wanted next, or what to wait for; `own` is what the caller has waited for
    /// before.
    pub(crate) fn next<'py>(
        slf: &Bound<'py, Self>,
        own: Option<Py<Wakeup>>,
        decode: Option<bool>,
        wanted: Wanted,
    ) -> PyResult<Next<'py>> {
        let py = slf.py();
        let this = slf.get();
        // A task that finds messages would run on.
        exit::check()?;
        let mut inner = this.inner(py);
        let is_own = |waiter: &Py<Wakeup>| own.as_ref().is_some_and(|own| own.is(waiter));
        let waits = |waiter: &Py<Wakeup>| !is_own(waiter) && !waiter.get().is_done(py);
        // The rest of a message is for who has received its start.
        let is_anothers = inner.inbox.is_streamed() && wanted != Wanted::Rest;
        if is_anothers && inner.is_ended() {
            drop(inner);
            return Err(Self::end(slf));
        }
        if is_anothers || inner.waiter.as_ref().is_some_and(waits) {
            drop(inner);
            let streams = matches!(wanted, Wanted::Fragment | Wanted::Rest);
            let name = if streams { "recv_streaming" } else { "recv" };
            let error = Self::call(slf, intern!(py, "_concurrency_error"), (name,))?;
            return Err(PyErr::from_value(error));
        }
        let next = match wanted {
            Wanted::Message => inner.inbox.pop(py),
            Wanted::Fragment | Wanted::Rest => match inner.inbox.pop_fragment(py) {
                Some(fragment) => Some(fragment.into_pyobject(py)?.into_any()),
                None => None,
            },
        };
        if let Some(next) = next {
            let resumes = inner.paused && inner.inbox.len() <= this.queue_max / 4;
            Self::resume(slf, inner, resumes)?;
            return Ok(Next::Message(converted(next, decode)?));
        }
        if inner.is_ended() {
            drop(inner);
            return Err(Self::end(slf));
        }
        let wakeup = Py::new(py, Wakeup::new(slf.clone().unbind()))?;
        let before = inner.waiter.replace(wakeup.clone_ref(py));
        inner.waits_for_fragment = matches!(wanted, Wanted::Fragment | Wanted::Rest);
        if inner.paused {
            // The rest of a message fills the queue.
            Self::resume(slf, inner, true)?;
            inner = this.inner(py);
        }
        // The task gives way to the loop now, so nothing more is sent in this turn.
        let waits = !inner.blocked && inner.unsent_bytes() > 0 && inner.flush(py);
        Self::after_flush(slf, inner, waits)?;
        drop(before);
        Ok(Next::Wait(wakeup))
    }

    /// Tells a receiver that the connection is closed.
    fn end(slf: &Bound<'_, Self>) -> PyErr {
        let error = Self::call(slf, intern!(slf.py(), "_closed_error"), ());
        error.map_or_else(|error| error, PyErr::from_value)
    }

    /// Calls a method of the subclass.
    fn call<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
        arguments: impl PyCallArgs<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        exit::call(|| slf.call_method1(name, arguments))
    }

    /// Calls a method of the event loop.
    fn call_loop<'py>(
        &self,
        name: &Bound<'py, PyString>,
        arguments: impl PyCallArgs<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        exit::call(|| self.event_loop(name.py()).call_method1(name, arguments))
    }

    /// A receiver was canceled. It may be so by a signal handler, while the connection works; the
    /// wakeup says itself that it is done.
    pub(crate) fn forget(&self, wakeup: &Bound<'_, Wakeup>) {
        let Ok(mut inner) = self.inner.try_lock() else { return };
        let waiter = match &inner.waiter {
            Some(waiter) if waiter.is(wakeup) => inner.waiter.take(),
            _ => None,
        };
        drop(inner);
        drop(waiter);
    }

    /// Reads again, if it `resumes`.
    fn resume(
        slf: &Bound<'_, Self>,
        mut inner: MutexGuard<'_, Stream>,
        resumes: bool,
    ) -> PyResult<()> {
        if !resumes {
            return Ok(());
        }
        inner.paused = false;
        let number = inner.socket.as_ref().map(AsRawFd::as_raw_fd);
        drop(inner);
        number.map_or(Ok(()), |number| Self::watch_reads(slf, number))
    }

    fn watch_reads(slf: &Bound<'_, Self>, number: i32) -> PyResult<()> {
        let py = slf.py();
        let readable = slf.getattr(intern!(py, "_readable"))?;
        slf.get().call_loop(intern!(py, "add_reader"), (number, readable))?;
        Ok(())
    }

    /// After a flush: waits for the kernel if it `waits`, and lets senders go on.
    fn after_flush(
        slf: &Bound<'_, Self>,
        mut inner: MutexGuard<'_, Stream>,
        waits: bool,
    ) -> PyResult<()> {
        let py = slf.py();
        let this = slf.get();
        let write_error = inner.write_error.take();
        let drained = inner.drains && !inner.broken && inner.unsent_bytes() <= this.write_limit / 4;
        inner.drains &= !drained;
        let blocks = waits && !inner.blocked;
        inner.blocked |= waits;
        let watched = inner.socket.as_ref().filter(|_| blocks).map(AsRawFd::as_raw_fd);
        drop(inner);
        if let Some(number) = watched {
            let writable = slf.getattr(intern!(py, "_writable"))?;
            this.call_loop(intern!(py, "add_writer"), (number, writable))?;
        }
        if let Some(error) = write_error {
            Self::call(slf, intern!(py, "_write_failed"), (error,))?;
        } else if drained {
            Self::call(slf, intern!(py, "_drained"), ())?;
        }
        Ok(())
    }

    /// After bytes were taken, or the stream has ended: answers, reports and wakes.
    fn after_read(
        slf: &Bound<'_, Self>,
        mut inner: MutexGuard<'_, Stream>,
        pongs: Vec<Vec<u8>>,
    ) -> PyResult<()> {
        let py = slf.py();
        let this = slf.get();
        inner.wrote_at = None;
        let waits =
            !inner.blocked && !inner.scheduled && inner.unsent_bytes() > 0 && inner.flush(py);
        let is_over = inner.is_ended() && !inner.closing;
        inner.closing |= is_over;
        let waiter = if inner.has_news() { inner.waiter.take() } else { None };
        Self::after_flush(slf, inner, waits)?;
        for pong in pongs {
            Self::call(slf, intern!(py, "_pong"), (PyBytes::new(py, &pong),))?;
        }
        if is_over {
            Self::call(slf, intern!(py, "_closing"), ())?;
        }
        if this.calls_back {
            return Self::_deliver(slf);
        }
        match waiter {
            Some(waiter) => Wakeup::wake(waiter.bind(py)),
            None => Ok(()),
        }
    }

    /// The stream has ended.
    fn finish(slf: &Bound<'_, Self>, error: Option<PyErr>) -> PyResult<()> {
        let py = slf.py();
        let this = slf.get();
        let mut inner = this.inner(py);
        inner.say_goodbye();
        let Some(socket) = inner.socket.take() else { return Ok(()) };
        let number = socket.as_raw_fd();
        let (waiter, large) = (inner.waiter.take(), inner.large.take());
        inner.closing = true;
        drop(inner);
        let is_over = this.call_loop(intern!(py, "is_closed"), ())?.is_truthy()?;
        if !is_over {
            this.call_loop(intern!(py, "remove_reader"), (number,))?;
            this.call_loop(intern!(py, "remove_writer"), (number,))?;
        }
        drop((socket, large));
        Self::call(slf, intern!(py, "_lost"), (error,))?;
        // A task may be running: it has called `abort`.
        match waiter {
            Some(waiter) if !is_over => Wakeup::wake_later(waiter.bind(py)),
            _ => Ok(()),
        }
    }
}

#[pymethods]
impl AsyncConnection {
    #[new]
    #[pyo3(signature = (
        event_loop, socket, handshake, *, max_size, max_queue, write_limit, tls=None,
        on_message=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "named in Python")]
    fn new(
        event_loop: Py<PyAny>,
        socket: &Bound<'_, PyAny>,
        handshake: &Handshake,
        max_size: Option<usize>,
        max_queue: Option<usize>,
        write_limit: usize,
        tls: Option<Bound<'_, PyAny>>,
        on_message: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let calls_back = on_message.is_some();
        let inner = Stream::new(
            socket::adopt(socket)?,
            max_size.unwrap_or(usize::MAX),
            handshake.deflate(),
            tls.as_ref().map(Tls::new).transpose()?,
            on_message,
        );
        // There is always room for one message: else none would ever be read.
        let queue_max = max_queue.unwrap_or(usize::MAX).max(1);
        let (forks, inner) = (exit::forks(), Mutex::new(inner));
        Ok(Self { event_loop, queue_max, write_limit, calls_back, forks, inner })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)?;
        // It is locked only while the connection works, and then it is in use.
        let Ok(inner) = self.inner.try_lock() else { return Ok(()) };
        visit.call(&inner.on_message)?;
        visit.call(&inner.waiter)?;
        if let Some(tls) = &inner.tls {
            tls.traverse(&visit)?;
        }
        inner.inbox.objects().try_for_each(|message| visit.call(message))
    }

    fn __clear__(&self) {
        let Ok(mut inner) = self.inner.try_lock() else { return };
        let cleared = (inner.on_message.take(), inner.waiter.take());
        drop(inner);
        drop(cleared);
    }

    /// Takes what followed the handshake, and starts to read.
    fn _start(slf: &Bound<'_, Self>, received: &[u8]) -> PyResult<()> {
        let mut inner = slf.get().inner(slf.py());
        let number = inner.socket.as_ref().map(AsRawFd::as_raw_fd);
        drop(inner);
        if let Some(number) = number {
            Self::watch_reads(slf, number)?;
        }
        inner = slf.get().inner(slf.py());
        let queue_max = slf.get().queue_max;
        let tls = inner.tls.take();
        let mut received = inner.take(slf.py(), &mut received.to_vec(), queue_max)?;
        inner.tls = tls;
        // TLS may hold more that came with the handshake.
        let ended = match &inner.tls {
            Some(Tls::Rust(tls)) => tls.has_ended(slf.py()),
            _ => inner.take(slf.py(), &mut [], queue_max).map(|more| {
                received.pongs.extend(more.pongs);
                more.ended
            }),
        };
        Self::after_read(slf, inner, received.pongs)?;
        match ended {
            Ok(false) => Ok(()),
            Ok(true) => Self::finish(slf, None),
            Err(error) if error.is_instance_of::<PyOSError>(slf.py()) => {
                Self::finish(slf, Some(error))
            }
            // What a signal handler raises.
            Err(error) => Err(error),
        }
    }

    /// Called by the loop when there is something to read.
    fn _readable(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let this = slf.get();
        let mut inner = this.inner(py);
        let Some(socket) = &inner.socket else { return Ok(()) };
        if inner.is_full(this.queue_max) {
            let number = socket.as_raw_fd();
            inner.paused = true;
            drop(inner);
            this.call_loop(intern!(py, "remove_reader"), (number,))?;
            return Ok(());
        }
        match inner.receive(py, this.queue_max) {
            Ok(received) => {
                if received.some {
                    Self::after_read(slf, inner, received.pongs)?;
                } else {
                    drop(inner);
                }
                match received.failed {
                    None if !received.ended => Ok(()),
                    failed => Self::finish(slf, failed),
                }
            }
            Err(error) => {
                drop(inner);
                Self::finish(slf, Some(error))
            }
        }
    }

    /// Called by the loop when the kernel takes bytes again.
    fn _writable(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let this = slf.get();
        let mut inner = this.inner(py);
        let waits = inner.flush(py);
        let number = inner.socket.as_ref().map(AsRawFd::as_raw_fd);
        inner.blocked = waits;
        Self::after_flush(slf, inner, waits)?;
        if let (false, Some(number)) = (waits, number) {
            this.call_loop(intern!(py, "remove_writer"), (number,))?;
        }
        Ok(())
    }

    /// Passes each message to the program's callback.
    fn _deliver(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let this = slf.get();
        loop {
            let mut inner = this.inner(py);
            let Some(on_message) = &inner.on_message else { return Ok(()) };
            let on_message = on_message.clone_ref(py);
            let Some(message) = inner.inbox.pop(py) else { return Ok(()) };
            drop(inner);
            let Err(error) = exit::call(|| on_message.call1(py, (message,))) else { continue };
            exit::check()?;
            // As callbacks of a loop do: what ends the program passes.
            if !error.is_instance_of::<PyKeyboardInterrupt>(py)
                && !error.is_instance_of::<PySystemExit>(py)
            {
                Self::call(slf, intern!(py, "_callback_failed"), (error,))?;
                continue;
            }
            if this.inner(py).inbox.has_message() {
                // Should the loop run on, so do the messages.
                let deliver = slf.getattr(intern!(py, "_deliver"))?;
                this.call_loop(intern!(py, "call_soon"), (deliver,))?;
            }
            return Err(error);
        }
    }

    /// Called by the loop once per turn in which more than one message was sent.
    fn _flush(slf: &Bound<'_, Self>) -> PyResult<()> {
        let mut inner = slf.get().inner(slf.py());
        inner.scheduled = false;
        inner.wrote_at = None;
        if inner.blocked {
            return Ok(());
        }
        let waits = inner.flush(slf.py());
        Self::after_flush(slf, inner, waits)
    }

    /// Send a message: ``str`` as text, ``bytes``, ``bytearray`` and ``memoryview`` as binary; an
    /// iterable or asynchronous iterable of them is one message in fragments. ``text`` overrides
    /// the kind.
    ///
    /// The first message of a turn of the loop is written at once, those that follow together at
    /// the end of the turn. Await it to wait while more than ``write_limit`` bytes are unsent.
    ///
    /// Raises ``ConnectionClosed`` once the connection is closing, and ``TypeError`` for another
    /// type.
    #[pyo3(signature = (message, text=None))]
    fn send<'py>(
        slf: &Bound<'py, Self>,
        message: &Bound<'py, PyAny>,
        text: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let this = slf.get();
        let payload = Payload::of(message)?;
        let mut inner = this.inner(py);
        let payload = match payload {
            // A message whose rest will not come keeps nobody waiting: the connection is closing.
            Some(payload) if !inner.fragmenting || !inner.is_sendable() => payload,
            _ => {
                drop(inner);
                return Self::call(slf, intern!(py, "_send_slowly"), (message, text));
            }
        };
        if !inner.is_sendable() {
            drop(inner);
            return Err(Self::end(slf));
        }
        let opcode = payload.opcode(text)?;
        let parts = match inner.tls {
            Some(Tls::Object(_)) => None,
            _ => inner.writer.begin_parts(opcode, payload.as_bytes()),
        };
        let Some(mut parts) = parts else {
            inner.writer.message(opcode, payload.as_bytes());
            return Self::sent(slf, inner);
        };
        let mut waits = inner.blocked;
        loop {
            waits = waits || inner.flush(py);
            if !inner.writer.add_part(&mut parts) {
                return Self::sent(slf, inner);
            }
        }
    }

    /// Sends one fragment of a message.
    fn _send_fragment<'py>(
        slf: &Bound<'py, Self>,
        message: &Bound<'py, PyAny>,
        text: Option<bool>,
        first: bool,
        last: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let payload = Payload::required(message)?;
        let opcode = if first { payload.opcode(text)? } else { Opcode::Continuation };
        let mut inner = slf.get().inner(py);
        if !inner.is_sendable() {
            drop(inner);
            return Err(Self::end(slf));
        }
        inner.fragmenting = !last;
        inner.writer.fragment(opcode, last, payload.as_bytes());
        Self::sent(slf, inner)
    }

    /// Await the next message: ``str`` for text, ``bytes`` for binary; ``decode`` set to ``True``
    /// or ``False`` converts to ``str`` or ``bytes``.
    ///
    /// Raises ``ConnectionClosedOK`` or ``ConnectionClosedError`` once all messages are taken and
    /// the connection is closed, and ``ConcurrencyError`` if another task waits. A canceled call
    /// loses no message. Raises ``RuntimeError`` where ``on_message`` takes the messages.
    #[pyo3(signature = (decode=None))]
    fn recv(slf: &Bound<'_, Self>, decode: Option<bool>) -> PyResult<Receive> {
        Self::receiver(slf, decode, Wanted::Message)
    }

    /// Awaits the `first` fragment of a message or another one: the fragment, and whether it ends
    /// its message.
    fn _recv_fragment(slf: &Bound<'_, Self>, first: bool) -> PyResult<Receive> {
        Self::receiver(slf, None, if first { Wanted::Fragment } else { Wanted::Rest })
    }

    /// The next message, or `None` if it is to be awaited.
    fn _take<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        // A task that finds messages would run on.
        exit::check()?;
        let mut inner = slf.get().inner(slf.py());
        // Whoever awaits makes a paused connection read again.
        if inner.paused || inner.inbox.is_streamed() {
            return Ok(None);
        }
        Ok(inner.inbox.pop(slf.py()))
    }

    /// Sends a Ping or a Pong, if the connection is open.
    fn _send_control<'py>(
        slf: &Bound<'py, Self>,
        ping: bool,
        payload: &[u8],
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut inner = slf.get().inner(slf.py());
        if !inner.is_sendable() {
            drop(inner);
            return Err(Self::end(slf));
        }
        inner.writer.control(if ping { Opcode::Ping } else { Opcode::Pong }, payload);
        Self::sent(slf, inner)
    }

    /// Sends a Close frame, if there was none.
    fn _send_close(slf: &Bound<'_, Self>, code: u16, reason: &str) -> PyResult<()> {
        let mut inner = slf.get().inner(slf.py());
        inner.writer.close(code, reason);
        inner.discards = true;
        let paused = std::mem::take(&mut inner.paused);
        if let (true, Some(socket)) = (paused, &inner.socket) {
            let number = socket.as_raw_fd();
            drop(inner);
            Self::watch_reads(slf, number)?;
            inner = slf.get().inner(slf.py());
        }
        if inner.blocked || inner.socket.is_none() {
            return Ok(());
        }
        let waits = inner.flush(slf.py());
        Self::after_flush(slf, inner, waits)
    }

    /// Ends the connection at once.
    fn _abort(slf: &Bound<'_, Self>) -> PyResult<()> {
        Self::finish(slf, None)
    }

    /// Whether the connection is lost.
    #[getter]
    fn _is_lost(&self, py: Python<'_>) -> bool {
        self.inner(py).socket.is_none()
    }

    /// The Close frames, `(received, sent, received_first, error, unsent_bytes)`.
    #[getter]
    fn _ending(&self, py: Python<'_>) -> EndingTuple {
        let inner = self.inner(py);
        ending(inner.writer.ending(), inner.unsent_bytes())
    }

    /// Returns what TLS has agreed on, `(version, cipher, key_bits, resumed, certificate)`; `None`
    /// without TLS, and where an `ssl.SSLObject` tells it.
    #[getter]
    fn _tls(&self, py: Python<'_>) -> Option<About> {
        self.inner(py).tls.as_ref()?.about(py)
    }

    /// The descriptor's number, or -1 once the connection is lost.
    fn fileno(&self, py: Python<'_>) -> i32 {
        self.inner(py).socket.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}

/// The parts of an ending from which Python makes exceptions.
pub(crate) type EndingTuple =
    (Option<(u16, String)>, Option<(u16, String)>, bool, Option<(u16, String)>, usize);

pub(crate) fn ending(ending: &crate::link::Ending, unsent_bytes: usize) -> EndingTuple {
    let error = ending.error.as_ref().map(|error| (error.close_code(), error.to_string()));
    (ending.received.clone(), ending.sent.clone(), ending.received_first, error, unsent_bytes)
}

impl AsyncConnection {
    fn receiver(slf: &Bound<'_, Self>, decode: Option<bool>, wanted: Wanted) -> PyResult<Receive> {
        if slf.get().calls_back {
            return Err(PyRuntimeError::new_err("on_message takes the messages: recv gets none"));
        }
        Ok(Receive::new(slf.clone().unbind(), decode, wanted))
    }

    /// Something to send was added: writes it now or at the end of the turn.
    fn sent<'a, 'py>(
        slf: &'a Bound<'py, Self>,
        mut inner: MutexGuard<'a, Stream>,
    ) -> PyResult<Bound<'py, PyAny>> {
        static DONE: PyOnceLock<Py<Done>> = PyOnceLock::new();
        let py = slf.py();
        let this = slf.get();
        if !inner.blocked {
            let is_busy = inner.wrote_at.is_some_and(|at| at.elapsed() < IDLE);
            if (is_busy || inner.scheduled) && inner.unsent_bytes() < WRITE_BYTES {
                if !inner.scheduled {
                    inner.scheduled = true;
                    drop(inner);
                    let flush = slf.getattr(intern!(py, "_flush"))?;
                    this.call_loop(intern!(py, "call_soon"), (flush,))?;
                    inner = this.inner(py);
                }
            } else {
                let waits = inner.flush(py);
                inner.wrote_at = Some(Instant::now());
                Self::after_flush(slf, inner, waits)?;
                inner = this.inner(py);
            }
        }
        if inner.broken {
            drop(inner);
            return Err(Self::end(slf));
        }
        if inner.unsent_bytes() > this.write_limit {
            inner.drains = true;
            drop(inner);
            return Self::call(slf, intern!(py, "_wait_drained"), ());
        }
        drop(inner);
        let done = DONE.get_or_try_init(py, || Py::new(py, Done {}))?;
        Ok(done.bind(py).clone().into_any())
    }
}
