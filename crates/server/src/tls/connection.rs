//! TLS of one connection, as a state machine over bytes.
//!
//! It owns no buffers while nothing is on its way: records are decrypted where the shard's read
//! buffer holds them, and what is encrypted goes to the socket at once.

use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedStatus,
};
use rustls::{Error, HandshakeKind};

use super::TlsContext;
use crate::panics::guard;

/// The maximum size of what was received and can't be decrypted yet: part of a record, or of a
/// handshake message. A record takes at most 18,437 bytes (RFC 5246, 6.2.3).
const PARTIAL_BYTES_MAX: usize = 24 << 10;

/// The plaintext of a record (RFC 8446, 5.1).
const RECORD_BYTES: usize = 16 << 10;

/// How much plaintext a record holds when a connection is new. A client can read nothing of a
/// record that is cut, so a connection that is lost early must not lose all that it carried.
const FIRST_RECORD_BYTES: usize = 512;

/// A record holds at most this part of what the connection has carried before, until it may be of
/// any size: as the dynamic record sizes of well-known servers.
const RECORD_PART: usize = 4;

/// What a record takes beside its plaintext, at most: its header, and what the cipher adds.
const RECORD_OVERHEAD: usize = 64;

/// Types of records that may come before an alert (RFC 8446, 5.1).
const CHANGE_CIPHER_SPEC: u8 = 20;
const HANDSHAKE: u8 = 22;

/// What the state of the TLS library takes, nearly: `playfield-bench bench tls` measures it.
const STATE_BYTES: usize = 4 << 10;

/// TLS of one connection.
pub(crate) struct TlsConnection {
    state: UnbufferedServerConnection,
    /// Received bytes that are not a whole record yet.
    partial: Vec<u8>,
    /// Encrypted bytes that the socket has not taken yet.
    unsent: Vec<u8>,
    /// How many bytes at the front of the connection's output are encrypted in `unsent`. They count
    /// as written when the socket has taken all of it.
    sealed: usize,
    /// How large the next record may be.
    record_bytes_max: usize,
    is_open: bool,
    /// The client has sent `close_notify`: nothing of what it sends after is read.
    is_ended: bool,
    /// `close_notify` is sent.
    is_closed: bool,
}

/// What came of received bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Received {
    /// The handshake is complete, with these bytes.
    pub(crate) opened: Option<Opened>,
    /// The client sends nothing more, with these bytes.
    pub(crate) ended: bool,
}

/// How a handshake went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opened {
    Full,
    Resumed,
}

impl TlsConnection {
    pub(crate) fn new(context: &TlsContext) -> Result<Self, Error> {
        Ok(Self {
            state: UnbufferedServerConnection::new(context.config())?,
            partial: Vec::new(),
            unsent: Vec::new(),
            sealed: 0,
            record_bytes_max: FIRST_RECORD_BYTES,
            is_open: false,
            is_ended: false,
            is_closed: false,
        })
    }

