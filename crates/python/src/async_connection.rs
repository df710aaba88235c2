//! A connection on an event loop.

use std::cell::Cell;
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use playfield_websocket::{Item, Opcode};
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::{MutexExt, PyOnceLock};
use pyo3::types::{PyBytes, PyString};
use rustix::io::Errno;

use crate::handshake::Handshake;
use crate::link::{Reader, Writer};
use crate::message::{Payload, converted};
use crate::receive::{Done, Receive, Wakeup};
use crate::socket;
use crate::tls::Tls;

/// How many bytes are read at a time, into a buffer that the connections of a thread share.
pub(crate) const READ_BYTES: usize = 256 << 10;

/// Once this many bytes wait, they are written without waiting for the end of the loop's turn.
const WRITE_BYTES: usize = 64 << 10;

/// A connection that has written nothing for this long is idle: what is sent is written at once.
const IDLE: Duration = Duration::from_micros(100);

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Lends the thread's read buffer.
pub(crate) fn with_scratch<R>(read: impl FnOnce(&mut Vec<u8>) -> R) -> R {
    let mut scratch = SCRATCH.take();
    if scratch.is_empty() {
        scratch.resize(READ_BYTES, 0);
    }
    let result = read(&mut scratch);
    SCRATCH.set(scratch);
    result
}

/// The part of an asynchronous connection that runs for each message. `playfield.websocket` has a
/// subclass, whose methods this one calls: `_closed_error`, `_end_of_iteration`, `_send_slowly`,
/// `_drained`, `_pong`, `_closing` and `_lost`.
#[pyclass(frozen, subclass, weakref, module = "playfield._playfield")]
#[derive(Debug)]
pub struct AsyncConnection {
    event_loop: Py<PyAny>,
    queue_max: usize,
    write_limit: usize,
    on_message: Option<Py<PyAny>>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    /// `None` once the connection is lost.
    socket: Option<OwnedFd>,
    reader: Reader,
    writer: Writer,
    tls: Option<Tls>,
    /// Encrypted bytes to send.
    cipher: Vec<u8>,
    queue: VecDeque<Py<PyAny>>,
    waiter: Option<Py<Wakeup>>,
    /// Reading has stopped because the queue is full.
    paused: bool,
    /// Something was written since the loop's last turn, as far as known.
    wrote_at: Option<Instant>,
    /// A flush at the end of the loop's turn is scheduled.
    scheduled: bool,
    /// The kernel's buffer is full: the loop says when it is not.
    blocked: bool,
    /// Somebody waits until less is unsent.
    drains: bool,
    /// A message is being sent in fragments.
    fragmenting: bool,
    /// `_closing` was called.
    closing: bool,
    /// We close the connection: what does not fit into the queue is dropped.
    discards: bool,
}

impl Inner {
    fn unsent_bytes(&self) -> usize {
        self.writer.unsent().len() + self.cipher.len()
    }

    fn is_sendable(&self) -> bool {
        self.socket.is_some() && self.writer.is_open()
    }

    fn is_ended(&self) -> bool {
        self.socket.is_none() || self.writer.is_over()
    }

    /// Writes what the kernel takes. Says whether to wait for the kernel.
    ///
    /// # Errors
    /// If TLS fails. A socket that fails says so again when it is read.
    fn flush(&mut self, py: Python<'_>) -> PyResult<bool> {
        let Some(socket) = &self.socket else {
            let rest = self.writer.unsent().len();
            self.writer.advance(rest);
            self.cipher = Vec::new();
            return Ok(false);
        };
        if let Some(tls) = &self.tls {
            let plain = self.writer.unsent();
            let bytes = plain.len();
            let cipher = tls.encrypt(py, plain)?;
            self.cipher.extend_from_slice(&cipher);
            self.writer.advance(bytes);
            while !self.cipher.is_empty() {
                match socket::write_now(socket, &self.cipher) {
                    Ok(bytes) => drop(self.cipher.drain(..bytes)),
                    Err(Errno::INTR) => {}
                    Err(Errno::AGAIN) => return Ok(true),
                    Err(_) => self.cipher = Vec::new(),
                }
            }
            return Ok(false);
        }
        while !self.writer.unsent().is_empty() {
            match socket::write_now(socket, self.writer.unsent()) {
                Ok(bytes) => self.writer.advance(bytes),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(true),
                Err(_) => {
                    let rest = self.writer.unsent().len();
                    self.writer.advance(rest);
                }
            }
        }
        Ok(false)
    }

