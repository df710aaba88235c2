//! JSON Web Tokens that clients log in with.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::claims::{Head, check_audience, check_one_of, check_time, text};
use crate::keys::Keys;
use crate::refresh::Refreshed;
use crate::refused::{Refused, TOKEN_BYTES_MAX};
use crate::ticket_claims::is_ticket;

/// The longest id of a user, in bytes.
pub const USER_BYTES_MAX: usize = 256;

/// The number of seconds by which the clocks of issuer and node may differ, unless set.
pub(crate) const LEEWAY_S: u64 = 30;

/// Accepts JSON Web Tokens (RFC 7519): which keys verify them, and what they must claim.
///
/// A token needs `exp` and a user, in `sub`; `nbf` is honored too. One with an audience is refused
/// unless [`audience`](Self::audience) accepts it (RFC 7519, 4.1.3). The algorithm is the key's:
/// HS256, RS256, ES256 or EdDSA; a token that names another is refused.
#[derive(Clone, Debug)]
pub struct Jwt {
    keys: Keys,
    audience: Vec<String>,
    issuers: Vec<String>,
    leeway_s: u64,
    required: Vec<String>,
    user_claim: String,
    name_claim: String,
}

/// The content of a verified token.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// The id of the user.
    pub user: String,
    /// The display name; empty if the token has none.
    pub name: String,
    /// All claims.
    pub claims: Map<String, Value>,
}

impl Jwt {
    /// Accepts tokens that one of these keys has signed.
    #[must_use]
    pub fn new(keys: Keys) -> Self {
        Self {
            keys,
            audience: Vec::new(),
            issuers: Vec::new(),
            leeway_s: LEEWAY_S,
            required: Vec::new(),
            user_claim: "sub".into(),
            name_claim: "name".into(),
        }
    }

    /// Requires this audience (`aud`). Called again, accepts either.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audience.push(audience.into());
        self
    }

    /// Requires this issuer (`iss`). Called again, accepts either.
    #[must_use]
    pub fn issuer(mut self, issuer: impl Into<String>) -> Self {
        self.issuers.push(issuer.into());
        self
    }

    /// Sets how much the clocks of issuer and node may differ: a token is accepted for so long
    /// after `exp`, and before `nbf`. Default: 30 s. Whole seconds count.
    #[must_use]
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.leeway_s = leeway.as_secs();
        self
    }

    /// Requires a claim of this name, with any value but `null`.
    #[must_use]
    pub fn require(mut self, claim: impl Into<String>) -> Self {
        self.required.push(claim.into());
        self
    }

    /// The claim that has the id of the user: a text, or a whole number. Default: `sub`, which is a
    /// text (RFC 7519, 4.1.2).
    #[must_use]
    pub fn user_claim(mut self, claim: impl Into<String>) -> Self {
        self.user_claim = claim.into();
        self
    }

    /// The claim that has the display name. Default: `name`.
    #[must_use]
    pub fn name_claim(mut self, claim: impl Into<String>) -> Self {
        self.name_claim = claim.into();
        self
    }

    /// Verifies a token at a time, in seconds since 1970.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn verify(&self, token: &[u8], now: u64) -> Result<Verified, Refused> {
        let head = Head::read(token)?;
        if is_ticket(&head) {
            return Err(Refused::malformed("the token is a ticket, which is for join"));
        }
        let claims = self.keys.verify(&head, token)?;
        check_time(&claims, now, self.leeway_s)?;
        check_audience(&claims, &self.audience, "token")?;
        // A text each, and not a list or a number (RFC 7519, 4.1.1 and 4.1.2).
        text(&claims, "iss", TOKEN_BYTES_MAX)?;
        text(&claims, "sub", TOKEN_BYTES_MAX)?;
        if !self.issuers.is_empty() {
            check_one_of(&claims, "iss", &self.issuers)?;
        }
        if let Some(missing) =
            self.required.iter().find(|name| claims.get(*name).is_none_or(Value::is_null))
        {
            return Err(Refused::claim_needed(missing));
        }
        let user = match claims.get(&self.user_claim).and_then(Value::as_i64) {
            Some(number) => Some(number.to_string()),
            None => text(&claims, &self.user_claim, USER_BYTES_MAX)?,
        };
        let user = user.ok_or_else(|| Refused::claim_needed(&self.user_claim))?;
        let name = claims.get(&self.name_claim).and_then(Value::as_str).unwrap_or_default().into();
        Ok(Verified { user, name, claims })
    }

    /// After a refusal: if newer keys might verify the token, has them read again, and returns a
    /// future that is ready when they were read, or could not be. `None` if they were read a moment
    /// ago.
    #[must_use]
    pub fn refresh_after(&self, refused: &Refused) -> Option<Refreshed> {
        self.keys.refresh_after(refused)
    }
}
