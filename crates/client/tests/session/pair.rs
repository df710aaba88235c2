//! A pair of a session and a node's session, through simulated time: connections are lost at any
//! byte, dials fail, the node refuses and restarts, other nodes redirect, and commands come in any
//! order.
//!
//! `PLAYFIELD_PAIR_STEPS=5000000 cargo test --release -p playfield-client --test session pair` plays
//! more than the few that each test run does.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use playfield_client::session::{
    Build, ClientConfig, Event, Failure, Patience, Reach, RoomCopy, Session, Step, Target,
    Translation, Transport, Update,
};
use playfield_session::{Log, Passage, Received};
use playfield_state::{PlayerId, ShapeError};
use playfield_wire::client::{self, ClientMessage, Hello};
use playfield_wire::framing::{Framing, PREAMBLE, write_frame, write_frame_with};
use playfield_wire::message::MessageRef;
use playfield_wire::schema::{RoomSchema, Struct, Type, fingerprint};
use playfield_wire::server::{self, Resumed, ServerMessage};
use playfield_wire::{DecodeError, ErrorCode, Format, RequestNumber, RoomNumber};

const FORMAT: Format = Format::Packed;

/// The number of steps that each test run takes.
const STEPS: u64 = 60_000;

/// A world lasts this many steps before its end is checked.
const STEPS_OF_A_WORLD: u64 = 400;

const ROOMS_MAX: usize = 4;

/// The node's own address. The client begins at another, behind which there are other nodes too.
const ADDRESS: &str = "tcp://node:7350";

#[test]
fn a_pair_agrees_whatever_is_lost_and_whenever() {
    let steps = std::env::var("PLAYFIELD_PAIR_STEPS");
    let steps = steps.map_or(STEPS, |steps| steps.parse().expect("a number of steps"));
    for seed in 0..steps.div_ceil(STEPS_OF_A_WORLD) {
        let mut world = World::new(seed);
        for _ in 0..STEPS_OF_A_WORLD {
            world.step();
        }
        world.end();
    }
}

/// A small generator: SplitMix64 (G. Steele, D. Lea, C. Flood, 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn once_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

fn schema() -> RoomSchema {
    let state = Type::Struct(Struct { name: "Table".into(), fields: Vec::new() });
    RoomSchema { state, options: Type::Unit, messages: Vec::new(), events: Vec::new() }
}

/// A copy that checks the order of what it is told.
#[derive(Default)]
struct Copy {
    is_held: bool,
    held: usize,
    version: u64,
}

impl RoomCopy for Copy {
    fn apply(&mut self, update: &Update<'_>) -> Result<(), DecodeError> {
        if self.is_held {
            self.held += 1;
        } else {
            assert!(update.version >= self.version);
            self.version = update.version;
        }
        Ok(())
    }

    fn digest_is(&mut self, _: u64) -> bool {
        true
    }

    fn hold(&mut self) {
        self.is_held = true;
    }

    fn translate(&mut self, _: &Translation, _: PlayerId) -> Result<bool, ShapeError> {
        self.version += u64::from(std::mem::take(&mut self.held) > 0);
        self.is_held = false;
        Ok(false)
    }

    fn is_filled(&self) -> bool {
        self.version > 0
    }
}

/// The node's end. All but the connection outlives a connection; a restart forgets it.
struct Node {
    /// Counts restarts.
    epoch: u64,
    session: Option<Kept>,
    input: Vec<u8>,
    is_greeted: bool,
    /// `None` without a welcomed connection.
    output: Option<Vec<u8>>,
    /// Every payload that was carried out, with the session in which it was.
    executed: Vec<(u64, u64)>,
    /// The next hello is refused.
    refuses: bool,
    /// The next hello, if it has a token, is answered by another node.
    is_other: bool,
}

/// A session as the node keeps it.
#[derive(Default)]
struct Kept {
    log: Log,
    received: Received,
    rooms: BTreeMap<RoomNumber, Room>,
    last_room: u32,
    deferred: VecDeque<(RoomNumber, RequestNumber)>,
}

