//! Where keys come from, and which are refused.

use playfield_identity::{
    Jwt, KEYS_BYTES_MAX, KEYS_MAX, KeyError, Keys, RefusedKind, SECRET_BYTES_MIN, Signer,
};
use serde_json::json;

use crate::common::{SECRET, key, pairs, token, verify};

#[test]
fn a_set_has_a_key_for_each_name() {
    let jwt = Jwt::new(Keys::jwks(key!("jwks.json")).unwrap());
    for (name, signer, _) in pairs() {
        let (id, wrong) = match name {
            "RS256" => ("r", "e"),
            "ES256" => ("e", "d"),
            "EdDSA" => ("d", "r"),
            _ => continue,
        };
        let ask = |signer: Signer| verify(&jwt, &token(&signer, json!({}))).err();
        assert_eq!(ask(signer.clone().named(id)), None, "{name}");
        assert_eq!(ask(signer.clone()), None, "one key is for {name}");
        assert_eq!(ask(signer.clone().named(wrong)), Some(RefusedKind::Algorithm));
        assert_eq!(ask(signer.clone().named("enc")), Some(RefusedKind::UnknownKey));
        assert_eq!(ask(signer.named("other")), Some(RefusedKind::UnknownKey));
    }
}

#[test]
fn a_token_must_name_its_key_where_several_fit() {
    let two = key!("jwks.json").replace("\"X25519\"", "\"Ed25519\"");
    let jwt = Jwt::new(Keys::jwks(two).unwrap());
    let (_, signer, _) = pairs().pop().unwrap();
    let ask = |signer: &Signer| verify(&jwt, &token(signer, json!({}))).err();
    assert_eq!(ask(&signer), Some(RefusedKind::KeyNeeded));
    assert_eq!(ask(&signer.named("x")), None);
}

#[test]
fn keys_that_cant_verify_are_refused_when_they_are_read() {
    let text = |keys: Result<Keys, KeyError>| keys.unwrap_err().to_string();
    assert!(Keys::secret([7; SECRET_BYTES_MIN]).is_ok());
    assert!(text(Keys::secret([7; SECRET_BYTES_MIN - 1])).contains("31 bytes"));
    assert!(text(Keys::pem(key!("rsa.pem"))).contains("private key"));
    assert!(text(Keys::pem(key!("p384-public.pem"))).contains("P-256"));
    assert!(text(Keys::pem("-----BEGIN CERTIFICATE-----")).contains("certificate"));
    assert!(
        text(Keys::pem("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----")).len() > 9
    );
    for none in ["", "[]", "{}", "{\"keys\":{}}", "{\"keys\":[]}", "{\"keys\":[7]}"] {
        assert!(Keys::jwks(none).is_err(), "{none}");
    }
    let set = |count: usize| {
        let key = json!({"kty": "oct", "k": "A".repeat(43)});
        Keys::jwks(json!({"keys": vec![key; count]}).to_string())
    };
    assert!(set(KEYS_MAX).is_ok());
    assert!(text(set(KEYS_MAX + 1)).starts_with("KEYS_MAX: "));
}

#[test]
fn a_file_has_any_of_them() {
    let folder = std::env::temp_dir().join(format!("playfield-keys-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = |name: &str, content: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, content).unwrap();
        Keys::file(path)
    };
    let signers: Vec<_> = pairs().into_iter().map(|(_, signer, _)| signer).collect();
    let secret = [b"\n", SECRET, b"\n"].concat();
    for (content, signer) in [
        (&secret[..], &signers[0]),
        (key!("rsa-public.pem").as_bytes(), &signers[1]),
        (key!("jwks.json").as_bytes(), &signers[2]),
    ] {
        let jwt = Jwt::new(file("keys", content).unwrap());
        assert!(verify(&jwt, &token(signer, json!({}))).is_ok());
    }
    assert!(file("keys", &vec![b'x'; KEYS_BYTES_MAX]).is_ok());
    let error = file("keys", &vec![b'x'; KEYS_BYTES_MAX + 1]).unwrap_err().to_string();
    assert!(error.contains("KEYS_BYTES_MAX"), "{error}");
    let not_a_file = Keys::file(&folder).unwrap_err().to_string();
    assert!(not_a_file.contains("it is not a regular file"), "{not_a_file}");
    let missing = Keys::file(folder.join("nothing")).unwrap_err().to_string();
    assert!(missing.contains("nothing: "), "{missing}");
    std::fs::remove_dir_all(folder).unwrap();
}
