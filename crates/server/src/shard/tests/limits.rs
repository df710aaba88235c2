//! Every limit: what happens one past it, and that memory stays bounded.

use std::time::Duration;

use playfield_wire::client::{self, ClientMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

use super::speech::{Heard, encoded, request, send};
use super::world::{Client, World};

const PACKED: Format = Format::Packed;

fn refusal(request: RequestNumber, code: ErrorCode) -> Heard {
    Heard::Error { request: Some(request), room: None, code }
}

/// Returns the number of bytes that wait for a client.
fn waiting(world: &World, client: Client) -> usize {
    let (shard, key) = world.place_of(client);
    world.shards[shard].links.unsent(key).len()
}

fn list(world: &mut World, client: Client, request: RequestNumber) {
    let message = ClientMessage::List(client::List {
        request,
        room_type: None,
        filter: Vec::new(),
        limit: 0,
    });
    world.say(client, &encoded(PACKED, &message));
}

#[test]
fn a_node_has_so_many_rooms() {
    let mut world = World::new(1, &[("limits.rooms", "2")]);
    let client = world.client(0);
    let (room, _) = world.room(client, "");
    world.room(client, "");
    world.create(client, RequestNumber(1), false, "");
    assert_eq!(world.heard(client), [refusal(RequestNumber(1), ErrorCode::Limit)]);
    world.say(client, &send(room, "close", ""));
    world.heard(client);
    world.room(client, "");
}

#[test]
fn a_session_is_in_so_many_rooms() {
    let mut world = World::new(1, &[("limits.session.rooms", "2")]);
    let client = world.client(0);
    let (room, _) = world.room(client, "");
    world.join_or_create(client, RequestNumber(1), "");
    // One that is not joined yet counts too.
    world.join_or_create(client, RequestNumber(2), "");
    assert_eq!(world.heard(client), [refusal(RequestNumber(2), ErrorCode::Limit)]);
    assert_eq!(world.counters(0).joins_refused, 1);
    world.joined(client);
    world.say(
        client,
        &encoded(PACKED, &ClientMessage::Leave(client::Leave { request: RequestNumber(3), room })),
    );
    world.heard(client);
    world.join_or_create(client, RequestNumber(4), "");
    world.joined(client);
}

/// Rooms whose players are in at once, so that no time passes while they are made.
const AT_ONCE: &str = "sync=0 tick=0";

#[test]
fn a_session_creates_rooms_at_a_rate() {
    let mut world = World::new(
        1,
        &[
            ("limits.session.rooms_created.per_minute", "3"),
            ("limits.rooms", "5"),
            ("timeouts.heartbeat", "600000ms"),
        ],
    );
    let (client, other) = (world.client(0), world.client(0));
    let (_, first) = world.room(other, AT_ONCE);
    let limit = [refusal(RequestNumber(9), ErrorCode::Limit)];
    let started = world.now;
    for number in 1..=3 {
        world.create(client, RequestNumber(number), false, AT_ONCE);
        assert!(matches!(world.heard(client)[..], [Heard::Joined { .. }, ..]));
    }
    for _ in 0..10 {
        world.create(client, RequestNumber(9), false, AT_ONCE);
        assert_eq!(world.heard(client), limit);
    }
    // Rooms that are there may be joined, by their id or not.
    world.join(client, RequestNumber(4), &first);
    assert!(matches!(&world.heard(client)[..], [Heard::Joined { id, .. }, ..] if *id == first));
    world.join_or_create(client, RequestNumber(9), AT_ONCE);
    assert_eq!(world.heard(client), limit, "it is in all rooms that there are");
    assert_eq!((world.counters(0).creations_refused, world.counters(0).rooms_refused), (11, 0));
    // What was refused left nothing behind: there is space for one more room, and a seat in it.
    world.heard(other);
    let (_, last) = world.room(other, AT_ONCE);
    world.create(other, RequestNumber(9), false, AT_ONCE);
    assert_eq!(world.heard(other), limit, "limits.rooms, for anyone");
    assert_eq!(world.counters(0).rooms_refused, 1);
    world.join_or_create(client, RequestNumber(5), AT_ONCE);
    assert!(matches!(&world.heard(client)[..], [Heard::Joined { id, .. }, ..] if *id == last));

    world.say(other, &send(RoomNumber(1), "close", ""));
    world.wait(19_900 - (world.now - started).as_millis() as u64);
    world.heard(client);
    world.join_or_create(client, RequestNumber(9), AT_ONCE);
    assert_eq!(world.heard(client), limit);
    world.wait(200);
    world.join_or_create(client, RequestNumber(6), AT_ONCE);
    assert!(matches!(
        world.heard(client)[..],
        [Heard::Joined { request: RequestNumber(6), .. }, ..]
    ));
    world.create(client, RequestNumber(9), false, AT_ONCE);
    assert_eq!(world.heard(client), limit, "one was back, and no more");
}

#[test]
fn a_shard_whose_rooms_are_late_takes_no_more_until_they_are_on_time() {
    let mut world = World::new(1, &[("rooms.lateness", "8ms"), ("rooms.busy_percent", "0")]);
    let (client, other) = (world.client(0), world.client(0));
    let (_, id) = world.room(client, "tick=50 sync=50");
    let busy = |number| [refusal(RequestNumber(number), ErrorCode::Busy)];
    world.each_look_takes(Duration::from_millis(3));

    let held_up = |world: &mut World, milliseconds| {
        for _ in 0..5000 / milliseconds {
            world.oversleep(milliseconds);
            world.run();
        }
    };
    held_up(&mut world, 24);
    world.create(other, RequestNumber(1), false, AT_ONCE);
    assert_eq!(world.heard(other), busy(1));
    world.join(other, RequestNumber(2), &id);
    world.wait(20);
    assert!(matches!(&world.heard(other)[..], [Heard::Joined { .. }, ..]), "players still come");
    let third = world.client(0);
    held_up(&mut world, 37);
    world.join(third, RequestNumber(1), &id);
    assert_eq!(world.heard(third), busy(1));
    assert_eq!(world.counters(0).joins_refused_late, 2);

    world.wait(4000);
    world.heard(other);
    world.create(other, RequestNumber(3), false, AT_ONCE);
    assert!(matches!(&world.heard(other)[..], [Heard::Joined { .. }, ..]), "it has recovered");
}

/// A shard with this share of work has turns for so long, 50 in a second.
fn be_busy(world: &mut World, percent: u64, milliseconds: u64) {
    for _ in 0..milliseconds / 20 {
        world.oversleep(20);
        world.shards[0].env.waited(Duration::from_micros(200 * (100 - percent)));
        world.run();
    }
}

#[test]
fn a_shard_gets_rooms_until_they_will_take_most_of_its_time() {
    let settings = [("rooms.lateness", "0ms"), ("rooms.busy_percent", "80")];
    let mut world = World::new(1, &settings);
    let (client, other) = (world.client(0), world.client(0));
    let (_, id) = world.room(client, "tick=50 sync=50");
    let busy = |number| [refusal(RequestNumber(number), ErrorCode::Busy)];
    let has_joined = |world: &mut World| {
        world.wait(20);
        world.heard(other).iter().any(|heard| matches!(heard, Heard::Joined { .. }))
    };
    let is_made = |world: &mut World, number| {
        world.create(other, RequestNumber(number), false, "tick=50 sync=50");
        has_joined(world)
    };
    // Each turn works, as far as the stopwatch says.
    world.each_look_takes(Duration::from_millis(3));

    be_busy(&mut world, 30, 2000);
    assert!(is_made(&mut world, 1) && is_made(&mut world, 2), "30 %, and as much for one more");
    world.create(other, RequestNumber(3), false, AT_ONCE);
    assert_eq!(world.heard(other), busy(3), "three take 90 %");
    world.join(other, RequestNumber(4), &id);
    assert!(has_joined(&mut world), "players still come");
    assert_eq!(world.counters(0).rooms_refused_busy, 1);

    be_busy(&mut world, 60, 2000);
    assert!(is_made(&mut world, 5), "they take less than was thought");
    be_busy(&mut world, 80, 2000);
    assert!(!is_made(&mut world, 6));
    be_busy(&mut world, 79, 2000);
    assert!(is_made(&mut world, 7), "it has recovered");
}

#[test]
fn a_single_long_turn_of_an_idle_shard_refuses_no_room() {
    let settings = [("rooms.lateness", "0ms"), ("rooms.busy_percent", "80")];
    let mut world = World::new(1, &settings);
    let (client, other) = (world.client(0), world.client(0));
    world.room(client, "tick=50 sync=50");
    world.each_look_takes(Duration::from_millis(3));
    be_busy(&mut world, 5, 2000);
    for (number, long_ms) in [(1, 400), (2, 3000)] {
        world.oversleep(long_ms);
        world.run();
        world.create(other, RequestNumber(number), false, AT_ONCE);
        assert!(matches!(world.heard(other)[..], [Heard::Joined { .. }, ..]), "{long_ms} ms");
        be_busy(&mut world, 5, 600);
        world.create(other, RequestNumber(number + 10), false, AT_ONCE);
        assert!(matches!(world.heard(other)[..], [Heard::Joined { .. }, ..]), "{long_ms} ms");
    }
}

#[test]
fn a_session_takes_along_to_another_shard_what_it_has_used_up() {
    let mut world = World::new(
        2,
        &[("limits.session.rooms_created.per_minute", "1"), ("tuning.lists.per_second", "1")],
    );
    let (host, client) = (world.client(1), world.client(1));
    world.room(host, AT_ONCE);
    list(&mut world, client, RequestNumber(1));
    assert!(matches!(world.heard(client)[..], [Heard::Listed { .. }]));
    world.create(client, RequestNumber(2), false, AT_ONCE);
    assert_eq!(world.shard_of(client), 0, "where less is to do");
    world.heard(client);
    list(&mut world, client, RequestNumber(3));
    world.create(client, RequestNumber(4), false, AT_ONCE);
    assert_eq!(
        world.heard(client),
        [refusal(RequestNumber(3), ErrorCode::Limit), refusal(RequestNumber(4), ErrorCode::Limit)]
    );
}

#[test]
fn a_session_lists_rooms_at_a_rate() {
    let mut world = World::new(1, &[("tuning.lists.per_second", "3")]);
    let (client, other) = (world.client(0), world.client(0));
    for number in 1..=5 {
        list(&mut world, client, RequestNumber(number));
    }
    let heard = world.heard(client);
    let listed = |request| Heard::Listed { request, ids: Vec::new() };
    assert_eq!(
        heard[..3],
        [listed(RequestNumber(1)), listed(RequestNumber(2)), listed(RequestNumber(3))]
    );
    assert_eq!(
        heard[3..],
        [refusal(RequestNumber(4), ErrorCode::Limit), refusal(RequestNumber(5), ErrorCode::Limit)]
    );
    list(&mut world, other, RequestNumber(1));
    assert_eq!(world.heard(other), [listed(RequestNumber(1))], "each session for itself");
    world.wait(334);
    list(&mut world, client, RequestNumber(6));
    list(&mut world, client, RequestNumber(7));
    assert_eq!(
        world.heard(client),
        [listed(RequestNumber(6)), refusal(RequestNumber(7), ErrorCode::Limit)]
    );
}

#[test]
fn a_session_asks_for_schemas_at_a_rate() {
    let mut world = World::new(1, &[("tuning.schemas.per_second", "1")]);
    let client = world.client(0);
    for request in [1, 2] {
        let message = ClientMessage::Schema(client::Schema {
            request: RequestNumber(request),
            room_type: "test".into(),
        });
        world.say(client, &encoded(PACKED, &message));
    }
    let heard = world.heard(client);
    assert!(matches!(heard[0], Heard::Schema { request: Some(RequestNumber(1)), .. }));
    assert_eq!(heard[1..], [refusal(RequestNumber(2), ErrorCode::Limit)]);
}

#[test]
fn so_many_requests_are_unanswered() {
    let mut world = World::new(1, &[("limits.session.requests", "3")]);
    let client = world.client(0);
    let (room, _) = world.room(client, "");
    for number in 1..=4 {
        world.request(client, room, RequestNumber(number), "later", "");
    }
    assert_eq!(world.heard(client), [refusal(RequestNumber(4), ErrorCode::Limit)]);
    world.say(client, &send(room, "answer", ""));
    assert_eq!(world.heard(client).len(), 3);
    world.request(client, room, RequestNumber(4), "later", "");
    assert_eq!(world.heard(client), []);
}

#[test]
fn so_many_rooms_are_listed() {
    let mut world = World::new(1, &[("limits.listed.rooms", "2")]);
    let client = world.client(0);
    for _ in 0..3 {
        world.room(client, "");
    }
    for limit in [0, 3] {
        let message = ClientMessage::List(client::List {
            request: RequestNumber(1),
            room_type: None,
            filter: Vec::new(),
            limit,
        });
        world.say(client, &encoded(PACKED, &message));
        assert!(matches!(&world.heard(client)[..], [Heard::Listed { ids, .. }] if ids.len() == 2));
    }
}

#[test]
fn a_head_has_so_many_bytes() {
    let mut world = World::new(1, &[("http.head_bytes", "256")]);
    let client = world.connect(0);
    world.bytes(client, &[&b"GET / HTTP/1.1\r\nHost: "[..], &[b'x'; 300]].concat());
    assert!(world.raw(client).starts_with(b"HTTP/1.1 431 "));
    assert!(world.is_over(client));
    assert_eq!(world.counters(0).http_heads_too_large, 1);
}

#[test]
fn the_length_of_a_name_counts_bytes() {
    let mut world = World::new(1, &[("limits.name_bytes.player", "4")]);
    for (name, is_taken) in [("ääää", false), ("ää", true)] {
        let client = world.connect(0);
        world.bytes(client, b"PF1\n");
        let hello = playfield_wire::client::Hello {
            name: name.into(),
            ..playfield_wire::client::Hello::new(PACKED)
        };
        world.say(client, &encoded(PACKED, &ClientMessage::Hello(hello)));
        assert_eq!(matches!(world.heard(client)[..], [Heard::Welcome { .. }]), is_taken, "{name}");
    }
}

#[test]
fn the_outbox_closes_who_does_not_read_its_events() {
    let mut world = World::new(1, &[("limits.session.outbox_bytes.max", "10000")]);
    let (speaker, deaf) = (world.client(0), world.client(0));
    let (room, id) = world.room(speaker, "");
    world.join(deaf, RequestNumber(1), &id);
    world.joined(deaf);
    world.takes(deaf, 0);
    let text = "x".repeat(1000);
    for _ in 0..9 {
        world.say(speaker, &send(room, "shout", &text));
    }
    assert!(!world.is_over(deaf) && waiting(&world, deaf) < 10_000);
    assert_eq!(world.counters(0).sessions, 2);
    for _ in 0..100 {
        world.say(speaker, &send(room, "shout", &text));
        assert!(waiting(&world, deaf) < 10_500);
    }
    assert_eq!(world.counters(0).sessions, 1);
    let heard = world.heard(speaker);
    assert!(
        matches!(&heard[..], [.., Heard::Event { .. }]) && heard.len() > 109,
        "the other plays on"
    );
    world.takes(deaf, usize::MAX);
    let heard = world.heard(deaf);
    let code = ErrorCode::TooSlow;
    let [events @ .., error, goodbye] = &heard[..] else { panic!("{heard:?}") };
    assert!(events.iter().all(|heard| matches!(heard, Heard::Event { .. })) && events.len() == 9);
    assert_eq!(
        (error, goodbye),
        (&Heard::Error { request: None, room: None, code }, &Heard::Goodbye { code })
    );
    assert!(world.is_over(deaf));
    assert_eq!(world.counters(0).closed_too_slow, 1);
}

#[test]
fn a_full_outbox_stops_reading_from_who_does_not_read() {
    let mut world = World::new(1, &[("limits.session.outbox_bytes.high", "5000")]);
    let client = world.client(0);
    let (room, _) = world.room(client, "");
    world.takes(client, 0);
    let bytes: Vec<u8> = (0..1000)
        .flat_map(|number| {
            world.framed(client, &request(PACKED, room, RequestNumber(number), "big", "1000"))
        })
        .collect();
    world.bytes(client, &bytes);
    assert!(waiting(&world, client) < 7000, "{}", waiting(&world, client));
    for _ in 0..10 {
        world.bytes(client, &bytes);
        world.wait(1000);
        assert!(waiting(&world, client) < 7000, "{}", waiting(&world, client));
    }
    world.takes(client, usize::MAX);
    assert_eq!(world.heard(client).len(), 11_000, "nothing of it is lost");
}

#[test]
fn a_reply_larger_than_the_outbox_reaches_who_reads() {
    let mut world = World::new(
        1,
        &[("limits.session.outbox_bytes.max", "1024"), ("limits.session.outbox_bytes.high", "100")],
    );
    let client = world.client(0);
    let (room, _) = world.room(client, "");
    for _ in 0..3 {
        let heard = world.ask(client, room, "big", "100000");
        assert!(matches!(&heard[..], [Heard::Reply { payload, .. }] if payload.len() == 100_000));
    }
}

#[test]
fn compute_queues_are_bounded_and_say_so() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    let (room, _) = world.room(client, "");
    for number in 1..=3 {
        world.request(client, room, RequestNumber(number), "compute", "x");
    }
    let heard = world.heard(client);
    assert!(matches!(heard[..], [Heard::Reply { .. }, Heard::Reply { .. }, _]));
    assert_eq!(heard[2], refusal(RequestNumber(3), ErrorCode::Busy));
}

