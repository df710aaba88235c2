//! Nodes that are scripts, which say what a test wants and hear what it expects.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};

use playfield::prelude::*;
use playfield::{ErrorCode, PlayerId, Tracker, Tracking, schema};
use playfield_ffi::*;
use playfield_wire::client::ClientMessage;
use playfield_wire::framing::{Framing, PREAMBLE, write_frame};
use playfield_wire::message::MessageRef;
use playfield_wire::schema::fingerprint;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{Format, RequestNumber, RoomNumber};

use crate::calls::text;

/// The state of the rooms.
#[derive(State, Default)]
struct Table {
    n: i64,
}

#[derive(Message)]
pub(crate) struct Go(pub(crate) u32);

#[derive(Message)]
#[reply(u32)]
struct Ask(u32);

#[derive(Message)]
pub(crate) struct Dealt(pub(crate) String);

#[room(messages(Go, Ask), events(Dealt))]
impl Room for Table {}

impl Handle<Go> for Table {
    fn handle(&mut self, _: Go, _: &Player, _: &mut Context<Self>) -> Result<()> {
        Ok(())
    }
}

impl Handle<Ask> for Table {
    fn handle(&mut self, ask: Ask, _: &Player, _: &mut Context<Self>) -> Result<u32> {
        Ok(ask.0)
    }
}

/// A value as it is sent.
pub(crate) fn packed(value: &impl Data) -> Vec<u8> {
    let mut out = Vec::new();
    value.write(Format::Packed, &mut out);
    out
}

/// An address at which no node is yet, and nobody is let in.
pub(crate) struct Place {
    listener: TcpListener,
    pub(crate) url: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("tcp://{}", listener.local_addr().expect("an address"));
        Self { listener, url }
    }

    /// Starts a node here. It does this once it has read the hello.
    pub(crate) fn start(self, script: impl FnOnce(&mut Node) + Send + 'static) -> JoinHandle<()> {
        thread::spawn(move || {
            let mut node = Node::accept(self.listener);
            script(&mut node);
            // Until the client hangs up.
            while node.stream.read(&mut [0; 1024]).is_ok_and(|length| length > 0) {}
        })
    }
}

/// A node of one connection at a time.
pub(crate) struct Node {
    listener: TcpListener,
    pub(crate) stream: TcpStream,
    unread: Vec<u8>,
    unsent: Vec<u8>,
    /// The client has the schema.
    has_told: bool,
}

impl Node {
    /// Starts one. Returns its URL. It does this once it has read the hello.
    pub(crate) fn start(
        script: impl FnOnce(&mut Self) + Send + 'static,
    ) -> (String, JoinHandle<()>) {
        let place = Place::new();
        (place.url.clone(), place.start(script))
    }

    fn accept(listener: TcpListener) -> Self {
        let (mut stream, _) = listener.accept().expect("a connection");
        stream.set_nodelay(true).expect("an option");
        let mut preamble = [0; 4];
        stream.read_exact(&mut preamble).expect("a preamble");
        assert_eq!(preamble, PREAMBLE);
        let (unread, unsent, has_told) = (Vec::new(), Vec::new(), false);
        let mut node = Self { listener, stream, unread, unsent, has_told };
        assert!(node.hear().starts_with("Hello"));
        node
    }

    /// Loses the connection, and reads the hello of the next.
    pub(crate) fn again(&mut self) {
        self.stream.shutdown(Shutdown::Both).expect("a connection");
        let listener = self.listener.try_clone().expect("a descriptor");
        *self = Self { has_told: self.has_told, ..Self::accept(listener) };
    }

    /// Says something with what is said next.
    pub(crate) fn prepare(&mut self, message: &ServerMessage<'_>) {
        let mut body = Vec::new();
        message.encode(Format::Packed, &mut body);
        write_frame(&mut self.unsent, &body);
    }

    pub(crate) fn say(&mut self, message: &ServerMessage<'_>) {
        self.prepare(message);
        self.stream.write_all(&std::mem::take(&mut self.unsent)).expect("it is read");
    }

    /// The client's next message but for pings.
    pub(crate) fn hear(&mut self) -> String {
        loop {
            let framing = Framing { message_bytes_max: 1 << 20 };
            if let Some(frame) = framing.decode(&self.unread).expect("a frame") {
                let message = ClientMessage::decode(Format::Packed, frame.body).expect("a message");
                let (heard, consumed) = (format!("{message:?}"), frame.consumed);
                self.unread.drain(..consumed);
                if heard.starts_with("Ping") {
                    continue;
                }
                return heard;
            }
            let mut bytes = [0; 4096];
            let length = self.stream.read(&mut bytes).expect("a connection");
            assert!(length > 0, "the client has hung up");
            self.unread.extend_from_slice(&bytes[..length]);
        }
    }

    pub(crate) fn welcome(&mut self) {
        self.say(&welcome());
    }

