//! A shard that handles messages and sends them back, without sockets: `scripts/counts` counts the
//! instructions of `measured` with callgrind.
//!
//! Run with a case, and the number of messages to be counted:
//! `cargo run -p playfield-server --example echo_counts -- service 10000`.

use std::env;
use std::error::Error;
use std::hint::black_box;
use std::net::SocketAddr;

use playfield_room::{Context, Handle, Message, Player, Room, RoomType, room};
use playfield_server::Config;
use playfield_server::service::{Frame, NativeFrames, Peer, Result, Service};
use playfield_server::testing::{BareConnection, BareShard};
use playfield_state::{Bytes, State};
use playfield_wire::client::{self, ClientMessage, Hello};
use playfield_wire::framing::{PREAMBLE, write_frame_with};
use playfield_wire::message::MessageRef;
use playfield_wire::{Format, RequestNumber, RoomNumber};

/// The format of all messages.
const FORMAT: Format = Format::Packed;
/// The number of messages in one read.
const WINDOW: usize = 50;
/// The data of a message.
const PAYLOAD: [u8; 8] = *b"8 bytes!";
/// The number of a request, encoded: the greatest one, which takes ten bytes.
const NUMBER: [u8; 10] = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1];

struct Echo;

impl Service for Echo {
    type Connection = ();
    type Codec = NativeFrames;

    fn codec(&self) -> NativeFrames {
        NativeFrames::new()
    }

    fn connected(&mut self, _: SocketAddr, _: &mut Peer<Self>) {}

    #[inline]
    fn received(&mut self, _: &mut (), frame: Frame<'_>, peer: &mut Peer<Self>) -> Result {
        Ok(peer.reply(frame.body)?)
    }
}

#[derive(Message)]
struct Say {
    data: Bytes,
}

#[derive(Message)]
#[reply(u64)]
struct Ask {
    number: u64,
}

#[derive(Message)]
struct Said {
    data: Bytes,
}

#[derive(State, Default)]
struct Hall {
    nothing: u8,
}

#[room(messages(Say, Ask), events(Said))]
impl Room for Hall {}

impl Handle<Say> for Hall {
    fn handle(
        &mut self,
        say: Say,
        player: &Player,
        cx: &mut Context<Self>,
    ) -> playfield_room::Result<()> {
        cx.emit_to(player.id(), &Said { data: say.data });
        Ok(())
    }
}

impl Handle<Ask> for Hall {
    fn handle(
        &mut self,
        ask: Ask,
        _: &Player,
        _: &mut Context<Self>,
    ) -> playfield_room::Result<u64> {
        Ok(ask.number)
    }
}

fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [case, count] = &arguments[..] else {
        return Err("use: echo_counts service|send|request MESSAGES".into());
    };
    let turns = count.parse::<usize>()? / WINDOW;
    let mut config = Config::default();
    for name in ["limits.session.messages.per_second", "limits.session.bytes.per_second"] {
        config.set(name, "0")?;
    }
    let mut shard = BareShard::new(config, vec![RoomType::of::<Hall>("hall")], Echo);
    let (connection, window) = if case == "service" {
        let connection = shard.connect_to_service().ok_or("no connection")?;
        let frame = [&(PAYLOAD.len() as u32).to_le_bytes()[..], &PAYLOAD].concat();
        (connection, frame.repeat(WINDOW))
    } else {
        let connection = shard.connect().ok_or("no connection")?;
        (connection, enter(&mut shard, connection, case)?)
    };
    let mut out = Vec::new();
    // Buffers have their sizes then.
    run(&mut shard, connection, &window, 10, &mut out);
    out.clear();
    measured(&mut shard, connection, &window, turns, &mut out);
    let data: &[u8] = if case == "request" { &NUMBER } else { &PAYLOAD };
    let answered = out.windows(data.len()).filter(|bytes| *bytes == data).count();
    if answered != turns * WINDOW {
        return Err(format!("{answered} of {} messages came back", turns * WINDOW).into());
    }
    Ok(())
}

/// Enters a room. Returns the messages of a window.
fn enter(
    shard: &mut BareShard,
    connection: BareConnection,
    case: &str,
) -> Result<Vec<u8>, Box<dyn Error + Send + Sync>> {
    let hello = Hello { resumable: false, ..Hello::new(FORMAT) };
    let join = ClientMessage::JoinOrCreate(client::JoinOrCreate {
        request: RequestNumber(1),
        room_type: "hall".into(),
        key: None,
        options: &[],
    });
    let mut opening = PREAMBLE.to_vec();
    for message in [ClientMessage::Hello(hello), join] {
        write_frame_with(&mut opening, |out| message.encode(FORMAT, out));
    }
    let mut out = Vec::new();
    run(shard, connection, &opening, 1, &mut out);
    // The first sync brings the snapshot.
    run(shard, connection, &[], 2_000, &mut out);
    let room = RoomNumber(1);
    let mut window = Vec::new();
    let field = [&[PAYLOAD.len() as u8][..], &PAYLOAD].concat();
    for number in 0..WINDOW {
        let message = match case {
            "send" => ClientMessage::Send(client::Send {
                room,
                message: MessageRef::Index(0),
                payload: &field,
            }),
            "request" => ClientMessage::Request(client::Request {
                room,
                request: RequestNumber(1 + number as u32),
                message: MessageRef::Index(1),
                payload: &NUMBER,
            }),
            other => return Err(format!("unknown case {other:?}").into()),
        };
        write_frame_with(&mut window, |out| message.encode(FORMAT, out));
    }
    Ok(window)
}

/// Handles the window this many times.
fn run(
    shard: &mut BareShard,
    connection: BareConnection,
    window: &[u8],
    turns: usize,
    out: &mut Vec<u8>,
) {
    let mut input = Vec::with_capacity(window.len());
    for _ in 0..turns {
        input.clear();
        input.extend_from_slice(window);
        shard.turn(connection, black_box(&mut input), out);
    }
}

/// The code that is counted.
#[inline(never)]
fn measured(
    shard: &mut BareShard,
    connection: BareConnection,
    window: &[u8],
    turns: usize,
    out: &mut Vec<u8>,
) {
    run(shard, connection, window, turns, out);
}
