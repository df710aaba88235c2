//! Histories of clients that lose their connections at any point, and come back: on several shards,
//! in several rooms, by all transports and formats.
//!
//! Each client is strict about what it hears, see [`Wanderer`]. In the end each request was
//! executed once, each client has heard everything that was said in its rooms while it was in them,
//! in order, and its copies are those that a snapshot would give it.
//!
//! `PLAYFIELD_LAW_CASES` sets the number of histories, for a longer run.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use playfield_wire::client::{self, ClientMessage};
use playfield_wire::{Format, RequestNumber, RoomNumber};

use super::speech::Heard;
use super::wanderer::{Return, Wanderer};
use super::world::{Client, World};

const STEPS: usize = 150;
const ROOMS: usize = 3;

const CLIENTS: [(bool, Format); 4] = [
    (false, Format::Packed),
    (true, Format::Packed),
    (true, Format::Json),
    (false, Format::Msgpack),
];

/// Numbers that repeat (SplitMix64).
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % below
    }

    pub(super) fn index(&mut self, below: usize) -> usize {
        self.roll(below as u64) as usize
    }
}

/// Someone who is in a room from its beginning to its end, and is never cut off.
struct Witness {
    client: Client,
    room: RoomNumber,
    id: String,
    /// The texts that were said in the room.
    said: Vec<String>,
}

impl Witness {
    fn listen(&mut self, world: &mut World) {
        for heard in world.heard(self.client) {
            if let Heard::Event { payload, .. } = heard {
                self.said.push(payload);
            }
        }
    }
}

struct History {
    world: World,
    dice: Dice,
    witnesses: Vec<Witness>,
    clients: Vec<Wanderer>,
    requests: u32,
    /// The requests to add something in a room, by client, with the room.
    adds: Vec<BTreeMap<u32, String>>,
}

impl History {
    fn new(seed: u64) -> Self {
        let mut dice = Dice(seed);
        let shards = 1 + dice.index(3);
        let mut settings = vec![("limits.session.outbox_bytes.max", "1000000000")];
        // In some histories those who come back wait for snapshots, and to be read.
        if !seed.is_multiple_of(3) {
            settings.push(("limits.session.outbox_bytes.high", "100"));
        }
        if seed % 5 > 2 {
            settings.push(("limits.session.snapshots.per_second", "1"));
        }
        let mut world = World::new(shards, &settings);
        if seed % 3 == 1 {
            world.each_look_takes(Duration::from_millis(1));
        }
        let mut witnesses = Vec::new();
        for room in 0..ROOMS {
            let client = world.client(room % shards);
            let sync = if dice.roll(4) == 0 { "sync=0" } else { "sync=20" };
            let (room, id) = world.room(client, &format!("capacity=50 {sync}"));
            witnesses.push(Witness { client, room, id, said: Vec::new() });
        }
        let clients = CLIENTS
            .iter()
            .map(|&(is_websocket, format)| {
                Wanderer::new(&mut world, dice.index(shards), is_websocket, format)
            })
            .collect();
        let adds = vec![BTreeMap::new(); CLIENTS.len()];
        Self { world, dice, witnesses, clients, requests: 0, adds }
    }

