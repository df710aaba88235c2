//! Limits on what strangers may do and make the node hold, alone and together.

use playfield_wire::client::{self, ClientMessage, Hello};
use playfield_wire::framing::PREAMBLE;
use playfield_wire::{ErrorCode, Format, RequestNumber};

use super::speech::{Heard, encoded, hello, request, send};
use super::wanderer::{Return, Wanderer};
use super::world::{Client, World};

const PACKED: Format = Format::Packed;
/// Rooms whose players are in at once, so that no time passes while they are made.
const AT_ONCE: &str = "sync=0 tick=0";
const LIMIT: ErrorCode = ErrorCode::Limit;

/// The code with which a connection was closed, if it was.
fn goodbye(heard: &[Heard]) -> Option<ErrorCode> {
    heard.iter().find_map(|heard| match heard {
        Heard::Goodbye { code } => Some(*code),
        _ => None,
    })
}

fn refusal(request: RequestNumber) -> Heard {
    Heard::Error { request: Some(request), room: None, code: LIMIT }
}

/// Returns the number of bytes that wait for a client.
fn waiting(world: &World, client: Client) -> usize {
    let (shard, key) = world.place_of(client);
    world.shards[shard].links.unsent(key).len()
}

#[test]
fn the_sessions_that_an_address_opens_per_minute_are_limited() {
    let mut world = World::new(1, &[("limits.address.sessions.per_minute", "3")]);
    for _ in 0..3 {
        let client = world.client(0);
        world.say(client, &encoded(PACKED, &ClientMessage::Goodbye(client::Goodbye {})));
    }
    for _ in 0..2 {
        let client = world.client_from([10, 0, 0, 1], 0);
        assert_eq!(goodbye(&world.heard(client)), Some(LIMIT));
    }
    let other = world.client_from([10, 0, 0, 2], 0);
    assert!(matches!(world.heard(other)[..], [Heard::Welcome { .. }]));
    assert_eq!(world.counters(0).sessions_refused_by_address, 2);
    world.wait(20_000);
    world.client(0);
}

#[test]
fn coming_back_is_not_a_new_session_and_has_a_limit_of_its_own() {
    let settings =
        [("limits.address.sessions.per_minute", "1"), ("limits.address.resumes.per_minute", "4")];
    let mut world = World::new(1, &settings);
    let mut ann = Wanderer::new(&mut world, 0, false, PACKED);
    ann.room(&mut world, "");
    for _ in 0..4 {
        ann.cut(&mut world, usize::MAX);
        assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
    }
    ann.cut(&mut world, usize::MAX);
    ann.begin_return(&mut world, 0);
    assert!(world.heard(ann.client).contains(&Heard::Goodbye { code: LIMIT }));
    let counters = world.counters(0);
    assert_eq!((counters.sessions_refused_by_address, counters.resumes_refused_by_address), (0, 1));
}

#[test]
fn how_often_one_session_is_resumed_is_limited() {
    let settings = [("tuning.resumes.per_minute", "3"), ("timeouts.reconnect", "60000ms")];
    let mut world = World::new(2, &settings);
    let mut ann = Wanderer::new(&mut world, 0, false, PACKED);
    let mut ben = Wanderer::new(&mut world, 0, false, PACKED);
    for _ in 0..3 {
        ann.cut(&mut world, usize::MAX);
        assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
    }
    // One more is refused, wherever it comes from, and whether or not the old connection is open.
    for shard in [0, 1] {
        ann.address = [10, 0, 0, 2 + shard as u8];
        ann.begin_return(&mut world, shard);
        ann.returned = Return::Resumed;
        let heard = world.heard(ann.client);
        let code = LIMIT;
        let [Heard::Error { request: None, room: None, code: error }, Heard::Goodbye { code: bye }] =
            heard[..]
        else {
            panic!("{heard:?}");
        };
        assert_eq!((error, bye), (code, code));
    }
    let counters = world.counters(0);
    assert_eq!((counters.resumes_refused, counters.sessions_resumed), (2, 3));
    // Another session is not, and this one not forever.
    ben.cut(&mut world, usize::MAX);
    assert_eq!(ben.come_back(&mut world, 0), Return::Resumed);
    world.wait(20_000);
    ann.cut(&mut world, usize::MAX);
    assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
}

