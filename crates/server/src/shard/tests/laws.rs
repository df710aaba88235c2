//! The two laws of state in step, through a whole server: joins, leaves, kicks, slow readers, rooms
//! elsewhere, full mailboxes, connections that are lost and sessions that are resumed.
//!
//! 1. After every sync, each client's copy equals the server's state, cut down to what that client
//!    may see.
//! 2. Two histories that differ only in what a player may not see send that player identical bytes.
//!
//! And whether rooms rest while nothing happens to them shows nowhere.
//!
//! `PLAYFIELD_LAW_CASES` sets the number of cases of each law, for a longer run.

use std::time::Duration;

use playfield_room::Message;
use playfield_state::Data;
use playfield_wire::client::{self, ClientMessage, write_send};
use playfield_wire::server::ServerMessage;
use playfield_wire::{Format, RequestNumber, RoomNumber};
use proptest::prelude::*;
use proptest::test_runner::Config;

use super::law_room::{self, Act};
use super::law_seat::Seat;
use super::speech::encoded;
use super::world::World;

/// Each seat at the test's table: where it connects, how, and in which format. So that rooms are
/// near and far to all kinds. The sessions of the last one cannot be resumed.
pub(super) const SEATS: [(usize, bool, Format); 5] = [
    (0, false, Format::Packed),
    (1, true, Format::Packed),
    (0, true, Format::Msgpack),
    (1, true, Format::Json),
    (1, false, Format::Json),
];

/// Limits that no case comes near. What is nobody's to see must not slow anyone down either, so
/// that no case depends on them.
const SETTINGS: [(&str, &str); 3] = [
    ("limits.session.outbox_bytes.max", "1000000000"),
    ("limits.session.outbox_bytes.high", "1000000000"),
    ("timeouts.reconnect", "300ms"),
];

/// More than the graces of a session and of its seat in a room.
const GRACES_MS: u64 = 1_000;

/// The bytes of counted messages that a node keeps for a session where some are to be lost.
const RESUME_BYTES_MAX: &str = "150";

/// The causes of the rooms' syncs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// Their rate, and now and then a demand.
    Rate,
    /// Their rate, and each change, be it seen or not.
    RateAndChanges,
    /// Each change, be it seen or not.
    Changes,
    /// Their rate, and now and then a demand; no ticks, so that they rest now and then.
    RateAtRest,
}

impl Pace {
    fn room_type(self) -> &'static str {
        match self {
            Self::Rate | Self::RateAndChanges => "law",
            Self::Changes => "law on demand",
            Self::RateAtRest => "law without ticks",
        }
    }

    /// Returns whether rooms sync at each change.
    pub(super) fn is_eager(self) -> bool {
        matches!(self, Self::RateAndChanges | Self::Changes)
    }

    fn check_every_syncs(self) -> &'static str {
        if self == Self::RateAtRest { "20" } else { "3" }
    }
}

pub(super) fn paces() -> impl Strategy<Value = Pace> {
    let all = [Pace::Rate, Pace::RateAndChanges, Pace::Changes, Pace::RateAtRest];
    proptest::sample::select(all.to_vec())
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    /// Joins one of two rooms; connects first, if need be. The first room that a connection joins
    /// may move it there.
    Join { seat: usize, room: usize },
    /// Leaves the room that the number picks from those that it is in.
    Leave { seat: usize, pick: usize },
    /// Asks for a snapshot.
    Resync { seat: usize, pick: usize },
    /// Changes the state of a room, as the seed says.
    Act { seat: usize, pick: usize, seed: u64 },
    /// The connection breaks, and the client does not come back for its session.
    Vanish { seat: usize },
    /// The client closes the connection, and does not come back for its session.
    HangUp { seat: usize },
    /// The connection is lost, or closed. Only this many bytes of what is on its way arrive.
    Cut { seat: usize, bytes: usize, orderly: bool },
    /// Comes back to a shard for its session, or takes it over from its open connection.
    Return { seat: usize, shard: usize },
    /// All come back for the sessions that they have, and read everything. Sessions that nobody
    /// comes back for end.
    Gather,
    /// Confirms what it has heard.
    Acknowledge { seat: usize },
    /// Its bytes arrive, but it does not hear them: they are on their way.
    Deafen { seat: usize },
    /// Reads this many more bytes, and then nothing.
    Slow { seat: usize, bytes: usize },
    /// Reads everything, and goes on.
    Read { seat: usize },
    /// Time passes.
    Wait { ms: u64 },
    /// A shard's mailbox takes so few parcels, or anything.
    Mailbox { shard: usize, space: Option<usize> },
    /// Another process takes over, with this many shards: all connections are lost, but those that
    /// it passes on, if it does.
    Replace { shards: usize, passes: bool },
    /// A room moves to a shard, with the sessions that are in no other.
    Move { room: usize, shard: u16 },
}

