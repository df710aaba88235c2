//! Sessions that lose their connections and are resumed.

use playfield_wire::client::{self, ClientMessage, Hello, Resume, ResumeRoom};
use playfield_wire::framing::PREAMBLE;
use playfield_wire::server::{self, Lost, ServerMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

use super::speech::encoded;
use super::wanderer::{Copy, Return, Wanderer};
use super::world::World;

fn native(world: &mut World) -> Wanderer {
    Wanderer::new(world, 0, false, Format::Packed)
}

#[test]
fn who_comes_back_has_missed_nothing() {
    for (is_websocket, format) in [
        (false, Format::Packed),
        (false, Format::Json),
        (true, Format::Packed),
        (true, Format::Msgpack),
        (true, Format::Json),
    ] {
        let mut world = World::new(1, &[]);
        let mut ann = Wanderer::new(&mut world, 0, is_websocket, format);
        let mut ben = native(&mut world);
        let room = ann.room(&mut world, "");
        let there = ben.join(&mut world, &ann.rooms[&room].id.clone());
        ann.listen(&mut world);
        ann.heard.clear();
        ann.cut(&mut world, usize::MAX);
        assert_eq!(world.sessions(), (2, 1));

        for text in ["one", "two"] {
            ben.request(&mut world, there, 1, "shout", text);
            ben.request(&mut world, there, 2, "add", "");
            world.wait(100);
        }
        // In `packed`, over the other transport.
        ann.is_websocket = is_websocket != (format == Format::Packed);
        assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
        assert_eq!(ann.heard, ["1: one", "1: two"]);
        assert_eq!(ann.rooms[&room].state["c"], "2", "{:?}", ann.rooms);
        assert_eq!(world.sessions(), (2, 0));

        ann.request(&mut world, room, 7, "add", "");
        world.wait(100);
        ann.listen(&mut world);
        assert_eq!(ann.heard.last().unwrap(), "7 = 3");
        assert_eq!(ann.rooms[&room].state["c"], "3");
    }
}

#[test]
fn requests_that_did_not_arrive_are_sent_again_and_those_that_did_are_executed_once() {
    let mut world = World::new(1, &[]);
    let mut ann = native(&mut world);
    let room = ann.room(&mut world, "");
    // It arrives, and the answer is lost.
    world.takes(ann.client, 0);
    ann.request(&mut world, room, 1, "add", "");
    ann.cut(&mut world, 0);
    // This does not arrive.
    ann.request(&mut world, room, 2, "add", "");
    assert_eq!(ann.unconfirmed(), 3, "a join and two requests");
    assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
    world.wait(100);
    ann.listen(&mut world);
    assert_eq!(ann.heard[1..], ["1: ann joins", "1 = 1", "2 = 2"]);
    assert_eq!(ann.rooms[&room].state["c"], "2");
}

#[test]
fn after_the_grace_the_player_has_left_and_the_session_is_over() {
    let mut world = World::new(1, &[]);
    let (mut ann, mut ben) = (native(&mut world), native(&mut world));
    let room = ann.room(&mut world, "");
    ben.join(&mut world, &ann.rooms[&room].id.clone());
    ann.cut(&mut world, usize::MAX);
    world.wait(9_900);
    ben.listen(&mut world);
    assert_eq!(ben.heard.last().unwrap(), "1: ann joins");
    assert_eq!((world.members(), world.sessions()), (2, (2, 1)));
    world.wait(1_000);
    ben.listen(&mut world);
    assert_eq!(ben.heard.last().unwrap(), "1: 1 leaves");
    assert_eq!((world.members(), world.sessions()), (1, (1, 0)));
    assert_eq!(ann.come_back(&mut world, 0), Return::NewSession);
    assert_eq!(ann.rooms.len(), 0);
}

#[test]
fn what_waited_with_the_client_is_within_its_rates_when_it_is_back() {
    let settings = [
        ("limits.session.messages.per_second", "10"),
        ("limits.session.messages.burst", "10"),
        ("tuning.rate_multiple", "1"),
    ];
    let mut world = World::new(1, &settings);
    let mut ann = native(&mut world);
    let room = ann.room(&mut world, "");
    world.wait(2000);
    ann.cut(&mut world, usize::MAX);
    world.wait(5000);
    for number in 1..=40 {
        ann.request(&mut world, room, number, "add", "");
    }
    assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
    world.wait(100);
    ann.listen(&mut world);
    assert_eq!(ann.heard.last().unwrap(), "40 = 40");
    // The credit is for that burst, and fades.
    world.wait(6000);
    for number in 41..=60 {
        ann.request(&mut world, room, number, "add", "");
    }
    ann.listen(&mut world);
    assert!(world.is_over(ann.client), "more than the burst at once");
}

#[test]
fn a_client_may_come_back_before_the_node_has_noticed() {
    for is_websocket in [false, true] {
        let mut world = World::new(1, &[]);
        let mut ann = Wanderer::new(&mut world, 0, is_websocket, Format::Packed);
        let room = ann.room(&mut world, "");
        let old = ann.client;
        ann.request(&mut world, room, 1, "shout", "hi");
        assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
        assert_eq!(world.bodies(old).len(), 1, "a goodbye");
        assert!(world.is_over(old));
        assert_eq!(world.sessions(), (1, 0));
        ann.request(&mut world, room, 2, "add", "");
        assert_eq!(ann.heard[1..], ["1: ann joins", "1: hi", "1 = ", "2 = 1"]);
        world.wait(10_000);
        assert_eq!(world.members(), 1);
    }
}

#[test]
fn a_token_is_good_until_the_client_has_spoken_with_the_next() {
    let mut world = World::new(1, &[]);
    let mut ann = native(&mut world);
    ann.room(&mut world, "");
    let first = ann.token.clone();
    // The welcome is lost, so the client comes back with the first token again.
    for _ in 0..3 {
        ann.begin_return(&mut world, 0);
        ann.cut(&mut world, 0);
    }
    assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
    ann.acknowledge(&mut world);
    for (token, what) in [(first.clone(), "used"), (first[1..].to_vec(), "truncated")] {
        let mut thief = native(&mut world);
        thief.token = token;
        assert_eq!(thief.come_back(&mut world, 0), Return::NewSession, "{what}");
    }
    let mut forged = ann.token.clone();
    *forged.last_mut().unwrap() ^= 1;
    let mut thief = native(&mut world);
    thief.token = forged;
    assert_eq!(thief.come_back(&mut world, 0), Return::NewSession, "forged");
    ann.cut(&mut world, 0);
    assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
}

#[test]
fn a_room_that_ends_meanwhile_is_left_and_one_that_was_lost_is_not_named_again() {
    for (how, code) in [("close", ErrorCode::RoomClosed), ("fail", ErrorCode::RoomFailed)] {
        let mut world = World::new(1, &[]);
        let (mut ann, mut ben) = (native(&mut world), native(&mut world));
        let room = ann.room(&mut world, "");
        let there = ben.join(&mut world, &ann.rooms[&room].id.clone());
        ann.listen(&mut world);
        ann.cut(&mut world, usize::MAX);
        ben.request(&mut world, there, 1, how, "");
        assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
        assert_eq!(ann.heard.last().unwrap(), &format!("left {}: {code}", RoomNumber(1)));
        assert!(ann.rooms.is_empty());
    }
}

#[test]
fn a_session_is_found_from_any_shard_wherever_it_is() {
    for (first, second) in [(0, 1), (1, 0), (2, 1)] {
        let mut world = World::new(3, &[]);
        let host = world.client(1);
        let (_, id) = world.room(host, "");
        // Joining its first room moves the session there.
        let mut ann = Wanderer::new(&mut world, first, false, Format::Packed);
        let room = ann.join(&mut world, &id);
        for shard in [second, first, second] {
            ann.cut(&mut world, usize::MAX);
            ann.request(&mut world, room, 1, "add", "");
            assert_eq!(ann.come_back(&mut world, shard), Return::Resumed);
            world.wait(100);
            ann.listen(&mut world);
        }
        assert_eq!(ann.heard[2..], ["1 = 1", "1 = 2", "1 = 3"]);
        assert_eq!(ann.rooms[&room].state["c"], "3");
    }
}

/// The mailbox of the session's shard is full, so the first attempt waits on another shard, and the
/// client tries again.
#[test]
fn an_attempt_that_was_late_does_not_take_the_session_from_the_one_after_it() {
    let mut world = World::new(2, &[]);
    let mut ann = native(&mut world);
    ann.room(&mut world, "");
    ann.cut(&mut world, usize::MAX);
    world.space[0] = 0;
    assert_eq!(ann.come_back(&mut world, 1), Return::Unknown);
    let late = ann.client;
    world.wait(10);
    assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
    world.space[0] = usize::MAX;
    world.wait(10);
    assert!(world.is_over(late));
    ann.listen(&mut world);
    assert_eq!((ann.goodbye, world.is_over(ann.client), world.sessions()), (None, false, (1, 0)));
}

#[test]
fn what_is_lost_past_resume_bytes_max_is_said_for_each_room() {
    let mut world = World::new(1, &[("limits.session.resume_bytes", "60")]);
    let (mut ann, mut ben) = (native(&mut world), native(&mut world));
    let first = ann.room(&mut world, "");
    let second = ann.room(&mut world, "");
    let there = ben.join(&mut world, &ann.rooms[&first].id.clone());
    ann.listen(&mut world);
    ann.acknowledge(&mut world);
    ann.cut(&mut world, usize::MAX);
    for text in ["one", "two", "three", "four"] {
        ben.request(&mut world, there, 1, "shout", text);
    }
    assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
    let of = |room, messages| Lost { room: Some(room), messages };
    let lost = ann.lost.clone();
    assert_eq!(lost, [of(first, lost[0].messages)]);
    let kept: Vec<_> = ann
        .heard
        .iter()
        .filter(|heard| heard.starts_with("1: t") || heard.starts_with("1: f"))
        .cloned()
        .collect();
    assert_eq!(kept.len() as u64 + lost[0].messages, 4);
    assert_eq!(world.counters(0).messages_lost, lost[0].messages);
    assert_eq!(kept.last().unwrap(), "1: four");
    // Both ends count as before.
    ann.request(&mut world, second, 5, "add", "");
    ann.acknowledge(&mut world);
    assert_eq!((ann.heard.last().unwrap().as_str(), ann.goodbye), ("5 = 1", None));
}

/// The events that a client hears of a room on this shard that emits this many of 1 KB in one turn
/// while the client is away, and the losses it is told of. The client's session is on shard 0.
fn away_from_a_talkative_room(shard: usize, events: usize) -> (Vec<String>, Vec<Lost>) {
    let mut world = World::new(
        2,
        &[("limits.session.outbox_bytes.max", "8000"), ("limits.session.resume_bytes", "20000")],
    );
    let mut ann = native(&mut world);
    ann.room(&mut world, "");
    let mut host = Wanderer::new(&mut world, shard, false, Format::Packed);
    let there = host.room(&mut world, "");
    let room = ann.join(&mut world, &host.rooms[&there].id.clone());
    assert_eq!(world.shard_of(ann.client), 0);
    ann.acknowledge(&mut world);
    ann.heard.clear();
    ann.cut(&mut world, usize::MAX);
    host.request(&mut world, there, 1, "burst", &events.to_string());
    assert_eq!(ann.come_back(&mut world, 0), Return::Resumed, "{events} events on {shard}");
    world.wait(100);
    ann.listen(&mut world);
    // All goes on as before.
    ann.request(&mut world, room, 5, "add", "");
    world.wait(100);
    ann.listen(&mut world);
    assert_eq!(ann.heard.last().map(String::as_str), Some("5 = 1"));
    (ann.heard, ann.lost)
}

#[test]
fn a_session_that_is_away_is_treated_alike_by_rooms_of_any_shard() {
    for (events, loses) in [(5, false), (12, false), (100, true)] {
        let (heard, lost) = away_from_a_talkative_room(0, events);
        assert_eq!(!lost.is_empty(), loses, "{events}: {lost:?}");
        assert_eq!(away_from_a_talkative_room(1, events), (heard, lost), "{events} events");
    }
}

#[test]
fn what_is_on_its_way_to_a_log_is_bounded_and_what_exceeds_that_is_lost_and_told() {
    let (heard, lost) = away_from_a_talkative_room(1, 1000);
    let events = heard.iter().filter(|heard| heard.contains("xxx")).count() as u64;
    let lost: u64 = lost.iter().map(|lost| lost.messages).sum();
    assert_eq!((events + lost, events <= 20), (1000, true), "{events} events");
}

#[test]
fn a_return_that_claims_what_cannot_be_is_refused_and_the_session_goes_on_waiting() {
    let mut world = World::new(1, &[]);
    let mut ann = native(&mut world);
    ann.room(&mut world, "");
    ann.cut(&mut world, usize::MAX);
    let received = std::mem::replace(&mut ann.received, 1_000);
    assert_eq!(ann.come_back(&mut world, 0), Return::Refused(ErrorCode::BadMessage));
    ann.received = received;
    ann.format = Format::Json;
    assert_eq!(ann.come_back(&mut world, 0), Return::Refused(ErrorCode::WrongFormat));
    ann.format = Format::Packed;
    assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
    ann.received += 1;
    ann.acknowledge(&mut world);
    ann.listen(&mut world);
    assert_eq!(ann.goodbye, Some(ErrorCode::BadMessage), "it confirms what it was not sent");
}

/// The messages on a new connection that asks for the session, and names these copies.
fn return_naming(
    world: &mut World,
    ann: &Wanderer,
    rooms: Vec<ResumeRoom>,
) -> Vec<ServerMessage<'static>> {
    let resume = Resume { token: ann.token.clone().into(), received: ann.received, rooms };
    let (name, resume) = ("ann".into(), Some(resume));
    let hello = Hello { name, resumable: true, resume, ..Hello::new(Format::Packed) };
    let client = world.connect(0);
    world.bytes(client, &PREAMBLE);
    world.say(client, &encoded(Format::Packed, &ClientMessage::Hello(hello)));
    world.wait(100);
    let bodies = world.bodies(client);
    let decoded = |body: Vec<u8>| {
        // A test may leak.
        ServerMessage::decode(Format::Packed, Box::leak(body.into_boxed_slice())).unwrap()
    };
    bodies.into_iter().map(decoded).collect()
}

