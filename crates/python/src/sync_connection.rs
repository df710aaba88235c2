//! A connection over a blocking socket.

use std::collections::VecDeque;
use std::hint;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use playfield_websocket::{Close, Item, Opcode};
use pyo3::exceptions::{PyTimeoutError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyString};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown, sockopt};

use crate::async_connection::{EndingTuple, ending, with_scratch};
use crate::handshake::Handshake;
use crate::link::{Reader, Writer};
use crate::message::{Payload, converted};
use crate::socket;
use crate::tls::Tls;

/// How long a thread waits for the socket before it looks whether the connection was given up.
const TICK: Duration = Duration::from_secs(1);

/// How many bytes of messages are gathered before they are written, even while corked.
const WRITE_BYTES: usize = 256 << 10;

/// The part of a synchronous connection that runs for each message. `playfield.websocket.sync` has
/// a subclass, whose methods this one calls: `_closed_error`, `_concurrency_error`,
/// `_end_of_iteration`, `_send_slowly`, `_pong` and `_tick`.
///
/// One thread may send while another receives. A thread that waits does not hold the interpreter's
/// lock.
#[pyclass(frozen, subclass, weakref, module = "playfield._playfield")]
#[derive(Debug)]
pub struct SyncConnection {
    /// `None` once the connection is lost. A thread that uses it keeps its own reference.
    socket: Mutex<Option<Arc<OwnedFd>>>,
    /// Held while a thread reads.
    inbound: Mutex<Inbound>,
    /// Held while a thread writes.
    outbound: Mutex<Outbound>,
    tls: Option<Tls>,
    /// Held while TLS works: its two directions share a state.
    tls_turn: Mutex<()>,
    /// When threads that wait give the connection up.
    give_up_at: Mutex<Option<Instant>>,
    /// Both ends have said that they close.
    over: AtomicBool,
    corked: AtomicBool,
    fragmenting: AtomicBool,
    /// How long a read polls before it waits.
    spin: Duration,
}

#[derive(Debug)]
struct Inbound {
    reader: Reader,
    queue: VecDeque<Py<PyAny>>,
}

#[derive(Debug)]
struct Outbound {
    writer: Writer,
    /// Encrypted bytes to send.
    cipher: Vec<u8>,
}

/// A control frame that was received.
enum Control {
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<(u16, String)>),
}

/// How long a read may wait.
#[derive(Clone, Copy)]
enum Wait {
    Not,
    Until(Option<Instant>),
}

/// How a read ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Filled {
    /// Something came, perhaps no message.
    Some,
    Nothing,
    /// The stream has ended.
    Ended,
}

fn locked<'a, T>(py: Python<'_>, mutex: &'a Mutex<T>) -> MutexGuard<'a, T> {
    mutex.lock_py_attached(py).unwrap_or_else(PoisonError::into_inner)
}

impl SyncConnection {
    fn socket(&self, py: Python<'_>) -> Option<Arc<OwnedFd>> {
        locked(py, &self.socket).clone()
    }

