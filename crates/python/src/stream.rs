//! Both directions of an asynchronous connection, without its event loop.

use std::cell::Cell;
use std::os::fd::OwnedFd;
use std::time::Instant;

use playfield_websocket::{Deflate, Item};
use pyo3::prelude::*;
use rustix::io::Errno;

use crate::inbox::{Inbox, Part};
use crate::large::Large;
use crate::link::{Reader, Writer};
use crate::receive::Wakeup;
use crate::socket;
use crate::tls::{self, CHUNK_BYTES, RustTls, Tls};

/// The bytes read at a time, into a buffer that the connections of a thread share.
const READ_BYTES: usize = 256 << 10;

/// The bytes read first while large messages come, so that the rest is read where it is to stay.
pub(crate) const LARGE_START_BYTES: usize = 16 << 10;

/// If this much of a frame has come, the rest may come while it is decoded.
const AGAIN_BYTES_MIN: usize = 4 << 10;

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

/// Both directions of a connection, and what its event loop and its tasks wait for.
#[derive(Debug)]
pub(crate) struct Stream {
    /// `None` once the connection is lost.
    pub(crate) socket: Option<OwnedFd>,
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
    pub(crate) tls: Option<Tls>,
    /// Encrypted bytes to send.
    pub(crate) cipher: Vec<u8>,
    pub(crate) inbox: Inbox,
    /// A message that is read into its final place.
    pub(crate) large: Option<Large>,
    /// The last message was one.
    pub(crate) expects_large: bool,
    pub(crate) waiter: Option<Py<Wakeup>>,
    /// A receiver waits for a fragment.
    pub(crate) waits_for_fragment: bool,
    /// The program's callback for each message.
    pub(crate) on_message: Option<Py<PyAny>>,
    /// Reading has stopped because the queue is full.
    pub(crate) paused: bool,
    /// Something was written since the loop's last turn, as far as known.
    pub(crate) wrote_at: Option<Instant>,
    /// A flush at the end of the loop's turn is scheduled.
    pub(crate) scheduled: bool,
    /// The kernel's buffer is full: the loop says when it is not.
    pub(crate) blocked: bool,
    /// Somebody waits until less is unsent.
    pub(crate) drains: bool,
    /// A message is being sent in fragments.
    pub(crate) fragmenting: bool,
    /// `_closing` was called.
    pub(crate) closing: bool,
    /// We close the connection: what does not fit into the queue is dropped.
    pub(crate) discards: bool,
    /// The kernel takes nothing more.
    pub(crate) broken: bool,
    /// Why, until it is reported.
    pub(crate) write_error: Option<PyErr>,
}

impl Stream {
    /// A connection over `socket`. Without a limit, `message_bytes_max` is the largest number.
    pub(crate) fn new(
        socket: OwnedFd,
        message_bytes_max: usize,
        deflate: Option<&Deflate>,
        tls: Option<Tls>,
        on_message: Option<Py<PyAny>>,
    ) -> Self {
        Self {
            socket: Some(socket),
            reader: Reader::new(message_bytes_max, deflate).passing_fragments(),
            writer: Writer::new(deflate),
            tls,
            cipher: Vec::new(),
            inbox: Inbox::default(),
            large: None,
            expects_large: false,
            waiter: None,
            waits_for_fragment: false,
            on_message,
            paused: false,
            wrote_at: None,
            scheduled: false,
            blocked: false,
            drains: false,
            fragmenting: false,
            closing: false,
            discards: false,
            broken: false,
            write_error: None,
        }
    }

    /// In the child of a fork: the stream, and its place in the event loop, are the parent's. This
    /// closes the child's descriptor and changes nothing else.
    pub(crate) fn leave(&mut self) {
        self.socket = None;
        self.writer.drop_unsent();
        self.cipher = Vec::new();
    }

    pub(crate) fn unsent_bytes(&self) -> usize {
        self.writer.unsent().len() + self.cipher.len()
    }

    pub(crate) fn is_sendable(&self) -> bool {
        self.socket.is_some() && self.writer.is_open() && !self.broken
    }

    pub(crate) fn is_ended(&self) -> bool {
        self.socket.is_none() || self.writer.is_over()
    }

    /// Writes what the kernel takes. Says whether to wait for the kernel. If it refuses, what is
    /// unsent is dropped; what the peer has sent before can still be read.
    pub(crate) fn flush(&mut self, py: Python<'_>) -> bool {
        let written = match &self.socket {
            Some(_) if self.broken => Ok(false),
            Some(_) => self.write(py),
            None => Ok(false),
        };
        let waits = written.unwrap_or_else(|error| {
            self.broken = true;
            self.write_error = Some(error);
            false
        });
        if self.broken || self.socket.is_none() {
            self.writer.drop_unsent();
            self.cipher = Vec::new();
        }
        waits
    }