    /// Takes received bytes. Returns the payloads of pongs, and whether the stream has ended.
    fn take(
        &mut self,
        py: Python<'_>,
        bytes: &mut [u8],
        queue_max: usize,
    ) -> PyResult<(Vec<Vec<u8>>, bool)> {
        let Self { reader, writer, queue, tls, discards, .. } = self;
        let queue_max = if *discards { queue_max } else { usize::MAX };
        let mut pongs = Vec::new();
        let mut read = |bytes: &mut [u8]| {
            let mut take = |item: Item<'_>| match item {
                Item::Text(_) | Item::Binary(_) if queue.len() >= queue_max => {}
                Item::Text(text) => queue.push_back(PyString::new(py, text).into_any().unbind()),
                Item::Binary(bytes) => queue.push_back(PyBytes::new(py, bytes).into_any().unbind()),
                Item::Ping(payload) => writer.control(Opcode::Pong, payload),
                Item::Pong(payload) => pongs.push(payload.to_vec()),
                Item::Close(close) => writer.closed_by_peer(close),
            };
            if let Err(error) = reader.read(bytes, &mut take) {
                writer.failed(error);
            }
        };
        let ended = match tls {
            None => {
                read(bytes);
                false
            }
            Some(tls) => tls.decrypt(py, bytes, &mut read)?,
        };
        Ok((pongs, ended))
    }
}

/// What a receiver is to do.
pub(crate) enum Next<'py> {
    Message(Bound<'py, PyAny>),
    Wait(Py<Wakeup>),
}

