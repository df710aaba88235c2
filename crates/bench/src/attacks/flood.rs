//! The attackers: many connections on one thread. Each sends as much as its socket accepts, and
//! reads what arrives.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use playfield_websocket::handshake::ClientHandshake;
use playfield_websocket::{Deflate, Deflater, DeflaterOptions, Opcode, Role};
use playfield_wire::client::{ClientMessage, Hello};
use playfield_wire::framing::{PREAMBLE, write_frame_with};
use playfield_wire::message::MessageRef;
use playfield_wire::{Format, RequestNumber, RoomNumber};
use socket2::{Domain, Socket, Type};

use super::Attack;

/// How much a connection sends at once.
const BATCH_BYTES: usize = 64 << 10;
/// The length of the longest messages; the node's default limit is a little more.
const LONG_BYTES: usize = 60 << 10;

/// Attackers at work.
pub(super) struct Flood {
    stops: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Done>>,
}

/// What the attackers did.
#[derive(Default)]
pub(super) struct Done {
    pub(super) sent: u64,
    pub(super) received: u64,
    /// How many connections were opened, including replacements.
    pub(super) connections: u64,
}

struct Attacker {
    stream: TcpStream,
    /// How many bytes of the opening, and of the current batch, are sent.
    opening: usize,
    batch: usize,
}

/// What each attacker sends: the opening once, then the batch in a loop.
struct Script {
    opening: Vec<u8>,
    batch: Vec<u8>,
    /// Whether it disconnects once the opening is sent.
    goes: bool,
}

impl Flood {
    pub(super) fn start(
        attack: Attack,
        connections: usize,
        node: SocketAddr,
        fat: &str,
    ) -> io::Result<Self> {
        let stops = Arc::new(AtomicBool::new(false));
        let script = Script::of(attack, fat)?;
        let connections = if attack == Attack::None { 0 } else { connections };
        let mut attackers = Vec::new();
        for _ in 0..connections {
            attackers.push(Some(Attacker::connect(node, attackers.len())?));
        }
        let is_over = Arc::clone(&stops);
        let thread = thread::spawn(move || attack_until(&is_over, node, &script, attackers));
        Ok(Self { stops, thread })
    }

    pub(super) fn stop(self) -> io::Result<Done> {
        self.stops.store(true, Ordering::Relaxed);
        self.thread.join().map_err(|_| io::Error::other("the attackers panicked"))?
    }
}

fn attack_until(
    is_over: &AtomicBool,
    node: SocketAddr,
    script: &Script,
    mut attackers: Vec<Option<Attacker>>,
) -> io::Result<Done> {
    let mut done = Done { connections: attackers.len() as u64, ..Done::default() };
    let mut poll = Poll::new()?;
    let both = Interest::READABLE | Interest::WRITABLE;
    for (number, attacker) in attackers.iter_mut().enumerate() {
        if let Some(attacker) = attacker {
            poll.registry().register(&mut attacker.stream, Token(number), both)?;
        }
    }
    let mut events = Events::with_capacity(1024);
    let mut buffer = vec![0; 256 << 10];
    while !is_over.load(Ordering::Relaxed) {
        match poll.poll(&mut events, Some(Duration::from_millis(10))) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &events {
            let number = event.token().0;
            let Some(attacker) = &mut attackers[number] else { continue };
            if attacker.act(script, &mut buffer, &mut done) {
                continue;
            }
            // The node closed it, or it is done: a new connection replaces it.
            attackers[number] = None;
            let Ok(mut next) = Attacker::connect(node, number) else { continue };
            done.connections += 1;
            poll.registry().register(&mut next.stream, Token(number), both)?;
            attackers[number] = Some(next);
        }
    }
    Ok(done)
}

