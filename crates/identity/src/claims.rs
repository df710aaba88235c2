//! The parts of a token, and the claims that every token has.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use playfield_wire::excerpt;
use serde_json::{Map, Value};

use crate::refused::{Refused, RefusedKind, TOKEN_BYTES_MAX};

/// The header of a token.
pub(crate) struct Head {
    /// The name of the algorithm.
    pub(crate) algorithm: String,
    /// The id of the key.
    pub(crate) key: Option<String>,
    /// The type of the token.
    pub(crate) kind: Option<String>,
}

impl Head {
    /// Reads the header. Nothing of it can be trusted before the signature is verified.
    pub(crate) fn read(token: &[u8]) -> Result<Self, Refused> {
        let bytes = token.len();
        if bytes == 0 {
            return Err(Refused::new(RefusedKind::Missing, "this node needs a token; log in"));
        }
        if bytes > TOKEN_BYTES_MAX {
            let text = format!(
                "TOKEN_BYTES_MAX: the token has {bytes} bytes, the limit is {TOKEN_BYTES_MAX}"
            );
            return Err(Refused::new(RefusedKind::TooLarge, text));
        }
        let refuse = || Refused::malformed("the token is not a JSON Web Token");
        let mut parts = token.split(|&byte| byte == b'.');
        let (Some(head), Some(_), Some(_), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(refuse());
        };
        let head = URL_SAFE_NO_PAD.decode(head).map_err(|_| refuse())?;
        let mut head: Map<String, Value> = serde_json::from_slice(&head).map_err(|_| refuse())?;
        if head.contains_key("crit") {
            // It names extensions that must be understood (RFC 7515, 4.1.11).
            return Err(Refused::malformed(
                "the token needs an extension (crit), which this node does not support",
            ));
        }
        let mut text = |name: &str| match head.remove(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(refuse()),
        };
        let algorithm = text("alg")?.ok_or_else(refuse)?;
        Ok(Self { algorithm, key: text("kid")?, kind: text("typ")? })
    }
}

/// Checks that the token is valid at `now`, give or take `leeway`; returns when it expires. Times
/// are in seconds since 1970, the leeway in seconds.
pub(crate) fn check_time(
    claims: &Map<String, Value>,
    now: u64,
    leeway: u64,
) -> Result<u64, Refused> {
    let expires = time(claims, "exp")?.ok_or_else(|| Refused::claim_needed("exp"))?;
    if expires.saturating_add(leeway) <= now {
        return Err(Refused::new(RefusedKind::Expired, "the token has expired; get a new one"));
    }
    if time(claims, "nbf")?.is_some_and(|begins| begins > now.saturating_add(leeway)) {
        let text = "the token is not valid yet (nbf); check the clocks";
        return Err(Refused::new(RefusedKind::Early, text));
    }
    Ok(expires)
}

fn time(claims: &Map<String, Value>, name: &str) -> Result<Option<u64>, Refused> {
    let Some(value) = claims.get(name) else { return Ok(None) };
    // A NumericDate may have a fraction (RFC 7519, 2).
    let seconds = value.as_u64().or_else(|| {
        let seconds = value.as_f64().filter(|seconds| (0.0..=9e15).contains(seconds))?;
        Some(seconds as u64)
    });
    match seconds {
        Some(seconds) => Ok(Some(seconds)),
        None => Err(Refused::malformed(&format!("the claim {name:?} is not a time"))),
    }
}

/// Checks that a claim, a text or a list of texts, has one of these values.
pub(crate) fn check_one_of(
    claims: &Map<String, Value>,
    name: &str,
    accepted: &[String],
) -> Result<(), Refused> {
    let is_one = |value: &Value| {
        value.as_str().is_some_and(|text| accepted.iter().any(|accepted| accepted == text))
    };
    let is_ours = match claims.get(name) {
        None => return Err(Refused::claim_needed(name)),
        Some(Value::Array(values)) => values.iter().any(is_one),
        Some(value) => is_one(value),
    };
    if is_ours {
        return Ok(());
    }
    let text = format!("the token's {name:?} is not one that this node accepts");
    Err(Refused::new(RefusedKind::Foreign, text))
}

/// Checks the audience of a token or a ticket, which `what` names: it must be one of `accepted`, or
/// absent if that is empty (RFC 7519, 4.1.3).
pub(crate) fn check_audience(
    claims: &Map<String, Value>,
    accepted: &[String],
    what: &str,
) -> Result<(), Refused> {
    if !accepted.is_empty() {
        return check_one_of(claims, "aud", accepted);
    }
    match claims.get("aud") {
        None | Some(Value::Null) => Ok(()),
        Some(_) => {
            let text = format!("the {what} is for an audience (aud), and this node accepts none");
            Err(Refused::new(RefusedKind::Foreign, text))
        }
    }
}

/// A claim that is text, of at most `bytes_max` bytes; `None` if it is absent or empty.
pub(crate) fn text(
    claims: &Map<String, Value>,
    name: &str,
    bytes_max: usize,
) -> Result<Option<String>, Refused> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) if text.len() <= bytes_max => Ok(Some(text.clone())),
        Some(Value::String(text)) => {
            let (begin, bytes) = (excerpt(text, 16), text.len());
            let why = format!(
                "the claim {name:?}, {begin:?}…, has {bytes} bytes, the limit is {bytes_max}"
            );
            Err(Refused::malformed(&why))
        }
        Some(_) => Err(Refused::malformed(&format!("the claim {name:?} is not a text"))),
    }
}