    fn write(&mut self, py: Python<'_>) -> PyResult<bool> {
        let Self { socket: Some(socket), writer, tls, cipher, .. } = self else { return Ok(false) };
        let Some(tls) = tls else {
            while !writer.unsent().is_empty() {
                match written(socket, writer.unsent())? {
                    Some(bytes) => writer.advance(bytes),
                    None => return Ok(true),
                }
            }
            return Ok(false);
        };
        // What was encrypted before goes first.
        loop {
            while !cipher.is_empty() {
                match written(socket, cipher)? {
                    Some(bytes) => drop(cipher.drain(..bytes)),
                    None => return Ok(true),
                }
            }
            // What is not encrypted yet can be replaced, and is counted once.
            let plain = writer.unsent();
            if plain.is_empty() {
                *cipher = Vec::new();
                return Ok(false);
            }
            let bytes = match tls {
                Tls::Object(object) => {
                    let part = &plain[..plain.len().min(CHUNK_BYTES)];
                    *cipher = object.encrypt(py, part)?;
                    part.len()
                }
                Tls::Rust(tls) => {
                    let part = &plain[..plain.len().min(tls::WRITE_BYTES)];
                    write_encrypted(py, socket, tls, part, cipher)?;
                    part.len()
                }
            };
            writer.advance(bytes);
        }
    }

    /// Says `close_notify`, unless something is unsent: the server is to see then that the stream was
    /// cut.
    pub(crate) fn say_goodbye(&mut self) {
        if self.broken || self.unsent_bytes() > 0 {
            return;
        }
        if let (Some(Tls::Rust(tls)), Some(socket)) = (&self.tls, &self.socket) {
            tls.say_goodbye(socket);
        }
    }

    /// Reads what is there.
    ///
    /// # Errors
    /// Why the connection is lost.
    pub(crate) fn receive(&mut self, py: Python<'_>, queue_max: usize) -> PyResult<Received> {
        if self.large.is_some() {
            return self.receive_large(py, queue_max);
        }
        if let Some(Tls::Rust(_)) = self.tls {
            return self.receive_encrypted(py, queue_max);
        }
        with_scratch(|scratch| {
            let Some(socket) = &self.socket else { return Ok(Received::default()) };
            let room = if self.expects_large { LARGE_START_BYTES } else { scratch.len() };
            let mut end = match socket::read_now(socket, &mut scratch[..room]) {
                Ok(0) => return Ok(Received { ended: true, ..Received::default() }),
                Ok(bytes) => bytes,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(Received::default()),
                Err(errno) => return Err(std::io::Error::from(errno).into()),
            };
            if self.tls.is_some() {
                return self.take(py, &mut scratch[..end], queue_max);
            }
            let mut received = Received { some: true, ..Received::default() };
            let mut begin = 0;
            loop {
                let pongs = &mut received.pongs;
                begin += self.decode(py, &mut scratch[begin..end], queue_max, pongs);
                let rest = &scratch[begin..end];
                if rest.is_empty() {
                    break;
                }
                let missing = self.reader.missing_bytes(rest);
                self.large = Large::begin(py, rest, missing)?;
                if self.large.is_some() {
                    break;
                }
                let may_come = rest.len() >= AGAIN_BYTES_MIN && missing <= scratch.len() - end;
                let more = match &self.socket {
                    Some(socket) if may_come => socket::read_now(socket, &mut scratch[end..]),
                    _ => Ok(0),
                };
                match more {
                    Ok(bytes) if bytes > 0 => end += bytes,
                    // The end of the stream or an error comes again.
                    _ => {
                        self.reader.keep(&scratch[begin..end]);
                        break;
                    }
                }
            }
            self.expects_large = self.large.is_some();
            Ok(received)
        })
    }

    /// Works like [`receive`](Self::receive), with TLS by `rustls`.
    fn receive_encrypted(&mut self, py: Python<'_>, queue_max: usize) -> PyResult<Received> {
        tls::with_buffers(|buffers| {
            let (incoming, plain) = (&mut buffers.incoming, &mut buffers.plain);
            let mut received = Received::default();
            // How much of the plaintext is decoded.
            let mut begin = 0;
            let mut failed = None;
            while let (Some(socket), Some(Tls::Rust(tls))) = (&self.socket, &self.tls) {
                match socket::read_now(socket, incoming) {
                    Ok(0) => received.ended = true,
                    Ok(bytes) => {
                        received.some = true;
                        let mut state = tls.state();
                        match state.receive(&mut incoming[..bytes], plain) {
                            Ok(ended) => received.ended = ended,
                            Err(error) => failed = Some(tls::exception(py, &error)),
                        }
                        if state.has_answers() {
                            self.cipher.append(&mut state.take_answers());
                        }
                    }
                    Err(Errno::AGAIN | Errno::INTR) => break,
                    Err(errno) => failed = Some(std::io::Error::from(errno).into()),
                }
                begin += self.decode(py, &mut plain[begin..], queue_max, &mut received.pongs);
                let rest = &plain[begin..];
                let is_done = received.ended || failed.is_some() || rest.len() < AGAIN_BYTES_MIN;
                let missing = self.reader.missing_bytes(rest);
                if is_done || plain.len().saturating_add(missing) > READ_BYTES {
                    break;
                }
            }
            self.reader.keep(&plain[begin..]);
            received.failed = failed;
            Ok(received)
        })
    }

