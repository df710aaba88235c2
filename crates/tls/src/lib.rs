//! TLS without buffers: either end of a connection, as a state machine over bytes.
//!
//! An [`Endpoint`] owns no buffer while nothing is on its way: records are decrypted where the
//! caller's read buffer holds them, and encrypted into a buffer of the caller's.

use rustls::Error;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedStatus,
    WriteTraffic,
};

/// The plaintext of a record (RFC 8446, 5.1).
pub const RECORD_BYTES: usize = 16 << 10;

/// The header of a record: its type, the version, and the length of the rest (RFC 8446, 5.1).
const HEADER_BYTES: usize = 5;

/// The maximum overhead of a record beside its plaintext: its header, and what the cipher adds.
const RECORD_OVERHEAD: usize = 64;

/// Types of records that may come before an alert (RFC 8446, 5.1).
const CHANGE_CIPHER_SPEC: u8 = 20;
const HANDSHAKE: u8 = 22;

/// A role in TLS: the client's or the server's.
pub trait Role {
    /// The library's data for the role.
    type Data;

    /// Reads the first record of `input`, or says what is to be sent.
    fn process<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;
}

impl Role for UnbufferedClientConnection {
    type Data = ClientConnectionData;

    fn process<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(input)
    }
}

impl Role for UnbufferedServerConnection {
    type Data = ServerConnectionData;

    fn process<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(input)
    }
}

/// One end of a connection.
pub struct Endpoint<R> {
    role: R,
    /// The maximum size of `partial`.
    partial_bytes_max: usize,
    /// Received bytes that are not a whole record, or a whole handshake message, yet.
    partial: Vec<u8>,
    /// Encrypted bytes to send before all others: parts of the handshake, alerts, and what the
    /// caller could not write.
    unsent: Vec<u8>,
    /// The peer has sent `close_notify`, or something wrong: nothing that comes after is read.
    ended: Option<Result<(), Error>>,
    /// `close_notify` or an alert is among what was to be sent.
    is_closed: bool,
    /// A record of the peer was read.
    has_received: bool,
}

impl<R: Role> Endpoint<R> {
    /// An end of a new connection. It keeps at most `partial_bytes_max` bytes that can't be
    /// decrypted yet: part of a record, which takes at most 18,437 bytes (RFC 5246, 6.2.3), or of a
    /// handshake message.
    ///
    /// # Errors
    /// If the library can't begin the handshake.
    pub fn new(role: R, partial_bytes_max: usize) -> Result<Self, Error> {
        let mut endpoint = Self {
            role,
            partial_bytes_max,
            partial: Vec::new(),
            unsent: Vec::new(),
            ended: None,
            is_closed: false,
            has_received: false,
        };
        endpoint.decrypt(&mut [], &mut Vec::new(), &mut 0)?;
        Ok(endpoint)
    }

    /// The library's end of the connection.
    pub fn role(&self) -> &R {
        &self.role
    }

    /// The memory of its buffers, in bytes.
    pub fn buffer_bytes(&self) -> usize {
        self.partial.capacity() + self.unsent.capacity()
    }

    /// Returns whether a record of the peer was read.
    pub fn has_received(&self) -> bool {
        self.has_received
    }

    /// Returns whether the peer sends nothing more.
    ///
    /// # Errors
    /// What was wrong in what it sent.
    pub fn has_ended(&self) -> Result<bool, Error> {
        self.ended.clone().map_or(Ok(false), |ended| ended.map(|()| true))
    }

    /// Decrypts what was received, and appends the plaintext. Overwrites `input`. Returns whether
    /// the peer has ended the stream; what comes after is ignored. What is to be answered is
    /// [`unsent`](Self::unsent) then, even after an error.
    ///
    /// # Errors
    /// If the peer violates TLS, or the two support nothing in common. The connection is over.
    pub fn receive(&mut self, input: &mut [u8], plain: &mut Vec<u8>) -> Result<bool, Error> {
        if self.ended.is_none() {
            self.ended = self
                .receive_all(input, plain)
                .map_or_else(|error| Some(Err(error)), |is_ended| is_ended.then_some(Ok(())));
        }
        if self.ended.is_some() {
            self.partial = Vec::new();
        }
        self.has_ended()
    }

    fn receive_all(&mut self, mut input: &mut [u8], plain: &mut Vec<u8>) -> Result<bool, Error> {
        // The record that is cut is completed apart; those behind it stay where they are.
        while !self.partial.is_empty() && !input.is_empty() {
            let missing = missing_bytes(&self.partial).min(input.len());
            let (more, rest) = input.split_at_mut(missing);
            self.partial.extend_from_slice(more);
            input = rest;
            let mut partial = std::mem::take(&mut self.partial);
            let (used, is_ended) = self.decrypt_or_alert(&mut partial, plain)?;
            if is_ended {
                return Ok(true);
            }
            partial.drain(..used);
            if !partial.is_empty() {
                self.partial = partial;
                self.check_partial()?;
            }
        }
        if input.is_empty() {
            return Ok(false);
        }
        let (used, is_ended) = self.decrypt_or_alert(input, plain)?;
        self.partial.extend_from_slice(&input[used..]);
        self.check_partial()?;
        Ok(is_ended)
    }

    fn check_partial(&self) -> Result<(), Error> {
        let bytes_max = self.partial_bytes_max;
        if self.partial.len() > bytes_max {
            let text = format!("a handshake message takes more than {bytes_max} bytes");
            return Err(Error::General(text));
        }
        Ok(())
    }

