//! A client's end of TLS.

use std::sync::Arc;

use playfield_tls::Endpoint;
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, Error, InvalidMessage};

/// The maximum size of what was received and can't be decrypted yet: part of a record, or of a
/// handshake message. `rustls` takes messages of up to 64 KiB.
const PARTIAL_BYTES_MAX: usize = 96 << 10;

/// The error of a server that has answered in TLS, and then sends something else.
pub(super) const NO_LONGER_TLS: &str = "what the server sent is not a record of TLS; it was before";

/// TLS of one connection.
#[derive(Debug)]
pub(crate) struct TlsState(Endpoint<UnbufferedClientConnection>);

impl TlsState {
    /// Begins a handshake.
    pub(crate) fn new(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Self, Error> {
        let role = UnbufferedClientConnection::new(config, name)?;
        Endpoint::new(role, PARTIAL_BYTES_MAX).map(Self)
    }

    pub(crate) fn connection(&self) -> &UnbufferedClientConnection {
        self.0.role()
    }

    /// Whether there is something to send that [`encrypt`](Self::encrypt) puts first.
    pub(crate) fn has_answers(&self) -> bool {
        !self.0.unsent().is_empty()
    }

    pub(crate) fn take_answers(&mut self) -> Vec<u8> {
        self.0.take_unsent()
    }

    /// Decrypts what was received, and appends the plaintext. Returns whether the server has ended
    /// the stream.
    ///
    /// # Errors
    /// If the server violates TLS, or is not whom it is to be. The alert that says so is an answer.
    pub(crate) fn receive(&mut self, input: &mut [u8], plain: &mut Vec<u8>) -> Result<bool, Error> {
        let received = self.0.receive(input, plain);
        received.map_err(|error| self.explained(error))
    }

    /// Whether the server has ended the stream.
    ///
    /// # Errors
    /// What was wrong in it.
    pub(crate) fn has_ended(&self) -> Result<bool, Error> {
        self.0.has_ended().map_err(|error| self.explained(error))
    }

    fn explained(&self, error: Error) -> Error {
        match error {
            Error::InvalidMessage(
                InvalidMessage::InvalidContentType | InvalidMessage::UnknownProtocolVersion,
            ) if self.0.has_received() => Error::General(NO_LONGER_TLS.into()),
            error => error,
        }
    }

    /// Encrypts bytes to send into the front of `records`, after the answers. Returns how many bytes
    /// these are.
    ///
    /// # Errors
    /// If the connection can't go on, or the handshake is not complete.
    pub(crate) fn encrypt(&mut self, plain: &[u8], records: &mut Vec<u8>) -> Result<usize, Error> {
        let answers = self.0.take_unsent();
        if records.len() < answers.len() {
            records.resize(answers.len(), 0);
        }
        records[..answers.len()].copy_from_slice(&answers);
        if plain.is_empty() {
            return Ok(answers.len());
        }
        self.0.encrypt(plain, records, answers.len())
    }

    /// Takes `close_notify`, if the connection is still usable, and what is to be sent before it.
    pub(crate) fn close(&mut self) -> Vec<u8> {
        self.0.close();
        self.0.take_unsent()
    }
}
