//! The server process: a service, rooms, or the baseline, which sends frames back.

use std::io;
use std::net::SocketAddr;

use playfield_derive::State;
use playfield_room::{Context, Handle, Message, Player, Room, RoomType, Settings, room};
use playfield_server::Server as Node;
use playfield_server::service::{self, NativeFrames, Peer, Service};
use playfield_state::Bytes;

use super::{Class, Options, PREFIX_BYTES, Rooms, Transport};
use crate::harness::Side;
use crate::harness::bare::{self, Answer};
use crate::harness::dialogue::upgraded;
use crate::harness::process::{Role, Server, Words, node_for, serve};

pub(crate) const ROLE: Role = Role { name: "echo", log: "error", serve: host };

/// The path of the service of class A by WebSocket.
pub(super) const PATH: &str = "/echo";
/// The number of players in a shared room.
const SHARED: u32 = 100;

pub(super) fn start(options: &Options, side: Side) -> io::Result<Server> {
    let Options { class, connections, window, transport, rooms, .. } = options;
    ROLE.start(&[&side, class, connections, window, transport, rooms])
}

fn host(words: &mut Words) -> io::Result<()> {
    let (side, class): (Side, Class) = (words.next()?, words.next()?);
    let (connections, window): (usize, usize) = (words.next()?, words.next()?);
    let (transport, rooms): (Transport, Rooms) = (words.next()?, words.next()?);
    let is_websocket = transport == Transport::WebSocket;
    if side == Side::Bare {
        let echo = Echoed { is_websocket: is_websocket && class == Class::A };
        return serve(bare::start(&echo, 1)?.port(), Vec::new);
    }
    let mut config = node_for(connections, 1)?;
    let unanswered = (window + 1_024).to_string();
    config.set("limits.session.requests", &unanswered).map_err(io::Error::other)?;
    let listen = config.listen;
    let node = Node::new(config);
    let running = match class {
        Class::A if is_websocket => node.service_at_path(PATH, |_| Echo).start()?,
        Class::A => node.service(listen, |_| Echo).start()?,
        Class::B | Class::Room => {
            let usual = RoomType::of::<Hall>("hall");
            let capacity = if rooms == Rooms::Own { 1 } else { SHARED };
            let settings = Settings { capacity, ..usual.settings };
            node.room_type(RoomType { settings, ..usual }).start()?
        }
    };
    serve(running.local_addr().port(), Vec::new)
}

/// A protocol of a user's own: each frame is sent back.
struct Echo;

impl Service for Echo {
    type Connection = ();
    type Codec = NativeFrames;

    fn codec(&self) -> NativeFrames {
        NativeFrames::new()
    }

    fn connected(&mut self, _: SocketAddr, _: &mut Peer<Self>) {}

    #[inline]
    fn received(
        &mut self,
        _: &mut (),
        frame: service::Frame<'_>,
        peer: &mut Peer<Self>,
    ) -> service::Result {
        Ok(peer.reply(frame.body)?)
    }
}

/// Is answered with an event.
#[derive(Message)]
pub(super) struct Say {
    pub(super) data: Bytes,
}

/// Is answered with a reply.
#[derive(Message)]
#[reply(Bytes)]
pub(super) struct Ask {
    pub(super) data: Bytes,
}

/// The words of a player.
#[derive(Message)]
pub(super) struct Said {
    pub(super) data: Bytes,
}

/// Sends what players say back to them.
#[derive(State, Default)]
pub(super) struct Hall {
    nothing: u8,
}

#[room(messages(Say, Ask), events(Said), empty_ms = 600_000)]
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
    ) -> playfield_room::Result<Bytes> {
        Ok(ask.data)
    }
}

/// The baseline: it parses the length before each frame and sends frames back. By WebSocket, it
/// unmasks each message and sends it back.
#[derive(Clone)]
struct Echoed {
    is_websocket: bool,
}

impl Answer for Echoed {
    type Peer = ();

    fn answer<'a>(
        &'a mut self,
        _: &mut (),
        input: &'a [u8],
        out: &'a mut Vec<u8>,
    ) -> (usize, &'a [u8]) {
        if self.is_websocket {
            let whole = answer_messages(input, out);
            return (whole, out);
        }
        let whole = whole_frames(input);
        (whole, &input[..whole])
    }
}

/// Appends the answers to the requests for a WebSocket and the masked messages of up to 64 KiB at the
/// front, and says how many bytes these are.
fn answer_messages(input: &[u8], replies: &mut Vec<u8>) -> usize {
    let mut whole = 0;
    loop {
        let left = &input[whole..];
        let (header, length) = match *left {
            [b'G', ..] => {
                let Some(end) = left.windows(4).position(|end| end == b"\r\n\r\n") else { break };
                replies.extend_from_slice(&upgraded());
                whole += end + 4;
                continue;
            }
            [_, 0xFE, high, low, ..] => (8, usize::from(u16::from_be_bytes([high, low]))),
            [_, length @ 0x80..=0xFD, ..] => (6, usize::from(length & 0x7F)),
            _ => break,
        };
        let Some(message) = left.get(..header + length) else { break };
        let (head, payload) = message.split_at(header);
        let (head, key) = head.split_at(header - 4);
        replies.extend_from_slice(&[0x82, head[1] & 0x7F]);
        replies.extend_from_slice(&head[2..]);
        let key: [u8; 8] = std::array::from_fn(|at| key[at % 4]);
        let begin = replies.len();
        replies.extend_from_slice(payload);
        let (words, rest) = replies[begin..].as_chunks_mut::<8>();
        for word in words {
            *word = (u64::from_ne_bytes(*word) ^ u64::from_ne_bytes(key)).to_ne_bytes();
        }
        rest.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        whole += message.len();
    }
    whole
}

/// Returns the number of bytes at the front that are whole frames.
fn whole_frames(input: &[u8]) -> usize {
    let mut whole = 0;
    while let Some(prefix) = input[whole..].first_chunk::<PREFIX_BYTES>() {
        let end = whole + PREFIX_BYTES + u32::from_le_bytes(*prefix) as usize;
        if end > input.len() {
            break;
        }
        whole = end;
    }
    whole
}