pub(super) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let seat = 0..SEATS.len();
    let pick = 0..2_usize;
    let step = prop_oneof![
        5 => (seat.clone(), 0..2_usize).prop_map(|(seat, room)| Step::Join { seat, room }),
        1 => (seat.clone(), pick.clone()).prop_map(|(seat, pick)| Step::Leave { seat, pick }),
        1 => (seat.clone(), pick.clone()).prop_map(|(seat, pick)| Step::Resync { seat, pick }),
        12 => (seat.clone(), pick, any::<u64>()).prop_map(|(seat, pick, seed)| Step::Act { seat, pick, seed }),
        1 => seat.clone().prop_map(|seat| Step::Vanish { seat }),
        1 => seat.clone().prop_map(|seat| Step::HangUp { seat }),
        3 => (seat.clone(), 0..400_usize, any::<bool>())
            .prop_map(|(seat, bytes, orderly)| Step::Cut { seat, bytes, orderly }),
        4 => (seat.clone(), 0..2_usize).prop_map(|(seat, shard)| Step::Return { seat, shard }),
        2 => seat.clone().prop_map(|seat| Step::Acknowledge { seat }),
        2 => seat.clone().prop_map(|seat| Step::Deafen { seat }),
        3 => (seat.clone(), 0..400_usize).prop_map(|(seat, bytes)| Step::Slow { seat, bytes }),
        2 => seat.prop_map(|seat| Step::Read { seat }),
        8 => (1..160_u64).prop_map(|ms| Step::Wait { ms }),
        1 => (0..2_usize, proptest::option::of(0..3_usize))
            .prop_map(|(shard, space)| Step::Mailbox { shard, space }),
    ];
    proptest::collection::vec(step, 1..100)
}

/// The configuration of a law that has so many cases, unless the environment asks for more.
pub(super) fn config(cases: u32) -> Config {
    let cases = std::env::var("PLAYFIELD_LAW_CASES")
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(cases);
    Config { cases, failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() }
}

/// A node with two rooms, one on each shard, and those who play there.
pub(super) struct Play {
    pub(super) world: World,
    rooms: [String; 2],
    pub(super) seats: Vec<Seat>,
    /// Sessions keep little of what is not confirmed.
    forgets: bool,
    /// The shard of all sessions, and the room that keeps them there; `None` if each opens at its
    /// seat's shard and may move.
    home: Option<(usize, String)>,
    /// No other process can take over, so this one continues.
    pub(super) stays: bool,
}

impl Play {
    /// `scramble` changes what is unseen, but nothing that the one at the seat `spared` sees; 0
    /// leaves it.
    fn new(pace: Pace, scramble: u32, spared: usize, forgets: bool) -> Self {
        Self::with_rooms_on([0, 1], pace, scramble, spared, forgets)
    }

    /// Nothing is scrambled.
    pub(super) fn of(pace: Pace, forgets: bool) -> Self {
        Self::new(pace, 0, SEATS.len(), forgets)
    }

