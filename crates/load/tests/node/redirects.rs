//! Loads of a node that redirects joins to another.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use playfield_room::schema;
use playfield_wire::client::ClientMessage;
use playfield_wire::framing::{Framing, PREAMBLE, write_frame};
use playfield_wire::server::{Pong, Redirect, Schema, ServerMessage, Welcome};
use playfield_wire::{Format, PROTOCOL, RequestNumber};

use crate::rooms::{Counter, load, node, settings};

const ADD: &str = r#"steps = [
    { join = "counter", key = "the room" },
    { wait = "all" },
    { repeat = 10, steps = [{ request = "Add" }] },
]"#;

/// The answer to the join of this number, of all connections: an address and a reservation.
type Answer = dyn Fn(usize) -> (String, &'static str) + Send + Sync;

/// Starts a node that has no rooms, and redirects each join.
fn gate(answer: impl Fn(usize) -> (String, &'static str) + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (answer, joins) = (Arc::new(answer), Arc::new(AtomicUsize::new(0)));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (answer, joins) = (Arc::clone(&answer), Arc::clone(&joins));
            // An error is the end of the connection.
            std::thread::spawn(move || serve(stream, &*answer, &joins));
        }
    });
    address
}

fn serve(mut stream: TcpStream, answer: &Answer, joins: &AtomicUsize) -> io::Result<()> {
    stream.read_exact(&mut [0; PREAMBLE.len()])?;
    let (mut unread, mut bytes) = (Vec::new(), [0; 4096]);
    let redirect = |request: RequestNumber| {
        let (address, reservation) = answer(joins.fetch_add(1, Ordering::Relaxed));
        let (addresses, reservation) = (vec![address.into()], reservation.into());
        ServerMessage::Redirect(Redirect { request, addresses, reservation })
    };
    loop {
        let framing = Framing { message_bytes_max: 1 << 20 };
        while let Some(frame) = framing.decode(&unread).map_err(io::Error::other)? {
            let heard = ClientMessage::decode(Format::Packed, frame.body);
            let said = match heard.map_err(io::Error::other)? {
                ClientMessage::Hello(_) => ServerMessage::Welcome(Welcome {
                    protocol: PROTOCOL,
                    session: 1,
                    max_message_bytes: 1 << 20,
                    ..Welcome::default()
                }),
                ClientMessage::Ping(ping) => {
                    ServerMessage::Pong(Pong { nonce: ping.nonce, time_us: 0 })
                }
                ClientMessage::Schema(asked) => ServerMessage::Schema(Schema {
                    request: Some(asked.request),
                    room_type: "counter".into(),
                    schema: schema::<Counter>().to_json().into_bytes().into(),
                }),
                ClientMessage::JoinOrCreate(join) => redirect(join.request),
                _ => return Ok(()),
            };
            let (mut body, mut out) = (Vec::new(), Vec::new());
            said.encode(Format::Packed, &mut body);
            write_frame(&mut out, &body);
            stream.write_all(&out)?;
            let consumed = frame.consumed;
            unread.drain(..consumed);
        }
        match stream.read(&mut bytes)? {
            0 => return Ok(()),
            length => unread.extend_from_slice(&bytes[..length]),
        }
    }
}

#[test]
fn connections_move_to_the_nodes_that_have_their_rooms() {
    let nodes = [node(), node()];
    let urls = nodes.each_ref().map(|node| format!("tcp://{}", node.local_addr()));
    let address = gate(move |join| (urls[join % 2].clone(), ""));
    let report = load(settings("tcp", address, 10), ADD).unwrap();
    let counts = report.counts();
    assert_eq!(report.trouble(), None);
    assert_eq!((counts.connected, counts.joined, counts.replies), (10, 10, 100), "{counts:?}");
    for node in nodes {
        node.shutdown();
    }
}

#[test]
fn a_join_that_can_not_be_moved_asks_again_and_is_refused_then() {
    let node = node();
    let (gone, url) = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        (listener.local_addr().unwrap(), format!("tcp://{}", node.local_addr()))
    };
    // The first is at a node that is gone, then in a room whose reservation is over.
    let answers = Mutex::new(vec![(url.clone(), ""), (url, "over"), (format!("tcp://{gone}"), "")]);
    let last = format!("tcp://{gone}");
    let address = gate(move |_| {
        let answer = answers.lock().unwrap().pop();
        answer.unwrap_or_else(|| (last.clone(), ""))
    });
    let report = load(settings("tcp", address, 1), ADD).unwrap();
    assert_eq!((report.trouble(), report.counts().replies), (None, 10));
    let mut settings = settings("tcp", address, 1);
    settings.duration = Some(Duration::from_millis(1));
    let report = load(settings, ADD).unwrap();
    let counts = report.counts();
    assert_eq!((counts.joined, counts.joins_refused), (0, 1), "{counts:?}");
    let problem = report.problems().keys().find(|text| text.contains("3 times"));
    let problem = problem.expect("a problem that says so");
    assert!(problem.contains(&format!("tcp://{gone}")), "{problem}");
    node.shutdown();
}
