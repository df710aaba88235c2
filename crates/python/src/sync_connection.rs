//! A connection over a blocking socket.

use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use pyo3::call::PyCallArgs;
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyString;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown, sockopt};

use crate::async_connection::{EndingTuple, ending};
use crate::exit;
use crate::handshake::Handshake;
use crate::link::Ending;
use crate::message::{Payload, converted};
use crate::receive::Wanted;
use crate::socket;
use crate::sync_receive::{Filled, Inbound, Wait};
use crate::sync_send::Outbound;
use crate::tls::{About, Tls};
use crate::turn::{Bell, Turn};

/// The time that a thread waits for the socket before it looks whether the connection was given up.
pub(crate) const TICK: Duration = Duration::from_secs(1);

/// The part of a synchronous connection that runs for each message. `playfield.websocket.sync` has
/// a subclass, whose methods this one calls: `_closed_error`, `_concurrency_error`,
/// `_end_of_iteration`, `_send_slowly` and `_pong`.
///
/// One thread may send while another receives. A thread that waits does not hold the interpreter's
/// lock. Whatever may run code of Python, a signal handler too, runs while no lock is held that the
/// code could ask for; but for TLS, see `enter`.
#[pyclass(frozen, subclass, weakref, module = "playfield._playfield")]
#[derive(Debug)]
pub struct SyncConnection {
    /// `None` once the connection is lost. A thread that uses it keeps its own reference.
    socket: Mutex<Option<Arc<OwnedFd>>>,
    /// Held while a thread reads.
    pub(crate) inbound: Turn<Inbound>,
    /// The thread that receives; 0 for none. Others may read for a moment, to answer pings.
    pub(crate) receiver: AtomicU64,
    /// The number of times that a thread began to receive.
    pub(crate) receives: AtomicU64,
    /// The number of threads that wait to read for a moment.
    pub(crate) pumps: AtomicUsize,
    /// Never held while a thread waits.
    outbound: Mutex<Outbound>,
    /// Rung when a message in fragments is complete.
    pub(crate) complete: Bell,
    pub(crate) tls: Option<Tls>,
    /// Held while an `ssl.SSLObject` works: its two directions share a state.
    pub(crate) tls_turn: Turn<()>,
    /// The Close frames, as of the last change.
    ending: Mutex<Ending>,
    /// Why the stream has failed.
    failure: Mutex<Option<Failure>>,
    /// When threads that wait give the connection up.
    give_up_at: Mutex<Option<Instant>>,
    /// Both ends have said that they close.
    pub(crate) over: AtomicBool,
    /// The number of `cork()` that are open.
    pub(crate) corks: AtomicUsize,
    /// The number of bytes that wait for the kernel, as of the last write.
    pub(crate) unsent_bytes: AtomicUsize,
    /// The time that a read polls before it waits.
    pub(crate) spin: Duration,
    /// Once so many fragments wait, only who receives reads on.
    pub(crate) queue_max: usize,
    /// The time that a receive without a timeout waits, in seconds; `None` for as long as it takes.
    pub(crate) receive_timeout: Option<f64>,
    /// The number of forks before this connection was made. The child of a later one must leave the
    /// socket alone.
    forks: usize,
}

/// Why a stream has failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Socket(Errno),
    Tls(Py<PyAny>),
}

pub(crate) fn locked<'a, T>(py: Python<'_>, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
    mutex.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn deadline(timeout: Option<f64>) -> PyResult<Option<Instant>> {
    let Some(seconds) = timeout else { return Ok(None) };
    if seconds.is_nan() {
        return Err(PyValueError::new_err("a timeout is a number of seconds, not NaN"));
    }
    // What is too long for a clock has no end.
    let Ok(timeout) = Duration::try_from_secs_f64(seconds.max(0.0)) else { return Ok(None) };
    Ok(Instant::now().checked_add(timeout))
}

impl SyncConnection {
    /// The connection was opened by a process that has forked this one.
    pub(crate) fn is_forked(&self) -> bool {
        self.forks != exit::forks()
    }

    pub(crate) fn socket(&self, py: Python<'_>) -> Option<Arc<OwnedFd>> {
        // A thread of the other process may have held the lock.
        if self.is_forked() { None } else { locked(py, &self.socket).clone() }
    }

