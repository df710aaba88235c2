//! The sending side of a synchronous connection.

use std::os::fd::OwnedFd;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::Instant;

use playfield_websocket::{Deflate, Opcode};
use pyo3::prelude::*;
use rustix::event::PollFlags;
use rustix::io::Errno;

use crate::SyncConnection;
use crate::link::Writer;
use crate::message::Payload;
use crate::socket;
use crate::sync_connection::{Failure, TICK};
use crate::tls::{self, RustTls, SslObject, Tls};
use crate::turn::this_thread;

/// The bytes of messages gathered before they are written, even while corked.
const WRITE_BYTES: usize = 256 << 10;

/// The writing half.
#[derive(Debug)]
pub(crate) struct Outbound {
    pub(crate) writer: Writer,
    /// Encrypted bytes to send.
    cipher: Vec<u8>,
    /// The number of bytes sent at the front of `cipher`.
    cipher_sent: usize,
    /// The number of bytes encrypted.
    cipher_plain: u64,
    /// The number of bytes that the kernel has taken, before encryption.
    taken: u64,
    /// The thread that sends a message in fragments; 0 for none.
    pub(crate) fragmenter: u64,
    /// The server has got the first fragment of a message, and not the last.
    pub(crate) in_fragments: bool,
    /// The threads that wait until the kernel has taken what they send.
    waiting: Vec<u64>,
    /// The kernel has refused a write.
    broken: bool,
}

/// The result of a write.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    All,
    /// The kernel takes no more for now.
    Some,
    /// The stream is not usable.
    Broken,
}

impl Outbound {
    pub(crate) fn new(deflate: Option<&Deflate>) -> Self {
        Self {
            writer: Writer::new(deflate),
            cipher: Vec::new(),
            cipher_sent: 0,
            cipher_plain: 0,
            taken: 0,
            fragmenter: 0,
            in_fragments: false,
            waiting: Vec::new(),
            broken: false,
        }
    }

    fn unsent_bytes(&self) -> usize {
        self.writer.unsent().len() + self.cipher.len() - self.cipher_sent
    }

    /// Returns the value of `taken` once all that was added so far is taken.
    fn end(&self) -> u64 {
        self.taken + self.cipher_plain + self.writer.unsent().len() as u64
    }

    /// Whether nothing is unsent, and the stream is usable.
    pub(crate) fn is_clean(&self) -> bool {
        !self.broken && self.unsent_bytes() == 0
    }

    fn give_up(&mut self) -> Written {
        self.broken = true;
        let rest = self.writer.unsent().len();
        self.writer.advance(rest);
        self.cipher = Vec::new();
        self.cipher_sent = 0;
        Written::Broken
    }

    /// A signal handler of this thread has interrupted its wait.
    fn is_reentered(&self) -> bool {
        !self.waiting.is_empty() && self.waiting.contains(&this_thread())
    }
}

impl SyncConnection {
    /// The writing half, if something may be sent.
    fn open_outbound<'a>(slf: &'a Bound<'_, Self>) -> PyResult<MutexGuard<'a, Outbound>> {
        let py = slf.py();
        let this = slf.get();
        let outbound = this.outbound(py);
        if !outbound.writer.is_open() || this.is_lost(py) {
            drop(outbound);
            return Err(Self::closed_error(slf));
        }
        Ok(outbound)
    }

    /// The writing half, if this thread does not wait to send.
    fn own_outbound<'a>(slf: &'a Bound<'_, Self>) -> PyResult<MutexGuard<'a, Outbound>> {
        let outbound = Self::open_outbound(slf)?;
        if outbound.is_reentered() {
            drop(outbound);
            let text = "cannot call send in a signal handler that has interrupted send";
            return Err(Self::concurrency_error(slf, text));
        }
        Ok(outbound)
    }

    /// The writing half, once no other thread is inside a message.
    fn free_outbound<'a>(slf: &'a Bound<'_, Self>) -> PyResult<MutexGuard<'a, Outbound>> {
        Self::enter(slf)?;
        let free = || {
            let outbound = Self::own_outbound(slf)?;
            let fragmenter = outbound.fragmenter;
            if fragmenter == 0 {
                return Ok(Some(outbound));
            }
            drop(outbound);
            if fragmenter == this_thread() {
                let text = "cannot call send inside a fragmented message of the same thread";
                return Err(Self::concurrency_error(slf, text));
            }
            Ok(None)
        };
        match free()? {
            Some(outbound) => Ok(outbound),
            None => {
                let outbound = slf.get().complete.wait(slf.py(), None, free)?;
                outbound.ok_or_else(|| Self::closed_error(slf))
            }
        }
    }

