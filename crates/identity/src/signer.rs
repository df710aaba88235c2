//! Signing tokens and tickets: for backends, and for tests.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Map, Value, json};

use crate::key_set::{KeyError, SECRET_BYTES_MIN, too_short};
use crate::provider;
use crate::ticket_claims::{TICKET_TYPE, Ticket};

/// A key that signs tokens and tickets.
#[derive(Clone, Debug)]
pub struct Signer {
    algorithm: Algorithm,
    key: EncodingKey,
    id: Option<String>,
}

impl Signer {
    /// Signs by HS256, with a secret that the verifier must know.
    ///
    /// # Errors
    /// If it is shorter than [`SECRET_BYTES_MIN`].
    pub fn secret(secret: impl AsRef<[u8]>) -> Result<Self, KeyError> {
        let bytes = secret.as_ref().len();
        if bytes < SECRET_BYTES_MIN {
            return Err(too_short(bytes));
        }
        Self::checked(Algorithm::HS256, EncodingKey::from_secret(secret.as_ref()))
    }

    /// Signs by EdDSA, ES256 or RS256, with a private key in PEM (PKCS#8), as `openssl genpkey`
    /// writes it.
    ///
    /// # Errors
    /// If it is not one.
    pub fn pem(pem: impl AsRef<[u8]>) -> Result<Self, KeyError> {
        let pem = pem.as_ref();
        if let Ok(key) = EncodingKey::from_ed_pem(pem) {
            Self::checked(Algorithm::EdDSA, key)
        } else if let Ok(key) = EncodingKey::from_ec_pem(pem) {
            Self::checked(Algorithm::ES256, key)
        } else if let Ok(key) = EncodingKey::from_rsa_pem(pem) {
            Self::checked(Algorithm::RS256, key)
        } else {
            Err(KeyError::new("the PEM is not a private key for RSA, P-256 or Ed25519"))
        }
    }

    /// Makes an Ed25519 key, and returns its public half in PEM, for
    /// [`Keys::pem`](crate::Keys::pem).
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn generate() -> Result<(Self, String), KeyError> {
        use ring::signature::{Ed25519KeyPair, KeyPair};
        let failed = |_| KeyError::new("no random numbers");
        let random = ring::rand::SystemRandom::new();
        let pkcs8 = Ed25519KeyPair::generate_pkcs8(&random).map_err(failed)?;
        let pair = Ed25519KeyPair::from_pkcs8(pkcs8.as_ref())
            .map_err(|_| KeyError::new("the new key can't be read"))?;
        // SubjectPublicKeyInfo of Ed25519 (RFC 8410, 4).
        let mut public = b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00".to_vec();
        public.extend_from_slice(pair.public_key().as_ref());
        let public = format!(
            "-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n",
            STANDARD.encode(public)
        );
        let key = EncodingKey::from_ed_der(pkcs8.as_ref());
        Ok((Self::checked(Algorithm::EdDSA, key)?, public))
    }

    /// Names the key in what it signs (`kid`).
    #[must_use]
    pub fn named(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// A token with these claims.
    ///
    /// # Errors
    /// If the system has no random numbers, which ES256 and RS256 need.
    pub fn token(&self, claims: &Map<String, Value>) -> Result<String, KeyError> {
        self.sign(Header::new(self.algorithm), claims)
    }

    /// The text of a ticket, for the player.
    ///
    /// # Errors
    /// As [`token`](Self::token).
    pub fn ticket(&self, ticket: &Ticket) -> Result<String, KeyError> {
        let header = Header { typ: Some(TICKET_TYPE.into()), ..Header::new(self.algorithm) };
        self.sign(header, &ticket.claims())
    }

    /// The public half of the key as a JSON Web Key Set (RFC 7517), for
    /// [`Keys::jwks`](crate::Keys::jwks) and other verifiers.
    ///
    /// # Errors
    /// If the key is a secret, which has no public half.
    pub fn jwks(&self) -> Result<String, KeyError> {
        let mut key = provider::public_jwk(self.algorithm, &self.key).ok_or_else(|| {
            KeyError::new("HS256 signs by a secret, which has no public half: use a key pair")
        })?;
        if let Some(id) = &self.id {
            key.insert("kid".into(), id.as_str().into());
        }
        Ok(json!({ "keys": [key] }).to_string())
    }

    fn sign(&self, header: Header, claims: &Map<String, Value>) -> Result<String, KeyError> {
        let header = Header { kid: self.id.clone(), ..header };
        jsonwebtoken::encode(&header, claims, &self.key)
            .map_err(|error| KeyError::new(format!("nothing can be signed: {error}")))
    }

    /// Signs once, so that a wrong key is an error now.
    fn checked(algorithm: Algorithm, key: EncodingKey) -> Result<Self, KeyError> {
        provider::install();
        let signer = Self { algorithm, key, id: None };
        signer.token(&Map::new())?;
        Ok(signer)
    }
}
