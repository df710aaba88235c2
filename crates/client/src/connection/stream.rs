//! The socket of a connection, with or without TLS.

use std::io;
use std::pin::Pin;
#[cfg(feature = "tls")]
use std::task::ready;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

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
    pub(super) fn split(self) -> (Reader, Writer) {
        match self {
            Self::Plain(stream) => {
                let (reader, writer) = stream.into_split();
                (Reader::Plain(reader), Writer::Plain(writer))
            }
            #[cfg(feature = "tls")]
            Self::Tls(stream) => {
                let (reader, writer) = tokio::io::split(*stream);
                (Reader::Tls(reader), Writer::Tls { writer, taken: 0 })
            }
        }
    }
}

/// The half that is read.
pub(super) enum Reader {
    Plain(OwnedReadHalf),
    #[cfg(feature = "tls")]
    Tls(tokio::io::ReadHalf<TlsStream>),
}

/// The half that is written to. What it says is written has left for the system.
pub(super) enum Writer {
    Plain(OwnedWriteHalf),
    #[cfg(feature = "tls")]
    Tls {
        writer: tokio::io::WriteHalf<TlsStream>,
        /// How many bytes are encrypted and have not left yet.
        taken: usize,
    },
}

impl AsyncRead for Reader {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(reader) => Pin::new(reader).poll_read(cx, buffer),
            #[cfg(feature = "tls")]
            Self::Tls(reader) => match ready!(Pin::new(reader).poll_read(cx, buffer)) {
                // The node left without a farewell in TLS. What is cut off is noticed above.
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Poll::Ready(Ok(())),
                result => Poll::Ready(result),
            },
        }
    }
}

impl AsyncWrite for Writer {
    /// Over TLS, after `Pending` it must be called with the same bytes at the front.
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(writer) => Pin::new(writer).poll_write(cx, bytes),
            #[cfg(feature = "tls")]
            Self::Tls { writer, taken } => {
                if *taken == 0 {
                    *taken = ready!(Pin::new(&mut *writer).poll_write(cx, bytes))?;
                }
                // Nobody else would write what is encrypted and did not fit.
                ready!(Pin::new(writer).poll_flush(cx))?;
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
