//! The node's certificate and its key.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// The files of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// What is in the files.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Contents {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

impl Files {
    /// Reads the files.
    ///
    /// # Errors
    /// If one can't be read.
    pub(crate) fn read(&self) -> Result<Contents, String> {
        let read = |setting: &str, path: &Path| {
            std::fs::read(path).map_err(|error| wrong(setting, path, &error))
        };
        Ok(Contents {
            certificate: read("tls_cert", &self.certificate)?,
            key: read("tls_key", &self.key)?,
        })
    }
}

impl Contents {
    /// The certificate and its key.
    ///
    /// # Errors
    /// If they can't be used. The error names the file and the reason.
    pub(crate) fn certified(&self, files: &Files) -> Result<CertifiedKey, String> {
        let in_certificate =
            |why: &dyn std::fmt::Display| wrong("tls_cert", &files.certificate, why);
        let in_key = |why: &dyn std::fmt::Display| wrong("tls_key", &files.key, why);
        let chain = CertificateDer::pem_slice_iter(&self.certificate)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| in_certificate(&error))?;
        if chain.is_empty() {
            return Err(in_certificate(&"there is no certificate in it (PEM, BEGIN CERTIFICATE)"));
        }
        let key = PrivateKeyDer::from_pem_slice(&self.key).map_err(|error| match error {
            pem::Error::NoItemsFound => {
                in_key(&"there is no private key in it (PEM, BEGIN PRIVATE KEY, not encrypted)")
            }
            error => in_key(&error),
        })?;
        let key = any_supported_type(&key).map_err(|error| in_key(&error))?;
        let certified = CertifiedKey::new(chain, key);
        certified.keys_match().map_err(|error| match error {
            rustls::Error::InconsistentKeys(_) => in_key(&format!(
                "it is not the key of the first certificate in {}",
                files.certificate.display()
            )),
            error => in_certificate(&error),
        })?;
        Ok(certified)
    }
}

fn wrong(setting: &str, path: &Path, why: &dyn std::fmt::Display) -> String {
    format!("{setting} = {:?}: {why}", path.display().to_string())
}

/// The certificate that new connections get. It can be replaced while they come.
#[derive(Debug)]
pub(crate) struct CurrentCertificate(RwLock<Arc<CertifiedKey>>);

impl CurrentCertificate {
    pub(crate) fn new(certified: CertifiedKey) -> Self {
        Self(RwLock::new(Arc::new(certified)))
    }

    pub(crate) fn replace(&self, certified: CertifiedKey) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(certified);
    }

    fn get(&self) -> Arc<CertifiedKey> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The certificate itself, without the rest of its chain, in DER.
    pub(crate) fn leaf(&self) -> Vec<u8> {
        self.get().cert.first().map(|certificate| certificate.to_vec()).unwrap_or_default()
    }
}

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.get())
    }
}
