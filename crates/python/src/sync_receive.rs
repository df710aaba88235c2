//! The receiving side of a synchronous connection.

use std::hint;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use playfield_websocket::{Close, Deflate, Item};
use pyo3::exceptions::PyTimeoutError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::SyncConnection;
use crate::inbox::{Inbox, Part};
use crate::large::Large;
use crate::link::Reader;
use crate::message::converted;
use crate::receive::Wanted;
use crate::socket;
use crate::stream::{LARGE_START_BYTES, with_scratch};
use crate::sync_connection::{Failure, TICK, deadline};
use crate::tls::{self, Buffers, RustTls, Tls};
use crate::turn::{Held, this_thread};

/// The most reads of what the server has sent, to find out why it takes nothing more.
const LAST_READS_MAX: usize = 64;

/// The time that a thread waits for the rest of a long message while answers to pings wait for the
/// kernel.
const UNSENT_TICK: Duration = Duration::from_millis(50);

/// The reading half.
#[derive(Debug)]
pub(crate) struct Inbound {
    reader: Reader,
    pub(crate) inbox: Inbox,
    /// Once so many fragments wait, messages that begin later are dropped: we close the connection.
    pub(crate) drops_beyond: usize,
    /// The payloads of Pongs that Python has not been given yet.
    pongs: Vec<Vec<u8>>,
    /// A message that is read into its final place.
    large: Option<Large>,
    /// The last message was one.
    expects_large: bool,
    /// The stream has ended, or failed. With TLS, the socket need not have.
    ended: bool,
}

impl Inbound {
    pub(crate) fn new(message_bytes_max: usize, deflate: Option<&Deflate>) -> Self {
        let reader = Reader::new(message_bytes_max, deflate).passing_fragments();
        Self {
            reader,
            inbox: Inbox::default(),
            drops_beyond: usize::MAX,
            pongs: Vec::new(),
            large: None,
            expects_large: false,
            ended: false,
        }
    }

    fn has(&self, wanted: Wanted) -> bool {
        match wanted {
            Wanted::Message => self.inbox.has_message(),
            Wanted::Fragment | Wanted::Rest => self.inbox.has_fragment(),
        }
    }
}

/// A control frame that was received.
enum Control {
    Ping(Vec<u8>),
    Close(Option<(u16, String)>),
}

/// The wait that a read may do.
#[derive(Clone, Copy)]
pub(crate) enum Wait {
    Not,
    /// Polls, for as long as the connection spins.
    Spinning(Option<Instant>),
    Until(Option<Instant>),
}

/// The result of a read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filled {
    /// Something came, perhaps no message.
    Some,
    Nothing,
    /// The stream has ended.
    Ended,
}

/// The right to receive, of one thread.
struct Receiving<'a>(&'a SyncConnection);

impl Drop for Receiving<'_> {
    fn drop(&mut self) {
        self.0.receiver.store(0, Ordering::Release);
    }
}

impl SyncConnection {
    fn begin_receiving<'a>(slf: &'a Bound<'_, Self>, wanted: Wanted) -> PyResult<Receiving<'a>> {
        let this = slf.get();
        let (free, mine) = (Ordering::Acquire, this_thread());
        match this.receiver.compare_exchange(0, mine, free, Ordering::Relaxed) {
            Ok(_) => {
                this.receives.fetch_add(1, Ordering::Relaxed);
                Ok(Receiving(this))
            }
            Err(receiver) => Err(Self::is_received_by_another(slf, wanted, receiver == mine)),
        }
    }

    fn is_received_by_another(slf: &Bound<'_, Self>, wanted: Wanted, in_handler: bool) -> PyErr {
        let name = if wanted == Wanted::Message { "recv" } else { "recv_streaming" };
        let who = if in_handler {
            "in a signal handler that has interrupted"
        } else {
            "while another thread is already running"
        };
        let text = format!("cannot call {name} {who} recv or recv_streaming");
        Self::concurrency_error(slf, &text)
    }

