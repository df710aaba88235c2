//! The beginning and end of rooms, and what their clients hear of it.

use std::collections::{BTreeMap, BTreeSet};

use playfield_room::Message;
use playfield_state::Data;
use playfield_wire::client::{self, ClientMessage, write_request};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};
use proptest::prelude::*;

use super::life_room::{Do, Setup, take_called, take_saved, take_seen};
use super::speech::{Heard, encoded};
use super::world::{Client, World};

/// A client's next request.
fn ask(world: &mut World, client: Client, room: RoomNumber, request: u32, what: &Do) {
    let (mut payload, mut body) = (Vec::new(), Vec::new());
    what.encode(&mut payload);
    let request = RequestNumber(request);
    write_request(Format::Packed, &mut body, room, request, 0, Do::NAME, &payload);
    world.say(client, &body);
}

fn enter(world: &mut World, client: Client, request: u32, setup: Option<&Setup>) {
    let mut options = Vec::new();
    if let Some(setup) = setup {
        setup.encode(&mut options);
    }
    let (request, room_type) = (RequestNumber(request), "life".into());
    let message = match setup {
        Some(_) => ClientMessage::Create(client::Create {
            request,
            room_type,
            private: false,
            code: false,
            key: None,
            options: &options,
        }),
        None => ClientMessage::JoinOrCreate(client::JoinOrCreate {
            request,
            room_type,
            key: None,
            options: &options,
        }),
    };
    world.say(client, &encoded(Format::Packed, &message));
}

/// A client in a new room of this kind.
fn founder(world: &mut World, shard: usize, setup: &Setup) -> (Client, RoomNumber, String) {
    let client = world.client(shard);
    enter(world, client, 1, Some(setup));
    world.run_background();
    let (room, id) = world.joined(client);
    (client, room, id)
}

/// The requests that are answered with an error, and with which.
fn refusals(heard: &[Heard]) -> Vec<(u32, ErrorCode)> {
    let refusal = |heard: &Heard| match heard {
        Heard::Error { request: Some(request), code, .. } => Some((request.0, *code)),
        _ => None,
    };
    heard.iter().filter_map(refusal).collect()
}

#[test]
fn at_a_shutdown_players_get_the_last_changes_and_rooms_save_before_the_goodbye() {
    take_called();
    let mut world = World::new(2, &[]);
    let (ann, room, id) = founder(&mut world, 0, &Setup::default());
    let (far, _, _) = founder(&mut world, 1, &Setup::default());
    world.join(far, RequestNumber(9), &id);
    world.joined(far);
    assert_ne!(world.shard_of(ann), world.shard_of(far), "a session of another shard is there");
    ask(&mut world, ann, room, 2, &Do::Add);
    ask(&mut world, ann, room, 3, &Do::Wait);
    for client in [ann, far] {
        world.heard(client);
    }

    world.close_rooms();
    let heard = world.heard(ann);
    let [event, patch, error, left] = &heard[..] else { panic!("{heard:?}") };
    assert!(matches!(event, Heard::Event { .. }) && matches!(patch, Heard::Patch { .. }));
    assert_eq!(refusals(std::slice::from_ref(error)), [(3, ErrorCode::RoomClosed)]);
    assert!(matches!(left, Heard::Left { code: ErrorCode::ShuttingDown, .. }));
    let lefts = world.heard(far).iter().filter(|heard| matches!(heard, Heard::Left { .. })).count();
    assert_eq!(lefts, 2);
    assert!(!world.have_closed_rooms() && take_saved().is_empty());
    let called = take_called();
    let leaves = "leave 1 RoomEnded(ShuttingDown)";
    assert!(called.contains(&"closing ShuttingDown".into()) && called.contains(&leaves.into()));

    enter(&mut world, ann, 4, None);
    assert_eq!(refusals(&world.heard(ann)), [(4, ErrorCode::ShuttingDown)]);

    world.run_background();
    assert!(world.have_closed_rooms());
    assert_eq!(take_saved()[&id], 1_001, "what was acknowledged is saved");
    world.say_goodbye();
    for client in [ann, far] {
        let heard = world.heard(client);
        assert_eq!(heard, [Heard::Goodbye { code: ErrorCode::ShuttingDown }]);
    }
}