#[test]
fn of_a_room_that_is_named_twice_the_first_entry_counts() {
    for swapped in [false, true] {
        let mut world = World::new(1, &[("limits.session.resume_bytes", "60")]);
        let mut ann = native(&mut world);
        let host = world.client(0);
        let (there, id) = world.room(host, "");
        let kept = ann.room(&mut world, "");
        ann.join(&mut world, &id);
        let [gone] = ann.rooms.keys().copied().filter(|room| *room != kept).collect::<Vec<_>>()[..]
        else {
            panic!("two rooms");
        };
        ann.acknowledge(&mut world);
        ann.cut(&mut world, usize::MAX);
        // One room ends, and the other says so much that this is forgotten.
        let player = ann.rooms[&gone].player.to_string();
        world.ask(host, there, "kick", &player);
        let mut ben = native(&mut world);
        let room = ben.join(&mut world, &ann.rooms[&kept].id.clone());
        for _ in 0..9 {
            ben.request(&mut world, room, 1, "shout", "a text that takes much space");
        }
        world.wait(100);
        let named = |room: RoomNumber| {
            let Copy { epoch, version, .. } = ann.rooms[&room];
            let known = ResumeRoom { room, epoch, version };
            let unknown = ResumeRoom { version: 0, ..known };
            if swapped { [unknown, known] } else { [known, unknown] }
        };
        let rooms = [named(gone), named(kept)].concat();
        let messages = return_naming(&mut world, &ann, rooms);
        let count = |which: fn(&ServerMessage<'_>) -> bool| {
            messages.iter().filter(|message| which(message)).count()
        };
        let snapshots = count(|message| matches!(message, ServerMessage::Snapshot(_)));
        assert_eq!(snapshots, usize::from(swapped), "{messages:?}");
        let left = count(|message| matches!(message, ServerMessage::Left(_)));
        assert_eq!(left, 1, "{messages:?}");
    }
}