#[test]
fn the_mailbox_bounds_mail_between_rooms_of_a_shard() {
    let mut world = World::new(1, &[("limits.queues.mail", "2")]);
    let client = world.client(0);
    let (room, id) = world.room(client, "");
    // All of these are handled in one turn, before any mail is delivered.
    let bytes: Vec<u8> = (1..=4)
        .flat_map(|number| {
            world.framed(client, &request(PACKED, room, RequestNumber(number), "ask", &id))
        })
        .collect();
    world.bytes(client, &bytes);
    // The room answers all that wait as soon as any answer comes; here, those that were not
    // delivered come first.
    let heard = world.heard(client);
    assert_eq!(heard.len(), 4);
    assert_eq!(world.counters(0).mail_dropped, 2);
}

#[test]
fn an_idle_connection_owns_no_buffer() {
    let mut world = World::new(1, &[]);
    for client in [world.client(0), world.websocket_client(0, Format::Json)] {
        let (room, _) = world.room(client, "");
        world.ask(client, room, "big", "10000");
        world.bytes(client, &[]);
        assert_eq!(world.buffered(client), 0);
        let message = world.framed(client, &send(room, "add", ""));
        let (front, back) = message.split_at(3);
        world.bytes(client, front);
        assert!(
            (1..=8).contains(&world.buffered(client)),
            "a partial frame is kept, and nothing else"
        );
        if client == 0 {
            world.bytes(client, back);
            assert_eq!(world.buffered(client), 0);
        }
    }
}

