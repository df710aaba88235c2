//! Tokens, tickets and resume tokens. Only what was signed is accepted, with the claims that were
//! signed; one bit changed, and it is not.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use playfield_fuzz::input::Input;
use playfield_identity::{Jwt, Keys, Signer, Ticket, Tickets};
use playfield_session::{TOKEN_BYTES, Token, TokenKey};
use serde_json::{Map, Value};

/// When tokens are verified, in seconds since 1970.
const NOW: u64 = 1_800_000_000;

const SECRET: &str = "the secret of a fuzz target, of 32 bytes or more";

static SIGNER: LazyLock<Signer> = LazyLock::new(|| Signer::secret(SECRET).expect("a secret"));
static JWT: LazyLock<Jwt> = LazyLock::new(|| Jwt::new(keys()));
static MANY_KEYS: LazyLock<Jwt> = LazyLock::new(|| {
    let keys = include_bytes!("../../crates/identity/tests/keys/jwks.json");
    Jwt::new(Keys::jwks(keys).expect("valid keys")).audience("here").issuer("there")
});

fn keys() -> Keys {
    Keys::secret(SECRET).expect("a secret")
}

fuzz_target!(|data: &[u8]| {
    let mut input = Input::new(data);
    match input.byte() % 5 {
        0 => stranger(data.get(1..).unwrap_or_default()),
        1 => claims(&mut input),
        2 => ticket(&mut input),
        3 => resume(&mut input),
        _ => {
            // Keys that a file or a URL has.
            let _ = Keys::jwks(data.get(1..).unwrap_or_default());
            let _ = Keys::pem(data.get(1..).unwrap_or_default());
        }
    }
});

/// Nobody signed this.
fn stranger(bytes: &[u8]) {
    assert!(JWT.verify(bytes, NOW).is_err());
    assert!(MANY_KEYS.verify(bytes, NOW).is_err());
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert!(Tickets::new(keys()).redeem(text, None, NOW).is_err());
    }
}

/// Arbitrary claims, signed.
fn claims(input: &mut Input<'_>) {
    let at = [input.byte(), input.byte(), input.byte()];
    let Some(json) = input.piece() else { return };
    let Ok(claims) = serde_json::from_slice::<Map<String, Value>>(json) else { return };
    let Ok(token) = SIGNER.token(&claims) else { return };
    match JWT.verify(token.as_bytes(), NOW) {
        Ok(verified) => assert_eq!(verified.claims, claims),
        Err(refused) => assert!(!refused.to_string().is_empty()),
    }
    let forged = flipped(token.as_bytes(), at);
    assert!(JWT.verify(&forged, NOW).is_err());
    assert!(Tickets::new(keys()).redeem(&token, None, NOW).is_err(), "a token is no ticket");
}

/// A ticket is accepted once, by its user.
fn ticket(input: &mut Input<'_>) {
    let at = [input.byte(), input.byte(), input.byte()];
    let life = u64::from(input.byte());
    let mut text = || Some(String::from_utf8_lossy(input.piece()?).into_owned());
    let (Some(room_type), Some(key), Some(user)) = (text(), text(), text()) else { return };
    let ticket = Ticket::by_key(room_type, key, NOW + life).expect("random numbers").user(&user);
    let signed = SIGNER.ticket(&ticket).expect("a key");
    let tickets = Tickets::new(keys());
    if let Ok(forged) = std::str::from_utf8(&flipped(signed.as_bytes(), at)) {
        assert!(tickets.redeem(forged, None, NOW).is_err());
    }
    assert!(tickets.redeem(&signed, Some(&format!("{user}x")), NOW).is_err());
    if let Ok(pass) = tickets.redeem(&signed, None, NOW) {
        assert_eq!(pass.user, Some(user));
        assert!(tickets.redeem(&signed, None, NOW).is_err(), "a ticket is used once");
        tickets.give_back(&pass);
        assert!(tickets.redeem(&signed, None, NOW).is_ok());
    }
    assert!(JWT.verify(signed.as_bytes(), NOW).is_err(), "a ticket is no token");
}

fn resume(input: &mut Input<'_>) {
    let key = TokenKey::new(&[7; 32]);
    let at = [input.byte(), input.byte(), input.byte()];
    let mut number = || u64::from(input.byte()) << 8 | u64::from(input.byte());
    let token = Token {
        shard: number() as u16,
        session: number() << 48 | number(),
        generation: number() as u32,
    };
    let signed = key.sign(token);
    assert_eq!(key.verify(&signed), Some(token));
    assert_eq!(key.verify(&flipped(&signed, at)), None);
    let Some(bytes) = input.piece() else { return };
    assert_eq!(key.verify(bytes), None);
    if let Some(bytes) = bytes.first_chunk::<TOKEN_BYTES>() {
        assert_eq!(key.verify(bytes), None);
    }
}

/// The bytes with one bit changed.
fn flipped(bytes: &[u8], [low, high, bit]: [u8; 3]) -> Vec<u8> {
    let mut flipped = bytes.to_vec();
    let at = usize::from(u16::from_le_bytes([low, high])) % bytes.len();
    flipped[at] ^= 1 << (bit % 8);
    flipped
}