    /// Decrypts all whole records. Returns how many bytes are done with, and whether the peer has
    /// ended the stream. After an error, encodes the alert that tells the peer.
    fn decrypt_or_alert(
        &mut self,
        input: &mut [u8],
        plain: &mut Vec<u8>,
    ) -> Result<(usize, bool), Error> {
        let mut used = 0;
        let decrypted = self.decrypt(input, plain, &mut used);
        self.has_received |= used > 0;
        let is_ended = decrypted.inspect_err(|_| {
            self.is_closed = true;
            // What the alert can't say, the end of the connection does.
            let _ = self.encode_alert(&mut input[used..]);
        })?;
        Ok((used, is_ended))
    }

    fn decrypt(
        &mut self,
        input: &mut [u8],
        plain: &mut Vec<u8>,
        used: &mut usize,
    ) -> Result<bool, Error> {
        let mut is_ended = false;
        loop {
            let UnbufferedStatus { mut discard, state } = self.role.process(&mut input[*used..]);
            let mut is_done = false;
            match state.inspect_err(|_| *used += discard)? {
                ConnectionState::ReadTraffic(mut traffic) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record.inspect_err(|_| *used += discard)?;
                        discard += record.discard;
                        plain.extend_from_slice(record.payload);
                    }
                }
                ConnectionState::EncodeTlsData(mut data) => {
                    encode(&mut self.unsent, |out| data.encode(out))?;
                }
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => is_ended = true,
                // There is no early data, because nobody allows any.
                _ => is_done = true,
            }
            *used += discard;
            if is_done {
                return Ok(is_ended);
            }
        }
    }

    /// Encodes the alert that an error has left, and what the peer is to read before it. `input` is
    /// what was received and is not done with: parts of a handshake message lie in it, to which the
    /// library's state refers.
    fn encode_alert(&mut self, input: &mut [u8]) -> Result<(), Error> {
        while let ConnectionState::EncodeTlsData(mut data) = self.role.process(input).state? {
            let start = self.unsent.len();
            encode(&mut self.unsent, |out| data.encode(out))?;
            // An alert is the last. To go on would read the input that is wrong once more.
            if !matches!(self.unsent.get(start), Some(&(HANDSHAKE | CHANGE_CIPHER_SPEC))) {
                break;
            }
        }
        Ok(())
    }

    /// Encrypted bytes to send before all others.
    pub fn unsent(&self) -> &[u8] {
        &self.unsent
    }

    /// Takes [`unsent`](Self::unsent).
    pub fn take_unsent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.unsent)
    }

    /// So many bytes of [`unsent`](Self::unsent) were sent.
    pub fn sent(&mut self, bytes: usize) {
        if bytes < self.unsent.len() {
            self.unsent.drain(..bytes);
        } else {
            // An idle connection owns no buffer.
            self.unsent = Vec::new();
        }
    }

    /// Appends encrypted bytes that could not be sent to [`unsent`](Self::unsent).
    pub fn hold(&mut self, rest: &[u8]) {
        self.unsent.extend_from_slice(rest);
    }

    /// Encrypts bytes to send, into `records` from `start` on. `records` may have any length: it
    /// grows as needed, and is not cleared. Returns where the records end.
    ///
    /// # Errors
    /// If the connection can't go on, or the handshake is not complete.
    pub fn encrypt(
        &mut self,
        plain: &[u8],
        records: &mut Vec<u8>,
        start: usize,
    ) -> Result<usize, Error> {
        let bytes_max = start + plain.len() + (1 + plain.len() / RECORD_BYTES) * RECORD_OVERHEAD;
        if records.len() < bytes_max {
            records.resize(bytes_max, 0);
        }
        self.write(records, start, |traffic, records| traffic.encrypt(plain, records))
    }

    /// Appends `close_notify` to [`unsent`](Self::unsent), once, if the connection is still usable:
    /// without it, the peer can't tell the end of the stream from a cut.
    pub fn close(&mut self) {
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        let mut record = vec![0; RECORD_OVERHEAD];
        let written =
            self.write(&mut record, 0, |traffic, record| traffic.queue_close_notify(record));
        // If it can't be said, the peer sees the end of the connection.
        if let Ok(bytes) = written {
            self.unsent.extend_from_slice(&record[..bytes]);
        }
    }

    /// Has `write` fill `records` from `start` on, and returns where that ends.
    fn write(
        &mut self,
        records: &mut Vec<u8>,
        start: usize,
        mut write: impl FnMut(&mut WriteTraffic<'_, R::Data>, &mut [u8]) -> Result<usize, EncryptError>,
    ) -> Result<usize, Error> {
        loop {
            // The library's state may refer to what was received and is not done with.
            match self.role.process(&mut self.partial).state? {
                ConnectionState::WriteTraffic(mut traffic) => {
                    match write(&mut traffic, &mut records[start..]) {
                        Ok(bytes) => return Ok(start + bytes),
                        // An answer to a key update goes first.
                        Err(EncryptError::InsufficientSize(InsufficientSizeError {
                            required_size,
                        })) if start + required_size > records.len() => {
                            records.resize(start + required_size, 0);
                        }
                        Err(error) => return Err(Error::General(error.to_string())),
                    }
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
}

impl<R> std::fmt::Debug for Endpoint<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("partial_bytes", &self.partial.len())
            .field("unsent_bytes", &self.unsent.len())
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// Returns the number of bytes to add to `partial`, which ends within a record or right behind one,
/// until it ends with a whole record or header.
fn missing_bytes(partial: &[u8]) -> usize {
    let mut rest = partial;
    while let Some((header, body)) = rest.split_first_chunk::<HEADER_BYTES>() {
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        match body.get(length..) {
            Some(behind) => rest = behind,
            None => return length - body.len(),
        }
    }
    HEADER_BYTES - rest.len()
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