#[derive(Default)]
struct Room {
    version: u64,
    events: u64,
}

impl Node {
    fn kept(&mut self) -> &mut Kept {
        self.session.as_mut().expect("a session")
    }

    fn counted(&mut self, room: Option<RoomNumber>, message: &ServerMessage<'_>) {
        let passage = if self.output.is_some() { Passage::Sent } else { Passage::Held };
        let Some(kept) = &mut self.session else { return };
        let body = kept.log.push(room, 1 << 20, passage, |out| message.encode(FORMAT, out));
        if let Some(output) = &mut self.output {
            write_frame(output, body);
        }
    }

    fn fleeting(&mut self, message: &ServerMessage<'_>) {
        if let Some(output) = &mut self.output {
            write_frame_with(output, |out| message.encode(FORMAT, out));
        }
    }

    fn read(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        if !self.is_greeted && self.input.starts_with(&PREAMBLE) {
            self.input.drain(..PREAMBLE.len());
            self.is_greeted = true;
        }
        let input = std::mem::take(&mut self.input);
        let mut used = 0;
        while self.is_greeted {
            let framing = Framing { message_bytes_max: 1 << 20 };
            let Some(frame) = framing.decode(&input[used..]).unwrap() else { break };
            used += frame.consumed;
            let message = ClientMessage::decode(FORMAT, frame.body).unwrap();
            let is_counted = message.is_counted();
            self.handle(message);
            if let Some(kept) = self.session.as_mut().filter(|_| is_counted) {
                kept.received.handled(frame.body.len());
            }
        }
        self.input = input[used..].to_vec();
    }

    fn acknowledge(&mut self) {
        if let Some(kept) = self.session.as_mut().filter(|_| self.output.is_some()) {
            let received = kept.received.acknowledge();
            self.fleeting(&ServerMessage::Ack(server::Ack { received }));
        }
    }

    fn handle(&mut self, message: ClientMessage<'_>) {
        match message {
            ClientMessage::Hello(hello) => self.hello(&hello),
            ClientMessage::Join(client::Join { request, .. }) => self.join(request),
            ClientMessage::JoinOrCreate(client::JoinOrCreate { request, options, .. }) => {
                assert_eq!(options, [0], "in packed");
                self.join(request);
            }
            ClientMessage::Schema(client::Schema { request, room_type }) => {
                let schema = schema().to_json().into_bytes();
                let answer = server::Schema {
                    request: Some(request),
                    room_type: room_type.to_string().into(),
                    schema: schema.into(),
                };
                self.counted(None, &ServerMessage::Schema(answer));
            }
            ClientMessage::Request(client::Request { request, room, payload, .. }) => {
                self.execute(payload);
                match self.kept().rooms.contains_key(&room) {
                    true => self.kept().deferred.push_back((room, request)),
                    false => self.refuse(request),
                }
            }
            ClientMessage::Send(client::Send { payload, .. }) => self.execute(payload),
            ClientMessage::Ack(client::Ack { received }) => {
                self.kept().log.acknowledge(received).unwrap();
            }
            ClientMessage::Resync(client::Resync { room }) => self.show(room, 0),
            ClientMessage::Ping(client::Ping { nonce }) => {
                self.fleeting(&ServerMessage::Pong(server::Pong { nonce, time_us: 0 }));
            }
            ClientMessage::Leave(client::Leave { request, room }) => {
                match self.kept().rooms.remove(&room) {
                    Some(_) => self.leave(Some(request), room),
                    None => self.refuse(request),
                }
            }
            ClientMessage::Goodbye(_) => self.session = None,
            other => panic!("{other:?}"),
        }
    }

