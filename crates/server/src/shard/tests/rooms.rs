//! Rooms and their players: joining, syncs, events, leaving, ending, background work, mail.

use playfield_wire::client::{self, ClientMessage};
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

use super::room::EMPTY;
use super::speech::{Heard, encoded, send};
use super::world::{Client, World};

const PACKED: Format = Format::Packed;

fn patches(heard: &[Heard]) -> Vec<(u64, u64, &str)> {
    let patch = |heard| match heard {
        &Heard::Patch { base, version, ref body, .. } => Some((base, version, body.as_str())),
        _ => None,
    };
    heard.iter().filter_map(patch).collect()
}

fn events(heard: &[Heard]) -> Vec<(u64, &str)> {
    let event = |heard| match heard {
        &Heard::Event { sequence, ref payload, .. } => Some((sequence, payload.as_str())),
        _ => None,
    };
    heard.iter().filter_map(event).collect()
}

/// Two players in one room of this kind.
fn two(world: &mut World, options: &str) -> (Client, Client, RoomNumber, String) {
    let (one, other) = (world.client(0), world.client(0));
    let (room, id) = world.room(one, options);
    world.join(other, RequestNumber(1), &id);
    world.joined(other);
    world.heard(one);
    (one, other, room, id)
}

#[test]
fn joined_and_the_snapshot_come_with_the_next_sync_and_events_after_them() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    world.join_or_create(client, RequestNumber(1), "");
    assert_eq!(world.heard(client), [], "not before the room's next sync");
    world.wait(51);
    let heard = world.heard(client);
    let [joined, snapshot, event] = &heard[..] else { panic!("{heard:?}") };
    assert!(matches!(
        joined,
        Heard::Joined { request: RequestNumber(1), room: RoomNumber(1), player: 1, .. }
    ));
    assert_eq!(
        *snapshot,
        Heard::Snapshot { room: RoomNumber(1), version: 2, body: "c=0 s=0 ".into() }
    );
    assert_eq!(
        *event,
        Heard::Event { room: RoomNumber(1), sequence: 1, payload: "ann joins".into() }
    );
}

#[test]
fn a_room_knows_who_asks_for_it_to_be_created() {
    let mut world = World::new(2, &[]);
    for shard in 0..2 {
        let client = world.client(shard);
        world.create(client, RequestNumber(1), false, "only=bob");
        let code = ErrorCode::Refused;
        assert_eq!(
            world.heard(client),
            [Heard::Error { request: Some(RequestNumber(1)), room: None, code }]
        );
        world.room(client, "only=ann");
    }
}

#[test]
fn events_of_a_join_that_was_refused_reach_only_the_others() {
    let mut world = World::new(1, &[]);
    let (one, other) = (world.client(0), world.client(0));
    let (room, id) = world.room(one, "");
    world.ask(one, room, "lock", "");
    world.join(other, RequestNumber(1), &id);
    world.wait(100);
    let code = ErrorCode::RoomLocked;
    assert_eq!(
        world.heard(other),
        [Heard::Error { request: Some(RequestNumber(1)), room: None, code }]
    );
}

#[test]
fn a_room_without_a_sync_rate_makes_joins_known_at_once_and_syncs_on_demand() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    world.create(client, RequestNumber(1), false, "sync=0 tick=0");
    let heard = world.heard(client);
    assert!(
        matches!(&heard[..], [Heard::Joined { .. }, Heard::Snapshot { .. }, Heard::Event { .. }]),
        "{heard:?}"
    );
    world.ask(client, RoomNumber(1), "add", "");
    world.wait(500);
    assert_eq!(world.heard(client), []);
    let heard = world.ask(client, RoomNumber(1), "sync", "");
    assert!(matches!(patches(&heard)[..], [(1, _, "c=1 ")]), "{heard:?}");
}

