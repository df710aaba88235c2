//! A connection is served for a while, and then waits for its next turn.

use std::time::Duration;

use playfield_wire::Format;
use playfield_wire::client::ClientMessage;

use super::speech::{Heard, encoded};
use super::world::World;

const LONG: Duration = Duration::from_millis(1);

fn pings(world: &World, client: usize, count: u64) -> Vec<u8> {
    let ping = |nonce| encoded(Format::Packed, &ClientMessage::Ping { nonce });
    (0..count).flat_map(|nonce| world.framed(client, &ping(nonce))).collect()
}

#[test]
fn who_was_served_for_long_enough_waits_and_goes_on_where_it_stopped() {
    for is_websocket in [false, true] {
        let mut world = World::new(1, &[]);
        let client = world.named_client(0, is_websocket, Format::Packed, "");
        world.heard(client);
        let flood = pings(&world, client, 100);
        let mut visits = 1;
        let mut comes_back = world.visit(client, &flood, LONG);
        let mut heard = world.heard(client);
        assert!(comes_back && heard.len() < 100, "{} pongs at once", heard.len());
        while comes_back {
            comes_back = world.visit(client, &[], Duration::ZERO);
            heard.extend(world.heard(client));
            visits += 1;
        }
        let expected: Vec<_> = (0..100).map(|nonce| Heard::Pong { nonce }).collect();
        assert_eq!((heard, visits), (expected, 2));
    }
}

#[test]
fn who_takes_little_is_never_among_those_who_take_much() {
    let mut world = World::new(1, &[]);
    let (busy, calm) = (world.client(0), world.client(0));
    for _ in 0..10 {
        let ping = pings(&world, busy, 1);
        world.visit(busy, &ping, LONG);
        let ping = pings(&world, calm, 1);
        world.visit(calm, &ping, Duration::from_micros(10));
    }
    assert!(world.takes_much(busy) && !world.takes_much(calm));
    world.wait(10_000);
    assert!(!world.takes_much(busy), "that was long ago");
}
