//! The law of switching for clients that are in no room: options of new rooms mean what the client
//! meant, and a client hears of another schema before a room of it.

use std::collections::{BTreeMap, VecDeque};

use playfield_state::{DynamicMirror, PlayerId};
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::schema::fingerprint;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::writer::{put_text, put_varint};
use playfield_wire::{ErrorCode, RequestNumber, RoomNumber};
use proptest::prelude::*;
use proptest::test_runner::Config;

use super::builds::{BUILDS, NAME, OTHER, build_of, schema};
use super::line::Line;
use super::{PACKED, config};
use crate::shard::tests::world::World;

/// Requests to leave have the number of the room after this one, and those for schemas this one.
const LEAVE: u32 = 1_000_000;
const SCHEMA: u32 = 2_000_000;

#[derive(Clone, Debug)]
enum Step {
    Create,
    /// The client asks for the schema.
    Ask,
    /// This many bytes of the client's output arrive.
    Send {
        bytes: usize,
    },
    /// The client handles the messages that have arrived.
    Hear,
    Wait {
        ms: u64,
    },
    /// A process of the next build, or the same, takes over.
    Replace {
        is_next: bool,
        shards: usize,
        passes: bool,
    },
    Return,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        5 => Just(Step::Create),
        1 => Just(Step::Ask),
        5 => (1..80_usize).prop_map(|bytes| Step::Send { bytes }),
        4 => Just(Step::Hear),
        1 => (1..60_u64).prop_map(|ms| Step::Wait { ms }),
        3 => (any::<bool>(), 1..4_usize, any::<bool>())
            .prop_map(|(is_next, shards, passes)| Step::Replace { is_next, shards, passes }),
        2 => Just(Step::Return),
    ];
    proptest::collection::vec(step, 1..60)
}

/// A counted message that the node may not have handled.
#[derive(Clone, Copy)]
enum Sent {
    Create(u32),
    Leave(RoomNumber),
    Ask,
}

/// A client that creates rooms, each with a number of its own, and leaves them.
struct Guest {
    line: Line,
    /// The build whose schema it reads and writes.
    build: usize,
    log: VecDeque<(u64, Sent)>,
    created: u32,
    /// The numbers whose rooms it has seen, or whose requests were refused.
    seen: Vec<u32>,
    refused: Vec<u32>,
    /// The numbers of rooms that it is in, and their players.
    rooms: BTreeMap<RoomNumber, (u32, PlayerId)>,
    errors: Vec<ErrorCode>,
}

impl Guest {
    fn new(is_kept: bool) -> Self {
        Self {
            line: Line::new(is_kept),
            build: 0,
            log: VecDeque::new(),
            created: 0,
            seen: Vec::new(),
            refused: Vec::new(),
            rooms: BTreeMap::new(),
            errors: Vec::new(),
        }
    }

    fn connect(&mut self, world: &mut World) {
        self.line.connect(world, 0, Vec::new());
        self.hear(world);
    }

    fn say(&mut self, world: &World, sent: Sent) {
        self.line.sent += 1;
        self.log.push_back((self.line.sent, sent));
        self.write(world, sent);
    }

    fn create(&mut self, world: &World) {
        self.created += 1;
        self.say(world, Sent::Create(self.created));
    }

