//! Opens the transport that a URL names, once for each connection.

use std::io;
#[cfg(feature = "tls")]
use std::sync::Arc;

use tokio::net::TcpStream;
#[cfg(feature = "tls")]
use tokio_rustls::TlsConnector;

use super::stream::Stream;
use crate::Error;
use crate::dial::Dialer;
#[cfg(feature = "tls")]
use crate::tls::explain;

impl Dialer {
    /// Connects, with TLS ready. The name is looked up each time: the node's address may have
    /// changed.
    pub(super) async fn dial(&self) -> Result<Stream, Error> {
        let stream = self.dial_plain().await;
        let stream = stream.map_err(|error| Error::unreachable(&self.authority, error))?;
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            let connector = TlsConnector::from(Arc::clone(&tls.config));
            let stream = connector.connect(tls.host.clone(), stream).await;
            let stream = stream.map_err(|error| {
                let (why, is_untrusted) = explain(&error);
                Error::insecure(&self.authority, why, is_untrusted)
            })?;
            return Ok(Stream::Tls(Box::new(stream)));
        }
        Ok(Stream::Plain(stream))
    }

    async fn dial_plain(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(&*self.authority).await?;
        // Messages are written in batches already: waiting for more only delays them.
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}
