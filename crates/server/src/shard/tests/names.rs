//! Rooms by key and by code.

use playfield_room::Message;
use playfield_state::Data;
use playfield_wire::client::{self, ClientMessage, write_request};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

use super::life_room::{Do, Setup};
use super::room;
use super::speech::{Heard, encoded, request};
use super::world::{Client, World};
use crate::shard::mail::ShardMail;
use crate::shard::mail::join::RETRIES;

const PACKED: Format = Format::Packed;

/// The request of a client for a room with a key.
#[derive(Clone, Copy, Debug)]
enum Ask {
    Join,
    Create,
    JoinOrCreate,
}

fn by_key(ask: Ask, key: &str, options: &str) -> Vec<u8> {
    let options = room::encoded(PACKED, options.as_bytes());
    let (request, room_type, options) = (RequestNumber(1), "test".into(), &*options);
    let (key, private, code) = (key.into(), false, false);
    let message = match ask {
        Ask::Join => ClientMessage::JoinByKey(client::JoinByKey { request, room_type, key }),
        Ask::Create => ClientMessage::Create(client::Create {
            request,
            room_type,
            private,
            code,
            key: Some(key),
            options,
        }),
        Ask::JoinOrCreate => ClientMessage::JoinOrCreate(client::JoinOrCreate {
            request,
            room_type,
            key: Some(key),
            options,
        }),
    };
    encoded(PACKED, &message)
}

/// A private room with a code.
fn with_code() -> Vec<u8> {
    let (request, room_type) = (RequestNumber(1), "test".into());
    let message = ClientMessage::Create(client::Create {
        request,
        room_type,
        private: true,
        code: true,
        key: None,
        options: b"",
    });
    encoded(PACKED, &message)
}

/// Sends messages of several clients in one turn.
fn at_once(world: &mut World, all: &[(Client, Vec<u8>)]) {
    let framed: Vec<_> =
        all.iter().map(|(client, body)| (*client, world.framed(*client, body))).collect();
    world.each(&framed);
}

/// The answer to a client's request for a room: the room's id and key, or a refusal.
fn answer(world: &mut World, client: Client) -> Result<(String, Option<String>), ErrorCode> {
    for _ in 0..20 {
        world.wait(60);
        for heard in world.heard(client) {
            match heard {
                Heard::Joined { id, key, .. } => return Ok((id, key)),
                Heard::Error { code, .. } => return Err(code),
                _ => {}
            }
        }
    }
    panic!("no answer came")
}

fn asks(
    world: &mut World,
    client: Client,
    ask: Ask,
    key: &str,
) -> Result<(String, Option<String>), ErrorCode> {
    world.say(client, &by_key(ask, key, ""));
    answer(world, client)
}

#[test]
fn a_key_names_one_room_of_a_type() {
    for shards in [1, 3] {
        let mut world = World::new(shards, &[]);
        let [ann, bob, eve] = [0, shards - 1, shards / 2].map(|shard| world.client(shard));
        let made = asks(&mut world, ann, Ask::Create, "document 42").unwrap();
        assert_eq!(made.1.as_deref(), Some("document 42"));
        assert_eq!(asks(&mut world, bob, Ask::Join, "document 42"), Ok(made.clone()));
        assert_eq!(asks(&mut world, eve, Ask::JoinOrCreate, "document 42"), Ok(made.clone()));
        for ask in [Ask::Join, Ask::JoinOrCreate] {
            assert_eq!(asks(&mut world, bob, ask, "document 42"), Err(ErrorCode::AlreadyJoined));
        }
        assert_eq!(asks(&mut world, bob, Ask::Create, "document 42"), Err(ErrorCode::RoomExists));
        assert_eq!(asks(&mut world, bob, Ask::Join, "Document 42"), Err(ErrorCode::RoomNotFound));
        let other = asks(&mut world, bob, Ask::JoinOrCreate, "document 43").unwrap();
        assert_ne!(other.0, made.0);
    }
}

#[test]
fn a_room_with_a_key_is_not_found_by_chance() {
    let mut world = World::new(1, &[]);
    let (ann, bob) = (world.client(0), world.client(0));
    let (made, _) = asks(&mut world, ann, Ask::Create, "document 42").unwrap();
    world.join_or_create(bob, RequestNumber(1), "");
    let (_, found) = world.joined(bob);
    assert_ne!(found, made);
}