    fn step(&mut self) {
        let (world, dice) = (&mut self.world, &mut self.dice);
        let at = dice.index(self.clients.len());
        let client = &mut self.clients[at];
        client.listen(world);
        if !client.is_welcome() && dice.roll(3) == 0 {
            // An attempt that was not answered is given up.
            world.vanish(client.client);
            if client.format == Format::Packed {
                client.is_websocket = dice.roll(2) == 0;
            }
            // The bytes of the handshake are not what is cut here.
            let pace = world.pace.take();
            let shard = dice.index(world.shards.len());
            client.begin_return_at(world, shard, pace);
            return;
        }
        self.requests += 1;
        let request = RequestNumber(self.requests);
        let rooms: Vec<RoomNumber> = client.rooms.keys().copied().collect();
        let room = (!rooms.is_empty()).then(|| rooms[dice.index(rooms.len())]);
        match (dice.roll(20), room) {
            (0..3, _) => {
                let id = self.witnesses[dice.index(ROOMS)].id.as_str();
                client.say(world, &ClientMessage::Join(client::Join { request, room: id.into() }));
            }
            (3, Some(room)) => {
                client.say(world, &ClientMessage::Leave(client::Leave { request, room }));
            }
            (4..8, Some(room)) => {
                self.adds[at].insert(self.requests, client.rooms[&room].id.clone());
                client.request(world, room, self.requests, "add", "");
            }
            (8, Some(room)) => client.request(world, room, self.requests, "secret", ""),
            (9, Some(room)) => client.request(world, room, self.requests, "sync", ""),
            (10, Some(room)) => client.resync_if_welcome(world, room),
            (11..13, Some(room)) => {
                let text = format!("{at} says {}", self.requests);
                client.shouted.insert(self.requests);
                client.request(world, room, self.requests, "shout", &text);
            }
            (13, _) => client.acknowledge(world),
            (14, _) => {
                let bytes = dice.index(3) * dice.index(300);
                match dice.roll(4) {
                    0 => client.hang_up(world, bytes),
                    _ => client.cut(world, bytes),
                }
            }
            (15, Some(_)) if client.is_welcome() => {
                let list = ClientMessage::List(client::List {
                    request,
                    room_type: None,
                    filter: Vec::new(),
                    limit: 1,
                });
                let bytes = dice.index(20);
                client.cut_while_speaking(world, &list, bytes);
            }
            (16, _) if client.is_welcome() && dice.roll(3) == 0 => {
                // It comes back while the node thinks that it is there.
                let (pace, shard) = (world.pace.take(), dice.index(world.shards.len()));
                client.begin_return_at(world, shard, pace);
            }
            (17, _) if dice.roll(2) == 0 => {
                let shard = dice.index(world.shards.len());
                world.space[shard] = if dice.roll(2) == 0 { usize::MAX } else { dice.index(3) };
            }
            (17, _) => {
                let bytes = if dice.roll(2) == 0 { usize::MAX } else { dice.index(300) };
                world.takes(client.client, bytes);
            }
            _ => {
                let ms = dice.roll(120);
                world.wait(ms);
            }
        }
        for witness in &mut self.witnesses {
            witness.listen(world);
        }
    }

    /// All come back, and read what there is.
    fn end(&mut self) {
        let world = &mut self.world;
        world.pace = None;
        world.each_look_takes(Duration::ZERO);
        world.space.fill(usize::MAX);
        world.run();
        for client in &mut self.clients {
            world.takes(client.client, usize::MAX);
            client.listen(world);
            if !client.is_welcome() {
                world.vanish(client.client);
                assert_eq!(client.come_back(world, 0), Return::Resumed);
            }
        }
        world.wait(3_000);
        for client in &mut self.clients {
            client.listen(world);
            assert!(client.is_welcome() && client.lost.is_empty(), "{:?}", client.returned);
            assert_eq!(client.unconfirmed(), 0);
            client.acknowledge(world);
        }
        for witness in &mut self.witnesses {
            witness.listen(world);
        }
    }

