//! A node with test rooms, and clients that speak to it over real sockets.

#![allow(dead_code, reason = "each test file uses some of it")]

pub(crate) mod room;
pub(crate) mod speech;
pub(crate) mod tls;

use std::cell::Cell;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use playfield_server::{Config, Running, Server};
use playfield_websocket::handshake::{ClientHandshake, HeadLimits, Response};
use playfield_websocket::{Decoder, Deflate, Item, Limits, Opcode, Role};
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::framing::{Framing, PREAMBLE, write_frame};
use playfield_wire::{ErrorCode, Format, RequestNumber, RoomNumber};

pub(crate) use speech::{Heard, encoded, heard, hello};

/// A Close frame of a client, with the code 1000.
pub(crate) const CLOSE: &[u8] = b"\x88\x82\0\0\0\0\x03\xE8";

/// The time that a test waits for something that must come. Only a failing test waits that long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

thread_local! {
    /// The value of `threads.descriptors` in the nodes of this test.
    static DESCRIPTORS: Cell<&'static str> = const { Cell::new("shared") };
}

/// Runs a test whose nodes have a descriptor table for each shard.
pub(crate) fn with_own_tables(test: fn()) {
    DESCRIPTORS.set("per_shard");
    test();
}

pub(crate) fn config(settings: &[(&str, &str)]) -> Config {
    let mut config = Config::default();
    config.set("listen", "127.0.0.1:0").unwrap();
    config.set("threads.descriptors", DESCRIPTORS.get()).unwrap();
    for (name, value) in settings {
        config.set(name, value).unwrap();
    }
    config
}

pub(crate) fn start(settings: &[(&str, &str)]) -> Running {
    Server::new(config(settings))
        .room_type(room::room_type("test"))
        .page("/", "text/html", "<p>hello")
        .start()
        .unwrap()
}

/// Waits until the node's numbers are as wanted. They are published after each turn, which no event
/// reports.
pub(crate) fn until(running: &Running, wanted: impl Fn(&Running) -> bool) {
    let end = Instant::now() + PATIENCE;
    while !wanted(running) {
        assert!(Instant::now() < end, "{:?}", running.stats());
        thread::yield_now();
    }
}

/// A client over a blocking socket.
pub(crate) struct Client {
    pub(crate) socket: TcpStream,
    pub(crate) format: Format,
    websocket: Option<Decoder>,
    /// The compression that was negotiated.
    pub(crate) deflate: Option<Deflate>,
    /// The number of bytes that came.
    pub(crate) came: usize,
    /// The code of the Close frame that came.
    pub(crate) close_code: Option<u16>,
    input: Vec<u8>,
}

impl Client {
    /// Connects and says hello.
    pub(crate) fn native(address: SocketAddr) -> Self {
        let mut client = Self::connect(address);
        client.socket.write_all(&PREAMBLE).unwrap();
        client.greet()
    }

    /// Connects, upgrades and says hello.
    pub(crate) fn websocket(address: SocketAddr, format: Format) -> Self {
        Self::upgrade(address, format, false).greet()
    }

    /// Like [`websocket`](Self::websocket), and offers to take compressed messages.
    pub(crate) fn deflating(address: SocketAddr, format: Format) -> Self {
        Self::upgrade(address, format, true).greet()
    }

    /// Connects and upgrades, and says nothing more.
    pub(crate) fn upgrade(address: SocketAddr, format: Format, deflates: bool) -> Self {
        let mut client = Self { format, ..Self::connect(address) };
        let mut handshake = ClientHandshake::new("localhost", "/", [7; 16], &[], &[]).unwrap();
        if deflates {
            handshake = handshake.with_deflate(Deflate::default());
        }
        client.socket.write_all(handshake.request()).unwrap();
        loop {
            let mut chunk = [0; 1024];
            let count = client.socket.read(&mut chunk).unwrap();
            client.input.extend_from_slice(&chunk[..count]);
            if let Response::Complete { head_bytes, deflate, .. } =
                handshake.parse_response(&client.input, &HeadLimits::default()).unwrap()
            {
                client.input.drain(..head_bytes);
                client.deflate = deflate;
                break;
            }
        }
        let limits = Limits { message_bytes_max: 1 << 24, ..Limits::default() };
        client.websocket = Some(match &client.deflate {
            Some(agreed) => Decoder::with_deflate(Role::Client, limits, agreed),
            None => Decoder::new(Role::Client, limits),
        });
        client
    }