#[test]
fn a_token_whose_session_is_over_opens_no_more_sessions_than_a_stranger_may() {
    let settings = [("limits.address.sessions.per_minute", "2"), ("timeouts.reconnect", "1000ms")];
    let mut world = World::new(1, &settings);
    let mut ann = Wanderer::new(&mut world, 0, false, PACKED);
    ann.cut(&mut world, usize::MAX);
    world.wait(2000);
    assert_eq!(ann.come_back(&mut world, 0), Return::NewSession);
    ann.cut(&mut world, usize::MAX);
    world.wait(2000);
    ann.begin_return(&mut world, 0);
    assert!(world.heard(ann.client).contains(&Heard::Goodbye { code: LIMIT }));
    assert_eq!(world.counters(0).sessions_refused_by_address, 1);
}

#[test]
fn the_rooms_that_an_address_creates_per_minute_are_limited_across_connections() {
    let mut world = World::new(1, &[("limits.address.rooms_created.per_minute", "3")]);
    let mut made = 0;
    for number in 0..10 {
        let client = world.client(0);
        world.create(client, RequestNumber(1), false, AT_ONCE);
        match &world.heard(client)[..] {
            [Heard::Joined { .. }, ..] => made += 1,
            heard => assert_eq!(heard, [refusal(RequestNumber(1))]),
        }
        assert_eq!(made, 3.min(number + 1));
        world.say(client, &encoded(PACKED, &ClientMessage::Goodbye(client::Goodbye {})));
    }
    assert_eq!(world.counters(0).rooms_refused_by_address, 7);
    let other = world.client_from([10, 0, 0, 2], 0);
    world.heard(other);
    world.room(other, AT_ONCE);
    // Joining a room that exists is not limited.
    let client = world.client(0);
    world.join_or_create(client, RequestNumber(2), AT_ONCE);
    assert!(matches!(world.heard(client)[..], [Heard::Joined { .. }, ..]));
}

#[test]
fn joins_and_missed_keys_of_an_address_are_limited_per_minute() {
    let mut world = World::new(
        1,
        &[("limits.address.joins.per_minute", "5"), ("limits.address.keys_missed.per_minute", "2")],
    );
    let mut refused = Vec::new();
    for number in 1..=6 {
        let client = world.client(0);
        let (request, room_type) = (RequestNumber(number), "test".into());
        let join = ClientMessage::JoinByKey(client::JoinByKey {
            request,
            room_type,
            key: "nowhere".into(),
        });
        world.say(client, &encoded(PACKED, &join));
        refused.extend(world.heard(client).into_iter().map(|heard| match heard {
            Heard::Error { code, .. } => code,
            other => panic!("{other:?}"),
        }));
        world.say(client, &encoded(PACKED, &ClientMessage::Goodbye(client::Goodbye {})));
    }
    let missed = ErrorCode::RoomNotFound;
    assert_eq!(refused, [missed, missed, LIMIT, LIMIT, LIMIT, LIMIT]);
    let counters = world.counters(0);
    assert_eq!((counters.keys_refused_by_address, counters.joins_refused_by_address), (3, 1));
}

#[test]
fn ten_thousand_connections_of_one_address_do_not_keep_others_out() {
    let mut world = World::new(1, &[]);
    let attacker = [203, 0, 113, 5];
    let mut taken = Vec::new();
    for _ in 0..10_000 {
        if world.is_admitted(attacker, 0) {
            taken.push(world.connect_from(attacker, 0));
        }
    }
    assert_eq!(taken.len(), 200, "as many as may be in handshake");
    assert_eq!(world.counters(0).handshakes_refused, 9_800);
    for client in taken.drain(..) {
        world.bytes(client, b"PF1\n");
        world.say(client, &hello(PACKED));
    }
    while world.is_admitted(attacker, 0) {
        taken.push(world.client_from(attacker, 0));
    }
    assert_eq!(taken.len(), 800, "a thousand in all, with a session");
    let counters = world.counters(0);
    assert_eq!((counters.connections_refused_by_address, counters.sessions), (1, 1000));
    world.client(0);
}

#[test]
fn a_hello_has_its_time_from_when_the_client_connected() {
    let mut world = World::new(1, &[("timeouts.hello", "4000ms")]);
    let (native, websocket) = (world.connect(0), world.connect(0));
    let head = b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                 Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";
    let hello = [b"PF1\n", &world.framed(native, &hello(PACKED))[..]].concat();
    let begins = world.now;
    for at in 0.. {
        world.bytes(native, &hello[at.min(hello.len() - 2)..][..usize::from(at < hello.len() - 1)]);
        world.bytes(websocket, &head[at.min(head.len())..][..usize::from(at < head.len())]);
        if world.is_over(native) && world.is_over(websocket) {
            break;
        }
        world.wait(15);
        assert!((world.now - begins).as_millis() < 6500, "with the time to close");
    }
    assert_eq!(goodbye(&world.heard(native)), Some(ErrorCode::Timeout));
}

