//! Channels: publish and subscribe over several shards.

use playfield_wire::client::{self, ClientMessage, Position};
use playfield_wire::message::MessageRef;
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

use super::listener::{Listener, QUEUE, Say, Told};
use super::world::World;
use crate::channel::{Payload, Publication, home_of};
use playfield_state::Data;

const SHARDS: usize = 3;

/// A channel whose home is this shard.
fn channel(prefix: &str, home: u16) -> String {
    let names = (0..).map(|number| format!("{prefix}:{number}"));
    names.into_iter().find(|name| home_of(name, SHARDS) == home).unwrap()
}

fn publication(channel: &str, offset: u64, user: Option<&str>, payload: &str) -> Told {
    let (channel, payload) = (channel.into(), payload.into());
    Told::Publication { channel, offset, user: user.map(Into::into), payload }
}

fn subscribed(channel: &str, offset: u64, recovered: bool, members: u64) -> Told {
    Told::Subscribed { channel: channel.into(), offset, recovered, members }
}

/// One subscriber on each shard, in a format of its own.
fn listeners(world: &mut World) -> Vec<Listener> {
    vec![
        Listener::new(world, 0, "ann", false, Format::Packed),
        Listener::new(world, 1, "bob", true, Format::Json),
        Listener::new(world, 2, "cid", true, Format::Msgpack),
    ]
}