    /// Answers the joins of as many rooms, whose numbers count from 1.
    pub(crate) fn let_in(&mut self, rooms: u32) {
        for number in 1..=rooms {
            self.grant(number);
            self.show(number);
        }
    }

    /// Shows a room whose join was granted.
    pub(crate) fn show(&mut self, number: u32) {
        self.say(&snapshot(number, &states().0));
        self.tell_schema();
    }

    /// Grants a join.
    pub(crate) fn grant(&mut self, number: u32) {
        let heard = self.hear();
        assert!(heard.starts_with("Join"), "{heard}");
        self.prepare(&joined(request_of(&heard), number));
    }

    /// Answers the request for the schema, if this is the first room.
    pub(crate) fn tell_schema(&mut self) {
        if std::mem::replace(&mut self.has_told, true) {
            return;
        }
        let heard = self.hear();
        assert!(heard.starts_with("Schema"), "{heard}");
        let text = schema::<Table>().to_json().into_bytes();
        self.say(&ServerMessage::Schema(server::Schema {
            request: Some(request_of(&heard)),
            room_type: "table".into(),
            schema: text.into(),
        }));
    }

    /// The end of what it says, with what was prepared.
    pub(crate) fn bye(&mut self) {
        self.say(&ServerMessage::Goodbye(server::Goodbye {
            code: ErrorCode::Kicked,
            text: "enough".into(),
        }));
        self.stream.shutdown(Shutdown::Write).expect("a connection");
    }
}

pub(crate) fn welcome() -> ServerMessage<'static> {
    ServerMessage::Welcome(server::Welcome {
        protocol: 1,
        session: 7,
        resume: b""[..].into(),
        heartbeat_ms: 0,
        max_message_bytes: 1 << 20,
        ..server::Welcome::default()
    })
}

/// The number of a request that was heard.
pub(crate) fn request_of(heard: &str) -> RequestNumber {
    let number = heard.split("request: ").nth(1).expect("a request");
    let number = number.split([',', ' ']).next().expect("a number");
    RequestNumber(number.parse().expect("a number"))
}

/// A snapshot of a state, and a patch.
pub(crate) fn states() -> (Vec<u8>, Vec<u8>) {
    let mut state = Table { n: 1 };
    let mut tracker = Tracker::new(&mut state, Tracking::On);
    let (mut snapshot, mut patch) = (Vec::new(), Vec::new());
    tracker.snapshot(PlayerId(4), Format::Packed, &mut snapshot);
    state.n = 2;
    tracker.sync(&mut state);
    assert!(tracker.patch(PlayerId(4), 1, Format::Packed, &mut patch));
    (snapshot, patch)
}

/// The answer to a request: a room of this number.
pub(crate) fn joined(request: RequestNumber, number: u32) -> ServerMessage<'static> {
    ServerMessage::Joined(server::Joined {
        request,
        room: RoomNumber(number),
        id: format!("r{number}").into(),
        room_type: "table".into(),
        player: 4,
        epoch: 3,
        tick_hz: 20,
        sync_hz: 10,
        fingerprint: fingerprint(&schema::<Table>()),
        ..server::Joined::default()
    })
}

pub(crate) fn snapshot(number: u32, body: &[u8]) -> ServerMessage<'_> {
    ServerMessage::Snapshot(server::Snapshot {
        room: RoomNumber(number),
        epoch: 3,
        version: 5,
        body: body.into(),
    })
}

pub(crate) fn patch(number: u32) -> ServerMessage<'static> {
    let body = states().1;
    ServerMessage::Patch(server::Patch {
        room: RoomNumber(number),
        base: 5,
        version: 6,
        body: body.into(),
    })
}

pub(crate) fn event(number: u32, sequence: u64, text: &str) -> ServerMessage<'static> {
    let (room, message) = (RoomNumber(number), MessageRef::Index(0));
    let payload = packed(&Dealt(text.to_owned()));
    ServerMessage::Event(server::Event {
        room,
        sequence,
        version: 5,
        message,
        payload: payload.into(),
    })
}

/// A client that connects to a node, once.
pub(crate) fn connecting(url: &str, set: &[(PfOption, u64)]) -> PfClient {
    let once = (PfOption::ReconnectTimeoutMs, 0);
    connecting_with(url, &[set, &[once]].concat())
}

/// A client that connects to a node.
pub(crate) fn connecting_with(url: &str, set: &[(PfOption, u64)]) -> PfClient {
    let mut client = PfClient::default();
    // SAFETY: the client is a place, and the texts outlive the calls.
    unsafe {
        assert_eq!(pf_client_new(text(url), &raw mut client), PfCode::Ok);
    }
    for &(option, value) in set {
        assert_eq!(pf_client_set_number(client, option as u32, value), PfCode::Ok);
    }
    assert_eq!(pf_client_connect(client), PfCode::Ok);
    client
}

pub(crate) fn join(client: PfClient) {
    // SAFETY: the text outlives the call, and the request is a place.
    assert_eq!(unsafe { pf_client_join(client, text("r"), &mut 0) }, PfCode::Ok);
}