fn snapshots(world: &mut World, client: Client) -> usize {
    world.heard(client).iter().filter(|heard| matches!(heard, Heard::Snapshot { .. })).count()
}

/// Requests past the rate are answered by one snapshot, when it may be sent: wherever the room is,
/// and whether it has syncs of its own or none.
#[test]
fn snapshots_past_the_rate_wait() {
    for (shard, options) in [(0, ""), (0, AT_ONCE), (1, ""), (1, AT_ONCE)] {
        let mut world = World::new(2, &[("limits.session.snapshots.per_second", "2")]);
        let host = world.client(0);
        let (_, id) = world.room(host, options);
        // Someone who is in a room of their shard stays there.
        let client = world.client(shard);
        if shard == 1 {
            world.room(client, options);
        }
        world.join(client, RequestNumber(1), &id);
        let (room, _) = world.joined(client);
        let resync =
            world.framed(client, &encoded(PACKED, &ClientMessage::Resync(client::Resync { room })));
        // The one that it came in with counts, too.
        world.wait(1000);

        world.bytes(client, &resync.repeat(2));
        assert_eq!(snapshots(&mut world, client), 1, "{shard} {options}: one for both at once");
        world.bytes(client, &resync);
        assert_eq!(snapshots(&mut world, client), 1);
        world.bytes(client, &resync);
        assert_eq!(snapshots(&mut world, client), 0, "one past the limit waits");
        world.bytes(client, &resync.repeat(50));
        world.wait(499);
        assert_eq!(snapshots(&mut world, client), 0);
        world.wait(2);
        assert_eq!(snapshots(&mut world, client), 1, "one for all, with nothing more asked");
        world.wait(3000);
        assert_eq!(snapshots(&mut world, client), 0);
        for _ in 0..3 {
            world.bytes(client, &resync);
        }
        assert_eq!(snapshots(&mut world, client), 2, "the allowance is back");
    }
}