    /// Both rooms on shard 0, and all sessions on this one.
    pub(super) fn at_home(home: usize, pace: Pace, forgets: bool) -> Self {
        let mut play = Self::with_rooms_on([0, 0], pace, 0, SEATS.len(), forgets);
        let lounge =
            play.found(home, "law on demand", r#"{"scramble":0,"spared":"","eager":false}"#);
        play.home = Some((home, lounge));
        play
    }

    fn with_rooms_on(
        shards: [usize; 2],
        pace: Pace,
        scramble: u32,
        spared: usize,
        forgets: bool,
    ) -> Self {
        law_room::forget();
        let mut settings = SETTINGS.to_vec();
        settings.push(("rooms.check_every_syncs", pace.check_every_syncs()));
        if forgets {
            settings.push(("limits.session.resume_bytes", RESUME_BYTES_MAX));
        }
        let world = World::new(2, &settings);
        let eager = pace.is_eager();
        let spared = name(spared);
        let options = format!(r#"{{"scramble":{scramble},"spared":"{spared}","eager":{eager}}}"#);
        let seats = SEATS.iter().enumerate().map(|(number, &(_, is_websocket, format))| {
            Seat::new(name(number), is_websocket, format, number + 1 < SEATS.len())
        });
        let seats = seats.collect();
        let mut play =
            Self { world, rooms: Default::default(), seats, forgets, home: None, stays: false };
        play.rooms = shards.map(|shard| play.found(shard, pace.room_type(), &options));
        play
    }

    /// Creates a room on a shard, and returns its id.
    fn found(&mut self, shard: usize, room_type: &str, options: &str) -> String {
        let founder = self.world.named_client(shard, false, Format::Json, "founder");
        // The others are too late to take rooms.
        for other in (0..2).filter(|other| *other != shard) {
            self.world.node.directory.set_lateness(other as u16, Duration::from_secs(1));
        }
        let create = ClientMessage::Create(client::Create {
            request: RequestNumber(1),
            room_type: room_type.into(),
            private: false,
            code: false,
            key: None,
            options: options.as_bytes(),
        });
        self.world.say(founder, &encoded(Format::Json, &create));
        self.world.wait(60);
        let rooms = self.world.rooms_of(founder);
        assert_eq!((rooms.len(), self.world.shard_of(founder)), (1, shard));
        (0..2).for_each(|shard| self.world.node.directory.set_lateness(shard, Duration::ZERO));
        rooms[0].1.clone()
    }

    /// The id of the room that keeps all sessions on their shard.
    pub(super) fn lounge(&self) -> Option<&str> {
        self.home.as_ref().map(|(_, lounge)| lounge.as_str())
    }

    /// Has a session that is in no room enter the one that keeps it on its shard.
    fn settle(&mut self, seat: usize) {
        let Some((_, lounge)) = &self.home else { return };
        let Some(client) = self.seats[seat].client else { return };
        if self.world.rooms_of(client).is_empty() {
            let (request, room) = (self.seats[seat].next_request(), lounge.clone().into());
            self.say(seat, &ClientMessage::Join(client::Join { request, room }));
        }
    }

    fn run(&mut self, steps: &[Step]) {
        self.run_watched(steps, |_, _| {});
    }

    /// Takes these steps, and brings all players back. Calls `watch` after each step.
    pub(super) fn run_watched(&mut self, steps: &[Step], mut watch: impl FnMut(&Self, &Step)) {
        for step in steps {
            self.step(step);
            self.check();
            watch(self, step);
        }
        self.world.space.fill(usize::MAX);
        self.world.run();
        self.check();
        for seat in 0..SEATS.len() {
            let mut last = vec![Step::Read { seat }];
            if self.seats[seat].client.is_none() {
                last.push(Step::Return { seat, shard: 0 });
            }
            for step in last {
                self.step(&step);
                watch(self, &step);
            }
        }
        let last = Step::Wait { ms: 200 };
        self.step(&last);
        self.check();
        watch(self, &last);
    }

    /// Takes a step. What is done never depends on what was heard: that may differ where it does
    /// not concern the one spared.
    fn step(&mut self, step: &Step) {
        match *step {
            Step::Join { seat, room } => {
                self.connect(seat);
                let request = self.seats[seat].next_request();
                let room = self.rooms[room].clone().into();
                self.say(seat, &ClientMessage::Join(client::Join { request, room }));
            }
            Step::Leave { seat, pick } => {
                let Some(room) = self.place(seat, pick) else { return };
                let request = self.seats[seat].next_request();
                self.say(seat, &ClientMessage::Leave(client::Leave { request, room }));
            }
            Step::Resync { seat, pick } => {
                let Some(room) = self.place(seat, pick) else { return };
                self.say(seat, &ClientMessage::Resync(client::Resync { room }));
            }
            Step::Act { seat, pick, seed } => {
                let Some(room) = self.place(seat, pick) else { return };
                let format = self.seats[seat].format;
                let mut payload = Vec::new();
                Act { seed }.write(format, &mut payload);
                let mut body = Vec::new();
                write_send(format, &mut body, room, 0, Act::NAME, &payload);
                self.seats[seat].say(&mut self.world, body, true);
            }
            Step::Vanish { seat } => {
                if let Some(client) = self.seats[seat].forget(&mut self.world) {
                    self.world.vanish(client);
                }
            }
            Step::HangUp { seat } => {
                if let Some(client) = self.seats[seat].forget(&mut self.world) {
                    self.world.hang_up(client);
                }
            }
            Step::Cut { seat, bytes, orderly } => {
                self.seats[seat].cut(&mut self.world, bytes, orderly);
            }
            Step::Return { seat, shard } => {
                let shard = self.home.as_ref().map_or(shard, |(home, _)| (home + shard) % 2);
                self.seats[seat].come_back(&mut self.world, shard);
                self.settle(seat);
            }
            Step::Gather => {
                for seat in 0..SEATS.len() {
                    if self.seats[seat].client.is_none() {
                        self.step(&Step::Return { seat, shard: 0 });
                    }
                    self.take(seat, None);
                }
                self.world.wait(GRACES_MS);
            }
            Step::Acknowledge { seat } => self.seats[seat].acknowledge(&mut self.world),
            Step::Deafen { seat } => self.seats[seat].is_deaf = true,
            Step::Slow { seat, bytes } => self.take(seat, Some(bytes)),
            Step::Read { seat } => self.take(seat, None),
            Step::Wait { ms } => self.world.wait(ms),
            Step::Mailbox { shard, space } => {
                self.world.space[shard] = space.unwrap_or(usize::MAX);
                self.world.run();
            }
            Step::Move { room, shard } => {
                let clients: Vec<_> = self.seats.iter().filter_map(|seat| seat.client).collect();
                let moved = self.world.move_room(&self.rooms[room], shard, &clients);
                for seat in &mut self.seats {
                    if seat.client.is_some_and(|client| moved.contains(&client)) {
                        seat.cut(&mut self.world, usize::MAX, false);
                    }
                }
            }
            Step::Replace { .. } if self.stays => self.world.stay(),
            Step::Replace { shards, passes } => {
                let open = self.world.replace(shards, passes);
                for seat in &mut self.seats {
                    if seat.client.is_none_or(|client| !open.contains(&client)) {
                        seat.cut(&mut self.world, usize::MAX, false);
                    }
                }
            }
        }
    }

    fn take(&mut self, seat: usize, bytes: Option<usize>) {
        if bytes.is_none() {
            self.seats[seat].is_deaf = false;
        }
        if let Some(client) = self.seats[seat].client {
            self.seats[seat].is_slow = bytes.is_some();
            self.world.takes(client, bytes.unwrap_or(usize::MAX));
        }
    }

    /// Opens a new session, unless the seat has one.
    fn connect(&mut self, seat: usize) {
        if self.seats[seat].client.is_none() {
            self.seats[seat].forget(&mut self.world);
            let shard = self.home.as_ref().map_or(SEATS[seat].0, |(home, _)| *home);
            self.seats[seat].connect(&mut self.world, shard);
            self.settle(seat);
        }
    }

    fn say(&mut self, seat: usize, message: &ClientMessage<'_>) {
        let body = encoded(self.seats[seat].format, message);
        self.seats[seat].say(&mut self.world, body, message.is_counted());
    }

    /// One of the rooms that a client is in.
    fn place(&mut self, seat: usize, pick: usize) -> Option<RoomNumber> {
        let mut rooms = self.world.rooms_of(self.seats[seat].client?);
        rooms.retain(|(_, id)| self.rooms.contains(id));
        let (number, _) = rooms.get(pick % rooms.len().max(1))?;
        Some(*number)
    }

    /// Law 1. Each message is checked as it is heard, and who has heard everything has all that
    /// there is.
    fn check(&mut self) {
        let is_open = self.world.space.iter().all(|&space| space == usize::MAX);
        for number in 0..self.seats.len() {
            let seat = &mut self.seats[number];
            if !seat.is_deaf {
                seat.hear(&mut self.world);
            }
            let Some(client) = seat.client else { continue };
            if self.world.is_over(client) {
                // A session on its way back that waits for a room elsewhere may forget meanwhile
                // what it has to send: its client then has to start over.
                let why = seat.heard.last().map(|body| ServerMessage::decode(seat.format, body));
                let is_forgotten = self.forgets && SEATS.len() > number + 1;
                assert!(is_forgotten, "seat {number} is thrown out: {why:?}");
                seat.cut(&mut self.world, usize::MAX, false);
                continue;
            }
            if !seat.is_slow && !seat.is_deaf && is_open {
                let joined = self.world.rooms_of(client);
                seat.check(joined.iter().map(|(number, _)| *number));
            }
        }
    }

    /// Returns the number of bytes that came to a seat.
    fn came_bytes(&self, seat: usize) -> usize {
        self.seats[seat].clients.iter().map(|&client| self.world.came(client).len()).sum()
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

fn copies_equal_the_filtered_state(pace: Pace, steps: &[Step], scramble: u32, forgets: bool) {
    Play::new(pace, scramble, SEATS.len(), forgets).run(steps);
}

fn nothing_leaks(pace: Pace, steps: &[Step], scramble: u32, spared: usize, forgets: bool) {
    let is_for_both = |step: &Step| match *step {
        // How full a mailbox is, and so who has to wait, is told by how much is sent to others.
        Step::Mailbox { .. } => false,
        // How much of it others hear depends on what they see. A room whose `joined` was lost is
        // left again, by those who have not heard it.
        Step::Slow { seat, .. } | Step::Deafen { seat } => !forgets || seat == spared,
        _ => true,
    };
    let steps: Vec<Step> = steps.iter().filter(|step| is_for_both(step)).cloned().collect();
    let [plain, scrambled] = [0, scramble].map(|scramble| {
        let mut play = Play::new(pace, scramble, spared, forgets);
        play.run(&steps);
        play.came(spared)
    });
    let text = String::from_utf8_lossy;
    assert!(plain == scrambled, "plain:\n{}\nscrambled:\n{}", text(&plain), text(&scrambled));
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn law_one_copies_equal_the_filtered_state(
        pace in paces(),
        steps in steps(),
        scramble in 0..100_u32,
        forgets in any::<bool>(),
    ) {
        copies_equal_the_filtered_state(pace, &steps, scramble, forgets);
    }

    #[test]
    fn law_two_nothing_leaks(
        pace in paces(),
        steps in steps(),
        scramble in 1..u32::MAX,
        spared in 0..SEATS.len(),
        forgets in any::<bool>(),
    ) {
        nothing_leaks(pace, &steps, scramble, spared, forgets);
    }
}

/// The number of bytes that came to each seat; at the end, what came, and what became of the rooms.
#[derive(PartialEq, Eq, Debug)]
struct Account {
    /// After each step, and after each 5 ms of those that take time.
    lengths: Vec<[usize; SEATS.len()]>,
    came: [Vec<u8>; SEATS.len()],
    /// By shard, all counts but those of turns.
    counters: Vec<[u64; 4]>,
    /// Versions and syncs.
    rooms: Vec<(u64, u64, u64)>,
}

fn account(steps: &[Step], forgets: bool, rests: bool) -> Account {
    let mut play = Play::new(Pace::RateAtRest, 0, SEATS.len(), forgets);
    for shard in &mut play.world.shards {
        shard.host.schedule.is_restless = !rests;
    }
    let mut lengths = Vec::new();
    for step in steps {
        let mut step_by = |play: &mut Play, step: &Step| {
            play.step(step);
            lengths.push(std::array::from_fn(|seat| play.came_bytes(seat)));
        };
        match *step {
            Step::Wait { ms } => (0..ms).for_each(|_| step_by(&mut play, &Step::Wait { ms: 5 })),
            _ => step_by(&mut play, step),
        }
        play.check();
    }
    let came = std::array::from_fn(|seat| play.came(seat));
    let (mut rooms, mut counters) = (Vec::new(), Vec::new());
    for shard in &mut play.world.shards {
        for key in shard.host.rooms.keys() {
            shard.host.make_up_for_syncs(&mut below!(shard), key);
            let hosted = shard.host.rooms.get(key).unwrap();
            rooms.push((hosted.room.version(), hosted.regular_syncs, hosted.syncs_missed));
        }
        let of = shard.counters();
        counters.push([of.syncs, of.syncs_missed, of.patches, of.messages_out]);
    }
    Account { lengths, came, counters, rooms }
}

/// With rests, a shard has fewer turns; everything comes as it would if each sync had its turn.
fn rests_show_nowhere(steps: &[Step], forgets: bool) {
    let [restless, resting] = [false, true].map(|rests| account(steps, forgets, rests));
    assert_eq!(resting, restless);
}

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn rests_of_rooms_show_nowhere(steps in steps(), forgets in any::<bool>()) {
        rests_show_nowhere(&steps, forgets);
    }
}

/// The session waits for a room whose shard takes no mail, and forgets an event meanwhile.
#[test]
fn a_client_starts_over_if_its_session_forgets_while_it_comes_back() {
    let steps = [
        Step::Join { seat: 2, room: 1 },
        Step::Join { seat: 0, room: 0 },
        Step::Join { seat: 2, room: 0 },
        Step::Mailbox { shard: 0, space: Some(0) },
        Step::Wait { ms: 11 },
        Step::Return { seat: 2, shard: 0 },
        Step::Act { seat: 0, pick: 0, seed: 12_055_807_809_481_803_699 },
        Step::Join { seat: 2, room: 0 },
    ];
    let mut play = Play::new(Pace::Rate, 0, SEATS.len(), true);
    play.run(&steps);
    assert!(play.seats[2].client.is_some(), "it has come back");
}

/// Both connections wait to be sent to the session's shard, and go there in their order.
#[test]
fn of_two_connections_for_a_session_the_later_one_gets_it() {
    let steps = [
        Step::Join { seat: 0, room: 1 },
        Step::Wait { ms: 20 },
        Step::Leave { seat: 0, pick: 0 },
        Step::Mailbox { shard: 1, space: Some(0) },
        Step::Return { seat: 0, shard: 0 },
        Step::Return { seat: 0, shard: 0 },
    ];
    copies_equal_the_filtered_state(Pace::Rate, &steps, 0, false);
}

/// The session has forgotten the `joined` of a room elsewhere, whose shard takes no mail. The first
/// of two connections learns that messages are lost; to the second they count as received.
#[test]
fn a_client_never_hears_of_a_room_whose_joined_was_lost() {
    let steps = [
        Step::Join { seat: 3, room: 1 },
        Step::Deafen { seat: 3 },
        Step::Wait { ms: 11 },
        Step::Join { seat: 3, room: 0 },
        Step::Wait { ms: 50 },
        Step::Mailbox { shard: 0, space: Some(0) },
        Step::Return { seat: 3, shard: 0 },
        Step::Return { seat: 3, shard: 0 },
    ];
    copies_equal_the_filtered_state(Pace::RateAtRest, &steps, 0, true);
}

/// Mail waits all the time, and is tried again at an interval, in which rooms at rest have fewer
/// turns. Both histories must be looked at at the same times, however long they are.
#[test]
fn a_full_mailbox_does_not_show_whether_rooms_rest() {
    let steps = [
        Step::Mailbox { shard: 1, space: Some(0) },
        Step::Join { seat: 3, room: 1 },
        Step::Return { seat: 3, shard: 0 },
        Step::Wait { ms: 1152 },
    ];
    rests_show_nowhere(&steps, false);
}

/// Of three connections for one session, the first and the last wait to be sent to its shard.
#[test]
fn the_order_of_resumes_does_not_show_whether_rooms_rest() {
    let steps = [
        Step::Mailbox { shard: 0, space: Some(0) },
        Step::Join { seat: 0, room: 0 },
        Step::HangUp { seat: 1 },
        Step::Join { seat: 2, room: 0 },
        Step::Return { seat: 0, shard: 1 },
        Step::Return { seat: 0, shard: 0 },
        Step::Return { seat: 0, shard: 1 },
        Step::Leave { seat: 0, pick: 0 },
        Step::Wait { ms: 53 },
        Step::Mailbox { shard: 0, space: None },
    ];
    rests_show_nowhere(&steps, false);
}