    pub(crate) fn is_lost(&self, py: Python<'_>) -> bool {
        self.is_forked() || locked(py, &self.socket).is_none()
    }

    /// To be called first: refuses what would wait for itself. A signal handler may interrupt `ssl`,
    /// and then finds its own thread there.
    ///
    /// # Errors
    /// `ConcurrencyError`, `ConnectionClosed` after a fork, and `SystemExit` if the interpreter exits
    /// in another thread.
    pub(crate) fn enter(slf: &Bound<'_, Self>) -> PyResult<()> {
        let this = slf.get();
        exit::check()?;
        if this.is_forked() {
            return Err(Self::closed_error(slf));
        }
        if this.is_in_tls() {
            return Err(Self::concurrency_error(
                slf,
                "cannot use the connection in a signal handler that has interrupted its TLS",
            ));
        }
        Ok(())
    }

    fn is_in_tls(&self) -> bool {
        self.tls.is_some() && self.tls_turn.is_mine()
    }

    pub(crate) fn outbound(&self, py: Python<'_>) -> MutexGuard<'_, Outbound> {
        locked(py, &self.outbound)
    }

    /// The Close frames have changed.
    pub(crate) fn set_ending(&self, py: Python<'_>, outbound: &Outbound) {
        *locked(py, &self.ending) = outbound.writer.ending().clone();
        self.over.store(outbound.writer.is_over(), Ordering::Relaxed);
    }

    /// Calls a method of the subclass.
    pub(crate) fn call<'py>(
        slf: &Bound<'py, Self>,
        name: &Bound<'py, PyString>,
        arguments: impl PyCallArgs<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        exit::call(|| slf.call_method1(name, arguments))
    }

    pub(crate) fn closed_error(slf: &Bound<'_, Self>) -> PyErr {
        match Self::call(slf, intern!(slf.py(), "_closed_error"), ()) {
            Ok(error) => PyErr::from_value(error),
            Err(error) => error,
        }
    }

    pub(crate) fn concurrency_error(slf: &Bound<'_, Self>, text: &str) -> PyErr {
        match Self::call(slf, intern!(slf.py(), "_concurrency_error"), (text,)) {
            Ok(error) => PyErr::from_value(error),
            Err(error) => error,
        }
    }

    pub(crate) fn is_given_up(&self) -> bool {
        let give_up_at = self.give_up_at.lock().unwrap_or_else(PoisonError::into_inner);
        give_up_at.is_some_and(|at| at <= Instant::now())
    }

    pub(crate) fn give_up_at(&self, py: Python<'_>) -> Option<Instant> {
        *locked(py, &self.give_up_at)
    }

    /// The stream has failed. The first reason is kept.
    pub(crate) fn fail(&self, py: Python<'_>, failure: Failure) {
        let mut first = locked(py, &self.failure);
        let later = if first.is_none() { first.replace(failure) } else { Some(failure) };
        drop(first);
        drop(later);
    }

    /// The stream has failed in Python: an error of `ssl` or of the system is kept as the reason.
    ///
    /// # Errors
    /// Any other: what a signal handler raises takes plaintext with it, so the connection is lost.
    pub(crate) fn stream_failed(&self, py: Python<'_>, error: PyErr) -> PyResult<()> {
        // To look into an exception takes the interpreter, which is not there anymore at its exit.
        if exit::check().is_ok() && error.is_instance_of::<PyOSError>(py) {
            error.set_traceback(py, None);
            self.fail(py, Failure::Tls(error.into_value(py).into_any()));
            return Ok(());
        }
        self.lose(py);
        Err(error)
    }

    /// Ends the stream, which also wakes the threads that wait for it.
    pub(crate) fn lose(&self, py: Python<'_>) {
        if self.is_forked() {
            return;
        }
        let socket = locked(py, &self.socket).take();
        if let Some(socket) = socket {
            // Whoever holds it may be this thread, which has found the stream unusable.
            if let (Some(Tls::Rust(tls)), Ok(outbound)) = (&self.tls, self.outbound.try_lock())
                && outbound.is_clean()
            {
                tls.say_goodbye(&socket);
            }
            // It fails if the peer has ended the stream before.
            let _ = shutdown(&*socket, Shutdown::Both);
        }
        self.complete.ring();
    }
}

