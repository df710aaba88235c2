//! The event loop with real sockets, turn by turn.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mio::{Events, Poll, Waker};
use playfield_wire::client::{ClientMessage, Hello, Ping, Resume};
use playfield_wire::framing::{Framing, PREAMBLE, write_frame_with};
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, Format};
use socket2::SockRef;

use super::{EventLoop, Listening, SharedRuntime, Socket, Sockets, WAKER};
use crate::clock::Pace;
use crate::config::Config;
use crate::http::Handover;
use crate::mailbox::Mailbox;
use crate::testing::bare_shard;
use crate::upgrade::gate::Stage;

const FORMAT: Format = Format::Packed;

/// The number of times that a test waits for something to happen before it fails, for 10 ms each.
const WAITS_MAX: u32 = 1000;

/// An event loop whose turns are made by a test.
struct Looped {
    event_loop: EventLoop,
    events: Events,
    address: SocketAddr,
}

impl Looped {
    fn new() -> Self {
        let mut config = Config::default();
        config.set("trusted_proxies", "127.0.0.0/8").unwrap();
        let poll = Poll::new().unwrap();
        let waker = Waker::new(poll.registry(), WAKER).unwrap();
        let mailboxes = vec![Mailbox::new(100, waker.into())];
        let (handover, _) = Handover::new();
        let shared = Arc::new(SharedRuntime::new(&config, Pace::default(), mailboxes, handover));
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_nonblocking(true).unwrap();
        let address = socket.local_addr().unwrap();
        let listening = vec![Listening { socket, service: None }];
        let shard = bare_shard(config, Vec::new());
        let published = Arc::default();
        let sockets = Sockets { listening, ..Sockets::default() };
        let event_loop = EventLoop::new(0, shard, shared, published, poll, sockets);
        Self { event_loop: event_loop.unwrap(), events: Events::with_capacity(8), address }
    }

    fn wait(&mut self) {
        let most = Some(Duration::from_millis(10));
        self.event_loop.poll.poll(&mut self.events, most).unwrap();
    }

    /// Makes turns until this has happened.
    fn until<T>(&mut self, mut happens: impl FnMut(&mut EventLoop) -> Option<T>) -> T {
        for _ in 0..WAITS_MAX {
            if let Some(happened) = happens(&mut self.event_loop) {
                return happened;
            }
            self.wait();
            self.event_loop.turn(&self.events, Duration::ZERO);
        }
        panic!("it does not happen")
    }

    /// Notes events, without a turn, until the socket in this place is as is said.
    fn note_until(&mut self, place: usize, is_so: impl Fn(&Socket) -> bool) {
        for _ in 0..WAITS_MAX {
            if self.event_loop.sockets[place].as_ref().is_some_and(&is_so) {
                return;
            }
            self.wait();
            self.event_loop.note(&self.events);
        }
        panic!("it does not happen")
    }

    /// The first part of a turn: everything up to what is due.
    fn read(&mut self) {
        let now = self.event_loop.now();
        self.event_loop.shard.begin(now);
        self.event_loop.read();
    }

    /// The next message that a client hears.
    fn heard(&mut self, client: &mut Client) -> Vec<u8> {
        self.until(|_| client.next())
    }
}

/// A client in native framing, behind a proxy.
struct Client {
    socket: TcpStream,
    input: Vec<u8>,
}

impl Client {
    fn connect(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_nonblocking(true).unwrap();
        Self { socket, input: Vec::new() }
    }

    /// Says hello, by a proxy that names its address.
    fn open(&mut self, address: &str, resume: Option<Resume<'_>>) {
        let mut out = format!("PROXY TCP4 {address} 127.0.0.1 4711 7350\r\n").into_bytes();
        out.extend_from_slice(&PREAMBLE);
        self.socket.write_all(&out).unwrap();
        self.say(&ClientMessage::Hello(Hello { resumable: true, resume, ..Hello::new(FORMAT) }));
    }

    fn say(&mut self, message: &ClientMessage<'_>) {
        let mut out = Vec::new();
        write_frame_with(&mut out, |out| message.encode(FORMAT, out));
        self.socket.write_all(&out).unwrap();
    }

