//! A client that counts, confirms and comes back, and takes nothing that the protocol forbids.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use playfield_wire::client::{self, ClientMessage, Hello, Resume, ResumeRoom};
use playfield_wire::framing::PREAMBLE;
use playfield_wire::server::{self, Lost, ServerMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

use super::room;
use super::speech::{self, encoded};
use super::world::{CLOSE, Client, World};

/// One client, over as many connections as it takes.
pub(super) struct Wanderer {
    pub(super) client: Client,
    pub(super) address: [u8; 4],
    /// The number of bytes that it reads of each connection that it opens.
    pub(super) takes: usize,
    pub(super) format: Format,
    pub(super) is_websocket: bool,
    pub(super) user: String,
    pub(super) token: Vec<u8>,
    pub(super) session: u64,
    /// The number of counted messages that it has handled.
    pub(super) received: u64,
    /// Counted messages that the node has not confirmed.
    sent: VecDeque<Vec<u8>>,
    /// The number of counted messages that the node has confirmed.
    confirmed: u64,
    pub(super) rooms: BTreeMap<RoomNumber, Copy>,
    /// The requests by which it has said something.
    pub(super) shouted: BTreeSet<u32>,
    /// The events of each stay in a room, by the room's id.
    pub(super) stays: BTreeMap<String, Vec<Vec<String>>>,
    /// The messages of rooms and answers to requests that it has heard, in order.
    pub(super) heard: Vec<String>,
    pub(super) lost: Vec<Lost>,
    /// The nonces of the pings that it got in native framing.
    pub(super) pings: Vec<u64>,
    /// The outcome of its last return.
    pub(super) returned: Return,
    pub(super) goodbye: Option<ErrorCode>,
}

/// Its copy of a room.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Copy {
    pub(super) id: String,
    pub(super) player: u64,
    pub(super) epoch: u64,
    pub(super) version: u64,
    pub(super) state: BTreeMap<String, String>,
    events: u64,
    /// The number of messages about the room that the node has forgotten since the last event.
    forgotten: u64,
    /// The number of events that it has missed.
    pub(super) missed: u64,
    /// An event came before the state that it belongs to. That may be so if the client is no longer
    /// in the room: then `left` comes next.
    is_early: bool,
}

/// The outcome of a return.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Return {
    Resumed,
    NewSession,
    /// The connection was cut before it knew.
    Unknown,
    Refused(ErrorCode),
}

impl Wanderer {
    /// Connects and opens a session.
    pub(super) fn new(world: &mut World, shard: usize, is_websocket: bool, format: Format) -> Self {
        let mut wanderer = Self::of("", is_websocket, format);
        assert_eq!(wanderer.come_back(world, shard), Return::NewSession);
        wanderer
    }

    /// A client with this token, which has not connected.
    pub(super) fn of(token: &str, is_websocket: bool, format: Format) -> Self {
        Self {
            client: 0,
            address: [10, 0, 0, 1],
            takes: usize::MAX,
            format,
            is_websocket,
            user: token.to_owned(),
            token: Vec::new(),
            session: 0,
            received: 0,
            sent: VecDeque::new(),
            confirmed: 0,
            rooms: BTreeMap::new(),
            shouted: BTreeSet::new(),
            stays: BTreeMap::new(),
            heard: Vec::new(),
            lost: Vec::new(),
            pings: Vec::new(),
            returned: Return::Unknown,
            goodbye: None,
        }
    }

    fn hello(&self) -> Vec<u8> {
        let rooms = self.rooms.iter().map(|(&room, copy)| {
            let &Copy { epoch, version, .. } = copy;
            ResumeRoom { room, epoch, version }
        });
        let resume = Resume {
            token: self.token.clone().into(),
            received: self.received,
            rooms: rooms.collect(),
        };
        let hello = Hello {
            name: "ann".into(),
            token: self.user.as_bytes().to_vec().into(),
            resumable: true,
            resume: Some(resume).filter(|resume| !resume.token.is_empty()),
            ..Hello::new(self.format)
        };
        encoded(self.format, &ClientMessage::Hello(hello))
    }