    fn check(&mut self) {
        let mut executed: BTreeMap<String, u64> = BTreeMap::new();
        for (client, adds) in self.clients.iter().zip(&self.adds) {
            let answers = |request: u32| {
                let (reply, error) = (format!("{request} = "), format!("Some({request}): "));
                let is_answer =
                    |heard: &&String| heard.starts_with(&reply) || heard.starts_with(&error);
                client.heard.iter().filter(is_answer).collect::<Vec<_>>()
            };
            for (&request, id) in adds {
                let answers = answers(request);
                // A request to a room that the client leaves meanwhile may go unanswered.
                assert!(answers.len() <= 1, "{request}: {answers:?}");
                if answers.first().is_some_and(|answer| answer.contains(" = ")) {
                    *executed.entry(id.clone()).or_default() += 1;
                }
            }
            self.check_events(client);
        }
        self.check_said();
        for witness in &self.witnesses {
            let counted: u64 = match &self.world.ask(witness.client, witness.room, "add", "")[..] {
                [Heard::Reply { payload, .. }, ..] => payload.parse().unwrap(),
                other => panic!("{other:?}"),
            };
            let answered = executed.get(&witness.id).copied().unwrap_or_default();
            // One more of the witness, and some whose answers went to who had left.
            assert!(counted > answered, "{counted} and {answered}");
        }
        self.world.wait(300);
        for client in &mut self.clients {
            client.listen(&mut self.world);
            for room in client.rooms.keys().copied().collect::<Vec<_>>() {
                self.world.wait(1_000);
                client.request(&mut self.world, room, 0, "sync", "");
                self.world.wait(100);
                client.listen(&mut self.world);
                let before = client.rooms[&room].state.clone();
                client.resync(&mut self.world, room);
                self.world.wait(100);
                client.listen(&mut self.world);
                let mut after = client.rooms[&room].state.clone();
                // What was never changed is in no patch.
                after.retain(|name, value| value != "0" || before.contains_key(name));
                assert_eq!(before, after);
            }
        }
        let members = self.clients.iter().map(|client| client.rooms.len()).sum::<usize>();
        assert_eq!(self.world.members(), members + ROOMS, "nobody is left behind");
        let sessions = (CLIENTS.len() + ROOMS) as u64;
        assert_eq!(self.world.sessions(), (sessions, 0));
    }

    /// Checks that each text that a client knows it said was said exactly once.
    fn check_said(&self) {
        for (at, client) in self.clients.iter().enumerate() {
            for request in 1..=self.requests {
                let text = format!("{at} says {request}");
                let said = self.witnesses.iter().flat_map(|witness| &witness.said);
                let times = said.filter(|said| **said == text).count();
                let is_shout = client.shouted.contains(&request);
                let answer = format!("{request} = ");
                let is_answered = client.heard.contains(&answer);
                assert!(times <= 1, "{text:?} is heard {times} times");
                assert!(times == 1 || !(is_shout && is_answered), "{text:?} is not heard");
            }
        }
    }

    /// Checks that what a client heard in a stay is a part of what was said, without gaps.
    fn check_events(&self, client: &Wanderer) {
        for (id, stays) in &client.stays {
            let witness = self.witnesses.iter().find(|witness| witness.id == *id).unwrap();
            let mut said = &witness.said[..];
            for heard in stays {
                let Some(first) = heard.first() else { continue };
                let matches = |at: &usize| said[*at..].starts_with(heard);
                let starts = (0..said.len()).filter(|at| said[*at] == *first);
                let at = starts.clone().find(matches);
                let at = at.unwrap_or_else(|| panic!("{heard:?} is not in {said:?}"));
                said = &said[at + heard.len()..];
            }
        }
        let numbers: BTreeSet<_> = client.rooms.keys().collect();
        assert_eq!(numbers.len(), client.rooms.len());
    }
}

#[test]
fn laws_of_resumption_hold_wherever_connections_are_cut() {
    let cases = std::env::var("PLAYFIELD_LAW_CASES").ok().and_then(|cases| cases.parse().ok());
    let first = std::env::var("PLAYFIELD_LAW_SEED").ok().and_then(|seed| seed.parse().ok());
    let first: u64 = first.unwrap_or(0);
    for seed in first..first + cases.unwrap_or(100) {
        let history = std::panic::AssertUnwindSafe(|| {
            let mut history = History::new(seed);
            history.world.pace = (seed % 2 == 0).then_some(seed);
            for _ in 0..STEPS {
                history.step();
            }
            history.end();
            history.check();
        });
        if let Err(panic) = std::panic::catch_unwind(history) {
            eprintln!("the history of the seed {seed}: PLAYFIELD_LAW_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}
