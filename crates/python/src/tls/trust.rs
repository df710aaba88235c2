//! Whom a TLS client trusts, and how it is set up.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, CipherSuite, ClientConfig, DigitallySignedStruct, Error, KeyLogFile,
    RootCertStore, SignatureScheme,
};
use rustls_native_certs::CertificateResult;

use crate::exit;

/// The places of the root certificates, as `ssl.get_default_verify_paths()` says: a file, and a
/// folder. Without both, the system is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Roots {
    pub(crate) file: Option<PathBuf>,
    pub(crate) folder: Option<PathBuf>,
}

impl Roots {
    fn load(&self) -> CertificateResult {
        match (&self.file, &self.folder) {
            (None, None) => rustls_native_certs::load_native_certs(),
            (file, folder) => {
                rustls_native_certs::load_certs_from_paths(file.as_deref(), folder.as_deref())
            }
        }
    }

    fn modified_at(&self) -> [Option<SystemTime>; 2] {
        let modified_at = |path: &Option<PathBuf>| {
            path.as_deref().map(Path::metadata)?.and_then(|found| found.modified()).ok()
        };
        [modified_at(&self.file), modified_at(&self.folder)]
    }
}

/// The inputs of a setup. It is made again when they have changed, and after a fork: another thread
/// of the parent may have held its lock.
type Origin = (Roots, [Option<SystemTime>; 2], usize);

/// Returns the setup of clients that trust these roots: one for all connections, so that they
/// resume each other's TLS sessions.
///
/// Threads take turns by the lock of the interpreter, which is held all the time.
///
/// # Errors
/// If there are no root certificates.
pub(super) fn config(roots: Roots) -> Result<Arc<ClientConfig>, Error> {
    static LAST: Mutex<Option<(Origin, Arc<ClientConfig>)>> = Mutex::new(None);
    let origin = (roots.clone(), roots.modified_at(), exit::forks());
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, config)) = &*last
        && *known == origin
    {
        return Ok(config.clone());
    }
    let config = Arc::new(new_config(roots)?);
    *last = Some((origin, config.clone()));
    Ok(config)
}

fn new_config(roots: Roots) -> Result<ClientConfig, Error> {
    let provider = Arc::new(provider());
    let mut store = RootCertStore::empty();
    let found = roots.load();
    // Most systems have some that can't be parsed.
    store.add_parsable_certificates(found.certs);
    if store.is_empty() {
        let why = found.errors.first().map_or_else(|| "there are none".into(), ToString::to_string);
        return Err(Error::General(format!(
            "the root certificates can't be read: {why}; install them (mostly the package \
             ca-certificates), or set SSL_CERT_FILE"
        )));
    }
    let web_pki = WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider.clone())
        .build()
        .map_err(|error| Error::General(error.to_string()))?;
    let verifier = Arc::new(Verifier { web_pki, roots });
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    // As `ssl.create_default_context()` does, for whoever analyzes what was sent.
    if std::env::var_os("SSLKEYLOGFILE").is_some() {
        config.key_log = Arc::new(KeyLogFile::new());
    }
    Ok(config)
}

/// AES with keys of 128 bits goes first, as in browsers: it takes less time than with 256.
fn provider() -> CryptoProvider {
    let mut provider = ring::default_provider();
    provider.cipher_suites.sort_by_key(|suite| match suite.suite() {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => 0,
        CipherSuite::TLS13_AES_256_GCM_SHA384 | CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => 1,
        CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
        | CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 => 2,
        _ => 3,
    });
    provider
}

/// Verifies as browsers do; and accepts, as OpenSSL does, a certificate that is itself among the
/// roots, though it may sign others: `openssl req -x509` makes such ones.
#[derive(Debug)]
struct Verifier {
    web_pki: Arc<WebPkiServerVerifier>,
    roots: Roots,
}

impl Verifier {
    /// Whether a certificate was refused only because it may sign others, and is a root. The rest of
    /// a root's certificates is not kept in memory.
    fn is_root(&self, certificate: &CertificateDer<'_>, why: &CertificateError) -> bool {
        // Its period is checked before.
        matches!(why, CertificateError::Other(why) if why.to_string() == "CaUsedAsEndEntity")
            && self.roots.load().certs.contains(certificate)
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let verified = self.web_pki.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            Err(Error::InvalidCertificate(why)) if self.is_root(end_entity, &why) => {
                verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.web_pki.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.web_pki.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.web_pki.supported_verify_schemes()
    }
}
