//! Histories of clients that are sent more than a session keeps: what they are told to have lost is
//! what they miss, by room, wherever their connections are cut.

use playfield_wire::server::Lost;
use playfield_wire::{Format, RoomNumber};

use super::cuts::Dice;
use super::wanderer::{Return, Wanderer};
use super::world::World;

const ROOMS: usize = 3;

/// Counts what a client has heard, missed and was told to have lost in a room.
fn tally(client: &Wanderer, room: RoomNumber) -> (u64, u64, u64) {
    let start = format!("{room}: ");
    let heard = client.heard.iter().filter(|heard| heard.starts_with(&start)).count() as u64;
    let lost = client.lost.iter().filter(|lost| lost.room == Some(room));
    (heard, client.rooms[&room].missed, lost.map(|lost| lost.messages).sum())
}

#[test]
fn what_is_lost_while_rooms_alternate_is_told_by_room() {
    let mut world = World::new(1, &[("limits.session.resume_bytes", "8192")]);
    let mut ann = Wanderer::new(&mut world, 0, false, Format::Packed);
    let mut ben = Wanderer::new(&mut world, 0, true, Format::Json);
    let rooms = [0, 1].map(|_| ann.room(&mut world, ""));
    let there = rooms.map(|room| ben.join(&mut world, &ann.rooms[&room].id.clone()));
    ann.listen(&mut world);
    ann.acknowledge(&mut world);
    ann.heard.clear();
    ann.cut(&mut world, usize::MAX);
    let mut say = |world: &mut World, room| {
        ben.request(world, room, 1, "shout", "gone");
        ben.acknowledge(world);
    };
    for _ in 0..200 {
        say(&mut world, there[0]);
        say(&mut world, there[1]);
    }
    for _ in 0..600 {
        say(&mut world, there[1]);
    }
    assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
    let (heard, missed, lost) = tally(&ann, rooms[1]);
    assert_eq!((heard + missed, missed), (800, lost));
    assert_eq!(
        ann.lost,
        [
            Lost { room: Some(rooms[0]), messages: 200 },
            Lost { room: Some(rooms[1]), messages: lost },
        ]
    );
    // The gap in the other room is explained, too.
    say(&mut world, there[0]);
    ann.listen(&mut world);
    assert_eq!(tally(&ann, rooms[0]), (1, 200, 200));
}

#[test]
fn what_a_session_lost_in_rooms_that_alternate_is_told_however_long_nothing_is_confirmed() {
    let settings =
        [("limits.session.resume_bytes", "100"), ("limits.session.messages.per_second", "0")];
    for is_away in [true, false] {
        let mut world = World::new(1, &settings);
        let mut ann = Wanderer::new(&mut world, 0, false, Format::Packed);
        let mut ben = Wanderer::new(&mut world, 0, false, Format::Packed);
        let rooms = [0, 1].map(|_| ann.room(&mut world, ""));
        let there = rooms.map(|room| ben.join(&mut world, &ann.rooms[&room].id.clone()));
        ann.listen(&mut world);
        ann.acknowledge(&mut world);
        // It reads, and never says so.
        for _ in 0..2_000 {
            for room in there {
                ben.request(&mut world, room, 1, "shout", "x");
            }
            ben.acknowledge(&mut world);
            world.raw(ann.client);
        }
        if is_away {
            ann.cut(&mut world, 0);
        }
        assert_eq!(world.sessions(), (2, u64::from(is_away)));
        assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
        assert_eq!((world.sessions(), world.members()), ((2, 0), 4), "it is in its rooms");
    }
}

#[test]
fn what_clients_miss_is_what_they_are_told_wherever_connections_are_cut() {
    let cases = std::env::var("PLAYFIELD_LAW_CASES").ok().and_then(|cases| cases.parse().ok());
    for seed in 0..cases.unwrap_or(40) {
        history(seed);
    }
}

fn history(seed: u64) {
    let mut dice = Dice(seed);
    let shards = 1 + dice.index(3);
    let bytes_max = (40 + dice.index(40) * dice.index(40)).to_string();
    let mut world = World::new(shards, &[("limits.session.resume_bytes", &bytes_max)]);
    world.pace = seed.is_multiple_of(2).then_some(seed);
    let mut hosts = Vec::new();
    for room in 0..ROOMS {
        let mut host = Wanderer::new(&mut world, room % shards, false, Format::Packed);
        let number = host.room(&mut world, "");
        let id = host.rooms[&number].id.clone();
        hosts.push((host, number, id, 0));
    }
    let kinds = [(false, Format::Packed), (true, Format::Json), (false, Format::Msgpack)];
    let mut clients = kinds.map(|(is_websocket, format)| {
        let mut client = Wanderer::new(&mut world, dice.index(shards), is_websocket, format);
        let rooms = [0, 1, 2].map(|room| client.join(&mut world, &hosts[room].2));
        (client, rooms)
    });
    for (client, _) in &mut clients {
        client.listen(&mut world);
        client.acknowledge(&mut world);
        // Others have joined.
        client.heard.clear();
    }
    for _ in 0..60 {
        let (client, _) = &mut clients[dice.index(kinds.len())];
        match dice.roll(4) {
            0 if client.is_welcome() => {
                let bytes = dice.index(2_000);
                client.cut(&mut world, bytes);
            }
            0 => {
                world.vanish(client.client);
                let pace = world.pace.take();
                client.begin_return_at(&mut world, 0, pace);
            }
            1 => {
                client.listen(&mut world);
                client.acknowledge(&mut world);
            }
            2 => world.takes(client.client, if dice.roll(2) == 0 { usize::MAX } else { 0 }),
            _ => {
                for _ in 0..dice.roll(40) {
                    let (host, number, _, said) = &mut hosts[dice.index(ROOMS)];
                    host.request(&mut world, *number, 1, "shout", "word");
                    host.acknowledge(&mut world);
                    *said += 1;
                }
                world.wait(60);
            }
        }
    }
    world.pace = None;
    world.run();
    for (client, _) in &mut clients {
        world.takes(client.client, usize::MAX);
        client.listen(&mut world);
        while !client.is_welcome() {
            world.vanish(client.client);
            client.come_back(&mut world, 0);
            world.wait(100);
            client.listen(&mut world);
        }
    }
    for (host, number, _, said) in &mut hosts {
        host.request(&mut world, *number, 1, "shout", "last");
        *said += 1;
    }
    world.wait(3_000);
    for (client, rooms) in &mut clients {
        client.listen(&mut world);
        assert!(client.is_welcome(), "{seed}: {:?} {:?}", client.returned, client.goodbye);
        for (room, (.., said)) in rooms.iter().zip(&hosts) {
            let (heard, missed, lost) = tally(client, *room);
            assert_eq!((heard + missed, missed), (*said, lost), "{seed}: {:?}", client.lost);
        }
    }
}
