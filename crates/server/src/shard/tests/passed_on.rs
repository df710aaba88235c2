//! Connections that are passed on to another process, whatever is under way on them.

use playfield_room::{Context, Handle, Message, On, Player, Result, Room, RoomType, room};
use playfield_state::{Data, State};
use playfield_websocket::{Opcode, encode_fragment};
use playfield_wire::client::{self, ClientMessage, Hello, Resync};
use playfield_wire::framing::PREAMBLE;
use playfield_wire::message::MessageRef;
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

use super::speech::{Heard, encoded};
use super::world::{Client, World};

const PACKED: Format = Format::Packed;
const ROOM: RoomNumber = RoomNumber(1);

/// Echoes each message.
#[derive(State, Default)]
struct Echo {
    said: u32,
    #[sync(hidden)]
    holds: bool,
}

#[derive(Message)]
#[reply(String)]
struct Say(String);

#[derive(Message)]
struct Said(String);

#[derive(Message)]
struct Never;

#[room(messages(Say), events(Said), internal(Never), sync_hz = 20)]
impl Room for Echo {
    type Options = bool;

    fn create(holds: bool, _: &mut Context<Self>) -> Result<Self> {
        Ok(Self { said: 0, holds })
    }

    fn join(&mut self, _: &Player, cx: &mut Context<Self>) -> Result<()> {
        if self.holds { cx.hold(std::future::pending::<Never>()) } else { Ok(()) }
    }
}

impl Handle<Say> for Echo {
    fn handle(&mut self, Say(text): Say, _: &Player, cx: &mut Context<Self>) -> Result<String> {
        self.said += 1;
        cx.emit(&Said(text.clone()));
        Ok(text)
    }
}

impl On<Never> for Echo {
    fn on(&mut self, _: Never, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }
}

pub(super) fn room_type() -> RoomType {
    RoomType::of::<Echo>("echo")
}

/// The way in which a client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Native,
    WebSocket,
    Deflating,
}

const WAYS: [Way; 3] = [Way::Native, Way::WebSocket, Way::Deflating];

/// A node of two shards. Messages of 64 bytes and more are compressed for those who want it.
fn world() -> World {
    World::new(2, &[("websocket.deflate", "true"), ("tuning.deflate_bytes_min", "64")])
}

fn connect(world: &mut World, way: Way, shard: usize) -> Client {
    let client = world.connect(shard);
    match way {
        Way::Native => world.bytes(client, &PREAMBLE),
        Way::WebSocket => world.upgrade(client, PACKED),
        Way::Deflating => world.upgrade_deflating(client, PACKED),
    }
    // Sessions that end with their connections are passed on, too.
    let resumable = way != Way::Deflating;
    let hello = Hello { resumable, ..Hello::new(PACKED) };
    world.say(client, &encoded(PACKED, &ClientMessage::Hello(hello)));
    assert!(matches!(world.heard(client)[..], [Heard::Welcome { .. }]));
    client
}

fn create(request: u32, holds: bool) -> Vec<u8> {
    let mut options = Vec::new();
    holds.encode(&mut options);
    let create = client::Create {
        request: RequestNumber(request),
        room_type: "echo".into(),
        private: false,
        code: false,
        key: None,
        options: &options,
    };
    encoded(PACKED, &ClientMessage::Create(create))
}

fn say(request: u32, text: &str) -> Vec<u8> {
    let mut payload = Vec::new();
    Say(text.to_owned()).encode(&mut payload);
    let (room, request, message) = (ROOM, RequestNumber(request), MessageRef::Index(0));
    let payload = &payload;
    let of = client::Request { room, request, message, payload };
    encoded(PACKED, &ClientMessage::Request(of))
}

/// A client in a room of its own, which it has a copy of.
fn in_room(world: &mut World, way: Way) -> Client {
    let client = connect(world, way, 0);
    world.say(client, &create(1, false));
    world.joined(client);
    client
}