#[test]
fn an_event_of_a_room_left_while_away_may_be_far_ahead_of_the_copy() {
    let mut world = World::new(1, &[]);
    let mut ann = native(&mut world);
    let room = ann.room(&mut world, "");
    let mut ben = native(&mut world);
    let there = ben.join(&mut world, &ann.rooms[&room].id.clone());
    ann.listen(&mut world);
    // What is sent from here on is lost with the connection.
    for _ in 0..20 {
        ben.request(&mut world, there, 1, "add", "");
        world.wait(100);
    }
    ben.request(&mut world, there, 2, "shout", "late");
    ann.cut(&mut world, 0);
    let Copy { player, epoch, version, .. } = ann.rooms[&room].clone();
    ben.request(&mut world, there, 3, "kick", &player.to_string());
    world.wait(100);
    let messages = return_naming(&mut world, &ann, vec![ResumeRoom { room, epoch, version }]);
    let [
        ServerMessage::Welcome(_),
        ServerMessage::Event(server::Event { version: far, .. }),
        ..,
        ServerMessage::Left(server::Left { code: ErrorCode::Kicked, .. }),
    ] = messages[..]
    else {
        panic!("{messages:?}");
    };
    assert!(far > version + 10, "{far}, and the copy is at {version}");
    let is_state = |message: &ServerMessage<'_>| {
        matches!(message, ServerMessage::Patch(_) | ServerMessage::Snapshot(_))
    };
    assert!(!messages.iter().any(is_state), "{messages:?}");
}

