//! Opens sockets to a node, with TLS where the URL asks for it.

use std::io;

use tokio::net::TcpStream;

use super::stream::Stream;
use crate::Error;

/// Where to connect to, and how. It may be used again, and TLS then resumes its session.
pub(super) struct Dial {
    /// Host and port.
    authority: String,
    #[cfg(feature = "tls")]
    tls: Option<super::tls::Tls>,
}

impl Dial {
    /// Connects to a host and a port; with TLS if `is_secure`.
    ///
    /// # Errors
    /// If TLS can't be set up: the host has no valid name, a certificate can't be read, or TLS is
    /// not built in.
    #[cfg(feature = "tls")]
    pub(super) fn new(
        authority: String,
        is_secure: bool,
        roots: &[Vec<u8>],
        alpn: Option<&[u8]>,
    ) -> Result<Self, Error> {
        let tls = is_secure.then(|| super::tls::Tls::new(&authority, roots, alpn)).transpose()?;
        Ok(Self { authority, tls })
    }

    #[cfg(not(feature = "tls"))]
    pub(super) fn new(
        authority: String,
        is_secure: bool,
        _: &[Vec<u8>],
        _: Option<&[u8]>,
    ) -> Result<Self, Error> {
        if is_secure {
            let text = format!("{authority}: TLS is not built in; enable the feature `tls`");
            return Err(Error::usage(text));
        }
        Ok(Self { authority })
    }

    /// A new socket, with TLS ready.
    pub(super) async fn connect(&self) -> Result<Stream, Error> {
        let unreachable = |error| Error::unreachable(&self.authority, error);
        let stream = self.connect_plain().await.map_err(unreachable)?;
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            let stream = tls.connect(stream).await;
            let stream = stream.map_err(|error| Error::insecure(&self.authority, &error))?;
            return Ok(Stream::Tls(Box::new(stream)));
        }
        Ok(Stream::Plain(stream))
    }

    async fn connect_plain(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(&self.authority).await?;
        // Messages are written in batches already: waiting for more only delays them.
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}
