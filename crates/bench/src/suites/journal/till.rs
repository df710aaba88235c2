//! Rooms that count requests, and clients that send them.

use std::io;
use std::time::Instant;

use playfield_derive::State;
use playfield_room::{
    Context, Durability, Handle, Message, Player, PlayerId, Result, Room, RoomType, room,
};
use playfield_state::Map;
use playfield_wire::RequestNumber;
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::server::ServerMessage;

use super::Options;
use crate::harness::Side;
use crate::harness::dialogue::{Dialogue, FORMAT, Transport, varint};
use crate::harness::fleet::Fleet;
use crate::harness::process::Server;
use crate::harness::source::Source;
use crate::harness::windows::{self, Answers, Windows};

/// A message of a client, which is answered with how many it has sent.
#[derive(Message)]
#[reply(u64)]
struct Pay {
    amount: [u8; 8],
}

/// A room that counts the messages of each player.
#[derive(State, Default)]
pub(super) struct Till {
    #[sync(hidden)]
    pub(super) counts: Map<PlayerId, u64>,
    #[sync(hidden)]
    sum: u64,
}

#[room(messages(Pay), capacity = 100, empty_ms = 600_000, persist = 10, durability = journal)]
impl Room for Till {}

impl Handle<Pay> for Till {
    fn handle(&mut self, pay: Pay, player: &Player, _: &mut Context<Self>) -> Result<u64> {
        self.sum += u64::from(pay.amount[0]);
        let count = self.counts.get_or_default(player.id());
        *count += 1;
        Ok(*count)
    }
}

pub(super) fn till(is_journaled: bool) -> RoomType {
    let mut room_type = RoomType::of::<Till>("till");
    if !is_journaled {
        room_type.settings.durability = Durability::Save;
    }
    room_type
}

/// The key of a room.
pub(super) fn till_of(room: usize) -> String {
    format!("till-{room}")
}

/// The answers of the rooms: how many requests of the client they have handled.
pub(super) struct Receipts {
    pub(super) per_room: usize,
    /// By client.
    pub(super) counts: Vec<usize>,
    pub(super) seats: Vec<PlayerId>,
    asked_at: Vec<Option<Instant>>,
    /// The times from a window to its last answer, in microseconds.
    pub(super) times: Vec<f64>,
}

impl Receipts {
    /// Connects all clients, and has each enter its room.
    pub(super) fn connect(
        options: &Options,
        window: usize,
        server: &Server,
        is_journaled: bool,
    ) -> io::Result<Fleet<Windows<Self>>> {
        let Options { clients, per_room, .. } = *options;
        let (counts, asked_at) = (vec![0; clients], vec![None; clients]);
        let seats = vec![PlayerId(0); clients];
        let receipts = Self { per_room, counts, seats, asked_at, times: Vec::new() };
        let dialogue = Dialogue::new(Transport::Tcp);
        let requests = windows::requests(dialogue, window, |_| vec![7; 8]);
        let source = Source::Network(if is_journaled { 50 } else { 60 });
        Windows::new(receipts, dialogue, requests, window, clients).connect(
            server,
            Side::Node,
            source,
        )
    }
}

impl Answers for Receipts {
    fn join(&self, client: usize) -> ClientMessage<'_> {
        let key = till_of(client / self.per_room);
        ClientMessage::JoinOrCreate(client::JoinOrCreate {
            request: RequestNumber(1),
            room_type: "till".into(),
            key: Some(key.into()),
            options: &[],
        })
    }

    fn is_right(&mut self, client: usize, at: usize, body: &[u8]) -> bool {
        let Ok(ServerMessage::Reply(reply)) = ServerMessage::decode(FORMAT, body) else {
            return false;
        };
        let count = self.counts[client] + 1;
        let is_right = reply.request == windows::request(at) && reply.payload == varint(count);
        self.counts[client] += usize::from(is_right);
        is_right
    }

    fn joined(&mut self, client: usize, player: PlayerId) {
        self.seats[client] = player;
    }

    fn begins(&mut self, client: usize) {
        self.asked_at[client] = Some(Instant::now());
    }

    fn ends(&mut self, client: usize) {
        let time = self.asked_at[client].take().map_or(0.0, |at| at.elapsed().as_secs_f64() * 1e6);
        self.times.push(time);
    }
}