#[test]
fn a_stranger_sends_no_more_than_a_hello() {
    let mut world =
        World::new(1, &[("tuning.hello_bytes", "1000"), ("limits.message_bytes", "2000")]);
    let hello_of = |bytes: usize| {
        let token = vec![7; bytes];
        encoded(PACKED, &ClientMessage::Hello(Hello { token: token.into(), ..Hello::new(PACKED) }))
    };
    let around = hello_of(200).len() - 200;
    for is_websocket in [false, true] {
        for (bytes, fits) in [(1000, true), (1001, false)] {
            let client = world.connect(0);
            if is_websocket {
                world.upgrade(client, PACKED);
            } else {
                world.bytes(client, b"PF1\n");
            }
            let body = hello_of(bytes - around);
            assert_eq!(body.len(), bytes);
            world.say(client, &body);
            if !fits {
                assert_eq!(goodbye(&world.heard(client)), Some(ErrorCode::TooLarge));
                let refused = world.counters(0).hellos_too_large;
                assert_eq!(refused, 1 + u64::from(is_websocket));
                continue;
            }
            world.heard(client);
            // From here on it may say more.
            let (room, _) = world.room(client, "");
            let around = send(room, "add", "").len();
            world.say(client, &send(room, "add", &"1".repeat(2000 - around - 1)));
            assert!(!world.is_over(client));
            world.say(client, &send(room, "add", &"1".repeat(2000)));
            assert_eq!(goodbye(&world.heard(client)), Some(ErrorCode::TooLarge));
        }
    }
}

#[test]
fn an_unfinished_message_has_a_deadline_that_nothing_extends() {
    let mut world =
        World::new(1, &[("timeouts.message", "5000ms"), ("timeouts.heartbeat", "2000ms")]);
    let (native, websocket) = (world.client(0), world.websocket_client(0, PACKED));
    let patient = world.websocket_client(0, PACKED);
    let long = world.framed(native, &vec![0; 100_000]);
    world.bytes(native, &long[..10]);
    world.bytes(websocket, b"\x02\x81\0\0\0\0a");
    for at in 0..45 {
        world.bytes(native, &long[10 + 300 * at..][..300]);
        world.bytes(websocket, b"\x89\x80\0\0\0\0");
        world.bytes(websocket, b"\0\x81\0\0\0\0a");
        // Each of these is whole, though the next has begun.
        let ping = world
            .framed(patient, &encoded(PACKED, &ClientMessage::Ping(client::Ping { nonce: 1 })));
        let (front, back) = ping.split_at(3);
        if at > 0 {
            world.bytes(patient, &[back, front].concat());
        } else {
            world.bytes(patient, front);
        }
        assert!(!world.is_over(native) && !world.is_over(websocket), "{at}");
        world.wait(100);
    }
    world.wait(1000);
    for client in [native, websocket] {
        assert_eq!(goodbye(&world.heard(client)), Some(ErrorCode::Timeout));
    }
    assert!(!world.is_over(patient));
    assert_eq!(world.counters(0).closed_unfinished, 2);
}

#[test]
fn snapshots_wait_until_their_client_has_read_what_came_before() {
    let ballast = 100_000;
    for shards in [1, 2] {
        let mut world = World::new(shards, &[("limits.session.rooms", "8")]);
        let host = world.client(0);
        let ids: Vec<_> =
            (0..8).map(|_| world.room(host, &format!("{AT_ONCE} ballast={ballast}")).1).collect();
        world.heard(host);
        let client = world.client(0);
        world.takes(client, 0);
        for (number, id) in ids.iter().enumerate() {
            world.join(client, RequestNumber(1 + number as u32), id);
        }
        world.wait(1000);
        let most = if shards == 1 { 64 * 1024 + ballast + 4096 } else { 8 * (ballast + 4096) };
        assert!(waiting(&world, client) < most, "{}", waiting(&world, client));
        world.takes(client, usize::MAX);
        world.wait(1000);
        let heard = world.heard(client);
        let joined = heard.iter().filter(|heard| matches!(heard, Heard::Joined { .. })).count();
        assert_eq!(joined, 8, "each room comes in at last");
        assert_eq!(world.rooms_of(client).len(), 8);
    }
}