#[test]
fn a_room_that_does_not_end_is_dropped_at_the_end_of_the_shutdown() {
    let mut world = World::new(1, &[]);
    let (ann, ..) = founder(&mut world, 0, &Setup { hangs: true, ..Setup::default() });
    world.close_rooms();
    world.run_background();
    assert!(!world.have_closed_rooms());
    world.say_goodbye();
    assert!(world.have_closed_rooms());
    assert!(matches!(world.heard(ann).last(), Some(Heard::Goodbye { .. })));
}

#[test]
fn a_room_that_does_not_end_is_dropped_after_closing_ms() {
    let mut world = World::new(1, &[]);
    let (ann, room, id) = founder(&mut world, 0, &Setup { hangs: true, ..Setup::default() });
    ask(&mut world, ann, room, 2, &Do::Close);
    world.run_background();
    let late = world.client(0);
    world.join(late, RequestNumber(1), &id);
    assert_eq!(refusals(&world.heard(late)), [(1, ErrorCode::RoomClosed)]);
    assert_eq!(world.counters(0).rooms, 1, "it keeps its id");
    world.wait(1_600);
    assert_eq!(world.counters(0).rooms, 0);
    world.join(late, RequestNumber(2), &id);
    assert_eq!(refusals(&world.heard(late)), [(2, ErrorCode::RoomNotFound)]);
}

#[test]
fn a_client_that_reads_nothing_still_gets_the_last_patch_when_it_reads_again() {
    let mut world = World::new(1, &[]);
    let (ann, room, _) = founder(&mut world, 0, &Setup::default());
    world.heard(ann);
    world.takes(ann, 0);
    ask(&mut world, ann, room, 2, &Do::Add);
    world.wait(200);
    ask(&mut world, ann, room, 3, &Do::Close);
    world.takes(ann, usize::MAX);
    let heard = world.heard(ann);
    let patch = heard.iter().rposition(|heard| matches!(heard, Heard::Patch { .. }));
    let left = heard.iter().position(|heard| matches!(heard, Heard::Left { .. }));
    assert!(patch.is_some() && patch < left, "{heard:?}");
}

#[test]
fn joins_wait_here_and_on_other_shards_until_the_room_decides() {
    let mut world = World::new(2, &[]);
    let setup = Setup { holds_room: true, holds_players: true, ..Setup::default() };
    let ann = world.client(0);
    enter(&mut world, ann, 1, Some(&setup));
    world.wait(100);
    assert!(world.heard(ann).is_empty(), "the room is not open");
    world.run_background();
    world.wait(100);
    assert!(world.heard(ann).is_empty(), "the player waits");
    world.run_background();
    let (_, id) = world.joined(ann);

    let (far, _, _) = founder(&mut world, 1, &Setup::default());
    let unknown = world.named_client(0, false, Format::Packed, "unknown");
    let gone = world.client(0);
    for client in [far, unknown, gone] {
        world.heard(client);
        world.join(client, RequestNumber(9), &id);
    }
    assert!(world.heard(far).is_empty() && world.heard(unknown).is_empty());
    let full = world.client(0);
    world.join(full, RequestNumber(9), &id);
    assert_eq!(refusals(&world.heard(full)), [(9, ErrorCode::RoomFull)], "who waits has a seat");
    world.vanish(gone);
    world.join(full, RequestNumber(10), &id);
    assert!(world.heard(full).is_empty(), "the seat of one who left is free");
    world.run_background();
    world.joined(far);
    world.joined(full);
    assert_eq!(refusals(&world.heard(unknown)), [(9, ErrorCode::Room(1_003))]);
}

#[test]
fn a_wait_ends_by_its_deadline_or_with_the_room_and_the_founders_room_with_it() {
    let mut world = World::new(1, &[]);
    let (ann, bob) = (world.client(0), world.client(0));
    let never = Setup { never: true, ..Setup::default() };
    enter(&mut world, ann, 1, Some(&never));
    world.wait(500);
    enter(&mut world, bob, 1, None);
    world.wait(600);
    assert_eq!(refusals(&world.heard(ann)), [(1, ErrorCode::Timeout)]);
    assert_eq!(refusals(&world.heard(bob)), [(1, ErrorCode::Timeout)]);
    assert_eq!(world.counters(0).rooms, 0);

    let unknown = world.named_client(0, false, Format::Packed, "unknown");
    world.heard(unknown);
    let holds = Setup { holds_players: true, ..Setup::default() };
    enter(&mut world, unknown, 2, Some(&holds));
    assert_eq!(world.counters(0).rooms, 1);
    world.run_background();
    assert_eq!(refusals(&world.heard(unknown)), [(2, ErrorCode::Room(1_003))]);
    world.run_background();
    assert_eq!(world.counters(0).rooms, 0, "a room that refused its founder ends");

    enter(&mut world, ann, 3, Some(&holds));
    world.vanish(ann);
    world.run_background();
    assert_eq!(world.counters(0).rooms, 0, "also if they do not wait");
}

