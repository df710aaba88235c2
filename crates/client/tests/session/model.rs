//! A model of a node that keeps one session, and a network that can be cut at any byte.

use std::collections::{BTreeMap, VecDeque};

use playfield_client::session::{Event, Failure, Session};
use playfield_session::{Log, Passage, Received};
use playfield_wire::client::{self, ClientMessage, Hello};
use playfield_wire::framing::{Framing, PREAMBLE, write_frame, write_frame_with};
use playfield_wire::message::MessageRef;
use playfield_wire::server::{self, Resumed, ServerMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

use crate::support::{joined, kept, resumable};

const FORMAT: Format = Format::Packed;

/// Events of the room: requests and sends, in the order of execution, and events.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// The payloads of messages, which are numbers in the order in which the client sent them.
    pub(crate) executed: Vec<u32>,
    events: u64,
    version: u64,
}

/// The node's end: all of it outlives a connection.
#[derive(Debug)]
struct Node {
    log: Log,
    log_bytes_max: usize,
    received: Received,
    has_session: bool,
    is_in_room: bool,
    room: Room,
    /// The version that the client's copy will have once it has read everything.
    shown: u64,
    /// Requests that the room answers later.
    deferred: VecDeque<RequestNumber>,
    input: Vec<u8>,
    /// The preamble has come.
    is_greeted: bool,
    /// `None` before the welcome, and after the connection is lost.
    output: Option<Vec<u8>>,
}

impl Node {
    fn counted(&mut self, room: Option<RoomNumber>, message: &ServerMessage<'_>) {
        let passage = if self.output.is_some() { Passage::Sent } else { Passage::Held };
        let write = |out: &mut Vec<u8>| message.encode(FORMAT, out);
        let body = self.log.push(room, self.log_bytes_max, passage, write);
        if let Some(output) = &mut self.output {
            write_frame(output, body);
        }
    }

    fn fleeting(&mut self, message: &ServerMessage<'_>) {
        if let Some(output) = &mut self.output {
            write_frame_with(output, |out| message.encode(FORMAT, out));
        }
    }

    /// Brings the client's copy to the present, by a patch from this version or by a snapshot.
    fn show(&mut self, from: u64) {
        let (room, version) = (RoomNumber(1), self.room.version);
        let body: &[u8] = b"[]";
        match from {
            0 => self.fleeting(&ServerMessage::Snapshot(server::Snapshot {
                room,
                epoch: 3,
                version,
                body: body.into(),
            })),
            base if base < version => {
                self.fleeting(&ServerMessage::Patch(server::Patch {
                    room,
                    base,
                    version,
                    body: body.into(),
                }));
            }
            _ => {}
        }
        self.shown = version;
    }

    fn read(&mut self) {
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
            if is_counted {
                self.received.handled(frame.body.len());
            }
        }
        self.input = input[used..].to_vec();
        if self.received.is_due() {
            self.acknowledge();
        }
    }

    fn acknowledge(&mut self) {
        if self.output.is_some() {
            let received = self.received.acknowledge();
            self.fleeting(&ServerMessage::Ack(server::Ack { received }));
        }
    }

    fn handle(&mut self, message: ClientMessage<'_>) {
        let room = RoomNumber(1);
        match message {
            ClientMessage::Hello(hello) => self.hello(&hello),
            ClientMessage::Join(client::Join { request, .. }) => {
                assert!(!std::mem::replace(&mut self.is_in_room, true), "a second join");
                self.counted(Some(room), &joined(request, room, 3));
                self.show(0);
            }
            ClientMessage::Request(client::Request { request, payload, .. }) => {
                self.room.executed.push(number(payload));
                // Some are answered at once.
                if request.0 % 3 == 0 {
                    self.deferred.push_back(request);
                } else {
                    self.reply(request);
                }
            }
            ClientMessage::Send(client::Send { payload, .. }) => {
                self.room.executed.push(number(payload));
            }
            ClientMessage::Ack(client::Ack { received }) => self.log.acknowledge(received).unwrap(),
            ClientMessage::Resync(_) => self.show(0),
            ClientMessage::Ping(client::Ping { nonce }) => {
                self.fleeting(&ServerMessage::Pong(server::Pong { nonce, time_us: 0 }));
            }
            // The answer to the join was forgotten.
            ClientMessage::Leave(client::Leave { request, .. }) => {
                self.is_in_room = false;
                let (request, code) = (Some(request), ErrorCode::Left);
                let left =
                    ServerMessage::Left(server::Left { request, room, code, text: "".into() });
                self.counted(Some(room), &left);
            }
            other => panic!("{other:?}"),
        }
    }

    fn hello(&mut self, hello: &Hello<'_>) {
        assert!(hello.resumable);
        self.output = Some(Vec::new());
        let Some(resume) = &hello.resume else {
            assert!(!std::mem::replace(&mut self.has_session, true), "the session was forgotten");
            return self.fleeting(&kept(b"t", None));
        };
        let lost = self.log.resume(resume.received).unwrap();
        let received = self.received.acknowledge();
        self.fleeting(&kept(b"t", Some(Resumed { received, lost })));
        for copy in &resume.rooms {
            assert_eq!((copy.room, copy.epoch), (RoomNumber(1), 3));
            assert!(copy.version <= self.room.version, "{copy:?}");
            self.show(copy.version);
        }
        let log: Vec<Vec<u8>> = self.log.unacknowledged().map(|(_, body)| body.to_vec()).collect();
        for body in log {
            write_frame(self.output.as_mut().unwrap(), &body);
            let message = ServerMessage::decode(FORMAT, &body).unwrap();
            if matches!(message, ServerMessage::Joined(_)) {
                self.show(0);
            }
        }
    }

    /// The reply is the request's own number.
    fn reply(&mut self, request: RequestNumber) {
        let payload = request.0.to_string().into_bytes();
        self.counted(
            Some(RoomNumber(1)),
            &ServerMessage::Reply(server::Reply { request, payload: (&payload).into() }),
        );
    }

    /// The room changes, and says so by an event, which has the number that it was given.
    fn change(&mut self) {
        self.room.version += 1;
        if !self.is_in_room {
            return;
        }
        if self.output.is_some() {
            self.show(self.shown);
        }
        self.room.events += 1;
        let (sequence, version) = (self.room.events, self.room.version);
        let message = MessageRef::Index(0);
        let room = RoomNumber(1);
        let payload = sequence.to_string().into_bytes();
        let event = ServerMessage::Event(server::Event {
            room,
            sequence,
            version,
            message,
            payload: payload.into(),
        });
        self.counted(Some(room), &event);
    }

    fn disconnect(&mut self) {
        (self.is_greeted, self.output) = (false, None);
        self.input.clear();
    }
}