    fn hello(&mut self, hello: &Hello<'_>) {
        self.output = Some(Vec::new());
        if std::mem::take(&mut self.refuses) {
            let (code, text) = (ErrorCode::Busy, "full".into());
            return self.fleeting(&ServerMessage::Goodbye(server::Goodbye { code, text }));
        }
        if std::mem::take(&mut self.is_other) && hello.resume.is_some() {
            self.fleeting(&redirect(RequestNumber(0)));
            let (code, text) = (ErrorCode::Elsewhere, "".into());
            return self.fleeting(&ServerMessage::Goodbye(server::Goodbye { code, text }));
        }
        let resume = hello
            .resume
            .as_ref()
            .filter(|resume| self.session.is_some() && *resume.token == self.epoch.to_be_bytes());
        let Some(resume) = resume else {
            self.session = Some(Kept::default());
            self.epoch += 1;
            return self.welcome(None);
        };
        let kept = self.session.as_mut().expect("a session");
        let lost = kept.log.resume(resume.received).unwrap();
        let received = kept.received.acknowledge();
        let bodies: Vec<Vec<u8>> =
            kept.log.unacknowledged().map(|(_, body)| body.to_vec()).collect();
        self.welcome(Some(Resumed { received, lost }));
        for copy in &resume.rooms {
            if self.kept().rooms.contains_key(&copy.room) {
                self.show(copy.room, copy.version);
            }
        }
        for body in bodies {
            write_frame(self.output.as_mut().unwrap(), &body);
            if let ServerMessage::Joined(joined) = ServerMessage::decode(FORMAT, &body).unwrap() {
                self.show(joined.room, 0);
            }
        }
    }

    fn welcome(&mut self, resumed: Option<Resumed>) {
        let resume = self.epoch.to_be_bytes().to_vec();
        self.fleeting(&ServerMessage::Welcome(server::Welcome {
            protocol: 1,
            session: self.epoch,
            resume: resume.into(),
            heartbeat_ms: 30_000,
            max_message_bytes: 1 << 20,
            grace_ms: 60_000,
            resumed,
            addresses: vec![ADDRESS.into()],
        }));
    }

    fn join(&mut self, request: RequestNumber) {
        if request.0.is_multiple_of(5) {
            return self.counted(None, &redirect(request));
        }
        let kept = self.kept();
        kept.last_room += 1;
        let room = RoomNumber(kept.last_room);
        kept.rooms.insert(room, Room { version: 1, events: 0 });
        let joined = server::Joined {
            request,
            room,
            id: "r".into(),
            room_type: "table".into(),
            player: 4,
            epoch: 3,
            tick_hz: 20,
            sync_hz: 20,
            fingerprint: fingerprint(&schema()),
            silence_ms: 5_000,
            grace_ms: 10_000,
            ..server::Joined::default()
        };
        self.counted(Some(room), &ServerMessage::Joined(joined));
        self.show(room, 0);
    }

    fn refuse(&mut self, request: RequestNumber) {
        let (request, code) = (Some(request), ErrorCode::NotJoined);
        let text = "".into();
        let error = server::Error { request, room: None, code, text, retry_after_ms: None };
        self.counted(None, &ServerMessage::Error(error));
    }

    fn leave(&mut self, request: Option<RequestNumber>, room: RoomNumber) {
        let (code, text) = (ErrorCode::Left, "".into());
        self.counted(Some(room), &ServerMessage::Left(server::Left { request, room, code, text }));
    }

    fn execute(&mut self, payload: &[u8]) {
        let payload = u64::from_be_bytes(payload.try_into().unwrap());
        self.executed.push((self.epoch, payload));
    }

    /// Brings a copy to the present.
    fn show(&mut self, room: RoomNumber, from: u64) {
        let Some(version) = self.session.as_ref().and_then(|kept| kept.rooms.get(&room)) else {
            return;
        };
        let (version, body) = (version.version, b"[]"[..].into());
        match from {
            0 => {
                let snapshot = server::Snapshot { room, epoch: 3, version, body };
                self.fleeting(&ServerMessage::Snapshot(snapshot));
            }
            base if base < version => {
                let patch = server::Patch { room, base, version, body };
                self.fleeting(&ServerMessage::Patch(patch));
            }
            _ => {}
        }
    }