    /// The next message. `None` once the connection is closed.
    pub(crate) fn receive<'py>(
        slf: &Bound<'py, Self>,
        timeout: Option<f64>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        Self::enter(slf)?;
        let _receiving = Self::begin_receiving(slf, Wanted::Message)?;
        let Some(mut inbound) = Self::ready(slf, timeout, Wanted::Message)? else {
            return Ok(None);
        };
        Ok(inbound.inbox.pop(slf.py()))
    }

    /// The first fragment of a message or another one, and whether it ends its message. `None` once
    /// the connection is closed.
    pub(crate) fn receive_fragment<'py>(
        slf: &Bound<'py, Self>,
        wanted: Wanted,
    ) -> PyResult<Option<(Bound<'py, PyAny>, bool)>> {
        Self::enter(slf)?;
        let _receiving = Self::begin_receiving(slf, wanted)?;
        let timeout = slf.get().receive_timeout;
        let Some(mut inbound) = Self::ready(slf, timeout, wanted)? else { return Ok(None) };
        Ok(inbound.inbox.pop_fragment(slf.py()))
    }

    /// All messages that have come, at least one. `None` once the connection is closed.
    pub(crate) fn receive_many<'py>(
        slf: &Bound<'py, Self>,
        max: usize,
        timeout: Option<f64>,
        decode: Option<bool>,
    ) -> PyResult<Option<Vec<Bound<'py, PyAny>>>> {
        let py = slf.py();
        Self::enter(slf)?;
        let _receiving = Self::begin_receiving(slf, Wanted::Message)?;
        let Some(mut inbound) = Self::ready(slf, timeout, Wanted::Message)? else {
            return Ok(None);
        };
        let mut messages = Vec::with_capacity(inbound.inbox.len().min(max));
        while messages.len() < max {
            let Some(message) = inbound.inbox.pop(py) else { break };
            match converted(message.clone(), decode) {
                Ok(message) => messages.push(message),
                Err(error) if messages.is_empty() => return Err(error),
                Err(_) => {
                    // The next call finds it first.
                    inbound.inbox.put_back(message.unbind());
                    break;
                }
            }
        }
        Ok(Some(messages))
    }

    /// Waits until there is what is `wanted`. `None` once the connection is closed.
    ///
    /// # Errors
    /// `ConcurrencyError` if the rest of a message is for who has received its start.
    fn ready<'a>(
        slf: &'a Bound<'_, Self>,
        timeout: Option<f64>,
        wanted: Wanted,
    ) -> PyResult<Option<Held<'a, Inbound>>> {
        let py = slf.py();
        let this = slf.get();
        let mut held = this.inbound.try_take();
        if let Some(inbound) = &held {
            let is_anothers = inbound.inbox.is_streamed() && wanted != Wanted::Rest;
            if is_anothers && (this.over.load(Ordering::Relaxed) || this.is_lost(py)) {
                return Ok(None);
            }
            if is_anothers {
                drop(held);
                return Err(Self::is_received_by_another(slf, wanted, false));
            }
            if inbound.has(wanted) {
                return Ok(held);
            }
        }
        let deadline = deadline(timeout)?;
        let late = || {
            let seconds = timeout.unwrap_or_default();
            PyTimeoutError::new_err(format!("no message came within {seconds} s"))
        };
        if this.corks.load(Ordering::Relaxed) > 0 {
            Self::write_now(slf, &mut this.outbound(py))?;
        }
        let mut wait = Wait::Spinning(deadline);
        loop {
            // It is in use only by a thread that answers pings, or closes the connection.
            let held = match held.take() {
                Some(held) => Some(held),
                None => this.inbound.take(py, deadline)?,
            };
            let Some(mut inbound) = held else { return Err(late()) };
            let mut filled = Filled::Some;
            if !inbound.has(wanted) {
                if this.over.load(Ordering::Relaxed) {
                    return Ok(None);
                }
                filled = Self::fill(slf, &mut inbound, wait)?;
            }
            if inbound.has(wanted) && inbound.pongs.is_empty() {
                return Ok(Some(inbound));
            }
            Self::tell_pongs(slf, inbound)?;
            if filled == Filled::Ended {
                this.lose(py);
                let inbound = this.inbound.take(py, deadline)?;
                return Ok(inbound.filter(|inbound| inbound.has(wanted)));
            }
            py.check_signals()?;
            if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Err(late());
            }
            if filled == Filled::Nothing && this.unsent_bytes.load(Ordering::Relaxed) > 0 {
                Self::write_now(slf, &mut this.outbound(py))?;
            }
            wait = Wait::Until(deadline);
        }
    }

    /// Gives Python the Pongs that have come.
    pub(crate) fn tell_pongs(
        slf: &Bound<'_, Self>,
        mut inbound: Held<'_, Inbound>,
    ) -> PyResult<()> {
        if inbound.pongs.is_empty() {
            return Ok(());
        }
        let pongs = std::mem::take(&mut inbound.pongs);
        drop(inbound);
        for pong in pongs {
            let payload = PyBytes::new(slf.py(), &pong);
            Self::call(slf, intern!(slf.py(), "_pong"), (payload,))?;
        }
        Ok(())
    }

    /// Reads once, for at most `timeout` seconds, unless another thread reads or the queue is full.
    /// Returns whether it has read.
    pub(crate) fn pump(slf: &Bound<'_, Self>, timeout: f64) -> PyResult<bool> {
        let py = slf.py();
        let this = slf.get();
        Self::enter(slf)?;
        let receiver = this.receiver.load(Ordering::Relaxed);
        if receiver != 0 && receiver != this_thread() {
            return Ok(false);
        }
        if this.inbound.try_take().is_none_or(|inbound| inbound.inbox.len() >= this.queue_max) {
            return Ok(false);
        }
        if timeout > 0.0 {
            // Whoever receives meanwhile must not find the reading half in use.
            let until = deadline(Some(timeout.min(TICK.as_secs_f64())))?;
            let Some(socket) = this.socket(py) else { return Ok(true) };
            this.pumps.fetch_add(1, Ordering::Relaxed);
            let ready = py.detach(|| socket::wait(&socket, PollFlags::IN, until));
            this.pumps.fetch_sub(1, Ordering::Relaxed);
            py.check_signals()?;
            if ready == Ok(false) {
                return Ok(true);
            }
        }
        let Some(mut inbound) = this.inbound.try_take() else { return Ok(false) };
        if inbound.inbox.len() >= this.queue_max {
            return Ok(false);
        }
        let filled = Self::fill(slf, &mut inbound, Wait::Not)?;
        Self::tell_pongs(slf, inbound)?;
        if filled == Filled::Ended {
            this.lose(py);
        }
        Ok(true)
    }

    /// Reads from the socket, without the interpreter's lock.
    fn read(&self, socket: &OwnedFd, buffer: &mut [u8], wait: Wait) -> Result<usize, Errno> {
        let deadline = match wait {
            Wait::Spinning(deadline) if !self.spin.is_zero() => {
                let end = Instant::now() + self.spin;
                let end = deadline.map_or(end, |deadline| deadline.min(end));
                loop {
                    match socket::read_now(socket, buffer) {
                        Err(Errno::AGAIN) if Instant::now() < end => hint::spin_loop(),
                        other => return other,
                    }
                }
            }
            Wait::Not => return socket::read_now(socket, buffer),
            Wait::Spinning(deadline) | Wait::Until(deadline) => deadline,
        };
        let is_unsent = self.unsent_bytes.load(Ordering::Relaxed) > 0;
        if deadline.is_none() && !is_unsent {
            return socket::read_waiting(socket, buffer);
        }
        let tick = Instant::now() + TICK;
        let until = deadline.map_or(tick, |deadline| deadline.min(tick));
        // Answers to pings may wait for the kernel.
        let what = if is_unsent { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        if socket::wait(socket, what, Some(until))? {
            socket::read_now(socket, buffer)
        } else {
            Err(Errno::AGAIN)
        }
    }

    /// Reads once, and takes what has come.
    pub(crate) fn fill(
        slf: &Bound<'_, Self>,
        inbound: &mut Inbound,
        wait: Wait,
    ) -> PyResult<Filled> {
        if inbound.ended {
            return Ok(Filled::Ended);
        }
        let filled = Self::fill_once(slf, inbound, wait)?;
        inbound.ended = filled == Filled::Ended;
        Ok(filled)
    }

    fn fill_once(slf: &Bound<'_, Self>, inbound: &mut Inbound, wait: Wait) -> PyResult<Filled> {
        let py = slf.py();
        let this = slf.get();
        if let Some(Tls::Rust(tls)) = &this.tls {
            return tls::with_buffers(|buffers| {
                Self::fill_encrypted(slf, inbound, wait, tls, buffers)
            });
        }
        if inbound.large.is_some() {
            return Self::fill_large(slf, inbound, wait);
        }
        with_scratch(|scratch| {
            let Some(socket) = this.socket(py) else { return Ok(Filled::Ended) };
            let room = if inbound.expects_large { LARGE_START_BYTES } else { scratch.len() };
            let scratch = &mut scratch[..room];
            let read = match wait {
                Wait::Not => socket::read_now(&socket, scratch),
                _ => py.detach(|| this.read(&socket, scratch, wait)),
            };
            match read {
                Ok(0) => Ok(Filled::Ended),
                Ok(bytes) if this.tls.is_some() => {
                    Self::take(slf, inbound, &mut [], Some(&scratch[..bytes]))
                }
                Ok(bytes) => Self::take(slf, inbound, &mut scratch[..bytes], None),
                Err(errno) => Ok(this.unread(py, errno)),
            }
        })
    }

    /// Works like [`fill`](Self::fill), with TLS by `rustls`: what has come is decrypted without
    /// the interpreter's lock, too.
    fn fill_encrypted(
        slf: &Bound<'_, Self>,
        inbound: &mut Inbound,
        wait: Wait,
        tls: &RustTls,
        buffers: &mut Buffers,
    ) -> PyResult<Filled> {
        let py = slf.py();
        let this = slf.get();
        let Some(socket) = this.socket(py) else { return Ok(Filled::Ended) };
        let Buffers { incoming, plain } = buffers;
        let mut read = || {
            let bytes = this.read(&socket, incoming, wait)?;
            let mut state = tls.state();
            let received =
                if bytes == 0 { Ok(true) } else { state.receive(&mut incoming[..bytes], plain) };
            Ok((received, state.has_answers()))
        };
        let read = if let Wait::Not = wait { read() } else { py.detach(read) };
        let (received, has_answers) = match read {
            Ok(read) => read,
            Err(errno) => return Ok(this.unread(py, errno)),
        };
        let filled = Self::take(slf, inbound, plain, None)?;
        if has_answers {
            // Should the stream be unusable, the next read says so.
            Self::write_now(slf, &mut this.outbound(py))?;
        }
        match received {
            Ok(false) => Ok(filled),
            Ok(true) => Ok(Filled::Ended),
            Err(error) => {
                this.stream_failed(py, tls::exception(py, &error))?;
                Ok(Filled::Ended)
            }
        }
    }

    /// Reads more of a message that is read into its final place.
    fn fill_large(slf: &Bound<'_, Self>, inbound: &mut Inbound, wait: Wait) -> PyResult<Filled> {
        let py = slf.py();
        let this = slf.get();
        let Some(socket) = this.socket(py) else { return Ok(Filled::Ended) };
        let Some(large) = &mut inbound.large else { return Ok(Filled::Nothing) };
        // Python reads only what is there: else it could call a signal handler, which would find
        // this half of the connection in use.
        let now = Instant::now();
        let is_unsent = this.unsent_bytes.load(Ordering::Relaxed) > 0;
        let tick = now + if is_unsent { UNSENT_TICK } else { TICK };
        let ready = match wait {
            Wait::Not => socket::wait(&socket, PollFlags::IN, Some(now)),
            Wait::Spinning(deadline) | Wait::Until(deadline) => {
                let until = deadline.map_or(tick, |deadline| deadline.min(tick));
                py.detach(|| socket::wait(&socket, PollFlags::IN, Some(until)))
            }
        };
        match ready {
            Ok(true) => {}
            Ok(false) => return Ok(this.unread(py, Errno::AGAIN)),
            Err(errno) => return Ok(this.unread(py, errno)),
        }
        match large.read(py, &socket) {
            Ok(Some(0)) => return Ok(Filled::Ended),
            Ok(Some(_)) => {}
            Ok(None) => return Ok(Filled::Nothing),
            Err(error) => {
                this.stream_failed(py, error)?;
                return Ok(Filled::Ended);
            }
        }
        if large.is_complete()
            && let Some(message) = inbound.large.take()
        {
            let message = message.finish(py)?;
            if inbound.inbox.len() < inbound.drops_beyond {
                inbound.inbox.push_whole(message);
            }
        }
        Ok(Filled::Some)
    }

    /// Returns what it means that nothing was read.
    fn unread(&self, py: Python<'_>, errno: Errno) -> Filled {
        match errno {
            Errno::INTR => Filled::Nothing,
            Errno::AGAIN if !self.is_given_up() => Filled::Nothing,
            Errno::AGAIN => Filled::Ended,
            errno => {
                self.fail(py, Failure::Socket(errno));
                Filled::Ended
            }
        }
    }

    /// Takes received bytes: plaintext, then what TLS decrypts.
    fn take(
        slf: &Bound<'_, Self>,
        inbound: &mut Inbound,
        plain: &mut [u8],
        cipher: Option<&[u8]>,
    ) -> PyResult<Filled> {
        let py = slf.py();
        let this = slf.get();
        let mut controls = Vec::new();
        let mut error = None;
        let Inbound { reader, inbox, drops_beyond, pongs, large, expects_large, .. } = inbound;
        let mut take = |item: Item<'_>, fin| match item {
            Item::Text(text) => inbox.push(py, Part::Text(text), fin, *drops_beyond),
            Item::Binary(bytes) => inbox.push(py, Part::Binary(bytes), fin, *drops_beyond),
            Item::Ping(payload) => controls.push(Control::Ping(payload.to_vec())),
            Item::Pong(payload) => pongs.push(payload.to_vec()),
            Item::Close(close) => controls.push(Control::Close(
                close.map(|Close { code, reason }| (code, reason.to_owned())),
            )),
        };
        let mut read = |bytes: &mut [u8]| {
            if error.is_none() {
                match reader.decode(bytes, &mut take) {
                    Ok(used) => reader.keep(&bytes[used..]),
                    Err(failed) => error = Some(failed),
                }
            }
        };
        let mut filled = Filled::Some;
        let mut failed = None;
        read(plain);
        if let (Some(Tls::Object(tls)), Some(cipher)) = (&this.tls, cipher) {
            let turn = this.tls_turn.lock(py);
            match tls.decrypt(py, cipher, &mut read) {
                Ok(false) => {}
                Ok(true) => filled = Filled::Ended,
                Err(error) => {
                    filled = Filled::Ended;
                    failed = Some(error);
                }
            }
            drop(turn);
        }
        if this.tls.is_none() && error.is_none() {
            *large = reader.begin_large(py)?;
            *expects_large = large.is_some();
        }
        if !controls.is_empty() || error.is_some() {
            let mut outbound = this.outbound(py);
            for control in controls {
                match control {
                    Control::Ping(payload) => outbound.writer.pong(&payload),
                    Control::Close(close) => {
                        let close = close.as_ref();
                        let close = close.map(|(code, reason)| Close { code: *code, reason });
                        outbound.writer.closed_by_peer(close);
                    }
                }
            }
            if let Some(error) = error {
                outbound.writer.failed(error);
            }
            this.set_ending(py, &outbound);
            // Should the stream be unusable, the next read says so.
            Self::write_now(slf, &mut outbound)?;
        }
        if let Some(failed) = failed {
            this.stream_failed(py, failed)?;
        }
        Ok(filled)
    }

    /// Takes what followed the handshake; TLS may hold more.
    pub(crate) fn start(slf: &Bound<'_, Self>, received: &[u8]) -> PyResult<()> {
        let this = slf.get();
        let Some(mut inbound) = this.inbound.take(slf.py(), None)? else { return Ok(()) };
        let is_object = matches!(this.tls, Some(Tls::Object(_)));
        let cipher: Option<&[u8]> = if is_object { Some(&[]) } else { None };
        let mut filled = Self::take(slf, &mut inbound, &mut received.to_vec(), cipher)?;
        if let Some(Tls::Rust(tls)) = &this.tls {
            match tls.has_ended(slf.py()) {
                Ok(false) => {}
                Ok(true) => filled = Filled::Ended,
                Err(error) => {
                    this.stream_failed(slf.py(), error)?;
                    filled = Filled::Ended;
                }
            }
        }
        Self::tell_pongs(slf, inbound)?;
        if filled == Filled::Ended {
            this.lose(slf.py());
        }
        Ok(())
    }

    /// The stream takes nothing more. The reason may be in what the peer has sent before.
    pub(crate) fn broken(slf: &Bound<'_, Self>) -> PyErr {
        let this = slf.get();
        if let Some(mut inbound) = this.inbound.try_take() {
            for _ in 0..LAST_READS_MAX {
                match Self::fill(slf, &mut inbound, Wait::Not) {
                    Ok(Filled::Some) => {}
                    Ok(_) => break,
                    Err(error) => return error,
                }
            }
        }
        this.lose(slf.py());
        Self::closed_error(slf)
    }
}
