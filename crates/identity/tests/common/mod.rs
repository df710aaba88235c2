//! Keys of each algorithm, and tokens that they sign.

use playfield_identity::{Jwt, Keys, Refused, RefusedKind, Signer, Verified};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

pub(crate) const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

/// The time of all tests, in seconds since 1970.
pub(crate) const NOW: u64 = 1_800_000_000;

macro_rules! key {
    ($name:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/keys/", $name))
    };
}
pub(crate) use key;

/// For each algorithm: its name, who signs, and the keys that verify.
pub(crate) fn pairs() -> Vec<(&'static str, Signer, Keys)> {
    let secret = (Signer::secret(SECRET).unwrap(), Keys::secret(SECRET).unwrap());
    let pem = |private, public| (Signer::pem(private).unwrap(), Keys::pem(public).unwrap());
    let rsa = pem(key!("rsa.pem"), key!("rsa-public.pem"));
    let p256 = pem(key!("p256.pem"), key!("p256-public.pem"));
    let ed25519 = pem(key!("ed25519.pem"), key!("ed25519-public.pem"));
    let all = [("HS256", secret), ("RS256", rsa), ("ES256", p256), ("EdDSA", ed25519)];
    all.map(|(name, (signer, keys))| (name, signer, keys)).into()
}

pub(crate) fn ed25519() -> (Signer, Keys) {
    let (_, signer, keys) = pairs().pop().unwrap();
    (signer, keys)
}

/// The claims of user 7, valid for a minute, with other members from `with`.
pub(crate) fn claims(with: Value) -> Map<String, Value> {
    let mut claims = json!({"sub": "u7", "name": "Ann", "exp": NOW + 60});
    let (Value::Object(claims), Value::Object(with)) = (&mut claims, with) else {
        panic!("an object")
    };
    for (name, value) in with {
        if value.is_null() {
            claims.remove(&name);
        } else {
            claims.insert(name, value);
        }
    }
    std::mem::take(claims)
}

pub(crate) fn token(signer: &Signer, with: Value) -> String {
    signer.token(&claims(with)).unwrap()
}

/// A change to the bytes of a text.
#[derive(Clone, Debug)]
pub(crate) enum Mutation {
    Replace(u8),
    Insert(u8),
    Remove,
    Truncate,
}

impl Mutation {
    pub(crate) fn any() -> impl Strategy<Value = Self> {
        prop_oneof![
            any::<u8>().prop_map(Self::Replace),
            any::<u8>().prop_map(Self::Insert),
            Just(Self::Remove),
            Just(Self::Truncate),
        ]
    }

    /// The bytes with the change at this place.
    pub(crate) fn apply(&self, bytes: &[u8], at: prop::sample::Index) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        let at = at.index(bytes.len());
        match *self {
            Self::Replace(byte) => bytes[at] = byte,
            Self::Insert(byte) => bytes.insert(at, byte),
            Self::Remove => drop(bytes.remove(at)),
            Self::Truncate => bytes.truncate(at),
        }
        bytes
    }
}

pub(crate) fn verify(jwt: &Jwt, token: &str) -> Result<Verified, RefusedKind> {
    jwt.verify(token.as_bytes(), NOW).map_err(|refused: Refused| refused.kind())
}