#[test]
fn a_resync_that_waits_is_forgotten_with_its_player_and_kept_for_one_who_does_not_read() {
    let mut world = World::new(1, &[("limits.session.snapshots.per_second", "1")]);
    let host = world.client(0);
    let (_, id) = world.room(host, AT_ONCE);
    let (gone, slow) = (world.client(0), world.client(0));
    for client in [gone, slow] {
        world.join(client, RequestNumber(1), &id);
        world.joined(client);
    }
    world.wait(1000);
    for client in [gone, slow] {
        let resync = world.framed(
            client,
            &encoded(PACKED, &ClientMessage::Resync(client::Resync { room: RoomNumber(1) })),
        );
        for _ in 0..2 {
            world.bytes(client, &resync);
        }
        assert_eq!(snapshots(&mut world, client), 1);
    }
    world.say(
        gone,
        &encoded(
            PACKED,
            &ClientMessage::Leave(client::Leave { request: RequestNumber(2), room: RoomNumber(1) }),
        ),
    );
    world.takes(slow, 0);
    // An event is stuck on its way when the time has come.
    world.say(host, &send(RoomNumber(1), "shout", "hi"));
    world.wait(1500);
    assert_eq!((snapshots(&mut world, gone), snapshots(&mut world, slow)), (0, 0));
    world.takes(slow, usize::MAX);
    assert_eq!(snapshots(&mut world, slow), 1);
}

