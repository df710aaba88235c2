//! TLS of one connection of the node.

use playfield_tls::{Endpoint, RECORD_BYTES};
use rustls::server::UnbufferedServerConnection;
use rustls::{Error, HandshakeKind};

use super::TlsContext;
use crate::panics::guard;

/// The maximum size of what was received and can't be decrypted yet: part of a record, or of a
/// handshake message. A record takes at most 18,437 bytes (RFC 5246, 6.2.3).
const PARTIAL_BYTES_MAX: usize = 24 << 10;

/// The most plaintext in a record when a connection is new. A client can read nothing of a record
/// that is cut, so a connection that is lost early must not lose all that it carried.
const FIRST_RECORD_BYTES: usize = 512;

/// A record holds at most this part of what the connection has carried before, until it may be of
/// any size: as the dynamic record sizes of well-known servers.
const RECORD_PART: usize = 4;

/// The approximate size of the TLS library's state: `playfield-bench bench tls` measures it.
const STATE_BYTES: usize = 4 << 10;

/// TLS of one connection.
pub(crate) struct TlsConnection {
    endpoint: Endpoint<UnbufferedServerConnection>,
    /// The number of bytes at the front of the connection's output that are encrypted in the
    /// endpoint's unsent bytes. They count as written when the socket has taken all of it.
    sealed: usize,
    /// The size limit of the next record.
    record_bytes_max: usize,
    is_open: bool,
    /// The client has sent `close_notify`, or the connection has failed: nothing more is read.
    is_ended: bool,
}

/// The outcome of received bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Received {
    /// The handshake is complete, with these bytes.
    pub(crate) opened: Option<Opened>,
    /// The client sends nothing more, with these bytes.
    pub(crate) ended: bool,
}

/// The result of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    Full,
    Resumed,
}

impl TlsConnection {
    pub(crate) fn new(context: &TlsContext) -> Result<Self, Error> {
        let role = UnbufferedServerConnection::new(context.config())?;
        Ok(Self {
            endpoint: Endpoint::new(role, PARTIAL_BYTES_MAX)?,
            sealed: 0,
            record_bytes_max: FIRST_RECORD_BYTES,
            is_open: false,
            is_ended: false,
        })
    }

    /// Returns whether the handshake is complete.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns the memory it takes, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        STATE_BYTES + self.endpoint.buffer_bytes()
    }

    /// Returns whether the client has said that it sends nothing more.
    pub(crate) fn is_ended(&self) -> bool {
        self.is_ended
    }

    /// Reads what was received, and appends the plaintext. Answers are in [`unsent`](Self::unsent)
    /// then, even after an error.
    ///
    /// # Errors
    /// If the client violates TLS, or supports nothing that the node does. The connection is over.
    pub(crate) fn receive(
        &mut self,
        bytes: &mut [u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<Received, Error> {
        if self.is_ended {
            return Ok(Received::default());
        }
        self.is_ended = contained(|| self.endpoint.receive(bytes, plaintext))?;
        let mut received = Received { opened: None, ended: self.is_ended };
        let role = self.endpoint.role();
        if !self.is_open && !role.is_handshaking() {
            self.is_open = true;
            received.opened = Some(match role.handshake_kind() {
                Some(HandshakeKind::Resumed) => Opened::Resumed,
                _ => Opened::Full,
            });
        }
        Ok(received)
    }

    /// Encrypted bytes for the socket.
    pub(crate) fn unsent(&self) -> &[u8] {
        self.endpoint.unsent()
    }

    /// The socket has taken this many of the encrypted bytes. Returns how many bytes of the output
    /// are written: none, until all encrypted bytes are taken.
    pub(crate) fn sent(&mut self, bytes: usize) -> usize {
        self.endpoint.sent(bytes);
        if self.endpoint.unsent().is_empty() { std::mem::take(&mut self.sealed) } else { 0 }
    }

    /// Encrypts the front of the output as one record, into a buffer of any content. Returns how
    /// much of the output that is, and how long the record.
    ///
    /// # Errors
    /// If the connection can't go on, or the handshake is not complete.
    pub(crate) fn seal(
        &mut self,
        output: &[u8],
        record: &mut Vec<u8>,
    ) -> Result<(usize, usize), Error> {
        let chunk = &output[..output.len().min(self.record_bytes_max)];
        let bytes = contained(|| self.endpoint.encrypt(chunk, record, 0))?;
        self.record_bytes_max = grown(self.record_bytes_max, chunk.len());
        Ok((chunk.len(), bytes))
    }

    /// The socket did not take all of a record that holds `sealed` bytes of the output: the rest of
    /// the record waits.
    pub(crate) fn hold(&mut self, rest: &[u8], sealed: usize) {
        self.endpoint.hold(rest);
        self.sealed = sealed;
    }

    /// The connection can't go on. An alert that waits is still sent.
    pub(crate) fn fail(&mut self) {
        self.is_open = false;
        self.is_ended = true;
    }

    /// Appends `close_notify` to what is sent next, if the handshake is complete.
    pub(crate) fn close(&mut self) {
        if self.is_open {
            // If it can't be said, the client sees the end of the connection.
            let _ = contained(|| {
                self.endpoint.close();
                Ok(())
            });
        }
    }
}

/// Returns the size limit of the next record, after one of `written` bytes.
fn grown(record_bytes_max: usize, written: usize) -> usize {
    (record_bytes_max + written / RECORD_PART).min(RECORD_BYTES)
}

/// Calls into the TLS library. Should it panic, only this connection ends.
fn contained<T>(call: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let failed = || Err(Error::General("the TLS library failed".to_owned()));
    guard("the TLS library", call).unwrap_or_else(failed)
}

#[cfg(test)]
mod tests {
    use super::{FIRST_RECORD_BYTES, RECORD_BYTES, RECORD_PART, TlsConnection, grown};
    use crate::config::Config;
    use crate::tls::TlsContext;

    #[test]
    fn bytes_that_are_no_tls_are_answered_by_one_alert() {
        let mut config = Config::default();
        config.tls.self_signed = true;
        let context = TlsContext::new(&config).unwrap().unwrap();
        let mut connection = TlsConnection::new(&context).unwrap();
        let received = connection.receive(&mut [0x2a, 0x1a, 0x0a, 0x5b, 0, 0], &mut Vec::new());
        let error = received.unwrap_err();
        assert!(matches!(error, rustls::Error::InvalidMessage(_)), "{error}");
        // Its type, the version, the length, and what it says (RFC 8446, 5.1 and 6).
        let alert = connection.unsent();
        assert!(alert[0] == 21 && alert.len() == 7, "{alert:?}");
    }

    /// A record is at most a part of what the connection has carried: a lost connection loses no
    /// more.
    #[test]
    fn records_grow_with_what_the_connection_has_carried() {
        let (mut largest, mut carried) = (FIRST_RECORD_BYTES, 0);
        while largest < RECORD_BYTES {
            assert!(largest <= FIRST_RECORD_BYTES + carried / RECORD_PART);
            carried += largest;
            largest = grown(largest, largest);
        }
        assert!(carried <= 5 * RECORD_BYTES, "large ones come soon: after {carried} bytes");
        assert_eq!(grown(RECORD_BYTES, RECORD_BYTES), RECORD_BYTES);
    }
}