#[pymethods]
impl SyncConnection {
    #[new]
    #[pyo3(signature = (
        socket, handshake, *, max_size, max_queue, spin_us, receive_timeout=None, tls=None
    ))]
    fn new(
        socket: &Bound<'_, PyAny>,
        handshake: &Handshake,
        max_size: Option<usize>,
        max_queue: Option<usize>,
        spin_us: u64,
        receive_timeout: Option<f64>,
        tls: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        deadline(receive_timeout)?;
        socket.call_method1("setblocking", (true,))?;
        let socket = socket::adopt(socket)?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(TICK))
            .map_err(std::io::Error::from)?;
        let max_size = max_size.unwrap_or(usize::MAX);
        Ok(Self {
            socket: Mutex::new(Some(Arc::new(socket))),
            inbound: Turn::new(Inbound::new(max_size, handshake.deflate())),
            receiver: AtomicU64::new(0),
            receives: AtomicU64::new(0),
            pumps: AtomicUsize::new(0),
            outbound: Mutex::new(Outbound::new(handshake.deflate())),
            complete: Bell::default(),
            tls: tls.as_ref().map(Tls::new).transpose()?,
            tls_turn: Turn::new(()),
            ending: Mutex::default(),
            failure: Mutex::default(),
            give_up_at: Mutex::new(None),
            over: AtomicBool::new(false),
            corks: AtomicUsize::new(0),
            unsent_bytes: AtomicUsize::new(0),
            spin: Duration::from_micros(spin_us),
            queue_max: max_queue.unwrap_or(usize::MAX).max(1),
            receive_timeout,
            forks: exit::forks(),
        })
    }

    /// Takes what followed the handshake.
    fn _start(slf: &Bound<'_, Self>, received: &[u8]) -> PyResult<()> {
        Self::start(slf, received)
    }

    /// Send a message: ``str`` as text, ``bytes``, ``bytearray`` and ``memoryview`` as binary; an
    /// iterable of them is one message in fragments. ``text`` overrides the kind.
    ///
    /// Returns once the kernel has taken the message, or at once inside ``cork()``. Waits while
    /// another thread sends fragments.
    ///
    /// Raises ``ConnectionClosed`` once the connection is closing, ``TypeError`` for another type,
    /// and ``ConcurrencyError`` inside a message that this thread sends: in the iterable, or in a
    /// signal handler that has interrupted ``send``.
    #[pyo3(signature = (message, text=None))]
    fn send(slf: &Bound<'_, Self>, message: &Bound<'_, PyAny>, text: Option<bool>) -> PyResult<()> {
        match Payload::of(message)? {
            Some(payload) => Self::send_payload(slf, &payload, text),
            None => Self::call(slf, intern!(slf.py(), "_send_slowly"), (message, text)).map(drop),
        }
    }

    /// Begins a message in fragments: whole messages of other threads wait until it has ended.
    fn _begin_fragments(slf: &Bound<'_, Self>) -> PyResult<()> {
        Self::begin_fragments(slf)
    }

    /// Sends one fragment of a message.
    fn _send_fragment(
        slf: &Bound<'_, Self>,
        message: &Bound<'_, PyAny>,
        text: Option<bool>,
        first: bool,
        last: bool,
    ) -> PyResult<()> {
        Self::send_fragment(slf, &Payload::required(message)?, text, first, last)
    }

    /// Ends a message in fragments.
    fn _end_fragments(&self, py: Python<'_>) {
        if !self.is_forked() {
            self.outbound(py).fragmenter = 0;
            self.complete.ring();
        }
    }

    /// Send many messages with as few system calls as possible.
    ///
    /// Raises as ``send`` does; a message of a wrong type raises before any is sent.
    #[pyo3(signature = (messages, text=None))]
    fn send_many(
        slf: &Bound<'_, Self>,
        messages: &Bound<'_, PyAny>,
        text: Option<bool>,
    ) -> PyResult<()> {
        // Iterating runs code of Python, which must not find a lock held.
        let messages: Vec<_> = exit::call(|| messages.try_iter()?.collect::<PyResult<_>>())?;
        let mut payloads = Vec::with_capacity(messages.len());
        for message in &messages {
            let payload = Payload::required(message)?;
            payloads.push((payload.opcode(text)?, payload));
        }
        Self::send_payloads(slf, &payloads)
    }

    /// Receive the next message: ``str`` for text, ``bytes`` for binary; ``decode`` set to ``True``
    /// or ``False`` converts to ``str`` or ``bytes``.
    ///
    /// ``timeout`` is in seconds; ``None`` waits for as long as the connection is open, or for its
    /// ``receive_timeout``. Raises ``TimeoutError``, ``ConnectionClosedOK`` or
    /// ``ConnectionClosedError`` once all messages are taken and the connection is closed, and
    /// ``ConcurrencyError`` if another thread receives.
    #[pyo3(signature = (timeout=None, decode=None))]
    fn recv<'py>(
        slf: &Bound<'py, Self>,
        timeout: Option<f64>,
        decode: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match Self::receive(slf, timeout.or(slf.get().receive_timeout))? {
            Some(message) => converted(message, decode),
            None => Err(Self::closed_error(slf)),
        }
    }

    /// Receive all messages that have arrived, at least one and at most ``max``.
    ///
    /// ``timeout`` is how long to wait for the first, in seconds. Raises as ``recv`` does, and
    /// ``ValueError`` for a ``max`` of 0. A message that ``decode=True`` can't decode raises
    /// ``ValueError`` when it is the first; those before it are returned before.
    #[pyo3(signature = (max=None, timeout=None, decode=None))]
    fn recv_many<'py>(
        slf: &Bound<'py, Self>,
        max: Option<usize>,
        timeout: Option<f64>,
        decode: Option<bool>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        if max == Some(0) {
            return Err(PyValueError::new_err("max is how many messages to receive, at least 1"));
        }
        let timeout = timeout.or(slf.get().receive_timeout);
        match Self::receive_many(slf, max.unwrap_or(usize::MAX), timeout, decode)? {
            Some(messages) => Ok(messages),
            None => Err(Self::closed_error(slf)),
        }
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let message = Self::receive(slf, slf.get().receive_timeout)?;
        if message.is_none() {
            Self::call(slf, intern!(slf.py(), "_end_of_iteration"), ())?;
        }
        Ok(message)
    }

    /// Gathers messages until it was unset as often as it was set; then writes them.
    fn _cork(slf: &Bound<'_, Self>, corked: bool) -> PyResult<()> {
        let this = slf.get();
        if corked {
            this.corks.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        this.corks.fetch_sub(1, Ordering::Relaxed);
        Self::enter(slf)?;
        let outbound = this.outbound(slf.py());
        Self::sent(slf, outbound)
    }

    /// Sends a Ping or a Pong. If it does not `wait`, the kernel may take it later.
    fn _send_control(
        slf: &Bound<'_, Self>,
        ping: bool,
        payload: &[u8],
        wait: bool,
    ) -> PyResult<()> {
        Self::send_control(slf, ping, payload, wait)
    }

    /// Receives the `first` fragment of a message or another one: the fragment, and whether it ends
    /// its message.
    fn _recv_fragment<'py>(
        slf: &Bound<'py, Self>,
        first: bool,
    ) -> PyResult<(Bound<'py, PyAny>, bool)> {
        let wanted = if first { Wanted::Fragment } else { Wanted::Rest };
        Self::receive_fragment(slf, wanted)?.ok_or_else(|| Self::closed_error(slf))
    }

    /// Reads once, for at most `timeout` seconds, unless another thread reads or the queue is full.
    /// Returns whether it has read.
    fn _pump(slf: &Bound<'_, Self>, timeout: f64) -> PyResult<bool> {
        Self::pump(slf, timeout)
    }

    /// Returns the number of messages that wait to be received; `None` while a thread reads, or
    /// waits to.
    #[getter]
    fn _waiting(&self) -> Option<usize> {
        let is_read =
            self.receiver.load(Ordering::Relaxed) != 0 || self.pumps.load(Ordering::Relaxed) > 0;
        if self.is_forked() || is_read {
            return None;
        }
        self.inbound.try_take().map(|inbound| inbound.inbox.len())
    }

    /// Returns the number of times that a thread began to receive.
    #[getter]
    fn _receives(&self) -> u64 {
        self.receives.load(Ordering::Relaxed)
    }

    /// Sends a Close frame, waits for the peer's and for the end of the stream, for at most
    /// `timeout` seconds, and ends the connection.
    #[pyo3(signature = (code, reason, timeout))]
    fn _close(
        slf: &Bound<'_, Self>,
        code: u16,
        reason: &str,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        let py = slf.py();
        let this = slf.get();
        if this.is_lost(py) {
            return Ok(());
        }
        // In a handler that has interrupted TLS, no Close frame can be sent.
        let closed =
            if this.is_in_tls() { Ok(()) } else { Self::say_close(slf, code, reason, timeout) };
        this.lose(py);
        closed
    }

    /// Ends the connection at once.
    fn _abort(&self, py: Python<'_>) {
        self.lose(py);
    }

    /// Whether the connection is lost.
    #[getter]
    fn _is_lost(&self, py: Python<'_>) -> bool {
        self.is_lost(py)
    }

    /// The Close frames, `(received, sent, received_first, error, unsent_bytes)`.
    #[getter]
    fn _ending(&self, py: Python<'_>) -> EndingTuple {
        let unsent_bytes = self.unsent_bytes.load(Ordering::Relaxed);
        if self.is_forked() {
            return ending(&Ending::default(), unsent_bytes);
        }
        ending(&locked(py, &self.ending), unsent_bytes)
    }

    /// Why the stream has failed, as an exception; `None` if it has not.
    #[getter]
    fn _failure(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        if self.is_forked() {
            let error = PyRuntimeError::new_err(
                "the connection belongs to the process that opened it: connect again after a fork",
            );
            return Some(error.into_value(py).into_any());
        }
        match &*locked(py, &self.failure) {
            Some(Failure::Socket(errno)) => {
                let error = PyErr::from(std::io::Error::from(*errno));
                Some(error.into_value(py).into_any())
            }
            Some(Failure::Tls(error)) => Some(error.clone_ref(py)),
            None => None,
        }
    }

    /// Returns what TLS has agreed on, `(version, cipher, key_bits, resumed, certificate)`; `None`
    /// without TLS, and where an `ssl.SSLObject` tells it.
    #[getter]
    fn _tls(&self, py: Python<'_>) -> Option<About> {
        if self.is_forked() { None } else { self.tls.as_ref()?.about(py) }
    }

    /// The descriptor's number, or -1 once the connection is lost.
    fn fileno(&self, py: Python<'_>) -> i32 {
        self.socket(py).map_or(-1, |socket| socket.as_raw_fd())
    }
}

