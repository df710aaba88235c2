//! The first request of a connection: who gets it, and what is refused before that.

use playfield_wire::Format;

use super::speech::{Heard, hello};
use super::world::{Client, World};

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
const UPGRADE: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Version: 13\r\n\r\n";

fn status(world: &mut World, client: Client) -> u16 {
    let text = String::from_utf8(world.raw(client)).unwrap();
    let status = text.strip_prefix("HTTP/1.1 ").and_then(|text| text.get(..3));
    status.and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{text:?}"))
}

#[test]
fn a_connection_is_handed_over_with_all_that_was_read_of_it() {
    for (request, behind) in [
        (&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], &b""[..]),
        (b"GET / HTTP/1.0\r\n\r\n", b""),
        (b"\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", b"GET / HTTP/1.1\r\nHo"),
        (b"POST /r HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n", b"abc"),
        (b"BREW", b""),
        (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", b""),
        // Without the option in `Connection`, and in HTTP/1.0, `Upgrade` means nothing.
        (b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n", b""),
        (b"GET / HTTP/1.0\r\nUpgrade: websocket\r\nConnection: Upgrade, keep-alive\r\n\r\n", b""),
    ] {
        let all = [request, behind].concat();
        let mut world = World::new(1, &[]);
        let client = world.connect(0);
        world.bytes(client, &all);
        if request == b"BREW" {
            assert!(world.handed_over(client).is_none(), "it is no request");
            continue;
        }
        assert_eq!(world.handed_over(client).unwrap(), all);
        // A byte at a time, it is handed over with its head.
        let client = world.connect(0);
        for byte in request {
            world.bytes(client, &[*byte]);
        }
        assert_eq!(world.handed_over(client).unwrap(), request);
        assert_eq!(world.counters(0).connections, 0);
    }
}

#[test]
fn a_head_that_two_readers_may_understand_differently_is_refused() {
    for (request, expected) in [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: x\nX: y\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: x\r\nX : a\r\n\r\n", 400),
        (
            "POST /r/1 HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\
             Transfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        ("GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", 426),
    ] {
        let mut world = World::new(1, &[]);
        let client = world.connect(0);
        // What follows is not answered.
        world.bytes(client, &[request.as_bytes(), GET].concat());
        let text = String::from_utf8(world.raw(client)).unwrap();
        assert!(text.starts_with(&format!("HTTP/1.1 {expected} ")), "{request:?}: {text:?}");
        assert!(text.contains("\r\nConnection: close"), "{text:?}");
        assert_eq!(text.matches("HTTP/1.1").count(), 1);
        assert!(world.is_over(client) && world.handed_over(client).is_none());
    }
}

#[test]
fn a_head_must_be_complete_in_time() {
    let mut world = World::new(1, &[("http.request_timeout", "1000ms")]);
    let client = world.connect(0);
    world.bytes(client, b"GET / HTTP/1.1\r\nX: ");
    // A byte now and then makes it no later.
    for _ in 0..9 {
        world.wait(100);
        world.bytes(client, b"y");
    }
    assert!(world.raw(client).is_empty());
    world.wait(200);
    assert_eq!(status(&mut world, client), 408);
    assert!(world.is_over(client));
}

#[test]
fn half_a_head_is_given_up_with_its_client() {
    for leaves in [World::vanish, World::reset] {
        let mut world = World::new(1, &[]);
        let client = world.connect(0);
        world.bytes(client, b"GET / HTTP/1.1\r\nHo");
        leaves(&mut world, client);
        assert_eq!(world.counters(0).connections, 0);
    }
}

#[test]
fn a_connection_that_is_handed_back_becomes_a_websocket() {
    let mut world = World::new(1, &[]);
    let client = world.connect(0);
    world.bytes(client, GET);
    let ping = b"\x89\x82\0\0\0\0hi";
    world.hand_back(client, 0, &[UPGRADE, ping].concat());
    let came = world.raw(client);
    let text = String::from_utf8_lossy(&came);
    assert!(text.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{text}");
    assert!(came.ends_with(b"\r\n\r\n\x8A\x02hi"), "{text}");

    let client = world.connect(0);
    world.bytes(client, GET);
    // The hello has its time from here on.
    world.wait(60_000);
    world.hand_back(client, 0, b"");
    world.upgrade(client, Format::Json);
    world.say(client, &hello(Format::Json));
    assert!(matches!(world.heard(client)[..], [Heard::Welcome { .. }]));
}
