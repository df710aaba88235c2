//! Seeds for the targets below the message layer: framing, WebSockets, handshakes and packets.
//! Their content is the messages of `conformance/vectors/protocol/`.

use std::fs;
use std::io;
use std::path::Path;

use playfield::packet::{Big, Little, PacketWriter, Prefix};
use playfield_fuzz::input::put_piece;
use playfield_fuzz::packets::right;
use playfield_websocket::handshake::{
    ClientHandshake, Head, HeadLimits, accept, parse_request, reject,
};
use playfield_websocket::{
    Deflate, Deflater, DeflaterOptions, Direction, Mask, Opcode, Role, encode, encode_close,
    encode_fragment,
};
use playfield_wire::framing::write_frame;
use serde_json::Value;

use crate::put;

pub fn all() -> io::Result<()> {
    let mut messages = Vec::new();
    for file in ["client.json", "server.json"] {
        messages.extend(vectors(file)?);
    }
    of_messages(&messages)?;
    of_framing(&messages)?;
    of_websocket(&messages)?;
    of_inflate(&messages)?;
    of_http()?;
    of_handshake()?;
    of_packets()
}

fn of_http() -> io::Result<()> {
    let requests = [
        "GET /a%20b?x=1&y=%0D%0A HTTP/1.1\r\nHost: x\r\n\r\n",
        "HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "POST /rooms/7/score HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n21.5",
        "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\
         2;a=b\r\nab\r\n1\r\nc\r\n0\r\nX-After: y\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n\r\n",
    ];
    for (number, request) in requests.iter().enumerate() {
        put("http", &format!("request-{number}"), &[b"\x07", request.as_bytes()].concat())?;
    }
    put("http", "pipeline", &[b"\x01", requests.concat().as_bytes()].concat())
}

/// A message in each format, in the order of `Format::ALL`.
type Message = [Vec<u8>; 3];

fn vectors(file: &str) -> io::Result<Vec<Message>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../conformance/vectors/protocol");
    let vectors: Value = serde_json::from_slice(&fs::read(folder.join(file))?)?;
    let messages = vectors["messages"].as_array().into_iter().flatten();
    Ok(messages
        .map(|message| {
            let bytes = |format| bytes(message[format].as_str().unwrap_or_default());
            playfield_wire::Format::ALL.map(|format| match format {
                playfield_wire::Format::Json => message["json"].to_string().into_bytes(),
                format => bytes(format.name()),
            })
        })
        .collect())
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs =
        (0..hex.len() / 2).map(|place| u8::from_str_radix(&hex[2 * place..2 * place + 2], 16));
    pairs.map_while(Result::ok).collect()
}

fn of_messages(messages: &[Message]) -> io::Result<()> {
    for (number, message) in messages.iter().enumerate() {
        for (format, bytes) in message.iter().enumerate() {
            put_stream("messages", &format!("vector-{number}-{format}"), &[format as u8], bytes)?;
        }
    }
    Ok(())
}

fn of_framing(messages: &[Message]) -> io::Result<()> {
    // A limit that all frames keep, and one that some exceed; whole, and split within headers.
    for (name, limit, cut) in [("whole", 255, 255), ("cut", 255, 2), ("too-long", 1, 6)] {
        let mut stream = Vec::new();
        messages.iter().flatten().for_each(|message| write_frame(&mut stream, message));
        stream.truncate(u16::MAX.into());
        put_stream("framing", name, &[limit, cut], &stream)?;
    }
    for (number, [packed, ..]) in messages.iter().enumerate() {
        let mut stream = Vec::new();
        write_frame(&mut stream, packed);
        put_stream("framing", &format!("vector-{number}"), &[255, 4], &stream)?;
    }
    Ok(())
}

/// The number of messages that a seed contains in targets where each one is expensive.
const FEW: usize = 4;

/// The largest window, in the settings of the targets with compression.
const WINDOW_15: u8 = 7 << 5;

fn direction(context_takeover: bool) -> Direction {
    Direction { context_takeover, ..Direction::default() }
}

fn of_websocket(messages: &[Message]) -> io::Result<()> {
    for (role, from) in [(Role::Server, Role::Client), (Role::Client, Role::Server)] {
        let mask = (role == Role::Server).then_some([0x37, 0xFA, 0x21, 0x3D]);
        let is_client = u8::from(role == Role::Client);
        for (number, few) in messages.chunks(FEW).enumerate() {
            // Split into single bytes, within headers, and rarely.
            let cut = [0, 6, 200][number % 3];
            let name = format!("plain-{is_client}-{number}");
            put_stream("websocket", &name, &[is_client, cut], &conversation(few, mask))?;
            put_stream("stream", &name, &[is_client, cut], &pieces(few, mask))?;
            for takeover in [false, true] {
                let direction = direction(takeover);
                let agreed = Deflate { server: direction, client: direction };
                let mut deflater = Deflater::new(from, &agreed, DeflaterOptions::default());
                let mut stream = Vec::new();
                for [packed, _, json] in few {
                    deflater.encode(&mut stream, Opcode::Text, json, mask);
                    deflater.encode(&mut stream, Opcode::Binary, packed, mask);
                }
                encode_close(&mut stream, 1000, "done", mask);
                let settings = is_client | 2 | u8::from(takeover) << 2 | WINDOW_15;
                let name = format!("deflate-{is_client}-{takeover}-{number}");
                put_stream("websocket", &name, &[settings, cut], &stream)?;
            }
        }
    }
    Ok(())
}

