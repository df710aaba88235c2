//! Accepted and refused tokens.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use playfield_identity::{Jwt, Keys, RefusedKind, Signer, TOKEN_BYTES_MAX, USER_BYTES_MAX};
use playfield_wire::ErrorCode;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::time::Duration;

use crate::common::{Mutation, NOW, SECRET, claims, ed25519, key, pairs, token, verify};

fn part(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

#[test]
fn each_algorithm_verifies_what_its_key_signed_and_nothing_else() {
    let all = pairs();
    for (name, signer, keys) in &all {
        let jwt = Jwt::new(keys.clone());
        let good = token(signer, json!({"role": "admin"}));
        let verified = verify(&jwt, &good).unwrap();
        assert_eq!((&*verified.user, &*verified.name), ("u7", "Ann"), "{name}");
        assert_eq!(verified.claims["role"], "admin");
        for (other, _, keys) in &all {
            if other != name {
                let jwt = Jwt::new(keys.clone());
                assert_eq!(verify(&jwt, &good), Err(RefusedKind::Algorithm), "{name} {other}");
            }
        }
    }
    let (stranger, _) = Signer::generate().unwrap();
    let jwt = Jwt::new(ed25519().1);
    assert_eq!(verify(&jwt, &token(&stranger, json!({}))), Err(RefusedKind::Signature));
}

#[test]
fn a_token_without_a_signature_is_refused() {
    let body = part(&Value::Object(claims(json!({}))));
    for (_, _, keys) in pairs() {
        let jwt = Jwt::new(keys);
        for (name, expected) in [
            ("none", RefusedKind::Algorithm),
            ("None", RefusedKind::Algorithm),
            ("NONE", RefusedKind::Algorithm),
            ("", RefusedKind::Algorithm),
            ("HS512", RefusedKind::Algorithm),
            ("HS256 ", RefusedKind::Algorithm),
        ] {
            let head = part(&json!({"alg": name, "typ": "JWT"}));
            for signature in ["", "AAAA"] {
                let token = format!("{head}.{body}.{signature}");
                assert_eq!(verify(&jwt, &token), Err(expected), "{token}");
            }
        }
        for name in ["HS256", "RS256", "ES256", "EdDSA"] {
            let head = part(&json!({"alg": name, "typ": "JWT"}));
            assert!(verify(&jwt, &format!("{head}.{body}.")).is_err());
        }
    }
}

#[test]
fn a_public_key_is_no_secret() {
    // The attack: signed by HS256, with the text of the public key as the secret.
    for public in [key!("rsa-public.pem"), key!("p256-public.pem"), key!("ed25519-public.pem")] {
        let forger = Signer::secret(public).unwrap();
        let jwt = Jwt::new(Keys::pem(public).unwrap());
        assert_eq!(verify(&jwt, &token(&forger, json!({}))), Err(RefusedKind::Algorithm));
        assert!(Keys::secret(public).is_err());
    }
}

#[test]
fn times_are_honored() {
    let (signer, keys) = ed25519();
    let jwt = Jwt::new(keys.clone()).leeway(Duration::from_secs(10));
    let strict = Jwt::new(keys).leeway(Duration::ZERO);
    let ask = |jwt: &Jwt, with| verify(jwt, &token(&signer, with)).err();
    assert_eq!(ask(&jwt, json!({"exp": NOW - 9})), None);
    assert_eq!(ask(&jwt, json!({"exp": NOW - 10})), Some(RefusedKind::Expired));
    assert_eq!(ask(&strict, json!({"exp": NOW + 1})), None);
    assert_eq!(ask(&strict, json!({"exp": NOW})), Some(RefusedKind::Expired));
    assert_eq!(ask(&strict, json!({"exp": NOW as f64 + 1.5})), None);
    assert_eq!(ask(&jwt, json!({"nbf": NOW + 10})), None);
    assert_eq!(ask(&jwt, json!({"nbf": NOW + 11})), Some(RefusedKind::Early));
    assert_eq!(ask(&jwt, json!({"exp": null})), Some(RefusedKind::ClaimNeeded));
    for wrong in [json!("1900000000"), json!(-1), json!(1e300), json!([NOW + 9]), json!(true)] {
        assert_eq!(ask(&jwt, json!({"exp": wrong})), Some(RefusedKind::Malformed), "{wrong}");
        assert_eq!(ask(&jwt, json!({"nbf": wrong})), Some(RefusedKind::Malformed), "{wrong}");
    }
}

#[test]
fn a_token_is_for_this_audience_by_this_issuer_and_has_what_is_required() {
    let (signer, keys) = ed25519();
    let open = Jwt::new(keys.clone());
    let jwt = Jwt::new(keys).audience("duel").audience("chess").issuer("us").require("email");
    let ask = |jwt: &Jwt, with| verify(jwt, &token(&signer, with)).err();
    let with =
        |audience: Value, issuer: Value| json!({"aud": audience, "iss": issuer, "email": "a@b"});
    assert_eq!(ask(&jwt, with(json!("chess"), json!("us"))), None);
    assert_eq!(ask(&jwt, with(json!(["x", "duel"]), json!("us"))), None);
    for (audience, issuer, expected) in [
        (json!("go"), json!("us"), RefusedKind::Foreign),
        (json!(["x", "y"]), json!("us"), RefusedKind::Foreign),
        (json!([]), json!("us"), RefusedKind::Foreign),
        (json!({"duel": 1}), json!("us"), RefusedKind::Foreign),
        (Value::Null, json!("us"), RefusedKind::ClaimNeeded),
        (json!("duel"), json!("them"), RefusedKind::Foreign),
        (json!("duel"), Value::Null, RefusedKind::ClaimNeeded),
    ] {
        assert_eq!(ask(&jwt, with(audience.clone(), issuer)), Some(expected), "{audience}");
    }
    let unmailed = json!({"aud": "duel", "iss": "us"});
    assert_eq!(ask(&jwt, unmailed), Some(RefusedKind::ClaimNeeded));
    // RFC 7519, 4.1.3: a node without an audience refuses a token that has one.
    assert_eq!(ask(&open, json!({"aud": "duel"})), Some(RefusedKind::Foreign));
    assert_eq!(ask(&open, json!({"iss": "anyone"})), None);
    // RFC 7519, 4.1.1: one issuer, as a text.
    for issuer in [json!(["us"]), json!(["us", "them"]), json!(7), json!({"us": 1})] {
        let jwts = [&jwt, &open];
        for (jwt, audience) in jwts.into_iter().zip([json!("duel"), Value::Null]) {
            let refused = ask(jwt, with(audience, issuer.clone()));
            assert_eq!(refused, Some(RefusedKind::Malformed), "{issuer}");
        }
    }
}

#[test]
fn a_token_names_a_user() {
    let (signer, keys) = ed25519();
    let jwt = Jwt::new(keys.clone());
    let by_number = Jwt::new(keys).user_claim("uid").name_claim("nick");
    let user = |jwt: &Jwt, with| verify(jwt, &token(&signer, with)).map(|verified| verified.user);
    assert_eq!(user(&jwt, json!({"sub": null})), Err(RefusedKind::ClaimNeeded));
    assert_eq!(user(&jwt, json!({"sub": ""})), Err(RefusedKind::ClaimNeeded));
    assert_eq!(user(&jwt, json!({"sub": ["u7"]})), Err(RefusedKind::Malformed));
    let long = "u".repeat(USER_BYTES_MAX);
    assert_eq!(user(&jwt, json!({"sub": long})), Ok(long.clone()));
    assert_eq!(user(&jwt, json!({"sub": format!("{long}u")})), Err(RefusedKind::Malformed));
    assert_eq!(user(&by_number, json!({"uid": 17})), Ok("17".into()));
    // RFC 7519, 4.1.2: it is a text, also where it does not name the user.
    assert_eq!(user(&jwt, json!({"sub": 17})), Err(RefusedKind::Malformed));
    assert_eq!(user(&by_number, json!({"sub": 17, "uid": 17})), Err(RefusedKind::Malformed));
    let named = token(&signer, json!({"uid": "u", "nick": "Bob"}));
    assert_eq!(verify(&by_number, &named).unwrap().name, "Bob");
}

#[test]
fn a_token_that_is_none_or_too_large_is_refused() {
    let jwt = Jwt::new(ed25519().1);
    assert_eq!(verify(&jwt, ""), Err(RefusedKind::Missing));
    for text in ["x", "..", "a.b", "a.b.c", "e30.e30.e30", "e30.e30.e30.e30", "{}.{}.{}"] {
        assert_eq!(verify(&jwt, text), Err(RefusedKind::Malformed), "{text}");
    }
    assert_eq!(verify(&jwt, &"x".repeat(TOKEN_BYTES_MAX)), Err(RefusedKind::Malformed));
    assert_eq!(verify(&jwt, &"x".repeat(TOKEN_BYTES_MAX + 1)), Err(RefusedKind::TooLarge));
    let deep = URL_SAFE_NO_PAD.encode("[".repeat(2000));
    assert_eq!(verify(&jwt, &format!("{deep}.{deep}.")), Err(RefusedKind::Malformed));
    let critical = part(&json!({"alg": "EdDSA", "crit": ["b64"], "b64": false}));
    assert_eq!(verify(&jwt, &format!("{critical}.e30.AA")), Err(RefusedKind::Malformed));
}

#[test]
fn a_refusal_has_a_code_and_a_text_without_secrets() {
    let jwt = Jwt::new(Keys::secret(SECRET).unwrap()).audience("private-audience");
    let signer = Signer::secret(SECRET).unwrap();
    for with in
        [json!({"aud": "x"}), json!({"exp": 1}), json!({"sub": null, "aud": "private-audience"})]
    {
        let refused = jwt.verify(token(&signer, with).as_bytes(), NOW).unwrap_err();
        assert_eq!(refused.code(), ErrorCode::Unauthorized);
        let text = refused.to_string();
        assert!(!text.contains("private-audience") && !text.contains("0123456789"), "{text}");
    }
    assert_eq!(format!("{jwt:?}").matches("0123456789").count(), 0);
}

proptest! {
    #[test]
    fn a_mutated_token_is_never_accepted(
        which in 0_usize..4, at in any::<prop::sample::Index>(), mutation in Mutation::any(),
    ) {
        let (_, signer, keys) = pairs().swap_remove(which);
        let jwt = Jwt::new(keys);
        let good = token(&signer, json!({})).into_bytes();
        let bad = mutation.apply(&good, at);
        if bad != good {
            prop_assert!(jwt.verify(&bad, NOW).is_err(), "{}", String::from_utf8_lossy(&bad));
        }
    }

    /// No input panics.
    #[test]
    fn any_text_is_refused(
        head in "[ -~]{0,80}", body in "[ -~]{0,80}", raw in any::<bool>(),
        algorithm in prop::sample::select(vec!["HS256", "RS256", "ES256", "EdDSA", "none"]),
    ) {
        let head = if raw { head } else { format!("{{\"alg\":\"{algorithm}\"}}") };
        let token =
            format!("{}.{}.{}", URL_SAFE_NO_PAD.encode(head), URL_SAFE_NO_PAD.encode(body), "AAAA");
        for (_, _, keys) in pairs() {
            prop_assert!(Jwt::new(keys).verify(token.as_bytes(), NOW).is_err());
        }
    }
}
