//! A shard's rooms as operators see them.

use std::time::Duration;

use super::world::World;
use crate::handle::operated::{Answering, RoomCost, RoomLoad, Survey};
use crate::room_id::RoomId;
use crate::shard::mail::ShardMail;

fn load(world: &mut World, id: &str) -> RoomLoad {
    let (answer, mut answered) = Answering::new();
    let rooms = vec![RoomId::parse(id).unwrap()];
    world.post(0, ShardMail::Survey(Box::new(Survey { rooms, answer })));
    answered.try_recv().unwrap().unwrap()[0].unwrap()
}

/// Past syncs say nothing about a room that rests, however long they took.
#[test]
fn the_longest_sync_of_a_room_at_rest_is_none() {
    let mut world = World::new(1, &[("rooms.check_every_syncs", "10")]);
    let client = world.client(0);
    let (room, id) = world.room(client, "tick=0");
    world.each_look_takes(Duration::from_millis(3));
    world.ask(client, room, "add", "");
    world.wait(100);
    let Some(RoomCost { sync, .. }) = load(&mut world, &id).longest else {
        panic!("it has just synced")
    };
    assert!(sync >= Duration::from_millis(3), "{sync:?}");
    // Copies are checked all the time.
    world.wait(15_000);
    assert_eq!(load(&mut world, &id).longest, None);
    world.ask(client, room, "add", "");
    world.wait(100);
    assert!(load(&mut world, &id).longest.is_some());
}

/// The frozen form of a room has nothing of what is asked of it afterwards, so nothing is answered
/// before it is known where the room goes on.
#[test]
fn what_is_asked_of_a_room_that_is_written_waits_for_the_outcome() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    let (_, id) = world.room(client, "tick=0");
    assert_eq!(world.counters(0).rooms, 1);
    let (room, text) = (RoomId::parse(&id).unwrap(), "enough".to_owned());
    world.fail_to_replace(0, ShardMail::Close { room, text });
    world.wait(100);
    assert_eq!(world.counters(0).rooms, 0);
}