#[test]
fn of_two_creators_of_a_key_one_wins() {
    for (ask, other) in [(Ask::Create, Ask::Create), (Ask::JoinOrCreate, Ask::JoinOrCreate)] {
        let mut world = World::new(2, &[]);
        let (ann, bob) = (world.client(0), world.client(1));
        at_once(&mut world, &[(ann, by_key(ask, "k", "")), (bob, by_key(other, "k", ""))]);
        let answers = [answer(&mut world, ann), answer(&mut world, bob)];
        match ask {
            Ask::Create => {
                assert!(answers[0].is_ok() != answers[1].is_ok(), "{answers:?}");
                assert!(answers.contains(&Err(ErrorCode::RoomExists)), "{answers:?}");
            }
            _ => assert!(answers[0].is_ok() && answers[0] == answers[1], "{answers:?}"),
        }
    }
}

#[test]
fn a_creator_who_is_refused_frees_the_key() {
    for options in ["refuse", "only=nobody", "panic"] {
        for shards in [1, 2] {
            let mut world = World::new(shards, &[]);
            let [ann, bob, eve] = [0, shards - 1, 0].map(|shard| world.client(shard));
            let all = [
                (ann, by_key(Ask::JoinOrCreate, "k", options)),
                (bob, by_key(Ask::JoinOrCreate, "k", "")),
                (eve, by_key(Ask::Join, "k", "")),
            ];
            at_once(&mut world, &all);
            assert!(answer(&mut world, ann).is_err(), "{options}");
            // Those who waited for her room: one makes another, one finds it or hears that there
            // is none.
            let made = answer(&mut world, bob).unwrap();
            let found = answer(&mut world, eve);
            assert!(found == Ok(made) || found == Err(ErrorCode::RoomNotFound), "{found:?}");
        }
    }
}

#[test]
fn a_creator_whose_request_gets_lost_frees_the_key() {
    let mut world = World::new(2, &[]);
    let (host, ann) = (world.client(1), world.client(1));
    world.room(host, "");
    // The room is to be on shard 0, whose mailbox is full.
    world.space[0] = 0;
    assert_eq!(asks(&mut world, ann, Ask::Create, "k"), Err(ErrorCode::Busy));
    world.space[0] = usize::MAX;
    assert!(asks(&mut world, ann, Ask::Create, "k").is_ok());
}

#[test]
fn a_key_is_taken_until_its_room_has_ended() {
    for ask in [Ask::Join, Ask::JoinOrCreate] {
        for shards in [1, 2] {
            let mut world = World::new(shards, &[]);
            let (ann, bob) = (world.client(0), world.client(shards - 1));
            let (made, _) = asks(&mut world, ann, Ask::Create, "k").unwrap();
            let close = request(PACKED, RoomNumber(1), RequestNumber(2), "close", "");
            at_once(&mut world, &[(ann, close), (bob, by_key(ask, "k", ""))]);
            match (ask, answer(&mut world, bob)) {
                (Ask::Join, answer) => assert_eq!(answer, Err(ErrorCode::RoomNotFound)),
                (_, answer) => assert_ne!(answer.unwrap().0, made),
            }
            world.wait(100);
            assert_eq!(
                asks(&mut world, ann, Ask::Create, "k").is_ok(),
                matches!(ask, Ask::Join),
                "the key is free again, unless someone has taken it"
            );
        }
    }
}

#[test]
fn a_full_room_with_a_key_is_not_made_again() {
    let mut world = World::new(1, &[]);
    let (ann, bob) = (world.client(0), world.client(0));
    world.say(ann, &by_key(Ask::Create, "k", "capacity=1"));
    answer(&mut world, ann).unwrap();
    for ask in [Ask::Join, Ask::JoinOrCreate] {
        assert_eq!(asks(&mut world, bob, ask, "k"), Err(ErrorCode::RoomFull));
    }
}

