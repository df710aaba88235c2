//! The bytes of an HTTP connection: its socket, and TLS if it has any.
//!
//! A shard may have read some of them, and the connection may have been handed over in the middle
//! of a TLS record: the state of TLS keeps its beginning.
//!
//! Hyper gets one request at a time, once its head is found valid by the reader that the shards
//! have: hyper's own is less strict.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::chunks::Chunks;
use super::progress::Progress;
use crate::shard::connection::http::{Behind, parse_head};
use crate::stats::Published;
use crate::tls::TlsConnection;

/// The number of bytes that are read at once.
const READ_BYTES: usize = 16 << 10;

/// The number of bytes, at least, that are read behind a request that is being answered.
const AHEAD_BYTES_MAX: usize = 4 << 10;

thread_local! {
    /// Encrypted bytes that were just read, and a record that is about to be written.
    static SCRATCH: RefCell<(Vec<u8>, Vec<u8>)> =
        RefCell::new((vec![0; READ_BYTES], Vec::new()));
}

/// The bytes that hyper may read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// The next head, once it is there and valid.
    Head,
    /// This many: the rest of a request.
    Bytes(u64),
    /// Bytes of a request whose body is in chunks, which is the last one.
    Chunks(Chunks),
    /// All that come: what was sent of a request.
    All,
    /// None, because a head is refused.
    Nothing,
}

/// A connection's socket, with its TLS.
pub(super) struct Stream {
    socket: TcpStream,
    tls: Option<Box<TlsConnection>>,
    /// Plaintext that is not read yet.
    plaintext: Vec<u8>,
    /// The number of bytes of the plaintext that are read.
    taken: usize,
    due: Due,
    head_bytes_max: usize,
    /// The client sends nothing more.
    has_ended: bool,
    progress: Arc<Progress>,
    published: Arc<Published>,
}

impl Stream {
    /// Creates the stream of a connection whose `plaintext` was already read.
    pub(super) fn new(
        socket: TcpStream,
        tls: Option<Box<TlsConnection>>,
        plaintext: Vec<u8>,
        head_bytes_max: usize,
        progress: Arc<Progress>,
        published: Arc<Published>,
    ) -> Self {
        Self {
            socket,
            tls,
            plaintext,
            taken: 0,
            due: Due::Head,
            head_bytes_max,
            has_ended: false,
            progress,
            published,
        }
    }

    /// Takes the stream apart: the socket, its TLS, and plaintext that nobody has read.
    pub(super) fn into_parts(mut self) -> (TcpStream, Option<Box<TlsConnection>>, Vec<u8>) {
        self.plaintext.drain(..self.taken);
        (self.socket, self.tls, self.plaintext)
    }

    /// Reads what the client sends while it waits for an answer: so an end of the connection is
    /// noticed, and the handler dropped.
    fn read_ahead(&mut self, cx: &mut Context<'_>) {
        while !self.has_ended && self.plaintext.len() - self.taken < AHEAD_BYTES_MAX {
            let before = self.plaintext.len();
            let Poll::Ready(read) = self.poll_more(cx) else { return };
            // A body may be waiting for just these bytes, or for the end.
            cx.waker().wake_by_ref();
            if read.is_err() {
                self.has_ended = true;
                return self.progress.broke();
            }
            if self.plaintext.len() == before {
                self.has_ended = true;
                self.progress.ended();
            }
        }
    }

    /// Reads the next head to its end, and learns how long its request is.
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let unread = &self.plaintext[self.taken..];
            match parse_head(unread, self.head_bytes_max) {
                Ok(Some((request, Behind::Length(bytes)))) => {
                    self.due = Due::Bytes(bytes.saturating_add(request.head_bytes as u64));
                    return Poll::Ready(Ok(()));
                }
                Ok(Some((request, Behind::Coded))) => {
                    // The connection ends with its answer.
                    self.due = Due::Chunks(Chunks::behind(request.head_bytes));
                    return Poll::Ready(Ok(()));
                }
                Ok(None) if self.has_ended => {
                    self.due = Due::All;
                    return Poll::Ready(Ok(()));
                }
                Ok(None) => {}
                Err(refusal) => {
                    self.due = Due::Nothing;
                    self.progress.refuses(refusal);
                    return Poll::Ready(Ok(()));
                }
            }
            if !unread.is_empty() {
                self.progress.received();
            }
            self.plaintext.drain(..self.taken);
            self.taken = 0;
            let before = self.plaintext.len();
            ready!(self.poll_more(cx))?;
            self.has_ended = self.plaintext.len() == before;
        }
    }

    /// Reads more plaintext, behind what is there. If nothing is added, it is the end.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.tls.is_some() {
            return self.poll_decrypt(cx);
        }
        SCRATCH.with_borrow_mut(|(bytes, _)| {
            let mut buffer = ReadBuf::new(bytes);
            ready!(Pin::new(&mut self.socket).poll_read(cx, &mut buffer))?;
            self.plaintext.extend_from_slice(buffer.filled());
            Poll::Ready(Ok(()))
        })
    }

    /// Reads and decrypts until there is more plaintext, or the end.
    fn poll_decrypt(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(tls) = &mut self.tls else { return Poll::Ready(Ok(())) };
        let before = self.plaintext.len();
        SCRATCH.with_borrow_mut(|(encrypted, _)| {
            while self.plaintext.len() == before && !tls.is_ended() {
                let mut buffer = ReadBuf::new(encrypted);
                ready!(Pin::new(&mut self.socket).poll_read(cx, &mut buffer))?;
                if buffer.filled().is_empty() {
                    break;
                }
                let received = tls.receive(buffer.filled_mut(), &mut self.plaintext);
                let answered = poll_unsent(&mut self.socket, tls, &self.progress, cx);
                if let Err(error) = received {
                    tls.fail();
                    return Poll::Ready(Err(io::Error::new(ErrorKind::InvalidData, error)));
                }
                // Otherwise it goes out with the next write.
                if let Poll::Ready(answered) = answered {
                    answered?;
                }
            }
            Poll::Ready(Ok(()))
        })
    }
}

