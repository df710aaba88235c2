//! A client's core and the node's end of its transport, without sockets.

#![allow(dead_code, reason = "each test uses its part")]

use std::collections::VecDeque;
use std::time::Duration;

use playfield_client::session::{
    ClientConfig, ClientError, CommandError, Event, Masks, Session, Transport, UpdateKind,
};
use playfield_websocket::handshake::{Head, HeadLimits, accept, parse_request};
use playfield_websocket::{Decoder, Item, Limits, Opcode, Role, encode};
use playfield_wire::client::{ClientMessage, Hello, ResumeRoom};
use playfield_wire::framing::{Framing, PREAMBLE, write_frame};
use playfield_wire::server::{self, Resumed, ServerMessage};
use playfield_wire::{Format, RequestNumber, RoomNumber};

const FORMAT: Format = Format::Packed;

/// The settings of a client whose session ends with its connection.
pub(crate) fn config(web_socket: bool) -> ClientConfig {
    let transport = if web_socket {
        let (host, target) = ("node".to_owned(), "/play".to_owned());
        Transport::WebSocket { host, target, key: [9; 16], masks: Masks::seeded([3; 16]) }
    } else {
        Transport::Native
    };
    let config = ClientConfig::new(transport);
    ClientConfig { name: "Ann".to_owned(), resumable: false, ..config }
}

/// The settings of a client whose session outlives its connection.
pub(crate) fn resumable(web_socket: bool) -> ClientConfig {
    ClientConfig { resumable: true, ..config(web_socket) }
}

/// All that has happened to a client.
pub(crate) fn polled(client: &mut Session) -> Vec<Event<'static>> {
    let mut events = Vec::new();
    while let Some(event) = client.poll_event() {
        events.push(event.into_owned());
    }
    events
}

/// Returns whether a snapshot, or a patch, of this version was applied.
pub(crate) fn is_update(event: &Event<'_>, expected: UpdateKind, at: u64) -> bool {
    matches!(event, Event::Update { kind, version, .. } if (*kind, *version) == (expected, at))
}

/// A client, the node's end, and what the client has reported.
pub(crate) struct Talk {
    pub(crate) client: Session,
    pub(crate) node: Node,
    pub(crate) events: VecDeque<Event<'static>>,
}

impl Talk {
    pub(crate) fn new(web_socket: bool) -> Self {
        let client = Session::new(config(web_socket)).unwrap();
        Self { client, node: Node::new(web_socket), events: VecDeque::new() }
    }

    /// A welcomed session that both ends keep.
    pub(crate) fn kept(web_socket: bool) -> Self {
        let client = Session::new(resumable(web_socket)).unwrap();
        let node = Node::new(web_socket);
        let mut talk = Self { client, node, events: VecDeque::new() };
        talk.heard();
        let answer = talk.node.take_answer();
        talk.receives(&answer);
        talk.heard();
        talk.says(&kept(b"t1", None));
        assert!(matches!(talk.event(), Event::Welcome(_)));
        talk.is_measured();
        talk
    }

    /// A session that both ends keep, whose client is in room 1, at version 5 of epoch 3.
    pub(crate) fn kept_in_room() -> Self {
        let mut talk = Self::kept(false);
        talk.enter();
        talk
    }

    fn enter(&mut self) {
        let request = self.client.join("r").unwrap();
        self.says(&joined(request, RoomNumber(1), 3));
        self.says(&snapshot(RoomNumber(1), 3, 5));
        self.events.pop_front().unwrap();
        self.events.pop_front().unwrap();
        self.heard();
    }

    /// The transport ends, and the client connects again over another. Returns its hello.
    pub(crate) fn reconnects(&mut self, web_socket: bool) -> Said {
        self.ends();
        self.client.reconnect(config(web_socket).transport).unwrap();
        self.node = Node::new(web_socket);
        let mut heard = self.heard();
        if web_socket {
            let answer = self.node.take_answer();
            self.receives(&answer);
            heard = self.heard();
        }
        assert_eq!(heard.len(), 1, "nothing but the hello: {heard:?}");
        heard.remove(0)
    }

    /// A session over native framing, after hello and welcome.
    pub(crate) fn welcomed() -> Self {
        let mut talk = Self::new(false);
        assert!(matches!(&talk.heard()[..], [Said::Hello { .. }]));
        talk.says(&welcome(1000, 1000));
        assert!(matches!(talk.event(), Event::Welcome(_)));
        talk.is_measured();
        talk
    }