    /// Connects, and asks for its session.
    pub(super) fn come_back(&mut self, world: &mut World, shard: usize) -> Return {
        self.begin_return(world, shard);
        self.listen(world);
        self.returned
    }

    /// Like [`begin_return`](Self::begin_return), at the given pace once it has said hello.
    pub(super) fn begin_return_at(&mut self, world: &mut World, shard: usize, pace: Option<u64>) {
        self.connect(world, shard);
        world.pace = pace;
        let hello = self.hello();
        world.say(self.client, &hello);
    }

    /// Connects, and says hello.
    pub(super) fn begin_return(&mut self, world: &mut World, shard: usize) {
        self.begin_return_at(world, shard, None);
    }

    fn connect(&mut self, world: &mut World, shard: usize) {
        self.client = world.connect_from(self.address, shard);
        self.goodbye = None;
        self.returned = Return::Unknown;
        if self.is_websocket {
            world.upgrade(self.client, self.format);
        } else {
            world.bytes(self.client, &PREAMBLE);
            world.speaks(self.client, self.format);
        }
        world.takes(self.client, self.takes);
    }

    /// Handles what the node answers to the hello.
    fn is_answered(&mut self, world: &mut World, body: &[u8]) {
        match ServerMessage::decode(self.format, body).unwrap() {
            ServerMessage::Welcome(server::Welcome {
                session,
                resume,
                resumed: Some(resumed),
                ..
            }) => {
                assert_eq!(session, self.session);
                self.token = resume.into_owned();
                for lost in &resumed.lost {
                    if let Some(copy) = lost.room.and_then(|room| self.rooms.get_mut(&room)) {
                        copy.forgotten += lost.messages;
                    }
                }
                self.lost.extend(resumed.lost.iter().copied());
                self.received += resumed.lost.iter().map(|lost| lost.messages).sum::<u64>();
                self.confirm(resumed.received);
                self.returned = Return::Resumed;
                for body in self.sent.clone() {
                    world.say(self.client, &body);
                }
            }
            ServerMessage::Welcome(server::Welcome { session, resume, resumed: None, .. }) => {
                (self.session, self.token) = (session, resume.into_owned());
                (self.received, self.confirmed) = (0, 0);
                self.sent.clear();
                self.rooms.clear();
                self.returned = Return::NewSession;
            }
            ServerMessage::Error(server::Error { code, .. }) => {
                self.returned = Return::Refused(code);
            }
            ServerMessage::Goodbye(server::Goodbye { code, .. }) => {
                self.goodbye = Some(code);
                self.returned = Return::Refused(code);
            }
            other => panic!("no answer to a hello: {other:?}"),
        }
    }

    /// Returns whether it has a session, and a connection as far as it knows.
    pub(super) fn is_welcome(&self) -> bool {
        matches!(self.returned, Return::Resumed | Return::NewSession)
    }

    fn confirm(&mut self, received: u64) {
        let count = usize::try_from(received - self.confirmed).unwrap();
        assert!(count <= self.sent.len(), "the node confirms what it was not sent");
        self.sent.drain(..count);
        self.confirmed = received;
    }

    /// Returns the number of messages that the node has not confirmed.
    pub(super) fn unconfirmed(&self) -> usize {
        self.sent.len()
    }

    /// Sends a counted message, or keeps it for its return.
    pub(super) fn say(&mut self, world: &mut World, message: &ClientMessage<'_>) {
        assert!(message.is_counted());
        self.say_body(world, encoded(self.format, message));
    }

    fn say_body(&mut self, world: &mut World, body: Vec<u8>) {
        self.sent.push_back(body.clone());
        if self.is_welcome() {
            world.say(self.client, &body);
            self.listen(world);
        }
    }