impl Attacker {
    /// Connects from an address of its own.
    fn connect(node: SocketAddr, number: usize) -> io::Result<Self> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        let address = Ipv4Addr::new(127, 1, (number / 250) as u8, (number % 250) as u8 + 1);
        socket.bind(&SocketAddr::from((address, 0)).into())?;
        socket.connect(&node.into())?;
        socket.set_nonblocking(true)?;
        Ok(Self { stream: TcpStream::from_std(socket.into()), opening: 0, batch: 0 })
    }

    /// Reads and writes until the socket would block. Returns `false` when the connection is over.
    fn act(&mut self, script: &Script, buffer: &mut [u8], done: &mut Done) -> bool {
        loop {
            match self.stream.read(buffer) {
                Ok(0) => return false,
                Ok(count) => done.received += count as u64,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return false,
            }
        }
        loop {
            let is_open = self.opening == script.opening.len();
            if is_open && script.goes {
                return false;
            }
            let bytes = if is_open { &script.batch } else { &script.opening };
            let sent = if is_open { &mut self.batch } else { &mut self.opening };
            match self.stream.write(&bytes[*sent..]) {
                Ok(count) => {
                    *sent += count;
                    done.sent += count as u64;
                    if is_open && *sent == bytes.len() {
                        *sent = 0;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return true,
                Err(_) => return false,
            }
        }
    }
}

impl Script {
    fn of(attack: Attack, fat: &str) -> io::Result<Self> {
        let (mut opening, mut batch) = (PREAMBLE.to_vec(), Vec::new());
        let is_json = attack == Attack::Json;
        let format = if is_json { Format::Json } else { Format::Packed };
        let hello = ClientMessage::Hello(Hello::new(format));
        if attack == Attack::Bombs {
            return bombs(&hello);
        }
        frame(&mut opening, format, &hello);
        if matches!(attack, Attack::Resyncs | Attack::Replies) {
            let join = ClientMessage::Join { request: RequestNumber(1), room: fat.into() };
            frame(&mut opening, format, &join);
        }
        let filter =
            (0..8).map(|n| (format!("key{n}").into(), "a value of the usual length".into()));
        let filter: Vec<_> = filter.collect();
        let long = "x".repeat(LONG_BYTES);
        let mut number = 1;
        while batch.len() < BATCH_BYTES {
            number += 1;
            let request = RequestNumber(number);
            let list = |filter| ClientMessage::List { request, room_type: None, filter, limit: 0 };
            let message = match attack {
                Attack::None | Attack::Hellos | Attack::Bombs => break,
                Attack::Pings => ClientMessage::Ping { nonce: 1 },
                Attack::Lists => list(Vec::new()),
                Attack::Filters => list(filter.clone()),
                Attack::Resyncs => ClientMessage::Resync { room: RoomNumber(1) },
                Attack::Replies => ClientMessage::Request {
                    room: RoomNumber(1),
                    request,
                    message: MessageRef::Index(0),
                    payload: b"\0",
                },
                Attack::Rooms => ClientMessage::Create {
                    request,
                    room_type: "made".into(),
                    private: false,
                    code: false,
                    key: None,
                    options: &[],
                },
                Attack::Json => list(vec![("key1".into(), long.as_str().into())]),
            };
            frame(&mut batch, format, &message);
        }
        Ok(Self { opening, batch, goes: attack == Attack::Hellos })
    }
}

/// Over WebSocket: messages of maximal length that compress to almost nothing.
fn bombs(hello: &ClientMessage<'_>) -> io::Result<Script> {
    let request = ClientHandshake::new("localhost", "/", [7; 16], &[], &[])
        .map_err(io::Error::other)?
        .with_deflate(Deflate::default());
    let mut opening = request.request().to_vec();
    let mask = Some([1, 2, 3, 4]);
    playfield_websocket::encode_with(&mut opening, Opcode::Binary, mask, |out| {
        hello.encode(Format::Packed, out);
    });
    let mut deflater = Deflater::new(Role::Client, &Deflate::default(), DeflaterOptions::default());
    let bomb = vec![0; LONG_BYTES];
    let mut batch = Vec::new();
    while batch.len() < BATCH_BYTES {
        deflater.encode(&mut batch, Opcode::Binary, &bomb, mask);
    }
    Ok(Script { opening, batch, goes: false })
}

fn frame(out: &mut Vec<u8>, format: Format, message: &ClientMessage<'_>) {
    write_frame_with(out, |out| message.encode(format, out));
}
