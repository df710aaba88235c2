//! The algorithms, their keys and tokens.

use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use jsonwebtoken::{DecodingKey, Validation, decode};
use playfield::identity::{Jwt, Keys, Signer};
use serde_json::{Map, Value, json};

/// The issuer of the tokens, and their audience.
const ISSUER: &str = "https://login.example.com";
const AUDIENCE: &str = "bench";

/// The number of users. Each has a token.
const USERS: usize = 64;

/// An algorithm, with the key pair of the tests.
#[derive(Clone, Copy)]
pub(super) struct Algorithm {
    pub(super) name: &'static str,
    private: &'static str,
    public: &'static str,
    of: jsonwebtoken::Algorithm,
}

macro_rules! key {
    ($name:literal) => {
        include_str!(concat!("../../../../identity/tests/keys/", $name, ".pem"))
    };
}

/// The secret for HS256.
const SECRET: &str = "the secret of a benchmark, 32 bytes or more";

pub(super) const ALGORITHMS: [Algorithm; 4] = [
    Algorithm {
        name: "EdDSA",
        private: key!("ed25519"),
        public: key!("ed25519-public"),
        of: jsonwebtoken::Algorithm::EdDSA,
    },
    Algorithm {
        name: "ES256",
        private: key!("p256"),
        public: key!("p256-public"),
        of: jsonwebtoken::Algorithm::ES256,
    },
    Algorithm {
        name: "RS256",
        private: key!("rsa"),
        public: key!("rsa-public"),
        of: jsonwebtoken::Algorithm::RS256,
    },
    Algorithm {
        name: "HS256",
        private: SECRET,
        public: SECRET,
        of: jsonwebtoken::Algorithm::HS256,
    },
];

impl Algorithm {
    fn is_secret(self) -> bool {
        self.of == jsonwebtoken::Algorithm::HS256
    }

    /// Returns the verifier that a node uses for tokens.
    pub(super) fn jwt(self) -> io::Result<Jwt> {
        let keys =
            if self.is_secret() { Keys::secret(self.public) } else { Keys::pem(self.public) };
        let keys = keys.map_err(io::Error::other)?;
        Ok(Jwt::new(keys).audience(AUDIENCE).issuer(ISSUER))
    }

    /// A token for each user.
    pub(super) fn tokens(self) -> io::Result<Vec<String>> {
        let signer =
            if self.is_secret() { Signer::secret(self.private) } else { Signer::pem(self.private) };
        let signer = signer.map_err(io::Error::other)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(io::Error::other)?;
        let of_user = |user| {
            let mut claims = Map::new();
            for (name, value) in [
                ("sub", Value::from(user_id(user))),
                ("name", Value::from("Ann")),
                ("iss", ISSUER.into()),
                ("aud", AUDIENCE.into()),
                ("exp", json!(now.as_secs() + 3600)),
            ] {
                claims.insert(name.into(), value);
            }
            signer.token(&claims).map_err(io::Error::other)
        };
        (0..USERS).map(of_user).collect()
    }

    /// The baseline: the library alone, with the same key.
    pub(super) fn bare(self) -> io::Result<impl Fn(&str) -> io::Result<()>> {
        // Has the library use the cryptography that a node uses.
        self.jwt()?;
        let bytes = self.public.as_bytes();
        let key = match self.of {
            jsonwebtoken::Algorithm::EdDSA => DecodingKey::from_ed_pem(bytes),
            jsonwebtoken::Algorithm::ES256 => DecodingKey::from_ec_pem(bytes),
            jsonwebtoken::Algorithm::RS256 => DecodingKey::from_rsa_pem(bytes),
            _ => Ok(DecodingKey::from_secret(bytes)),
        };
        let key = key.map_err(io::Error::other)?;
        let mut validation = Validation::new(self.of);
        validation.set_audience(&[AUDIENCE]);
        validation.set_issuer(&[ISSUER]);
        Ok(move |token: &str| {
            let decoded = decode::<Map<String, Value>>(token, &key, &validation);
            decoded.map(drop).map_err(io::Error::other)
        })
    }
}

/// The id of a user.
pub(super) fn user_id(user: usize) -> String {
    format!("user-{user}")
}

/// A token whose signature is wrong.
pub(super) fn forged(token: &str) -> String {
    let at = token.rfind('.').map_or(0, |period| period + 1);
    let other = if token[at..].starts_with('A') { "B" } else { "A" };
    [&token[..at], other, &token[at + 1..]].concat()
}