fn number(payload: &[u8]) -> u32 {
    std::str::from_utf8(payload).unwrap().parse().unwrap()
}

/// A client and its node.
pub(crate) struct World {
    pub(crate) client: Session,
    node: Node,
    to_node: Vec<u8>,
    to_client: Vec<u8>,
    /// Actions of the client: how many messages, and which requests.
    sent: u32,
    requests: Vec<RequestNumber>,
    /// Results that the client heard: how each request ended, the last event, and the copy's version.
    replies: BTreeMap<RequestNumber, bool>,
    sequence: u64,
    version: u64,
    missed: u64,
    is_welcomed: bool,
    is_joined: bool,
    /// The number of bytes that went each way, and where each is cut.
    pub(crate) passed: [usize; 2],
    pub(crate) cuts: [Option<usize>; 2],
}

/// Something happens.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Request,
    Send,
    Change,
    /// The room answers what waits.
    Answer,
    /// This many bytes arrive at the node.
    ToNode(usize),
    ToClient(usize),
    /// The node acknowledges.
    Acknowledge,
    /// Time passes until the client has something to do.
    Wait,
    Cut,
}

impl World {
    pub(crate) fn new(log_bytes_max: usize) -> Self {
        let mut client = Session::new(resumable(false)).unwrap();
        client.join("r").unwrap();
        let node = Node {
            log: Log::default(),
            log_bytes_max,
            received: Received::default(),
            has_session: false,
            is_in_room: false,
            room: Room { version: 5, ..Room::default() },
            shown: 0,
            deferred: VecDeque::new(),
            input: Vec::new(),
            is_greeted: false,
            output: None,
        };
        Self {
            client,
            node,
            to_node: Vec::new(),
            to_client: Vec::new(),
            sent: 0,
            requests: Vec::new(),
            replies: BTreeMap::new(),
            sequence: 0,
            version: 0,
            missed: 0,
            is_welcomed: false,
            is_joined: false,
            passed: [0; 2],
            cuts: [None; 2],
        }
    }

    pub(crate) fn step(&mut self, step: Step) {
        match step {
            Step::Request | Step::Send if !self.is_joined => {}
            Step::Request => {
                let payload = self.next_payload();
                let request = self.client.request(RoomNumber(1), 0, &payload).unwrap();
                self.requests.push(request);
            }
            Step::Send => {
                let payload = self.next_payload();
                self.client.send(RoomNumber(1), 0, &payload).unwrap();
            }
            Step::Change => self.node.change(),
            Step::Answer => {
                while let Some(request) = self.node.deferred.pop_front() {
                    self.node.reply(request);
                }
            }
            Step::ToNode(bytes) => self.pass_to_node(bytes),
            Step::ToClient(bytes) => self.pass_to_client(bytes),
            Step::Acknowledge => self.node.acknowledge(),
            Step::Wait => {
                let due = self.client.due_at();
                self.client.advance(due.unwrap_or_default());
                self.note();
            }
            Step::Cut => self.cut(),
        }
    }

