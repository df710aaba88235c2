//! Authenticators that take time, on a running node.

use crate::common;

use std::future::pending;
use std::sync::Arc;

use common::speech::{Heard, encoded};
use common::{Client, config, room};
use playfield_room::Error;
use playfield_server::{AsyncAuthenticator, Identity, Running, Server};
use playfield_wire::client::{ClientMessage, Hello};
use playfield_wire::{ErrorCode, Format};
use tokio::sync::Notify;

/// Decides by the token; `wait` waits for `go`.
fn start(settings: &[(&str, &str)], go: &Arc<Notify>) -> Running {
    let go = Arc::clone(go);
    Server::new(config(settings))
        .room_type(room::room_type("test"))
        .authenticator(Box::new(AsyncAuthenticator(move |hello: Hello<'static>| {
            let go = Arc::clone(&go);
            async move {
                match &*hello.token {
                    b"wait" => go.notified().await,
                    b"hang" => pending().await,
                    b"panic" => panic!("as the token said"),
                    b"refuse" => return Err(Error::new(ErrorCode::Unauthorized, "not you")),
                    _ => {}
                }
                Ok(Identity::user("u1", hello.name))
            }
        })))
        .start()
        .unwrap()
}

/// A client whose hello has this token.
fn client(running: &Running, token: &[u8]) -> Client {
    let mut client = Client::upgrade(running.local_addr(), Format::Packed, false);
    let hello = Hello { token: token.into(), ..Hello::new(Format::Packed) };
    client.say(&encoded(Format::Packed, &ClientMessage::Hello(hello)));
    client
}

fn assert_refused(mut client: Client, code: ErrorCode) {
    let expected = [Heard::Error { request: None, room: None, code }, Heard::Goodbye { code }];
    assert_eq!(client.rest(), expected);
}

#[test]
fn each_outcome_has_its_code() {
    let running = start(&[], &Arc::default());
    assert!(matches!(client(&running, b"").next(), Heard::Welcome { .. }));
    assert_refused(client(&running, b"refuse"), ErrorCode::Unauthorized);
    assert_refused(client(&running, b"panic"), ErrorCode::Internal);
    let hasty = start(&[("timeouts.hello", "300ms")], &Arc::default());
    assert_refused(client(&hasty, b"hang"), ErrorCode::Timeout);
    assert!(matches!(client(&running, b"").next(), Heard::Welcome { .. }));
}

#[test]
fn authentications_max_clients_wait_and_one_more_is_refused() {
    let go = Arc::new(Notify::new());
    let running = start(&[("limits.queues.authentications", "2"), ("shards", "1")], &go);
    let mut first = client(&running, b"wait");
    let gone = client(&running, b"hang");
    assert_refused(client(&running, b""), ErrorCode::Busy);
    go.notify_one();
    assert!(matches!(first.next(), Heard::Welcome { .. }));
    assert_eq!(running.stats().total().authentications_refused, 1);
    let _also = client(&running, b"hang");
    assert_refused(client(&running, b""), ErrorCode::Busy);
    // A client that goes away makes room.
    drop(gone);
    loop {
        let mut next = client(&running, b"");
        if let Heard::Welcome { .. } = next.next() {
            break;
        }
    }
}