/// Joins, asks for five snapshots, leaves and joins again, from one room to the next, for three
/// seconds: how many snapshots that drew, and the milliseconds that the slowest join took.
fn draw(world: &mut World, client: Client, ids: &[String]) -> (usize, u64) {
    let (mut drawn, mut slowest, mut joins, mut asked_at) = (0, 0, 0, 0);
    world.join(client, RequestNumber(1), &ids[0]);
    for ms in 0..3000 {
        for heard in world.heard(client) {
            match heard {
                Heard::Snapshot { .. } => drawn += 1,
                Heard::Joined { room, .. } => {
                    slowest = slowest.max(ms - asked_at);
                    let resync = world.framed(
                        client,
                        &encoded(PACKED, &ClientMessage::Resync(client::Resync { room })),
                    );
                    let leave = encoded(
                        PACKED,
                        &ClientMessage::Leave(client::Leave { request: RequestNumber(2), room }),
                    );
                    world.bytes(client, &[resync.repeat(5), world.framed(client, &leave)].concat());
                }
                Heard::Left { .. } => {
                    (joins, asked_at) = (joins + 1, ms);
                    world.join(client, RequestNumber(1), &ids[joins % ids.len()]);
                }
                Heard::Error { .. } => panic!("{heard:?}"),
                _ => {}
            }
        }
        world.wait(1);
    }
    (drawn, slowest)
}