    /// Takes the next message that has come.
    fn next(&mut self) -> Option<Vec<u8>> {
        let mut bytes = [0; 4096];
        match self.socket.read(&mut bytes) {
            Ok(0) => panic!("the node has closed the connection"),
            Ok(count) => self.input.extend_from_slice(&bytes[..count]),
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        let frame = Framing { message_bytes_max: 1 << 20 }.decode(&self.input).unwrap()?;
        let (body, consumed) = (frame.body.to_vec(), frame.consumed);
        self.input.drain(..consumed);
        Some(body)
    }

    /// Loses its connection without a word.
    fn reset(self) {
        SockRef::from(&self.socket).set_linger(Some(Duration::ZERO)).unwrap();
    }
}

/// A resume that waited before the reset of the old socket was read, both in one turn.
#[test]
fn the_old_socket_of_a_session_that_was_just_resumed_does_not_end_it() {
    let mut looped = Looped::new();
    let mut lost = Client::connect(looped.address);
    lost.open("192.0.2.1", None);
    let welcome = looped.heard(&mut lost);
    let Ok(ServerMessage::Welcome(welcome)) = ServerMessage::decode(FORMAT, &welcome) else {
        panic!("a welcome");
    };

    let mut back = Client::connect(looped.address);
    looped.until(|event_loop| (event_loop.shard.links.len() == 2).then_some(()));
    back.open("192.0.2.2", Some(Resume { token: welcome.resume, received: 0, rooms: Vec::new() }));
    looped.note_until(1, |socket| socket.readable);
    looped.read();
    assert!(looped.event_loop.shard.links.has_work(), "the resume waits");
    lost.reset();
    looped.note_until(0, |socket| socket.ends || socket.is_gone);
    looped.read();

    let welcome = looped.heard(&mut back);
    let Ok(ServerMessage::Welcome(welcome)) = ServerMessage::decode(FORMAT, &welcome) else {
        panic!("a welcome");
    };
    assert!(welcome.resumed.is_some());
    back.say(&ClientMessage::Ping(Ping { nonce: 5 }));
    let pong = looped.heard(&mut back);
    assert!(matches!(
        ServerMessage::decode(FORMAT, &pong),
        Ok(ServerMessage::Pong(pong)) if pong.nonce == 5
    ));
}

/// A shard may have no turn between an upgrade that failed and the next one.
#[test]
fn the_shard_goes_on_between_two_upgrades_even_if_the_second_begins_at_once() {
    let mut looped = Looped::new();
    let shared = Arc::clone(&looped.event_loop.shared);
    assert!(shared.gate.begin(1));
    shared.gate.go_to(Stage::Written);
    looped.event_loop.turn(&looped.events, Duration::ZERO);
    assert_eq!(looped.event_loop.gate_stage, Stage::Written);
    shared.gate.end(false);
    assert!(shared.gate.begin(1));
    shared.gate.go_to(Stage::Draining);
    looped.event_loop.turn(&looped.events, Duration::ZERO);
    assert!(looped.event_loop.gate_stage < Stage::Stopped, "the rooms are frozen from before");
}

#[test]
fn a_shard_that_is_told_to_stop_while_it_is_at_the_gate_stops_when_that_is_open() {
    let mut looped = Looped::new();
    let shared = Arc::clone(&looped.event_loop.shared);
    assert!(shared.gate.begin(1));
    shared.gate.go_to(Stage::Draining);
    shared.stops.store(true, Ordering::Release);
    looped.event_loop.turn(&looped.events, Duration::ZERO);
    assert!(looped.event_loop.ends_at.is_none(), "its rooms may go on elsewhere");
    shared.gate.end(false);
    looped.event_loop.turn(&looped.events, Duration::ZERO);
    assert!(looped.event_loop.ends_at.is_some());
}

/// Its socket is full, and it reads on while the node closes its connection.
#[test]
fn a_client_that_is_not_passed_on_gets_all_that_it_was_sent() {
    const BYTES: usize = 1_000_000;
    let mut looped = Looped::new();
    let mut client = Client::connect(looped.address);
    SockRef::from(&client.socket).set_recv_buffer_size(64 << 10).unwrap();
    client.open("192.0.2.1", None);
    looped.heard(&mut client);
    let event_loop = &mut looped.event_loop;
    let key = event_loop.sockets[0].as_ref().unwrap().key;
    let text = "x".repeat(BYTES).into();
    let (code, retry_after_ms) = (ErrorCode::Internal, None);
    let error = server::Error { request: None, room: None, code, text, retry_after_ms };
    event_loop.shard.by_outlet(|out| out.send(key, &ServerMessage::Error(error)));
    event_loop.flush(key);
    assert!(!event_loop.shard.links.unsent(key).is_empty(), "its socket is full");
    client.socket.set_nonblocking(false).unwrap();
    let reads = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        client.socket.read_to_end(&mut bytes).map(|_| bytes.len())
    });
    looped.event_loop.close_for_successor(&mut looped.events);
    drop(looped);
    assert!(reads.join().unwrap().unwrap() > BYTES);
}
