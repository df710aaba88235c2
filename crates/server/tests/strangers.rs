//! Strangers and proxies at the node's real port.

use crate::common;

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;

use common::tls::{client as tls_client, trusting_node};
use common::{Client, Heard, hello, start, until};
use playfield_server::Running;
use playfield_wire::framing::{PREAMBLE, write_frame};
use playfield_wire::{ErrorCode, Format};

/// Limits by address hold for this machine too.
const NO_TRUST: (&str, &str) = ("limits.address.trusted", "");
const PROXY: (&str, &str) = ("trusted_proxies", "127.0.0.0/8");

/// The first message of a client, in native framing.
fn opening() -> Vec<u8> {
    let mut bytes = PREAMBLE.to_vec();
    write_frame(&mut bytes, &hello(Format::Packed));
    bytes
}

/// A header of the PROXY protocol, version 2, for an IPv4 client.
fn version_2(client: [u8; 4]) -> Vec<u8> {
    let begin = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0C";
    [&begin[..], &client, &[127, 0, 0, 1, 0x12, 0x34, 0x1C, 0xB6]].concat()
}

/// Reads all that comes. Whether the connection then is over.
fn is_closed(socket: &mut TcpStream) -> bool {
    let mut chunk = [0; 1024];
    loop {
        match socket.read(&mut chunk) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => return true,
            Err(_) => return false,
        }
    }
}

/// Sends these bytes and then a hello. `None` if it is not welcome.
fn is_welcome(running: &Running, first: &[u8]) -> Option<Client> {
    let mut client = Client::connect(running.local_addr());
    // It may be closed before all is written.
    let _ = client.socket.write_all(&[first, &opening()].concat());
    matches!(client.try_next(), Some(Heard::Welcome { .. })).then_some(client)
}

#[test]
fn the_connections_of_one_address_are_limited_at_the_port() {
    let running = start(&[NO_TRUST, ("limits.connections.per_address", "3")]);
    let mut held: Vec<_> = (0..3).map(|_| Client::native(running.local_addr())).collect();
    for _ in 0..200 {
        assert!(is_closed(&mut Client::connect(running.local_addr()).socket));
    }
    until(&running, |running| running.stats().total().connections_refused_by_address == 200);
    drop(held.pop());
    until(&running, |running| running.stats().total().connections == 2);
    Client::native(running.local_addr());
}

#[test]
fn this_machine_is_exempt_by_default() {
    let running = start(&[("limits.connections.per_address", "1")]);
    let _held: Vec<_> = (0..20).map(|_| Client::native(running.local_addr())).collect();
    assert_eq!(running.stats().total().connections_refused_by_address, 0);
}

#[test]
fn a_proxy_names_its_clients_before_anything_else() {
    let running = start(&[PROXY, NO_TRUST, ("limits.connections.per_address", "1")]);
    let line = b"PROXY TCP4 203.0.113.5 127.0.0.1 4711 7350\r\n";
    let held = is_welcome(&running, line).expect("it is the first");
    assert!(is_welcome(&running, line).is_none(), "the second of its address");
    assert!(is_welcome(&running, &version_2([203, 0, 113, 5])).is_none(), "in the other version");
    let _other = is_welcome(&running, &version_2([203, 0, 113, 6])).expect("another address");
    // The proxy itself has no limit, and need not speak for anyone.
    let own: Vec<_> = (0..3).map(|_| is_welcome(&running, b"")).collect();
    assert!(own.iter().all(Option::is_some));
    drop((held, own));
    until(&running, |running| running.stats().total().connections == 1);
    assert!(is_welcome(&running, line).is_some());
}