    pub(crate) fn send_payload(
        slf: &Bound<'_, Self>,
        payload: &Payload<'_>,
        text: Option<bool>,
    ) -> PyResult<()> {
        let opcode = payload.opcode(text)?;
        let mut outbound = Self::free_outbound(slf)?;
        // In the TLS of an `ssl.SSLObject`, a signal handler may find the connection in use.
        let parts = match slf.get().tls {
            Some(Tls::Object(_)) => None,
            _ => outbound.writer.begin_parts(opcode, payload.as_bytes()),
        };
        let Some(mut parts) = parts else {
            outbound.writer.message(opcode, payload.as_bytes());
            return Self::sent(slf, outbound);
        };
        let mut written = Written::All;
        loop {
            if written == Written::All {
                written = Self::write_now(slf, &mut outbound)?;
            }
            if !outbound.writer.add_part(&mut parts) {
                return Self::sent(slf, outbound);
            }
        }
    }

    pub(crate) fn send_payloads(
        slf: &Bound<'_, Self>,
        payloads: &[(Opcode, Payload<'_>)],
    ) -> PyResult<()> {
        let mut rest = payloads.iter();
        loop {
            let mut outbound = Self::free_outbound(slf)?;
            for (opcode, payload) in rest.by_ref() {
                outbound.writer.message(*opcode, payload.as_bytes());
                if outbound.writer.unsent().len() >= WRITE_BYTES {
                    break;
                }
            }
            let is_last = rest.len() == 0;
            Self::sent(slf, outbound)?;
            if is_last {
                return Ok(());
            }
        }
    }

    pub(crate) fn begin_fragments(slf: &Bound<'_, Self>) -> PyResult<()> {
        Self::free_outbound(slf)?.fragmenter = this_thread();
        Ok(())
    }

    pub(crate) fn send_fragment(
        slf: &Bound<'_, Self>,
        payload: &Payload<'_>,
        text: Option<bool>,
        first: bool,
        last: bool,
    ) -> PyResult<()> {
        let opcode = if first { payload.opcode(text)? } else { Opcode::Continuation };
        Self::enter(slf)?;
        let mut outbound = Self::own_outbound(slf)?;
        outbound.in_fragments = !last;
        outbound.writer.fragment(opcode, last, payload.as_bytes());
        Self::sent(slf, outbound)
    }

    pub(crate) fn send_control(
        slf: &Bound<'_, Self>,
        ping: bool,
        payload: &[u8],
        wait: bool,
    ) -> PyResult<()> {
        let opcode = if ping { Opcode::Ping } else { Opcode::Pong };
        Self::enter(slf)?;
        if wait {
            let mut outbound = Self::own_outbound(slf)?;
            outbound.writer.control(opcode, payload);
            return Self::sent(slf, outbound);
        }
        let mut outbound = Self::open_outbound(slf)?;
        outbound.writer.control(opcode, payload);
        match Self::write_now(slf, &mut outbound)? {
            Written::All | Written::Some => Ok(()),
            Written::Broken => {
                drop(outbound);
                Err(Self::broken(slf))
            }
        }
    }

    /// Something to send was added.
    pub(crate) fn sent(slf: &Bound<'_, Self>, outbound: MutexGuard<'_, Outbound>) -> PyResult<()> {
        let is_corked = slf.get().corks.load(Ordering::Relaxed) > 0;
        if is_corked && outbound.writer.unsent().len() < WRITE_BYTES {
            return Ok(());
        }
        if Self::write(slf, outbound)? { Ok(()) } else { Err(Self::broken(slf)) }
    }

    /// Waits until the kernel has taken all that was added. Returns whether the stream is usable.
    ///
    /// # Errors
    /// What a signal handler raises; the rest is sent later.
    pub(crate) fn write(
        slf: &Bound<'_, Self>,
        mut outbound: MutexGuard<'_, Outbound>,
    ) -> PyResult<bool> {
        let end = outbound.end();
        match Self::write_now(slf, &mut outbound)? {
            Written::All => return Ok(true),
            Written::Broken => return Ok(false),
            Written::Some => {}
        }
        outbound.waiting.push(this_thread());
        drop(outbound);
        let is_usable = Self::wait_until_taken(slf, end);
        let mut outbound = slf.get().outbound(slf.py());
        if let Some(at) = outbound.waiting.iter().position(|thread| *thread == this_thread()) {
            outbound.waiting.swap_remove(at);
        }
        is_usable
    }

    fn wait_until_taken(slf: &Bound<'_, Self>, end: u64) -> PyResult<bool> {
        let py = slf.py();
        let this = slf.get();
        loop {
            let Some(socket) = this.socket(py) else { return Ok(false) };
            let tick = Instant::now() + TICK;
            let until = this.give_up_at(py).map_or(tick, |give_up_at| give_up_at.min(tick));
            // An error of the wait is found by the write.
            let _ = py.detach(|| socket::wait(&socket, PollFlags::OUT, Some(until)));
            drop(socket);
            py.check_signals()?;
            let mut outbound = this.outbound(py);
            if outbound.taken >= end {
                return Ok(true);
            }
            if Self::write_now(slf, &mut outbound)? == Written::Broken {
                return Ok(false);
            }
            if outbound.taken >= end {
                return Ok(true);
            }
            if this.is_given_up() {
                return Ok(false);
            }
        }
    }

    /// Writes what the kernel takes.
    ///
    /// # Errors
    /// What a signal handler raises while TLS works; the connection is lost then.
    pub(crate) fn write_now(slf: &Bound<'_, Self>, outbound: &mut Outbound) -> PyResult<Written> {
        let this = slf.get();
        let written = this.write_to_kernel(slf.py(), outbound)?;
        this.unsent_bytes.store(outbound.unsent_bytes(), Ordering::Relaxed);
        Ok(written)
    }

    fn write_to_kernel(&self, py: Python<'_>, outbound: &mut Outbound) -> PyResult<Written> {
        let socket = match self.socket(py) {
            Some(socket) if !outbound.broken => socket,
            _ => return Ok(outbound.give_up()),
        };
        let Some(tls) = &self.tls else { return Ok(self.write_plain(py, &socket, outbound)) };
        loop {
            // What was encrypted before goes first.
            while outbound.cipher_sent < outbound.cipher.len() {
                match written(&socket, &outbound.cipher[outbound.cipher_sent..]) {
                    Ok(Some(bytes)) => outbound.cipher_sent += bytes,
                    Ok(None) => return Ok(Written::Some),
                    Err(errno) => return Ok(self.write_failed(py, outbound, errno)),
                }
            }
            outbound.taken += std::mem::take(&mut outbound.cipher_plain);
            outbound.cipher_sent = 0;
            outbound.cipher = Vec::new();
            let encrypted = match tls {
                Tls::Object(object) => self.encrypt(py, object, outbound),
                Tls::Rust(tls) => encrypt_and_write(py, &socket, tls, outbound),
            };
            match encrypted {
                Ok(true) => {}
                Ok(false) => return Ok(Written::All),
                Err(error) => {
                    let broken = outbound.give_up();
                    self.stream_failed(py, error)?;
                    return Ok(broken);
                }
            }
        }
    }

    fn write_plain(&self, py: Python<'_>, socket: &OwnedFd, outbound: &mut Outbound) -> Written {
        while !outbound.writer.unsent().is_empty() {
            match written(socket, outbound.writer.unsent()) {
                Ok(Some(bytes)) => {
                    outbound.writer.advance(bytes);
                    outbound.taken += bytes as u64;
                }
                Ok(None) => return Written::Some,
                Err(errno) => return self.write_failed(py, outbound, errno),
            }
        }
        Written::All
    }

    fn write_failed(&self, py: Python<'_>, outbound: &mut Outbound, errno: Errno) -> Written {
        self.fail(py, Failure::Socket(errno));
        outbound.give_up()
    }

    /// Encrypts what is to be sent next. Returns whether there is something.
    fn encrypt(
        &self,
        py: Python<'_>,
        object: &SslObject,
        outbound: &mut Outbound,
    ) -> PyResult<bool> {
        let plain = outbound.writer.unsent();
        let plain = &plain[..plain.len().min(WRITE_BYTES)];
        if plain.is_empty() {
            return Ok(false);
        }
        let turn = self.tls_turn.lock(py);
        let encrypted = object.encrypt(py, plain);
        drop(turn);
        let bytes = plain.len();
        outbound.cipher = encrypted?;
        outbound.cipher_plain = bytes as u64;
        outbound.writer.advance(bytes);
        Ok(true)
    }
}

/// Encrypts what is to be sent next, and writes what the kernel takes. The rest is left in
/// `cipher`. Returns whether there was something.
fn encrypt_and_write(
    py: Python<'_>,
    socket: &OwnedFd,
    tls: &RustTls,
    outbound: &mut Outbound,
) -> PyResult<bool> {
    tls::with_records(|records| {
        let plain = outbound.writer.unsent();
        let plain = &plain[..plain.len().min(tls::WRITE_BYTES)];
        let encrypted = tls.state().encrypt(plain, records);
        let end = encrypted.map_err(|error| tls::exception(py, &error))?;
        let bytes = plain.len();
        outbound.writer.advance(bytes);
        outbound.cipher_plain = bytes as u64;
        let mut rest = &records[..end];
        while !rest.is_empty()
            && let Ok(Some(bytes)) = written(socket, rest)
        {
            rest = &rest[bytes..];
        }
        // An error comes again.
        outbound.cipher.extend_from_slice(rest);
        Ok(end > 0)
    })
}

/// Returns the number of bytes that the kernel has taken; `None` if it takes none now.
fn written(socket: &OwnedFd, bytes: &[u8]) -> Result<Option<usize>, Errno> {
    loop {
        match socket::write_now(socket, bytes) {
            Ok(bytes) => return Ok(Some(bytes)),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(None),
            Err(errno) => return Err(errno),
        }
    }
}
