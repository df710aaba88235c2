//! A client's end of TLS over a socket that does not block.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme};

/// The settings of all clients. Each connection makes a full handshake.
#[derive(Clone)]
pub(crate) struct Settings(Arc<ClientConfig>);

impl Settings {
    pub(crate) fn new() -> io::Result<Self> {
        let provider = Arc::new(ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(OwnServer))
            .with_no_client_auth();
        config.resumption = Resumption::disabled();
        Ok(Self(Arc::new(config)))
    }
}

/// Accepts any certificate, since the server is this program in another process. Signatures are
/// still verified.
#[derive(Debug)]
struct OwnServer;

impl ServerCertVerifier for OwnServer {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = ring::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, &algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = ring::default_provider().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, &algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

/// A client's end of one connection.
pub(crate) struct End(Box<ClientConnection>);

impl End {
    pub(crate) fn new(settings: &Settings) -> io::Result<Self> {
        let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
        let connection = ClientConnection::new(Arc::clone(&settings.0), name);
        Ok(Self(Box::new(connection.map_err(io::Error::other)?)))
    }

    /// Encrypts `bytes`, and appends the records to `out`. During the handshake only its own records
    /// are appended, and the bytes wait.
    pub(crate) fn seal(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        self.0.writer().write_all(bytes)?;
        while self.0.wants_write() {
            self.0.write_tls(out)?;
        }
        Ok(())
    }

    /// Decrypts what was read, and appends the plaintext.
    pub(crate) fn open(&mut self, mut raw: &[u8], plaintext: &mut Vec<u8>) -> io::Result<()> {
        while !raw.is_empty() {
            self.0.read_tls(&mut raw)?;
            self.0.process_new_packets().map_err(io::Error::other)?;
            match self.0.reader().read_to_end(plaintext) {
                Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}
