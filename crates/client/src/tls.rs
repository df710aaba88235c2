//! TLS of the client: which certificates it trusts, and why a handshake failed.

#![cfg_attr(not(feature = "poll"), expect(unreachable_pub, reason = "`poll` shows them"))]

use std::io;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{AlertDescription, CertificateError, ClientConfig, Error as TlsError, RootCertStore};

use crate::Error;

/// The most plaintext in a record when a connection is new. A node can read nothing of a record
/// that is cut, so a connection that is lost early must not lose all that it carried.
const FIRST_RECORD_BYTES: usize = 512;

/// A record holds at most this part of what the connection has carried before, until it may be of
/// any size. The node's records grow alike.
const RECORD_PART: usize = 4;

/// The plaintext of a record (RFC 8446, 5.1).
const RECORD_BYTES: usize = 16 << 10;

/// TLS to one host: which certificates are trusted.
pub struct Tls {
    pub(crate) config: Arc<ClientConfig>,
    pub(crate) host: ServerName<'static>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("host", &self.host).finish_non_exhaustive()
    }
}

impl Tls {
    /// Trusts these certificates, in PEM or DER, or the system's if none are given.
    ///
    /// # Errors
    /// If the host can't be named in TLS, or certificates can't be read.
    pub fn new(host: &str, given: &[Vec<u8>], is_web_socket: bool) -> Result<Self, Error> {
        let host = named(host)?;
        let roots = if given.is_empty() { system_roots()? } else { given_roots(given)? };
        let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::usage(format!("TLS can't be set up: {error}")))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = alpn(is_web_socket);
        Ok(Self { config: Arc::new(config), host })
    }

    /// TLS to a host by a configuration of the program's own.
    ///
    /// # Errors
    /// If the host can't be named in TLS.
    pub fn with_config(config: Arc<ClientConfig>, host: &str) -> Result<Self, Error> {
        Ok(Self { config, host: named(host)? })
    }

    /// TLS to another host, by the same certificates.
    pub(crate) fn to(&self, host: &str, is_web_socket: bool) -> Result<Self, Error> {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = alpn(is_web_socket);
        Ok(Self { config: Arc::new(config), host: named(host)? })
    }
}

fn named(host: &str) -> Result<ServerName<'static>, Error> {
    ServerName::try_from(host.to_owned())
        .map_err(|error| Error::usage(format!("{host:?} can't be named in TLS: {error}")))
}

/// Native framing has no ALPN name.
fn alpn(is_web_socket: bool) -> Vec<Vec<u8>> {
    if is_web_socket { vec![b"http/1.1".to_vec()] } else { Vec::new() }
}

/// The size limit of the next record of a connection.
#[derive(Debug)]
pub(crate) struct RecordSize {
    bytes_max: usize,
}

impl RecordSize {
    pub(crate) const FIRST: Self = Self { bytes_max: FIRST_RECORD_BYTES };

    /// The part of these bytes that is encrypted at once: one record, or any number of them when
    /// they have grown.
    pub(crate) fn front<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        if self.bytes_max < RECORD_BYTES {
            &bytes[..bytes.len().min(self.bytes_max)]
        } else {
            bytes
        }
    }

    /// So many bytes were carried.
    pub(crate) fn carried(&mut self, bytes: usize) {
        self.bytes_max = (self.bytes_max + bytes / RECORD_PART).min(RECORD_BYTES);
    }
}

fn system_roots() -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    // Most systems have some that can't be parsed.
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let why = found.errors.first().map_or_else(|| "there are none".into(), ToString::to_string);
        return Err(Error::usage(format!(
            "the system's root certificates can't be read: {why}; install them (mostly the \
             package ca-certificates), or give some with root_certificate"
        )));
    }
    Ok(roots)
}

fn given_roots(given: &[Vec<u8>]) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    let unreadable = |why: String| Error::usage(format!("root_certificate can't be read: {why}"));
    for certificate in given {
        let is_pem = certificate.windows(10).any(|window| window == b"-----BEGIN");
        let certificates = if is_pem {
            CertificateDer::pem_slice_iter(certificate)
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| unreadable(error.to_string()))?
        } else {
            vec![CertificateDer::from(certificate.clone())]
        };
        if certificates.is_empty() {
            return Err(unreadable("it contains no certificate".into()));
        }
        for certificate in certificates {
            roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
        }
    }
    Ok(roots)
}

/// Why the TLS handshake failed, and what to do; and whether the node's certificate is the cause.
pub(crate) fn explain(error: &io::Error) -> (String, bool) {
    let Some(tls) = error.get_ref().and_then(|source| source.downcast_ref::<TlsError>()) else {
        let text = match error.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
                "the connection ended during the TLS handshake".into()
            }
            _ => format!("the connection failed during the TLS handshake: {error}"),
        };
        return (text, false);
    };
    match tls {
        TlsError::InvalidCertificate(why) => (certificate(why), true),
        TlsError::InvalidMessage(_) => {
            ("it does not answer in TLS; for a node without it, use ws:// or tcp://".into(), false)
        }
        TlsError::AlertReceived(AlertDescription::HandshakeFailure) => {
            ("it refuses TLS; it may have no certificate (tls.cert)".into(), false)
        }
        other => (format!("TLS failed: {other}"), false),
    }
}

fn certificate(why: &CertificateError) -> String {
    use CertificateError as Why;
    match why {
        Why::Expired | Why::ExpiredContext { .. } => {
            format!(
                "its certificate has expired, or this machine's clock is wrong: {why}; renew the \
                 certificate (tls.cert), or set the clock"
            )
        }
        Why::NotValidYet | Why::NotValidYetContext { .. } => {
            format!(
                "its certificate is not valid yet, or this machine's clock is wrong: {why}; wait, \
                 or set the clock"
            )
        }
        Why::NotValidForName | Why::NotValidForNameContext { .. } => {
            format!(
                "its certificate is for another name: {why}; connect by a name that it states, or \
                 give the node a certificate for this one (tls.cert)"
            )
        }
        Why::UnknownIssuer => "its certificate is from an unknown issuer; if that is right, give \
                               the issuer's certificate with root_certificate"
            .into(),
        _ => format!("its certificate is not accepted: {why}; give the node another (tls.cert)"),
    }
}

#[cfg(test)]
mod tests {
    use super::{FIRST_RECORD_BYTES, RECORD_BYTES, RECORD_PART, RecordSize};

    /// A cut takes along at most a part of what the connection has carried.
    #[test]
    fn records_grow_with_what_the_connection_has_carried() {
        let bytes = [0; 1 << 20];
        let (mut size, mut carried) = (RecordSize::FIRST, 0);
        while size.front(&bytes).len() < RECORD_BYTES {
            let record = size.front(&bytes).len();
            assert!(record <= FIRST_RECORD_BYTES + carried / RECORD_PART);
            assert_eq!(size.front(&bytes[..1]).len(), 1);
            carried += record;
            size.carried(record);
        }
        assert!(carried <= 5 * RECORD_BYTES, "large ones come soon: after {carried} bytes");
        assert_eq!(size.front(&bytes).len(), bytes.len());
    }
}
