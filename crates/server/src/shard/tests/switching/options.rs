//! Clients that create rooms: their options mean what the client meant.

use std::collections::BTreeMap;

use playfield_state::{DynamicMirror, PlayerId};
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::schema::fingerprint;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::writer::put_varint;
use playfield_wire::{RequestNumber, RoomNumber};

use super::PACKED;
use super::builds::{NAME, build_of, schema};
use super::line::Line;
use crate::shard::tests::world::World;

/// Requests to leave have the number of the room after this one.
const LEAVE: u32 = 1_000_000;

#[derive(Clone, Copy)]
enum Sent {
    Create(u32),
    Leave(RoomNumber),
}

/// A client that creates rooms, each with a number of its own, and leaves them.
struct Guest {
    line: Line,
    /// The build whose schema it reads and writes.
    build: usize,
    created: u32,
    /// The numbers whose rooms it has seen.
    seen: Vec<u32>,
    /// The numbers of rooms that it is in, and their players.
    rooms: BTreeMap<RoomNumber, (u32, PlayerId)>,
}

impl Guest {
    fn new(is_kept: bool) -> Self {
        Self {
            line: Line::new(is_kept),
            build: 0,
            created: 0,
            seen: Vec::new(),
            rooms: BTreeMap::new(),
        }
    }

    fn create(&mut self, world: &World) {
        self.created += 1;
        self.write(world, Sent::Create(self.created));
    }

    fn write(&mut self, world: &World, sent: Sent) {
        let mut options = Vec::new();
        let message = match sent {
            Sent::Leave(room) => {
                let request = RequestNumber(LEAVE + room.0);
                ClientMessage::Leave(client::Leave { request, room })
            }
            Sent::Create(number) => {
                options.resize(self.build, 0);
                put_varint(&mut options, number.into());
                ClientMessage::Create(client::Create {
                    request: RequestNumber(number),
                    room_type: NAME.into(),
                    private: true,
                    code: false,
                    key: None,
                    options: &options,
                })
            }
        };
        self.line.write(world, &message);
    }

    fn send(&mut self, world: &mut World) {
        self.line.send(world, usize::MAX);
    }

    fn hear(&mut self, world: &mut World) {
        for body in self.line.hear(world) {
            let message = ServerMessage::decode(PACKED, &body).unwrap();
            self.line.count(world, &message);
            self.handle(world, message);
        }
    }

    fn handle(&mut self, world: &World, message: ServerMessage<'_>) {
        match message {
            ServerMessage::Schema(server::Schema { request: None, room_type, schema }) => {
                assert_eq!(room_type, NAME);
                self.build = build_of(&schema);
            }
            ServerMessage::Joined(joined) => {
                let of = fingerprint(&schema(self.build));
                assert_eq!(joined.fingerprint, of, "it was told before");
                self.rooms.insert(joined.room, (joined.request.0, PlayerId(joined.player)));
                self.write(world, Sent::Leave(joined.room));
            }
            ServerMessage::Snapshot(server::Snapshot { room, body, .. }) => {
                let (number, player) = self.rooms[&room];
                let mut copy = DynamicMirror::new(&schema(self.build).state, player).unwrap();
                copy.snapshot(&body).unwrap();
                assert_eq!(copy.state()["sum"], number, "the options of the room");
                self.seen.push(number);
            }
            ServerMessage::Left(server::Left { room, .. }) => drop(self.rooms.remove(&room)),
            ServerMessage::Welcome(_) | ServerMessage::Patch(_) | ServerMessage::Check(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

impl World {
    /// A process of this build takes over, with all connections.
    fn becomes(&mut self, build: usize, guest: &mut Guest) {
        self.build = build;
        let open = self.replace(2, true);
        guest.line.keep_if(&open);
    }

    /// All that the guest has written arrives, and what answers it.
    fn talk(&mut self, guest: &mut Guest) {
        for _ in 0..2 {
            guest.send(self);
            self.wait(60);
            guest.hear(self);
        }
    }
}

#[test]
fn a_confirmation_of_an_earlier_schema_confirms_no_later_one() {
    let (mut world, mut guest) = (World::new(2, &[]), Guest::new(false));
    guest.line.connect(&mut world, 0, Vec::new());
    guest.create(&world);
    guest.send(&mut world);
    world.wait(60);
    guest.hear(&mut world);
    // It is in a room, and has not sent its confirmation of the schema that has answered its hello.
    world.becomes(1, &mut guest);
    guest.create(&world);
    world.talk(&mut guest);
    // The first room was shown again by the later schema.
    assert_eq!((&guest.seen[..], guest.build), (&[1, 1, 2][..], 1));
}
