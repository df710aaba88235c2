use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use playfield_wire::framing::write_frame_with;
use playfield_wire::server::{Pong, ServerMessage, Welcome};
use playfield_wire::{Format, PROTOCOL};

use super::{Buffers, Connection, Dialer, Link, Readiness, Settings, Waiter};
use crate::limits::ANSWERS_BYTES_MAX;
use crate::session::{Event, Patience};

/// A connection, and what it is driven with.
struct Client {
    connection: Connection,
    waiter: Waiter,
    buffers: Buffers,
}

impl Client {
    fn turn(&mut self) {
        let readiness = self.waiter.wait(self.connection.due_at()).unwrap();
        self.connection.pump(readiness, &mut self.buffers);
    }

    /// The node's end of a connection that it has welcomed.
    fn welcomed(settings: Settings) -> (Self, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("tcp://{}", listener.local_addr().unwrap());
        let (waiter, registration) = Waiter::new().unwrap();
        let dialer = Arc::new(Dialer::new(&url, &[]).unwrap());
        let connection = Connection::open(dialer, settings, registration);
        let mut client = Self { connection, waiter, buffers: Buffers::default() };
        let mut node = listener.accept().unwrap().0;
        let welcome = Welcome {
            protocol: PROTOCOL,
            session: 7,
            max_message_bytes: 1 << 20,
            ..Welcome::default()
        };
        say(&mut node, &ServerMessage::Welcome(welcome));
        while !client.connection.is_connected() {
            client.turn();
            while client.connection.poll_event().is_some() {}
            client.connection.settle(&mut client.buffers);
        }
        (client, node)
    }
}

fn say(node: &mut TcpStream, message: &ServerMessage<'_>) {
    let mut out = Vec::new();
    write_frame_with(&mut out, |out| message.encode(Format::Packed, out));
    node.write_all(&out).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn a_connection_comes_from_the_address_that_is_set() {
    let source = "127.0.0.9".parse().unwrap();
    let settings = Settings { source: Some(source), ..Settings::default() };
    let (_client, node) = Client::welcomed(settings);
    assert_eq!(node.peer_addr().unwrap().ip(), source);
}

#[test]
fn a_node_that_does_not_read_keeps_no_program_busy() {
    let (mut client, mut node) =
        Client::welcomed(Settings { is_resumable: false, ..Settings::default() });
    let unsent = |client: &Client| match &client.connection.link {
        Link::Open(stream) => stream.unsent_bytes(),
        _ => 0,
    };
    while unsent(&client) < ANSWERS_BYTES_MAX {
        let session = client.connection.session().unwrap();
        session.publish("news", &[7; 500_000], false).unwrap();
        client.connection.flush(&mut client.buffers);
    }
    // The client has something to read, and must not read it.
    say(&mut node, &ServerMessage::Pong(Pong { nonce: 1, time_us: 0 }));
    while !client.connection.is_readable {
        client.turn();
    }
    assert!(client.connection.due_at().is_none_or(|at| at > Instant::now()));
    // Once the node reads, so does the client.
    node.set_nonblocking(true).unwrap();
    let (mut input, received) = (vec![0; 1 << 20], client.buffers.received);
    while client.buffers.received == received {
        while node.read(&mut input).is_ok() {}
        client.turn();
        client.connection.settle(&mut client.buffers);
    }
}

#[test]
fn a_token_is_awaited_without_a_limit() {
    let patience = Patience { timeout: Duration::MAX, ..Patience::default() };
    let settings = Settings { asks_for_tokens: true, patience, ..Settings::default() };
    let (_waiter, registration) = Waiter::new().unwrap();
    let dialer = Arc::new(Dialer::new("tcp://127.0.0.1:9", &[]).unwrap());
    let mut connection = Connection::open(dialer, settings, registration);
    assert!(connection.takes_token());
    connection.pump(Readiness::at(Instant::now()), &mut Buffers::default());
    assert!(connection.poll_event().is_none());
    assert!(connection.due_at().is_none());
    assert!(connection.give_token(Vec::new()));
}

#[test]
fn the_end_is_reported_once_however_often_a_connection_is_closed() {
    for has_failed in [false, true] {
        let (mut waiter, registration) = Waiter::new().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("tcp://{}", listener.local_addr().unwrap());
        let settings = Settings { asks_for_tokens: true, ..Settings::default() };
        let dialer = Arc::new(Dialer::new(&url, &[]).unwrap());
        let mut connection = Connection::open(dialer, settings, registration);
        let (mut buffers, mut ends) = (Buffers::default(), 0);
        if has_failed {
            drop(listener);
            assert!(connection.takes_token() && connection.give_token(Vec::new()));
            while !connection.is_over() {
                let readiness = waiter.wait(connection.due_at()).unwrap();
                connection.pump(readiness, &mut buffers);
            }
        }
        for _ in 0..3 {
            connection.close(&mut buffers);
            while let Some((event, _)) = connection.poll_event() {
                assert!(matches!(event, Event::Closed { .. }));
                ends += 1;
            }
        }
        assert_eq!(ends, 1, "has failed: {has_failed}");
    }
}
