//! The two laws of state in step, through a whole server: joins, leaves, kicks, slow readers, rooms
//! elsewhere, full mailboxes.
//!
//! 1. After every sync, each client's copy equals the server's state, cut down to what that client
//!    may see.
//! 2. Two histories that differ only in what a player may not see send that player identical bytes.
//!
//! `PLAYFIELD_LAW_CASES` sets the number of cases of each law, for a longer run.

use std::collections::BTreeMap;

use playfield_room::Message;
use playfield_state::{Data, JsonMirror, Mirror, PlayerId, view, view_in};
use playfield_wire::client::{ClientMessage, write_send};
use playfield_wire::server::ServerMessage;
use playfield_wire::{Format, RequestNumber, RoomNumber};
use proptest::prelude::*;
use proptest::test_runner::Config;

use super::law_room::{self, Act, Law};
use super::speech::encoded;
use super::world::{Client, World};

/// Each seat at the test's table: where it connects, how, and in which format. So that rooms are
/// near and far to all kinds.
const SEATS: [(usize, bool, Format); 5] = [
    (0, false, Format::Packed),
    (1, true, Format::Packed),
    (0, true, Format::Msgpack),
    (1, false, Format::Msgpack),
    (1, false, Format::Json),
];

/// Limits that no case comes near. What is nobody's to see must not slow anyone down either, so
/// that no case depends on them.
const SETTINGS: [(&str, &str); 3] = [
    ("outbox_bytes_max", "1000000000"),
    ("outbox_high_bytes", "1000000000"),
    ("check_every_syncs", "3"),
];

/// What has the rooms synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pace {
    /// Their rate, and now and then a demand.
    Rate,
    /// Their rate, and each change, be it seen or not.
    RateAndChanges,
    /// Each change, be it seen or not.
    Changes,
}

impl Pace {
    fn room_type(self) -> &'static str {
        if self == Self::Changes { "law on demand" } else { "law" }
    }
}

fn paces() -> impl Strategy<Value = Pace> {
    proptest::sample::select([Pace::Rate, Pace::RateAndChanges, Pace::Changes].as_slice())
}

#[derive(Clone, Debug)]
enum Step {
    /// Joins one of two rooms; connects first, if need be. The first room that a connection joins
    /// may move it there.
    Join { seat: usize, room: usize },
    /// Leaves the room that the number picks from those that it is in.
    Leave { seat: usize, pick: usize },
    /// Asks for a snapshot.
    Resync { seat: usize, pick: usize },
    /// Changes the state of a room, as the seed says.
    Act { seat: usize, pick: usize, seed: u64 },
    /// The connection breaks.
    Vanish { seat: usize },
    /// The client closes the connection.
    HangUp { seat: usize },
    /// Reads this many more bytes, and then nothing.
    Slow { seat: usize, bytes: usize },
    /// Reads everything, and goes on.
    Read { seat: usize },
    /// Time passes.
    Wait { ms: u64 },
    /// A shard's mailbox takes so few parcels, or anything.
    Mailbox { shard: usize, space: Option<usize> },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let seat = 0..SEATS.len();
    let pick = 0..2_usize;
    let step = prop_oneof![
        5 => (seat.clone(), 0..2_usize).prop_map(|(seat, room)| Step::Join { seat, room }),
        1 => (seat.clone(), pick.clone()).prop_map(|(seat, pick)| Step::Leave { seat, pick }),
        1 => (seat.clone(), pick.clone()).prop_map(|(seat, pick)| Step::Resync { seat, pick }),
        12 => (seat.clone(), pick, any::<u64>()).prop_map(|(seat, pick, seed)| Step::Act { seat, pick, seed }),
        1 => seat.clone().prop_map(|seat| Step::Vanish { seat }),
        1 => seat.clone().prop_map(|seat| Step::HangUp { seat }),
        3 => (seat.clone(), 0..400_usize).prop_map(|(seat, bytes)| Step::Slow { seat, bytes }),
        2 => seat.prop_map(|seat| Step::Read { seat }),
        8 => (1..160_u64).prop_map(|ms| Step::Wait { ms }),
        1 => (0..2_usize, proptest::option::of(0..3_usize))
            .prop_map(|(shard, space)| Step::Mailbox { shard, space }),
    ];
    proptest::collection::vec(step, 1..100)
}

