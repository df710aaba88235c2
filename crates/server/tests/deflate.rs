//! Compressed messages over real sockets.

use crate::common;

use std::io::Write;
use std::net::SocketAddr;

use common::speech::{encoded, request};
use common::{Client, Heard, start};
use playfield_server::Running;
use playfield_websocket::{Deflater, DeflaterOptions, Opcode, Role, encode_fragment};
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber};

const MASK: [u8; 4] = [1, 2, 3, 4];

/// The first bit for extensions, in a frame's first byte.
const RSV1: u8 = 0x40;

const ON: (&str, &str) = ("websocket.deflate", "true");

/// Enters a room with much in it: what came of it, and how many bytes the connection took for it.
fn snapshot(mut client: Client) -> (String, usize) {
    let before = client.came;
    client.join_or_create(RequestNumber(1), "ballast=20000");
    let body = client.until(|heard| match heard {
        Heard::Snapshot { body, .. } => Some(body.clone()),
        _ => None,
    });
    (body, client.came - before)
}

/// The message as one compressed frame of a client.
fn compressed(client: &Client, body: &[u8]) -> Vec<u8> {
    let options = DeflaterOptions { message_bytes_min: 1, ..DeflaterOptions::default() };
    let opcode = if client.format.is_text() { Opcode::Text } else { Opcode::Binary };
    let mut out = Vec::new();
    Deflater::new(Role::Client, &client.deflate.unwrap(), options).encode(
        &mut out,
        opcode,
        body,
        Some(MASK),
    );
    assert!(out[0] & RSV1 != 0, "it compresses");
    out
}

/// The frame in fragments, the first of which says that it is compressed.
fn fragments(frame: &[u8], piece_bytes: usize) -> Vec<u8> {
    let header_bytes = match frame[1] & 0x7F {
        126 => 8,
        127 => 14,
        _ => 6,
    };
    let payload: Vec<u8> = frame[header_bytes..]
        .iter()
        .zip(MASK.iter().cycle())
        .map(|(byte, mask)| byte ^ mask)
        .collect();
    let pieces: Vec<&[u8]> = payload.chunks(piece_bytes).collect();
    let mut out = Vec::new();
    for (place, piece) in pieces.iter().enumerate() {
        let start = out.len();
        let opcode = if place == 0 { Opcode::Binary } else { Opcode::Continuation };
        encode_fragment(&mut out, opcode, place + 1 == pieces.len(), piece, Some(MASK));
        out[start] |= if place == 0 { RSV1 } else { 0 };
    }
    out
}

/// The client is told this, and the connection ends with this code.
fn assert_ends(mut client: Client, code: ErrorCode, close_code: u16) {
    let heard = client.rest();
    assert_eq!(heard, [Heard::Error { request: None, room: None, code }, Heard::Goodbye { code }]);
    assert_eq!(client.close_code, Some(close_code));
}

/// The node goes on for everyone else.
fn assert_lives(running: &Running) {
    let mut client = Client::deflating(running.local_addr(), Format::Packed);
    client.say(&encoded(Format::Packed, &ClientMessage::Ping(client::Ping { nonce: 7 })));
    assert_eq!(client.next(), Heard::Pong { nonce: 7 });
}

#[test]
fn what_is_long_comes_compressed_where_both_ends_want_it() {
    let on = start(&[ON]);
    let off = start(&[]);
    let plain = |address: SocketAddr, format| Client::websocket(address, format);
    for format in [Format::Json, Format::Msgpack, Format::Packed] {
        let (expected, bytes) = snapshot(plain(off.local_addr(), format));
        assert!(expected.len() > 20_000 && bytes > 20_000, "{format}");

        let client = Client::deflating(on.local_addr(), format);
        assert!(client.deflate.is_some());
        let (body, bytes) = snapshot(client);
        assert!(body == expected && bytes < 1_000, "{format}: {bytes} bytes");

        let client = Client::deflating(off.local_addr(), format);
        assert_eq!(client.deflate, None, "the node does not want it");
        let (body, bytes) = snapshot(client);
        assert!(body == expected && bytes > 20_000, "{format}");

        let (body, bytes) = snapshot(plain(on.local_addr(), format));
        assert!(body == expected && bytes > 20_000, "{format}: the client does not offer it");
    }
    let (_, bytes) = snapshot(Client::native(on.local_addr()));
    assert!(bytes > 20_000, "native framing knows nothing of it");
}