/// A client in a room that it has created, and the room's id.
pub(super) fn in_new_room(world: &mut World) -> (Client, String) {
    let client = connect(world, Way::Native, 0);
    world.say(client, &create(1, false));
    let (_, id) = world.joined(client);
    (client, id)
}

/// Another process takes over, of one, two or three shards, and has the connection of the client.
fn replace(world: &mut World, client: Client, shards: usize) {
    assert_eq!(world.replace(shards, true), [client]);
}

/// The replies and events that came, without the lengths of their texts. No snapshot did.
fn texts(world: &mut World, client: Client) -> Vec<String> {
    let heard = world.heard(client).into_iter();
    let texts = heard.filter_map(|heard| match heard {
        Heard::Reply { request, payload } => Some(format!("{} {}", request.0, end(&payload))),
        Heard::Event { sequence, payload, .. } => Some(format!("#{sequence} {}", end(&payload))),
        Heard::Patch { .. } | Heard::Ping | Heard::Ack { .. } | Heard::Check { .. } => None,
        other => panic!("{other:?}"),
    });
    texts.collect()
}

/// The end of a text.
fn end(text: &str) -> &str {
    text.get(text.len().saturating_sub(3)..).unwrap_or_default()
}

#[test]
fn a_message_to_the_node_may_be_cut_anywhere() {
    for way in WAYS {
        let mut world = world();
        let client = in_room(&mut world, way);
        let message = world.framed(client, &say(2, "abc"));
        for (number, cut) in (1..).zip(0..=message.len()) {
            world.bytes(client, &message[..cut]);
            replace(&mut world, client, 1 + cut % 3);
            world.bytes(client, &message[cut..]);
            world.wait(60);
            let heard = texts(&mut world, client);
            assert_eq!(heard, [format!("#{number} abc"), "2 abc".into()], "{way:?} {cut}");
        }
    }
}

#[test]
fn what_was_received_before_is_acknowledged_within_a_second() {
    let mut world = world();
    let client = in_room(&mut world, Way::Native);
    world.say(client, &say(2, "abc"));
    world.heard(client);
    replace(&mut world, client, 2);
    world.wait(1_100);
    let heard = world.heard(client);
    let acks = heard.iter().filter(|heard| matches!(heard, Heard::Ack { .. }));
    assert_eq!(acks.count(), 1, "{heard:?}");
}

#[test]
fn a_message_to_the_node_in_fragments_may_be_cut_anywhere() {
    for way in [Way::WebSocket, Way::Deflating] {
        let mut world = world();
        let client = in_room(&mut world, way);
        let (mut message, mask) = (Vec::new(), Some([9, 8, 7, 6]));
        let mut opcode = Opcode::Binary;
        for piece in say(2, "abc").chunks(3) {
            encode_fragment(&mut message, opcode, false, piece, mask);
            opcode = Opcode::Continuation;
        }
        encode_fragment(&mut message, opcode, true, b"", mask);
        for (number, cut) in (1..).zip(0..=message.len()) {
            world.bytes(client, &message[..cut]);
            replace(&mut world, client, 2);
            world.bytes(client, &message[cut..]);
            world.wait(60);
            let heard = texts(&mut world, client);
            assert_eq!(heard, [format!("#{number} abc"), "2 abc".into()], "{way:?} {cut}");
        }
    }
}

#[test]
fn what_a_slow_client_is_sent_may_be_cut_anywhere() {
    let text = "x".repeat(100) + "abc";
    for way in WAYS {
        let mut world = world();
        let client = in_room(&mut world, way);
        for (number, cut) in (1..).zip((0..300).step_by(7)) {
            world.takes(client, cut);
            world.say(client, &say(2, &text));
            world.wait(120);
            replace(&mut world, client, 1 + cut % 3);
            world.wait(120);
            world.takes(client, usize::MAX);
            world.wait(60);
            let heard = texts(&mut world, client);
            assert_eq!(heard, [format!("#{number} abc"), "2 abc".into()], "{way:?} {cut}");
        }
    }
}

