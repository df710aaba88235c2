//! The time for which the token that a function of the program gave can be used.

use std::time::{Duration, SystemTime};

/// A token is renewed when it expires within this time.
const MARGIN: Duration = Duration::from_secs(10);

/// Says whether the program has to give a token before the next attempt to connect: a login service
/// is not to be asked as often as a node that is down.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokenLife {
    /// By the token's own word; `None` if it says nothing.
    until: Option<SystemTime>,
}

impl TokenLife {
    /// Of a token that was given just now.
    #[must_use]
    pub fn new(token: &[u8], now: SystemTime) -> Self {
        // One that has expired already comes from a service whose clock is another.
        Self { until: expiry(token).filter(|&until| until > now) }
    }

    /// Returns whether the token has expired, or is about to.
    #[must_use]
    pub fn is_over(&self, now: SystemTime) -> bool {
        self.until.is_some_and(|until| now >= until)
    }
}

/// The `exp` of a JSON Web Token (RFC 7519, 4.1.4), less a margin.
fn expiry(token: &[u8]) -> Option<SystemTime> {
    let claims = token.split(|&byte| byte == b'.').nth(1)?;
    let claims: serde_json::Value = serde_json::from_slice(&from_base64url(claims)?).ok()?;
    let exp = Duration::try_from_secs_f64(claims.get("exp")?.as_f64()?).ok()?;
    SystemTime::UNIX_EPOCH.checked_add(exp)?.checked_sub(MARGIN)
}

/// Reads base64url without padding (RFC 4648, 5).
fn from_base64url(text: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3 + 3);
    for chunk in text.chunks(4) {
        let mut bits = 0u32;
        for &byte in chunk {
            let value = match byte {
                b'A'..=b'Z' => byte - b'A',
                b'a'..=b'z' => byte - b'a' + 26,
                b'0'..=b'9' => byte - b'0' + 52,
                b'-' => 62,
                b'_' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(value);
        }
        bits <<= 6 * (4 - chunk.len());
        bytes.extend_from_slice(&bits.to_be_bytes()[1..chunk.len()]);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::{TokenLife, expiry};
    use std::time::{Duration, SystemTime};

    /// `{"alg":"HS256"}.{"exp":1800000060,"sub":"ü>?"}` and a signature.
    const TOKEN: &[u8] =
        b"eyJhbGciOiJIUzI1NiJ9.eyJleHAiOjE4MDAwMDAwNjAsInN1YiI6IsO8Pj8ifQ.c2lnbmF0dXJl";

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn a_token_is_over_shortly_before_its_exp() {
        let life = TokenLife::new(TOKEN, at(1_799_999_000));
        assert!(!life.is_over(at(1_800_000_049)));
        assert!(life.is_over(at(1_800_000_050)));
    }

    #[test]
    fn a_token_without_an_exp_and_one_that_is_over_when_it_comes_last() {
        for token in [&b""[..], b"opaque", b"a.b.c", b"a.!!.c", b"..", b"a.eyJleHAiOi0xfQ.c"] {
            assert_eq!(expiry(token), None);
        }
        assert!(!TokenLife::new(b"opaque", at(0)).is_over(at(u32::MAX.into())));
        assert!(!TokenLife::new(TOKEN, at(1_800_000_055)).is_over(at(1_900_000_000)));
    }
}