#[test]
fn replies_come_in_the_order_in_which_the_room_gives_them() {
    let mut world = World::new(1, &[]);
    let (ann, room, _) = founder(&mut world, 0, &Setup::default());
    world.heard(ann);
    for (request, what) in [(2, Do::Wait), (3, Do::Work), (4, Do::Add), (5, Do::Answer)] {
        ask(&mut world, ann, room, request, &what);
    }
    ask(&mut world, ann, room, 3, &Do::Add);
    world.run_background();
    let heard = world.heard(ann);
    let replies: Vec<u32> = heard
        .iter()
        .filter_map(|heard| match heard {
            Heard::Reply { request, .. } => Some(request.0),
            _ => None,
        })
        .collect();
    assert_eq!(replies, [4, 2, 5, 3]);
    assert_eq!(refusals(&heard), [(3, ErrorCode::DuplicateRequest)], "it is still unanswered");
}

/// The next step of one client, or of the world.
#[derive(Clone, Debug)]
enum Step {
    Connect { shard: usize, name: usize },
    Create(Setup),
    Join { pick: usize },
    JoinOrCreate,
    Ask { pick: usize, what: Do },
    Leave { pick: usize },
    Goodbye,
    Vanish,
    Background,
    Wait(u64),
}

const NAMES: [&str; 4] = ["ann", "bob", "unknown", "refused"];

fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let what = prop_oneof![
        4 => Just(Do::Add), 4 => Just(Do::Wait), 2 => Just(Do::Answer), 3 => Just(Do::Work),
        1 => Just(Do::KickMe), 1 => Just(Do::Close), 1 => Just(Do::Panic),
    ];
    let setup =
        (any::<bool>(), any::<bool>(), prop::bool::weighted(0.1), prop::bool::weighted(0.2))
            .prop_map(|(holds_room, holds_players, never, hangs)| Setup {
                holds_room,
                holds_players,
                never,
                hangs,
            });
    let step = prop_oneof![
        3 => (0..2_usize, 0..NAMES.len()).prop_map(|(shard, name)| Step::Connect { shard, name }),
        4 => setup.prop_map(Step::Create),
        6 => any::<usize>().prop_map(|pick| Step::Join { pick }),
        2 => Just(Step::JoinOrCreate),
        12 => (any::<usize>(), what).prop_map(|(pick, what)| Step::Ask { pick, what }),
        2 => any::<usize>().prop_map(|pick| Step::Leave { pick }),
        1 => Just(Step::Goodbye),
        1 => Just(Step::Vanish),
        5 => Just(Step::Background),
        4 => (0..700_u64).prop_map(Step::Wait),
    ];
    prop::collection::vec((any::<usize>(), step), 1..80)
}

/// The expectations that a client has of the node.
#[derive(Default)]
struct Expects {
    client: Client,
    /// Unanswered requests, with the room that they went to; `None` for those to the node.
    open: BTreeMap<u32, Option<RoomNumber>>,
    rooms: BTreeSet<RoomNumber>,
    requests: u32,
    is_gone: bool,
}

impl Expects {
    fn begin(&mut self, to: Option<RoomNumber>) -> u32 {
        self.requests += 1;
        self.open.insert(self.requests, to);
        self.requests
    }

    fn answered(&mut self, request: RequestNumber) {
        assert!(self.open.remove(&request.0).is_some(), "request {request} is answered once");
    }

    /// Takes in what the node said; the ids of rooms that were joined.
    fn hear(&mut self, world: &mut World, ids: &mut Vec<String>) {
        for heard in world.heard(self.client) {
            match heard {
                Heard::Joined { request, room, id, .. } => {
                    self.answered(request);
                    assert!(self.rooms.insert(room));
                    ids.push(id);
                }
                Heard::Reply { request, .. } | Heard::Error { request: Some(request), .. } => {
                    self.answered(request);
                }
                Heard::Left { request, room, .. } => {
                    assert!(self.rooms.remove(&room), "a room is left once");
                    // Void with the room, as the protocol says.
                    self.open.retain(|number, to| {
                        Some(RequestNumber(*number)) != request && *to != Some(room)
                    });
                }
                Heard::Goodbye { .. } => self.open.clear(),
                _ => {}
            }
        }
    }
}