    /// The inbound half, unless another thread reads.
    fn try_inbound(&self) -> Option<MutexGuard<'_, Inbound>> {
        match self.inbound.try_lock() {
            Ok(inbound) => Some(inbound),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn inbound<'a>(slf: &'a Bound<'_, Self>) -> PyResult<MutexGuard<'a, Inbound>> {
        match slf.get().try_inbound() {
            Some(inbound) => Ok(inbound),
            None => {
                let name = intern!(slf.py(), "_concurrency_error");
                Err(PyErr::from_value(slf.call_method0(name)?))
            }
        }
    }

    fn closed_error(slf: &Bound<'_, Self>) -> PyErr {
        match slf.call_method0(intern!(slf.py(), "_closed_error")) {
            Ok(error) => PyErr::from_value(error),
            Err(error) => error,
        }
    }

    fn is_given_up(&self) -> bool {
        let give_up_at = self.give_up_at.lock().unwrap_or_else(PoisonError::into_inner);
        give_up_at.is_some_and(|at| at <= Instant::now())
    }

    /// Ends the stream, which also wakes the threads that wait for it.
    fn lose(&self, py: Python<'_>) {
        let socket = locked(py, &self.socket).take();
        if let Some(socket) = socket {
            // It fails if the peer has ended the stream before.
            let _ = shutdown(&*socket, Shutdown::Both);
        }
    }

    /// Writes all that is unsent. Returns whether the stream is usable.
    ///
    /// # Errors
    /// What a signal handler raises; the rest is sent later.
    fn flush(&self, py: Python<'_>, outbound: &mut Outbound) -> PyResult<bool> {
        let Some(socket) = self.socket(py) else {
            let rest = outbound.writer.unsent().len();
            outbound.writer.advance(rest);
            outbound.cipher = Vec::new();
            return Ok(false);
        };
        if let Some(tls) = &self.tls {
            let turn = locked(py, &self.tls_turn);
            let plain = outbound.writer.unsent();
            let bytes = plain.len();
            let cipher = tls.encrypt(py, plain)?;
            drop(turn);
            outbound.cipher.extend_from_slice(&cipher);
            outbound.writer.advance(bytes);
        }
        loop {
            let Outbound { writer, cipher } = &mut *outbound;
            let unsent = if self.tls.is_some() { &cipher[..] } else { writer.unsent() };
            if unsent.is_empty() {
                return Ok(true);
            }
            match socket::write_now(&socket, unsent) {
                Ok(bytes) if self.tls.is_some() => drop(cipher.drain(..bytes)),
                Ok(bytes) => writer.advance(bytes),
                Err(Errno::INTR) => py.check_signals()?,
                Err(Errno::AGAIN) => {
                    let until = Some(Instant::now() + TICK);
                    let waited = py.detach(|| socket::wait(&socket, PollFlags::OUT, until));
                    if waited == Err(Errno::INTR) {
                        py.check_signals()?;
                    }
                    if self.is_given_up() || self.socket(py).is_none() {
                        return Ok(false);
                    }
                }
                Err(_) => {
                    let rest = writer.unsent().len();
                    writer.advance(rest);
                    cipher.clear();
                    return Ok(false);
                }
            }
        }
    }

    /// Something to send was added.
    fn sent(slf: &Bound<'_, Self>, mut outbound: MutexGuard<'_, Outbound>) -> PyResult<()> {
        let this = slf.get();
        let unsent_bytes = outbound.writer.unsent().len();
        if this.corked.load(Ordering::Relaxed) && unsent_bytes < WRITE_BYTES {
            return Ok(());
        }
        let is_usable = this.flush(slf.py(), &mut outbound)?;
        drop(outbound);
        if is_usable { Ok(()) } else { Err(Self::broken(slf)) }
    }

    /// The stream takes nothing more. The reason may be in what the peer has sent before.
    fn broken(slf: &Bound<'_, Self>) -> PyErr {
        let this = slf.get();
        if let Some(mut inbound) = this.try_inbound() {
            while let Ok(Filled::Some) = Self::fill(slf, &mut inbound, Wait::Not) {}
        }
        this.lose(slf.py());
        Self::closed_error(slf)
    }

    /// Reads from the socket, without the interpreter's lock.
    fn read(
        &self,
        socket: &OwnedFd,
        buffer: &mut [u8],
        deadline: Option<Instant>,
    ) -> Result<usize, Errno> {
        if !self.spin.is_zero() {
            let end = Instant::now() + self.spin;
            let end = deadline.map_or(end, |deadline| deadline.min(end));
            loop {
                match socket::read_now(socket, buffer) {
                    Err(Errno::AGAIN) if Instant::now() < end => hint::spin_loop(),
                    Err(Errno::AGAIN) => break,
                    other => return other,
                }
            }
        }
        let Some(deadline) = deadline else { return socket::read_waiting(socket, buffer) };
        let until = deadline.min(Instant::now() + TICK);
        if socket::wait(socket, PollFlags::IN, Some(until))? {
            socket::read_now(socket, buffer)
        } else {
            Err(Errno::AGAIN)
        }
    }

    /// Reads once, and takes what has come.
    fn fill(slf: &Bound<'_, Self>, inbound: &mut Inbound, wait: Wait) -> PyResult<Filled> {
        let py = slf.py();
        let this = slf.get();
        let mut controls = Vec::new();
        let mut error = None;
        let filled = with_scratch(|scratch| {
            let Some(socket) = this.socket(py) else { return Ok(Filled::Ended) };
            let read = match wait {
                Wait::Not => socket::read_now(&socket, scratch),
                Wait::Until(deadline) => py.detach(|| this.read(&socket, scratch, deadline)),
            };
            let bytes = match read {
                Ok(0) => return Ok(Filled::Ended),
                Ok(bytes) => &mut scratch[..bytes],
                Err(Errno::INTR) => {
                    py.check_signals()?;
                    return Ok(Filled::Nothing);
                }
                Err(Errno::AGAIN) if !this.is_given_up() => return Ok(Filled::Nothing),
                Err(_) => return Ok(Filled::Ended),
            };
            let Inbound { reader, queue } = inbound;
            let mut take = |item: Item<'_>| match item {
                Item::Text(text) => queue.push_back(PyString::new(py, text).into_any().unbind()),
                Item::Binary(bytes) => queue.push_back(PyBytes::new(py, bytes).into_any().unbind()),
                Item::Ping(payload) => controls.push(Control::Ping(payload.to_vec())),
                Item::Pong(payload) => controls.push(Control::Pong(payload.to_vec())),
                Item::Close(close) => controls.push(Control::Close(
                    close.map(|Close { code, reason }| (code, reason.to_owned())),
                )),
            };
            let mut read = |bytes: &mut [u8]| {
                if let Err(found) = reader.read(bytes, &mut take) {
                    error = Some(found);
                }
            };
            let Some(tls) = &this.tls else {
                read(bytes);
                return Ok(Filled::Some);
            };
            let _turn = locked(py, &this.tls_turn);
            let ended = tls.decrypt(py, bytes, &mut read)?;
            Ok::<_, PyErr>(if ended { Filled::Ended } else { Filled::Some })
        })?;
        if controls.is_empty() && error.is_none() {
            return Ok(filled);
        }
        let mut outbound = locked(py, &this.outbound);
        let mut pongs = Vec::new();
        for control in controls {
            match control {
                Control::Ping(payload) => outbound.writer.control(Opcode::Pong, &payload),
                Control::Pong(payload) => pongs.push(payload),
                Control::Close(close) => {
                    let close = close.as_ref().map(|(code, reason)| Close { code: *code, reason });
                    outbound.writer.closed_by_peer(close);
                }
            }
        }
        if let Some(error) = error {
            outbound.writer.failed(error);
        }
        this.over.store(outbound.writer.is_over(), Ordering::Relaxed);
        // Should the stream be unusable, the next read says so.
        this.flush(py, &mut outbound)?;
        drop(outbound);
        for pong in pongs {
            slf.call_method1(intern!(py, "_pong"), (PyBytes::new(py, &pong),))?;
        }
        Ok(filled)
    }