    /// Sends a request to a room.
    pub(super) fn request(
        &mut self,
        world: &mut World,
        room: RoomNumber,
        request: u32,
        name: &str,
        payload: &str,
    ) {
        let request = RequestNumber(request);
        self.say_body(world, speech::request(self.format, room, request, name, payload));
    }

    /// Makes a room, and waits for it.
    pub(super) fn room(&mut self, world: &mut World, options: &str) -> RoomNumber {
        self.room_of(world, "test", options)
    }

    /// Makes a room of a type, and waits for it.
    pub(super) fn room_of(
        &mut self,
        world: &mut World,
        room_type: &str,
        options: &str,
    ) -> RoomNumber {
        let options = if options.is_empty() && self.format != Format::Packed {
            Vec::new()
        } else {
            room::encoded(self.format, options.as_bytes())
        };
        let create = ClientMessage::Create(client::Create {
            request: RequestNumber(900),
            room_type: room_type.into(),
            private: false,
            code: false,
            key: None,
            options: &options,
        });
        self.say(world, &create);
        self.newest(world)
    }

    /// Joins a room by its id, and waits for it.
    pub(super) fn join(&mut self, world: &mut World, id: &str) -> RoomNumber {
        let request = RequestNumber(901);
        self.say(world, &ClientMessage::Join(client::Join { request, room: id.into() }));
        self.newest(world)
    }

    fn newest(&mut self, world: &mut World) -> RoomNumber {
        let before = self.rooms.len();
        for _ in 0..20 {
            world.wait(60);
            self.listen(world);
            if self.rooms.len() > before {
                break;
            }
        }
        *self.rooms.keys().next_back().unwrap_or_else(|| panic!("not joined: {:?}", self.heard))
    }

    /// Confirms all that it has handled.
    pub(super) fn acknowledge(&mut self, world: &mut World) {
        if !self.is_welcome() {
            return;
        }
        let ack = ClientMessage::Ack(client::Ack { received: self.received });
        world.say(self.client, &encoded(self.format, &ack));
    }

    /// Handles what came.
    pub(super) fn listen(&mut self, world: &mut World) {
        for body in world.bodies(self.client) {
            if self.returned == Return::Unknown {
                self.is_answered(world, &body);
            } else {
                self.handle(&body);
            }
        }
    }

    /// Loses the connection: only `bytes` bytes of what is on its way to the client arrive.
    pub(super) fn cut(&mut self, world: &mut World, bytes: usize) {
        world.shorten(self.client, bytes);
        self.listen(world);
        self.lose(world);
    }

    /// Closes the transport in an orderly way, but not the session. Only `bytes` bytes of what is
    /// on its way arrive.
    pub(super) fn hang_up(&mut self, world: &mut World, bytes: usize) {
        world.shorten(self.client, bytes);
        self.listen(world);
        if self.is_websocket {
            world.bytes(self.client, CLOSE);
        }
        world.hang_up(self.client);
        self.lose(world);
    }

    /// The connection is gone, with all that was not heard.
    fn lose(&mut self, world: &mut World) {
        world.vanish(self.client);
        world.raw(self.client);
        self.returned = Return::Unknown;
    }

    /// Its connection is cut in the middle of a message that it sends: only `bytes` bytes arrive.
    pub(super) fn cut_while_speaking(
        &mut self,
        world: &mut World,
        message: &ClientMessage<'_>,
        bytes: usize,
    ) {
        let body = encoded(self.format, message);
        let framed = world.framed(self.client, &body);
        self.sent.push_back(body);
        world.bytes(self.client, &framed[..bytes.min(framed.len())]);
        self.cut(world, bytes);
    }

    /// Asks for a snapshot of a room, if it is connected.
    pub(super) fn resync_if_welcome(&mut self, world: &mut World, room: RoomNumber) {
        if self.is_welcome() {
            self.resync(world, room);
        }
    }

    /// Asks for a snapshot of a room.
    pub(super) fn resync(&mut self, world: &mut World, room: RoomNumber) {
        world.say(
            self.client,
            &encoded(self.format, &ClientMessage::Resync(client::Resync { room })),
        );
        self.listen(world);
    }