/// A client that doesn't read, with a reply that waits for it.
fn one_who_does_not_read(world: &mut World, address: [u8; 4], bytes: usize) -> Client {
    let client = world.client_from(address, 0);
    world.heard(client);
    let (room, _) = world.room(client, AT_ONCE);
    world.heard(client);
    world.takes(client, 0);
    world.request(client, room, RequestNumber(5), "big", &bytes.to_string());
    client
}

#[test]
fn past_its_share_an_addresses_largest_connection_goes() {
    let mut world = World::new(1, &[("limits.memory.per_address", "1000000")]);
    let attacker = [203, 0, 113, 5];
    let dear = one_who_does_not_read(&mut world, attacker, 400_000);
    let cheap: Vec<_> =
        (0..5).map(|_| one_who_does_not_read(&mut world, attacker, 90_000)).collect();
    let other = one_who_does_not_read(&mut world, [10, 0, 0, 1], 500_000);
    assert!(!world.is_over(dear));
    assert_eq!(world.counters(0).closed_over_budget, 0);
    let late = one_who_does_not_read(&mut world, attacker, 250_000);
    world.wait(1);
    assert!(world.is_over(dear), "it holds the most");
    for client in cheap.into_iter().chain([other, late]) {
        assert!(!world.is_over(client));
    }
    assert_eq!(world.counters(0).closed_over_budget, 1);
}

#[test]
fn each_address_that_passes_its_share_in_one_turn_is_held_to_it() {
    let share_bytes_max = 1_000_000;
    for shards in [1, 2] {
        let settings =
            [("limits.memory.per_address", "1000000"), ("limits.message_bytes", "1000000")];
        let mut world = World::new(shards, &settings);
        let addresses: Vec<_> = (0..6).map(|number| [203, 0, 113, 5 + number]).collect();
        let mut clients = Vec::new();
        for number in 0..60 {
            let client = world.connect_from(addresses[number % 6], number % shards);
            world.bytes(client, &PREAMBLE);
            world.say(client, &hello(PACKED));
            clients.push(client);
        }
        // Each begins a message and does not end it: 1.2 MB from each address.
        for &client in &clients {
            let long = world.framed(client, &vec![0; 500_000]);
            world.leave(client, &long[..120_000]);
        }
        (0..shards).for_each(|shard| world.turn_once(shard));
        world.wait(1);
        for &address in &addresses {
            let held = world.node.addresses.at(address.into(), world.now).bytes();
            assert!(held <= share_bytes_max, "{held} bytes of {address:?}, {shards} shards");
            assert!(held > share_bytes_max / 2, "{held} bytes of {address:?}, {shards} shards");
        }
    }
}

#[test]
fn past_the_nodes_budget_the_largest_address_pays() {
    let mut world = World::new(2, &[("limits.memory.total", "1048576")]);
    let innocent = one_who_does_not_read(&mut world, [10, 0, 0, 1], 300_000);
    let crowd: Vec<_> =
        (0..7).map(|_| one_who_does_not_read(&mut world, [203, 0, 113, 5], 100_000)).collect();
    assert!(crowd.iter().all(|client| !world.is_over(*client)));
    let last = one_who_does_not_read(&mut world, [10, 0, 0, 2], 150_000);
    world.wait(1);
    assert!(!world.is_over(innocent) && !world.is_over(last));
    let gone = crowd.iter().filter(|client| world.is_over(**client)).count();
    assert!((1..=2).contains(&gone), "{gone}");
}

#[test]
fn who_sends_too_much_and_reads_hears_why_it_is_closed() {
    let mut world = World::new(
        1,
        &[("limits.memory.per_address", "65536"), ("limits.message_bytes", "1000000")],
    );
    let client = world.client(0);
    let long = world.framed(client, &vec![0; 500_000]);
    world.bytes(client, &long[..60_000]);
    assert!(!world.is_over(client));
    world.bytes(client, &long[60_000..70_000]);
    world.wait(1);
    assert_eq!(goodbye(&world.heard(client)), Some(LIMIT));
    assert_eq!(world.counters(0).closed_over_budget, 1);
}

