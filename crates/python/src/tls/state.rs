//! A client's end of TLS, as a state machine over bytes.
//!
//! It owns no buffers while nothing is on its way: records are decrypted where the thread's read
//! buffer holds them, and encrypted into the thread's write buffer.

use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedStatus,
};
use rustls::{ClientConfig, Error, InvalidMessage};

/// The maximum size of what was received and can't be decrypted yet: part of a record, or of a
/// handshake message. `rustls` takes messages of up to 64 KiB, and a record takes at most 18,437
/// bytes (RFC 5246, 6.2.3).
pub(crate) const PARTIAL_BYTES_MAX: usize = 96 << 10;

/// The plaintext of a record (RFC 8446, 5.1).
const RECORD_BYTES: usize = 16 << 10;

/// What a record takes beside its plaintext, at most: its header, and what the cipher adds.
const RECORD_OVERHEAD: usize = 64;

/// What is wrong if the server has answered in TLS, and then sends something else.
pub(super) const NO_LONGER_TLS: &str = "what the server sent is not a record of TLS; it was before";

/// Types of records that may come before an alert (RFC 8446, 5.1).
const CHANGE_CIPHER_SPEC: u8 = 20;
const HANDSHAKE: u8 = 22;

/// TLS of one connection.
pub(crate) struct TlsState {
    connection: UnbufferedClientConnection,
    /// Received bytes that are not a whole record or handshake message yet.
    partial: Vec<u8>,
    /// Encrypted bytes that answer the server: parts of the handshake, and alerts.
    answers: Vec<u8>,
    /// The server has sent `close_notify`, or something wrong: nothing of what it sends after is read.
    ended: Option<Result<(), Error>>,
    /// It has failed, or `close_notify` is sent.
    is_closed: bool,
    /// The server has sent a record of TLS.
    has_answered: bool,
}

impl std::fmt::Debug for TlsState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsState")
            .field("partial_bytes", &self.partial.len())
            .finish_non_exhaustive()
    }
}

impl TlsState {
    /// Begins a handshake.
    pub(crate) fn new(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, Error> {
        let mut state = Self {
            connection: UnbufferedClientConnection::new(config, name)?,
            partial: Vec::new(),
            answers: Vec::new(),
            ended: None,
            is_closed: false,
            has_answered: false,
        };
        state.decrypt(&mut [], &mut Vec::new(), &mut 0)?;
        Ok(state)
    }

    pub(crate) fn connection(&self) -> &UnbufferedClientConnection {
        &self.connection
    }

    /// Whether there is something to send that [`encrypt`](Self::encrypt) puts first.
    pub(crate) fn has_answers(&self) -> bool {
        !self.answers.is_empty()
    }

    pub(crate) fn take_answers(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.answers)
    }

    /// Decrypts what was received, and appends the plaintext. `buffer` holds the received bytes
    /// behind [`PARTIAL_BYTES_MAX`] others, which are overwritten. Returns whether the server has
    /// ended the stream.
    ///
    /// # Errors
    /// If the server violates TLS, or is not whom it is to be. The alert that says so is an answer.
    pub(crate) fn receive(
        &mut self,
        buffer: &mut [u8],
        received_bytes: usize,
        plain: &mut Vec<u8>,
    ) -> Result<bool, Error> {
        if self.ended.is_some() {
            return self.has_ended();
        }
        let begin = PARTIAL_BYTES_MAX - self.partial.len();
        buffer[begin..PARTIAL_BYTES_MAX].copy_from_slice(&self.partial);
        self.partial.clear();
        let input = &mut buffer[begin..PARTIAL_BYTES_MAX + received_bytes];
        let mut used = 0;
        let decrypted = self.decrypt(input, plain, &mut used);
        let rest = &mut input[used..];
        let decrypted = match decrypted {
            Ok(_) if rest.len() > PARTIAL_BYTES_MAX => Err(Error::General(format!(
                "a handshake message takes more than {PARTIAL_BYTES_MAX} bytes"
            ))),
            Err(error) => {
                // What the alert can't say, the end of the connection does.
                let _ = self.encode_alert(rest);
                Err(match error {
                    Error::InvalidMessage(
                        InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
                    ) if self.has_answered || used > 0 => Error::General(NO_LONGER_TLS.into()),
                    error => error,
                })
            }
            decrypted => decrypted,
        };
        self.has_answered |= used > 0;
        self.is_closed |= decrypted.is_err();
        self.ended = match decrypted {
            Ok(false) => None,
            Ok(true) => Some(Ok(())),
            Err(error) => Some(Err(error)),
        };
        if self.ended.is_some() || rest.is_empty() {
            // An idle connection owns no buffer.
            self.partial = Vec::new();
        } else {
            self.partial.extend_from_slice(rest);
        }
        self.has_ended()
    }