/// The messages to `one` do not depend on secret acts of `other`, however often these are synced.
#[test]
fn versions_do_not_tell_of_secret_acts() {
    for options in ["sync=0 tick=0", "sync=20"] {
        let hear = |secrets: usize, blocked: bool| {
            let settings = [("rooms.check_every_syncs", "1")];
            let mut world = World::new(1, &settings);
            let (one, other, room, _) = two(&mut world, options);
            world.wait(60);
            if blocked {
                world.takes(one, 3);
                world.ask(other, room, "add", "");
                world.ask(other, room, "sync", "");
            }
            for _ in 0..secrets {
                world.ask(other, room, "secret", "");
                world.ask(other, room, "sync", "");
            }
            world.say(other, &send(room, "shout", "now"));
            world.takes(one, usize::MAX);
            world.ask(other, room, "add", "");
            world.ask(other, room, "sync", "");
            world.wait(60);
            world.came(one).to_vec()
        };
        for blocked in [false, true] {
            assert_eq!(hear(0, blocked), hear(7, blocked), "{options}, blocked: {blocked}");
        }
    }
}

#[test]
fn an_event_names_the_version_that_holds_all_that_was_synced_before_it() {
    for is_slow in [false, true] {
        let mut world = World::new(1, &[]);
        let (one, other, room, _) = two(&mut world, "sync=0 tick=0");
        let tell = |world: &mut World, name| {
            world.ask(other, room, name, "");
            world.ask(other, room, "sync", "");
        };
        world.heard(one);
        tell(&mut world, "add");
        let heard = world.bodies(one);
        let base = version_of(heard.last().unwrap());
        if is_slow {
            world.takes(one, 1);
            tell(&mut world, "add");
            world.bodies(one);
        }
        tell(&mut world, "add");
        world.say(other, &send(room, "shout", "now"));
        world.takes(one, usize::MAX);
        let versions: Vec<u64> = world.bodies(one).iter().map(|body| version_of(body)).collect();
        let [patch, rest @ ..] = &versions[..] else { panic!("{versions:?}") };
        assert!(*patch > base);
        match rest {
            [event] if !is_slow => assert_eq!(event, patch, "the copy holds it all"),
            [event, last] if is_slow => {
                assert!(event > patch && event <= last, "{event} is in the patch to {last}");
            }
            _ => panic!("{versions:?}"),
        }
    }
}