/// Messages in one frame and in fragments, with all kinds of control frames in between.
fn conversation(messages: &[Message], mask: Mask) -> Vec<u8> {
    let mut out = Vec::new();
    for [packed, msgpack, json] in messages {
        encode(&mut out, Opcode::Binary, packed, mask);
        encode(&mut out, Opcode::Text, json, mask);
        let (first, rest) = msgpack.split_at(msgpack.len() / 2);
        encode_fragment(&mut out, Opcode::Binary, false, first, mask);
        encode(&mut out, Opcode::Ping, first, mask);
        encode_fragment(&mut out, Opcode::Continuation, true, rest, mask);
        encode(&mut out, Opcode::Pong, b"", mask);
    }
    encode_close(&mut out, 1001, "going away", mask);
    out
}

/// A stream in binary messages, in one frame and in fragments, with pings and pongs in between.
fn pieces(messages: &[Message], mask: Mask) -> Vec<u8> {
    let mut out = Vec::new();
    for [packed, msgpack, _] in messages {
        encode(&mut out, Opcode::Binary, packed, mask);
        encode(&mut out, Opcode::Ping, b"life?", mask);
        let (first, rest) = msgpack.split_at(msgpack.len() / 2);
        encode_fragment(&mut out, Opcode::Binary, false, first, mask);
        encode(&mut out, Opcode::Pong, b"", mask);
        encode_fragment(&mut out, Opcode::Continuation, true, rest, mask);
    }
    encode_close(&mut out, 1000, "", mask);
    out
}

/// Writes the target's settings and a stream as one piece.
fn put_stream(target: &str, name: &str, settings: &[u8], stream: &[u8]) -> io::Result<()> {
    let mut file = settings.to_vec();
    put_piece(&mut file, stream);
    put(target, name, &file)
}

fn of_inflate(messages: &[Message]) -> io::Result<()> {
    for takeover in [false, true] {
        let direction = direction(takeover);
        let agreed = Deflate { server: direction, client: direction };
        let options = DeflaterOptions { level: 6, message_bytes_min: 1 };
        let settings = u8::from(takeover) | 6 << 2 | WINDOW_15;
        for (number, few) in messages.chunks(FEW).enumerate() {
            let mut deflater = Deflater::new(Role::Server, &agreed, options);
            let (mut plain, mut compressed) = (vec![settings], vec![settings]);
            for [_, _, json] in few {
                put_piece(&mut plain, json);
                let mut frame = Vec::new();
                deflater.encode(&mut frame, Opcode::Binary, json, None);
                // Skips the header of two or four bytes.
                let header_bytes = if frame[1] < 126 { 2 } else { 4 };
                put_piece(&mut compressed, &frame[header_bytes..]);
            }
            put("inflate", &format!("plain-{takeover}-{number}"), &plain)?;
            put("inflate", &format!("compressed-{takeover}-{number}"), &compressed)?;
        }
    }
    Ok(())
}

fn of_handshake() -> io::Result<()> {
    // The same request as the target's client sends.
    let client = || ClientHandshake::new("here", "/", [7; 16], &[], &["chat"]);
    let limits = HeadLimits::default();
    let preferred = [
        None,
        Some(Deflate::default()),
        Some(Deflate { server: direction(true), client: direction(true) }),
    ];
    for (number, preferred) in preferred.into_iter().enumerate() {
        let Ok(mut handshake) = client() else { continue };
        if let Some(preferred) = preferred {
            handshake = handshake.with_deflate(preferred);
        }
        put("handshake", &format!("request-{number}"), handshake.request())?;
        let Ok(Head::Complete(request)) = parse_request(handshake.request(), &limits) else {
            continue;
        };
        let Some(upgrade) = &request.upgrade else { continue };
        let agreed = upgrade.deflate(&Deflate::default());
        for subprotocol in [None, Some("chat")] {
            let mut response = Vec::new();
            if accept(&mut response, upgrade, subprotocol, agreed.as_ref()).is_ok() {
                put(
                    "handshake",
                    &format!("response-{number}-{}", subprotocol.is_some()),
                    &response,
                )?;
            }
        }
    }
    let mut refusal = Vec::new();
    reject(&mut refusal, 426, "this is a WebSocket server");
    put("handshake", "rejection", &refusal)?;
    put("handshake", "page", b"GET /page HTTP/1.1\r\nHost: here\r\nOrigin: http://here\r\n\r\n")
}

fn of_packets() -> io::Result<()> {
    for (order, packets) in [("little", right::<Little>()), ("big", right::<Big>())] {
        for (number, packet) in packets.iter().enumerate() {
            put("packets", &format!("{order}-{number}"), packet)?;
        }
    }
    // The value kinds that the target reads, each followed by such a value.
    let mut out = Vec::new();
    let mut packet = PacketWriter::<Little>::new(&mut out);
    packet.u8(0);
    let _ = packet.text(Prefix::U16, "text");
    packet.u8(1);
    let _ = packet.bytes(Prefix::Varint, &[1; 130]);
    packet.u8(8);
    let _ = packet.padded("padded", 8);
    packet.u8(3);
    packet.varint(u64::MAX);
    packet.u8(4);
    packet.zigzag(i64::MIN);
    packet.u8(5);
    packet.raw(b"bytes");
    put("packets", "kinds", &out)
}
