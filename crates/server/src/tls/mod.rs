//! TLS: the node's certificate, and connections that are encrypted with it.

mod certificate;
mod connection;
mod reload;
mod self_signed;

use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::server::NoServerSessionStorage;

use crate::config::Config;
pub(crate) use certificate::{CurrentCertificate, Files};
pub(crate) use connection::{Opened, TlsConnection};
pub(crate) use reload::Reloader;
pub use self_signed::SelfSigned;

/// The only protocol inside TLS that has a name (RFC 7301). Native framing has none.
const HTTP_1_1: &[u8] = b"http/1.1";

/// The TLS configuration of a node.
pub(crate) struct TlsContext {
    config: Arc<ServerConfig>,
    certificate: Arc<CurrentCertificate>,
    /// The files of the certificate, unless it is self-signed.
    files: Option<Files>,
}

impl TlsContext {
    /// TLS by the settings; `None` if they don't set it up.
    ///
    /// # Errors
    /// If a file can't be read or used. The error names it.
    pub(crate) fn new(config: &Config) -> Result<Option<Self>, String> {
        let (certified, files) = if config.tls.self_signed {
            let names = ["localhost", "127.0.0.1", "::1"].map(String::from);
            let mut names = Vec::from(names);
            let address = config.listen.ip().to_string();
            if !config.listen.ip().is_unspecified() && !names.contains(&address) {
                names.push(address);
            }
            let signed =
                SelfSigned::new(&names).map_err(|why| format!("tls.self_signed: {why}"))?;
            (signed.certified()?, None)
        } else if config.tls.cert.as_os_str().is_empty() {
            return Ok(None);
        } else {
            let files = Files { certificate: config.tls.cert.clone(), key: config.tls.key.clone() };
            (files.read()?.certified(&files)?, Some(files))
        };
        let certificate = Arc::new(CurrentCertificate::new(certified));
        let provider = Arc::new(ring::default_provider());
        let failed = |error: rustls::Error| format!("TLS can't be set up: {error}");
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(failed)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&certificate) as _);
        config.alpn_protocols = vec![HTTP_1_1.to_vec()];
        // Clients keep the state of resumption, in tickets: shards store nothing, and accept each
        // other's.
        config.ticketer = ring::Ticketer::new().map_err(failed)?;
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Some(Self { config: Arc::new(config), certificate, files }))
    }

    fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// The certificate that new connections get, in DER.
    pub(crate) fn certificate(&self) -> Vec<u8> {
        self.certificate.leaf()
    }

    /// Keeps the certificate up to date with its files; `None` if it is self-signed.
    pub(crate) fn reloader(&self) -> Option<Reloader> {
        let files = self.files.clone()?;
        Some(Reloader::new(files, Arc::clone(&self.certificate)))
    }
}
