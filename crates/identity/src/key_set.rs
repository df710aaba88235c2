//! Keys as they were read: from a secret, a PEM or a JWKS.

use std::fmt;
use std::sync::LazyLock;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use playfield_wire::excerpt;
use serde_json::{Map, Value};

use crate::claims::Head;
use crate::provider;
use crate::refused::{Refused, RefusedKind};

/// The shortest secret for HS256, in bytes (RFC 7518, 3.2).
pub const SECRET_BYTES_MIN: usize = 32;

/// The most keys in a JWKS.
pub const KEYS_MAX: usize = 100;

/// Keys that can't be used.
///
/// `Debug` shows the text too, so that `fn main() -> Result<…, KeyError>` prints it as it is.
#[derive(Clone, PartialEq, Eq)]
pub struct KeyError(String);

impl KeyError {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The error, after where the keys are from.
    pub(crate) fn at(self, place: impl fmt::Display) -> Self {
        Self(format!("{place}: {}", self.0))
    }
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for KeyError {}

/// Keys that verify. Each is for one algorithm.
#[derive(Debug, Default)]
pub(crate) struct KeySet(Vec<Key>);

#[derive(Debug)]
struct Key {
    id: Option<String>,
    algorithm: Algorithm,
    key: DecodingKey,
}

impl KeySet {
    /// A secret for HS256.
    pub(crate) fn secret(secret: &[u8]) -> Result<Self, KeyError> {
        provider::install();
        if let Some(what) = known_document(secret) {
            let text = format!("the secret is {what}, which others may know; use random bytes");
            return Err(KeyError::new(text));
        }
        if secret.len() < SECRET_BYTES_MIN {
            return Err(too_short(secret.len()));
        }
        let key = DecodingKey::from_secret(secret);
        Ok(Self(vec![Key { id: None, algorithm: Algorithm::HS256, key }]))
    }

    /// A public key: RSA for RS256, P-256 for ES256, or Ed25519 for EdDSA.
    pub(crate) fn pem(pem: &[u8]) -> Result<Self, KeyError> {
        provider::install();
        let text = String::from_utf8_lossy(pem);
        if text.contains("PRIVATE KEY-----") {
            let text =
                "the PEM is a private key; a node needs the public one (openssl pkey -pubout)";
            return Err(KeyError::new(text));
        }
        if text.contains("BEGIN CERTIFICATE-----") {
            let text =
                "the PEM is a certificate; extract its public key (openssl x509 -pubkey -noout)";
            return Err(KeyError::new(text));
        }
        let (algorithm, key) = if let Ok(key) = DecodingKey::from_ed_pem(pem) {
            (Algorithm::EdDSA, key)
        } else if let Ok(key) = DecodingKey::from_ec_pem(pem) {
            (Algorithm::ES256, key)
        } else if let Ok(key) = DecodingKey::from_rsa_pem(pem) {
            (Algorithm::RS256, key)
        } else {
            return Err(KeyError::new("the PEM is not a public key for RSA, P-256 or Ed25519"));
        };
        let key = Key { id: None, algorithm, key };
        key.check()?;
        Ok(Self(vec![key]))
    }

    /// A JSON Web Key Set (RFC 7517). Keys that can't be used are left out.
    pub(crate) fn jwks(json: &[u8]) -> Result<Self, KeyError> {
        provider::install();
        let set: Value = serde_json::from_slice(json)
            .map_err(|error| KeyError::new(format!("not a JSON Web Key Set: {error}")))?;
        let Some(Value::Array(items)) = set.get("keys") else {
            return Err(KeyError::new("not a JSON Web Key Set: it has no list \"keys\""));
        };
        if items.len() > KEYS_MAX {
            let text = format!("KEYS_MAX: {} keys, the limit is {KEYS_MAX}", items.len());
            return Err(KeyError::new(text));
        }
        let (mut keys, mut unused) = (Vec::new(), None);
        for item in items {
            match Key::from_jwk(item) {
                Ok(key) => keys.push(key),
                Err(why) => {
                    let id = item.get("kid").and_then(Value::as_str).unwrap_or_default();
                    log::debug!("the key {:?} of a JWKS is not used: {why}", excerpt(id, 64));
                    unused.get_or_insert(why);
                }
            }
        }
        if keys.is_empty() {
            let text = match unused {
                Some(KeyError(why)) => {
                    format!("no key can be used; the first: {}", excerpt(&why, 256))
                }
                None => "the set has no keys".into(),
            };
            return Err(KeyError::new(text));
        }
        Ok(Self(keys))
    }

