//! The law of switching: rooms continue in builds with other schemas, with any messages in flight.
//! Each message does what the client meant, once and in order, and each copy equals the room.

mod builds;
mod line;
mod options;

use std::collections::VecDeque;

use playfield_state::{DynamicMirror, PlayerId};
use playfield_wire::client::{self, ClientMessage, ResumeRoom};
use playfield_wire::message::MessageRef;
use playfield_wire::reader::Reader;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::writer::put_varint;
use playfield_wire::{Format, RequestNumber, RoomNumber};
use proptest::prelude::*;
use proptest::test_runner::Config;

use super::laws::config;
use super::world::World;
pub(super) use builds::room_type;
use builds::{BUILDS, NAME, build_of, schema};
use line::Line;

const PACKED: Format = Format::Packed;

/// Reads a number after the additions of a build.
fn number(build: usize, payload: &[u8]) -> u32 {
    let mut reader = Reader::new(&payload[build..]);
    let number = reader.varint_u32().unwrap();
    assert!(reader.is_empty() && payload[..build].iter().all(|byte| *byte == 7));
    number
}

#[derive(Clone, Debug)]
enum Step {
    Add {
        seat: usize,
    },
    /// This many bytes of the client's output arrive.
    Send {
        seat: usize,
        bytes: usize,
    },
    /// The client handles the messages that have arrived.
    Hear {
        seat: usize,
    },
    Wait {
        ms: u64,
    },
    /// A process of the next build, or the same, takes over.
    Replace {
        is_next: bool,
        shards: usize,
        passes: bool,
    },
    Return {
        seat: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let seat = || 0..2_usize;
    let step = prop_oneof![
        6 => seat().prop_map(|seat| Step::Add { seat }),
        4 => (seat(), 1..60_usize).prop_map(|(seat, bytes)| Step::Send { seat, bytes }),
        3 => seat().prop_map(|seat| Step::Hear { seat }),
        2 => (1..60_u64).prop_map(|ms| Step::Wait { ms }),
        2 => (any::<bool>(), 1..4_usize, any::<bool>())
            .prop_map(|(is_next, shards, passes)| Step::Replace { is_next, shards, passes }),
        2 => seat().prop_map(|seat| Step::Return { seat }),
    ];
    proptest::collection::vec(step, 1..60)
}

/// A client, and its knowledge.
struct Seat {
    line: Line,
    /// The build whose schema it reads and writes.
    build: usize,
    /// The numbers that it has added and that are not confirmed, with their counts. A join has none.
    log: VecDeque<(u64, u32)>,
    added: u32,
    answered: u32,
    heard: u64,
    room: RoomNumber,
    player: PlayerId,
    epoch: u64,
    version: u64,
    copy: Option<DynamicMirror>,
}

impl Seat {
    fn enter(world: &mut World, shard: usize, is_kept: bool) -> Self {
        let mut seat = Self {
            line: Line::new(is_kept),
            build: 0,
            log: VecDeque::new(),
            added: 0,
            answered: 0,
            heard: 0,
            room: RoomNumber(0),
            player: PlayerId(0),
            epoch: 0,
            version: 0,
            copy: None,
        };
        seat.connect(world, shard);
        let join = client::JoinOrCreate {
            request: RequestNumber(1_000_000),
            room_type: NAME.into(),
            key: Some("one".into()),
            options: &[],
        };
        seat.line.sent += 1;
        seat.line.write(world, &ClientMessage::JoinOrCreate(join));
        seat.line.send(world, usize::MAX);
        world.wait(60);
        seat.hear(world);
        assert!(seat.copy.is_some(), "it is in the room");
        seat
    }

    fn connect(&mut self, world: &mut World, shard: usize) {
        let version = if self.copy.is_some() { self.version } else { 0 };
        let copy = ResumeRoom { room: self.room, epoch: self.epoch, version };
        self.line.connect(world, shard, vec![copy]);
        self.hear(world);
    }

    /// Writes a message with the schema that the client reads.
    fn write_add(&mut self, world: &World, added: u32) {
        let mut payload = vec![0; self.build];
        put_varint(&mut payload, added.into());
        self.line.write(
            world,
            &ClientMessage::Request(client::Request {
                room: self.room,
                request: RequestNumber(added),
                message: MessageRef::Index(self.build as u32),
                payload: &payload,
            }),
        );
    }