/// Plays the steps in a world of this many shards, where rooms may panic or not.
fn play(shards: usize, panics: bool, steps: Vec<(usize, Step)>) {
    drop((take_seen(), take_saved(), take_called()));
    let mut world = World::new(shards, &[]);
    let (mut all, mut ids): (Vec<Expects>, Vec<String>) = (Vec::new(), Vec::new());
    for (who, step) in steps {
        if let Step::Connect { shard, name } = step {
            let client = world.named_client(shard % shards, false, Format::Packed, NAMES[name]);
            all.push(Expects { client, ..Expects::default() });
        }
        for expects in &mut all {
            expects.hear(&mut world, &mut ids);
        }
        if all.is_empty() {
            continue;
        }
        let place = who % all.len();
        let expects = &mut all[place];
        let client = expects.client;
        let nth = |pick: usize, expects: &Expects| {
            expects.rooms.iter().nth(pick % expects.rooms.len().max(1)).copied()
        };
        match step {
            Step::Background => world.run_background(),
            Step::Wait(ms) => world.wait(ms),
            _ if expects.is_gone => {}
            Step::Connect { .. } => {}
            Step::Create(setup) => enter(&mut world, client, expects.begin(None), Some(&setup)),
            Step::JoinOrCreate => enter(&mut world, client, expects.begin(None), None),
            Step::Join { pick } => {
                if let Some(id) = ids.get(pick % ids.len().max(1)) {
                    world.join(client, RequestNumber(expects.begin(None)), id);
                }
            }
            Step::Ask { pick, what } => {
                if let Some(room) = nth(pick, expects) {
                    ask(&mut world, client, room, expects.begin(Some(room)), &what);
                }
            }
            Step::Leave { pick } => {
                if let Some(room) = nth(pick, expects) {
                    let request = RequestNumber(expects.begin(Some(room)));
                    let leave = ClientMessage::Leave(client::Leave { request, room });
                    world.say(client, &encoded(Format::Packed, &leave));
                }
            }
            Step::Goodbye => {
                world.say(
                    client,
                    &encoded(Format::Packed, &ClientMessage::Goodbye(client::Goodbye {})),
                );
                (expects.is_gone, expects.open) = (true, BTreeMap::new());
            }
            Step::Vanish => {
                world.vanish(client);
                (expects.is_gone, expects.open) = (true, BTreeMap::new());
            }
        }
    }
    // All that was held or deferred is decided within a second.
    for _ in 0..3 {
        world.run_background();
        world.wait(1_100);
    }
    for expects in all.iter_mut().filter(|expects| !expects.is_gone) {
        expects.hear(&mut world, &mut ids);
        assert!(expects.open.is_empty(), "unanswered: {:?}", expects.open);
    }
    let in_rooms: usize =
        all.iter().filter(|expects| !expects.is_gone).map(|expects| expects.rooms.len()).sum();
    assert_eq!(world.members(), in_rooms, "no member is left over");
    let rooms: u64 = (0..shards).map(|shard| world.counters(shard).rooms).sum();
    assert_eq!(world.load(), rooms as usize + in_rooms, "no seat stays reserved");

    world.close_rooms();
    world.run_background();
    world.wait(1_600);
    assert!(world.have_closed_rooms());
    world.say_goodbye();
    assert_eq!((world.members(), world.load()), (0, 0));
    for ((id, player), (joins, leaves)) in take_seen() {
        // A room that panics calls nothing any more.
        let is_well = leaves == 1 || leaves == 0 && panics;
        assert!(joins == 1 && is_well, "{player} of {id}: {joins} joins, {leaves} leaves");
    }
}

proptest! {
    #[test]
    fn every_request_is_answered_once_every_player_leaves_once_and_no_seat_stays_taken(
        shards in 1..3_usize,
        panics in any::<bool>(),
        mut steps in steps(),
    ) {
        let is_panic = |step: &Step| matches!(step, Step::Ask { what: Do::Panic, .. });
        steps.retain(|(_, step)| panics || !is_panic(step));
        play(shards, panics, steps);
    }
}