#[test]
fn what_is_kept_for_sessions_that_are_away_counts() {
    let mut world = World::new(
        1,
        &[("limits.memory.per_address", "150000"), ("limits.session.resume_bytes", "100000")],
    );
    let attacker = [203, 0, 113, 5];
    let mut away = Vec::new();
    for _ in 0..4 {
        let client = world.connect_from(attacker, 0);
        world.bytes(client, b"PF1\n");
        let hello = Hello { resumable: true, ..Hello::new(PACKED) };
        world.say(client, &encoded(PACKED, &ClientMessage::Hello(hello)));
        world.heard(client);
        let (room, _) = world.room(client, AT_ONCE);
        world.request(client, room, RequestNumber(5), "big", "50000");
        world.vanish(client);
        away.push(client);
    }
    world.wait(10);
    let counters = world.counters(0);
    assert_eq!((counters.sessions_away, counters.closed_over_budget), (2, 2));
}

#[test]
fn sessions_that_are_away_and_never_acknowledged_anything_fill_the_budget_of_their_address() {
    let (session_bytes_max, share_bytes_max) = (65_536, 2_000_000);
    let mut world = World::new(
        1,
        &[
            ("limits.memory.per_address", "2000000"),
            ("limits.session.resume_bytes", "65536"),
            ("limits.session.messages.per_second", "0"),
        ],
    );
    let attacker = [203, 0, 113, 5];
    for _ in 0..40 {
        let client = world.connect_from(attacker, 0);
        let hello = Hello { resumable: true, ..Hello::new(PACKED) };
        world.bytes(client, &PREAMBLE);
        world.say(client, &encoded(PACKED, &ClientMessage::Hello(hello)));
        world.heard(client);
        let (room, _) = world.room(client, AT_ONCE);
        for number in 1..=300 {
            let ask = request(PACKED, room, RequestNumber(number), "big", "300");
            let framed = world.framed(client, &ask);
            world.leave(client, &framed);
        }
        world.wait(1);
        world.heard(client);
        world.vanish(client);
    }
    world.wait(10);
    let counters = world.counters(0);
    let least = share_bytes_max / (session_bytes_max + session_bytes_max / 4);
    assert!(counters.sessions_away >= least, "{} of {least}", counters.sessions_away);
    let held = world.node.addresses.at(attacker.into(), world.now).bytes();
    assert!(held as u64 <= share_bytes_max, "{held}");
}

#[test]
fn clients_that_a_proxy_does_not_name_share_the_limits_of_one_address() {
    let settings = [("trusted_proxies", "10.0.0.0/8"), ("limits.connections.per_address", "2")];
    let mut world = World::new(1, &settings);
    let mut upgrade = |headers: &str| {
        let client = world.connect(0);
        world.ask_for_websocket(client, headers).starts_with("HTTP/1.1 101 ")
    };
    assert!(upgrade("X-Forwarded-For: unknown\r\n"));
    assert!(upgrade("X-Forwarded-For: 203.0.113.5, _hidden\r\n"));
    assert!(!upgrade("X-Forwarded-For: unknown\r\n"), "one past limits.connections.per_address");
    assert!(!upgrade("X-Forwarded-For: 203.0.113.5,\r\n"));
    // What a proxy opens for itself has no limits, and clients that are named have their own.
    for _ in 0..3 {
        assert!(upgrade(""));
    }
    assert!(upgrade("X-Forwarded-For: 203.0.113.5\r\n"));
    let counters = world.counters(0);
    assert_eq!((counters.clients_unnamed, counters.connections_refused_by_address), (4, 2));
}

#[test]
fn a_proxy_names_the_clients_of_websockets() {
    let mut world = World::new(
        1,
        &[("trusted_proxies", "10.0.0.0/8"), ("limits.connections.per_address", "2")],
    );
    let mut upgrade = |named: &str| {
        let client = world.connect(0);
        let answer = world.ask_for_websocket(client, &format!("X-Forwarded-For: {named}\r\n"));
        let is_taken = answer.starts_with("HTTP/1.1 101 ");
        assert!(is_taken || answer.starts_with("HTTP/1.1 429 "), "{answer}");
        is_taken
    };
    assert!(upgrade("203.0.113.5"));
    assert!(upgrade("1.1.1.1, 203.0.113.5"));
    assert!(!upgrade("2.2.2.2, 203.0.113.5"));
    assert!(upgrade("203.0.113.6"));
    assert_eq!(world.counters(0).connections_refused_by_address, 1);
    // From other addresses the header is ignored.
    for _ in 0..2 {
        let client = world.connect_from([203, 0, 113, 7], 0);
        world.ask_for_websocket(client, "X-Forwarded-For: 198.51.100.9\r\n");
    }
    assert!(!world.is_admitted([203, 0, 113, 7], 0));
}