    /// Whether the handshake is complete.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// How much memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        STATE_BYTES + self.partial.capacity() + self.unsent.capacity()
    }

    /// Whether the client has said that it sends nothing more.
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
        if self.partial.is_empty() {
            let (consumed, received) = self.decrypt_or_alert(bytes, plaintext)?;
            self.partial.extend_from_slice(&bytes[consumed..]);
            return self.check(received);
        }
        self.partial.extend_from_slice(bytes);
        let mut input = std::mem::take(&mut self.partial);
        let (consumed, received) = self.decrypt_or_alert(&mut input, plaintext)?;
        if consumed < input.len() {
            input.drain(..consumed);
            input.shrink_to(2 * input.len());
            self.partial = input;
        }
        self.check(received)
    }

    fn check(&mut self, received: Received) -> Result<Received, Error> {
        if received.ended {
            self.is_ended = true;
            self.partial = Vec::new();
        }
        if self.partial.len() > PARTIAL_BYTES_MAX {
            self.partial = Vec::new();
            let text = format!("a handshake message exceeds {PARTIAL_BYTES_MAX} bytes");
            return Err(Error::General(text));
        }
        Ok(received)
    }

    /// Decrypts all whole records, and says how many bytes are done with. After an error, encodes
    /// the alert that tells the client.
    fn decrypt_or_alert(
        &mut self,
        input: &mut [u8],
        plaintext: &mut Vec<u8>,
    ) -> Result<(usize, Received), Error> {
        let mut consumed = 0;
        let received = contained(|| self.decrypt(input, plaintext, &mut consumed));
        if received.is_err() {
            contained(|| self.encode_alert(&mut input[consumed..]))?;
        }
        Ok((consumed, received?))
    }

    fn decrypt(
        &mut self,
        input: &mut [u8],
        plaintext: &mut Vec<u8>,
        consumed: &mut usize,
    ) -> Result<Received, Error> {
        let mut received = Received::default();
        loop {
            let UnbufferedStatus { mut discard, state } =
                self.state.process_tls_records(&mut input[*consumed..]);
            let mut is_done = false;
            match state.inspect_err(|_| *consumed += discard)? {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record.inspect_err(|_| *consumed += discard)?;
                        discard += record.discard;
                        plaintext.extend_from_slice(record.payload);
                    }
                }
                ConnectionState::EncodeTlsData(mut data) => {
                    encode(&mut self.unsent, |out| data.encode(out))?;
                }
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => received.ended = true,
                // There is no early data, because no ticket allows any.
                _ => is_done = true,
            }
            *consumed += discard;
            if is_done {
                break;
            }
        }
        if !self.is_open && !self.state.is_handshaking() {
            self.is_open = true;
            received.opened = Some(match self.state.handshake_kind() {
                Some(HandshakeKind::Resumed) => Opened::Resumed,
                _ => Opened::Full,
            });
        }
        Ok(received)
    }

    /// Encodes the alert that an error has left, and what the client is to read before it. `input`
    /// is what was received and is not done with: parts of a handshake message lie in it, to which
    /// the state refers.
    fn encode_alert(&mut self, input: &mut [u8]) -> Result<(), Error> {
        while let ConnectionState::EncodeTlsData(mut data) =
            self.state.process_tls_records(input).state?
        {
            let start = self.unsent.len();
            encode(&mut self.unsent, |out| data.encode(out))?;
            // An alert is the last. To go on would read the input that is wrong once more.
            if !matches!(self.unsent.get(start), Some(&(HANDSHAKE | CHANGE_CIPHER_SPEC))) {
                break;
            }
        }
        Ok(())
    }

    /// Encrypted bytes for the socket.
    pub(crate) fn unsent(&self) -> &[u8] {
        &self.unsent
    }

    /// The socket has taken this many of the encrypted bytes. Returns how many bytes of the output
    /// are written: none, until all encrypted bytes are taken.
    pub(crate) fn sent(&mut self, bytes: usize) -> usize {
        if bytes < self.unsent.len() {
            self.unsent.drain(..bytes);
            return 0;
        }
        // An idle connection owns no buffer.
        self.unsent = Vec::new();
        std::mem::take(&mut self.sealed)
    }

    /// Encrypts the front of the output, as one record, into a buffer that is empty. Returns how
    /// much of the output that is.
    ///
    /// # Errors
    /// If the connection can't go on, or the handshake is not complete.
    pub(crate) fn seal(&mut self, output: &[u8], record: &mut Vec<u8>) -> Result<usize, Error> {
        // The state may refer to what was received and is not done with.
        let mut input = std::mem::take(&mut self.partial);
        let sealed = contained(|| self.seal_beside(&mut input, output, record));
        self.partial = input;
        sealed
    }

    fn seal_beside(
        &mut self,
        input: &mut [u8],
        output: &[u8],
        record: &mut Vec<u8>,
    ) -> Result<usize, Error> {
        let chunk = &output[..output.len().min(self.record_bytes_max)];
        loop {
            match self.state.process_tls_records(input).state? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    record.resize(chunk.len() + RECORD_OVERHEAD, 0);
                    encrypt(record, |out| traffic.encrypt(chunk, out))?;
                    self.record_bytes_max = grown(self.record_bytes_max, chunk.len());
                    return Ok(chunk.len());
                }
                ConnectionState::EncodeTlsData(mut data) => {
                    encode(&mut self.unsent, |out| data.encode(out))?;
                }
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => {}
                _ => return Err(Error::HandshakeNotComplete),
            }
        }
    }

    /// The socket did not take all of a record that holds `sealed` bytes of the output: the rest of
    /// the record waits.
    pub(crate) fn hold(&mut self, rest: &[u8], sealed: usize) {
        self.unsent.extend_from_slice(rest);
        self.sealed = sealed;
    }

    /// The connection can't go on. An alert that waits is still sent.
    pub(crate) fn fail(&mut self) {
        self.is_open = false;
        self.is_ended = true;
    }

    /// Appends `close_notify` to what is sent next, if the handshake is complete.
    pub(crate) fn close(&mut self) {
        if !self.is_open || std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        let mut input = std::mem::take(&mut self.partial);
        // If it can't be said, the client sees the end of the connection.
        let _ = contained(|| self.close_beside(&mut input));
    }

    fn close_beside(&mut self, input: &mut [u8]) -> Result<(), Error> {
        for _ in 0..2 {
            match self.state.process_tls_records(input).state? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    let mut record = vec![0; RECORD_OVERHEAD];
                    encrypt(&mut record, |out| traffic.queue_close_notify(out))?;
                    self.unsent.append(&mut record);
                    return Ok(());
                }
                ConnectionState::PeerClosed => {}
                _ => return Ok(()),
            }
        }
        Ok(())
    }
}

