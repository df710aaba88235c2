//! Keys, whatever their source.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use serde_json::{Map, Value};

use crate::claims::Head;
use crate::key_set::{KeyError, KeySet};
use crate::refresh::{Refreshed, Refresher};
use crate::refused::{Refused, RefusedKind};

/// The largest file or answer with keys, in bytes.
pub const KEYS_BYTES_MAX: usize = 256 * 1024;

/// The intervals at which keys are read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// This long after they were last read.
    pub every: Duration,
    /// Not sooner, even if a token names an unknown key.
    pub at_least: Duration,
}

impl Pace {
    /// Of a file.
    pub const FILE: Self =
        Self { every: Duration::from_secs(10), at_least: Duration::from_secs(1) };
    /// Of a URL.
    pub const URL: Self =
        Self { every: Duration::from_secs(300), at_least: Duration::from_secs(30) };
}

/// Keys that verify tokens and tickets. A copy shares them.
///
/// Each key is for one algorithm: a secret for HS256, an RSA key for RS256, one on P-256 for ES256,
/// one of Ed25519 for EdDSA.
#[derive(Clone)]
pub struct Keys(Arc<Source>);

struct Source {
    set: Arc<RwLock<Arc<KeySet>>>,
    refresher: Option<Refresher>,
}

impl Keys {
    /// A secret that issuer and node share, for HS256.
    ///
    /// # Errors
    /// If it is shorter than [`SECRET_BYTES_MIN`](crate::SECRET_BYTES_MIN), or something that
    /// others may know: a public key, a JWKS, a page.
    pub fn secret(secret: impl AsRef<[u8]>) -> Result<Self, KeyError> {
        KeySet::secret(secret.as_ref()).map(Self::fixed)
    }

    /// A public key in PEM.
    ///
    /// # Errors
    /// If it is not a public key of a supported algorithm.
    pub fn pem(pem: impl AsRef<[u8]>) -> Result<Self, KeyError> {
        KeySet::pem(pem.as_ref()).map(Self::fixed)
    }

    /// A JSON Web Key Set (RFC 7517). Keys in it that can't be used are left out.
    ///
    /// # Errors
    /// If it is not one, or none of its keys can be used.
    pub fn jwks(json: impl AsRef<[u8]>) -> Result<Self, KeyError> {
        KeySet::jwks(json.as_ref()).map(Self::fixed)
    }

    /// A file with a JSON Web Key Set, or a public key in PEM. It is read again every 10 s, by a
    /// thread that ends with the last copy of this. If that fails, the keys stay as they are, and
    /// the log says why.
    ///
    /// # Errors
    /// If it can't be read, or has no keys.
    pub fn file(path: impl Into<PathBuf>) -> Result<Self, KeyError> {
        Self::watched_file(path.into(), KeySet::document)
    }

    /// A file with a secret that issuer and node share, for HS256: white space around it does not
    /// count. It is read again as [`file`](Self::file) says.
    ///
    /// # Errors
    /// If it can't be read, or is no [`secret`](Self::secret).
    pub fn secret_file(path: impl Into<PathBuf>) -> Result<Self, KeyError> {
        Self::watched_file(path.into(), |bytes| KeySet::secret(bytes.trim_ascii()))
    }

    fn watched_file(
        path: PathBuf,
        parse: fn(&[u8]) -> Result<KeySet, KeyError>,
    ) -> Result<Self, KeyError> {
        let place = path.display().to_string();
        let load =
            move || parse(&read_file(&path).map_err(|error| KeyError::new(error.to_string()))?);
        let first = load().map_err(|error| error.at(&place))?;
        Ok(Self::watched(first, place, Pace::FILE, load))
    }

    /// A JSON Web Key Set that `load` returns as text, and that is read again at this pace, on a
    /// thread that ends with the last copy of this: for stores of secrets. `name` is for the log.
    ///
    /// Until `load` has succeeded, there are no keys. If it fails later, the keys stay as they are,
    /// and the log says why.
    #[must_use]
    pub fn loaded(
        name: impl Into<String>,
        pace: Pace,
        mut load: impl FnMut() -> Result<Vec<u8>, String> + Send + 'static,
    ) -> Self {
        let load = move || KeySet::jwks(&load().map_err(KeyError::new)?);
        Self::watched(KeySet::default(), name.into(), pace, load)
    }

    /// A JSON Web Key Set at a URL, over HTTP or HTTPS. It is read now, every five minutes, and
    /// when a token names an unknown key, at most every 30 s. If that fails, the keys stay as they
    /// are, and the log says why. Secrets in it are not accepted.
    #[cfg(feature = "url")]
    #[must_use]
    pub fn url(url: impl Into<String>) -> Self {
        let url = url.into();
        let place = url.clone();
        let load = move || {
            let set = KeySet::jwks(&crate::url::fetch(&url).map_err(KeyError::new)?)?;
            if set.has_secret() {
                return Err(KeyError::new("it publishes a secret (kty = \"oct\")"));
            }
            Ok(set)
        };
        Self::watched(KeySet::default(), place, Pace::URL, load)
    }

    fn fixed(set: KeySet) -> Self {
        Self(Arc::new(Source { set: Arc::new(RwLock::new(Arc::new(set))), refresher: None }))
    }

    /// Keys that are read again. If there are none yet, they are read at once.
    fn watched(
        first: KeySet,
        place: String,
        pace: Pace,
        mut load: impl FnMut() -> Result<KeySet, KeyError> + Send + 'static,
    ) -> Self {
        let now = first.is_empty();
        let set = Arc::new(RwLock::new(Arc::new(first)));
        let kept = Arc::clone(&set);
        let refresher = Refresher::start(place, pace, now, move || {
            let new = Arc::new(load()?);
            *kept.write().unwrap_or_else(PoisonError::into_inner) = new;
            Ok(())
        });
        Self(Arc::new(Source { set, refresher: Some(refresher) }))
    }

    fn set(&self) -> Arc<KeySet> {
        Arc::clone(&self.0.set.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn verify(&self, head: &Head, token: &[u8]) -> Result<Map<String, Value>, Refused> {
        self.set().verify(head, token)
    }

    pub(crate) fn refresh_after(&self, refused: &Refused) -> Option<Refreshed> {
        match refused.kind() {
            RefusedKind::UnknownKey | RefusedKind::NoKeys => self.0.refresher.as_ref()?.ask(),
            _ => None,
        }
    }
}

/// Reads a whole file, of at most [`KEYS_BYTES_MAX`].
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let failed = |text: &str| Err(io::Error::other(text));
    // A pipe or a device may never end: opening one may wait for ever.
    if !std::fs::metadata(path)?.is_file() {
        return failed("it is not a regular file");
    }
    let (mut bytes, max) = (Vec::new(), KEYS_BYTES_MAX as u64);
    File::open(path)?.take(max + 1).read_to_end(&mut bytes)?;
    if bytes.len() > KEYS_BYTES_MAX {
        return failed(&format!("KEYS_BYTES_MAX: the file exceeds {max} bytes"));
    }
    Ok(bytes)
}

/// Only how many there are: keys are secret.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.set().len())
    }
}