    fn next_payload(&mut self) -> Vec<u8> {
        self.sent += 1;
        self.sent.to_string().into_bytes()
    }

    fn pass_to_node(&mut self, bytes: usize) {
        self.client.take_output(&mut self.to_node);
        let bytes = bytes.min(self.to_node.len());
        let to_cut = self.cuts[0].map_or(bytes, |cut| cut - self.passed[0]);
        let arrived: Vec<u8> = self.to_node.drain(..bytes.min(to_cut)).collect();
        self.passed[0] += arrived.len();
        self.node.input.extend(arrived);
        self.node.read();
        if to_cut <= bytes && self.cuts[0].take().is_some() {
            self.cut();
        }
    }

    fn pass_to_client(&mut self, bytes: usize) {
        self.to_client.append(self.node.output.as_mut().unwrap_or(&mut Vec::new()));
        let bytes = bytes.min(self.to_client.len());
        let to_cut = self.cuts[1].map_or(bytes, |cut| cut - self.passed[1]);
        let arrived: Vec<u8> = self.to_client.drain(..bytes.min(to_cut)).collect();
        self.passed[1] += arrived.len();
        self.client.received(&arrived);
        self.note();
        if to_cut <= bytes && self.cuts[1].take().is_some() {
            self.cut();
        }
    }

    /// The connection is lost with what is on its way, and there is another.
    fn cut(&mut self) {
        self.node.disconnect();
        self.client.ended();
        (self.to_node, self.to_client) = (Vec::new(), Vec::new());
        if !self.is_welcomed {
            // There is no session yet.
            while self.client.poll_event().is_some() {}
            assert!(self.client.is_finished());
            let log_bytes_max = self.node.log_bytes_max;
            let (passed, cuts) = (self.passed, self.cuts);
            *self = Self { passed, cuts, ..Self::new(log_bytes_max) };
            return;
        }
        self.note();
        assert!(self.client.is_away());
        let transport = resumable(false).transport;
        self.client.reconnect(transport).unwrap();
    }

    fn note(&mut self) {
        while let Some(event) = self.client.poll_event() {
            match event {
                Event::Joined(_) => {
                    assert!(!std::mem::replace(&mut self.is_joined, true), "joined twice");
                }
                Event::Reply(server::Reply { request, payload }) => {
                    assert_eq!(number(&payload), request.0);
                    assert_eq!(self.replies.insert(request, true), None, "{request} ends twice");
                }
                Event::Failed { request, failure: Failure::Lost } => {
                    // The join may have been lost too.
                    if self.requests.contains(&request) {
                        assert_eq!(self.replies.insert(request, false), None, "{request}");
                    }
                }
                Event::Missed { events, .. } => self.missed += events,
                Event::Event(event) => {
                    assert_eq!(u64::from(number(&event.payload)), event.sequence);
                    assert_eq!(event.sequence, self.sequence + self.missed + 1);
                    assert!(self.version >= event.version, "the event came before its state");
                    (self.sequence, self.missed) = (event.sequence, 0);
                }
                Event::Update { version, .. } => {
                    assert!(version >= self.version);
                    self.version = version;
                }
                // The end says why.
                Event::Failed { failure: Failure::Closed, .. } => {}
                Event::Welcome(_) => self.is_welcomed = true,
                Event::ConnectionLost { .. } | Event::Resumed(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Everything arrives: nothing is missing, and nothing was done twice.
    pub(crate) fn check(mut self, may_lose: bool) {
        self.cuts = [None; 2];
        self.settle();
        if self.is_joined {
            // A last event shows how many were lost before it.
            self.node.change();
            self.settle();
            assert_eq!(self.node.room.executed, (1..=self.sent).collect::<Vec<_>>());
            assert_eq!(self.sequence, self.node.room.events);
            assert_eq!(self.version, self.node.room.version);
            assert_eq!(self.replies.len(), self.requests.len(), "each request ended");
        }
        if !may_lose {
            assert!(self.is_joined && self.replies.values().all(|is_answered| *is_answered));
        }
        assert!(!self.client.is_away() && !self.client.is_finished());
        self.client.give_up();
        let first = self.client.poll_event();
        assert!(
            matches!(
                first,
                Some(Event::Closed { .. } | Event::Failed { .. } | Event::Unconfirmed { .. })
            ),
            "{first:?}"
        );
    }

    fn settle(&mut self) {
        for _ in 0..6 {
            self.pass_to_node(usize::MAX);
            self.step(Step::Answer);
            self.pass_to_client(usize::MAX);
        }
    }
}