fn config() -> Config {
    let cases = std::env::var("PLAYFIELD_LAW_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(100);
    Config { cases, failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() }
}

/// One player's copy of one room.
struct Copy {
    id: String,
    player: PlayerId,
    /// `None` until the snapshot.
    version: Option<u64>,
    /// That of the room, which the client does not know.
    synced: u64,
    events: u64,
    packed: Mirror<Law>,
    tree: JsonMirror,
}

impl Copy {
    /// A snapshot or a patch was applied.
    fn is_at(&mut self, format: Format, version: u64) {
        assert!(self.version.is_none_or(|before| before <= version), "versions do not go back");
        self.version = Some(version);
        self.synced = law_room::next_written(&self.id, self.player);
        self.check(format, self.synced);
    }

    /// The copy is what the player saw of the room at that version of the room.
    fn check(&self, format: Format, version: u64) {
        let viewer = Some(self.player);
        let (expected, copy) = match format.tree() {
            None => (
                law_room::synced(&self.id, version, |law| view(law, viewer)),
                view(self.packed.state(), viewer),
            ),
            Some(format) => (
                law_room::synced(&self.id, version, |law| view_in(format, law, viewer)),
                self.tree.state().clone(),
            ),
        };
        assert_eq!(copy, expected, "{format:?}, {} in {} at {version}", self.player, self.id);
    }
}

/// Who plays at one seat, over one connection after the other.
struct Seat {
    name: String,
    format: Format,
    /// The connection, and all those before it.
    client: Option<Client>,
    clients: Vec<Client>,
    is_slow: bool,
    requests: u32,
    /// By the rooms' numbers.
    copies: BTreeMap<RoomNumber, Copy>,
}

impl Seat {
    /// Takes a message, and checks what it makes of the copy.
    fn hear(&mut self, body: &[u8]) {
        match ServerMessage::decode(self.format, body).unwrap() {
            ServerMessage::Joined { room, id, player, .. } => {
                let copy = Copy {
                    id: id.into_owned(),
                    player: PlayerId(player),
                    version: None,
                    synced: 0,
                    events: 0,
                    packed: Mirror::new(),
                    tree: self.format.tree().map_or_else(JsonMirror::new, JsonMirror::of),
                };
                assert!(self.copies.insert(room, copy).is_none(), "the number {room} is taken");
            }
            ServerMessage::Left { room, .. } => {
                self.copies.remove(&room).expect("what is left was joined");
            }
            ServerMessage::Snapshot { room, version, body, .. } => {
                let copy = self.copies.get_mut(&room).expect("a room that was joined");
                match self.format {
                    Format::Packed => copy.packed.snapshot(body).unwrap(),
                    Format::Msgpack | Format::Json => copy.tree.snapshot(body).unwrap(),
                }
                copy.is_at(self.format, version);
            }
            ServerMessage::Patch { room, base, version, body } => {
                let copy = self.copies.get_mut(&room).expect("a room that was joined");
                assert_eq!(copy.version, Some(base), "the patch to {version} begins elsewhere");
                assert!(version > base, "a patch leads to a later version");
                match self.format {
                    Format::Packed => copy.packed.patch(body).unwrap(),
                    Format::Msgpack | Format::Json => copy.tree.patch(body).unwrap(),
                }
                copy.is_at(self.format, version);
            }
            ServerMessage::Check { room, version, digest } => {
                let copy = &self.copies[&room];
                let own = match self.format {
                    Format::Packed => copy.packed.digest(),
                    Format::Msgpack | Format::Json => copy.tree.digest(),
                };
                assert_eq!((copy.version, own), (Some(version), digest));
            }
            ServerMessage::Event { room, sequence, version, .. } => {
                let copy = self.copies.get_mut(&room).expect("a room that was joined");
                let own = copy.version.expect("events follow the snapshot");
                assert!((own..=own + 1).contains(&version), "it is of this version or the next");
                copy.events += 1;
                assert_eq!(sequence, copy.events);
            }
            _ => {}
        }
    }
}

/// A node with two rooms, one on each shard, and those who play there.
struct Play {
    world: World,
    rooms: [String; 2],
    seats: Vec<Seat>,
}

impl Play {
    /// `scramble` changes what is unseen, but nothing that the one at the seat `spared` sees; 0
    /// leaves it.
    fn new(pace: Pace, scramble: u32, spared: usize) -> Self {
        law_room::forget();
        let mut world = World::new(2, &SETTINGS);
        let (eager, spared) = (pace != Pace::Rate, name(spared));
        let options = format!(r#"{{"scramble":{scramble},"spared":"{spared}","eager":{eager}}}"#);
        let rooms = [0, 1].map(|shard| {
            let founder = world.named_client(shard, false, Format::Json, "founder");
            let create = ClientMessage::Create {
                request: RequestNumber(1),
                room_type: pace.room_type().into(),
                private: false,
                code: false,
                key: None,
                options: options.as_bytes(),
            };
            world.say(founder, &encoded(Format::Json, &create));
            world.wait(60);
            let rooms = world.rooms_of(founder);
            assert_eq!((rooms.len(), world.shard_of(founder)), (1, shard));
            rooms[0].1.clone()
        });
        let seats = SEATS.iter().enumerate().map(|(number, &(_, _, format))| Seat {
            name: name(number),
            format,
            client: None,
            clients: Vec::new(),
            is_slow: false,
            requests: 0,
            copies: BTreeMap::new(),
        });
        Self { world, rooms, seats: seats.collect() }
    }

    fn run(&mut self, steps: &[Step]) {
        for step in steps {
            self.step(step);
            self.check();
        }
        self.world.space.fill(usize::MAX);
        for seat in 0..SEATS.len() {
            self.step(&Step::Read { seat });
        }
        self.step(&Step::Wait { ms: 200 });
        self.check();
    }

    /// What is done never depends on what was heard: that may differ where it is no business of the
    /// one spared.
    fn step(&mut self, step: &Step) {
        match *step {
            Step::Join { seat, room } => {
                let client = self.connected(seat);
                self.seats[seat].requests += 1;
                let room = self.rooms[room].clone().into();
                let join =
                    ClientMessage::Join { request: RequestNumber(self.seats[seat].requests), room };
                self.world.say(client, &encoded(self.seats[seat].format, &join));
            }
            Step::Leave { seat, pick } => {
                let Some((client, room)) = self.place(seat, pick) else { return };
                self.seats[seat].requests += 1;
                let leave = ClientMessage::Leave {
                    request: RequestNumber(self.seats[seat].requests),
                    room,
                };
                self.world.say(client, &encoded(self.seats[seat].format, &leave));
            }
            Step::Resync { seat, pick } => {
                let Some((client, room)) = self.place(seat, pick) else { return };
                let resync = ClientMessage::Resync { room };
                self.world.say(client, &encoded(self.seats[seat].format, &resync));
            }
            Step::Act { seat, pick, seed } => {
                let Some((client, room)) = self.place(seat, pick) else { return };
                let format = self.seats[seat].format;
                let mut payload = Vec::new();
                Act { seed }.write(format, &mut payload);
                let mut body = Vec::new();
                write_send(format, &mut body, room, 0, Act::NAME, &payload);
                self.world.say(client, &body);
            }
            Step::Vanish { seat } => {
                self.hear(seat);
                if let Some(client) = self.seats[seat].client.take() {
                    self.world.vanish(client);
                }
                self.seats[seat].copies.clear();
            }
            Step::HangUp { seat } => {
                self.hear(seat);
                if let Some(client) = self.seats[seat].client.take() {
                    self.world.hang_up(client);
                }
                self.seats[seat].copies.clear();
            }
            Step::Slow { seat, bytes } => self.take(seat, Some(bytes)),
            Step::Read { seat } => self.take(seat, None),
            Step::Wait { ms } => self.world.wait(ms),
            Step::Mailbox { shard, space } => {
                self.world.space[shard] = space.unwrap_or(usize::MAX);
                self.world.run();
            }
        }
    }

    fn take(&mut self, seat: usize, bytes: Option<usize>) {
        if let Some(client) = self.seats[seat].client {
            self.seats[seat].is_slow = bytes.is_some();
            self.world.takes(client, bytes.unwrap_or(usize::MAX));
        }
    }

    fn connected(&mut self, number: usize) -> Client {
        let (shard, is_websocket, format) = SEATS[number];
        let seat = &mut self.seats[number];
        *seat.client.get_or_insert_with(|| {
            let client = self.world.named_client(shard, is_websocket, format, &seat.name);
            seat.clients.push(client);
            seat.is_slow = false;
            client
        })
    }

    /// One of the rooms that a client is in.
    fn place(&mut self, seat: usize, pick: usize) -> Option<(Client, RoomNumber)> {
        let client = self.seats[seat].client?;
        let rooms = self.world.rooms_of(client);
        let (number, _) = rooms.get(pick % rooms.len().max(1))?;
        Some((client, *number))
    }

    fn hear(&mut self, number: usize) {
        let seat = &mut self.seats[number];
        let Some(client) = seat.client else { return };
        for body in self.world.bodies(client) {
            seat.hear(&body);
        }
    }

    /// Law 1. Each message is checked as it is heard, and who has heard everything has all that
    /// there is.
    fn check(&mut self) {
        let is_open = self.world.space.iter().all(|&space| space == usize::MAX);
        for number in 0..self.seats.len() {
            self.hear(number);
            let seat = &self.seats[number];
            let Some(client) = seat.client else { continue };
            assert!(!self.world.is_over(client), "nobody is thrown out");
            if seat.is_slow || !is_open {
                continue;
            }
            let joined = self.world.rooms_of(client);
            let known: Vec<RoomNumber> = seat.copies.keys().copied().collect();
            assert_eq!(known, joined.iter().map(|(number, _)| *number).collect::<Vec<_>>());
            for copy in seat.copies.values() {
                let now = law_room::version(&copy.id).expect("it was synced");
                copy.check(seat.format, now);
            }
        }
    }

    /// Every byte that came to a seat.
    fn came(&self, seat: usize) -> Vec<u8> {
        self.seats[seat]
            .clients
            .iter()
            .flat_map(|&client| self.world.came(client))
            .copied()
            .collect()
    }
}

fn name(seat: usize) -> String {
    format!("player at {seat}")
}

fn copies_equal_the_filtered_state(pace: Pace, steps: &[Step], scramble: u32) {
    Play::new(pace, scramble, SEATS.len()).run(steps);
}

fn nothing_leaks(pace: Pace, steps: &[Step], scramble: u32, spared: usize) {
    // How full a mailbox is, and so who has to wait, is told by how much is sent to others.
    let steps: Vec<Step> =
        steps.iter().filter(|step| !matches!(step, Step::Mailbox { .. })).cloned().collect();
    let [plain, scrambled] = [0, scramble].map(|scramble| {
        let mut play = Play::new(pace, scramble, spared);
        play.run(&steps);
        play.came(spared)
    });
    let text = String::from_utf8_lossy;
    assert!(plain == scrambled, "plain:\n{}\nscrambled:\n{}", text(&plain), text(&scrambled));
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn law_one_copies_equal_the_filtered_state(
        pace in paces(),
        steps in steps(),
        scramble in 0..100_u32,
    ) {
        copies_equal_the_filtered_state(pace, &steps, scramble);
    }

    #[test]
    fn law_two_nothing_leaks(
        pace in paces(),
        steps in steps(),
        scramble in 1..u32::MAX,
        spared in 0..SEATS.len(),
    ) {
        nothing_leaks(pace, &steps, scramble, spared);
    }
}
