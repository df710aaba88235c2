//! The connection of a client, and the numbers of messages that both ends count.

use playfield_wire::Format;
use playfield_wire::client::{self, ClientMessage, Hello, Resume, ResumeRoom, SchemaRef};
use playfield_wire::framing::PREAMBLE;
use playfield_wire::server::{self, ServerMessage};

use super::builds::NAME;
use crate::shard::tests::speech::encoded;
use crate::shard::tests::world::{Client, World};

const PACKED: Format = Format::Packed;

pub(super) struct Line {
    pub(super) client: Option<Client>,
    pub(super) is_kept: bool,
    pub(super) token: Vec<u8>,
    received: u64,
    /// The number of schemas that it has not asked for.
    unasked: u64,
    /// The number of counted messages that it has sent.
    pub(super) sent: u64,
    /// Bytes that have not arrived yet.
    out: Vec<u8>,
}

impl Line {
    pub(super) fn new(is_kept: bool) -> Self {
        let (client, token, out) = (None, Vec::new(), Vec::new());
        Self { client, is_kept, token, received: 0, unasked: 0, sent: 0, out }
    }

    /// Connects, with these copies of rooms if it comes back. Its hello names a schema of no build,
    /// so the node sends its own to a new session.
    pub(super) fn connect(&mut self, world: &mut World, shard: usize, rooms: Vec<ResumeRoom>) {
        let client = world.connect(shard);
        self.client = Some(client);
        world.bytes(client, &PREAMBLE);
        let resume = Resume { token: self.token.clone().into(), received: self.received, rooms };
        let resume = (!self.token.is_empty()).then_some(resume);
        let schemas = vec![SchemaRef { room_type: NAME.into(), fingerprint: 1 }];
        let hello = Hello { resumable: self.is_kept, resume, schemas, ..Hello::new(PACKED) };
        world.say(client, &encoded(PACKED, &ClientMessage::Hello(hello)));
    }

    pub(super) fn write(&mut self, world: &World, message: &ClientMessage<'_>) {
        if let Some(client) = self.client {
            self.out.extend(world.framed(client, &encoded(PACKED, message)));
        }
    }

    /// This many bytes of what it has written arrive.
    pub(super) fn send(&mut self, world: &mut World, bytes: usize) {
        let Some(client) = self.client else { return };
        let rest = self.out.split_off(bytes.min(self.out.len()));
        let sent = std::mem::replace(&mut self.out, rest);
        world.bytes(client, &sent);
    }

    /// Another process has taken over: the connection is lost unless it is among those that it has.
    pub(super) fn keep_if(&mut self, open: &[Client]) {
        if self.client.is_some_and(|client| !open.contains(&client)) {
            assert!(self.is_kept);
            self.client = None;
            self.out.clear();
        }
    }

    /// The messages that have arrived.
    pub(super) fn hear(&self, world: &mut World) -> Vec<Vec<u8>> {
        self.client.map_or(Vec::new(), |client| world.bodies(client))
    }

    /// Counts a message, and confirms a schema that it has not asked for.
    pub(super) fn count(&mut self, world: &World, message: &ServerMessage<'_>) {
        self.received += u64::from(message.is_counted() && self.is_kept);
        if let ServerMessage::Schema(server::Schema { request: None, .. }) = message {
            self.unasked += 1;
            let received = if self.is_kept { self.received } else { self.unasked };
            self.write(world, &ClientMessage::Ack(client::Ack { received }));
        }
    }
}