    fn receive_large(&mut self, py: Python<'_>, queue_max: usize) -> PyResult<Received> {
        let Self { socket: Some(socket), large, .. } = self else { return Ok(Received::default()) };
        let Some(mut incoming) = large.take() else { return Ok(Received::default()) };
        match incoming.read(py, socket)? {
            Some(0) => return Ok(Received { ended: true, ..Received::default() }),
            Some(_) if incoming.is_complete() => {
                let message = incoming.finish(py)?;
                if !self.discards || self.inbox.len() < queue_max {
                    self.inbox.push_whole(message);
                }
            }
            Some(_) | None => *large = Some(incoming),
        }
        Ok(Received { some: true, ..Received::default() })
    }

    /// Takes received bytes, encrypted if there is TLS by an `ssl.SSLObject`.
    pub(crate) fn take(
        &mut self,
        py: Python<'_>,
        bytes: &mut [u8],
        queue_max: usize,
    ) -> PyResult<Received> {
        let mut pongs = Vec::new();
        let mut read = |this: &mut Self, bytes: &mut [u8]| {
            let used = this.decode(py, bytes, queue_max, &mut pongs);
            this.reader.keep(&bytes[used..]);
        };
        let Some(Tls::Object(_)) = &self.tls else {
            read(self, bytes);
            return Ok(Received { pongs, some: true, ..Received::default() });
        };
        let Some(Tls::Object(object)) = self.tls.take() else {
            return Ok(Received::default());
        };
        let ended = object.decrypt(py, bytes, &mut |plain| read(self, plain));
        self.tls = Some(Tls::Object(object));
        Ok(Received { pongs, some: true, ended: ended?, failed: None })
    }

    /// Decodes what is complete. Returns how many bytes that were.
    fn decode(
        &mut self,
        py: Python<'_>,
        bytes: &mut [u8],
        queue_max: usize,
        pongs: &mut Vec<Vec<u8>>,
    ) -> usize {
        let Self { reader, writer, inbox, discards, .. } = self;
        let queue_max = if *discards { queue_max } else { usize::MAX };
        let mut take = |item: Item<'_>, fin| match item {
            Item::Text(text) => inbox.push(py, Part::Text(text), fin, queue_max),
            Item::Binary(bytes) => inbox.push(py, Part::Binary(bytes), fin, queue_max),
            Item::Ping(payload) => writer.pong(payload),
            Item::Pong(payload) => pongs.push(payload.to_vec()),
            Item::Close(close) => writer.closed_by_peer(close),
        };
        match reader.decode(bytes, &mut take) {
            Ok(used) => used,
            Err(error) => {
                writer.failed(error);
                bytes.len()
            }
        }
    }

    /// Whether reading is to stop. It does not while somebody waits for the rest of a message.
    pub(crate) fn is_full(&self, queue_max: usize) -> bool {
        let waits =
            self.on_message.is_some() || (self.waiter.is_some() && !self.waits_for_fragment);
        self.inbox.len() >= queue_max && !self.discards && (self.inbox.has_message() || !waits)
    }

    /// Whether there is what the receiver waits for.
    pub(crate) fn has_news(&self) -> bool {
        let has_items = if self.waits_for_fragment {
            self.inbox.has_fragment()
        } else {
            self.inbox.has_message()
        };
        has_items || self.is_ended()
    }
}

/// The result of one read.
#[derive(Default)]
pub(crate) struct Received {
    /// The payloads of pongs.
    pub(crate) pongs: Vec<Vec<u8>>,
    /// Something came.
    pub(crate) some: bool,
    /// The stream has ended.
    pub(crate) ended: bool,
    /// The stream has failed, after what came before.
    pub(crate) failed: Option<PyErr>,
}

/// Encrypts bytes and writes what the kernel takes. The rest is left in `cipher`.
fn write_encrypted(
    py: Python<'_>,
    socket: &OwnedFd,
    tls: &RustTls,
    plain: &[u8],
    cipher: &mut Vec<u8>,
) -> PyResult<()> {
    tls::with_records(|records| {
        let encrypted = tls.state().encrypt(plain, records);
        let bytes = encrypted.map_err(|error| tls::exception(py, &error))?;
        let mut rest = &records[..bytes];
        while !rest.is_empty() {
            match written(socket, rest)? {
                Some(bytes) => rest = &rest[bytes..],
                None => {
                    cipher.extend_from_slice(rest);
                    break;
                }
            }
        }
        Ok(())
    })
}

/// Returns the number of bytes that the kernel has taken; `None` if it takes none now.
fn written(socket: &OwnedFd, bytes: &[u8]) -> std::io::Result<Option<usize>> {
    loop {
        match socket::write_now(socket, bytes) {
            Ok(bytes) => return Ok(Some(bytes)),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => return Ok(None),
            Err(errno) => return Err(errno.into()),
        }
    }
}
