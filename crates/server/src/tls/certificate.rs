//! The node's certificate and its key.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

/// The maximum size of either file. A chain of certificates takes a few kilobytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The files of a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
}

/// The contents of the files.
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
            read_file(path).map_err(|error| wrong(setting, path, &error))
        };
        Ok(Contents {
            certificate: read("tls.cert", &self.certificate)?,
            key: read("tls.key", &self.key)?,
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
            |why: &dyn std::fmt::Display| wrong("tls.cert", &files.certificate, why);
        let in_key = |why: &dyn std::fmt::Display| wrong("tls.key", &files.key, why);
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

/// Reads a file of at most [`FILE_BYTES_MAX`]. Anything else, such as a pipe or a device, may never
/// end, and would hold the thread that looks for new certificates.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    // Before it is opened: that alone waits, if it is a pipe.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::other(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    Ok(bytes)
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::process::Command;

    use super::{FILE_BYTES_MAX, read_file};

    #[test]
    fn only_files_of_limited_size_are_read() {
        let name = format!("playfield-certificate-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("cert.pem");
        let of = |bytes: u64| {
            std::fs::write(&file, vec![b'x'; bytes as usize]).unwrap();
            read_file(&file).map(|read| read.len() as u64).map_err(|error| error.to_string())
        };
        assert_eq!(of(FILE_BYTES_MAX), Ok(FILE_BYTES_MAX));
        assert_eq!(of(FILE_BYTES_MAX + 1), Err("it has more than 1048576 bytes".to_owned()));

        let pipe = folder.join("pipe");
        let has_pipe = Command::new("mkfifo").arg(&pipe).status().is_ok_and(|made| made.success());
        let endless = PathBuf::from("/dev/zero");
        let mut others = vec![folder.clone()];
        others.extend(has_pipe.then_some(pipe));
        others.extend(endless.exists().then_some(endless));
        for other in others {
            // A read of it would wait, or take all memory.
            let error = read_file(&other).unwrap_err().to_string();
            assert_eq!(error, "it is not a regular file", "{}", other.display());
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
