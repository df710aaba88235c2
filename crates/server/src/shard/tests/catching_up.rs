//! Sessions that come back while others wait for snapshots: their rooms follow one another, in
//! turns that they share with everyone else.

use std::time::Duration;

use playfield_wire::client::{self, ClientMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

use super::speech::{Heard, encoded};
use super::wanderer::{Return, Wanderer};
use super::world::World;

/// A few snapshots take all the time of a turn.
const LOOK: Duration = Duration::from_micros(500);

const FAT: &str = "ballast=5000 capacity=50";

/// Ann of shard 0, Ben, and the rooms that they share: on one shard, or on two by turns. Ben knows
/// them by the same numbers.
struct Shared {
    world: World,
    ann: Wanderer,
    ben: Wanderer,
    rooms: Vec<RoomNumber>,
}

impl Shared {
    fn new(shards: usize, rooms: usize, settings: &[(&str, &str)]) -> Self {
        let mut world = World::new(shards, settings);
        let mut hosts: Vec<_> = (0..shards)
            .map(|shard| Wanderer::new(&mut world, shard, false, Format::Packed))
            .collect();
        let mut ann = Wanderer::new(&mut world, 0, false, Format::Packed);
        let mut ben = Wanderer::new(&mut world, 0, false, Format::Packed);
        let join = |room: usize| {
            let host = &mut hosts[room % shards];
            let there = host.room(&mut world, FAT);
            let id = host.rooms[&there].id.clone();
            let number = ann.join(&mut world, &id);
            assert_eq!(ben.join(&mut world, &id), number);
            number
        };
        let rooms = (0..rooms).map(join).collect();
        assert_eq!((world.shard_of(ann.client), world.shard_of(ben.client)), (0, 0));
        world.wait(1000);
        ann.listen(&mut world);
        ann.heard.clear();
        ann.acknowledge(&mut world);
        Self { world, ann, ben, rooms }
    }

    fn say(&mut self, room: usize, text: &str) {
        self.ben.request(&mut self.world, self.rooms[room], 1, "shout", text);
    }

    /// Ann comes back without her copies, and snapshots take long.
    fn begin_return(&mut self) {
        self.ann.rooms.values_mut().for_each(|copy| copy.version = 0);
        self.world.each_look_takes(LOOK);
        self.world.turns_take_time(true);
        self.ann.begin_return(&mut self.world, 0);
        self.ann.listen(&mut self.world);
        assert_eq!(self.ann.returned, Return::Resumed);
    }

    /// Returns the number of bytes that wait to be read by Ann.
    fn unsent(&self) -> usize {
        let (shard, key) = self.world.place_of(self.ann.client);
        self.world.shards[shard].links.unsent(key).len()
    }

    /// Returns the number of copies that Ann has.
    fn copies(&mut self) -> usize {
        self.ann.listen(&mut self.world);
        self.ann.rooms.values().filter(|copy| copy.version > 0).count()
    }

    /// Time passes until Ann has this many copies.
    fn wait_for(&mut self, copies: usize) {
        for _ in 0..100 {
            if self.copies() >= copies {
                return;
            }
            self.world.wait(1);
        }
        panic!("{} of {copies} copies: {:?}", self.copies(), self.ann.heard);
    }

    /// Nothing takes long any more, and all that is due comes: then everything goes on as ever.
    fn check(&mut self) {
        self.world.each_look_takes(Duration::ZERO);
        self.world.turns_take_time(false);
        self.world.wait(1000);
        assert_eq!(self.copies(), self.ann.rooms.len());
        for room in self.ann.rooms.keys().copied().collect::<Vec<_>>() {
            self.ann.request(&mut self.world, room, 5, "add", "");
            self.world.wait(100);
            self.ann.listen(&mut self.world);
            assert_eq!(self.ann.heard.last().map(String::as_str), Some("5 = 1"));
            assert_eq!(self.ann.rooms[&room].state["c"], "1");
        }
        assert!(self.ann.is_welcome());
    }
}

#[test]
fn the_rooms_of_a_session_follow_one_another_and_then_comes_what_was_said() {
    for shards in [1, 2] {
        let mut shared = Shared::new(shards, 6, &[]);
        shared.ann.cut(&mut shared.world, usize::MAX);
        for room in 0..6 {
            shared.say(room, "meanwhile");
        }
        shared.begin_return();
        let mut before = shared.copies();
        assert!(before <= 2, "{before} at once");
        shared.say(0, "now");
        for _ in 0..100 {
            assert!(before == 6 || shared.ann.heard.is_empty(), "{:?}", shared.ann.heard);
            shared.world.run();
            let copies = shared.copies();
            assert!(copies <= before + 2, "{before}, then {copies}");
            before = copies;
        }
        let mut expected: Vec<_> =
            shared.rooms.iter().map(|room| format!("{}: meanwhile", room.0)).collect();
        expected.push("1: now".into());
        let mut heard = shared.ann.heard.clone();
        heard[..6].sort_unstable();
        assert_eq!(heard, expected);
        shared.check();
    }
}

#[test]
fn a_session_that_is_lost_or_taken_over_on_its_way_back_begins_again() {
    for shards in [1, 2] {
        for is_cut in [true, false] {
            let mut shared = Shared::new(shards, 6, &[]);
            shared.ann.cut(&mut shared.world, usize::MAX);
            for times in 1..=3 {
                shared.say(times, "meanwhile");
                shared.begin_return();
                shared.wait_for(2);
                if is_cut {
                    shared.ann.cut(&mut shared.world, usize::MAX);
                }
            }
            assert!(shared.ann.heard.is_empty());
            shared.begin_return();
            shared.wait_for(6);
            shared.check();
            let said = shared.ann.heard.iter().filter(|heard| heard.ends_with(": meanwhile"));
            assert_eq!(said.count(), 3, "{:?}", shared.ann.heard);
            assert_eq!(shared.world.sessions().1, 0);
        }
    }
}

#[test]
fn a_room_that_ends_while_a_session_comes_back_is_left_and_the_others_go_on() {
    for shards in [1, 2] {
        for how in ["close", "fail"] {
            for room in 0..6 {
                let mut shared = Shared::new(shards, 6, &[]);
                shared.ann.cut(&mut shared.world, usize::MAX);
                shared.begin_return();
                shared.wait_for(2);
                let ends = shared.rooms[room];
                shared.ben.request(&mut shared.world, ends, 1, how, "");
                shared.check();
                let left = format!("left {ends}: ");
                let lefts = shared.ann.heard.iter().filter(|heard| heard.starts_with(&left));
                assert_eq!((lefts.count(), shared.ann.rooms.len()), (1, 5), "{how} {room}");
            }
        }
    }
}

#[test]
fn who_does_not_read_is_sent_no_further_room() {
    for shards in [1, 2] {
        let mut shared = Shared::new(shards, 6, &[("limits.session.outbox_bytes.high", "4000")]);
        shared.ann.cut(&mut shared.world, usize::MAX);
        shared.ann.takes = 1000;
        shared.ann.begin_return(&mut shared.world, 0);
        shared.world.wait(1000);
        // What is up to date is not sent.
        assert!(shared.unsent() < 4000, "{}", shared.unsent());
        shared.ann.cut(&mut shared.world, usize::MAX);

        shared.ann.rooms.values_mut().for_each(|copy| copy.version = 0);
        shared.ann.begin_return(&mut shared.world, 0);
        shared.world.wait(1000);
        let unsent = shared.unsent();
        assert!((4000..6000).contains(&unsent), "one room waits: {unsent}");
        shared.world.takes(shared.ann.client, usize::MAX);
        shared.wait_for(6);
        shared.check();
    }
}

/// By as many returns as anyone could wish.
#[test]
fn who_returns_again_and_again_is_sent_no_more_snapshots_than_by_asking() {
    for shards in [1, 2] {
        let settings = [
            ("limits.session.snapshots.per_second", "2"),
            ("tuning.resumes.per_minute", "1000000"),
            ("limits.address.resumes.per_minute", "1000000"),
        ];
        let mut shared = Shared::new(shards, shards, &settings);
        let (last, began) = (*shared.rooms.last().unwrap(), shared.world.now);
        let mut snapshots = 0;
        while shared.world.now < began + Duration::from_millis(2990) {
            shared.ann.cut(&mut shared.world, usize::MAX);
            shared.ann.rooms.values_mut().for_each(|copy| copy.version = 0);
            shared.ann.begin_return(&mut shared.world, 0);
            shared.world.wait(10);
            shared.ann.listen(&mut shared.world);
            snapshots += usize::from(shared.ann.rooms[&last].version > 0);
        }
        // Two at once, and two per second.
        assert!((6..=7).contains(&snapshots), "{snapshots} on {shards} shards");
        shared.wait_for(shards);
        shared.check();
    }
}

#[test]
fn where_no_patch_reaches_snapshots_come_no_faster_than_by_asking() {
    for shards in [1, 2] {
        let mut shared =
            Shared::new(shards, shards, &[("limits.session.snapshots.per_second", "2")]);
        let room = *shared.rooms.last().unwrap();
        let (mut snapshots, mut version) = (0, shared.ann.rooms[&room].version);
        for turn in 0..20 {
            for (request, name) in [(1, "forget"), (2, "add")] {
                shared.ben.request(&mut shared.world, room, request, name, "");
            }
            shared.world.wait(50);
            shared.ann.listen(&mut shared.world);
            let now = shared.ann.rooms[&room].version;
            snapshots += usize::from(now > version);
            version = now;
            assert!(turn > 1 || snapshots > 0);
        }
        assert!((3..=4).contains(&snapshots), "{snapshots}");
        shared.world.wait(1000);
        shared.ann.listen(&mut shared.world);
        assert_eq!(shared.ann.rooms[&room].state["c"], "20");
    }
}

/// The losses that it was told of are not all, then.
#[test]
fn a_session_that_loses_more_on_its_way_back_comes_back_once_more() {
    for shards in [1, 2] {
        let mut shared = Shared::new(shards, 6, &[("limits.session.resume_bytes", "8000")]);
        shared.ann.cut(&mut shared.world, usize::MAX);
        shared.begin_return();
        let talkative = shared.rooms[5];
        shared.ben.request(&mut shared.world, talkative, 1, "burst", "20");
        shared.world.wait(100);
        shared.ann.listen(&mut shared.world);
        assert!(shared.world.is_over(shared.ann.client));
        assert!(shared.ann.heard.is_empty() && shared.ann.lost.is_empty());
        shared.ann.cut(&mut shared.world, usize::MAX);
        shared.begin_return();
        assert_eq!(shared.ann.lost[0].room, Some(talkative));
        shared.wait_for(6);
        shared.check();
    }
}

/// Twenty sessions of one address come back to four large rooms each, and one of another address
/// after them.
#[test]
fn who_took_little_comes_back_before_those_who_took_much() {
    let mut world = World::new(1, &[]);
    let mut host = Wanderer::new(&mut world, 0, false, Format::Packed);
    let ids: Vec<_> = (0..4)
        .map(|_| {
            let room = host.room(&mut world, FAT);
            host.rooms[&room].id.clone()
        })
        .collect();
    let mut all: Vec<_> =
        (0..21).map(|_| Wanderer::new(&mut world, 0, false, Format::Packed)).collect();
    for one in &mut all {
        for id in &ids {
            one.join(&mut world, id);
        }
        one.acknowledge(&mut world);
        one.cut(&mut world, usize::MAX);
    }
    world.each_look_takes(LOOK);
    world.turns_take_time(true);
    all[20].address = [10, 0, 0, 2];
    world.is_still = true;
    for one in &mut all {
        one.rooms.values_mut().for_each(|copy| copy.version = 0);
        one.begin_return(&mut world, 0);
    }
    world.is_still = false;
    let mut copies = |world: &mut World| {
        let count = |one: &mut Wanderer| {
            one.listen(world);
            one.rooms.values().filter(|copy| copy.version > 0).count()
        };
        all.iter_mut().map(count).collect::<Vec<_>>()
    };
    let mut ms = 0;
    while copies(&mut world)[20] < 4 {
        world.wait(1);
        ms += 1;
        assert!(ms < 30, "two snapshots in 4 ms");
    }
    let others = copies(&mut world)[..20].iter().sum::<usize>();
    assert!(others <= 12, "{others} of 80 copies came before");
    while copies(&mut world).iter().sum::<usize>() < 84 {
        world.wait(1);
        ms += 1;
        assert!(ms < 400);
    }
}

/// A hundred strangers, each from another address, ask for one snapshot after the other. When they
/// begin, none of them has taken anything yet.
#[test]
fn one_that_comes_back_does_not_wait_for_strangers_at_many_addresses() {
    let settings = [("limits.session.snapshots.per_second", "1000000")];
    let mut world = World::new(1, &settings);
    let mut host = Wanderer::new(&mut world, 0, false, Format::Packed);
    let there = host.room(&mut world, "ballast=5000 capacity=200");
    let id = host.rooms[&there].id.clone();
    let mut ann = Wanderer::new(&mut world, 0, false, Format::Packed);
    ann.join(&mut world, &id);
    ann.acknowledge(&mut world);
    ann.cut(&mut world, usize::MAX);
    let strangers: Vec<_> = (0..100)
        .map(|number| {
            let client = world.client_from([10, 1, 0, number], 0);
            world.heard(client);
            world.join(client, RequestNumber(1), &id);
            (client, world.joined(client).0)
        })
        .collect();

    // A snapshot takes less than a newcomer's head start.
    world.each_look_takes(LOOK / 5);
    world.turns_take_time(true);
    let mut snapshots = 0;
    let mut turn = |world: &mut World| {
        for &(client, room) in &strangers {
            let resync = encoded(Format::Packed, &ClientMessage::Resync(client::Resync { room }));
            world.leave(client, &world.framed(client, &resync));
        }
        world.run();
        let heard = strangers.iter().flat_map(|&(client, _)| world.heard(client));
        snapshots += heard.filter(|heard| matches!(heard, Heard::Snapshot { .. })).count();
        snapshots
    };
    while turn(&mut world) < 5 {}
    for times in 0..4 {
        ann.rooms.values_mut().for_each(|copy| copy.version = 0);
        ann.begin_return(&mut world, 0);
        let mut turns = 0;
        while ann.rooms.values().any(|copy| copy.version == 0) {
            turn(&mut world);
            ann.listen(&mut world);
            turns += 1;
            assert!(turns <= 4, "it took little lately");
        }
        ann.cut(&mut world, usize::MAX);
        // Then each has been served, and always waits.
        while times == 0 && turn(&mut world) < 300 {}
        for _ in 0..50 {
            turn(&mut world);
        }
    }
}

/// Twenty sessions of one address come back at once, and one more, which then comes back from
/// another address.
#[test]
fn who_comes_back_from_another_address_waits_there() {
    for shards in [1, 2] {
        let mut world = World::new(shards, &[]);
        let mut host = Wanderer::new(&mut world, shards - 1, false, Format::Packed);
        let there = host.room(&mut world, FAT);
        let id = host.rooms[&there].id.clone();
        let mut all: Vec<_> =
            (0..21).map(|_| Wanderer::new(&mut world, 0, false, Format::Packed)).collect();
        for one in &mut all {
            if shards > 1 {
                // Then its session stays.
                one.room(&mut world, "");
            }
            one.join(&mut world, &id);
            one.acknowledge(&mut world);
            one.cut(&mut world, usize::MAX);
        }
        world.each_look_takes(LOOK);
        world.turns_take_time(true);
        world.is_still = true;
        for one in &mut all {
            one.rooms.values_mut().for_each(|copy| copy.version = 0);
            one.begin_return(&mut world, 0);
        }
        let mut last = all.pop().unwrap();
        last.address = [10, 0, 0, 2];
        last.begin_return(&mut world, 0);
        world.is_still = false;
        let mut ms = 0;
        while last.rooms.values().any(|copy| copy.version == 0) {
            world.wait(1);
            last.listen(&mut world);
            ms += 1;
            assert!(ms < 40, "on {shards} shards");
        }
        let others = all.iter_mut().map(|one| {
            one.listen(&mut world);
            usize::from(one.rooms.values().all(|copy| copy.version > 0))
        });
        assert!(others.sum::<usize>() < 15, "on {shards} shards");
    }
}

#[test]
fn who_is_sent_away_while_it_waits_is_told_why_first() {
    for shards in [1, 2] {
        let mut shared = Shared::new(shards, 6, &[]);
        shared.ann.cut(&mut shared.world, usize::MAX);
        shared.say(1, "meanwhile");
        shared.begin_return();
        shared.wait_for(2);
        shared.world.say(shared.ann.client, &[0xFF; 3]);
        let heard = shared.world.heard(shared.ann.client);
        let code = ErrorCode::BadMessage;
        assert!(
            matches!(
                heard[..],
                [.., Heard::Error { code: error, .. }, Heard::Goodbye { code: bye }]
                    if (error, bye) == (code, code)
            ),
            "{heard:?}"
        );
    }
}

#[test]
fn a_client_in_another_format_hears_of_its_rooms_in_turn_too() {
    for format in [Format::Json, Format::Msgpack] {
        let mut world = World::new(2, &[("limits.session.outbox_bytes.high", "100")]);
        let mut host = Wanderer::new(&mut world, 1, false, Format::Packed);
        let there = host.room(&mut world, FAT);
        let mut ann = Wanderer::new(&mut world, 0, true, format);
        ann.room(&mut world, "");
        ann.join(&mut world, &host.rooms[&there].id.clone());
        ann.listen(&mut world);
        ann.cut(&mut world, usize::MAX);
        host.request(&mut world, there, 1, "close", "");
        assert_eq!(ann.come_back(&mut world, 0), Return::Resumed);
        world.wait(100);
        ann.listen(&mut world);
        let left = format!("left {}: {}", RoomNumber(2), ErrorCode::RoomClosed);
        assert_eq!(ann.heard.last(), Some(&left));
    }
}
