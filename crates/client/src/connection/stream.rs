//! The socket of a connection, with or without TLS.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
#[cfg(feature = "tls")]
use std::task::{Waker, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

#[cfg(feature = "tls")]
use crate::tls::RecordSize;

#[cfg(feature = "tls")]
type TlsStream = tokio_rustls::client::TlsStream<TcpStream>;

/// A socket, with or without TLS.
pub(super) enum Stream {
    Plain(TcpStream),
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream>),
}

impl Stream {
    /// The two halves, which may be in use at the same time.
    pub(super) fn split(&mut self) -> (Reader<'_>, Writer<'_>) {
        match self {
            Self::Plain(stream) => {
                let (reader, writer) = stream.split();
                (Reader::Plain(reader), Writer::Plain(writer))
            }
            #[cfg(feature = "tls")]
            Self::Tls(stream) => {
                let (reader, writer) = tokio::io::split(&mut **stream);
                (Reader::Tls(reader), Writer::Tls { writer, taken: 0, records: RecordSize::FIRST })
            }
        }
    }
}

/// The half that is read.
pub(super) enum Reader<'a> {
    Plain(ReadHalf<'a>),
    #[cfg(feature = "tls")]
    Tls(tokio::io::ReadHalf<&'a mut TlsStream>),
}

/// The half that is written to. What it reports as written was handed to the system.
pub(super) enum Writer<'a> {
    Plain(WriteHalf<'a>),
    #[cfg(feature = "tls")]
    Tls {
        writer: tokio::io::WriteHalf<&'a mut TlsStream>,
        /// The number of bytes that are encrypted, but not yet handed to the system.
        taken: usize,
        records: RecordSize,
    },
}

impl Writer<'_> {
    /// Writes what can be written without waiting.
    pub(super) fn try_write(&mut self, bytes: &[u8]) {
        // If it fails, the connection is lost.
        match self {
            Self::Plain(writer) => drop(writer.try_write(bytes)),
            #[cfg(feature = "tls")]
            Self::Tls { .. } => {
                let mut cx = Context::from_waker(Waker::noop());
                let mut left = bytes;
                while !left.is_empty()
                    && let Poll::Ready(Ok(written @ 1..)) =
                        Pin::new(&mut *self).poll_write(&mut cx, left)
                {
                    left = &left[written..];
                }
            }
        }
    }
}

impl AsyncRead for Reader<'_> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(reader) => Pin::new(reader).poll_read(cx, buffer),
            #[cfg(feature = "tls")]
            Self::Tls(reader) => match ready!(Pin::new(reader).poll_read(cx, buffer)) {
                // The node sent no `close_notify`. The framing shows whether anything is missing.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
                result => Poll::Ready(result),
            },
        }
    }
}

impl AsyncWrite for Writer<'_> {
    /// Over TLS, after `Pending` it must be called with the same bytes at the front.
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(writer) => Pin::new(writer).poll_write(cx, bytes),
            #[cfg(feature = "tls")]
            Self::Tls { writer, taken, records } => {
                if *taken == 0 {
                    let front = records.front(bytes);
                    *taken = ready!(Pin::new(&mut *writer).poll_write(cx, front))?;
                }
                // Nothing else writes what is encrypted and did not fit.
                ready!(Pin::new(writer).poll_flush(cx))?;
                records.carried(*taken);
                Poll::Ready(Ok(std::mem::take(taken)))
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(writer) => Pin::new(writer).poll_flush(cx),
            #[cfg(feature = "tls")]
            Self::Tls { writer, .. } => Pin::new(writer).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(writer) => Pin::new(writer).poll_shutdown(cx),
            #[cfg(feature = "tls")]
            Self::Tls { writer, .. } => Pin::new(writer).poll_shutdown(cx),
        }
    }
}