#[test]
fn connections_for_which_a_proxy_names_no_client_share_the_limits_of_one_address() {
    let running = start(&[PROXY, ("limits.connections.per_address", "3")]);
    let v2 = |command: u8, family: u8, rest: &[u8]| {
        let begin = b"\r\n\r\n\0\r\nQUIT\n";
        [&begin[..], &[command, family, 0, rest.len() as u8], rest].concat()
    };
    // Unknown, the proxy's own, of no family, and of a Unix socket.
    let unnamed = [
        b"PROXY UNKNOWN\r\n".to_vec(),
        v2(0x20, 0, &[]),
        v2(0x21, 0, &[]),
        v2(0x21, 0x31, &[0; 216]),
    ];
    let mut held: Vec<_> = unnamed[..3].iter().map(|first| is_welcome(&running, first)).collect();
    assert!(held.iter().all(Option::is_some));
    for first in &unnamed {
        assert!(is_welcome(&running, first).is_none(), "one past limits.connections.per_address");
    }
    until(&running, |running| running.stats().total().connections_refused_by_address == 4);
    // What a proxy opens without a header has no limits, and clients that are named have their own.
    let others: Vec<_> = (0..4).map(|_| is_welcome(&running, b"")).collect();
    assert!(others.iter().all(Option::is_some));
    assert!(is_welcome(&running, &version_2([203, 0, 113, 5])).is_some());
    drop((held.pop(), others));
    until(&running, |running| running.stats().total().connections == 2);
    assert!(is_welcome(&running, &unnamed[3]).is_some());
}

#[test]
fn http_requests_for_which_a_proxy_names_no_client_share_the_limits_of_one_address() {
    let running = start(&[PROXY, ("limits.connections.per_address", "2")]);
    let upgrade = |first: &str, named: &str| {
        let mut socket = Client::connect(running.local_addr()).socket;
        let request = format!(
            "{first}GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{named}\r\n"
        );
        socket.write_all(request.as_bytes()).unwrap();
        let mut status = [0; 12];
        let came = socket.read_exact(&mut status).is_ok();
        (came && status == *b"HTTP/1.1 101").then_some(socket)
    };
    let unknown = "PROXY UNKNOWN\r\n";
    let _held = (upgrade(unknown, "").unwrap(), upgrade(unknown, "").unwrap());
    // By whichever means the client is not named.
    assert!(upgrade(unknown, "").is_none());
    assert!(upgrade("", "X-Forwarded-For: unknown\r\n").is_none());
    assert!(upgrade("", "").is_some(), "the proxy's own");
}

#[test]
fn a_proxy_header_comes_before_tls_and_http_in_whatever_pieces() {
    let running = start(&[PROXY, ("tls.self_signed", "true")]);
    let line = b"PROXY TCP6 2001:db8::1 ::1 1 2\r\n";
    let get = b"GET /nowhere HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    for header in [&line[..], &version_2([203, 0, 113, 5])] {
        let mut plain = Client::connect(running.local_addr()).socket;
        for byte in [header, get].concat() {
            plain.write_all(&[byte]).unwrap();
        }
        let mut answer = String::new();
        plain.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");

        let mut socket = Client::connect(running.local_addr()).socket;
        socket.write_all(header).unwrap();
        let config = trusting_node(&running);
        let mut tls = rustls::StreamOwned::new(tls_client(&config), socket);
        tls.write_all(get).unwrap();
        let mut answer = String::new();
        tls.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    }
}

#[test]
fn a_header_that_can_not_be_read_is_refused_and_so_is_one_from_others() {
    let line = b"PROXY TCP4 203.0.113.5 127.0.0.1 4711 7350\r\n";
    let running = start(&[PROXY]);
    for malformed in [&b"PROXY TCP4 203.0.113.5\r\n"[..], b"PROXY \xFF\r\n", &[b'x'; 20]] {
        assert!(is_welcome(&running, malformed).is_none());
    }
    until(&running, |running| running.stats().total().proxies_refused == 2);
    let stranger = start(&[]);
    for header in [&line[..], &version_2([203, 0, 113, 5])] {
        assert!(is_welcome(&stranger, header).is_none());
    }
    assert_eq!(stranger.stats().total().proxies_refused, 0);
}

#[test]
fn a_header_that_never_ends_has_the_time_of_a_hello() {
    let running = start(&[PROXY, ("timeouts.hello", "200ms")]);
    let mut slow = Client::connect(running.local_addr());
    slow.socket.write_all(b"PROXY TCP4 203").unwrap();
    assert_eq!(slow.rest().last(), Some(&Heard::Goodbye { code: ErrorCode::Timeout }));
}
