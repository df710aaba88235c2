//! A player at one seat of the laws' table, over one connection and session after the other.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use playfield_state::{JsonMirror, Mirror, PlayerId, view, view_in};
use playfield_wire::client::{self, ClientMessage, Hello, Resume, ResumeRoom};
use playfield_wire::framing::PREAMBLE;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{Format, RequestNumber, RoomNumber};

use super::law_room::{self, Law};
use super::speech::encoded;
use super::world::{CLOSE, Client, World};

/// One player's copy of one room.
struct Copy {
    id: String,
    player: PlayerId,
    epoch: u64,
    /// `None` until the snapshot.
    version: Option<u64>,
    events: u64,
    /// An event came without the state that it belongs to: the client is no longer in the room, and
    /// `left` comes next.
    is_early: bool,
    packed: Mirror<Law>,
    tree: JsonMirror,
}

impl Copy {
    /// A snapshot or a patch was applied. It is the next that was written, or, if some may not have
    /// arrived, a later one.
    fn is_at(&mut self, format: Format, version: u64, may_skip: bool) {
        assert!(self.version.is_none_or(|before| before <= version), "versions do not go back");
        assert!(!self.is_early, "an event before its state");
        self.version = Some(version);
        let mut other = String::new();
        while let Some(written) = law_room::next_written(&self.id, self.player) {
            match self.check(format, written) {
                Ok(()) => return,
                Err(why) => {
                    assert!(may_skip, "{why}");
                    other = why;
                }
            }
        }
        panic!("what is heard was not written: {other}");
    }

    /// The copy is what the player saw of the room at that version of the room.
    fn check(&self, format: Format, version: u64) -> Result<(), String> {
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
        if copy == expected {
            return Ok(());
        }
        let Self { id, player, .. } = self;
        Err(format!("{format:?}, {player} in {id} at {version}: {copy} is not {expected}"))
    }
}

/// A player at one seat.
pub(super) struct Seat {
    name: String,
    is_websocket: bool,
    pub(super) format: Format,
    resumable: bool,
    /// The connection, and all those before it.
    pub(super) client: Option<Client>,
    pub(super) clients: Vec<Client>,
    /// Whether the node has answered its hello.
    is_welcome: bool,
    /// Whether it does not read all that the node has for it.
    pub(super) is_slow: bool,
    /// Whether it does not hear what arrives.
    pub(super) is_deaf: bool,
    requests: u32,
    /// Names its session; empty if that cannot be resumed.
    token: Vec<u8>,
    /// The number of counted messages of the session that it has heard.
    received: u64,
    /// Counted messages that the node has not confirmed, and how many it has.
    sent: VecDeque<Vec<u8>>,
    confirmed: u64,
    /// A connection of the session was lost, and perhaps what was on its way.
    was_cut: bool,
    /// The rooms whose messages the node has dropped.
    lost: BTreeSet<RoomNumber>,
    /// By the rooms' numbers.
    copies: BTreeMap<RoomNumber, Copy>,
    /// The number of snapshots that it has heard.
    pub(super) snapshots: usize,
    /// All messages that it has heard.
    pub(super) heard: Vec<Vec<u8>>,
}

impl Seat {
    pub(super) fn new(name: String, is_websocket: bool, format: Format, resumable: bool) -> Self {
        Self {
            name,
            is_websocket,
            format,
            resumable,
            client: None,
            clients: Vec::new(),
            is_welcome: false,
            is_slow: false,
            is_deaf: false,
            requests: 0,
            token: Vec::new(),
            received: 0,
            sent: VecDeque::new(),
            confirmed: 0,
            was_cut: false,
            lost: BTreeSet::new(),
            copies: BTreeMap::new(),
            snapshots: 0,
            heard: Vec::new(),
        }
    }

    pub(super) fn next_request(&mut self) -> RequestNumber {
        self.requests += 1;
        RequestNumber(self.requests)
    }

    /// Connects to a shard, for the session that it has or for a new one.
    pub(super) fn connect(&mut self, world: &mut World, shard: usize) {
        let client = world.connect(shard);
        if self.is_websocket {
            world.upgrade(client, self.format);
        } else {
            world.bytes(client, &PREAMBLE);
            world.speaks(client, self.format);
        }
        self.clients.push(client);
        self.client = Some(client);
        (self.is_slow, self.is_deaf, self.is_welcome) = (false, false, false);
        let rooms = self.copies.iter().map(|(&room, copy)| {
            let version = copy.version.unwrap_or(0);
            ResumeRoom { room, epoch: copy.epoch, version }
        });
        let resume = Resume {
            token: self.token.clone().into(),
            received: self.received,
            rooms: rooms.collect(),
        };
        let hello = Hello {
            name: self.name.clone().into(),
            resumable: self.resumable,
            resume: Some(resume).filter(|_| !self.token.is_empty()),
            ..Hello::new(self.format)
        };
        world.say(client, &encoded(self.format, &ClientMessage::Hello(hello)));
        self.hear(world);
    }

    /// Comes back for its session, if it can. A connection that is open is lost thereby.
    pub(super) fn come_back(&mut self, world: &mut World, shard: usize) {
        if !self.token.is_empty() {
            self.was_cut = true;
            self.connect(world, shard);
        }
    }

    /// Loses its connection. Of what is on its way only the first bytes are heard.
    pub(super) fn cut(&mut self, world: &mut World, bytes: usize, orderly: bool) {
        let Some(client) = self.client else { return };
        world.shorten(client, bytes);
        self.hear(world);
        if orderly && self.is_websocket {
            world.bytes(client, CLOSE);
        }
        if orderly {
            world.hang_up(client);
        }
        world.vanish(client);
        (self.client, self.was_cut) = (None, true);
    }