    /// The client has sent a ping after the welcome.
    fn is_measured(&mut self) {
        assert_eq!(self.heard(), [other("Ping { nonce: 1 }")]);
    }

    /// A session whose client is in room 1, at version 5 of epoch 3.
    pub(crate) fn in_room() -> Self {
        let mut talk = Self::welcomed();
        talk.enter();
        talk
    }

    /// These bytes arrive.
    pub(crate) fn receives(&mut self, bytes: &[u8]) {
        self.client.received(bytes);
        self.polls();
    }

    /// The transport ends.
    pub(crate) fn ends(&mut self) {
        self.client.ended();
        self.polls();
    }

    pub(crate) fn gives_up(&mut self) {
        self.client.give_up();
        self.polls();
    }

    pub(crate) fn advances(&mut self, now: Duration) {
        self.client.advance(now);
        self.polls();
    }

    fn polls(&mut self) {
        self.events.extend(polled(&mut self.client));
    }

    /// The node sends a message.
    pub(crate) fn says(&mut self, message: &ServerMessage<'_>) {
        let bytes = self.node.write(message);
        self.receives(&bytes);
    }

    /// The client's next event.
    pub(crate) fn event(&mut self) -> Event<'static> {
        self.events.pop_front().expect("the client has something to tell")
    }

    /// All events of the client.
    pub(crate) fn all_events(&mut self) -> Vec<Event<'static>> {
        self.events.drain(..).collect()
    }

    /// The connection has ended for this reason.
    pub(crate) fn assert_closed(&mut self, error: ClientError) {
        let closed = self.all_events().pop();
        assert_eq!(closed, Some(Event::Closed { error: Some(error) }));
        assert!(self.client.is_finished());
        assert_eq!(self.client.join("r"), Err(CommandError::Closed));
        self.says(&welcome(0, 0));
        assert_eq!(self.all_events(), [], "nothing is heard after the end");
    }

    /// Messages that the client has sent meanwhile.
    pub(crate) fn heard(&mut self) -> Vec<Said> {
        let mut bytes = Vec::new();
        self.client.take_output(&mut bytes);
        self.node.read(&bytes)
    }
}

/// Output of a client: a message in its debug form, or a frame of the transport.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Said {
    Hello {
        name: String,
    },
    /// A hello that resumes: the token, how many messages were handled, and room, epoch and version
    /// of each copy.
    Resume(Vec<u8>, u64, Vec<(u32, u64, u64)>),
    Other(String),
    Pong(Vec<u8>),
    Close(Option<u16>),
}

pub(crate) fn other(said: &str) -> Said {
    Said::Other(said.to_owned())
}

pub(crate) fn said(message: &ClientMessage<'_>) -> Said {
    match message {
        ClientMessage::Hello(Hello { resume: Some(resume), .. }) => {
            let room = |copy: &ResumeRoom| (copy.room.0, copy.epoch, copy.version);
            let rooms = resume.rooms.iter().map(room).collect();
            Said::Resume(resume.token.to_vec(), resume.received, rooms)
        }
        ClientMessage::Hello(hello) => Said::Hello { name: hello.name.to_string() },
        other => Said::Other(format!("{other:?}")),
    }
}

/// The node's end of the transport.
pub(crate) struct Node {
    web_socket: bool,
    unread: Vec<u8>,
    decoder: Option<Decoder>,
    greeted: bool,
    /// The answer to the handshake, to write before anything else.
    answer: Vec<u8>,
    /// The token for the authenticator in the last hello.
    pub(crate) token: Vec<u8>,
    /// The last hello said that the client follows redirects.
    pub(crate) redirects: bool,
}

impl Node {
    pub(crate) fn new(web_socket: bool) -> Self {
        Self {
            web_socket,
            unread: Vec::new(),
            decoder: None,
            greeted: false,
            answer: Vec::new(),
            token: Vec::new(),
            redirects: false,
        }
    }

    pub(crate) fn write(&mut self, message: &ServerMessage<'_>) -> Vec<u8> {
        let mut body = Vec::new();
        message.encode(FORMAT, &mut body);
        self.frame(&body)
    }

    /// The bytes that carry a message.
    pub(crate) fn frame(&mut self, body: &[u8]) -> Vec<u8> {
        let mut out = std::mem::take(&mut self.answer);
        match self.web_socket {
            false => write_frame(&mut out, body),
            true => encode(&mut out, Opcode::Binary, body, None),
        }
        out
    }