#[test]
fn websocket_deflate_bytes_min() {
    for (least, is_compressed) in [("1000", true), ("1100", false)] {
        let running = start(&[ON, ("tuning.deflate_bytes_min", least)]);
        let mut client = Client::deflating(running.local_addr(), Format::Packed);
        client.join_or_create(RequestNumber(1), "");
        let (room, _) = client.until_joined(RequestNumber(1)).unwrap();
        let before = client.came;
        client.request(room, RequestNumber(2), "big", "1050");
        assert_eq!(client.until_reply(RequestNumber(2)).len(), 1050);
        let bytes = client.came - before;
        assert_eq!(bytes < 1000, is_compressed, "{bytes} bytes");
    }
}

#[test]
fn compressed_messages_of_clients_are_read_whole_or_in_fragments() {
    let running = start(&[ON]);
    let mut listener = Client::deflating(running.local_addr(), Format::Packed);
    listener.join_or_create(RequestNumber(1), "");
    let (_, id) = listener.until_joined(RequestNumber(1)).unwrap();
    for piece_bytes in [1, 7, usize::MAX] {
        let mut client = Client::deflating(running.local_addr(), Format::Packed);
        client.join(RequestNumber(1), &id);
        let (room, _) = client.until_joined(RequestNumber(1)).unwrap();
        let text = format!("{piece_bytes} {}", "hear, hear! ".repeat(1000));
        let frame =
            compressed(&client, &request(Format::Packed, room, RequestNumber(2), "shout", &text));
        let bytes = if piece_bytes == usize::MAX { frame } else { fragments(&frame, piece_bytes) };
        assert!(bytes.len() < text.len());
        client.socket.write_all(&bytes).unwrap();
        for ears in [&mut client, &mut listener] {
            ears.until(|heard| {
                matches!(heard, Heard::Event { payload, .. } if *payload == text).then_some(())
            });
        }
    }
}

#[test]
fn a_bomb_is_too_large_and_disturbs_nobody() {
    let running = start(&[ON, ("limits.message_bytes", "100000"), ("shards", "1")]);
    for in_fragments in [false, true] {
        let mut client = Client::deflating(running.local_addr(), Format::Packed);
        let bomb = compressed(&client, &vec![0; 4 << 20]);
        let bytes = if in_fragments { fragments(&bomb, 100) } else { bomb };
        assert!(bytes.len() < 100_000);
        // It may end the connection before all of it is sent.
        let _ = client.socket.write_all(&bytes);
        assert_ends(client, ErrorCode::TooLarge, 1009);
        assert_lives(&running);
    }
    let mut client = Client::deflating(running.local_addr(), Format::Packed);
    let frame = compressed(&client, &[0; 100_001]);
    client.socket.write_all(&frame).unwrap();
    assert_ends(client, ErrorCode::TooLarge, 1009);
}

#[test]
fn what_is_not_compressed_as_it_says_ends_the_connection_and_disturbs_nobody() {
    let running = start(&[ON, ("shards", "1")]);
    let garbage = [0xC2, 0x81, 0, 0, 0, 0, 0xFF];
    let mut client = Client::deflating(running.local_addr(), Format::Packed);
    client.socket.write_all(&garbage).unwrap();
    assert_ends(client, ErrorCode::BadMessage, 1007);

    let mut client = Client::deflating(running.local_addr(), Format::Packed);
    let mut cut = compressed(&client, &[7; 5000]);
    // One byte less than there were: it ends in the midst of a block.
    cut[1] -= 1;
    cut.pop();
    client.socket.write_all(&cut).unwrap();
    assert_ends(client, ErrorCode::BadMessage, 1007);

    let mut client = Client::websocket(running.local_addr(), Format::Packed);
    client.socket.write_all(&garbage).unwrap();
    assert_ends(client, ErrorCode::BadMessage, 1002);
    assert_lives(&running);
}