/// A player who leaves and comes back, or goes to another room, is sent no more snapshots than one
/// who stays, and is admitted, only later.
#[test]
fn the_rate_of_snapshots_holds_from_seat_to_seat() {
    for (shard, options) in [(0, ""), (0, AT_ONCE), (1, ""), (1, AT_ONCE)] {
        for rooms in [1, 2, 7] {
            let mut world = World::new(2, &[]);
            let ids: Vec<String> = (0..rooms)
                .map(|_| {
                    let host = world.client(0);
                    let (_, id) = world.room(host, options);
                    id
                })
                .collect();
            let client = world.client(shard);
            if shard == 1 {
                world.room(client, AT_ONCE);
            }
            let (drawn, slowest) = draw(&mut world, client, &ids);
            assert!(
                (14..=20).contains(&drawn),
                "{drawn} in {rooms} rooms {shard} {options}: 5, and 5 a second"
            );
            assert!(slowest <= 260, "{slowest} ms, past the rate's 200 and a sync's 50");
        }
    }
}

#[test]
fn rooms_that_are_left_and_joined_now_and_then_are_joined_at_once() {
    let mut world = World::new(1, &[]);
    let hosts = [world.client(0), world.client(0)];
    let ids = hosts.map(|host| (0..16).map(|_| world.room(host, AT_ONCE).1).collect::<Vec<_>>());
    let client = world.client(0);
    for sixteen in ids {
        for (request, id) in (1..).zip(&sixteen) {
            world.join(client, RequestNumber(request), id);
            assert!(matches!(
                world.heard(client)[..],
                [Heard::Joined { .. }, Heard::Snapshot { .. }, ..]
            ));
        }
        for (room, _) in world.rooms_of(client) {
            world.say(
                client,
                &encoded(
                    PACKED,
                    &ClientMessage::Leave(client::Leave { request: RequestNumber(99), room }),
                ),
            );
            assert!(matches!(world.heard(client)[..], [Heard::Left { .. }]));
        }
    }
}