#[test]
fn keys_that_are_none() {
    let mut world = World::new(1, &[]);
    let ann = world.client(0);
    for ask in [Ask::Create, Ask::JoinOrCreate] {
        for key in ["", " k", "k\n", "k\u{200B}", "\u{202E}k"] {
            assert_eq!(asks(&mut world, ann, ask, key), Err(ErrorCode::BadKey), "{key:?}");
        }
        assert_eq!(asks(&mut world, ann, ask, &"k".repeat(129)), Err(ErrorCode::BadKey));
    }
    assert!(asks(&mut world, ann, Ask::Create, &"k".repeat(128)).is_ok());
    let both = ClientMessage::Create(client::Create {
        request: RequestNumber(1),
        room_type: "test".into(),
        private: false,
        code: true,
        key: Some("k".into()),
        options: b"",
    });
    world.say(ann, &encoded(PACKED, &both));
    assert_eq!(answer(&mut world, ann), Err(ErrorCode::BadKey));
}

#[test]
fn codes_are_short_and_read_in_any_case() {
    let mut world = World::new(2, &[]);
    let (ann, bob, eve) = (world.client(0), world.client(1), world.client(0));
    world.say(ann, &with_code());
    let made = answer(&mut world, ann).unwrap();
    let code = made.1.clone().unwrap();
    assert_eq!(code.len(), 6);
    assert_eq!(asks(&mut world, bob, Ask::Join, &code.to_lowercase()), Ok(made.clone()));
    let spaced = format!("{}-{}", &code[..3], &code[3..]);
    assert_eq!(asks(&mut world, eve, Ask::Join, &spaced), Ok(made));
    // A key that looks like the code is taken.
    let lower = code.to_lowercase();
    assert_eq!(asks(&mut world, bob, Ask::Create, &lower), Err(ErrorCode::RoomExists));
}

#[test]
fn guesses_of_keys_are_limited() {
    let mut world = World::new(1, &[("limits.session.keys_missed.per_minute", "2")]);
    let (ann, bob) = (world.client(0), world.client(0));
    asks(&mut world, ann, Ask::Create, "k").unwrap();
    for key in ["a", "b"] {
        assert_eq!(asks(&mut world, bob, Ask::Join, key), Err(ErrorCode::RoomNotFound));
    }
    assert_eq!(asks(&mut world, bob, Ask::Join, "k"), Err(ErrorCode::Limit));
    assert_eq!(world.counters(0).keys_refused, 1);
    world.wait(30_000);
    assert!(asks(&mut world, bob, Ask::Join, "k").is_ok());
}

#[test]
fn a_creator_who_leaves_at_once_is_nobodys_loss() {
    for shards in [1, 2] {
        let mut world = World::new(shards, &[]);
        let (ann, bob) = (world.client(0), world.client(shards - 1));
        let mut said = world.framed(ann, &by_key(Ask::JoinOrCreate, "k", ""));
        said.extend(
            world.framed(ann, &encoded(PACKED, &ClientMessage::Goodbye(client::Goodbye {}))),
        );
        let wanted = world.framed(bob, &by_key(Ask::JoinOrCreate, "k", ""));
        world.each(&[(ann, said), (bob, wanted)]);
        assert!(answer(&mut world, bob).is_ok());
        assert!(world.is_over(ann));
    }
}

/// A request for a room of the type `life`.
fn life(ask: Ask, key: Option<&str>, setup: &Setup) -> Vec<u8> {
    let mut options = Vec::new();
    setup.encode(&mut options);
    let (request, room_type, options) = (RequestNumber(1), "life".into(), &*options);
    let (key, private, code) = (key.map(Into::into), false, false);
    let message = match (ask, key) {
        (Ask::Join, Some(key)) => {
            ClientMessage::JoinByKey(client::JoinByKey { request, room_type, key })
        }
        (Ask::Create, key) => ClientMessage::Create(client::Create {
            request,
            room_type,
            private,
            code,
            key,
            options,
        }),
        (_, key) => {
            ClientMessage::JoinOrCreate(client::JoinOrCreate { request, room_type, key, options })
        }
    };
    encoded(PACKED, &message)
}

/// A request to the first room that the client has joined, of the type `life`.
fn to_life(what: &Do) -> Vec<u8> {
    let (mut payload, mut body) = (Vec::new(), Vec::new());
    what.encode(&mut payload);
    write_request(PACKED, &mut body, RoomNumber(1), RequestNumber(2), 0, Do::NAME, &payload);
    body
}