    fn copy(&mut self, room: RoomNumber) -> &mut Copy {
        self.rooms.get_mut(&room).unwrap_or_else(|| panic!("{room} is not joined"))
    }

    fn handle(&mut self, body: &[u8]) {
        let message = ServerMessage::decode(self.format, body).unwrap();
        self.received += u64::from(message.is_counted());
        let format = self.format;
        let text = |bytes: &[u8]| speech::text(format, bytes);
        match message {
            ServerMessage::Joined(server::Joined { request, room, id, player, epoch, .. }) => {
                self.stays.entry(id.clone().into_owned()).or_default().push(Vec::new());
                let copy = Copy { id: id.into_owned(), player, epoch, ..Copy::default() };
                self.heard.push(format!("{request} joined {room}"));
                assert_eq!(self.rooms.insert(room, copy), None);
            }
            ServerMessage::Left(server::Left { request, room, code, .. }) => {
                let request = request.map_or(String::new(), |request| format!("{request} "));
                self.heard.push(format!("{request}left {room}: {code}"));
                assert!(self.rooms.remove(&room).is_some());
            }
            ServerMessage::Reply(server::Reply { request, payload }) => {
                self.heard.push(format!("{request} = {}", text(&payload)));
            }
            ServerMessage::Error(server::Error { request, room, code, .. }) => {
                let about = request.map(|request| request.0).or(room.map(|room| room.0));
                self.heard.push(format!("{about:?}: {code}"));
            }
            ServerMessage::Event(server::Event { room, sequence, version, payload, .. }) => {
                let payload = text(&payload);
                self.heard.push(format!("{room}: {payload}"));
                let stays = self.stays.get_mut(&self.rooms[&room].id);
                stays.and_then(|stays| stays.last_mut()).unwrap().push(payload);
                let copy = self.copy(room);
                assert!(sequence > copy.events, "an event comes twice");
                let missed = sequence - copy.events - 1;
                assert!(missed <= copy.forgotten, "{missed} events of {room} are lost");
                (copy.events, copy.forgotten) = (sequence, 0);
                copy.missed += missed;
                copy.is_early |= copy.version == 0 || version > copy.version + 1;
            }
            ServerMessage::Snapshot(server::Snapshot { room, epoch, version, body }) => {
                let body = text(&body);
                let copy = self.copy(room);
                assert!(!copy.is_early, "an event before its state");
                assert_eq!(epoch, copy.epoch);
                assert!(version >= copy.version, "a snapshot of {version} at {}", copy.version);
                (copy.version, copy.state) = (version, BTreeMap::new());
                copy.change(&body);
            }
            ServerMessage::Patch(server::Patch { room, base, version, body }) => {
                let body = text(&body);
                let copy = self.copy(room);
                assert!(!copy.is_early, "an event before its state");
                assert_eq!(base, copy.version, "a patch from another version");
                copy.version = version;
                copy.change(&body);
            }
            ServerMessage::Ack(server::Ack { received }) => self.confirm(received),
            ServerMessage::Goodbye(server::Goodbye { code, .. }) => {
                self.goodbye = Some(code);
                self.returned = Return::Refused(code);
            }
            ServerMessage::Listed(server::Listed { request, .. }) => {
                self.heard.push(format!("{request} listed"));
            }
            ServerMessage::Schema(server::Schema { request, .. }) => {
                self.heard.push(format!("{request:?} schema"));
            }
            ServerMessage::Ping(server::Ping { nonce }) => self.pings.push(nonce),
            ServerMessage::Pong(_) | ServerMessage::Check(_) => {}
            ServerMessage::Welcome(_) => panic!("a second welcome"),
            other => panic!("wanderers use no channels and are not devices: {other:?}"),
        }
    }
}

impl Copy {
    fn change(&mut self, body: &str) {
        for word in body.split_whitespace() {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            self.state.insert(name.into(), value.into());
        }
    }
}
