//! The cryptography of `jsonwebtoken`, by `ring`: no other library does it in this process.

use std::sync::Once;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind, Result, new_error};
use jsonwebtoken::signature::{self, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind, EncodingKey};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, ED25519, EcdsaKeyPair,
    Ed25519KeyPair, KeyPair, RSA_PKCS1_2048_8192_SHA256, RSA_PKCS1_SHA256, RsaKeyPair,
    RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm,
};
use ring::{hmac, rand};
use serde_json::{Map, Value, json};

static PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |algorithm, key| Ok(Box::new(RingSigner::new(*algorithm, key)?)),
    verifier_factory: |algorithm, key| Ok(Box::new(RingVerifier::new(*algorithm, key)?)),
    key_utils: KeyUtils::new_unimplemented(),
};

/// Makes `ring` the provider, unless the program has installed another, which is then used.
pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = PROVIDER.install_default();
    });
}

fn family(algorithm: Algorithm) -> Option<AlgorithmFamily> {
    match algorithm {
        Algorithm::HS256 => Some(AlgorithmFamily::Hmac),
        Algorithm::RS256 => Some(AlgorithmFamily::Rsa),
        Algorithm::ES256 => Some(AlgorithmFamily::Ec),
        Algorithm::EdDSA => Some(AlgorithmFamily::Ed),
        _ => None,
    }
}

/// The public half of a key pair, as a JSON Web Key; `None` of a secret.
pub(crate) fn public_jwk(algorithm: Algorithm, key: &EncodingKey) -> Option<Map<String, Value>> {
    let text = |bytes: &[u8]| Value::String(URL_SAFE_NO_PAD.encode(bytes));
    let members = match RingSigner::new(algorithm, key).ok()? {
        RingSigner::Hmac(_) => return None,
        RingSigner::Rsa(pair) => {
            let RsaPublicKeyComponents { n, e } =
                RsaPublicKeyComponents::<Vec<u8>>::from(pair.public());
            json!({ "kty": "RSA", "alg": "RS256", "n": text(&n), "e": text(&e) })
        }
        RingSigner::Ec(pair) => {
            // An uncompressed point: a byte 4, then both coordinates.
            let (x, y) = pair.public_key().as_ref().get(1..65)?.split_at(32);
            json!({ "kty": "EC", "crv": "P-256", "alg": "ES256", "x": text(x), "y": text(y) })
        }
        RingSigner::Ed(pair) => {
            let x = text(pair.public_key().as_ref());
            json!({ "kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "x": x })
        }
    };
    let Value::Object(mut members) = members else { return None };
    members.insert("use".into(), "sig".into());
    Some(members)
}

fn unsupported() -> Error {
    new_error(ErrorKind::UnsupportedAlgorithm)
}

struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl RingVerifier {
    fn new(algorithm: Algorithm, key: &DecodingKey) -> Result<Self> {
        if family(algorithm).ok_or_else(unsupported)? != key.family() {
            return Err(new_error(ErrorKind::InvalidAlgorithm));
        }
        Ok(Self { algorithm, key: key.clone() })
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> signature::Result<()> {
        let wrong = |_| signature::Error::new();
        let bytes = || self.key.try_get_as_bytes().map_err(|_| signature::Error::new());
        let by = |algorithm: &'static dyn VerificationAlgorithm| {
            UnparsedPublicKey::new(algorithm, bytes()?).verify(message, signature).map_err(wrong)
        };
        match (self.algorithm, self.key.kind()) {
            (Algorithm::HS256, _) => {
                let key = hmac::Key::new(hmac::HMAC_SHA256, bytes()?);
                hmac::verify(&key, message, signature).map_err(wrong)
            }
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let key = RsaPublicKeyComponents { n, e };
                key.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature).map_err(wrong)
            }
            (Algorithm::RS256, DecodingKeyKind::SecretOrDer(_)) => by(&RSA_PKCS1_2048_8192_SHA256),
            (Algorithm::ES256, _) => by(&ECDSA_P256_SHA256_FIXED),
            (Algorithm::EdDSA, _) => by(&ED25519),
            _ => Err(signature::Error::new()),
        }
    }
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

enum RingSigner {
    Hmac(hmac::Key),
    Rsa(RsaKeyPair),
    Ec(EcdsaKeyPair),
    Ed(Ed25519KeyPair),
}

impl RingSigner {
    fn new(algorithm: Algorithm, key: &EncodingKey) -> Result<Self> {
        if family(algorithm).ok_or_else(unsupported)? != key.family() {
            return Err(new_error(ErrorKind::InvalidAlgorithm));
        }
        let bytes = key.as_bytes();
        Ok(match key.family() {
            AlgorithmFamily::Hmac => Self::Hmac(hmac::Key::new(hmac::HMAC_SHA256, bytes)),
            AlgorithmFamily::Rsa => Self::Rsa(
                RsaKeyPair::from_der(bytes)
                    .map_err(|error| new_error(ErrorKind::InvalidRsaKey(error.to_string())))?,
            ),
            AlgorithmFamily::Ec => {
                let (way, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
                Self::Ec(
                    EcdsaKeyPair::from_pkcs8(way, bytes, &random)
                        .map_err(|_| new_error(ErrorKind::InvalidEcdsaKey))?,
                )
            }
            AlgorithmFamily::Ed => Self::Ed(
                Ed25519KeyPair::from_pkcs8_maybe_unchecked(bytes)
                    .map_err(|_| new_error(ErrorKind::InvalidEddsaKey))?,
            ),
        })
    }
}

impl Signer<Vec<u8>> for RingSigner {
    fn try_sign(&self, message: &[u8]) -> signature::Result<Vec<u8>> {
        let wrong = |_| signature::Error::new();
        let random: &dyn rand::SecureRandom = &SystemRandom::new();
        match self {
            Self::Hmac(key) => Ok(hmac::sign(key, message).as_ref().to_vec()),
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA256, random, message, &mut signature).map_err(wrong)?;
                Ok(signature)
            }
            Self::Ec(key) => Ok(key.sign(random, message).map_err(wrong)?.as_ref().to_vec()),
            Self::Ed(key) => Ok(key.sign(message).as_ref().to_vec()),
        }
    }
}

impl JwtSigner for RingSigner {
    fn algorithm(&self) -> Algorithm {
        match self {
            Self::Hmac(_) => Algorithm::HS256,
            Self::Rsa(_) => Algorithm::RS256,
            Self::Ec(_) => Algorithm::ES256,
            Self::Ed(_) => Algorithm::EdDSA,
        }
    }
}