    fn add(&mut self, world: &World) {
        self.added += 1;
        self.line.sent += 1;
        self.log.push_back((self.line.sent, self.added));
        self.write_add(world, self.added);
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
                for (_, added) in self.log.clone() {
                    self.write_add(world, added);
                }
            }
            ServerMessage::Joined(joined) => {
                (self.room, self.player) = (joined.room, PlayerId(joined.player));
                self.epoch = joined.epoch;
            }
            ServerMessage::Schema(server::Schema { request: None, room_type, schema: of }) => {
                assert_eq!(room_type, NAME);
                let build = build_of(&of);
                // The first one answers the hello.
                assert!(build > self.build || self.epoch == 0, "{build} after {}", self.build);
                (self.build, self.copy) = (build, None);
            }
            ServerMessage::Snapshot(server::Snapshot { version, body, .. }) => {
                let mut copy = DynamicMirror::new(&schema(self.build).state, self.player).unwrap();
                copy.snapshot(&body).unwrap();
                (self.copy, self.version) = (Some(copy), version);
            }
            ServerMessage::Patch(server::Patch { base, version, body, .. }) => {
                // One that comes between the schema and the snapshot is passed over.
                if let Some(copy) = &mut self.copy {
                    assert_eq!(base, self.version);
                    copy.patch(&body).unwrap();
                    self.version = version;
                }
            }
            ServerMessage::Check(server::Check { version, digest, .. }) => {
                if let Some(copy) = self.copy.as_ref().filter(|_| version == self.version) {
                    assert_eq!(copy.digest(), digest);
                }
            }
            ServerMessage::Event(server::Event { sequence, message, payload, .. }) => {
                self.heard += 1;
                assert_eq!(sequence, self.heard);
                assert_eq!(message, MessageRef::Index(self.build as u32));
                number(self.build, &payload);
            }
            ServerMessage::Reply(server::Reply { request, payload }) => {
                self.answered += 1;
                assert_eq!(number(self.build, &payload), self.answered);
                assert_eq!(request.0, self.answered, "each is executed once, in order");
            }
            ServerMessage::Ack(server::Ack { received }) => {
                self.log.retain(|(count, _)| *count > received);
            }
            ServerMessage::Ping(_) => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Plays the steps, and then lets all arrive.
fn play(steps: &[Step], is_kept: bool) {
    let mut world = World::new(2, &[]);
    let mut seats = [0, 1].map(|shard| Seat::enter(&mut world, shard, is_kept));
    for step in steps {
        match *step {
            Step::Add { seat } => seats[seat].add(&world),
            Step::Send { seat, bytes } => seats[seat].line.send(&mut world, bytes),
            Step::Hear { seat } => seats[seat].hear(&mut world),
            Step::Wait { ms } => world.wait(ms),
            Step::Replace { is_next, shards, passes } => {
                world.build = (world.build + usize::from(is_next)).min(BUILDS - 1);
                let open = world.replace(shards.max(2), passes || !is_kept);
                for Seat { line, .. } in &mut seats {
                    line.keep_if(&open);
                }
            }
            Step::Return { seat } => {
                if seats[seat].line.client.is_none() {
                    seats[seat].connect(&mut world, 0);
                }
            }
        }
    }
    for _ in 0..3 {
        for seat in &mut seats {
            if seat.line.client.is_none() {
                seat.connect(&mut world, 1);
            }
            seat.line.send(&mut world, usize::MAX);
        }
        world.wait(60);
        seats.iter_mut().for_each(|seat| seat.hear(&mut world));
    }
    let added: u64 = seats.iter().map(|seat| u64::from(seat.added)).sum();
    let sum: u64 = seats.iter().flat_map(|seat| 1..=u64::from(seat.added)).sum();
    for seat in &seats {
        assert_eq!((seat.build, seat.answered, seat.heard), (world.build, seat.added, added));
        assert_eq!(seat.copy.as_ref().unwrap().state()["sum"], sum);
    }
}

proptest! {
    #![proptest_config(Config { max_shrink_iters: 200, ..config(150) })]

    #[test]
    fn messages_run_what_was_meant_in_whatever_build(steps in steps(), is_kept in any::<bool>()) {
        play(&steps, is_kept);
    }
}