    /// Takes the answer to the handshake.
    pub(crate) fn take_answer(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.answer)
    }

    pub(crate) fn read(&mut self, bytes: &[u8]) -> Vec<Said> {
        self.unread.extend_from_slice(bytes);
        if !self.greeted && !self.greet() {
            return Vec::new();
        }
        let mut heard = Vec::new();
        loop {
            let used = match &mut self.decoder {
                None => {
                    let frame =
                        Framing { message_bytes_max: 1 << 20 }.decode(&self.unread).unwrap();
                    frame.map_or(0, |frame| {
                        let message = ClientMessage::decode(FORMAT, frame.body).unwrap();
                        if let ClientMessage::Hello(hello) = &message {
                            self.token = hello.token.to_vec();
                            self.redirects = hello.redirects;
                        }
                        heard.push(said(&message));
                        frame.consumed
                    })
                }
                Some(decoder) => {
                    let decoded = decoder.decode(&mut self.unread).unwrap();
                    heard.extend(decoded.item.map(|item| match item {
                        Item::Binary(body) => said(&ClientMessage::decode(FORMAT, body).unwrap()),
                        Item::Pong(payload) => Said::Pong(payload.to_vec()),
                        Item::Close(close) => Said::Close(close.map(|close| close.code)),
                        other => panic!("{other:?}"),
                    }));
                    decoded.consumed
                }
            };
            if used == 0 {
                return heard;
            }
            self.unread.drain(..used);
        }
    }

    /// Reads what precedes the first frame. Returns whether it is complete.
    fn greet(&mut self) -> bool {
        if self.web_socket {
            let Head::Complete(request) =
                parse_request(&self.unread, &HeadLimits::default()).unwrap()
            else {
                return false;
            };
            accept(&mut self.answer, &request.upgrade.unwrap(), None, None).unwrap();
            let head_bytes = request.head_bytes;
            self.unread.drain(..head_bytes);
            self.decoder = Some(Decoder::new(Role::Server, Limits::default()));
        } else {
            if self.unread.len() < PREAMBLE.len() {
                return false;
            }
            assert_eq!(self.unread[..4], PREAMBLE);
            self.unread.drain(..4);
        }
        self.greeted = true;
        true
    }
}

pub(crate) fn welcome(heartbeat_ms: u32, max_message_bytes: u32) -> ServerMessage<'static> {
    ServerMessage::Welcome(server::Welcome {
        protocol: 1,
        session: 7,
        resume: b"tk"[..].into(),
        heartbeat_ms,
        max_message_bytes,
        ..server::Welcome::default()
    })
}

/// The welcome of a session that the node keeps, with this token.
pub(crate) fn kept(token: &'static [u8], resumed: Option<Resumed>) -> ServerMessage<'static> {
    ServerMessage::Welcome(server::Welcome {
        protocol: 1,
        session: 7,
        resume: token.into(),
        max_message_bytes: 1 << 20,
        grace_ms: 10_000,
        resumed,
        ..server::Welcome::default()
    })
}

pub(crate) fn joined(
    request: RequestNumber,
    room: RoomNumber,
    epoch: u64,
) -> ServerMessage<'static> {
    ServerMessage::Joined(server::Joined {
        request,
        room,
        id: "r".into(),
        room_type: "table".into(),
        player: 4,
        epoch,
        tick_hz: 20,
        sync_hz: 10,
        fingerprint: 99,
        grace_ms: 10_000,
        ..server::Joined::default()
    })
}

/// Room 1 in epoch 3, with this fingerprint.
pub(crate) fn joined_as(request: RequestNumber, schema: u64) -> ServerMessage<'static> {
    let mut message = joined(request, RoomNumber(1), 3);
    if let ServerMessage::Joined(server::Joined { fingerprint, .. }) = &mut message {
        *fingerprint = schema;
    }
    message
}

pub(crate) fn snapshot(room: RoomNumber, epoch: u64, version: u64) -> ServerMessage<'static> {
    ServerMessage::Snapshot(server::Snapshot { room, epoch, version, body: b"\"s\"".into() })
}

pub(crate) fn patch(room: RoomNumber, base: u64, version: u64) -> ServerMessage<'static> {
    ServerMessage::Patch(server::Patch { room, base, version, body: b"[]".into() })
}