    /// Connects, and says nothing.
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        Self {
            socket,
            format: Format::Packed,
            websocket: None,
            deflate: None,
            came: 0,
            close_code: None,
            input: Vec::new(),
        }
    }

    fn greet(mut self) -> Self {
        self.say(&hello(self.format));
        assert!(matches!(self.next(), Heard::Welcome { .. }));
        self
    }

    /// Frames a message as this client sends it.
    pub(crate) fn framed(&self, body: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        if self.websocket.is_some() {
            let opcode = if self.format.is_text() { Opcode::Text } else { Opcode::Binary };
            playfield_websocket::encode(&mut out, opcode, body, Some([1, 2, 3, 4]));
        } else {
            write_frame(&mut out, body);
        }
        out
    }

    pub(crate) fn say(&mut self, body: &[u8]) {
        let bytes = self.framed(body);
        self.socket.write_all(&bytes).unwrap();
    }

    pub(crate) fn join(&mut self, request: RequestNumber, room: &str) {
        self.say(&encoded(
            self.format,
            &ClientMessage::Join(client::Join { request, room: room.into() }),
        ));
    }

    pub(crate) fn join_or_create(&mut self, request: RequestNumber, options: &str) {
        let options = room::encoded(self.format, options.as_bytes());
        let message = ClientMessage::JoinOrCreate(client::JoinOrCreate {
            request,
            room_type: "test".into(),
            key: None,
            options: &options,
        });
        self.say(&encoded(self.format, &message));
    }

    pub(crate) fn request(
        &mut self,
        room: RoomNumber,
        request: RequestNumber,
        name: &str,
        payload: &str,
    ) {
        self.say(&speech::request(self.format, room, request, name, payload));
    }

    /// The next message, or `None` at the end of the connection.
    pub(crate) fn try_next(&mut self) -> Option<Heard> {
        loop {
            if let Some(heard) = self.take() {
                return Some(heard);
            }
            let mut chunk = [0; 16 << 10];
            match self.socket.read(&mut chunk) {
                Ok(0) => return None,
                Ok(count) => {
                    self.came += count;
                    self.input.extend_from_slice(&chunk[..count]);
                }
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("nothing came: {error}"),
            }
        }
    }

    fn take(&mut self) -> Option<Heard> {
        let Some(decoder) = &mut self.websocket else {
            let framing = Framing { message_bytes_max: 1 << 24 };
            let frame = framing.decode(&self.input).unwrap()?;
            let heard = heard(self.format, frame.body);
            let consumed = frame.consumed;
            self.input.drain(..consumed);
            return Some(heard);
        };
        loop {
            let decoded = decoder.decode(&mut self.input).unwrap();
            let consumed = decoded.consumed;
            if consumed == 0 {
                return None;
            }
            let found = match decoded.item {
                Some(Item::Text(text)) => Some(heard(self.format, text.as_bytes())),
                Some(Item::Binary(body)) => Some(heard(self.format, body)),
                Some(Item::Close(close)) => {
                    self.close_code = close.map(|close| close.code);
                    // As all clients do. Who has gone meanwhile needs no answer.
                    let _ = self.socket.write_all(CLOSE);
                    None
                }
                _ => None,
            };
            self.input.drain(..consumed);
            if found.is_some() {
                return found;
            }
        }
    }

    pub(crate) fn next(&mut self) -> Heard {
        self.try_next().expect("the connection goes on")
    }

    /// The next message that is wanted; others are passed over.
    pub(crate) fn until<T>(&mut self, wanted: impl Fn(&Heard) -> Option<T>) -> T {
        loop {
            let heard = self.next();
            if let Some(found) = wanted(&heard) {
                return found;
            }
        }
    }

    pub(crate) fn until_reply(&mut self, request: RequestNumber) -> String {
        self.until(|heard| match heard {
            Heard::Reply { request: answered, payload } if *answered == request => {
                Some(payload.clone())
            }
            Heard::Error { request: Some(answered), code, .. } if *answered == request => {
                Some(code.to_string())
            }
            _ => None,
        })
    }

    /// The room's number and id, or why not.
    pub(crate) fn until_joined(
        &mut self,
        request: RequestNumber,
    ) -> Result<(RoomNumber, String), ErrorCode> {
        self.until(|heard| match heard {
            Heard::Joined { request: answered, room, id, .. } if *answered == request => {
                Some(Ok((*room, id.clone())))
            }
            Heard::Error { request: Some(answered), code, .. } if *answered == request => {
                Some(Err(*code))
            }
            _ => None,
        })
    }

    /// All that comes until the connection ends.
    pub(crate) fn rest(&mut self) -> Vec<Heard> {
        std::iter::from_fn(|| self.try_next()).collect()
    }
}