    /// A room changes and emits an event, ends, or answers what waits.
    fn act(&mut self, random: &mut Random) {
        let Some(kept) = &mut self.session else { return };
        if random.once_in(3)
            && let Some((room, request)) = kept.deferred.pop_front()
            && kept.rooms.contains_key(&room)
        {
            let payload = request.0.to_be_bytes().to_vec();
            let reply = server::Reply { request, payload: payload.into() };
            return self.counted(Some(room), &ServerMessage::Reply(reply));
        }
        let rooms: Vec<RoomNumber> = kept.rooms.keys().copied().collect();
        if rooms.is_empty() {
            return;
        }
        let room = rooms[random.below(rooms.len() as u64) as usize];
        if random.once_in(20) {
            kept.rooms.remove(&room);
            return self.leave(None, room);
        }
        let of = kept.rooms.get_mut(&room).expect("a room");
        let before = of.version;
        (of.version, of.events) = (of.version + 1, of.events + 1);
        let (sequence, version) = (of.events, of.version);
        self.show(room, before);
        let event = server::Event {
            room,
            sequence,
            version,
            message: MessageRef::Index(0),
            payload: sequence.to_be_bytes().to_vec().into(),
        };
        self.counted(Some(room), &ServerMessage::Event(event));
    }

    fn disconnect(&mut self) {
        (self.is_greeted, self.output) = (false, None);
        self.input.clear();
    }
}

fn redirect(request: RequestNumber) -> ServerMessage<'static> {
    let addresses = vec![ADDRESS.into()];
    ServerMessage::Redirect(server::Redirect { request, addresses, reservation: "".into() })
}

/// A room as the client knows it.
#[derive(Default)]
struct Seat {
    is_entered: bool,
    events: u64,
    missed: u64,
}

struct World {
    random: Random,
    client: Session,
    node: Node,
    now: Duration,
    is_connected: bool,
    to_node: Vec<u8>,
    to_client: Vec<u8>,
    /// Every message that was given in each session, by its payload.
    sent: Vec<u64>,
    last: u64,
    /// Requests that wait, each to end once.
    waiting: BTreeSet<RequestNumber>,
    rooms: BTreeMap<RoomNumber, Seat>,
    entering: BTreeSet<RequestNumber>,
    /// Counts the client's sessions.
    session: u64,
    /// A new session began after these were given: whether they were carried out is unknown.
    unknown: BTreeSet<u64>,
    is_closed: bool,
}

impl World {
    fn new(seed: u64) -> Self {
        let config = ClientConfig {
            resumable: true,
            patience: Patience {
                reconnect_timeout: Duration::from_secs(3600),
                ..Patience::default()
            },
            redirects: Some(Reach::by(&"tcp://any".parse().unwrap(), false)),
            ..ClientConfig::new(Transport::Native)
        };
        let mut world = Self {
            random: Random(seed),
            client: Session::new(config).unwrap(),
            node: Node {
                epoch: 0,
                session: None,
                input: Vec::new(),
                is_greeted: false,
                output: None,
                executed: Vec::new(),
                refuses: false,
                is_other: false,
            },
            now: Duration::ZERO,
            is_connected: true,
            to_node: Vec::new(),
            to_client: Vec::new(),
            sent: Vec::new(),
            last: 0,
            waiting: BTreeSet::new(),
            rooms: BTreeMap::new(),
            entering: BTreeSet::new(),
            session: 0,
            unknown: BTreeSet::new(),
            is_closed: false,
        };
        // Without a first welcome there is no session to lose.
        world.pass(usize::MAX);
        assert_eq!(world.session, 1);
        world
    }