    /// The next message. `None` once the connection is closed.
    fn first<'py>(
        slf: &Bound<'py, Self>,
        inbound: &mut Inbound,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let py = slf.py();
        let this = slf.get();
        if let Some(message) = inbound.queue.pop_front() {
            return Ok(Some(message.into_bound(py)));
        }
        let deadline = deadline(timeout)?;
        if this.corked.load(Ordering::Relaxed) {
            let mut outbound = locked(py, &this.outbound);
            this.flush(py, &mut outbound)?;
        }
        loop {
            if this.over.load(Ordering::Relaxed) {
                return Ok(None);
            }
            match Self::fill(slf, inbound, Wait::Until(deadline))? {
                Filled::Some => {}
                Filled::Nothing => {
                    if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                        return Err(PyTimeoutError::new_err(format!(
                            "no message came within {} s",
                            timeout.unwrap_or_default()
                        )));
                    }
                    slf.call_method0(intern!(py, "_tick"))?;
                }
                Filled::Ended => {
                    this.lose(py);
                    return Ok(inbound.queue.pop_front().map(|message| message.into_bound(py)));
                }
            }
            if let Some(message) = inbound.queue.pop_front() {
                return Ok(Some(message.into_bound(py)));
            }
        }
    }
}

fn deadline(timeout: Option<f64>) -> PyResult<Option<Instant>> {
    let Some(seconds) = timeout else { return Ok(None) };
    let timeout = Duration::try_from_secs_f64(seconds.max(0.0)).map_err(|_| {
        PyValueError::new_err(format!("a timeout is a number of seconds, not {seconds}"))
    })?;
    Ok(Instant::now().checked_add(timeout))
}