    /// Public keys, in a form that names itself: a JWKS or a PEM. Anything else must not become a
    /// secret: it may be an error page, or a public key in another form, which anyone could then
    /// sign with.
    pub(crate) fn document(bytes: &[u8]) -> Result<Self, KeyError> {
        let bytes = without_mark(bytes);
        if bytes.starts_with(b"{") {
            Self::jwks(bytes)
        } else if is_pem(bytes) {
            Self::pem(bytes)
        } else {
            let text = "neither a JSON Web Key Set nor a public key in PEM (for a file with a \
                        secret, use Keys::secret_file)";
            Err(KeyError::new(text))
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether one of them is a secret.
    #[cfg(feature = "url")]
    pub(crate) fn has_secret(&self) -> bool {
        self.0.iter().any(|key| key.algorithm == Algorithm::HS256)
    }

    /// Verifies the signature, and returns the claims.
    pub(crate) fn verify(&self, head: &Head, token: &[u8]) -> Result<Map<String, Value>, Refused> {
        let key = self.find(head)?;
        let validation = VALIDATIONS.iter().find(|by| by.algorithms[0] == key.algorithm);
        let validation = validation.ok_or_else(|| Refused::algorithm(&head.algorithm))?;
        match jsonwebtoken::decode(token, &key.key, validation) {
            Ok(decoded) => Ok(decoded.claims),
            Err(error) => Err(refusal(&error)),
        }
    }

    fn find(&self, head: &Head) -> Result<&Key, Refused> {
        if self.0.is_empty() {
            let text = "the node has not loaded its keys yet; try again";
            return Err(Refused::new(RefusedKind::NoKeys, text));
        }
        let fits = |key: &&Key| name_of(key.algorithm) == head.algorithm;
        let any_named = self.0.iter().any(|key| key.id.is_some());
        if let (Some(id), true) = (&head.key, any_named) {
            let mut named = self.0.iter().filter(|key| key.id.as_ref() == Some(id)).peekable();
            if named.peek().is_none() {
                let text =
                    format!("the token names a key (kid) {:?} that is unknown", excerpt(id, 64));
                return Err(Refused::new(RefusedKind::UnknownKey, text));
            }
            return named.find(fits).ok_or_else(|| Refused::algorithm(&head.algorithm));
        }
        let mut fitting = self.0.iter().filter(fits);
        let key = fitting.next().ok_or_else(|| Refused::algorithm(&head.algorithm))?;
        if fitting.next().is_some() {
            let text = "the token names no key (kid), and there are several";
            return Err(Refused::new(RefusedKind::KeyNeeded, text));
        }
        Ok(key)
    }
}

impl Key {
    fn from_jwk(item: &Value) -> Result<Self, KeyError> {
        let jwk: Jwk = serde_json::from_value(item.clone())
            .map_err(|error| KeyError::new(format!("not a JSON Web Key: {error}")))?;
        if jwk.common.public_key_use.as_ref().is_some_and(|used| *used != PublicKeyUse::Signature) {
            return Err(KeyError::new("it is not for signatures"));
        }
        let algorithm = match &jwk.algorithm {
            AlgorithmParameters::RSA(_) => Algorithm::RS256,
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
                Algorithm::ES256
            }
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                Algorithm::EdDSA
            }
            AlgorithmParameters::OctetKey(_) => Algorithm::HS256,
            _ => return Err(KeyError::new("its type is not RSA, P-256, Ed25519 or oct")),
        };
        let said = item.get("alg").and_then(Value::as_str).unwrap_or(name_of(algorithm));
        if said != name_of(algorithm) {
            return Err(KeyError::new(format!("alg = {:?} is not supported", excerpt(said, 64))));
        }
        let key = DecodingKey::from_jwk(&jwk)
            .map_err(|error| KeyError::new(format!("its value can't be read: {error}")))?;
        let key = Self { id: jwk.common.key_id, algorithm, key };
        key.check()?;
        Ok(key)
    }

    /// Checks the length, so that a wrong key is an error now and not with each token.
    fn check(&self) -> Result<(), KeyError> {
        let bytes = self.key.try_get_as_bytes().map_or(0, <[u8]>::len);
        match self.algorithm {
            // An uncompressed point.
            Algorithm::ES256 if bytes != 65 => Err(KeyError::new("its curve is not P-256")),
            Algorithm::EdDSA if bytes != 32 => Err(KeyError::new("its curve is not Ed25519")),
            Algorithm::HS256 if bytes < SECRET_BYTES_MIN => Err(too_short(bytes)),
            _ => Ok(()),
        }
    }
}

/// The error for a secret of so many bytes.
pub(crate) fn too_short(bytes: usize) -> KeyError {
    KeyError::new(format!(
        "a secret of {bytes} bytes is too short for HS256; use at least {SECRET_BYTES_MIN} random \
         bytes"
    ))
}

/// The text without white space around it, and without a byte order mark.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes).trim_ascii()
}

/// Whether there is a PEM, with or without lines before it.
fn is_pem(bytes: &[u8]) -> bool {
    bytes.windows(10).any(|window| window == b"-----BEGIN")
}

/// Returns the kind of document that the bytes are, if they can't be a secret.
fn known_document(bytes: &[u8]) -> Option<&'static str> {
    let text = without_mark(bytes);
    let begins = |any: &[&str]| any.iter().any(|with| text.starts_with(with.as_bytes()));
    if is_pem(text) {
        Some("a PEM")
    } else if begins(&["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"]) {
        Some("a public key of SSH")
    } else if begins(&["{\"", "{ ", "{\n", "{\r"]) {
        Some("JSON")
    } else if begins(&["<!", "<html", "<HTML", "<?xml"]) {
        Some("HTML")
    } else {
        None
    }
}

/// The algorithm as a token names it (RFC 7518, 3.1).
fn name_of(algorithm: Algorithm) -> &'static str {
    match algorithm {
        Algorithm::HS256 => "HS256",
        Algorithm::RS256 => "RS256",
        Algorithm::ES256 => "ES256",
        Algorithm::EdDSA => "EdDSA",
        _ => "",
    }
}

/// For each algorithm: the signature only. Claims are checked against the time that the caller
/// gives.
static VALIDATIONS: LazyLock<[Validation; 4]> = LazyLock::new(|| {
    [Algorithm::HS256, Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA].map(|algorithm| {
        let mut validation = Validation::new(algorithm);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_aud = false;
        validation
    })
});

fn refusal(error: &jsonwebtoken::errors::Error) -> Refused {
    match error.kind() {
        ErrorKind::InvalidSignature => {
            Refused::new(RefusedKind::Signature, "the token's signature is wrong")
        }
        _ => Refused::malformed("the token can't be read"),
    }
}
