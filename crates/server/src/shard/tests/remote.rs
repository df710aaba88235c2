//! Several shards: connections that move, rooms elsewhere, full mailboxes.

use std::time::Duration;

use playfield_wire::client::{self, ClientMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

use super::speech::{Heard, encoded, send};
use super::world::{Client, World};
use crate::room_id::RoomId;
use crate::shard::mail::ShardMail;

const PACKED: Format = Format::Packed;

/// A room on shard 0 with a player, and a client of shard 1 that is in a room of its own there and
/// may not move any more.
fn apart(world: &mut World, options: &str) -> (Client, String, Client) {
    let host = world.client(0);
    let (_, id) = world.room(host, options);
    let visitor = world.client(1);
    let (own, _) = world.room(visitor, "sync=0 tick=0");
    assert_eq!((world.shard_of(host), world.shard_of(visitor), own), (0, 1, RoomNumber(1)));
    (host, id, visitor)
}

#[test]
fn a_connection_moves_to_its_first_room() {
    let mut world = World::new(2, &[]);
    let host = world.client(0);
    let (_, id) = world.room(host, "");
    for format in Format::ALL {
        let client = world.websocket_client(1, format);
        world.join(client, RequestNumber(1), &id);
        let (room, joined) = world.joined(client);
        assert_eq!((world.shard_of(client), &joined), (0, &id));
        let heard = world.ask(client, room, "add", "");
        assert!(matches!(heard[..], [Heard::Reply { .. }]), "{heard:?}");
    }
    assert_eq!((world.counters(0).sessions, world.counters(1).sessions), (4, 0));
    assert_eq!(world.counters(1).connections, 0);
}

#[test]
fn what_was_sent_after_the_join_moves_too() {
    let mut world = World::new(2, &[]);
    let host = world.client(0);
    let (_, id) = world.room(host, "sync=0");
    let client = world.client(1);
    let join = ClientMessage::Join(client::Join { request: RequestNumber(1), room: id.into() });
    let mut bytes = world.framed(client, &encoded(PACKED, &join));
    for nonce in 1..=3 {
        bytes.extend(
            world.framed(client, &encoded(PACKED, &ClientMessage::Ping(client::Ping { nonce }))),
        );
    }
    let (front, back) = bytes.split_at(bytes.len() - 1);
    world.bytes(client, front);
    world.bytes(client, back);
    assert_eq!(world.shard_of(client), 0);
    let heard = world.heard(client);
    let pongs: Vec<_> = heard.iter().filter(|heard| matches!(heard, Heard::Pong { .. })).collect();
    assert_eq!(pongs.len(), 3);
    assert!(heard.iter().any(|heard| matches!(heard, Heard::Joined { .. })), "{heard:?}");
}

#[test]
fn a_connection_moves_once_at_most() {
    let mut world = World::new(2, &[]);
    let (zero, one) = (world.client(0), world.client(1));
    let (_, on_zero) = world.room(zero, "");
    let (_, on_one) = world.room(one, "");
    let client = world.client(1);
    for (request, id) in [(1, &on_zero), (2, &on_one)] {
        world.join(client, RequestNumber(request), id);
        let (room, _) = world.joined(client);
        assert_eq!(world.shard_of(client), 0);
        world.say(
            client,
            &encoded(
                PACKED,
                &ClientMessage::Leave(client::Leave { request: RequestNumber(9), room }),
            ),
        );
        world.heard(client);
    }
}

#[test]
fn a_room_elsewhere_is_played_through_the_mail() {
    let mut world = World::new(2, &[]);
    let (host, id, visitor) = apart(&mut world, "");
    world.join(visitor, RequestNumber(1), &id);
    let (room, _) = world.joined(visitor);
    assert_eq!(world.shard_of(visitor), 1);
    assert_eq!(
        world.ask(visitor, room, "add", ""),
        [Heard::Reply { request: RequestNumber(77), payload: "1".into() }]
    );
    assert_eq!(world.ask(visitor, room, "refuse", "").len(), 1);
    world.say(visitor, &send(room, "shout", "hi"));
    let heard = world.heard(visitor);
    assert!(
        matches!(&heard[..], [Heard::Event { room: at, payload, .. }] if *at == room && payload == "hi")
    );
    world.wait(60);
    let heard = world.heard(visitor);
    assert!(matches!(&heard[..], [Heard::Patch { body, .. }] if body == "c=1 "), "{heard:?}");
    world.say(visitor, &encoded(PACKED, &ClientMessage::Resync(client::Resync { room })));
    assert!(matches!(world.heard(visitor)[..], [Heard::Snapshot { .. }]));
    world.say(
        visitor,
        &encoded(PACKED, &ClientMessage::Leave(client::Leave { request: RequestNumber(3), room })),
    );
    assert_eq!(
        world.heard(visitor),
        [Heard::Left { request: Some(RequestNumber(3)), room, code: ErrorCode::Left }]
    );
    world.request(visitor, room, RequestNumber(4), "add", "");
    let code = ErrorCode::NotJoined;
    assert_eq!(
        world.heard(visitor),
        [Heard::Error { request: Some(RequestNumber(4)), room: None, code }]
    );
    let heard = world.heard(host);
    assert!(
        matches!(&heard[..], [.., Heard::Event { payload, .. }] if payload == "2 leaves"),
        "{heard:?}"
    );
}

/// A node keeps little for a client that asks and does not read, wherever its room is: the answers
/// that it is behind with, and one more.
#[test]
fn one_who_asks_and_does_not_read_is_kept_little() {
    let settings = [
        ("limits.session.outbox_bytes.high", "4000"),
        ("limits.session.outbox_bytes.max", "100000"),
    ];
    for asks in ["resync", "request"] {
        let mut world = World::new(2, &settings);
        let (_, id, visitor) = apart(&mut world, "ballast=2000");
        world.join(visitor, RequestNumber(1), &id);
        let (room, _) = world.joined(visitor);
        world.takes(visitor, 0);
        let mut all = Vec::new();
        for request in 0..500 {
            let message = match asks {
                "resync" => encoded(PACKED, &ClientMessage::Resync(client::Resync { room })),
                _ => {
                    super::speech::request(PACKED, room, RequestNumber(10 + request), "big", "1000")
                }
            };
            all.extend(world.framed(visitor, &message));
        }
        world.bytes(visitor, &all);
        world.wait(500);
        let (buffered, input) = (world.buffered(visitor), all.len());
        assert!(
            buffered <= input + 16_000,
            "{asks}: {buffered} bytes are kept, of which {input} came"
        );
        // Once it reads, it gets what it asked for: every answer, and a snapshot that is no older
        // than the last question.
        world.takes(visitor, usize::MAX);
        world.wait(500);
        let heard = world.heard(visitor);
        let replies = heard.iter().filter(|heard| matches!(heard, Heard::Reply { .. })).count();
        let snapshots =
            heard.iter().filter(|heard| matches!(heard, Heard::Snapshot { .. })).count();
        match asks {
            "resync" => assert!((1..=500).contains(&snapshots), "{snapshots}"),
            _ => assert_eq!(replies, 500),
        }
        assert_eq!(
            world.ask(visitor, room, "add", ""),
            [Heard::Reply { request: RequestNumber(77), payload: "1".into() }]
        );
    }
}

#[test]
fn after_a_leave_nothing_goes_unanswered() {
    let mut world = World::new(2, &[]);
    let (_, id, visitor) = apart(&mut world, "");
    world.join(visitor, RequestNumber(1), &id);
    let (room, _) = world.joined(visitor);
    let mut all = Vec::new();
    for request in [111, 112] {
        let leave = encoded(
            PACKED,
            &ClientMessage::Leave(client::Leave { request: RequestNumber(request), room }),
        );
        all.extend(world.framed(visitor, &leave));
    }
    all.extend(
        world.framed(visitor, &super::speech::request(PACKED, room, RequestNumber(113), "add", "")),
    );
    world.bytes(visitor, &all);
    let mut heard = world.heard(visitor);
    heard.sort_by_key(|heard| matches!(heard, Heard::Left { .. }));
    let not_joined =
        |request| Heard::Error { request: Some(request), room: None, code: ErrorCode::NotJoined };
    let left = Heard::Left { request: Some(RequestNumber(111)), room, code: ErrorCode::Left };
    assert_eq!(heard, [not_joined(RequestNumber(112)), not_joined(RequestNumber(113)), left]);
}

#[test]
fn a_leave_that_crosses_the_end_of_a_room_is_answered() {
    for end in ["close", "kick"] {
        let mut world = World::new(2, &[]);
        let (host, id, visitor) = apart(&mut world, "");
        world.join(visitor, RequestNumber(1), &id);
        let (room, _) = world.joined(visitor);
        let leave = encoded(
            PACKED,
            &ClientMessage::Leave(client::Leave { request: RequestNumber(7), room }),
        );
        let (end, leave) =
            (world.framed(host, &send(RoomNumber(1), end, "2")), world.framed(visitor, &leave));
        world.each(&[(host, end), (visitor, leave)]);
        let heard = world.heard(visitor);
        let [Heard::Left { request: None, .. }, answer] = &heard[..] else { panic!("{heard:?}") };
        let code = ErrorCode::NotJoined;
        assert_eq!(*answer, Heard::Error { request: Some(RequestNumber(7)), room: None, code });
    }
}

#[test]
fn a_room_elsewhere_may_refuse_or_end() {
    let mut world = World::new(2, &[]);
    let (host, id, visitor) = apart(&mut world, "");
    world.join(visitor, RequestNumber(1), &id);
    let (room, _) = world.joined(visitor);
    world.say(host, &send(RoomNumber(1), "kick", "2"));
    assert_eq!(
        world.heard(visitor),
        [Heard::Left { request: None, room, code: ErrorCode::Kicked }]
    );
    world.say(host, &send(RoomNumber(1), "lock", ""));
    world.join(visitor, RequestNumber(2), &id);
    let code = ErrorCode::RoomLocked;
    assert_eq!(
        world.heard(visitor),
        [Heard::Error { request: Some(RequestNumber(2)), room: None, code }]
    );
    world.say(host, &send(RoomNumber(1), "close", ""));
    world.join(visitor, RequestNumber(3), &id);
    let code = ErrorCode::RoomNotFound;
    assert_eq!(
        world.heard(visitor),
        [Heard::Error { request: Some(RequestNumber(3)), room: None, code }]
    );
}

#[test]
fn a_session_that_ends_leaves_rooms_elsewhere_too() {
    let mut world = World::new(2, &[]);
    let (host, id, visitor) = apart(&mut world, "");
    world.join(visitor, RequestNumber(1), &id);
    world.joined(visitor);
    world.heard(host);
    world.vanish(visitor);
    let heard = world.heard(host);
    assert!(
        matches!(&heard[..], [Heard::Event { payload, .. }] if payload == "2 leaves"),
        "{heard:?}"
    );
    // Also when it ends before it hears that it was admitted.
    let visitor = world.client(1);
    world.room(visitor, "");
    world.space[1] = 0;
    world.join(visitor, RequestNumber(1), &id);
    world.heard(host);
    world.vanish(visitor);
    world.space[1] = usize::MAX;
    world.wait(10);
    let heard = world.heard(host);
    assert!(
        matches!(&heard[..], [Heard::Event { payload, .. }] if payload == "3 leaves"),
        "{heard:?}"
    );
}

#[test]
fn one_patch_at_most_is_on_its_way_to_another_shard() {
    let mut world = World::new(2, &[]);
    let (host, id, visitor) = apart(&mut world, "");
    world.join(visitor, RequestNumber(1), &id);
    world.joined(visitor);
    world.takes(visitor, 5);
    for _ in 0..10 {
        world.say(host, &send(RoomNumber(1), "add", ""));
        world.wait(50);
    }
    let (shard, key) = world.place_of(visitor);
    assert!(world.shards[shard].links.unsent(key).len() < 40);
    world.takes(visitor, usize::MAX);
    world.wait(1);
    let heard = world.heard(visitor);
    let bodies = heard.iter().filter_map(|heard| match heard {
        Heard::Patch { base, version, body, .. } => Some((*base, *version, body.as_str())),
        _ => None,
    });
    let bodies = bodies.collect::<Vec<_>>();
    let [(_, first, "c=1 "), (second, _, "c=10 ")] = bodies[..] else { panic!("{heard:?}") };
    assert_eq!(first, second);
}

#[test]
fn who_does_not_read_events_from_elsewhere_is_closed_too() {
    let mut world = World::new(2, &[("limits.session.outbox_bytes.max", "10000")]);
    let (host, id, visitor) = apart(&mut world, "");
    world.join(visitor, RequestNumber(1), &id);
    world.joined(visitor);
    world.takes(visitor, 0);
    let text = "x".repeat(1000);
    for _ in 0..20 {
        world.say(host, &send(RoomNumber(1), "shout", &text));
    }
    assert_eq!(world.counters(1).sessions, 0);
    let (shard, key) = world.place_of(visitor);
    assert!(world.shards[shard].links.unsent(key).len() < 10_500);
    world.takes(visitor, usize::MAX);
    let code = ErrorCode::TooSlow;
    assert_eq!(world.heard(visitor).last(), Some(&Heard::Goodbye { code }));
}

#[test]
fn while_a_mailbox_is_full_requests_are_busy_and_nothing_accepted_is_lost() {
    let mut world = World::new(2, &[]);
    let (host, id, visitor) = apart(&mut world, "");
    world.join(visitor, RequestNumber(1), &id);
    let (room, _) = world.joined(visitor);
    world.space[0] = 0;
    // Accepted before anyone could know.
    world.request(visitor, room, RequestNumber(1), "add", "");
    assert_eq!(world.heard(visitor), []);
    let code = ErrorCode::Busy;
    world.request(visitor, room, RequestNumber(2), "add", "");
    assert_eq!(
        world.heard(visitor),
        [Heard::Error { request: Some(RequestNumber(2)), room: None, code }]
    );
    // From here on it is not read.
    for number in 3..=5 {
        world.request(visitor, room, RequestNumber(number), "add", "");
    }
    assert_eq!(world.heard(visitor), []);
    world.space[0] = usize::MAX;
    world.wait(5);
    let heard = world.heard(visitor);
    let replies: Vec<_> = heard
        .iter()
        .filter_map(|heard| match heard {
            Heard::Reply { request, .. } => Some(*request),
            _ => None,
        })
        .collect();
    assert_eq!(replies, [1, 3, 4, 5].map(RequestNumber));
    world.heard(host);
    assert_eq!(
        world.ask(host, RoomNumber(1), "add", ""),
        [Heard::Reply { request: RequestNumber(77), payload: "5".into() }]
    );
}

#[test]
fn a_join_through_a_full_mailbox_is_busy() {
    for moves in [true, false] {
        let mut world = World::new(2, &[]);
        let (_, id, visitor) = apart(&mut world, "capacity=2");
        let visitor = if moves { world.client(1) } else { visitor };
        world.space[0] = 0;
        if !moves {
            // Only a shard that met a full mailbox knows of it.
            world.join(visitor, RequestNumber(1), &id);
            assert_eq!(world.heard(visitor), [], "it waits to be sent");
            let other = world.client(1);
            world.room(other, "tick=0 sync=0");
            world.join(other, RequestNumber(2), &id);
            let code = ErrorCode::RoomFull;
            assert_eq!(
                world.heard(other),
                [Heard::Error { request: Some(RequestNumber(2)), room: None, code }]
            );
        } else {
            world.join(visitor, RequestNumber(1), &id);
            let code = ErrorCode::Busy;
            assert_eq!(
                world.heard(visitor),
                [Heard::Error { request: Some(RequestNumber(1)), room: None, code }]
            );
            assert_eq!(world.shard_of(visitor), 1);
        }
        world.space[0] = usize::MAX;
        world.wait(5);
        // The seat that was reserved for it is free again, or taken by it.
        if moves {
            world.join(visitor, RequestNumber(2), &id);
        }
        world.joined(visitor);
    }
}

#[test]
fn frames_for_a_session_that_is_over_reach_nobody_else() {
    let mut world = World::new(2, &[]);
    let (host, id, visitor) = apart(&mut world, "");
    world.join(visitor, RequestNumber(1), &id);
    let (room, _) = world.joined(visitor);
    let (_, key) = world.place_of(visitor);
    world.space[1] = 0;
    world.say(host, &send(RoomNumber(1), "shout", "late"));
    world.vanish(visitor);
    // Another client has the place, and a room with the number.
    let other = world.client(1);
    world.node.directory.set_lateness(0, Duration::from_secs(1));
    world.room(other, "sync=0 tick=0");
    let (own, _) = world.room(other, "sync=0 tick=0");
    let (shard, its) = world.place_of(other);
    assert_eq!((own, shard, its.index(), its == key), (room, 1, key.index(), false));
    world.space[1] = usize::MAX;
    world.wait(100);
    assert_eq!(world.heard(other), []);
}

#[test]
fn frames_leave_as_one_piece_of_mail_that_other_mail_closes() {
    let mut world = World::new(2, &[]);
    let outbound = &mut world.shards[0].outbound;
    for bytes in [10, 0, 20] {
        outbound.frames(1, |out| out.resize(out.len() + bytes, 0));
    }
    outbound.post(1, ShardMail::Close { room: RoomId::from_random([0; 10]), text: String::new() });
    for bytes in [0, 70_000, 1, 2] {
        outbound.frames(1, |out| out.resize(out.len() + bytes, 0));
    }
    let pieces = outbound.outgoing(1).iter().map(|mail| match mail {
        ShardMail::Frames(frames) => Some(frames.len()),
        _ => None,
    });
    let expected = [Some(30), None, Some(70_000), Some(3)];
    assert_eq!(pieces.collect::<Vec<_>>(), expected, "a long piece takes no more");
}

#[test]
fn rooms_of_different_shards_write_to_each_other() {
    let mut world = World::new(2, &[]);
    let (host, there, visitor) = apart(&mut world, "");
    let heard = world.ask(visitor, RoomNumber(1), "ask", &there);
    assert_eq!(heard, [Heard::Reply { request: RequestNumber(77), payload: "1".into() }]);
    world.say(visitor, &send(RoomNumber(1), "tell", &there));
    assert!(matches!(&world.heard(host)[..], [Heard::Event { payload, .. }] if payload == "told"));
    // The room ends while the question is on its way.
    world.space[0] = 0;
    world.request(visitor, RoomNumber(1), RequestNumber(5), "ask", &there);
    world.say(host, &send(RoomNumber(1), "close", ""));
    world.request(visitor, RoomNumber(1), RequestNumber(6), "ask", &there);
    world.space[0] = usize::MAX;
    world.wait(5);
    let code = ErrorCode::RoomNotFound;
    let heard = world.heard(visitor);
    assert!(
        heard.contains(&Heard::Error { request: Some(RequestNumber(5)), room: None, code }),
        "{heard:?}"
    );
    assert!(
        heard.contains(&Heard::Error { request: Some(RequestNumber(6)), room: None, code }),
        "{heard:?}"
    );
}

#[test]
fn a_question_for_a_room_whose_mailbox_is_full_is_answered_busy() {
    let mut world = World::new(2, &[]);
    let (_, there, visitor) = apart(&mut world, "");
    world.space[0] = 0;
    world.say(visitor, &send(RoomNumber(1), "tell", &there));
    let code = ErrorCode::Busy;
    assert_eq!(
        world.ask(visitor, RoomNumber(1), "ask", &there),
        [Heard::Error { request: Some(RequestNumber(77)), room: None, code }]
    );
}

#[test]
fn joins_from_two_shards_at_once_fill_rooms_exactly() {
    let mut world = World::new(2, &[]);
    let clients: Vec<Client> = (0..40).map(|number| world.client(number % 2)).collect();
    let join = ClientMessage::JoinOrCreate(client::JoinOrCreate {
        request: RequestNumber(1),
        room_type: "test".into(),
        key: None,
        options: b"capacity=4",
    });
    // All are read in one turn of each shard, before any mail or move.
    let bytes = world.framed(clients[0], &encoded(PACKED, &join));
    world.all_at_once(&clients, &bytes);
    let mut ids: Vec<String> = clients.iter().map(|&client| world.joined(client).1).collect();
    ids.sort_unstable();
    for room in ids.chunks(4) {
        assert!(room.iter().all(|id| *id == room[0]), "{ids:?}");
    }
    ids.dedup();
    assert_eq!(ids.len(), 10, "no room too many, and none too full");
    let rooms = (world.counters(0).rooms, world.counters(1).rooms);
    assert_eq!(rooms, (5, 5), "both shards have their share");
}

#[test]
fn who_waits_for_a_room_that_cannot_be_made_gets_another() {
    let mut world = World::new(2, &[]);
    let load = world.client(0);
    world.room(load, "");
    // Both go to shard 1: the first to make a room, which fails, the second to enter it.
    let (first, second) = (world.client(0), world.client(0));
    let message = |options: &'static [u8]| {
        encoded(
            PACKED,
            &ClientMessage::JoinOrCreate(client::JoinOrCreate {
                request: RequestNumber(1),
                room_type: "test".into(),
                key: None,
                options,
            }),
        )
    };
    world.say(load, &send(RoomNumber(1), "lock", ""));
    let (bad, good) =
        (world.framed(first, &message(b"nonsense")), world.framed(second, &message(b"")));
    world.each(&[(first, bad), (second, good)]);
    let code = ErrorCode::BadPayload;
    assert_eq!(
        world.heard(first),
        [Heard::Error { request: Some(RequestNumber(1)), room: None, code }]
    );
    world.joined(second);
}

#[test]
fn a_node_with_several_shards_shuts_down() {
    let mut world = World::new(2, &[]);
    let (host, id, visitor) = apart(&mut world, "");
    world.join(visitor, RequestNumber(1), &id);
    world.joined(visitor);
    world.request(visitor, RoomNumber(2), RequestNumber(8), "add", "");
    world.shut_down();
    let code = ErrorCode::ShuttingDown;
    for client in [host, visitor] {
        assert_eq!(world.heard(client).last(), Some(&Heard::Goodbye { code }));
        world.hang_up(client);
    }
    assert!(world.shards.iter().all(|shard| shard.links.is_empty()));
}
