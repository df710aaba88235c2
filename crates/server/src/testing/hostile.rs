//! Parts of a node that read bytes of strangers, for fuzz targets (`fuzz`).

use std::net::SocketAddr;

use crate::config::Config;
use crate::proxy::{Proxied, proxied};
use crate::tls::{TlsConnection, TlsContext};

/// TLS of a node with a self-signed certificate.
pub struct Tls(TlsContext);

impl Tls {
    /// # Errors
    /// If there is no certificate.
    pub fn new() -> Result<Self, String> {
        let mut config = Config::default();
        config.tls.self_signed = true;
        TlsContext::new(&config)?.map(Self).ok_or_else(|| "no TLS".to_owned())
    }

    /// A connection that has received nothing.
    ///
    /// # Errors
    /// If the library can't make one.
    pub fn connection(&self) -> Result<TlsEnd, rustls::Error> {
        TlsConnection::new(&self.0).map(TlsEnd)
    }
}

/// The node's end of a connection.
pub struct TlsEnd(TlsConnection);

impl TlsEnd {
    /// Appends the plaintext of what was received. Whether the client sends more.
    ///
    /// # Errors
    /// If the client violates TLS. The connection is over.
    pub fn receive(
        &mut self,
        bytes: &mut [u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<bool, rustls::Error> {
        let received = self.0.receive(bytes, plaintext);
        received.map(|received| !received.ended).inspect_err(|_| self.0.fail())
    }

    /// Returns whether the handshake is complete.
    pub fn is_open(&self) -> bool {
        self.0.is_open()
    }

    /// Appends the front of the output, encrypted, and says how much of it that is.
    ///
    /// # Errors
    /// If the handshake is not complete, or the connection is over.
    pub fn seal(&mut self, output: &[u8], sent: &mut Vec<u8>) -> Result<usize, rustls::Error> {
        let mut record = Vec::new();
        let sealed = self.0.seal(output, &mut record);
        self.take_unsent(sent);
        let (sealed, bytes) = sealed?;
        sent.extend_from_slice(&record[..bytes]);
        Ok(sealed)
    }

    /// Appends what the client has to be sent.
    pub fn take_unsent(&mut self, sent: &mut Vec<u8>) {
        sent.extend_from_slice(self.0.unsent());
        self.0.sent(self.0.unsent().len());
    }

    /// Says that nothing more comes.
    pub fn close(&mut self) {
        self.0.close();
    }
}

/// Returns the number of bytes that the header of the PROXY protocol takes, and the client that it
/// names; `None` if there is no whole header.
pub fn proxy_header(input: &[u8]) -> Option<(usize, Option<SocketAddr>)> {
    match proxied(input) {
        Proxied::Header { bytes, client } => Some((bytes, client)),
        _ => None,
    }
}
