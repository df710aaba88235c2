//! A plain blocking client, and rooms to talk to.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses its part of this")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use playfield_room::{
    Answer, AskId, Context, Handle, LeaveReason, Message, On, Player, PlayerId, Result, Room,
    RoomType, room,
};
use playfield_server::{Config, Running, Server};
use playfield_state::{Data, List, Map, Mirror, State};
use playfield_websocket::handshake::{ClientHandshake, HeadLimits};
use playfield_websocket::{Decoder, Item, Limits, Opcode, Role, encode};
use playfield_wire::client::{self, ClientMessage, Hello, write_request, write_send};
use playfield_wire::framing::{Framing, PREAMBLE, write_frame};
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

#[derive(State, Default, Debug)]
pub struct Table {
    pub players: Map<PlayerId, String>,
    #[sync(owner)]
    pub hands: Map<PlayerId, List<u32>>,
    pub count: u64,
    pub blob: String,
    pub answer: Option<u32>,
}

#[derive(Data, Default)]
pub struct Setup {
    pub refuse: bool,
}

#[derive(Message)]
#[reply(u64)]
pub struct Count;

#[derive(Message)]
pub struct Do {
    pub what: String,
}

#[derive(Message)]
pub struct Noise {
    pub bytes: Vec<u8>,
}

#[derive(Message)]
#[reply(u32)]
pub struct Double {
    pub of: u32,
}

#[room(
    messages(Count, Do),
    events(Noise),
    internal(Double),
    asks(Double),
    tick_hz = 50,
    sync_hz = 50,
    capacity = 3,
    empty_ms = 60000
)]
impl Room for Table {
    type Options = Setup;

    fn create(options: Setup, _: &mut Context<Self>) -> Result<Self> {
        if options.refuse { Err("not today".into()) } else { Ok(Self::default()) }
    }

    fn join(&mut self, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        if player.name() == "Mallory" {
            return Err("not you".into());
        }
        self.players.insert(player.id(), player.name().to_owned());
        self.hands.get_or_default(player.id()).push(player.id().0 as u32);
        cx.emit_to(player.id(), &Noise { bytes: vec![1] });
        Ok(())
    }

    fn leave(&mut self, player: &Player, _: LeaveReason, _: &mut Context<Self>) {
        self.players.remove(&player.id());
        self.hands.remove(&player.id());
    }
}

impl Handle<Count> for Table {
    fn handle(&mut self, _: Count, _: &Player, _: &mut Context<Self>) -> Result<u64> {
        self.count += 1;
        Ok(self.count)
    }
}

impl Handle<Do> for Table {
    fn handle(&mut self, Do { what }: Do, player: &Player, cx: &mut Context<Self>) -> Result<()> {
        match what.split_once(' ').unwrap_or((&what, "")) {
            ("panic", _) => panic!("a bug in a room"),
            ("lock", _) => cx.lock(),
            ("close", _) => cx.close("enough"),
            ("kick", who) => cx.kick(PlayerId(who.parse().unwrap_or(0)), "out"),
            ("noise", size) => {
                cx.emit_to(player.id(), &Noise { bytes: vec![0; size.parse().unwrap_or(0)] });
            }
            ("grow", size) => {
                self.blob = self.count.to_string() + &"x".repeat(size.parse().unwrap_or(0));
            }
            ("meta", value) => cx.set_metadata("map", value)?,
            ("private", _) => cx.set_private(true),
            ("spawn", of) => {
                let of = of.parse().unwrap_or(0);
                cx.spawn(async move { Double { of } })?;
            }
            ("compute", of) => {
                let of = of.parse().unwrap_or(0);
                cx.compute(move || Double { of })?;
            }
            ("ask", room) => drop(cx.ask(room, &Double { of: 21 })),
            _ => return Err("what?".into()),
        }
        Ok(())
    }
}

impl On<Double> for Table {
    fn on(&mut self, Double { of }: Double, _: &mut Context<Self>) -> Result<u32> {
        self.answer = Some(of * 2);
        Ok(of * 2)
    }
}

impl Answer<Double> for Table {
    fn answer(&mut self, _: AskId, reply: Result<u32>, _: &mut Context<Self>) {
        self.answer = Some(reply.unwrap_or_else(|error| u32::from(error.code().number())));
    }
}

/// A server on a free port.
pub fn server(configure: impl FnOnce(&mut Config)) -> Running {
    let mut config =
        Config { listen: SocketAddr::from(([127, 0, 0, 1], 0)), shards: 2, ..Config::default() };
    configure(&mut config);
    Server::new(config)
        .room_type(RoomType::of::<Table>("table"))
        .page("/", "text/html", "<p>hi")
        .start()
        .unwrap()
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    Native,
    WebSocket,
}

/// A client that reads one message at a time. It gives up after some seconds, which fails the test.
pub struct Client {
    pub stream: TcpStream,
    transport: Transport,
    pub format: Format,
    decoder: Decoder,
    input: Vec<u8>,
    pub mirror: Mirror<Table>,
    pub version: u64,
    pub room: RoomNumber,
    pub room_id: String,
    pub player: PlayerId,
    requests: u32,
}

