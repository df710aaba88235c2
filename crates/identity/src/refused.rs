//! Why a token or a ticket is refused.

use std::fmt;

use playfield_wire::{ErrorCode, excerpt};

/// The largest token or ticket, in bytes.
pub const TOKEN_BYTES_MAX: usize = 8 * 1024;

/// Why a token or a ticket is refused. The text is for the client: it says what was wrong and what
/// to do, and nothing about the keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    kind: RefusedKind,
    text: String,
}

/// The kinds of refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RefusedKind {
    /// There is no token.
    Missing,
    /// A token larger than [`TOKEN_BYTES_MAX`].
    TooLarge,
    /// Not a JSON Web Token, or a claim has the wrong type.
    Malformed,
    /// No key is for its algorithm.
    Algorithm,
    /// The token does not say by which of the keys it is signed.
    KeyNeeded,
    /// The token names a key that is not known.
    UnknownKey,
    /// No keys have been loaded yet.
    NoKeys,
    /// The signature is wrong.
    Signature,
    /// The token has expired.
    Expired,
    /// The token is not valid yet.
    Early,
    /// The token is meant for others, or was issued by others.
    Foreign,
    /// A claim is missing.
    ClaimNeeded,
    /// A ticket was used already.
    Used,
    /// More tickets were used than can be remembered.
    Full,
}

impl Refused {
    pub(crate) fn new(kind: RefusedKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    pub(crate) fn malformed(what: &str) -> Self {
        Self::new(RefusedKind::Malformed, what)
    }

    pub(crate) fn algorithm(name: &str) -> Self {
        let name = excerpt(name, 32);
        let text = format!("this node has no key for the token's algorithm (alg = {name:?})");
        Self::new(RefusedKind::Algorithm, text)
    }

    pub(crate) fn claim_needed(name: &str) -> Self {
        Self::new(RefusedKind::ClaimNeeded, format!("the token lacks the claim {name:?}"))
    }

    /// The same of a ticket, which is a token, too. What the client sent comes later in the text.
    pub(crate) fn of_ticket(self) -> Self {
        let text = self.text.replacen("the token", "the ticket", 1);
        Self { text, ..self }
    }

    /// Returns the kind of refusal.
    #[must_use]
    pub fn kind(&self) -> RefusedKind {
        self.kind
    }

    /// The code of the protocol for a refused hello.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self.kind {
            RefusedKind::NoKeys | RefusedKind::Full => ErrorCode::Busy,
            _ => ErrorCode::Unauthorized,
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Refused {}