/// The version in a patch or an event.
fn version_of(body: &[u8]) -> u64 {
    match ServerMessage::decode(PACKED, body).unwrap() {
        ServerMessage::Patch(server::Patch { version, .. })
        | ServerMessage::Event(server::Event { version, .. }) => version,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_room_without_a_sync_rate_is_checked_by_the_clock_with_what_it_sends() {
    let mut world = World::new(1, &[("rooms.check_every_syncs", "100")]);
    let client = world.client(0);
    let (room, _) = world.room(client, "sync=0 tick=0");
    let mut checks = Vec::new();
    for _ in 0..60 {
        world.ask(client, room, "add", "");
        for heard in world.ask(client, room, "sync", "") {
            match heard {
                Heard::Patch { version, .. } => checks.push((version, 0)),
                Heard::Check { version, .. } => checks.push((version, 1)),
                _ => {}
            }
        }
        world.wait(500);
    }
    let checked: Vec<u64> = checks.iter().filter(|(_, is)| *is == 1).map(|(at, _)| *at).collect();
    assert!((5..=6).contains(&checked.len()), "every five seconds of thirty: {checked:?}");
}

#[test]
fn a_sync_on_demand_comes_before_the_regular_one() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    let (room, _) = world.room(client, "sync=1");
    world.wait(1000);
    world.heard(client);
    world.ask(client, room, "add", "");
    let heard = world.ask(client, room, "sync", "");
    assert!(matches!(heard[..], [Heard::Reply { .. }, Heard::Patch { .. }]), "{heard:?}");
}

#[test]
fn a_patch_leads_from_the_version_last_sent_and_players_see_only_their_own() {
    let mut world = World::new(1, &[]);
    let (one, other, room, _) = two(&mut world, "");
    world.ask(one, room, "secret", "");
    world.wait(500);
    let heard = world.heard(one);
    assert_eq!(patches(&heard).len(), 1, "what did not change is not sent");
    assert_eq!(patches(&world.heard(other)), [], "and not to whom it does not concern");

    world.ask(one, room, "add", "");
    world.wait(60);
    let (mine, theirs) = (world.heard(one), world.heard(other));
    let (mine, theirs) = (patches(&mine), patches(&theirs));
    assert_eq!(mine[0].0, patches(&heard)[0].1, "the base is the version of the last patch");
    assert!(theirs[0].0 < mine[0].0, "of the snapshot, where there was none: {theirs:?}");
    assert_eq!((mine[0].1, mine[0].2), (theirs[0].1, theirs[0].2));
}

#[test]
fn the_syncs_of_a_room_that_nobody_calls_are_only_counted_and_nothing_shows_it() {
    let options = "tick=0";
    let mut world = World::new(1, &[("rooms.check_every_syncs", "0")]);
    let (one, other, room, _) = two(&mut world, options);
    world.wait(60);
    let syncs = world.counters(0).syncs;
    for _ in 0..20 {
        world.wait(50);
    }
    assert_eq!(world.shards[0].host.due_at(), None, "nothing is due for a room at rest");
    assert!(world.counters(0).syncs < syncs + 10, "it is not even counted");
    assert_eq!((world.heard(one), world.heard(other)), (vec![], vec![]));
    world.ask(one, room, "add", "");
    assert_eq!(world.counters(0).syncs, syncs + 20);
    assert!(world.shards[0].host.due_at().is_some_and(|at| at > world.now));
    world.wait(50);
    let (heard, theirs) = (world.heard(one), world.heard(other));
    let [(2, version, "c=1 ")] = patches(&heard)[..] else { panic!("{heard:?}") };
    assert!(matches!(patches(&theirs)[..], [(3, same, "c=1 ")] if same == version), "{theirs:?}");
    // As many versions as syncs, as if each had been made.
    assert!((22..=25).contains(&version), "{version}");
}

#[test]
fn a_slow_reader_gets_one_patch_to_now() {
    let mut world = World::new(1, &[]);
    let (fast, slow, room, _) = two(&mut world, "");
    world.takes(slow, 5);
    for _ in 0..10 {
        world.say(fast, &send(room, "add", ""));
        world.wait(50);
    }
    assert_eq!(patches(&world.heard(fast)).len(), 10);
    assert!(world.counters(0).conflated >= 8);
    world.takes(slow, usize::MAX);
    let heard = world.heard(slow);
    let [(_, between, "c=1 "), (base, now, "c=10 ")] = patches(&heard)[..] else {
        panic!("{heard:?}")
    };
    assert_eq!(between, base);
    world.say(fast, &send(room, "add", ""));
    world.wait(50);
    let heard = world.heard(slow);
    assert_eq!(patches(&heard)[0].0, now);
}

#[test]
fn a_client_that_lost_track_gets_a_snapshot() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    let (room, _) = world.room(client, "");
    world.ask(client, room, "add", "");
    world.wait(60);
    world.heard(client);
    world.say(client, &encoded(PACKED, &ClientMessage::Resync(client::Resync { room })));
    let heard = world.heard(client);
    let [Heard::Snapshot { version, body, .. }] = &heard[..] else { panic!("{heard:?}") };
    assert_eq!(body, "c=1 s=0 ");
    world.ask(client, room, "add", "");
    world.wait(60);
    assert_eq!(patches(&world.heard(client))[0].0, *version);
}

#[test]
fn where_no_patch_reaches_a_snapshot_leads_to_now() {
    let mut world = World::new(1, &[]);
    let (one, other, room, _) = two(&mut world, "");
    world.ask(one, room, "forget", "");
    world.ask(one, room, "add", "");
    world.wait(51);
    for client in [one, other] {
        let heard = world.heard(client);
        assert_eq!(patches(&heard), []);
        let snapshots: Vec<&Heard> =
            heard.iter().filter(|heard| matches!(heard, Heard::Snapshot { .. })).collect();
        assert!(
            matches!(snapshots[..], [Heard::Snapshot { body, .. }] if body == "c=1 s=0 "),
            "{heard:?}"
        );
    }
    world.ask(one, room, "add", "");
    world.wait(51);
    assert_eq!(patches(&world.heard(other)).len(), 1);
}