#[test]
fn a_room_elsewhere_goes_on_with_a_slow_client() {
    let mut world = world();
    // Two rooms on two shards: the second one is elsewhere for the client.
    let mut clients = [0, 1].map(|shard| {
        let client = connect(&mut world, Way::Native, shard);
        world.say(client, &create(1, false));
        (client, world.joined(client).1)
    });
    if world.shard_of(clients[0].0) == world.shard_of(clients[1].0) {
        clients.swap(0, 1);
    }
    let ((ann, _), (ben, id)) = (clients[0].clone(), clients[1].clone());
    world.join(ann, RequestNumber(2), &id);
    world.joined(ann);
    for (number, cut) in (1..).zip((0..300).step_by(13)) {
        world.takes(ann, cut);
        world.say(ben, &say(3, &"x".repeat(100)));
        world.wait(120);
        assert_eq!(world.replace(2, true).len(), 2);
        world.say(ben, &say(4, "abc"));
        world.wait(120);
        world.takes(ann, usize::MAX);
        world.wait(120);
        let [first, second] = [2 * number - 1, 2 * number];
        let expected = [format!("#{first} xxx"), format!("#{second} abc")];
        assert_eq!(texts(&mut world, ann), expected, "{cut}");
        assert_eq!(texts(&mut world, ben).len(), 4);
    }
}

#[test]
fn what_was_read_of_a_client_that_does_not_read_is_handled_when_it_does() {
    for way in WAYS {
        let mut world = World::new(
            2,
            &[("limits.session.outbox_bytes.high", "1000"), ("websocket.deflate", "true")],
        );
        let client = in_room(&mut world, way);
        world.takes(client, 0);
        let all: Vec<u8> =
            (1..=40).flat_map(|request| world.framed(client, &say(request, "abc"))).collect();
        let cut = all.len() - 5;
        world.bytes(client, &all[..cut]);
        for _ in 0..2 {
            assert!(!world.is_over(client));
            replace(&mut world, client, 2);
            world.wait(60);
        }
        world.bytes(client, &all[cut..]);
        world.takes(client, usize::MAX);
        world.wait(200);
        let heard = texts(&mut world, client);
        let expected: Vec<_> = (1..=40)
            .flat_map(|number| [format!("#{number} abc"), format!("{number} abc")])
            .collect();
        assert_eq!(heard, expected, "{way:?}");
    }
}

#[test]
fn a_snapshot_that_was_asked_for_comes_when_there_is_space() {
    for shards in 1..=3 {
        let mut world = world();
        let client = in_room(&mut world, Way::Native);
        world.takes(client, 0);
        world.say(client, &say(2, "abc"));
        world.say(client, &encoded(PACKED, &ClientMessage::Resync(Resync { room: ROOM })));
        replace(&mut world, client, shards);
        world.takes(client, usize::MAX);
        world.wait(1_000);
        let heard = world.heard(client);
        let is_snapshot = |heard: &&Heard| matches!(heard, Heard::Snapshot { .. });
        assert_eq!(heard.iter().filter(is_snapshot).count(), 1, "{heard:?}");
    }
}

#[test]
fn a_join_that_waits_is_refused_and_the_connection_goes_on() {
    let mut world = world();
    let client = in_room(&mut world, Way::Native);
    world.say(client, &create(2, true));
    replace(&mut world, client, 2);
    let busy = |heard: &Heard| {
        matches!(heard, Heard::Error { request: Some(RequestNumber(2)), code: ErrorCode::Busy, .. })
    };
    let heard = world.heard(client);
    assert!(heard.iter().any(busy), "{heard:?}");
    world.say(client, &say(3, "abc"));
    world.wait(60);
    assert_eq!(texts(&mut world, client), ["#1 abc", "3 abc"]);
}