/// Writes the encrypted bytes that come before all others.
fn poll_unsent(
    socket: &mut TcpStream,
    tls: &mut TlsConnection,
    progress: &Progress,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while !tls.unsent().is_empty() {
        let Poll::Ready(written) = Pin::new(&mut *socket).poll_write(cx, tls.unsent()) else {
            progress.blocked();
            return Poll::Pending;
        };
        let bytes = written?;
        if bytes == 0 {
            return Poll::Ready(Err(ErrorKind::WriteZero.into()));
        }
        tls.sent(bytes);
        progress.wrote();
    }
    Poll::Ready(Ok(()))
}

fn line_too_long() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the line with the size of a chunk is too long")
}

fn add(counter: &AtomicU64, bytes: usize) {
    counter.fetch_add(bytes as u64, Ordering::Relaxed);
}

impl AsyncRead for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = buffer.filled().len();
        if matches!(this.due, Due::Head | Due::Bytes(0)) {
            this.due = Due::Head;
            ready!(this.poll_head(cx))?;
        }
        let due = match this.due {
            Due::Bytes(bytes) => usize::try_from(bytes).unwrap_or(usize::MAX),
            Due::Chunks(Chunks::TooLong) => return Poll::Ready(Err(line_too_long())),
            Due::Chunks(_) | Due::All => usize::MAX,
            // The connection answers, and ends.
            Due::Head | Due::Nothing => return Poll::Pending,
        };
        if this.plaintext.is_empty() && !this.has_ended {
            if this.tls.is_none() && due >= buffer.remaining() {
                ready!(Pin::new(&mut this.socket).poll_read(cx, buffer))?;
            } else {
                ready!(this.poll_more(cx))?;
            }
        }
        if !this.plaintext.is_empty() {
            let rest = &this.plaintext[this.taken..];
            let bytes = rest.len().min(buffer.remaining()).min(due);
            buffer.put_slice(&rest[..bytes]);
            this.taken += bytes;
            if this.taken == this.plaintext.len() {
                // An idle connection owns no buffer.
                (this.plaintext, this.taken) = (Vec::new(), 0);
            }
        }
        let mut bytes = buffer.filled().len() - before;
        match &mut this.due {
            Due::Bytes(due) => *due -= bytes as u64,
            Due::Chunks(chunks) => {
                // Good bytes go first, so that a request is there to answer.
                bytes = chunks.read(&buffer.filled()[before..]);
                buffer.set_filled(before + bytes);
                if bytes == 0 && *chunks == Chunks::TooLong {
                    return Poll::Ready(Err(line_too_long()));
                }
            }
            Due::Head | Due::All | Due::Nothing => {}
        }
        if bytes > 0 {
            this.progress.received();
            add(&this.published.http.bytes_in, bytes);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let Some(tls) = &mut this.tls else {
            let Poll::Ready(written) = Pin::new(&mut this.socket).poll_write(cx, bytes) else {
                this.progress.blocked();
                return Poll::Pending;
            };
            this.progress.wrote();
            add(&this.published.http.bytes_out, *written.as_ref().unwrap_or(&0));
            return Poll::Ready(written);
        };
        ready!(poll_unsent(&mut this.socket, tls, &this.progress, cx))?;
        let sealed = SCRATCH.with_borrow_mut(|(_, record)| {
            let failed = |error| io::Error::new(ErrorKind::InvalidData, error);
            let (sealed, end) = tls.seal(bytes, record).map_err(failed)?;
            // The rest, and TLS's own output, goes out with the next write.
            tls.hold(&record[..end], 0);
            io::Result::Ok(sealed)
        })?;
        if let Poll::Ready(written) = poll_unsent(&mut this.socket, tls, &this.progress, cx) {
            written?;
        }
        add(&this.published.http.bytes_out, sealed);
        Poll::Ready(Ok(sealed))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.progress.is_answering() {
            this.read_ahead(cx);
        }
        match &mut this.tls {
            Some(tls) => poll_unsent(&mut this.socket, tls, &this.progress, cx),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if let Some(tls) = &mut this.tls {
            tls.close();
            ready!(poll_unsent(&mut this.socket, tls, &this.progress, cx))?;
        }
        Pin::new(&mut this.socket).poll_shutdown(cx)
    }
}