#[test]
fn events_are_counted_for_each_session_and_come_in_order() {
    let mut world = World::new(1, &[]);
    let (one, other, room, _) = two(&mut world, "");
    for text in ["a", "b"] {
        world.say(one, &send(room, "shout", text));
    }
    assert_eq!(events(&world.heard(one)), [(3, "a"), (4, "b")]);
    assert_eq!(events(&world.heard(other)), [(2, "a"), (3, "b")]);
}

#[test]
fn a_session_may_be_in_several_rooms_and_numbers_are_not_used_again() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    let (first, _) = world.room(client, "");
    let (second, _) = world.room(client, "");
    assert_eq!((first, second), (RoomNumber(1), RoomNumber(2)));
    world.ask(client, second, "add", "");
    world.say(
        client,
        &encoded(
            PACKED,
            &ClientMessage::Leave(client::Leave { request: RequestNumber(1), room: second }),
        ),
    );
    world.heard(client);
    let (third, _) = world.room(client, "");
    assert_eq!(third, RoomNumber(3));
    let heard = world.ask(client, first, "add", "");
    assert_eq!(
        heard,
        [Heard::Reply { request: RequestNumber(77), payload: "1".into() }],
        "each room has its own counter"
    );
}

#[test]
fn players_can_be_taken_out() {
    let mut world = World::new(1, &[]);
    let (one, other, room, id) = two(&mut world, "");
    world.ask(one, room, "kick", "2");
    assert_eq!(
        world.heard(other),
        [Heard::Left { request: None, room: RoomNumber(1), code: ErrorCode::Kicked }]
    );
    world.join(other, RequestNumber(5), &id);
    world.wait(60);
    assert!(matches!(world.heard(other)[0], Heard::Joined { room: RoomNumber(2), .. }));
}

#[test]
fn who_is_taken_out_before_it_was_told_of_joining_is_refused() {
    let mut world = World::new(1, &[]);
    let (one, other) = (world.client(0), world.client(0));
    let (room, id) = world.room(one, "");
    world.join(other, RequestNumber(9), &id);
    world.ask(one, room, "kick", "2");
    world.wait(100);
    let code = ErrorCode::Kicked;
    assert_eq!(
        world.heard(other),
        [Heard::Error { request: Some(RequestNumber(9)), room: None, code }]
    );
}

#[test]
fn a_room_that_ends_lets_everybody_go() {
    for (how, code) in [("close", ErrorCode::RoomClosed), ("fail", ErrorCode::RoomFailed)] {
        let mut world = World::new(1, &[]);
        let (one, other, room, _) = two(&mut world, "");
        world.say(one, &send(room, how, ""));
        for client in [one, other] {
            assert_eq!(
                world.heard(client),
                [Heard::Left { request: None, room: RoomNumber(1), code }]
            );
            assert!(!world.is_over(client));
        }
        assert_eq!(world.counters(0).rooms, 0);
    }
}

#[test]
fn a_room_is_dropped_when_its_own_time_is_over() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    let (room, id) = world.room(client, "");
    world.say(
        client,
        &encoded(PACKED, &ClientMessage::Leave(client::Leave { request: RequestNumber(1), room })),
    );
    world.wait(EMPTY.as_millis() as u64 - 100);
    assert_eq!(world.counters(0).rooms, 1);
    world.wait(200);
    assert_eq!(world.counters(0).rooms, 0);
    world.heard(client);
    world.join(client, RequestNumber(2), &id);
    let code = ErrorCode::RoomNotFound;
    assert_eq!(
        world.heard(client),
        [Heard::Error { request: Some(RequestNumber(2)), room: None, code }]
    );
}

#[test]
fn background_work_comes_back_to_the_room() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    let (room, _) = world.room(client, "");
    for work in ["compute", "spawn"] {
        world.say(client, &send(room, work, "it"));
    }
    assert_eq!(world.heard(client), []);
    world.run_background();
    assert_eq!(events(&world.heard(client)), [(2, "computed it"), (3, "spawned")]);
    // What was computed for a room that is gone is nobody's.
    world.say(client, &send(room, "spawn", "it"));
    world.say(client, &send(room, "close", ""));
    world.heard(client);
    world.run_background();
    assert_eq!(world.heard(client), []);
}