#[test]
fn with_resume_bytes_max_0_a_session_keeps_the_newest_message() {
    let mut world = World::new(1, &[("limits.session.resume_bytes", "0")]);
    let mut ann = native(&mut world);
    let room = ann.room(&mut world, "");
    let mut ben = native(&mut world);
    let there = ben.join(&mut world, &ann.rooms[&room].id.clone());
    ann.listen(&mut world);
    ann.acknowledge(&mut world);
    // Who misses nothing comes back as ever.
    ann.cut(&mut world, usize::MAX);
    assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
    ann.cut(&mut world, usize::MAX);
    ann.heard.clear();
    for (number, text) in (1..).zip(["one", "two", "three"]) {
        ben.request(&mut world, there, number, "shout", text);
    }
    assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
    assert_eq!(ann.heard, ["1: three"]);
    assert_eq!(ann.lost, [Lost { room: Some(room), messages: 2 }]);
}

#[test]
fn a_goodbye_ends_the_session_at_once() {
    let mut world = World::new(1, &[]);
    let mut ann = native(&mut world);
    ann.room(&mut world, "");
    world.say(ann.client, &encoded(Format::Packed, &ClientMessage::Goodbye(client::Goodbye {})));
    assert_eq!((world.members(), world.sessions()), (0, (0, 0)));
    assert_eq!(ann.come_back(&mut world, 0), Return::NewSession);
}

