//! Files of credentials, as `nsc` writes them: a token that an account has signed, and a seed.

use std::path::PathBuf;
use std::{env, fs, process};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::KeyPair;
use playfield_nats::testing::Server;
use serde_json::{Value, json};

use crate::host::{Host, refusal, settings};

/// A token about `subject`, by the account or the operator `by`.
fn token(by: &KeyPair, subject: &KeyPair, nats: &Value) -> String {
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let header = json!({ "typ": "JWT", "alg": "ed25519-nkey" });
    let claims = json!({
        "jti": "test", "iat": 1, "name": "test",
        "iss": by.public_key(), "sub": subject.public_key(), "nats": nats,
    });
    let signed = format!("{}.{}", encode(&header), encode(&claims));
    let signature = by.sign(signed.as_bytes()).expect("a key that can sign");
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

/// Writes the file of a user.
fn file(name: &str, account: &KeyPair, user: &KeyPair) -> PathBuf {
    let no_limits = json!({
        "type": "user", "version": 2, "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1,
    });
    let path = env::temp_dir().join(format!("playfield-nats-{}-{name}", process::id()));
    let text = format!(
        "-----BEGIN NATS USER JWT-----\n{}\n------END NATS USER JWT------\n\n\
         -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
        token(account, user, &no_limits),
        user.seed().expect("a key that can sign"),
    );
    fs::write(&path, text).expect("a file can be written");
    path
}

#[tokio::test]
async fn a_file_of_credentials_opens_the_account_that_signed_it() {
    let (operator, system) = (KeyPair::new_operator(), KeyPair::new_account());
    let (account, user) = (KeyPair::new_account(), KeyPair::new_user());
    let limits = json!({
        "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true,
        "conn": -1, "leaf": -1, "mem_storage": -1, "disk_storage": -1, "streams": -1,
        "consumer": -1,
    });
    let with_limits = json!({ "type": "account", "version": 2, "limits": limits });
    let without = json!({ "type": "account", "version": 2 });
    let config = format!(
        "operator: {}\nsystem_account: {}\nresolver: MEMORY\n\
         resolver_preload: {{ {}: {}, {}: {} }}",
        token(&operator, &operator, &json!({ "type": "operator", "version": 2 })),
        system.public_key(),
        system.public_key(),
        token(&operator, &system, &without),
        account.public_key(),
        token(&operator, &account, &with_limits),
    );
    let Some(server) = Server::start_with(&["--jetstream"], &config) else { return };

    let mut settings = settings(server.url());
    settings.credentials = Some(file("right.creds", &account, &user));
    let mut host = Host::with(settings.clone()).await.unwrap_or_else(|error| panic!("{error}"));
    host.write("n.1", b"x", 0).await.unwrap();

    let right = settings.credentials.replace(file("wrong.creds", &KeyPair::new_account(), &user));
    let text = refusal(settings.clone()).await;
    assert!(text.contains("refused the credentials"), "{text}");
    let wrong = settings.credentials.take();
    let text = refusal(settings).await;
    assert!(text.contains("refused the credentials"), "{text}");
    for file in [right, wrong].into_iter().flatten() {
        fs::remove_file(file).expect("a file that was written");
    }
}
