//! The bytes that attackers send, whatever the node answers.

use std::io;

use playfield_websocket::handshake::ClientHandshake;
use playfield_websocket::{Deflate, Deflater, DeflaterOptions, Opcode, Role};
use playfield_wire::client::{self, ClientMessage, Hello};
use playfield_wire::framing::{PREAMBLE, write_frame_with};
use playfield_wire::message::MessageRef;
use playfield_wire::{Format, RequestNumber, RoomNumber};

use super::attack::Attack;
use super::server::Places;
use crate::harness::tls;

/// The bytes that a connection sends at once.
const BATCH_BYTES: usize = 64 << 10;
/// The length of the longest messages: the node's default limit.
const LONGEST_BYTES: usize = 1 << 20;
/// The number of times that the id of a device is registered: less than the node allows in a burst.
const TAKE_OVERS: usize = 40;
/// The number that the first room of a session has.
const FIRST_ROOM: RoomNumber = RoomNumber(1);

/// The bytes that each attacker sends: the opening once, then the batch in a loop.
pub(super) struct Script {
    pub(super) opening: Vec<u8>,
    pub(super) batch: Vec<u8>,
    /// Whether it disconnects once the opening is sent.
    pub(super) goes: bool,
}

impl Script {
    pub(super) fn of(attack: Attack, places: &Places) -> io::Result<Self> {
        let mut script = Self { opening: Vec::new(), batch: Vec::new(), goes: false };
        if attack == Attack::Handshakes {
            script.opening = tls::hello()?;
            return Ok(script);
        }
        if attack == Attack::Bombs {
            return bombs();
        }
        if attack == Attack::ConsolePolls {
            script.batch = polls(places);
            return Ok(script);
        }
        let is_json = matches!(attack, Attack::Json | Attack::JsonPairs);
        let format = if is_json { Format::Json } else { Format::Packed };
        let mut hello = Hello::new(format);
        if attack == Attack::Refused {
            hello.protocol += 1;
        }
        script.opening.extend_from_slice(&PREAMBLE);
        frame(&mut script.opening, format, &ClientMessage::Hello(hello));
        script.goes = attack == Attack::Hellos;
        // The first room that a session joins says on which shard its connection is.
        let rooms = match attack {
            Attack::Resyncs | Attack::Replies => vec![&places.fat[0]],
            Attack::ResyncsAcross => vec![&places.other, &places.fat[0]],
            _ => Vec::new(),
        };
        for (number, room) in (1..).zip(&rooms) {
            let join = ClientMessage::Join(client::Join {
                request: RequestNumber(number),
                room: (*room).into(),
            });
            frame(&mut script.opening, format, &join);
        }
        let fat = RoomNumber(rooms.len() as u32);
        if is_json {
            frame(&mut script.batch, format, &longest(format, attack == Attack::JsonPairs));
            return Ok(script);
        }
        let filter: Vec<_> = (0..8)
            .map(|n| (format!("key{n}").into(), "a value of the usual length".into()))
            .collect();
        let mut number = 100;
        while script.batch.len() < BATCH_BYTES {
            number += 1;
            let request = RequestNumber(number);
            let list = |filter| {
                ClientMessage::List(client::List { request, room_type: None, filter, limit: 0 })
            };
            let message = match attack {
                Attack::Pings => ClientMessage::Ping(client::Ping { nonce: 1 }),
                Attack::Lists => list(Vec::new()),
                Attack::Filters => list(filter.clone()),
                Attack::Resyncs | Attack::ResyncsAcross => {
                    ClientMessage::Resync(client::Resync { room: fat })
                }
                Attack::Replies => ClientMessage::Request(client::Request {
                    room: FIRST_ROOM,
                    request,
                    message: MessageRef::Index(0),
                    payload: b"\0",
                }),
                Attack::Rooms => ClientMessage::Create(client::Create {
                    request,
                    room_type: "made".into(),
                    private: false,
                    code: false,
                    key: None,
                    options: &[],
                }),
                _ => break,
            };
            frame(&mut script.batch, format, &message);
        }
        Ok(script)
    }
}