#[test]
fn past_sessions_away_max_a_session_ends_with_its_connection() {
    for setting in ["limits.sessions_away.total", "limits.sessions_away.per_address"] {
        let mut world = World::new(1, &[(setting, "2")]);
        let mut all = [native(&mut world), native(&mut world), native(&mut world)];
        for one in &mut all {
            one.room(&mut world, "");
            one.cut(&mut world, usize::MAX);
        }
        assert_eq!(world.sessions(), (2, 2), "{setting}");
        assert_eq!(world.counters(0).sessions_away_refused, 1);
        assert_eq!(all[2].come_back(&mut world, 0), Return::NewSession);
        assert_eq!(all[0].come_back(&mut world, 0), Return::Resumed);
        all[2].cut(&mut world, usize::MAX);
        assert_eq!(all[2].come_back(&mut world, 0), Return::Resumed, "there is space again");
    }
}

#[test]
fn a_join_that_is_decided_meanwhile_is_heard_of_on_return() {
    for shards in [1, 2] {
        let mut world = World::new(shards, &[]);
        let host = world.client(shards - 1);
        let (_, id) = world.room(host, "");
        let mut ann = native(&mut world);
        ann.room(&mut world, "");
        let join = ClientMessage::Join(client::Join {
            request: RequestNumber(5),
            room: id.clone().into(),
        });
        world.takes(ann.client, 0);
        ann.say(&mut world, &join);
        world.wait(100);
        ann.cut(&mut world, 0);
        world.wait(200);
        assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
        world.wait(200);
        ann.listen(&mut world);
        assert_eq!(ann.rooms.len(), 2, "{:?}", ann.heard);
        assert!(ann.rooms.values().all(|copy| copy.version > 0));
    }
}