    fn step(&mut self) {
        match self.random.below(12) {
            0 if self.rooms.len() + self.entering.len() < ROOMS_MAX => self.enter(),
            1 => self.command(|world, room| {
                let payload = world.next_payload();
                let asked = world.client.request(room, 0, &payload);
                world.waiting.extend(asked.ok());
            }),
            2 => self.command(|world, room| {
                let payload = world.next_payload();
                let _ = world.client.send(room, 0, &payload);
            }),
            3 if self.random.once_in(4) => self.command(|world, room| {
                world.waiting.extend(world.client.leave(room).ok());
            }),
            4 | 5 => self.node.act(&mut self.random),
            6 => self.node.acknowledge(),
            7 => self.wait(),
            8 if self.random.once_in(6) => self.cut(),
            9 if self.random.once_in(40) => {
                // The node starts again.
                self.node.session = None;
                self.cut();
            }
            _ => {
                let bytes = self.random.below(200) as usize;
                self.pass(bytes);
            }
        }
        self.go_on();
    }

    fn enter(&mut self) {
        // Options are sent in the node's form, so the schema comes first.
        let target = match self.random.once_in(2) {
            true => Target::Join { id: "r".into() },
            false => Target::JoinOrCreate {
                room_type: "table".into(),
                key: None,
                options: b"null".to_vec(),
            },
        };
        let asked = self.client.enter(target, Build::Any, Box::new(Copy::default()));
        self.entering.insert(asked.expect("the session goes on"));
    }

    fn command(&mut self, act: impl FnOnce(&mut Self, RoomNumber)) {
        let rooms: Vec<RoomNumber> = self.rooms.keys().copied().collect();
        if !rooms.is_empty() {
            let room = rooms[self.random.below(rooms.len() as u64) as usize];
            act(self, room);
        }
    }

    fn next_payload(&mut self) -> [u8; 8] {
        self.last += 1;
        self.sent.push(self.last);
        self.last.to_be_bytes()
    }

    /// Time passes: to when the client has something to do, or a little.
    fn wait(&mut self) {
        let due = self.client.due_at().unwrap_or(self.now + Duration::from_millis(100));
        let most = self.now + Duration::from_millis(self.random.below(2_000));
        self.now = due.clamp(self.now, most);
        self.client.advance(self.now);
        self.note();
    }

    /// So many bytes arrive, either way.
    fn pass(&mut self, bytes: usize) {
        if self.is_connected {
            self.client.take_output(&mut self.to_node);
            let arrived: Vec<u8> = self.to_node.drain(..bytes.min(self.to_node.len())).collect();
            self.node.read(&arrived);
            self.to_client.append(self.node.output.as_mut().unwrap_or(&mut Vec::new()));
            let arrived: Vec<u8> =
                self.to_client.drain(..bytes.min(self.to_client.len())).collect();
            self.client.received(&arrived);
        }
        self.note();
    }

    /// The connection is lost with what is on its way.
    fn cut(&mut self) {
        if std::mem::take(&mut self.is_connected) {
            self.node.disconnect();
            (self.to_node, self.to_client) = (Vec::new(), Vec::new());
            self.client.ended();
            self.note();
        }
    }

    /// Does what the session says for its connection.
    fn go_on(&mut self) {
        if self.is_connected && self.client.is_away() {
            // The session has given the connection up.
            self.cut();
        }
        match self.client.next_step() {
            Step::Wait => {}
            Step::Token(_) => panic!("there is no other token"),
            Step::Dial(_) if self.random.once_in(3) => {
                assert!(!self.client.attempt_failed(), "there is an hour for it");
            }
            Step::Dial(_) => {
                assert!(!self.is_connected && self.client.is_away());
                self.node.refuses = self.random.once_in(5);
                // The session may have moved, too.
                let is_own = self.client.dial_to().is_some_and(|to| to.to_string() == ADDRESS);
                self.node.is_other = self.random.once_in(if is_own { 10 } else { 2 });
                self.client.reconnect(Transport::Native).unwrap();
                self.is_connected = true;
            }
        }
        self.note();
        assert!(self.client.is_away() || self.is_connected);
        // Time must not stand still: what is due now was done.
        if self.client.is_away() {
            assert!(self.client.due_at().is_some(), "it would wait forever");
        }
    }