pub fn connect(server: &Running) -> TcpStream {
    let stream = TcpStream::connect(server.local_addr()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

impl Client {
    /// Connects, and does what comes before the hello.
    pub fn open(server: &Running, transport: Transport, format: Format) -> Self {
        let mut stream = connect(server);
        let limits = Limits { message_bytes_max: 64 << 20, ..Limits::default() };
        let mut input = Vec::new();
        match transport {
            Transport::Native => stream.write_all(&PREAMBLE).unwrap(),
            Transport::WebSocket => {
                let handshake = ClientHandshake::new("localhost", "/", [7; 16], &[], &[]).unwrap();
                stream.write_all(handshake.request()).unwrap();
                loop {
                    let mut bytes = [0; 512];
                    let count = stream.read(&mut bytes).unwrap();
                    assert!(count > 0, "closed in the handshake");
                    input.extend_from_slice(&bytes[..count]);
                    let found = handshake.parse_response(&input, &HeadLimits::default()).unwrap();
                    if let playfield_websocket::handshake::Response::Complete {
                        head_bytes, ..
                    } = found
                    {
                        input.drain(..head_bytes);
                        break;
                    }
                }
            }
        }
        Self {
            stream,
            transport,
            format,
            decoder: Decoder::new(Role::Client, limits),
            input,
            mirror: Mirror::new(),
            version: 0,
            room: RoomNumber(0),
            room_id: String::new(),
            player: PlayerId(0),
            requests: 0,
        }
    }

    /// Connects and says hello.
    pub fn hello(server: &Running, transport: Transport, format: Format, name: &str) -> Self {
        let mut client = Self::open(server, transport, format);
        let mut hello = Hello::new(format);
        hello.name = name.into();
        client.say(&ClientMessage::Hello(hello));
        client.expect(|message| matches!(message, ServerMessage::Welcome(_)).then_some(()));
        client
    }

    /// A guest over native framing.
    pub fn guest(server: &Running, name: &str) -> Self {
        Self::hello(server, Transport::Native, Format::Packed, name)
    }

    /// Connects, says hello, and joins some table.
    pub fn seated(server: &Running, name: &str) -> Self {
        let mut client = Self::guest(server, name);
        client.join_or_create().unwrap();
        client
    }

    pub fn request_number(&mut self) -> u32 {
        self.requests += 1;
        self.requests
    }

    /// The frame of a message.
    pub fn frame(&self, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        match self.transport {
            Transport::Native => write_frame(&mut out, body),
            Transport::WebSocket => {
                let opcode = if self.format.is_text() { Opcode::Text } else { Opcode::Binary };
                encode(&mut out, opcode, body, Some([1, 2, 3, 4]));
            }
        }
        out
    }

    pub fn encoded(&self, message: &ClientMessage<'_>) -> Vec<u8> {
        let mut body = Vec::new();
        message.encode(self.format, &mut body);
        self.frame(&body)
    }

    pub fn say(&mut self, message: &ClientMessage<'_>) {
        let frame = self.encoded(message);
        self.stream.write_all(&frame).unwrap();
    }

    pub fn say_bytes(&mut self, body: &[u8]) {
        let frame = self.frame(body);
        self.stream.write_all(&frame).unwrap();
    }

    /// The next message, encoded; `None` at the end of the connection.
    pub fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(message) = self.take() {
                return Some(message);
            }
            let mut bytes = vec![0; 64 << 10];
            match self.stream.read(&mut bytes) {
                Ok(0) => return None,
                Ok(count) => self.input.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("nothing came: {error}"),
            }
        }
    }

    fn take(&mut self) -> Option<Vec<u8>> {
        match self.transport {
            Transport::Native => {
                let framing = Framing { message_bytes_max: 64 << 20 };
                let frame = framing.decode(&self.input).unwrap()?;
                let (body, consumed) = (frame.body.to_vec(), frame.consumed);
                self.input.drain(..consumed);
                Some(body)
            }
            Transport::WebSocket => loop {
                let decoded = self.decoder.decode(&mut self.input).unwrap();
                let consumed = decoded.consumed;
                let body = match decoded.item {
                    Some(Item::Text(text)) => Some(text.as_bytes().to_vec()),
                    Some(Item::Binary(bytes)) => Some(bytes.to_vec()),
                    Some(Item::Close(_)) => {
                        // As all clients do. Who has gone meanwhile needs no answer.
                        let _ = self.stream.write_all(b"\x88\x82\0\0\0\0\x03\xE8");
                        None
                    }
                    _ => None,
                };
                self.input.drain(..consumed);
                if body.is_some() || consumed == 0 {
                    return body;
                }
            },
        }
    }

    /// Reads until a message is the one that is waited for. Snapshots and patches keep the copy in
    /// step meanwhile.
    pub fn expect<T>(&mut self, mut wanted: impl FnMut(&ServerMessage<'_>) -> Option<T>) -> T {
        loop {
            let bytes = self.next().expect("the connection ended");
            let message = ServerMessage::decode(self.format, &bytes).unwrap();
            self.follow(&message);
            if let Some(found) = wanted(&message) {
                return found;
            }
        }
    }

    fn follow(&mut self, message: &ServerMessage<'_>) {
        match message {
            ServerMessage::Snapshot(server::Snapshot { version, body, .. }) => {
                self.version = *version;
                if self.format == Format::Packed {
                    self.mirror.snapshot(body).unwrap();
                }
            }
            ServerMessage::Patch(server::Patch { base, version, body, .. }) => {
                assert_eq!(*base, self.version, "a patch begins where the copy is");
                self.version = *version;
                if self.format == Format::Packed {
                    self.mirror.patch(body).unwrap();
                }
            }
            _ => {}
        }
    }

    /// Joins, or is refused.
    pub fn join_or_create(&mut self) -> Result<(), (ErrorCode, String)> {
        let request = self.request_number();
        self.say(&ClientMessage::JoinOrCreate(client::JoinOrCreate {
            request: RequestNumber(request),
            room_type: "table".into(),
            key: None,
            options: &[],
        }));
        self.joined(RequestNumber(request))
    }

    pub fn join(&mut self, room: &str) -> Result<(), (ErrorCode, String)> {
        let request = self.request_number();
        self.say(&ClientMessage::Join(client::Join {
            request: RequestNumber(request),
            room: room.into(),
        }));
        self.joined(RequestNumber(request))
    }

    pub fn joined(&mut self, request: RequestNumber) -> Result<(), (ErrorCode, String)> {
        let joined = self.expect(|message| match message {
            ServerMessage::Joined(server::Joined { request: of, room, id, player, .. })
                if *of == request =>
            {
                Some(Ok((*room, id.to_string(), PlayerId(*player))))
            }
            ServerMessage::Error(server::Error { request: Some(of), code, text, .. })
                if *of == request =>
            {
                Some(Err((*code, text.to_string())))
            }
            _ => None,
        });
        let (room, id, player) = joined?;
        (self.room, self.room_id, self.player) = (room, id, player);
        self.expect(|message| {
            matches!(message, ServerMessage::Snapshot(server::Snapshot { room: of, .. }) if *of == room).then_some(())
        });
        Ok(())
    }

    /// Asks for a reply; `None` if the connection ends first.
    pub fn request<M: Message>(
        &mut self,
        index: u32,
        message: &M,
    ) -> Result<M::Reply, (ErrorCode, String)> {
        let request = self.request_number();
        let (mut payload, mut body) = (Vec::new(), Vec::new());
        message.write(self.format, &mut payload);
        write_request(
            self.format,
            &mut body,
            self.room,
            RequestNumber(request),
            index,
            M::NAME,
            &payload,
        );
        self.say_bytes(&body);
        let format = self.format;
        self.expect(|message| match message {
            ServerMessage::Reply(server::Reply { request: of, payload })
                if *of == RequestNumber(request) =>
            {
                Some(Ok(M::Reply::read(format, payload).unwrap()))
            }
            ServerMessage::Error(server::Error { request: Some(of), code, text, .. })
                if *of == RequestNumber(request) =>
            {
                Some(Err((*code, text.to_string())))
            }
            _ => None,
        })
    }

    pub fn send<M: Message>(&mut self, index: u32, message: &M) {
        let (mut payload, mut body) = (Vec::new(), Vec::new());
        message.write(self.format, &mut payload);
        write_send(self.format, &mut body, self.room, index, M::NAME, &payload);
        self.say_bytes(&body);
    }

    /// Has the room do something.
    pub fn have(&mut self, what: &str) -> Result<(), (ErrorCode, String)> {
        self.request(1, &Do { what: what.into() })
    }

    pub fn count(&mut self) -> u64 {
        self.request(0, &Count).unwrap()
    }

    /// The same in a room whose number was read already, or is about to be.
    pub fn count_in(&mut self, room: RoomNumber) -> u64 {
        self.room = room;
        self.count()
    }

    /// Reads until the copy is as wanted.
    pub fn until(&mut self, mut wanted: impl FnMut(&Table) -> bool) {
        while !wanted(self.mirror.state()) {
            self.expect(|_| Some(()));
        }
    }

    /// The code of the error or goodbye that ends the connection, and that it ends.
    pub fn ending(&mut self) -> (Option<ErrorCode>, Option<ErrorCode>) {
        let (mut failed, mut goodbye) = (None, None);
        while let Some(bytes) = self.next() {
            match ServerMessage::decode(self.format, &bytes).unwrap() {
                ServerMessage::Error(server::Error { code, request: None, .. }) => {
                    failed = Some(code);
                }
                ServerMessage::Goodbye(server::Goodbye { code, .. }) => goodbye = Some(code),
                _ => {}
            }
        }
        (failed, goodbye)
    }
}