    /// Gives its session up. Returns the connection, which it is about to lose.
    pub(super) fn forget(&mut self, world: &mut World) -> Option<Client> {
        self.hear(world);
        self.begin(Vec::new());
        self.client.take()
    }

    /// Has a new session, or none.
    fn begin(&mut self, token: Vec<u8>) {
        self.token = token;
        (self.received, self.confirmed, self.was_cut) = (0, 0, false);
        self.sent.clear();
        self.lost.clear();
        self.copies.clear();
    }

    /// Says something, or what is counted later, once it is welcome.
    pub(super) fn say(&mut self, world: &mut World, body: Vec<u8>, is_counted: bool) {
        let Some(client) = self.client else { return };
        if is_counted && self.resumable {
            self.sent.push_back(body.clone());
        }
        if self.is_welcome {
            world.say(client, &body);
        }
    }

    /// Confirms what it has heard.
    pub(super) fn acknowledge(&mut self, world: &mut World) {
        if self.resumable {
            let ack = ClientMessage::Ack(client::Ack { received: self.received });
            self.say(world, encoded(self.format, &ack), false);
        }
    }

    fn confirm(&mut self, received: u64) {
        let count = usize::try_from(received - self.confirmed).unwrap();
        self.sent.drain(..count);
        self.confirmed = received;
    }

    /// Takes what came, and checks what it makes of the copies.
    pub(super) fn hear(&mut self, world: &mut World) {
        let Some(client) = self.client else { return };
        // What it says when it is welcome may be answered at once.
        let mut bodies = VecDeque::from(world.bodies(client));
        while let Some(body) = bodies.pop_front() {
            let message = ServerMessage::decode(self.format, &body).unwrap();
            self.received += u64::from(message.is_counted());
            if let ServerMessage::Welcome(server::Welcome { resume, resumed, .. }) = message {
                self.is_welcome = true;
                let Some(resumed) = resumed else {
                    self.begin(resume.into_owned());
                    self.heard.push(body);
                    continue;
                };
                self.token = resume.into_owned();
                self.received += resumed.lost.iter().map(|lost| lost.messages).sum::<u64>();
                self.lost.extend(resumed.lost.iter().filter_map(|lost| lost.room));
                self.confirm(resumed.received);
                for body in self.sent.clone() {
                    world.say(client, &body);
                }
                bodies.extend(world.bodies(client));
            } else {
                self.handle(message);
            }
            self.heard.push(body);
        }
    }

    fn handle(&mut self, message: ServerMessage<'_>) {
        let may_skip = self.was_cut;
        match message {
            ServerMessage::Joined(server::Joined { room, id, player, epoch, .. }) => {
                let copy = Copy {
                    id: id.into_owned(),
                    player: PlayerId(player),
                    epoch,
                    version: None,
                    events: 0,
                    is_early: false,
                    packed: Mirror::new(),
                    tree: self.format.tree().map_or_else(JsonMirror::new, JsonMirror::of),
                };
                assert!(self.copies.insert(room, copy).is_none(), "the number {room} is taken");
            }
            ServerMessage::Left(server::Left { room, .. }) => {
                let copy = self.copies.remove(&room);
                assert!(copy.is_some() || self.lost.contains(&room), "what is left was joined");
            }
            ServerMessage::Snapshot(server::Snapshot { room, epoch, version, body }) => {
                let copy = self.copies.get_mut(&room).expect("a room that was joined");
                assert_eq!(epoch, copy.epoch);
                match self.format {
                    Format::Packed => copy.packed.snapshot(&body).unwrap(),
                    Format::Msgpack | Format::Json => copy.tree.snapshot(&body).unwrap(),
                }
                copy.is_at(self.format, version, may_skip);
                self.snapshots += 1;
            }
            ServerMessage::Patch(server::Patch { room, base, version, body }) => {
                let copy = self.copies.get_mut(&room).expect("a room that was joined");
                assert_eq!(copy.version, Some(base), "the patch to {version} begins elsewhere");
                assert!(version > base, "a patch leads to a later version");
                match self.format {
                    Format::Packed => copy.packed.patch(&body).unwrap(),
                    Format::Msgpack | Format::Json => copy.tree.patch(&body).unwrap(),
                }
                copy.is_at(self.format, version, may_skip);
            }
            ServerMessage::Check(server::Check { room, version, digest }) => {
                let copy = &self.copies[&room];
                let own = match self.format {
                    Format::Packed => copy.packed.digest(),
                    Format::Msgpack | Format::Json => copy.tree.digest(),
                };
                assert_eq!((copy.version, own), (Some(version), digest));
            }
            ServerMessage::Event(server::Event { room, sequence, version, .. }) => {
                let has_gaps = self.lost.contains(&room);
                let Some(copy) = self.copies.get_mut(&room) else {
                    assert!(has_gaps, "a room that was joined");
                    return;
                };
                let own = copy.version;
                assert!(may_skip || own.is_some_and(|own| own <= version), "it was raised before");
                copy.is_early |= own.is_none_or(|own| version > own + 1);
                assert!(may_skip || !copy.is_early, "it is of this version or the next");
                assert!(sequence == copy.events + 1 || (has_gaps && sequence > copy.events));
                copy.events = sequence;
            }
            ServerMessage::Ack(server::Ack { received }) => self.confirm(received),
            _ => {}
        }
    }

    /// Checks that the player, who has heard everything, is in these rooms and has their whole
    /// state.
    pub(super) fn check(&self, joined: impl Iterator<Item = RoomNumber>) {
        let known: Vec<RoomNumber> = self.copies.keys().copied().collect();
        assert_eq!(known, joined.collect::<Vec<_>>());
        for copy in self.copies.values() {
            let now = law_room::version(&copy.id).expect("it was synced");
            copy.check(self.format, now).unwrap();
        }
    }
}