#[pymethods]
impl SyncConnection {
    #[new]
    #[pyo3(signature = (socket, handshake, *, max_size, spin_us, tls=None))]
    fn new(
        socket: &Bound<'_, PyAny>,
        handshake: &Handshake,
        max_size: Option<usize>,
        spin_us: u64,
        tls: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        socket.call_method1("setblocking", (true,))?;
        let socket = socket::adopt(socket)?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(TICK))
            .map_err(std::io::Error::from)?;
        let reader = Reader::new(max_size.unwrap_or(usize::MAX), handshake.deflate());
        let writer = Writer::new(handshake.deflate());
        Ok(Self {
            socket: Mutex::new(Some(Arc::new(socket))),
            inbound: Mutex::new(Inbound { reader, queue: VecDeque::new() }),
            outbound: Mutex::new(Outbound { writer, cipher: Vec::new() }),
            tls: tls.as_ref().map(Tls::new).transpose()?,
            tls_turn: Mutex::new(()),
            give_up_at: Mutex::new(None),
            over: AtomicBool::new(false),
            corked: AtomicBool::new(false),
            fragmenting: AtomicBool::new(false),
            spin: Duration::from_micros(spin_us),
        })
    }

    /// Takes what followed the handshake.
    fn _start(slf: &Bound<'_, Self>, received: &[u8]) -> PyResult<()> {
        let py = slf.py();
        let this = slf.get();
        let mut inbound = Self::inbound(slf)?;
        let mut received = received.to_vec();
        let mut closes = Vec::new();
        let Inbound { reader, queue } = &mut *inbound;
        let mut outbound = locked(py, &this.outbound);
        let writer = &mut outbound.writer;
        let mut take = |item: Item<'_>| match item {
            Item::Text(text) => queue.push_back(PyString::new(py, text).into_any().unbind()),
            Item::Binary(bytes) => queue.push_back(PyBytes::new(py, bytes).into_any().unbind()),
            Item::Ping(payload) => writer.control(Opcode::Pong, payload),
            Item::Pong(_) => {}
            Item::Close(close) => {
                closes.push(close.map(|Close { code, reason }| (code, reason.to_owned())));
            }
        };
        let mut error = reader.read(&mut received, &mut take).err();
        if let Some(tls) = &this.tls {
            // It may hold more that came with the handshake.
            tls.decrypt(py, &[], &mut |plain| {
                error = error.or(reader.read(plain, &mut take).err());
            })?;
        }
        for close in &closes {
            let close = close.as_ref().map(|(code, reason)| Close { code: *code, reason });
            writer.closed_by_peer(close);
        }
        if let Some(error) = error {
            writer.failed(error);
        }
        this.over.store(writer.is_over(), Ordering::Relaxed);
        this.flush(py, &mut outbound).map(drop)
    }

    /// Send a message: ``str`` as text, ``bytes``, ``bytearray`` and ``memoryview`` as binary; an
    /// iterable of them is one message in fragments. ``text`` overrides the kind.
    ///
    /// Returns once the kernel has taken the message, or at once inside ``cork()``. Raises
    /// ``ConnectionClosed`` once the connection is closing, and ``TypeError`` for another type.
    #[pyo3(signature = (message, text=None))]
    fn send(slf: &Bound<'_, Self>, message: &Bound<'_, PyAny>, text: Option<bool>) -> PyResult<()> {
        let this = slf.get();
        match Payload::of(message)? {
            Some(payload) if !this.fragmenting.load(Ordering::Relaxed) => {
                Self::send_payload(slf, &payload, text)
            }
            _ => slf.call_method1(intern!(slf.py(), "_send_slowly"), (message, text)).map(drop),
        }
    }

    /// Sends a whole message, without checking whether another thread is sending fragments.
    fn _send_whole(
        slf: &Bound<'_, Self>,
        message: &Bound<'_, PyAny>,
        text: Option<bool>,
    ) -> PyResult<()> {
        Self::send_payload(slf, &Payload::required(message)?, text)
    }

    /// Sends one fragment of a message.
    fn _send_fragment(
        slf: &Bound<'_, Self>,
        message: &Bound<'_, PyAny>,
        text: Option<bool>,
        first: bool,
        last: bool,
    ) -> PyResult<()> {
        let payload = Payload::required(message)?;
        let opcode = if first { payload.opcode(text)? } else { Opcode::Continuation };
        let mut outbound = Self::outbound(slf)?;
        slf.get().fragmenting.store(!last, Ordering::Relaxed);
        outbound.writer.fragment(opcode, last, payload.as_bytes());
        Self::sent(slf, outbound)
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
        // Iterating runs Python code, which must not find the lock held.
        let messages: Vec<_> = messages.try_iter()?.collect::<PyResult<_>>()?;
        let mut payloads = Vec::with_capacity(messages.len());
        for message in &messages {
            let payload = Payload::required(message)?;
            payloads.push((payload.opcode(text)?, payload));
        }
        let this = slf.get();
        let mut outbound = Self::outbound(slf)?;
        for (opcode, payload) in payloads {
            outbound.writer.message(opcode, payload.as_bytes());
            if outbound.writer.unsent().len() >= WRITE_BYTES
                && !this.flush(slf.py(), &mut outbound)?
            {
                drop(outbound);
                return Err(Self::broken(slf));
            }
        }
        Self::sent(slf, outbound)
    }

    /// Receive the next message: ``str`` for text, ``bytes`` for binary; ``decode`` set to ``True``
    /// or ``False`` converts to ``str`` or ``bytes``.
    ///
    /// ``timeout`` is in seconds; ``None`` waits for as long as the connection is open. Raises
    /// ``TimeoutError``, ``ConnectionClosedOK`` or ``ConnectionClosedError`` once all messages are
    /// taken and the connection is closed, and ``ConcurrencyError`` if another thread receives.
    #[pyo3(signature = (timeout=None, decode=None))]
    fn recv<'py>(
        slf: &Bound<'py, Self>,
        timeout: Option<f64>,
        decode: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let mut inbound = Self::inbound(slf)?;
        let message = Self::first(slf, &mut inbound, timeout)?;
        drop(inbound);
        match message {
            Some(message) => converted(message, decode),
            None => Err(Self::closed_error(slf)),
        }
    }

    /// Receive all messages that have arrived, at least one and at most ``max``.
    ///
    /// ``timeout`` is how long to wait for the first, in seconds. Raises as ``recv`` does.
    #[pyo3(signature = (max=None, timeout=None, decode=None))]
    fn recv_many<'py>(
        slf: &Bound<'py, Self>,
        max: Option<usize>,
        timeout: Option<f64>,
        decode: Option<bool>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut inbound = Self::inbound(slf)?;
        let Some(first) = Self::first(slf, &mut inbound, timeout)? else {
            drop(inbound);
            return Err(Self::closed_error(slf));
        };
        let more = inbound.queue.len().min(max.unwrap_or(usize::MAX).saturating_sub(1));
        let rest: Vec<_> = inbound.queue.drain(..more).collect();
        drop(inbound);
        let rest = rest.into_iter().map(|message| message.into_bound(slf.py()));
        std::iter::once(first).chain(rest).map(|message| converted(message, decode)).collect()
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(slf: &Bound<'py, Self>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut inbound = Self::inbound(slf)?;
        let message = Self::first(slf, &mut inbound, None)?;
        drop(inbound);
        if message.is_none() {
            slf.call_method0(intern!(slf.py(), "_end_of_iteration"))?;
        }
        Ok(message)
    }

    /// Gathers messages until it is unset; then writes them.
    fn _cork(slf: &Bound<'_, Self>, corked: bool) -> PyResult<()> {
        let this = slf.get();
        this.corked.store(corked, Ordering::Relaxed);
        if corked {
            return Ok(());
        }
        Self::sent(slf, locked(slf.py(), &this.outbound))
    }

    /// Sends a Ping or a Pong.
    fn _send_control(slf: &Bound<'_, Self>, ping: bool, payload: &[u8]) -> PyResult<()> {
        let mut outbound = Self::outbound(slf)?;
        outbound.writer.control(if ping { Opcode::Ping } else { Opcode::Pong }, payload);
        Self::sent(slf, outbound)
    }

    /// Reads once, for at most `timeout` seconds, unless another thread reads. Returns whether it
    /// has read.
    fn _pump(slf: &Bound<'_, Self>, timeout: f64) -> PyResult<bool> {
        let this = slf.get();
        let wait = if timeout > 0.0 { Wait::Until(deadline(Some(timeout))?) } else { Wait::Not };
        let Some(mut inbound) = this.try_inbound() else { return Ok(false) };
        if Self::fill(slf, &mut inbound, wait)? == Filled::Ended {
            drop(inbound);
            this.lose(slf.py());
        }
        Ok(true)
    }

    /// How many messages wait to be received; `None` while another thread receives.
    #[getter]
    fn _waiting(&self) -> Option<usize> {
        self.try_inbound().map(|inbound| inbound.queue.len())
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
        if this.socket(py).is_none() {
            return Ok(());
        }
        let give_up_at = deadline(timeout)?;
        *locked(py, &this.give_up_at) = give_up_at;
        // What has come before is received later.
        if let Some(mut inbound) = this.try_inbound() {
            Self::fill(slf, &mut inbound, Wait::Not)?;
        }
        let mut outbound = locked(py, &this.outbound);
        if this.fragmenting.load(Ordering::Relaxed) {
            // The server can't know that the rest of the message will not come.
            outbound.writer.close(1011, "close during fragmented message");
        }
        outbound.writer.close(code, reason);
        let is_usable = this.flush(py, &mut outbound)?;
        drop(outbound);
        // Another thread that receives takes the peer's answer, and lets go then.
        let mut inbound = locked(py, &this.inbound);
        let kept = inbound.queue.len();
        while is_usable && !this.is_given_up() {
            if Self::fill(slf, &mut inbound, Wait::Until(give_up_at))? == Filled::Ended {
                break;
            }
            // What comes after the call to close is not received anymore.
            inbound.queue.truncate(kept);
        }
        drop(inbound);
        this.lose(py);
        Ok(())
    }

    /// Ends the connection at once.
    fn _abort(&self, py: Python<'_>) {
        self.lose(py);
    }

    /// Whether the connection is lost.
    #[getter]
    fn _is_lost(&self, py: Python<'_>) -> bool {
        locked(py, &self.socket).is_none()
    }

    /// The Close frames, `(received, sent, received_first, error, unsent_bytes)`.
    #[getter]
    fn _ending(&self, py: Python<'_>) -> EndingTuple {
        let outbound = locked(py, &self.outbound);
        ending(outbound.writer.ending(), outbound.writer.unsent().len())
    }

    /// The descriptor's number, or -1 once the connection is lost.
    fn fileno(&self, py: Python<'_>) -> i32 {
        locked(py, &self.socket).as_ref().map_or(-1, |socket| socket.as_raw_fd())
    }
}

impl SyncConnection {
    /// The outbound half, if messages may be sent.
    fn outbound<'a>(slf: &'a Bound<'_, Self>) -> PyResult<MutexGuard<'a, Outbound>> {
        let py = slf.py();
        let this = slf.get();
        let outbound = locked(py, &this.outbound);
        if outbound.writer.is_open() && locked(py, &this.socket).is_some() {
            return Ok(outbound);
        }
        drop(outbound);
        Err(Self::closed_error(slf))
    }

    fn send_payload(
        slf: &Bound<'_, Self>,
        payload: &Payload<'_>,
        text: Option<bool>,
    ) -> PyResult<()> {
        let opcode = payload.opcode(text)?;
        let mut outbound = Self::outbound(slf)?;
        outbound.writer.message(opcode, payload.as_bytes());
        Self::sent(slf, outbound)
    }
}