impl AsyncConnection {
    pub(crate) fn event_loop<'py>(&self, py: Python<'py>) -> &Bound<'py, PyAny> {
        self.event_loop.bind(py)
    }

    fn inner(&self, py: Python<'_>) -> MutexGuard<'_, Inner> {
        self.inner.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
    }

    /// The next message, or what to wait for; `own` is what the caller has waited for before.
    pub(crate) fn next<'py>(
        slf: &Bound<'py, Self>,
        own: Option<Py<Wakeup>>,
        decode: Option<bool>,
        iterates: bool,
    ) -> PyResult<Next<'py>> {
        let py = slf.py();
        let this = slf.get();
        let mut inner = this.inner(py);
        if let Some(message) = inner.queue.pop_front() {
            let resumes = inner.paused && inner.queue.len() <= this.queue_max / 4;
            if resumes {
                inner.paused = false;
            }
            let watched = inner.socket.as_ref().filter(|_| resumes).map(AsRawFd::as_raw_fd);
            drop(inner);
            if let Some(number) = watched {
                Self::watch_reads(slf, number)?;
            }
            return Ok(Next::Message(converted(message.into_bound(py), decode)?));
        }
        if inner.is_ended() {
            drop(inner);
            let name = if iterates {
                intern!(py, "_end_of_iteration")
            } else {
                intern!(py, "_closed_error")
            };
            return Err(PyErr::from_value(slf.call_method0(name)?));
        }
        let is_own = |waiter: &Py<Wakeup>| own.as_ref().is_some_and(|own| own.is(waiter));
        if inner.waiter.as_ref().is_some_and(|waiter| !is_own(waiter)) {
            drop(inner);
            return Err(PyErr::from_value(slf.call_method0(intern!(py, "_concurrency_error"))?));
        }
        let wakeup = Py::new(py, Wakeup::new(slf.clone().unbind()))?;
        let before = inner.waiter.replace(wakeup.clone_ref(py));
        // The task gives way to the loop now, so nothing more is sent in this turn.
        let waits = !inner.blocked && inner.unsent_bytes() > 0 && inner.flush(py)?;
        Self::after_flush(slf, inner, waits)?;
        drop(before);
        Ok(Next::Wait(wakeup))
    }

    /// A receiver was canceled.
    pub(crate) fn forget(&self, wakeup: &Bound<'_, Wakeup>) {
        let mut inner = self.inner(wakeup.py());
        let waiter = match &inner.waiter {
            Some(waiter) if waiter.is(wakeup) => inner.waiter.take(),
            _ => None,
        };
        drop(inner);
        drop(waiter);
    }

    fn watch_reads(slf: &Bound<'_, Self>, number: i32) -> PyResult<()> {
        let py = slf.py();
        let readable = slf.getattr(intern!(py, "_readable"))?;
        slf.get().event_loop(py).call_method1(intern!(py, "add_reader"), (number, readable))?;
        Ok(())
    }

    /// After a flush: waits for the kernel if it `waits`, and lets senders go on.
    fn after_flush(
        slf: &Bound<'_, Self>,
        mut inner: MutexGuard<'_, Inner>,
        waits: bool,
    ) -> PyResult<()> {
        let py = slf.py();
        let this = slf.get();
        let drained = inner.drains && inner.unsent_bytes() <= this.write_limit / 4;
        inner.drains &= !drained;
        let blocks = waits && !inner.blocked;
        inner.blocked |= waits;
        let watched = inner.socket.as_ref().filter(|_| blocks).map(AsRawFd::as_raw_fd);
        drop(inner);
        if let Some(number) = watched {
            let writable = slf.getattr(intern!(py, "_writable"))?;
            this.event_loop(py).call_method1(intern!(py, "add_writer"), (number, writable))?;
        }
        if drained {
            slf.call_method0(intern!(py, "_drained"))?;
        }
        Ok(())
    }

    /// After bytes were taken, or the stream has ended: answers, reports and wakes.
    fn after_read(
        slf: &Bound<'_, Self>,
        mut inner: MutexGuard<'_, Inner>,
        pongs: Vec<Vec<u8>>,
    ) -> PyResult<()> {
        let py = slf.py();
        let this = slf.get();
        inner.wrote_at = None;
        let waits =
            !inner.blocked && !inner.scheduled && inner.unsent_bytes() > 0 && inner.flush(py)?;
        let is_over = inner.is_ended() && !inner.closing;
        inner.closing |= is_over;
        let has_news = !inner.queue.is_empty() || inner.is_ended();
        let waiter = if has_news { inner.waiter.take() } else { None };
        Self::after_flush(slf, inner, waits)?;
        for pong in pongs {
            slf.call_method1(intern!(py, "_pong"), (PyBytes::new(py, &pong),))?;
        }
        if is_over {
            slf.call_method0(intern!(py, "_closing"))?;
        }
        if let Some(on_message) = &this.on_message {
            Self::call_back(slf, on_message.bind(py))?;
        }
        match waiter {
            Some(waiter) => Wakeup::wake(waiter.bind(py)),
            None => Ok(()),
        }
    }

    /// Passes each message to the program's callback.
    fn call_back(slf: &Bound<'_, Self>, on_message: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = slf.py();
        loop {
            let Some(message) = slf.get().inner(py).queue.pop_front() else { return Ok(()) };
            if let Err(error) = on_message.call1((message,)) {
                slf.call_method1(intern!(py, "_callback_failed"), (error,))?;
            }
        }
    }

    /// The stream has ended.
    fn finish(slf: &Bound<'_, Self>, error: Option<String>) -> PyResult<()> {
        let py = slf.py();
        let mut inner = slf.get().inner(py);
        let Some(socket) = inner.socket.take() else { return Ok(()) };
        let number = socket.as_raw_fd();
        let waiter = inner.waiter.take();
        inner.closing = true;
        drop(inner);
        let event_loop = slf.get().event_loop(py);
        if !event_loop.call_method0(intern!(py, "is_closed"))?.is_truthy()? {
            event_loop.call_method1(intern!(py, "remove_reader"), (number,))?;
            event_loop.call_method1(intern!(py, "remove_writer"), (number,))?;
        }
        drop(socket);
        slf.call_method1(intern!(py, "_lost"), (error,))?;
        match waiter {
            Some(waiter) => Wakeup::wake(waiter.bind(py)),
            None => Ok(()),
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
        let inner = Inner {
            socket: Some(socket::adopt(socket)?),
            reader: Reader::new(max_size.unwrap_or(usize::MAX), handshake.deflate()),
            writer: Writer::new(handshake.deflate()),
            tls: tls.as_ref().map(Tls::new).transpose()?,
            cipher: Vec::new(),
            queue: VecDeque::new(),
            waiter: None,
            paused: false,
            wrote_at: None,
            scheduled: false,
            blocked: false,
            drains: false,
            fragmenting: false,
            closing: false,
            discards: false,
        };
        let queue_max = max_queue.unwrap_or(usize::MAX);
        Ok(Self { event_loop, queue_max, write_limit, on_message, inner: Mutex::new(inner) })
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
        inner.take(slf.py(), &mut received.to_vec(), queue_max)?;
        inner.tls = tls;
        // TLS may hold more that came with the handshake.
        let (pongs, ended) = inner.take(slf.py(), &mut [], queue_max)?;
        Self::after_read(slf, inner, pongs)?;
        if ended { Self::finish(slf, None) } else { Ok(()) }
    }

    /// Called by the loop when there is something to read.
    fn _readable(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let this = slf.get();
        let mut inner = this.inner(py);
        let Some(socket) = &inner.socket else { return Ok(()) };
        if inner.queue.len() >= this.queue_max && !inner.discards {
            let number = socket.as_raw_fd();
            inner.paused = true;
            drop(inner);
            this.event_loop(py).call_method1(intern!(py, "remove_reader"), (number,))?;
            return Ok(());
        }
        let taken = with_scratch(|scratch| {
            let read = inner.socket.as_ref().map_or(Ok(0), |from| socket::read_now(from, scratch));
            read.map(|bytes| {
                (bytes > 0).then(|| inner.take(py, &mut scratch[..bytes], this.queue_max))
            })
        });
        match taken {
            Ok(Some(Ok((pongs, ended)))) => {
                Self::after_read(slf, inner, pongs)?;
                if ended { Self::finish(slf, None) } else { Ok(()) }
            }
            Ok(Some(Err(error))) => {
                drop(inner);
                Self::finish(slf, Some(error.to_string()))
            }
            Ok(None) => {
                drop(inner);
                Self::finish(slf, None)
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(()),
            Err(errno) => {
                drop(inner);
                Self::finish(slf, Some(std::io::Error::from(errno).to_string()))
            }
        }
    }

    /// Called by the loop when the kernel takes bytes again.
    fn _writable(slf: &Bound<'_, Self>) -> PyResult<()> {
        let py = slf.py();
        let this = slf.get();
        let mut inner = this.inner(py);
        let waits = inner.flush(py)?;
        let number = inner.socket.as_ref().map(AsRawFd::as_raw_fd);
        inner.blocked = waits;
        Self::after_flush(slf, inner, waits)?;
        if let (false, Some(number)) = (waits, number) {
            this.event_loop(py).call_method1(intern!(py, "remove_writer"), (number,))?;
        }
        Ok(())
    }

    /// Called by the loop once per turn in which more than one message was sent.
    fn _flush(slf: &Bound<'_, Self>) -> PyResult<()> {
        let mut inner = slf.get().inner(slf.py());
        inner.scheduled = false;
        inner.wrote_at = None;
        if inner.blocked {
            return Ok(());
        }
        let waits = inner.flush(slf.py())?;
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
                return slf.call_method1(intern!(py, "_send_slowly"), (message, text));
            }
        };
        if !inner.is_sendable() {
            drop(inner);
            return Err(PyErr::from_value(slf.call_method0(intern!(py, "_closed_error"))?));
        }
        let opcode = payload.opcode(text)?;
        inner.writer.message(opcode, payload.as_bytes());
        Self::sent(slf, inner)
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
            return Err(PyErr::from_value(slf.call_method0(intern!(py, "_closed_error"))?));
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
        if slf.get().on_message.is_some() {
            return Err(PyRuntimeError::new_err("on_message takes the messages: recv gets none"));
        }
        Ok(Receive::new(slf.clone().unbind(), decode, false))
    }

    fn __aiter__(slf: &Bound<'_, Self>) -> Messages {
        Messages { connection: slf.clone().unbind() }
    }

    /// Sends a Ping, if the connection is open.
    fn _send_control(slf: &Bound<'_, Self>, ping: bool, payload: &[u8]) -> PyResult<()> {
        let mut inner = slf.get().inner(slf.py());
        if !inner.is_sendable() {
            drop(inner);
            let name = intern!(slf.py(), "_closed_error");
            return Err(PyErr::from_value(slf.call_method0(name)?));
        }
        inner.writer.control(if ping { Opcode::Ping } else { Opcode::Pong }, payload);
        Self::sent(slf, inner).map(drop)
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
        let waits = inner.flush(slf.py())?;
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

    /// The descriptor's number, or -1 once the connection is lost.
    fn fileno(&self, py: Python<'_>) -> i32 {
        self.inner(py).socket.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}

/// The messages of a connection, as an asynchronous iterator that can be closed as a generator can.
#[pyclass(frozen, module = "playfield._playfield")]
#[derive(Debug)]
pub struct Messages {
    connection: Py<AsyncConnection>,
}

#[pymethods]
impl Messages {
    fn __aiter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __anext__(&self, py: Python<'_>) -> Receive {
        Receive::new(self.connection.clone_ref(py), None, true)
    }

    /// Does nothing: the iterator holds nothing.
    #[expect(clippy::unused_self, reason = "a method in Python")]
    fn aclose(&self) -> Done {
        Done {}
    }
}

/// What Python makes exceptions of.
pub(crate) type EndingTuple =
    (Option<(u16, String)>, Option<(u16, String)>, bool, Option<(u16, String)>, usize);

pub(crate) fn ending(ending: &crate::link::Ending, unsent_bytes: usize) -> EndingTuple {
    let error = ending.error.as_ref().map(|error| (error.close_code(), error.to_string()));
    (ending.received.clone(), ending.sent.clone(), ending.received_first, error, unsent_bytes)
}

impl AsyncConnection {
    /// Something to send was added: writes it now or at the end of the turn.
    fn sent<'a, 'py>(
        slf: &'a Bound<'py, Self>,
        mut inner: MutexGuard<'a, Inner>,
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
                    this.event_loop(py).call_method1(intern!(py, "call_soon"), (flush,))?;
                    inner = this.inner(py);
                }
            } else {
                let waits = inner.flush(py)?;
                inner.wrote_at = Some(Instant::now());
                Self::after_flush(slf, inner, waits)?;
                inner = this.inner(py);
            }
        }
        if inner.unsent_bytes() > this.write_limit {
            inner.drains = true;
            drop(inner);
            return slf.call_method0(intern!(py, "_wait_drained"));
        }
        drop(inner);
        let done = DONE.get_or_try_init(py, || Py::new(py, Done {}))?;
        Ok(done.bind(py).clone().into_any())
    }
}
