//! Clients that wait for an authenticator.

use playfield_wire::client::{ClientMessage, Hello};
use playfield_wire::{ErrorCode, Format};

use super::speech::{Heard, encoded};
use super::world::{Client, SLOW_TOKEN, World};

const PING: ClientMessage<'_> = ClientMessage::Ping { nonce: 1 };

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
    let mut world = World::new(1, &[("hello_timeout_ms", "1000")]);
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
