//! Resume tokens.

use ring::hmac;

/// The bytes of the HMAC in a token: 128 bits can't be guessed.
const MAC_BYTES: usize = 16;
const BODY_BYTES: usize = 2 + 2 + 8 + 4;

/// The length of a token.
pub const TOKEN_BYTES: usize = BODY_BYTES + MAC_BYTES;

/// The content of a resume token. A token is valid until its session has been resumed, has said
/// goodbye, or has been away for longer than it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The node's slot in its cluster; 0 without one.
    pub slot: u16,
    /// The shard that opened the session.
    pub shard: u16,
    /// The session's number.
    pub session: u64,
    /// The number of times that the session was resumed before this token was made.
    pub generation: u32,
}

/// The key by which a node knows its own tokens (HMAC-SHA256, RFC 2104, cut to 128 bits).
#[derive(Debug)]
pub struct TokenKey(hmac::Key);

impl TokenKey {
    /// A key from random bytes, which must stay secret.
    #[must_use]
    pub fn new(secret: &[u8; 32]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, secret))
    }

    /// The token's bytes.
    #[must_use]
    pub fn sign(&self, token: Token) -> [u8; TOKEN_BYTES] {
        let mut bytes = [0; TOKEN_BYTES];
        let (body, mac) = bytes.split_at_mut(BODY_BYTES);
        body[..2].copy_from_slice(&token.slot.to_le_bytes());
        body[2..4].copy_from_slice(&token.shard.to_le_bytes());
        body[4..12].copy_from_slice(&token.session.to_le_bytes());
        body[12..].copy_from_slice(&token.generation.to_le_bytes());
        mac.copy_from_slice(&hmac::sign(&self.0, body).as_ref()[..MAC_BYTES]);
        bytes
    }

    /// Reads a token; `None` if it was not signed with this key. Takes the same time whichever byte
    /// is wrong.
    #[must_use]
    pub fn verify(&self, bytes: &[u8]) -> Option<Token> {
        let bytes: &[u8; TOKEN_BYTES] = bytes.try_into().ok()?;
        let (body, mac) = bytes.split_at(BODY_BYTES);
        let expected = hmac::sign(&self.0, body);
        // A MAC of the whole MAC: comparing it reveals nothing of where the first differs.
        let blind = |mac: &[u8]| hmac::sign(&self.0, mac);
        if blind(mac).as_ref() != blind(&expected.as_ref()[..MAC_BYTES]).as_ref() {
            return None;
        }
        Some(Token {
            slot: u16::from_le_bytes(body[..2].try_into().ok()?),
            shard: u16::from_le_bytes(body[2..4].try_into().ok()?),
            session: u64::from_le_bytes(body[4..12].try_into().ok()?),
            generation: u32::from_le_bytes(body[12..].try_into().ok()?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{TOKEN_BYTES, Token, TokenKey};

    const TOKEN: Token =
        Token { slot: 1023, shard: 3, session: 0xFEDC_BA98_7654_3210, generation: 7 };

    #[test]
    fn a_token_names_what_it_was_made_for() {
        let key = TokenKey::new(&[7; 32]);
        assert_eq!(key.verify(&key.sign(TOKEN)), Some(TOKEN));
    }

    #[test]
    fn a_token_with_any_bit_changed_cut_or_of_another_key_names_nothing() {
        let key = TokenKey::new(&[7; 32]);
        let bytes = key.sign(TOKEN);
        for bit in 0..TOKEN_BYTES * 8 {
            let mut forged = bytes;
            forged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key.verify(&forged), None, "bit {bit}");
        }
        for length in 0..TOKEN_BYTES {
            assert_eq!(key.verify(&bytes[..length]), None, "{length} bytes");
        }
        assert_eq!(key.verify(&[&bytes[..], &[0]].concat()), None);
        assert_eq!(TokenKey::new(&[8; 32]).verify(&bytes), None);
    }
}