#[test]
fn a_publication_reaches_all_who_subscribe_on_every_shard_in_their_formats() {
    for home in 0..SHARDS as u16 {
        let mut world = World::new(SHARDS, &[]);
        let mut all = listeners(&mut world);
        let name = channel("plain", home);
        for listener in &mut all {
            listener.subscribe(&mut world, &name);
            assert_eq!(listener.told(&mut world), [subscribed(&name, 0, false, 0)]);
        }
        for (offset, json) in (1..).zip(["7", r#"{"a":[1,"é"]}"#, "null", r#""text""#]) {
            let by = offset as usize % 3;
            all[by].publish(&mut world, &name, json);
            for (at, listener) in all.iter_mut().enumerate() {
                let told = listener.told(&mut world);
                let user = ["ann", "bob", "cid"][by];
                // In trees, null is an absent payload.
                let is_null = json == "null" && listener.format != Format::Packed;
                let text = if is_null && listener.format == Format::Json { "" } else { json };
                assert!(told.contains(&publication(&name, offset, Some(user), text)), "{told:?}");
                assert_eq!(told.contains(&Told::Published { offset }), at == by);
            }
        }
        let subscriptions: u64 = (0..SHARDS).map(|shard| world.counters(shard).subscriptions).sum();
        assert_eq!(subscriptions, 3);
        for listener in &mut all {
            listener.unsubscribe(&mut world, &name);
        }
        all[0].publish(&mut world, &name, "1");
        assert_eq!(all[1].told(&mut world), []);
        assert_eq!((0..SHARDS).map(|shard| world.counters(shard).subscriptions).sum::<u64>(), 0);
    }
}

#[test]
fn bytes_reach_every_format() {
    let mut world = World::new(SHARDS, &[]);
    let mut all = listeners(&mut world);
    for listener in &mut all {
        listener.subscribe(&mut world, "bytes:a");
    }
    all[0].publish_raw(&mut world, "bytes:a", b"\xff\x00");
    all[1].publish_raw(&mut world, "bytes:a", br#""/wA=""#);
    all[2].publish_raw(&mut world, "bytes:a", b"\xc4\x02\xff\x00");
    for (listener, text) in all.iter_mut().zip(["\u{fffd}\0", r#""/wA=""#, r#""/wA=""#]) {
        let told = listener.told(&mut world);
        for (offset, user) in [(1, "ann"), (2, "bob"), (3, "cid")] {
            let expected = publication("bytes:a", offset, Some(user), text);
            assert!(told.contains(&expected), "{told:?}");
        }
    }
    all[1].publish_raw(&mut world, "bytes:a", b"7");
    assert_eq!(all[1].told(&mut world), [Told::Error { code: ErrorCode::BadPayload }]);
    all[0].publish_raw(&mut world, "plain:a", b"{");
    assert_eq!(all[0].told(&mut world), [Told::Error { code: ErrorCode::BadPayload }]);
}

#[test]
fn names_that_no_rule_matches_and_what_a_rule_forbids_are_refused() {
    let mut world = World::new(SHARDS, &[]);
    let mut ann = Listener::packed(&mut world, 0, "ann");
    let mut guest = Listener::packed(&mut world, 1, "");
    let told = |listener: &mut Listener, world: &mut World| listener.told(world);
    let refused = |code| [Told::Error { code }];
    let (unknown, forbidden) = (ErrorCode::UnknownChannel, ErrorCode::Forbidden);
    for name in ["", "chat", "chat:", "chat:a:b", "nothing"] {
        ann.subscribe(&mut world, name);
        // `*` is any segment, also an empty one.
        if name != "chat:" {
            assert_eq!(told(&mut ann, &mut world), refused(unknown), "{name}");
        }
        ann.told(&mut world);
    }
    ann.subscribe(&mut world, "inbox:ann");
    assert_eq!(told(&mut ann, &mut world), [subscribed("inbox:ann", 0, false, 0)]);
    ann.subscribe(&mut world, "inbox:bob");
    assert_eq!(told(&mut ann, &mut world), refused(forbidden));
    ann.publish(&mut world, "inbox:ann", "1");
    assert_eq!(told(&mut ann, &mut world), refused(forbidden));
    ann.ask_members(&mut world, "inbox:ann");
    assert_eq!(told(&mut ann, &mut world), refused(forbidden));
    ann.ask_to_subscribe(&mut world, "inbox:ann", None, true);
    assert_eq!(told(&mut ann, &mut world), refused(forbidden));
    ann.ask_history(&mut world, "inbox:bob", 0, 0);
    assert_eq!(told(&mut ann, &mut world), refused(forbidden));
    guest.subscribe(&mut world, "users:a");
    assert_eq!(told(&mut guest, &mut world), refused(forbidden));
    guest.publish(&mut world, "users:a", "1");
    assert_eq!(told(&mut guest, &mut world), refused(forbidden));
    ann.subscribe(&mut world, "users:a");
    assert_eq!(told(&mut ann, &mut world), [subscribed("users:a", 0, false, 0)]);
}

#[test]
fn who_comes_back_gets_what_it_missed_or_learns_that_something_is_lost() {
    for home in 0..SHARDS as u16 {
        let mut world = World::new(SHARDS, &[]);
        let (chat, short) = (channel("chat", home), channel("short", home));
        let mut ann = Listener::packed(&mut world, 0, "ann");
        let mut bob = Listener::packed(&mut world, 1, "bob");
        for name in [&chat, &short] {
            ann.subscribe(&mut world, name);
            bob.publish(&mut world, name, "0");
        }
        ann.told(&mut world);
        ann.vanish(&mut world);
        for value in 1..=7 {
            for name in [&chat, &short] {
                bob.publish(&mut world, name, &value.to_string());
            }
        }
        ann.connect(&mut world, 2);
        assert!(ann.is_resumed);
        let told = ann.told(&mut world);
        assert!(told.contains(&subscribed(&chat, 1, true, 1)), "{told:?}");
        assert!(told.contains(&subscribed(&short, 3, false, 0)), "{told:?}");
        let got = |of: &str| {
            let is_of =
                |told: &&Told| matches!(told, Told::Publication { channel, .. } if channel == of);
            told.iter().filter(is_of).cloned().collect::<Vec<_>>()
        };
        let all = |of: &str, from: u64| -> Vec<Told> {
            let text = |offset: u64| (offset - 1).to_string();
            (from..=8).map(|offset| publication(of, offset, Some("bob"), &text(offset))).collect()
        };
        assert_eq!(got(&chat), all(&chat, 2));
        assert_eq!(got(&short), all(&short, 4), "five are kept");
        bob.publish(&mut world, &chat, "8");
        assert_eq!(ann.told(&mut world), [publication(&chat, 9, Some("bob"), "8")]);
        // Who missed nothing learns that, even where nothing is kept.
        ann.vanish(&mut world);
        ann.connect(&mut world, 0);
        assert!(ann.told(&mut world).contains(&subscribed(&chat, 9, true, 1)));
    }
}

#[test]
fn a_channel_without_history_says_whether_anything_was_missed() {
    let mut world = World::new(SHARDS, &[("timeouts.channel", "5000ms")]);
    let mut ann = Listener::packed(&mut world, 0, "ann");
    let mut bob = Listener::packed(&mut world, 1, "bob");
    ann.subscribe(&mut world, "plain:a");
    bob.publish(&mut world, "plain:a", "1");
    ann.told(&mut world);
    ann.vanish(&mut world);
    ann.connect(&mut world, 0);
    assert_eq!(ann.told(&mut world), [subscribed("plain:a", 1, true, 0)]);
    ann.vanish(&mut world);
    bob.publish(&mut world, "plain:a", "2");
    ann.connect(&mut world, 0);
    assert_eq!(ann.told(&mut world), [subscribed("plain:a", 2, false, 0)]);
    // Once it has ended, another channel has its name.
    ann.vanish(&mut world);
    world.wait(5001);
    assert_eq!((0..SHARDS).map(|shard| world.counters(shard).channels).sum::<u64>(), 0);
    bob.told(&mut world);
    bob.publish(&mut world, "plain:a", "3");
    assert_eq!(bob.told(&mut world), [Told::Published { offset: 0 }]);
    ann.connect(&mut world, 0);
    assert_eq!(ann.told(&mut world), [subscribed("plain:a", 0, false, 0)]);
}

#[test]
fn a_session_that_is_away_stays_a_member_until_its_end() {
    let mut world = World::new(SHARDS, &[]);
    let mut ann = Listener::packed(&mut world, 0, "ann");
    let mut bob = Listener::packed(&mut world, 1, "bob");
    let presence = |sequence, joined, name: &str| Told::Presence {
        channel: "chat:a".into(),
        sequence,
        joined,
        name: name.into(),
    };
    ann.subscribe(&mut world, "chat:a");
    assert_eq!(ann.told(&mut world), [subscribed("chat:a", 0, false, 1)]);
    bob.subscribe(&mut world, "chat:a");
    assert_eq!(bob.told(&mut world), [subscribed("chat:a", 0, false, 2)]);
    assert_eq!(ann.told(&mut world), [presence(2, true, "bob")]);
    ann.ask_members(&mut world, "chat:a");
    let names = vec!["ann".to_owned(), "bob".to_owned()];
    assert_eq!(ann.told(&mut world), [Told::Members { sequence: 2, count: 2, names }]);

    bob.vanish(&mut world);
    bob.connect(&mut world, 2);
    assert_eq!(bob.told(&mut world), [subscribed("chat:a", 0, true, 2)]);
    assert_eq!(ann.told(&mut world), [], "that was no news");
    // As does subscribing a second time.
    bob.subscribe(&mut world, "chat:a");
    assert_eq!(bob.told(&mut world), [subscribed("chat:a", 0, false, 2)]);
    assert_eq!(ann.told(&mut world), []);

    bob.unsubscribe(&mut world, "chat:a");
    assert_eq!(ann.told(&mut world), [presence(3, false, "bob")]);
    bob.subscribe(&mut world, "chat:a");
    assert_eq!(ann.told(&mut world), [presence(4, true, "bob")]);
    bob.vanish(&mut world);
    world.wait(10_500);
    assert_eq!(ann.told(&mut world), [presence(5, false, "bob")]);
}

#[test]
fn who_is_resumed_and_does_not_subscribe_again_is_a_member_no_longer() {
    let mut world = World::new(SHARDS, &[("timeouts.heartbeat", "2000ms")]);
    let mut ann = Listener::packed(&mut world, 0, "ann");
    let mut bob = Listener::packed(&mut world, 1, "bob");
    ann.subscribe(&mut world, "chat:a");
    bob.subscribe(&mut world, "chat:a");
    ann.told(&mut world);
    bob.vanish(&mut world);
    bob.wanted.clear();
    bob.connect(&mut world, 1);
    assert!(bob.is_resumed);
    for _ in 0..12 {
        world.wait(500);
        for listener in [&ann, &bob] {
            listener.say(&mut world, &ClientMessage::Ping(client::Ping { nonce: 1 }));
        }
    }
    let left =
        Told::Presence { channel: "chat:a".into(), sequence: 3, joined: false, name: "bob".into() };
    assert_eq!(ann.told(&mut world), [left]);
}

#[test]
fn history_is_read_in_parts() {
    let mut world = World::new(SHARDS, &[]);
    let mut ann = Listener::new(&mut world, 0, "ann", true, Format::Json);
    ann.subscribe(&mut world, "chat:a");
    for value in 0..5 {
        ann.publish(&mut world, "chat:a", &value.to_string());
    }
    ann.told(&mut world);
    let part = |from: u64, to: u64| -> Vec<(u64, String)> {
        (from..=to).map(|offset| (offset, (offset - 1).to_string())).collect()
    };
    ann.ask_history(&mut world, "chat:a", 0, 2);
    assert_eq!(ann.told(&mut world), [Told::History { offset: 5, publications: part(1, 2) }]);
    ann.ask_history(&mut world, "chat:a", 2, 0);
    assert_eq!(ann.told(&mut world), [Told::History { offset: 5, publications: part(3, 5) }]);
    world.wait(61_000);
    ann.told(&mut world);
    ann.connect(&mut world, 0);
    ann.told(&mut world);
    ann.ask_history(&mut world, "chat:a", 0, 0);
    let told = ann.told(&mut world);
    assert!(matches!(&told[..], [Told::History { publications, .. }] if publications.is_empty()));
}

/// A subscriber that stops reading, more publications than wait for it, and then reads on.
fn slow(prefix: &str, extra: usize) -> (World, Listener, Vec<u64>, u64) {
    let mut world = World::new(SHARDS, &[("limits.session.outbox_bytes.high", "1000")]);
    let mut ann = Listener::packed(&mut world, 0, "ann");
    let mut bob = Listener::packed(&mut world, 1, "bob");
    let name = format!("{prefix}:a");
    ann.subscribe(&mut world, &name);
    ann.told(&mut world);
    world.takes(ann.client, 0);
    // The first is stuck in the outbox; the others wait behind it.
    for value in 0..1 + QUEUE + extra {
        bob.publish(&mut world, &name, &value.to_string());
    }
    let dropped = world.counters(0).publications_dropped;
    let last = (1 + QUEUE + extra) as u64;
    world.takes(ann.client, usize::MAX);
    (world, ann, vec![last], dropped)
}

#[test]
fn what_waits_for_a_slow_subscriber_is_as_the_rule_says() {
    let (mut world, mut ann, _, dropped) = slow("drop", 0);
    assert_eq!((ann.offsets(&mut world), dropped), (vec![1, 2, 3, 4], 0));
    let (mut world, mut ann, _, dropped) = slow("drop", 1);
    assert_eq!((ann.offsets(&mut world), dropped), (vec![1, 3, 4, 5], 1));
    let (mut world, mut ann, _, dropped) = slow("latest", 0);
    assert_eq!((ann.offsets(&mut world), dropped), (vec![1, 4], 2));
    let (mut world, mut ann, _, dropped) = slow("strict", 0);
    assert_eq!((ann.offsets(&mut world), dropped), (vec![1, 2, 3, 4], 0));
    let (mut world, mut ann, _, dropped) = slow("strict", 1);
    let told = ann.told(&mut world);
    let ended = Told::Unsubscribed { channel: "strict:a".into(), code: ErrorCode::TooSlow };
    assert_eq!(told, [publication("strict:a", 1, Some("bob"), "0"), ended]);
    assert_eq!(dropped, 1);
    let since = ann.wanted["strict:a"];
    ann.subscribe_from(&mut world, "strict:a", since);
    let told = ann.told(&mut world);
    assert_eq!(told[0], subscribed("strict:a", 1, true, 0));
    assert_eq!(told.len(), 5, "the history has them all");
    let (mut world, mut ann, _, dropped) = slow("hard", 0);
    assert_eq!((ann.offsets(&mut world), dropped), (vec![1, 2, 3, 4], 0));
    let (mut world, mut ann, _, _) = slow("hard", 1);
    let told = ann.told(&mut world);
    assert!(told.contains(&Told::Goodbye { code: ErrorCode::TooSlow }), "{told:?}");
}

#[test]
fn what_waits_for_a_connection_is_limited_in_bytes_and_counts_for_its_address() {
    let settings = [
        ("limits.session.outbox_bytes.high", "1000"),
        ("limits.session.outbox_bytes.max", "3000"),
        ("limits.memory.per_address", "65536"),
        ("limits.address.trusted", ""),
    ];
    let mut world = World::new(SHARDS, &settings);
    let mut ann = Listener::packed(&mut world, 0, "ann");
    let mut bob = Listener::packed(&mut world, 1, "bob");
    for name in ["plain:a", "plain:b"] {
        ann.subscribe(&mut world, name);
    }
    ann.told(&mut world);
    world.takes(ann.client, 0);
    let text = format!("\"{}\"", "x".repeat(900));
    for _ in 0..10 {
        bob.publish(&mut world, "plain:a", &text);
        bob.publish(&mut world, "plain:b", &text);
    }
    let (shard, key) = world.place_of(ann.client);
    let waiting = world.shards[shard].links.waiting_bytes(key);
    assert!((2000..=3000 + 1100).contains(&waiting), "{waiting}");
    world.takes(ann.client, usize::MAX);
    assert_eq!(world.shards[shard].links.waiting_bytes(key), 0);
    let told = ann.told(&mut world);
    for name in ["plain:a", "plain:b"] {
        let last = publication(name, 10, Some("bob"), &text);
        assert!(told.contains(&last), "the latest come in any case");
    }
}

#[test]
fn a_check_that_panics_allows_nothing() {
    let mut world = World::new(SHARDS, &[]);
    let mut ann = Listener::packed(&mut world, 0, "ann");
    ann.subscribe(&mut world, "trap:a");
    assert_eq!(ann.told(&mut world), [Told::Error { code: ErrorCode::Forbidden }]);
    ann.subscribe(&mut world, "plain:a");
    assert_eq!(ann.told(&mut world), [subscribed("plain:a", 0, false, 0)]);
}

#[test]
fn a_recovery_that_is_larger_than_the_outbox_takes_comes_whole_and_in_order() {
    let mut world = World::new(SHARDS, &[("limits.session.outbox_bytes.high", "300")]);
    let mut ann = Listener::packed(&mut world, 0, "ann");
    let mut bob = Listener::packed(&mut world, 1, "bob");
    ann.subscribe(&mut world, "chat:a");
    ann.told(&mut world);
    ann.vanish(&mut world);
    for value in 0..90 {
        bob.publish(&mut world, "chat:a", &format!("\"{value:050}\""));
    }
    ann.connect(&mut world, 2);
    bob.publish(&mut world, "chat:a", "90");
    assert_eq!(ann.offsets(&mut world), (1..=91).collect::<Vec<_>>());
}

#[test]
fn a_shard_that_is_behind_for_long_misses_publications_and_its_subscribers_see_it() {
    let mut world = World::new(2, &[("limits.queues.mail", "4")]);
    let name = (0..).map(|n| format!("drop:{n}")).find(|name| home_of(name, 2) == 0).unwrap();
    let mut ann = Listener::packed(&mut world, 1, "ann");
    let mut bob = Listener::packed(&mut world, 0, "bob");
    ann.subscribe(&mut world, &name);
    ann.told(&mut world);
    world.space[1] = 0;
    for value in 0..10 {
        bob.publish(&mut world, &name, &value.to_string());
    }
    assert_eq!(world.counters(0).publications_dropped, 6);
    world.space[1] = usize::MAX;
    world.run();
    bob.publish(&mut world, &name, "10");
    assert_eq!(ann.offsets(&mut world), [1, 2, 3, 4, 11]);
}

#[test]
fn rooms_publish_and_what_they_may_not_is_counted() {
    let mut world = World::new(SHARDS, &[]);
    let mut ann = Listener::packed(&mut world, 0, "ann");
    for name in ["news:rooms", "news:a:b"] {
        ann.subscribe(&mut world, name);
    }
    ann.told(&mut world);
    let bob = world.client(1);
    let create = ClientMessage::Create(client::Create {
        request: RequestNumber(1),
        room_type: "herald".into(),
        private: false,
        code: false,
        key: None,
        options: b"\0",
    });
    world.say(bob, &super::speech::encoded(Format::Packed, &create));
    world.wait(100);
    assert_eq!(ann.told(&mut world), [publication("news:rooms", 1, None, "0")]);
    let say = |world: &mut World, channel: &str, value| {
        let mut payload = Vec::new();
        Say { channel: channel.into(), value }.encode(&mut payload);
        let message = MessageRef::Index(0);
        let send =
            ClientMessage::Send(client::Send { room: RoomNumber(1), message, payload: &payload });
        world.say(bob, &super::speech::encoded(Format::Packed, &send));
    };
    for value in 1..=3 {
        say(&mut world, "news:a:b", value);
    }
    let told = ann.told(&mut world);
    let expected: Vec<_> =
        (1..=3).map(|value| publication("news:a:b", value, None, &value.to_string())).collect();
    assert_eq!(told, expected);
    say(&mut world, "nothing", 1);
    say(&mut world, "bytes:a", 1);
    let refused: u64 = (0..SHARDS).map(|shard| world.counters(shard).publications_refused).sum();
    assert_eq!(refused, 2);
}

#[test]
fn each_limit_holds_and_one_past_it_is_refused() {
    let refused = [Told::Error { code: ErrorCode::Limit }];
    let mut world = World::new(
        SHARDS,
        &[("limits.session.subscriptions", "2"), ("limits.channels.total", "3")],
    );
    let mut ann = Listener::packed(&mut world, 0, "ann");
    let mut bob = Listener::packed(&mut world, 1, "bob");
    for name in ["plain:a", "plain:b"] {
        ann.subscribe(&mut world, name);
        assert_eq!(ann.told(&mut world), [subscribed(name, 0, false, 0)]);
    }
    ann.subscribe(&mut world, "plain:c");
    assert_eq!(ann.told(&mut world), refused);
    ann.subscribe(&mut world, "plain:a");
    assert_eq!(ann.told(&mut world), [subscribed("plain:a", 0, false, 0)], "it has that one");
    bob.subscribe(&mut world, "plain:c");
    assert_eq!(bob.told(&mut world), [subscribed("plain:c", 0, false, 0)]);
    bob.subscribe(&mut world, "plain:d");
    assert_eq!(bob.told(&mut world), refused, "limits.channels.total");
    bob.publish(&mut world, "chat:d", "1");
    assert_eq!(bob.told(&mut world), refused, "it would keep the publication");

    let settings = [("limits.name_bytes.channel", "8"), ("limits.payload_bytes", "5")];
    let mut world = World::new(SHARDS, &settings);
    let mut ann = Listener::packed(&mut world, 0, "ann");
    ann.subscribe(&mut world, "plain:ab");
    assert_eq!(ann.told(&mut world), [subscribed("plain:ab", 0, false, 0)]);
    ann.subscribe(&mut world, "plain:abc");
    assert_eq!(ann.told(&mut world), refused);
    ann.publish(&mut world, "plain:a", "12345");
    assert_eq!(ann.told(&mut world), [Told::Published { offset: 0 }]);
    ann.publish(&mut world, "plain:a", "123456");
    assert_eq!(ann.told(&mut world), refused);

    let settings = [
        ("limits.session.publishes.per_second", "2"),
        ("tuning.subscribes.per_second", "3"),
        ("tuning.channel_reads.per_second", "2"),
        ("limits.listed.members", "1"),
        ("limits.listed.publications", "2"),
        ("tuning.history_listed_bytes", "1"),
    ];
    let mut world = World::new(SHARDS, &settings);
    let mut ann = Listener::packed(&mut world, 0, "ann");
    let mut bob = Listener::packed(&mut world, 0, "bob");
    bob.subscribe(&mut world, "chat:a");
    for name in ["chat:a", "chat:b", "chat:c"] {
        ann.subscribe(&mut world, name);
    }
    assert!(!ann.told(&mut world).contains(&refused[0]));
    ann.subscribe(&mut world, "chat:d");
    assert_eq!(ann.told(&mut world), refused, "tuning.subscribes");
    for value in ["1", "2", "3"] {
        ann.publish(&mut world, "chat:a", value);
    }
    let told = ann.told(&mut world);
    assert_eq!(told.iter().filter(|told| **told == refused[0]).count(), 1, "{told:?}");
    ann.ask_members(&mut world, "chat:a");
    let names = |told: &[Told]| match told {
        [Told::Members { count, names, .. }] => (*count, names.len()),
        other => panic!("{other:?}"),
    };
    assert_eq!(names(&ann.told(&mut world)), (2, 1), "limits.listed.members");
    ann.ask_history(&mut world, "chat:a", 0, 0);
    let publications = vec![(1, "1".to_owned())];
    let one = [Told::History { offset: 2, publications }];
    assert_eq!(ann.told(&mut world), one, "tuning.history_listed_bytes");
    ann.ask_members(&mut world, "chat:a");
    assert_eq!(ann.told(&mut world), refused, "tuning.channel_reads");

    let mut world = World::new(SHARDS, &[("limits.session.channels_opened.per_minute", "3")]);
    let mut ann = Listener::packed(&mut world, 0, "ann");
    for name in ["plain:a", "plain:b", "plain:b", "plain:c", "plain:a"] {
        ann.publish(&mut world, name, "1");
        assert_eq!(ann.told(&mut world), [Told::Published { offset: 0 }]);
    }
    ann.subscribe(&mut world, "plain:d");
    assert_eq!(ann.told(&mut world), refused, "limits.session.channels_opened");
    world.wait(20_000);
    ann.subscribe(&mut world, "plain:d");
    assert!(ann.told(&mut world).contains(&subscribed("plain:d", 0, false, 0)));

    let settings =
        [("limits.address.channels_opened.per_minute", "3"), ("limits.address.trusted", "")];
    let mut world = World::new(SHARDS, &settings);
    let mut ann = Listener::packed(&mut world, 0, "ann");
    let mut bob = Listener::packed(&mut world, 1, "bob");
    for name in ["plain:a", "plain:b", "plain:a"] {
        ann.publish(&mut world, name, "1");
        assert_eq!(ann.told(&mut world), [Told::Published { offset: 0 }]);
    }
    bob.subscribe(&mut world, "plain:a");
    assert_eq!(bob.told(&mut world), [subscribed("plain:a", 0, false, 0)]);
    bob.subscribe(&mut world, "plain:b");
    assert_eq!(bob.told(&mut world), refused, "limits.address.channels_opened");
    assert_eq!(world.counters(1).channels_refused_by_address, 1);
    ann.publish(&mut world, "plain:a", "1");
    assert_eq!(ann.told(&mut world), [Told::Published { offset: 1 }], "it has used it before");

    let settings = [
        ("limits.channels.per_address", "3"),
        ("timeouts.channel", "1000ms"),
        ("limits.address.trusted", ""),
    ];
    let mut world = World::new(SHARDS, &settings);
    let mut ann = Listener::packed(&mut world, 0, "ann");
    let mut bob = Listener::packed(&mut world, 1, "bob");
    // What exists counts once, and not what only passes.
    for name in ["plain:a", "plain:b", "plain:c", "plain:d"] {
        ann.publish(&mut world, name, "1");
        assert_eq!(ann.told(&mut world), [Told::Published { offset: 0 }]);
    }
    for name in ["plain:a", "plain:b"] {
        ann.subscribe(&mut world, name);
        assert_eq!(ann.told(&mut world), [subscribed(name, 0, false, 0)]);
        bob.subscribe(&mut world, name);
        assert_eq!(bob.told(&mut world), [subscribed(name, 0, false, 0)]);
    }
    bob.publish(&mut world, "chat:a", "1");
    assert_eq!(bob.told(&mut world), [Told::Published { offset: 1 }]);
    bob.publish(&mut world, "chat:b", "1");
    assert_eq!(bob.told(&mut world), refused, "limits.channels.per_address");
    ann.subscribe(&mut world, "plain:e");
    assert_eq!(ann.told(&mut world), refused, "limits.channels.per_address");
    let counted: u64 = (0..SHARDS).map(|at| world.counters(at).channels_refused_by_address).sum();
    assert_eq!(counted, 2);
    bob.publish(&mut world, "chat:a", "2");
    assert_eq!(bob.told(&mut world), [Told::Published { offset: 2 }], "it is there");
    // A channel of two subscribers ends with both.
    ann.unsubscribe(&mut world, "plain:b");
    world.wait(2_000);
    ann.subscribe(&mut world, "plain:e");
    assert_eq!(ann.told(&mut world), refused, "bob subscribes still");
    bob.unsubscribe(&mut world, "plain:b");
    world.wait(2_000);
    ann.subscribe(&mut world, "plain:e");
    assert_eq!(ann.told(&mut world), [subscribed("plain:e", 0, false, 0)]);

    let mut world = World::new(SHARDS, &[("limits.history_bytes.total", "250")]);
    let mut ann = Listener::packed(&mut world, 0, "ann");
    for value in ["1", "2", "3"] {
        ann.publish(&mut world, "chat:a", value);
    }
    ann.told(&mut world);
    ann.subscribe_from(&mut world, "chat:a", Some(Position { epoch: 0, offset: 0 }));
    assert_eq!(ann.offsets(&mut world), [2, 3], "limits.history_bytes.total");
}

/// A client that asks for what it has missed in many channels, and reads none of it.
#[test]
fn what_was_missed_in_several_channels_waits_up_to_outbox_bytes_max() {
    let settings = [
        ("limits.session.outbox_bytes.high", "1000"),
        ("limits.session.outbox_bytes.max", "3000"),
        ("limits.session.publishes.per_second", "1000"),
    ];
    let mut world = World::new(SHARDS, &settings);
    let mut ann = Listener::packed(&mut world, 0, "ann");
    let mut bob = Listener::packed(&mut world, 1, "bob");
    let names: Vec<_> = (0..8).map(|number| format!("chat:{number}")).collect();
    names.iter().for_each(|name| ann.subscribe(&mut world, name));
    ann.told(&mut world);
    ann.vanish(&mut world);
    for name in &names {
        for _ in 0..20 {
            bob.publish(&mut world, name, "1");
        }
    }
    ann.connect_and_read(&mut world, 0, 0);
    let (shard, key) = world.place_of(ann.client);
    let waiting = world.shards[shard].links.waiting_bytes(key);
    assert!((2900..=3000).contains(&waiting), "{waiting}");
    world.takes(ann.client, usize::MAX);
    let told = ann.told(&mut world);
    let (mut whole, mut cut) = (0, 0);
    for name in &names {
        let of = |told: &&Told| match told {
            Told::Publication { channel, .. } => channel == name,
            _ => false,
        };
        let offsets = told.iter().filter(of).map(|told| match told {
            Told::Publication { offset, .. } => *offset,
            _ => 0,
        });
        let offsets: Vec<_> = offsets.collect();
        let start = told.iter().find_map(|told| match told {
            Told::Subscribed { channel, offset, recovered, .. } if channel == name => {
                Some((*offset, *recovered))
            }
            _ => None,
        });
        let (offset, recovered) = start.expect("it has subscribed");
        assert_eq!(offsets, (offset + 1..=20).collect::<Vec<_>>(), "without a gap to the latest");
        assert_eq!(recovered, offset == 0, "what is left out is said");
        whole += usize::from(recovered);
        cut += usize::from(!recovered);
    }
    assert!(whole >= 1 && cut >= 1, "{whole} {cut}");
    let dropped: u64 = (0..SHARDS).map(|at| world.counters(at).publications_dropped).sum();
    assert!(dropped > 0, "it is counted");
}

/// Returns the number of publications that a channel keeps.
fn kept(world: &mut World, listener: &mut Listener, channel: &str) -> usize {
    listener.told(world);
    listener.ask_history(world, channel, 0, 0);
    match &listener.told(world)[..] {
        [Told::History { publications, .. }] => publications.len(),
        told => panic!("{told:?}"),
    }
}

fn evicted(world: &mut World) -> (u64, u64) {
    let counters = (0..SHARDS).map(|shard| world.counters(shard));
    counters.fold((0, 0), |(by_node, by_address), counters| {
        let of_address = counters.history_evicted_by_address;
        (by_node + counters.history_evicted, by_address + of_address)
    })
}

#[test]
fn one_address_takes_no_history_from_the_channels_of_others() {
    let settings = [("limits.history_bytes.total", "9000"), ("limits.address.trusted", "")];
    // Its channels are spread over the shards, or all have the same home.
    for home in [None, Some(0)] {
        let mut world = World::new(SHARDS, &settings);
        let mut ann = Listener::packed(&mut world, 1, "ann");
        let mut hog = Listener::at([10, 0, 0, 2], &mut world, 0, "hog", false, Format::Packed);
        let mine: Vec<_> = (0..SHARDS as u16).map(|home| channel("chat", home)).collect();
        for value in ["1", "2", "3"] {
            mine.iter().for_each(|name| ann.publish(&mut world, name, value));
        }
        let is_there = |name: &String| home.is_none_or(|home| home_of(name, SHARDS) == home);
        let names = (0..).map(|number| format!("chat:hog{number}")).filter(is_there);
        // Many small channels, and then a few that are larger than hers.
        let names: Vec<_> = names.take(40).collect();
        for name in names.iter().chain(std::iter::repeat_n(&names[0], 60)) {
            hog.publish(&mut world, name, "1");
        }
        let count: Vec<_> = mine.iter().map(|name| kept(&mut world, &mut ann, name)).collect();
        assert_eq!(count, [3, 3, 3], "{home:?}");
        // Nor from those that come later.
        for name in &mine {
            let name = format!("{name}new");
            ann.publish(&mut world, &name, "1");
            assert_eq!(kept(&mut world, &mut ann, &name), 1, "{home:?}");
        }
        let of_hog = names.iter().map(|name| kept(&mut world, &mut hog, name)).sum::<usize>();
        assert!((60..90).contains(&of_hog), "{of_hog}");
        assert_eq!(evicted(&mut world), (100 - of_hog as u64, 0));
    }
}

#[test]
fn the_channels_of_an_address_keep_so_many_bytes_and_not_one_more() {
    let publication =
        Publication { offset: 1, user: Some("ann".into()), payload: Payload::json(b"1").unwrap() };
    for (bytes, expected) in [(0, [3, 2]), (1, [2, 2])] {
        let max = (5 * publication.memory() - bytes).to_string();
        let settings =
            [("limits.history_bytes.per_address", &*max), ("limits.address.trusted", "")];
        let mut world = World::new(SHARDS, &settings);
        let mut ann = Listener::packed(&mut world, 0, "ann");
        let mut bob = Listener::at([10, 0, 0, 2], &mut world, 1, "bob", false, Format::Packed);
        let of_bob = channel("chat", 2);
        bob.publish(&mut world, &of_bob, "1");
        // Both have the same home.
        let names = [channel("chat", 1), channel("short", 1)];
        for name in [0, 0, 1, 1, 0] {
            ann.publish(&mut world, &names[name], "1");
        }
        let count = [0, 1].map(|name| kept(&mut world, &mut ann, &names[name]));
        assert_eq!(count, expected);
        assert_eq!(evicted(&mut world), (0, bytes as u64));
        // He may publish in her channels, and that takes nothing of his.
        bob.publish(&mut world, &names[0], "1");
        assert_eq!(kept(&mut world, &mut bob, &of_bob), 1);
    }
}

#[test]
fn a_client_that_names_100_000_channels_gets_few_and_leaves_none() {
    const STEPS: usize = 100;
    const PER_STEP: usize = 1000;
    let mut world = World::new(SHARDS, &[("limits.session.publishes.per_second", "1000")]);
    let count =
        |world: &mut World| (0..SHARDS).map(|shard| world.counters(shard).channels).sum::<u64>();
    let mut ann = Listener::packed(&mut world, 0, "ann");
    let mut bob = Listener::packed(&mut world, 1, "bob");
    let (mut most, mut opened) = (0, 0);
    for step in 0..STEPS {
        let mut bytes = Vec::new();
        for number in 0..PER_STEP {
            let channel = format!("chat:{}", step * PER_STEP + number).into();
            let message = ClientMessage::Publish(client::Publish {
                request: Some(RequestNumber(1)),
                channel,
                payload: b"1",
            });
            let body = super::speech::encoded(Format::Packed, &message);
            bytes.extend(world.framed(ann.client, &body));
        }
        world.bytes(ann.client, &bytes);
        let told = ann.told(&mut world);
        assert_eq!(told.len(), PER_STEP, "each is answered");
        opened += told.iter().filter(|told| matches!(told, Told::Published { .. })).count();
        most = most.max(count(&mut world));
        if step % 5 == 0 {
            bob.publish(&mut world, &format!("chat:bob{step}"), "1");
            assert_eq!(bob.told(&mut world), [Told::Published { offset: 1 }], "{step}");
        }
        world.wait(1000);
    }
    // `limits.session.channels_opened` at once, and as many each minute.
    assert!((600..=600 + STEPS * 10 + 1).contains(&opened), "{opened}");
    // They are kept for a minute, and looked at once in a while.
    assert!((600..=1400).contains(&most), "{most}");
    ann.say(&mut world, &ClientMessage::Goodbye(client::Goodbye {}));
    world.wait(120_000);
    assert_eq!(count(&mut world), 0);
}

#[test]
fn a_session_that_ends_leaves_nothing_behind() {
    let mut world = World::new(SHARDS, &[("timeouts.channel", "0ms")]);
    for home in 0..SHARDS as u16 {
        let mut ann = Listener::packed(&mut world, 0, "ann");
        let name = channel("plain", home);
        ann.subscribe(&mut world, &name);
        ann.told(&mut world);
        ann.say(&mut world, &ClientMessage::Goodbye(client::Goodbye {}));
        world.wait(1);
    }
    for shard in 0..SHARDS {
        let counters = world.counters(shard);
        assert_eq!((counters.subscriptions, counters.channels), (0, 0), "{shard}");
    }
}