    /// Whether the server has ended the stream.
    ///
    /// # Errors
    /// What was wrong in it.
    pub(crate) fn has_ended(&self) -> Result<bool, Error> {
        self.ended.clone().map_or(Ok(false), |ended| ended.map(|()| true))
    }

    /// Decrypts all whole records, and says how many bytes are done with.
    fn decrypt(
        &mut self,
        input: &mut [u8],
        plain: &mut Vec<u8>,
        used: &mut usize,
    ) -> Result<bool, Error> {
        let mut ended = false;
        loop {
            let UnbufferedStatus { mut discard, state } =
                self.connection.process_tls_records(&mut input[*used..]);
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
                    encode(&mut self.answers, |out| data.encode(out))?;
                }
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => ended = true,
                _ => is_done = true,
            }
            *used += discard;
            if is_done {
                return Ok(ended);
            }
        }
    }

    /// Encodes the alert that an error has left, and what the server is to read before it. `input`
    /// is what was received and is not done with: parts of a handshake message lie in it, to which
    /// the state refers.
    fn encode_alert(&mut self, input: &mut [u8]) -> Result<(), Error> {
        while let ConnectionState::EncodeTlsData(mut data) =
            self.connection.process_tls_records(input).state?
        {
            let start = self.answers.len();
            encode(&mut self.answers, |out| data.encode(out))?;
            // An alert is the last. To go on would read the input that is wrong once more.
            if !matches!(self.answers.get(start), Some(&(HANDSHAKE | CHANGE_CIPHER_SPEC))) {
                break;
            }
        }
        Ok(())
    }

    /// Encrypts bytes to send into the front of `records`, after the answers. Returns how many bytes
    /// these are.
    ///
    /// # Errors
    /// If the connection can't go on, or the handshake is not complete.
    pub(crate) fn encrypt(&mut self, plain: &[u8], records: &mut Vec<u8>) -> Result<usize, Error> {
        let answers = std::mem::take(&mut self.answers);
        let bytes_max =
            plain.len() + (1 + plain.len() / RECORD_BYTES) * RECORD_OVERHEAD + answers.len();
        if records.len() < bytes_max {
            records.resize(bytes_max, 0);
        }
        records[..answers.len()].copy_from_slice(&answers);
        if plain.is_empty() {
            return Ok(answers.len());
        }
        // The state may refer to what was received and is not done with.
        let mut input = std::mem::take(&mut self.partial);
        let encrypted = self.write(&mut input, records, answers.len(), |traffic, records| {
            traffic.encrypt(plain, records)
        });
        self.partial = input;
        encrypted
    }

    /// Encrypts `close_notify`, if the connection is still usable. Returns how many bytes of
    /// `records` it takes.
    pub(crate) fn close(&mut self, records: &mut Vec<u8>) -> usize {
        if std::mem::replace(&mut self.is_closed, true) {
            return 0;
        }
        records.resize(records.len().max(RECORD_OVERHEAD), 0);
        let mut input = std::mem::take(&mut self.partial);
        let encrypted = self
            .write(&mut input, records, 0, |traffic, records| traffic.queue_close_notify(records));
        self.partial = input;
        // If it can't be said, the server sees the end of the connection.
        encrypted.unwrap_or(0)
    }

    /// Has `write` fill `records` from `start` on, and returns where that ends.
    fn write(
        &mut self,
        input: &mut [u8],
        records: &mut Vec<u8>,
        start: usize,
        mut write: impl FnMut(&mut Traffic<'_>, &mut [u8]) -> Result<usize, EncryptError>,
    ) -> Result<usize, Error> {
        loop {
            match self.connection.process_tls_records(input).state? {
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
                // The handshake's last part was an answer, or the server has sent its last record.
                ConnectionState::TransmitTlsData(data) => data.done(),
                ConnectionState::PeerClosed => {}
                _ => return Err(Error::HandshakeNotComplete),
            }
        }
    }
}

type Traffic<'a> = rustls::unbuffered::WriteTraffic<'a, rustls::client::ClientConnectionData>;

/// Appends a handshake record or an alert.
fn encode(
    answers: &mut Vec<u8>,
    mut encode: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>,
) -> Result<(), Error> {
    let start = answers.len();
    let bytes = match encode(&mut []) {
        Err(EncodeError::InsufficientSize(InsufficientSizeError { required_size })) => {
            answers.resize(start + required_size, 0);
            encode(&mut answers[start..])
        }
        other => other,
    };
    let bytes = bytes.map_err(|error| Error::General(error.to_string()))?;
    answers.truncate(start + bytes);
    Ok(())
}
