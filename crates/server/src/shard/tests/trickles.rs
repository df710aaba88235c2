//! Clients that send a message in small pieces: what of it counts as a sign of life.

use playfield_wire::client::{self, ClientMessage};
use playfield_wire::{ErrorCode, Format};

use super::gadget::Gadget;
use super::speech::{Heard, encoded, send};
use super::timing::enter;
use super::world::{Client, World};
use crate::fleet::FleetSettings;

/// A client in a room of this type, in native framing or over WebSocket.
fn client(world: &mut World, is_websocket: bool, room_type: &str) -> Client {
    let client =
        if is_websocket { world.websocket_client(0, Format::Packed) } else { world.client(0) };
    enter(world, client, room_type);
    client
}

fn is_given_up(world: &mut World, client: Client) -> bool {
    world.heard(client).contains(&Heard::Goodbye { code: ErrorCode::Timeout })
}

/// A message of a client that takes long to send.
fn long(world: &World, client: Client) -> Vec<u8> {
    world.framed(client, &vec![0; 100_000])
}

#[test]
fn pieces_of_a_message_that_are_too_small_hide_no_silence() {
    for is_websocket in [false, true] {
        let mut world = World::new(1, &[]);
        let slow = client(&mut world, is_websocket, "brisk");
        for byte in long(&world, slow)[..33].chunks(1) {
            world.bytes(slow, byte);
            world.wait(100);
        }
        assert!(is_given_up(&mut world, slow), "after three seconds, and two slots of the wheel");
    }
}

#[test]
fn so_many_bytes_of_a_message_are_a_sign_of_life_and_one_less_is_none() {
    for is_websocket in [false, true] {
        for (bytes, lives) in [(255, false), (256, true)] {
            let mut world = World::new(1, &[]);
            let slow = client(&mut world, is_websocket, "brisk");
            for piece in long(&world, slow).chunks(bytes).take(8) {
                world.wait(2800);
                world.bytes(slow, piece);
            }
            assert_eq!(!is_given_up(&mut world, slow), lives, "{bytes}");
            assert_eq!(world.counters(0).sessions, u64::from(lives));
        }
    }
}

#[test]
fn a_large_message_over_a_slow_link_arrives() {
    for is_websocket in [false, true] {
        let mut world = World::new(1, &[]);
        let client = client(&mut world, is_websocket, "brisker");
        let (room, _) = world.rooms_of(client)[0].clone();
        let message = world.framed(client, &send(room, "shout", &"x".repeat(60_000)));
        for piece in message.chunks(260) {
            world.wait(100);
            world.bytes(client, piece);
        }
        let heard = world.heard(client);
        let arrived = |heard: &Heard| matches!(heard, Heard::Event { payload, .. } if payload.len() == 60_000);
        assert!(heard.iter().any(arrived), "after 23 seconds, where one may be silent for one");
    }
}

#[test]
fn a_ping_between_fragments_is_a_sign_of_life() {
    for (between, lives) in [(&b"\x89\x80\0\0\0\0"[..], true), (b"\0\x81\0\0\0\0a", false)] {
        let mut world = World::new(1, &[]);
        let client = client(&mut world, true, "brisk");
        world.bytes(client, b"\x02\x81\0\0\0\0a");
        for _ in 0..10 {
            world.wait(1000);
            world.bytes(client, between);
        }
        assert_eq!(!is_given_up(&mut world, client), lives);
    }
}

#[test]
fn before_the_hello_nothing_else_is_a_sign_of_life() {
    let mut world = World::new(1, &[("timeouts.hello", "1000ms")]);
    let client = world.connect(0);
    world.upgrade(client, Format::Packed);
    for _ in 0..12 {
        world.wait(100);
        world.bytes(client, b"\x89\x80\0\0\0\0");
    }
    assert!(is_given_up(&mut world, client));
}

#[test]
fn a_device_that_trickles_is_silent_and_one_whole_message_brings_it_back() {
    let mut world = World::with_fleet(1, &[], FleetSettings::new().silent_ms(2000));
    let mut lamp = Gadget::guest(&mut world, 0);
    lamp.register(&mut world, "lamp", &[]);
    let ping = encoded(Format::Packed, &ClientMessage::Ping(client::Ping { nonce: 1 }));
    let ping = world.framed(lamp.client, &ping);
    world.bytes(lamp.client, &ping[..1]);
    world.wait(2000);
    world.bytes(lamp.client, &ping[1..2]);
    world.wait(400);
    let log = |world: &World| std::mem::take(&mut *world.fleet_log.lock().unwrap());
    assert_eq!(log(&world), ["lamp registered", "lamp silent"]);
    world.bytes(lamp.client, &ping[2..]);
    assert_eq!(log(&world), ["lamp back"]);
    lamp.report(&mut world, "1");
    assert_eq!(log(&world), [""; 0], "it was back already");
}
