//! Clients that wait for an authenticator.

use playfield_room::{Room, RoomType, room};
use playfield_state::State;
use playfield_wire::client::{self, ClientMessage, Hello};
use playfield_wire::{ErrorCode, Format, RequestNumber};

use super::speech::{Heard, encoded};
use super::world::{Client, SLOW_TOKEN, World};

#[derive(State, Default)]
struct Single {}

#[room(one_per_user = take_over, capacity = 1)]
impl Room for Single {}

pub(super) fn room_type() -> RoomType {
    RoomType::of::<Single>("single")
}

const PING: ClientMessage<'_> = ClientMessage::Ping(client::Ping { nonce: 1 });

/// A client that waits, under a name that the authenticator may refuse. It has sent more than its
/// hello.
fn waiting(world: &mut World, format: Format, is_websocket: bool, name: &str) -> Client {
    let client = world.connect(0);
    if is_websocket {
        world.upgrade(client, format);
    } else {
        world.bytes(client, b"PF1\n");
    }
    let hello = Hello { name: name.into(), token: SLOW_TOKEN.into(), ..Hello::new(Format::Packed) };
    let mut bytes = world.framed(client, &encoded(format, &ClientMessage::Hello(hello)));
    bytes.extend(world.framed(client, &encoded(format, &PING)));
    world.bytes(client, &bytes);
    assert_eq!(world.heard(client), []);
    client
}

#[test]
fn what_a_client_sends_while_it_waits_is_handled_after_its_welcome() {
    for is_websocket in [false, true] {
        let mut world = World::new(1, &[]);
        let client = waiting(&mut world, Format::Packed, is_websocket, "ann");
        let other = world.client(0);
        world.say(client, &encoded(Format::Packed, &PING));
        assert_eq!(world.heard(client), []);
        world.run_background();
        let heard = world.heard(client);
        let [Heard::Welcome { .. }, Heard::Pong { nonce: 1 }, Heard::Pong { nonce: 1 }] = heard[..]
        else {
            panic!("{heard:?}")
        };
        world.say(other, &encoded(Format::Packed, &PING));
        assert_eq!(world.heard(other), [Heard::Pong { nonce: 1 }]);
    }
}

#[test]
fn a_refusal_closes() {
    let mut world = World::new(1, &[]);
    let client = waiting(&mut world, Format::Packed, false, "nobody");
    world.run_background();
    let code = ErrorCode::Unauthorized;
    let expected = [Heard::Error { request: None, room: None, code }, Heard::Goodbye { code }];
    assert_eq!(world.heard(client), expected);
    assert!(world.is_over(client));
}

#[test]
fn an_authenticator_that_hangs_is_given_up_after_hello_timeout_ms() {
    let mut world = World::new(1, &[("timeouts.hello", "1000ms")]);
    let client = waiting(&mut world, Format::Packed, false, "ann");
    world.wait(900);
    assert_eq!(world.heard(client), []);
    world.wait(200);
    let code = ErrorCode::Timeout;
    let expected = [Heard::Error { request: None, room: None, code }, Heard::Goodbye { code }];
    assert_eq!(world.heard(client), expected);
    // The decision comes too late.
    world.run_background();
    assert_eq!((world.heard(client), world.counters(0).sessions), (vec![], 0));
}

#[test]
fn a_decision_for_a_client_that_has_gone_opens_no_session() {
    let mut world = World::new(1, &[]);
    let client = waiting(&mut world, Format::Packed, false, "ann");
    world.half_close(client);
    assert_eq!(world.counters(0).connections, 0);
    world.run_background();
    assert_eq!(world.counters(0).sessions, 0);
    let client = waiting(&mut world, Format::Packed, false, "ann");
    world.shut_down();
    world.run_background();
    assert!(world.is_over(client));
    assert_eq!(world.counters(0).sessions, 0);
}

/// A room full of its users lets each of them take over their own seat, however the room is named.
#[test]
fn a_user_takes_over_their_own_seat_in_a_full_room_and_nobody_else_gets_in() {
    let enter = |world: &mut World, client, room_type: &str, key: Option<&str>| {
        let request = RequestNumber(1);
        let (room_type, key) = (room_type.into(), key.map(Into::into));
        let join = ClientMessage::JoinOrCreate(client::JoinOrCreate {
            request,
            room_type,
            key,
            options: &[],
        });
        world.say(client, &encoded(Format::Packed, &join));
        world.wait(60);
        world.heard(client)
    };
    for shards in [1, 2] {
        let mut world = World::new(shards, &[]);
        let users = ["first", "second", "third"].map(|name| {
            let client = waiting(&mut world, Format::Packed, false, name);
            world.run_background();
            world.heard(client);
            client
        });
        let guest = world.client(shards - 1);
        let heard = enter(&mut world, users[0], "single", Some("k"));
        assert!(matches!(heard[..], [Heard::Joined { .. }, ..]), "{heard:?}");
        let id = world.rooms_of(users[0])[0].1.clone();

        let heard = enter(&mut world, guest, "single", Some("k"));
        let code = ErrorCode::RoomFull;
        assert!(matches!(heard[..], [Heard::Error { code: of, .. }] if of == code), "{heard:?}");

        let heard = enter(&mut world, users[1], "single", Some("k"));
        assert!(matches!(heard[..], [Heard::Joined { .. }, ..]), "{heard:?}");
        let heard = world.heard(users[0]);
        assert!(matches!(heard[..], [.., Heard::Left { .. }]), "{heard:?}");
        world.join(users[2], RequestNumber(1), &id);
        world.joined(users[2]);
        assert_eq!((world.members(), world.load()), (1, 2), "a room and a seat");
    }
}
