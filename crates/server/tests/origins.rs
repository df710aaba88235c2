//! The pages that may connect, over real sockets.

use crate::common;

use std::io::{Read, Write};

use common::{Client, Heard, config, room, start};
use playfield_server::{Running, Server};
use playfield_wire::{Format, RequestNumber};

/// The first line of what answers a WebSocket request with these headers, and what stands below its
/// headers.
fn asked(running: &Running, headers: &str) -> (String, String) {
    let mut client = Client::connect(running.local_addr());
    let request = format!(
        "GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n{headers}\r\n"
    );
    // A Close frame behind it, so that the node ends what it has accepted.
    client.socket.write_all(&[request.as_bytes(), b"\x88\x80\0\0\0\0"].concat()).unwrap();
    let mut answer = Vec::new();
    client.socket.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer);
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap_or_default().to_owned(), body.to_owned())
}

fn is_let_in(running: &Running, headers: &str) -> bool {
    let (status, body) = asked(running, headers);
    match &*status {
        "HTTP/1.1 101 Switching Protocols" => true,
        "HTTP/1.1 403 Forbidden" => {
            assert_eq!(body, "websocket.allowed_origins: pages of this origin may not connect\n");
            false
        }
        _ => panic!("{status}"),
    }
}

#[test]
fn pages_of_the_named_origins_are_let_in_and_no_others() {
    let running = start(&[
        ("websocket.allowed_origins", "https://play.example.com, http://localhost:8080"),
        ("shards", "1"),
    ]);
    for (header, expected) in [
        ("Origin: https://play.example.com\r\n", true),
        ("Origin: http://localhost:8080\r\n", true),
        ("origin: HTTPS://Play.Example.COM\r\n", true),
        ("", true),
        ("Origin: http://play.example.com\r\n", false),
        ("Origin: https://play.example.com:8443\r\n", false),
        ("Origin: http://localhost\r\n", false),
        ("Origin: https://play.example.com.evil.example\r\n", false),
        ("Origin: https://evil.example/https://play.example.com\r\n", false),
        ("Origin: null\r\n", false),
        ("Origin:\r\n", false),
        ("Origin: https://play.example.com https://evil.example\r\n", false),
        ("Origin: https://caf\u{e9}.example\r\n", false),
    ] {
        assert_eq!(is_let_in(&running, header), expected, "{header:?}");
    }
    let twice = "Origin: https://play.example.com\r\nOrigin: https://evil.example\r\n";
    assert_eq!(asked(&running, twice).0, "HTTP/1.1 400 Bad Request");
    // The counter is published when the turn is over, which the next one tells.
    Client::native(running.local_addr());
    assert_eq!(running.stats().total().origins_refused, 9);
}

#[test]
fn clients_that_are_no_page_need_no_origin() {
    let running = start(&[("websocket.allowed_origins", "https://play.example.com")]);
    Client::native(running.local_addr());
    let mut client = Client::websocket(running.local_addr(), Format::Packed);
    client.join_or_create(RequestNumber(1), "");
    client.until(|heard| matches!(heard, Heard::Snapshot { .. }).then_some(()));

    let mut page = Client::connect(running.local_addr());
    page.socket
        .write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\nOrigin: https://evil.example\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    page.socket.read_to_string(&mut answer).unwrap();
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n"),
        "a page may be looked at from anywhere: {answer}"
    );
}

#[test]
fn where_none_is_named_every_page_is_let_in() {
    let running = start(&[]);
    for header in
        ["Origin: https://anywhere.example\r\n", "Origin: null\r\n", "Origin: \u{e9}\r\n", ""]
    {
        assert!(is_let_in(&running, header), "{header:?}");
    }
}

#[test]
fn what_is_no_origin_is_refused_at_the_start() {
    let mut settings = config(&[]);
    for (value, why) in [
        ("play.example.com", "it has no scheme"),
        ("https://play.example.com/", "there is more in it than scheme, host and port"),
        ("*", "leave the list empty to allow every page"),
        ("null", "files and sandboxed pages from anywhere say it of themselves"),
    ] {
        let error = settings.set("websocket.allowed_origins", value).unwrap_err().to_string();
        assert!(error.contains(&format!("{value:?} is not an origin: {why}; give ")), "{error}");
    }
    Server::new(settings).room_type(room::room_type("test")).start().unwrap().shutdown();
}