impl SyncConnection {
    /// Closes the connection, but for the socket.
    fn say_close(
        slf: &Bound<'_, Self>,
        code: u16,
        reason: &str,
        timeout: Option<f64>,
    ) -> PyResult<()> {
        let py = slf.py();
        let this = slf.get();
        let give_up_at = deadline(timeout)?;
        *locked(py, &this.give_up_at) = give_up_at;
        // What has come before is received later.
        if let Some(mut inbound) = this.inbound.try_take() {
            Self::fill(slf, &mut inbound, Wait::Not)?;
            Self::tell_pongs(slf, inbound)?;
        }
        let mut outbound = this.outbound(py);
        if outbound.in_fragments {
            // The server can't know that the rest of the message will not come.
            outbound.writer.close(1011, "close during fragmented message");
        }
        outbound.writer.close(code, reason);
        this.set_ending(py, &outbound);
        this.complete.ring();
        if !Self::write(slf, outbound)? {
            return Ok(());
        }
        // Another thread that receives takes the peer's answer, and lets go then.
        let Some(mut inbound) = this.inbound.take(py, give_up_at)? else { return Ok(()) };
        // What comes after the call to close is not received anymore.
        inbound.drops_beyond = inbound.inbox.len();
        while !this.is_given_up() {
            if Self::fill(slf, &mut inbound, Wait::Until(give_up_at))? == Filled::Ended {
                break;
            }
            Self::tell_pongs(slf, inbound)?;
            py.check_signals()?;
            let Some(again) = this.inbound.take(py, give_up_at)? else { break };
            inbound = again;
        }
        Ok(())
    }
}
