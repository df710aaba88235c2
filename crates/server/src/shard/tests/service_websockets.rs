//! Services by WebSocket.

use playfield_websocket::{Decoder, Item, Limits, Opcode, Role, encode, encode_close};
use playfield_wire::Format;

use super::services::{frame, frames, taken, world};
use super::world::{Client, World};

const MASK: [u8; 4] = [1, 2, 3, 4];

fn request(headers: &str) -> Vec<u8> {
    format!(
        "GET /service?a=b HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n{headers}\r\n"
    )
    .into_bytes()
}

fn message(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out, Opcode::Binary, payload, Some(MASK));
    out
}

fn close(code: u16) -> Vec<u8> {
    let mut out = Vec::new();
    encode_close(&mut out, code, "", Some(MASK));
    out
}

/// A client of the service.
fn connect(world: &mut World) -> Client {
    let client = world.connect(0);
    world.bytes(client, &request(""));
    assert_eq!(heard(world, client), [""; 0]);
    client
}

/// The frames that a client got since the last call: each frame of the service, which has to be one
/// message, and control frames.
fn heard(world: &mut World, client: Client) -> Vec<String> {
    let mut bytes = world.raw(client);
    let mut at = 0;
    if bytes.starts_with(b"HTTP/1.1 101 ") {
        at = bytes.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
    }
    let mut decoder = Decoder::new(Role::Client, Limits::default());
    let mut all = Vec::new();
    loop {
        let decoded = decoder.decode(&mut bytes[at..]).unwrap();
        match decoded.item {
            None => break,
            Some(Item::Binary(payload)) => {
                let body = String::from_utf8_lossy(payload.get(2..).unwrap_or(payload));
                let is_whole = frame(&body) == payload;
                all.push(if is_whole { body.into_owned() } else { format!("{payload:?}") });
            }
            Some(Item::Close(close)) => all.push(match close {
                Some(close) => format!("close {} {}", close.code, close.reason),
                None => "close".to_owned(),
            }),
            Some(other) => all.push(format!("{other:?}")),
        }
        at += decoded.consumed;
    }
    assert_eq!(at, bytes.len(), "whole messages came");
    all
}

#[test]
fn messages_are_pieces_of_the_stream_wherever_they_and_the_input_are_cut() {
    let said = frames(&["echo one", "echo ", "count", "with two", "big 200", "raw \x01", "count"]);
    let long = "x".repeat(200);
    let expected = ["one", "", "3", "two", &long, "[1]", "7"];
    for piece in [1, 2, 7, said.len()] {
        let wire: Vec<u8> = said.chunks(piece).flat_map(message).collect();
        let wire = [request(""), wire].concat();
        for cut in 0..=wire.len() {
            let (mut world, _) = world(&[]);
            let client = world.connect(0);
            world.bytes(client, &wire[..cut]);
            world.bytes(client, &wire[cut..]);
            assert_eq!(heard(&mut world, client), expected, "pieces of {piece}, cut at {cut}");
            assert_eq!(world.buffered(client), 0, "an idle connection owns no buffer");
        }
    }
}

#[test]
fn clients_by_both_ways_are_connections_of_one_service_and_sessions_have_other_paths() {
    let (mut world, _) = world(&[]);
    let (plain, socket) = (world.connect_to(0, 0), connect(&mut world));
    world.bytes(plain, &frame("all to the other"));
    assert_eq!(heard(&mut world, socket), ["to the other"]);
    world.bytes(socket, &message(&frame("all back")));
    assert_eq!(super::services::heard(&mut world, plain), ["back"]);
    world.websocket_client(0, Format::Json);
}

#[test]
fn what_a_client_sends_behind_its_request_belongs_to_the_service_on_a_kept_connection_too() {
    let (mut world, _) = world(&[]);
    let client = world.connect(0);
    world.bytes(client, b"GET /r/1 HTTP/1.1\r\nHost: x\r\n\r\n");
    world.hand_back(client, 0, &[request(""), message(&frame("echo on"))].concat());
    let answered = world.raw(client);
    let at = answered.windows(5).position(|found| found == b"\r\n\r\n\x82").unwrap() + 4;
    assert_eq!(answered[at..], [&[0x82, 4][..], &frame("on")].concat());
}

#[test]
fn the_limits_of_a_service_hold() {
    let (mut world, log) = world(&[("limits.message_bytes", "64")]);
    let client = connect(&mut world);
    // A message may be longer: it is not a frame.
    let fits = frame(&format!("echo {}", "x".repeat(59)));
    world.bytes(client, &message(&fits.repeat(3)));
    assert_eq!(heard(&mut world, client), ["x".repeat(59), "x".repeat(59), "x".repeat(59)]);
    world.bytes(client, &message(&[&frame("echo last")[..], &[0, 65]].concat()));
    let text = "a frame announced 65 bytes, the limit is 64";
    assert_eq!(heard(&mut world, client), ["last".to_owned(), format!("close 1009 {text}")]);
    assert_eq!(taken(&log), [format!("closed: {text}")]);
    assert!(!world.is_over(client), "its Close is awaited");
    world.bytes(client, &[message(b"more"), close(1009)].concat());
    assert!(world.is_over(client));
}