#[test]
fn rooms_write_to_each_other() {
    let mut world = World::new(1, &[]);
    let (one, other) = (world.client(0), world.client(0));
    let (room, _) = world.room(one, "");
    let (_, there) = world.room(other, "");
    world.say(one, &send(room, "tell", &there));
    assert_eq!(events(&world.heard(other)), [(2, "told")]);
    let heard = world.ask(one, room, "ask", &there);
    assert_eq!(heard, [Heard::Reply { request: RequestNumber(77), payload: "1".into() }]);
    let heard = world.ask(one, room, "ask", "aaaaaaaaaaaaaaaa");
    let code = ErrorCode::RoomNotFound;
    assert_eq!(heard, [Heard::Error { request: Some(RequestNumber(77)), room: None, code }]);
    world.say(one, &send(room, "tell", "nobody"));
    assert_eq!(world.heard(one), []);
}

#[test]
fn rooms_are_listed_with_what_they_say_of_themselves() {
    let mut world = World::new(1, &[]);
    let client = world.client(0);
    let (_, duel) = world.room(client, "mode=duel");
    let (_, race) = world.room(client, "mode=race");
    world.create(client, RequestNumber(1), true, "mode=duel");
    world.joined(client);
    let mut list =
        |room_type: Option<&'static str>, filter: &[(&'static str, &'static str)], limit| {
            let filter = filter.iter().map(|&(name, value)| (name.into(), value.into())).collect();
            let message = ClientMessage::List(client::List {
                request: RequestNumber(3),
                room_type: room_type.map(Into::into),
                filter,
                limit,
            });
            world.say(client, &encoded(PACKED, &message));
            world.heard(client)
        };
    let listed = |ids: &[&String]| {
        [Heard::Listed { request: RequestNumber(3), ids: ids.iter().copied().cloned().collect() }]
    };
    assert_eq!(list(None, &[], 0), listed(&[&duel, &race]));
    assert_eq!(list(Some("test"), &[], 1), listed(&[&duel]));
    assert_eq!(list(None, &[("mode", "race")], 0), listed(&[&race]));
    let code = ErrorCode::UnknownRoomType;
    assert_eq!(
        list(Some("other"), &[], 0),
        [Heard::Error { request: Some(RequestNumber(3)), room: None, code }]
    );
}

#[test]
fn join_or_create_fills_the_oldest_room_first() {
    let mut world = World::new(1, &[]);
    let clients: Vec<Client> = (0..5).map(|_| world.client(0)).collect();
    let mut ids = Vec::new();
    for &client in &clients {
        world.join_or_create(client, RequestNumber(1), "capacity=2");
        ids.push(world.joined(client).1);
    }
    assert_eq!((&ids[0], &ids[2]), (&ids[1], &ids[3]));
    assert!(ids[0] != ids[2] && ids[2] != ids[4]);
    world.join_or_create(clients[4], RequestNumber(2), "");
    let (_, id) = world.joined(clients[4]);
    assert_ne!(id, ids[4], "a session is not put into a room that it is in");
}

#[test]
fn a_shutdown_ends_rooms_and_says_goodbye() {
    let mut world = World::new(1, &[]);
    let (one, other, room, _) = two(&mut world, "");
    let (silent, page) = (world.connect(0), world.websocket_client(0, Format::Json));
    world.shut_down();
    let code = ErrorCode::ShuttingDown;
    for client in [one, other] {
        assert_eq!(
            world.heard(client),
            [Heard::Left { request: None, room, code }, Heard::Goodbye { code }]
        );
    }
    assert_eq!(world.heard(page), [Heard::Goodbye { code }]);
    for client in [one, other, silent, page] {
        assert!(world.is_over(client));
        world.hang_up(client);
    }
    assert!(world.shards[0].links.is_empty());
}