/// How large the next record may be, after one of `written` bytes.
fn grown(record_bytes_max: usize, written: usize) -> usize {
    (record_bytes_max + written / RECORD_PART).min(RECORD_BYTES)
}

/// Calls into the TLS library. Should it panic, only this connection ends.
fn contained<T>(call: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let failed = || Err(Error::General("the TLS library failed".to_owned()));
    guard("the TLS library", call).unwrap_or_else(failed)
}

/// Encrypts into a buffer, which is as long as the result then.
fn encrypt(
    record: &mut Vec<u8>,
    mut encrypt: impl FnMut(&mut [u8]) -> Result<usize, EncryptError>,
) -> Result<(), Error> {
    loop {
        match encrypt(record) {
            Ok(bytes) => {
                record.truncate(bytes);
                return Ok(());
            }
            // An answer to a key update goes first.
            Err(EncryptError::InsufficientSize(InsufficientSizeError { required_size }))
                if required_size > record.len() =>
            {
                record.resize(required_size, 0);
            }
            Err(error) => {
                record.clear();
                return Err(Error::General(error.to_string()));
            }
        }
    }
}

/// Appends a handshake record or an alert.
fn encode(
    unsent: &mut Vec<u8>,
    mut encode: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>,
) -> Result<(), Error> {
    let start = unsent.len();
    let bytes = match encode(&mut []) {
        Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => {
            unsent.resize(start + required_size, 0);
            encode(&mut unsent[start..])
        }
        other => other,
    };
    let bytes = bytes.map_err(|error| Error::General(error.to_string()))?;
    unsent.truncate(start + bytes);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{FIRST_RECORD_BYTES, RECORD_BYTES, RECORD_PART, TlsConnection, grown};
    use crate::config::Config;
    use crate::tls::TlsContext;

    #[test]
    fn bytes_that_are_no_tls_are_answered_by_one_alert() {
        let config = Config { tls_self_signed: true, ..Config::default() };
        let context = TlsContext::new(&config).unwrap().unwrap();
        let mut connection = TlsConnection::new(&context).unwrap();
        let received = connection.receive(&mut [0x2a, 0x1a, 0x0a, 0x5b, 0, 0], &mut Vec::new());
        let error = received.unwrap_err();
        assert!(matches!(error, rustls::Error::InvalidMessage(_)), "{error}");
        // Its type, the version, the length, and what it says (RFC 8446, 5.1 and 6).
        let alert = connection.unsent();
        assert!(alert[0] == 21 && alert.len() == 7, "{alert:?}");
    }

    /// Who loses a connection loses at most a part of what it has carried.
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
