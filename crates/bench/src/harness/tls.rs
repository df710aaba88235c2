//! TLS of clients: each connection makes a full handshake with a server of this program.

use std::io;
use std::sync::Arc;

use playfield_client::poll::Tls;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, SignatureScheme};

const HOST: &str = "localhost";

/// TLS without resumption.
pub(crate) fn tls() -> io::Result<Tls> {
    Tls::with_config(config()?, HOST).map_err(io::Error::other)
}

/// The first bytes of a handshake.
pub(crate) fn hello() -> io::Result<Vec<u8>> {
    let name = ServerName::try_from(HOST).map_err(io::Error::other)?;
    let mut connection = ClientConnection::new(config()?, name).map_err(io::Error::other)?;
    let mut out = Vec::new();
    connection.write_tls(&mut out)?;
    Ok(out)
}

fn config() -> io::Result<Arc<ClientConfig>> {
    let provider = Arc::new(ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(OwnServer))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
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