/// A session that may not be sent a snapshot yet is in the room before its client hears so. If the
/// room ends by then, the client hears that it was in, and of the end.
#[test]
fn a_join_whose_snapshot_is_delayed_is_not_refused_because_the_room_ends() {
    let asks = [(Ask::Join, Some("k")), (Ask::JoinOrCreate, Some("k")), (Ask::JoinOrCreate, None)];
    for (shards, (ask, key)) in [1, 2].into_iter().flat_map(|shards| asks.map(|ask| (shards, ask)))
    {
        let mut world = World::new(shards, &[("limits.session.snapshots.per_second", "1")]);
        let [ann, bob] = [0, shards - 1].map(|shard| world.client(shard));
        for _ in 0..shards {
            world.room(bob, "");
        }
        // The room that bob leaves is on shard 0, and so is the next one.
        let leave = ClientMessage::Leave(client::Leave {
            request: RequestNumber(2),
            room: RoomNumber(shards as u32),
        });
        world.say(bob, &encoded(PACKED, &leave));
        world.say(ann, &life(Ask::Create, key, &Setup::default()));
        let (id, _) = answer(&mut world, ann).unwrap();
        world.heard(bob);
        assert_eq!(world.shard_of(ann) == world.shard_of(bob), shards == 1);

        world.say(bob, &life(ask, key, &Setup::default()));
        world.wait(200);
        assert_eq!(world.heard(bob), [], "its snapshot is delayed");
        world.say(ann, &to_life(&Do::Close));
        let heard = world.heard(bob);
        let [Heard::Joined { id: joined, .. }, Heard::Snapshot { .. }, .., last] = &heard[..]
        else {
            panic!("{heard:?}")
        };
        assert_eq!(joined, &id);
        assert!(matches!(last, Heard::Left { code: ErrorCode::RoomClosed, .. }), "{last:?}");
        world.run_background();
        world.say(bob, &life(Ask::JoinOrCreate, key, &Setup::default()));
        let (next, _) =
            answer(&mut world, bob).expect("the early snapshot does not count against it");
        assert_ne!(next, id);
    }
}

/// The answer to a client whose room is closed this many times before it opens.
fn closed_before_it_opens(shards: usize, key: Option<&str>, times: u8) -> Result<(), ErrorCode> {
    let mut world = World::new(shards, &[]);
    let client = world.client(0);
    if shards > 1 {
        // A room on its shard keeps the client there. The next room is on another shard.
        world.room(client, "");
    }
    world.say(
        client,
        &life(Ask::JoinOrCreate, key, &Setup { holds_room: true, ..Setup::default() }),
    );
    for _ in 0..times {
        let shard = &mut world.shards[shards - 1];
        let [room] = shard.host.by_id.keys().copied().collect::<Vec<_>>()[..] else {
            panic!("one room is opening")
        };
        shard.mail(ShardMail::Close { room, text: "over".into() });
        world.wait(10);
    }
    world.run_background();
    answer(&mut world, client).map(drop)
}

#[test]
fn a_room_that_is_closed_before_it_opens_is_followed_by_another_up_to_a_limit() {
    for shards in [1, 2] {
        for key in [None, Some("k")] {
            assert_eq!(closed_before_it_opens(shards, key, 1), Ok(()));
            assert_eq!(closed_before_it_opens(shards, key, RETRIES), Ok(()));
            let answer = closed_before_it_opens(shards, key, RETRIES + 1);
            assert_eq!(answer, Err(ErrorCode::Busy), "{shards} {key:?}");
        }
    }
}

#[test]
fn a_room_that_ends_as_someone_comes_is_passed_over_for_another() {
    for end in [Do::Close, Do::Panic] {
        let mut world = World::new(1, &[]);
        let [ann, eve, bob] = [world.client(0), world.client(0), world.client(0)];
        for client in [ann, eve] {
            world.say(client, &life(Ask::Create, None, &Setup::default()));
        }
        let (ended, _) = answer(&mut world, ann).unwrap();
        let (other, _) = answer(&mut world, eve).unwrap();
        let join = life(Ask::JoinOrCreate, None, &Setup::default());
        at_once(&mut world, &[(ann, to_life(&end)), (bob, join)]);
        let (found, _) = answer(&mut world, bob).unwrap();
        assert!(found == other && found != ended, "{end:?}");
    }
}
