//! Compressed messages: for whom, and how often they are compressed.

use playfield_wire::{Format, RequestNumber};

use super::speech::Heard;
use super::world::{Client, World};
use crate::shard::connection::deflated::forget;
use crate::shard::connection::deflated::remembered;

const ON: [(&str, &str); 1] = [("websocket.deflate", "true")];

/// The snapshot that a client is sent when it enters, and how many bytes came with it.
fn snapshot(world: &mut World, client: Client, before: usize) -> (String, usize) {
    let heard = world.heard(client);
    let body = heard.iter().find_map(|heard| match heard {
        Heard::Snapshot { body, .. } => Some(body.clone()),
        _ => None,
    });
    (body.unwrap_or_else(|| panic!("no snapshot: {heard:?}")), world.came(client).len() - before)
}

/// A room with much in it: who is in it, and its id.
fn large_room(world: &mut World) -> (Client, String) {
    let host = world.client(0);
    let (_, id) = world.room(host, "ballast=5000");
    (host, id)
}

#[test]
fn what_players_are_sent_alike_is_compressed_once() {
    let mut world = World::new(1, &ON);
    let (_, id) = large_room(&mut world);
    let clients = [(); 3].map(|()| world.deflating_client(0, Format::Json));
    let before = clients.map(|client| world.came(client).len());
    forget();
    for client in clients {
        world.join(client, RequestNumber(1), &id);
    }
    world.wait(100);
    for (client, before) in clients.into_iter().zip(before) {
        let (body, bytes) = snapshot(&mut world, client, before);
        assert!(body.len() > 5000 && bytes < 1000, "{bytes} bytes");
    }
    assert_eq!(remembered(), 1, "three snapshots of one version");
}

#[test]
fn rooms_of_other_shards_send_compressed_messages_too() {
    let mut world = World::new(2, &ON);
    let (host, id) = large_room(&mut world);
    let client = world.deflating_client(1, Format::Packed);
    // It goes to where its first room is, and enters the second from there.
    world.create(client, RequestNumber(1), false, "");
    world.joined(client);
    assert_ne!(world.shard_of(client), world.shard_of(host));
    let before = world.came(client).len();
    world.join(client, RequestNumber(2), &id);
    world.wait(200);
    let (body, bytes) = snapshot(&mut world, client, before);
    assert!(body.len() > 5000 && bytes < 1000, "{bytes} bytes");
}

#[test]
fn an_idle_connection_that_compresses_owns_no_more_than_another() {
    let mut world = World::new(1, &ON);
    let client = world.deflating_client(0, Format::Json);
    world.room(client, "ballast=5000");
    assert_eq!(world.buffered(client), 0);
}