/// A list with a filter so long that the message has the maximal length: one pair with a long
/// value, or as many short pairs as go in.
fn longest(format: Format, is_pairs: bool) -> ClientMessage<'static> {
    let list = |filter| {
        ClientMessage::List(client::List {
            request: RequestNumber(1),
            room_type: None,
            filter,
            limit: 0,
        })
    };
    let length = |message: &ClientMessage<'_>| {
        let mut bytes = Vec::new();
        message.encode(format, &mut bytes);
        bytes.len()
    };
    let one = |pad: usize| list(vec![("key1".into(), "x".repeat(pad).into())]);
    if !is_pairs {
        let others = length(&one(LONGEST_BYTES)) - LONGEST_BYTES;
        return one(LONGEST_BYTES - others);
    }
    let pair = |number: usize| (format!("k{number:05}").into(), "v".into());
    let each = (length(&list((0..1000).map(pair).collect())) - length(&list(Vec::new()))) / 1000;
    let count = (LONGEST_BYTES - length(&list(Vec::new()))) / (each + 1);
    list((0..count).map(pair).collect())
}

/// Returns the requests that the console's page sends for a while.
fn polls(places: &Places) -> Vec<u8> {
    let states = places.fat.iter().map(|room| format!("rooms/{room}?messages"));
    let lists = ["node".to_owned(), "rooms?order=slowest&limit=500".to_owned()];
    let paths = lists.into_iter().chain(states);
    let request = |path: String| format!("GET /api/{path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    paths.map(request).collect::<String>().into_bytes()
}

/// Appends the registration of an attacker's device. The attacker's connections take over its id
/// from each other, and it takes another id before there were too many.
pub(super) fn register(out: &mut Vec<u8>, number: usize, connections: usize) {
    let message = ClientMessage::Register(client::Register {
        request: RequestNumber(1),
        device: format!("device {number} {}", connections / TAKE_OVERS).into(),
        metadata: Vec::new(),
        tags: Vec::new(),
    });
    frame(out, Format::Packed, &message);
}

/// Over WebSocket: messages of maximal length that compress to almost nothing.
fn bombs() -> io::Result<Script> {
    let request = ClientHandshake::new("localhost", "/", [7; 16], &[], &[])
        .map_err(io::Error::other)?
        .with_deflate(Deflate::default());
    let mut opening = request.request().to_vec();
    let mask = Some([1, 2, 3, 4]);
    playfield_websocket::encode_with(&mut opening, Opcode::Binary, mask, |out| {
        ClientMessage::Hello(Hello::new(Format::Packed)).encode(Format::Packed, out);
    });
    let options = DeflaterOptions { level: 9, ..DeflaterOptions::default() };
    let mut deflater = Deflater::new(Role::Client, &Deflate::default(), options);
    let mut bomb = Vec::new();
    longest(Format::Packed, false).encode(Format::Packed, &mut bomb);
    let mut batch = Vec::new();
    while batch.len() < BATCH_BYTES {
        deflater.encode(&mut batch, Opcode::Binary, &bomb, mask);
    }
    Ok(Script { opening, batch, goes: false })
}

/// Appends a message in native framing.
pub(super) fn frame(out: &mut Vec<u8>, format: Format, message: &ClientMessage<'_>) {
    write_frame_with(out, |out| message.encode(format, out));
}

#[cfg(test)]
mod tests {
    use playfield_wire::Format;
    use playfield_wire::client::ClientMessage;

    use super::{LONGEST_BYTES, bombs, longest};

    #[test]
    fn long_messages_reach_the_limit_and_do_not_exceed_it() {
        for (format, is_pairs) in
            [(Format::Packed, false), (Format::Json, false), (Format::Json, true)]
        {
            let mut bytes = Vec::new();
            longest(format, is_pairs).encode(format, &mut bytes);
            assert!(bytes.len() <= LONGEST_BYTES && bytes.len() > LONGEST_BYTES * 9 / 10);
            assert!(is_pairs || bytes.len() == LONGEST_BYTES);
            let read = ClientMessage::decode(format, &bytes).expect("a list");
            assert!(matches!(read, ClientMessage::List(_)));
        }
    }

    #[test]
    fn bombs_have_the_maximal_ratio() {
        // About 60 in 64 KiB: each is a thousandth of what it becomes.
        let batch = bombs().expect("a script").batch;
        assert!(batch.len() < (64 << 10) + LONGEST_BYTES / 900, "{}", batch.len());
    }
}
