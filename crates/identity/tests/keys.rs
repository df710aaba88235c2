//! Sources of keys, and refused keys.

use std::path::PathBuf;

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
    let short = text(Keys::jwks(r#"{"keys":[{"kty":"oct","k":"AAAA"}]}"#));
    assert!(
        short.contains("a secret of 3 bytes is too short for HS256; use at least 32"),
        "{short}"
    );
    let other = json!({"keys": [{"kty": "oct", "k": "A".repeat(43), "alg": "x".repeat(70)}]});
    let other = text(Keys::jwks(other.to_string()));
    assert!(other.ends_with(&format!("{:?} is not supported", "x".repeat(64))), "{other}");
    let set = |count: usize| {
        let key = json!({"kty": "oct", "k": "A".repeat(43)});
        Keys::jwks(json!({"keys": vec![key; count]}).to_string())
    };
    assert!(set(KEYS_MAX).is_ok());
    assert!(text(set(KEYS_MAX + 1)).starts_with("KEYS_MAX: "));
}

/// `fn main() -> Result<…, KeyError>` prints `Debug`.
#[test]
fn an_error_is_the_same_text_in_every_form() {
    let error = Keys::file("/no/such/file").unwrap_err();
    assert!(error.to_string().starts_with("/no/such/file: "), "{error}");
    assert_eq!(format!("{error:?}"), error.to_string());
}

#[test]
fn a_signer_publishes_the_public_half_of_its_key_and_never_a_secret() {
    for (name, signer, _) in pairs() {
        let jwks = signer.clone().named("k").jwks();
        if name == "HS256" {
            let text = jwks.unwrap_err().to_string();
            assert!(text.starts_with("HS256 signs by a secret"), "{text}");
            continue;
        }
        let jwt = Jwt::new(Keys::jwks(jwks.unwrap()).unwrap());
        assert!(verify(&jwt, &token(&signer.named("k"), json!({}))).is_ok(), "{name}");
    }
    let jwks = Signer::generate().unwrap().0.jwks().unwrap();
    assert!(!jwks.contains("kid"), "it has no name: {jwks}");
}

#[test]
fn a_file_has_a_set_a_pem_or_a_secret() {
    let folder = Folder::new("kinds");
    let signers: Vec<_> = pairs().into_iter().map(|(_, signer, _)| signer).collect();
    let after_a_line = ["Bag Attributes\n", key!("rsa-public.pem")].concat();
    let marked = ["\u{feff}", key!("jwks.json")].concat();
    let secret = [b"\n", SECRET, b"\n"].concat();
    for (keys, signer) in [
        (Keys::secret_file(folder.write(&secret)), &signers[0]),
        (Keys::file(folder.write(key!("rsa-public.pem").as_bytes())), &signers[1]),
        (Keys::file(folder.write(after_a_line.as_bytes())), &signers[1]),
        (Keys::file(folder.write(key!("jwks.json").as_bytes())), &signers[2]),
        (Keys::file(folder.write(marked.as_bytes())), &signers[2]),
    ] {
        assert!(verify(&Jwt::new(keys.unwrap()), &token(signer, json!({}))).is_ok());
    }
    let long = |bytes| Keys::secret_file(folder.write(&vec![b'x'; bytes]));
    assert!(long(KEYS_BYTES_MAX).is_ok());
    let error = long(KEYS_BYTES_MAX + 1).unwrap_err().to_string();
    assert!(error.contains("KEYS_BYTES_MAX"), "{error}");
    let not_a_file = Keys::file(&folder.0).unwrap_err().to_string();
    assert!(not_a_file.contains("it is not a regular file"), "{not_a_file}");
    let missing = Keys::file(folder.0.join("nothing")).unwrap_err().to_string();
    assert!(missing.contains("nothing: "), "{missing}");
}

/// Text that anyone can read must not be what tokens are signed with.
#[test]
fn nothing_that_others_know_becomes_a_secret() {
    let folder = Folder::new("public");
    let pem = key!("rsa-public.pem");
    let after_a_line = ["# login key\n", pem].concat();
    let marked = ["\u{feff}", key!("jwks.json")].concat();
    let ssh = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJYVt1c login@example.com";
    let page = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n</html>";
    for public in [pem, &after_a_line, key!("jwks.json"), &marked, ssh, page] {
        let refused = Keys::secret(public).unwrap_err().to_string();
        assert!(refused.contains("others may know"), "{public}: {refused}");
        assert!(Keys::secret_file(folder.write(public.as_bytes())).is_err(), "{public}");
    }
    for unknown in [ssh, page, "502 Bad Gateway: the login service is being updated"] {
        let refused = Keys::file(folder.write(unknown.as_bytes())).unwrap_err().to_string();
        assert!(refused.contains("Keys::secret_file"), "{unknown}: {refused}");
    }
}

/// A folder for one test, gone at its end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = format!("playfield-keys-{name}-{}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }

    /// The path of a file with this content.
    fn write(&self, content: &[u8]) -> PathBuf {
        let path = self.0.join("keys");
        std::fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