#[test]
fn text_and_broken_frames_close_the_connection_after_what_came_before() {
    let mut text = Vec::new();
    encode(&mut text, Opcode::Text, b"text", Some(MASK));
    for (bytes, code) in [(text, 1003), (b"\x82\x01x".to_vec(), 1002), (b"\xC2".to_vec(), 1002)] {
        let (mut world, log) = world(&[]);
        let client = connect(&mut world);
        world.bytes(client, &[message(&frame("echo on")), bytes].concat());
        let all = heard(&mut world, client);
        assert!(all[0] == "on" && all[1].starts_with(&format!("close {code} ")), "{all:?}");
        assert!(world.is_over(client), "where its Close would be is unknown");
        assert!(taken(&log)[0].starts_with("closed: "));
    }
}

#[test]
fn a_close_ends_the_connection_once_all_before_it_is_handled() {
    let (mut world, log) = world(&[("limits.session.outbox_bytes.high", "5000")]);
    let client = connect(&mut world);
    world.takes(client, 0);
    let said: Vec<u8> = (0..20).flat_map(|_| message(&frame("big 998"))).collect();
    world.bytes(client, &[said, close(3000), message(&frame("echo late"))].concat());
    assert_eq!(taken(&log), [""; 0], "the rest is not handled yet");
    world.takes(client, usize::MAX);
    let all = heard(&mut world, client);
    assert_eq!((all.len(), &*all[20]), (21, "close 3000 "));
    assert!(world.is_over(client));
    assert_eq!(taken(&log), ["closed: the client closed the connection, or it broke"]);
    // A frame that has no end is not waited for, and a Close without a code is answered so.
    let client = connect(&mut world);
    let bare = [0x88, 0x80, 1, 2, 3, 4];
    world.bytes(client, &[message(&frame("echo a")), message(b"\0"), bare.to_vec()].concat());
    assert_eq!(heard(&mut world, client), ["a", "close"]);
    assert!(world.is_over(client));
}

#[test]
fn a_client_hears_why_the_service_has_closed_it() {
    for (word, expected) in [
        ("bye now", vec!["now", "close 1000 "]),
        ("what", vec!["close 1008 "]),
        ("panic", vec!["close 1011 "]),
        ("big 65536", vec!["close 1008 "]),
    ] {
        let (mut world, _) = world(&[]);
        let client = connect(&mut world);
        world.bytes(client, &message(&frame(word)));
        assert_eq!(heard(&mut world, client), expected);
        assert!(!world.is_over(client), "its Close is awaited");
        world.bytes(client, &close(1000));
        assert!(world.is_over(client));
    }
    let (mut world, _) = world(&[]);
    let client = connect(&mut world);
    world.shut_down();
    assert!(heard(&mut world, client)[0].starts_with("close 1001 "));
}

#[test]
fn pings_are_answered_and_a_pong_is_a_sign_of_life() {
    let (mut world, log) = world(&[("timeouts.heartbeat", "1000ms")]);
    let client = connect(&mut world);
    let mut ping = Vec::new();
    encode(&mut ping, Opcode::Ping, b"there?", Some(MASK));
    world.bytes(client, &ping);
    assert_eq!(heard(&mut world, client), [r"Pong([116, 104, 101, 114, 101, 63])"]);
    let mut pong = Vec::new();
    encode(&mut pong, Opcode::Pong, b"", Some(MASK));
    for _ in 0..5 {
        world.wait(600);
        assert_eq!(heard(&mut world, client), ["Ping([])", "alive?"], "as by the service");
        world.bytes(client, &pong);
    }
    world.wait(600);
    world.wait(1_500);
    assert_eq!(
        taken(&log),
        ["closed: timeouts.heartbeat: nothing was received for twice that time"]
    );
}

#[test]
fn a_header_that_does_not_end_is_not_waited_for() {
    let (mut world, log) = world(&[("timeouts.message", "1000ms")]);
    let client = connect(&mut world);
    world.bytes(client, &[0x82]);
    world.wait(1_100);
    assert_eq!(taken(&log), ["closed: timeouts.message: a frame was not complete in time"]);
    assert!(heard(&mut world, client)[0].starts_with("close 1008 timeouts.message"));
}

#[test]
fn pages_of_other_origins_are_refused() {
    let (mut world, log) = world(&[("websocket.allowed_origins", "https://good.example")]);
    for (origin, is_allowed) in [("https://good.example", true), ("https://bad.example", false)] {
        let client = world.connect(0);
        world.bytes(client, &request(&format!("Origin: {origin}\r\n")));
        world.bytes(client, &message(&frame("echo a")));
        assert_eq!(world.raw(client).starts_with(b"HTTP/1.1 101"), is_allowed);
    }
    assert_eq!(taken(&log), [""; 0]);
}