    fn note(&mut self) {
        while let Some(event) = self.client.poll_event() {
            match event {
                Event::Welcome(_) => self.session = 1,
                Event::Joined(joined) => {
                    assert!(self.entering.contains(&joined.request), "it was asked for");
                    assert!(self.entering.remove(&joined.request));
                    assert!(self.rooms.insert(joined.room, Seat::default()).is_none());
                }
                Event::Redirected(redirect) => {
                    assert!(self.entering.remove(&redirect.request), "it was asked for");
                }
                Event::Entered { room, translation } => {
                    let seat = self.rooms.get_mut(&room).expect("it was joined before");
                    assert!(!std::mem::replace(&mut seat.is_entered, true), "entered twice");
                    assert!(matches!(translation, Translation::Learned(_)));
                }
                Event::Reply(server::Reply { request, payload }) => {
                    assert_eq!(*payload, request.0.to_be_bytes());
                    assert!(self.waiting.remove(&request), "{request} ends twice");
                }
                Event::Failed { request, failure } => {
                    let is_known = self.waiting.remove(&request) || self.entering.remove(&request);
                    assert!(is_known, "{request} ends twice: {failure}");
                    assert!(!matches!(failure, Failure::Closed | Failure::NotSent(_)));
                }
                Event::Event(event) => {
                    let seat = self.rooms.get_mut(&event.room).expect("a room");
                    assert_eq!(event.sequence, seat.events + seat.missed + 1);
                    (seat.events, seat.missed) = (event.sequence, 0);
                }
                Event::Missed { room, events } => {
                    self.rooms.get_mut(&room).expect("a room").missed += events;
                }
                Event::Left(left) => {
                    assert!(self.rooms.remove(&left.room).is_some(), "left twice");
                    if let Some(request) = left.request {
                        assert!(self.waiting.remove(&request), "{request} ends twice");
                    }
                }
                Event::NewSession(_) => {
                    assert!(self.waiting.is_empty(), "all have failed");
                    self.rooms.clear();
                    self.unknown.extend(self.sent.drain(..));
                    self.session += 1;
                }
                Event::Closed { error } => panic!("{error:?}"),
                _ => {}
            }
        }
    }

    /// The network heals: both ends agree.
    fn end(mut self) {
        for _ in 0..2_000 {
            self.node.refuses = false;
            self.go_on();
            if self.client.is_away() {
                self.now = self.client.due_at().expect("another attempt").max(self.now);
                self.client.advance(self.now);
                self.go_on();
            }
            let kept = self.node.session.as_mut();
            if kept.is_some_and(|kept| !kept.deferred.is_empty()) {
                self.node.act(&mut self.random);
            }
            self.node.acknowledge();
            self.pass(usize::MAX);
            self.pass(usize::MAX);
            if self.is_settled() {
                break;
            }
        }
        assert!(self.is_settled(), "waiting {:?}, entering {:?}", self.waiting, self.entering);
        // Of each session, in order and once; of those that ended, at most once.
        let epoch = self.node.epoch;
        let of_last: Vec<u64> = self
            .node
            .executed
            .iter()
            .filter(|(of, payload)| *of == epoch && !self.unknown.contains(payload))
            .map(|(_, payload)| *payload)
            .collect();
        assert_eq!(of_last, self.sent, "of the last session");
        let all: BTreeSet<u64> = self.node.executed.iter().map(|(_, payload)| *payload).collect();
        assert_eq!(all.len(), self.node.executed.len(), "none was carried out twice");
        let rooms: Vec<_> = self.node.kept().rooms.keys().copied().collect();
        assert_eq!(self.rooms.keys().copied().collect::<Vec<_>>(), rooms);
        assert!(self.rooms.values().all(|seat| seat.is_entered), "each has its copy");
        assert!(!self.is_closed);
    }

    fn is_settled(&self) -> bool {
        self.client.is_welcomed()
            && self.waiting.is_empty()
            && self.entering.is_empty()
            && self.client.output_bytes() == 0
            && self.client.unconfirmed_bytes() == 0
            && self.to_client.is_empty()
            && self.node.output.as_ref().is_some_and(Vec::is_empty)
            && self.rooms.values().all(|seat| seat.is_entered)
    }
}