    fn write(&mut self, world: &World, sent: Sent) {
        let mut options = Vec::new();
        let message = match sent {
            Sent::Ask => ClientMessage::Schema(client::Schema {
                request: RequestNumber(SCHEMA),
                room_type: NAME.into(),
            }),
            Sent::Leave(room) => {
                let request = RequestNumber(LEAVE + room.0);
                ClientMessage::Leave(client::Leave { request, room })
            }
            Sent::Create(number) => {
                if self.build == OTHER {
                    put_text(&mut options, "title");
                } else {
                    options.resize(self.build, 0);
                    put_varint(&mut options, number.into());
                }
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
            ServerMessage::Welcome(server::Welcome { resume, resumed, .. }) => {
                self.line.token = resume.into_owned();
                let Some(resumed) = resumed else { return };
                assert!(resumed.lost.is_empty());
                self.log.retain(|(count, _)| *count > resumed.received);
                for (_, sent) in self.log.clone() {
                    self.write(world, sent);
                }
            }
            ServerMessage::Schema(server::Schema { request: None, room_type, schema }) => {
                assert_eq!(room_type, NAME);
                self.build = build_of(&schema);
            }
            ServerMessage::Schema(server::Schema { schema, .. }) => {
                assert_eq!(build_of(&schema), self.build, "the client knows the schema");
            }
            ServerMessage::Joined(joined) => {
                let of = fingerprint(&schema(self.build));
                assert_eq!(joined.fingerprint, of, "the client knows the schema");
                self.rooms.insert(joined.room, (joined.request.0, PlayerId(joined.player)));
                self.say(world, Sent::Leave(joined.room));
            }
            ServerMessage::Snapshot(server::Snapshot { room, body, .. }) => {
                let (number, player) = self.rooms[&room];
                let mut copy = DynamicMirror::new(&schema(self.build).state, player).unwrap();
                copy.snapshot(&body).unwrap();
                if self.build < OTHER {
                    assert_eq!(copy.state()["sum"], number, "the options of the room");
                }
                self.seen.push(number);
            }
            ServerMessage::Error(server::Error { request, code, .. }) => {
                let RequestNumber(request) = request.unwrap();
                self.refused.extend((request < LEAVE).then_some(request));
                self.errors.push(code);
            }
            ServerMessage::Left(server::Left { room, .. }) => drop(self.rooms.remove(&room)),
            ServerMessage::Ack(server::Ack { received }) => {
                self.log.retain(|(count, _)| *count > received);
            }
            ServerMessage::Patch(_) | ServerMessage::Check(_) | ServerMessage::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// A node whose limits a client that creates rooms all the time does not reach.
fn world() -> World {
    World::new(
        2,
        &[
            ("limits.session.rooms", "100"),
            ("limits.session.rooms_created.per_minute", "1000"),
            ("limits.session.snapshots.per_second", "1000"),
            ("tuning.schemas.per_second", "1000"),
        ],
    )
}

/// Plays the steps, and then lets all arrive.
fn play(steps: &[Step], is_kept: bool) {
    let mut world = world();
    let mut guest = Guest::new(is_kept);
    guest.connect(&mut world);
    for step in steps {
        match *step {
            Step::Create => guest.create(&world),
            Step::Ask => guest.say(&world, Sent::Ask),
            Step::Send { bytes } => guest.line.send(&mut world, bytes),
            Step::Hear => guest.hear(&mut world),
            Step::Wait { ms } => world.wait(ms),
            Step::Replace { is_next, shards, passes } => {
                world.build = (world.build + usize::from(is_next)).min(BUILDS - 1);
                let open = world.replace(shards.max(2), passes || !is_kept);
                guest.line.keep_if(&open);
            }
            Step::Return => {
                if guest.line.client.is_none() {
                    guest.connect(&mut world);
                }
            }
        }
    }
    for _ in 0..4 {
        if guest.line.client.is_none() {
            guest.connect(&mut world);
        }
        guest.send(&mut world);
        world.wait(60);
        guest.hear(&mut world);
    }
    // Requests on their way during an upgrade are refused.
    assert!(guest.errors.iter().all(|code| *code == ErrorCode::Busy), "{:?}", guest.errors);
    let mut answered = [guest.seen, guest.refused].concat();
    answered.sort_unstable();
    answered.dedup();
    assert_eq!(answered, (1..=guest.created).collect::<Vec<u32>>());
}

proptest! {
    #![proptest_config(Config { max_shrink_iters: 200, ..config(150) })]

    #[test]
    fn options_mean_what_was_meant_in_whatever_build(steps in steps(), is_kept in any::<bool>()) {
        play(&steps, is_kept);
    }
}

/// A guest that knows the schema of the first build, of a node without rooms.
fn begin(is_kept: bool) -> (World, Guest) {
    let mut world = world();
    let mut guest = Guest::new(is_kept);
    guest.connect(&mut world);
    guest.send(&mut world);
    (world, guest)
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
fn a_schema_that_was_taken_back_was_never_told() {
    let (mut world, mut guest) = begin(true);
    for build in [1, 2, 0] {
        world.becomes(build, &mut guest);
    }
    guest.create(&world);
    guest.send(&mut world);
    world.wait(60);
    let bodies = guest.line.hear(&mut world);
    let is_schema = |body: &Vec<u8>| {
        matches!(ServerMessage::decode(PACKED, body), Ok(ServerMessage::Schema(_)))
    };
    assert!(!bodies.is_empty() && !bodies.iter().any(is_schema));
}

#[test]
fn options_that_cannot_be_converted_are_refused_and_the_next_are_of_the_new_build() {
    for is_kept in [true, false] {
        let (mut world, mut guest) = begin(is_kept);
        world.becomes(1, &mut guest);
        world.becomes(OTHER, &mut guest);
        guest.create(&world);
        world.talk(&mut guest);
        assert_eq!((&guest.errors[..], guest.build), (&[ErrorCode::BadPayload][..], OTHER));
        guest.create(&world);
        world.talk(&mut guest);
        assert_eq!(guest.seen, [2]);
    }
}

#[test]
fn a_confirmation_of_an_earlier_schema_confirms_no_later_one() {
    let (mut world, mut guest) = (world(), Guest::new(false));
    guest.line.connect(&mut world, 0, Vec::new());
    guest.create(&world);
    guest.send(&mut world);
    world.wait(60);
    guest.hear(&mut world);
    // The client is in a room, and has not confirmed the schema that answered its hello.
    world.becomes(1, &mut guest);
    guest.create(&world);
    world.talk(&mut guest);
    // The first room was shown again by the later schema.
    assert_eq!((&guest.seen[..], guest.build), (&[1, 1, 2][..], 1));
}
