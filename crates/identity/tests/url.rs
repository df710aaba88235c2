//! Keys from a URL.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use playfield_identity::{Jwt, Keys, RefusedKind};
use serde_json::json;

use crate::common::{SECRET, key, pairs, token, verify};

/// Serves a text once, over HTTP.
fn serve(body: String) -> (String, thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/jwks.json", listener.local_addr().unwrap());
    let served = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            socket.read_exact(&mut byte).unwrap();
            request.push(byte[0]);
        }
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        socket.write_all(head.as_bytes()).unwrap();
        socket.write_all(body.as_bytes()).unwrap();
    });
    (url, served)
}

#[test]
fn a_set_is_read_from_a_url_at_once() {
    let (url, served) = serve(key!("jwks.json").into());
    let jwt = Jwt::new(Keys::url(url));
    let good = token(&pairs().pop().unwrap().1, json!({}));
    served.join().unwrap();
    while verify(&jwt, &good) == Err(RefusedKind::NoKeys) {
        thread::yield_now();
    }
    assert!(verify(&jwt, &good).is_ok());
}

#[test]
fn a_set_with_a_secret_is_not_accepted_from_a_url() {
    let set = json!({"keys": [{"kty": "oct", "k": "A".repeat(43)}]}).to_string();
    let (url, served) = serve(set);
    let jwt = Jwt::new(Keys::url(url));
    served.join().unwrap();
    let refused =
        verify(&jwt, &token(&playfield_identity::Signer::secret(SECRET).unwrap(), json!({})));
    assert_eq!(refused, Err(RefusedKind::NoKeys));
}