#[test]
fn at_shutdown_sessions_that_are_away_end() {
    let mut world = World::new(2, &[]);
    let mut ann = native(&mut world);
    ann.room(&mut world, "");
    ann.cut(&mut world, usize::MAX);
    world.shut_down();
    assert_eq!(world.sessions(), (0, 0));
    assert!((0..2).all(|shard| world.shards[shard].links.is_empty()));
}

/// The node leaves it. Nothing of it reaches the client, which does not know the room.
#[test]
fn a_room_of_another_shard_whose_joined_was_forgotten_says_nothing_more() {
    let mut world = World::new(2, &[("limits.session.resume_bytes", "100")]);
    let (host, mut ann) = (world.client(1), native(&mut world));
    let (_, id) = world.room(host, "");
    let room = ann.room(&mut world, "");
    ann.acknowledge(&mut world);
    world.takes(ann.client, 0);
    ann.say(
        &mut world,
        &ClientMessage::Join(client::Join { request: RequestNumber(5), room: id.into() }),
    );
    world.wait(100);
    for number in 6..16 {
        ann.request(&mut world, room, number, "add", "");
    }
    // Something changes there that the client is not sent.
    let there = RoomNumber(1);
    world.ask(host, there, "add", "");
    world.wait(100);
    ann.cut(&mut world, 0);
    world.ask(host, there, "add", "");
    world.wait(100);
    assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
    world.wait(100);
    ann.listen(&mut world);
    assert!(ann.lost.iter().any(|lost| lost.room != Some(room)), "{:?}", ann.lost);
    assert_eq!((ann.rooms.len(), world.members()), (1, 2));
}

/// The room's end is among what the node forgets, as another room has much to say.
#[test]
fn a_room_whose_end_was_forgotten_is_left_all_the_same() {
    let mut world = World::new(1, &[("limits.session.resume_bytes", "200")]);
    let (mut ann, mut ben) = (native(&mut world), native(&mut world));
    let rooms = [ann.room(&mut world, ""), ann.room(&mut world, "")];
    let there = rooms.map(|room| ben.join(&mut world, &ann.rooms[&room].id.clone()));
    ann.listen(&mut world);
    ann.cut(&mut world, usize::MAX);
    ben.request(&mut world, there[0], 1, "close", "");
    for number in 2..30 {
        ben.request(&mut world, there[1], number, "shout", "one of many");
    }
    for _ in 0..2 {
        assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
        assert!(ann.lost.iter().any(|lost| lost.room == Some(rooms[0])), "{:?}", ann.lost);
        let left = format!("left {}: {}", rooms[0], ErrorCode::ConnectionLost);
        assert_eq!(ann.heard.iter().filter(|heard| **heard == left).count(), 1);
        assert_eq!(ann.rooms.len(), 1);
        ann.acknowledge(&mut world);
        ann.cut(&mut world, 0);
    }
}
