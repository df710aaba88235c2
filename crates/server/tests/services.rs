//! Services over real sockets.

use crate::common;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use common::{Client, config, room};
use playfield_server::Server;
use playfield_server::service::{
    ConnectionId, Frame, FrameCodec, NativeFrames, Peer, Result, Service,
};
use playfield_websocket::Opcode;
use playfield_wire::RequestNumber;

const ANY_PORT: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

/// Sends what it hears to everyone on its shard, behind the shard's number; hangs up on an empty
/// frame.
struct Chat {
    shard: u8,
    ids: Vec<ConnectionId>,
}

impl Chat {
    fn of(shard: usize) -> Self {
        Self { shard: shard as u8, ids: Vec::new() }
    }
}

impl Service for Chat {
    type Connection = ();
    type Codec = NativeFrames;

    fn codec(&self) -> NativeFrames {
        NativeFrames::new()
    }

    fn connected(&mut self, _: SocketAddr, peer: &mut Peer<Self>) {
        self.ids.push(peer.id());
    }

    fn received(&mut self, _: &mut (), frame: Frame<'_>, peer: &mut Peer<Self>) -> Result {
        if frame.body.is_empty() {
            peer.hang_up();
        }
        for id in &self.ids {
            peer.send_with(*id, |out| {
                out.push(self.shard);
                out.extend_from_slice(frame.body);
            })?;
        }
        Ok(())
    }
}

fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket
}

fn frame(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    NativeFrames::new().encode(&mut out, body).unwrap();
    out
}

fn heard(socket: &mut TcpStream) -> Vec<u8> {
    let mut header = [0; 4];
    socket.read_exact(&mut header).unwrap();
    let mut body = vec![0; u32::from_le_bytes(header) as usize];
    socket.read_exact(&mut body).unwrap();
    body
}

#[test]
pub(crate) fn services_and_rooms_serve_beside_each_other() {
    let running = Server::new(config(&[("shards", "1")]))
        .room_type(room::room_type("test"))
        .service(ANY_PORT.into(), Chat::of)
        .service(ANY_PORT.into(), |_| Chat::of(7))
        .start()
        .unwrap();
    let &[first, second] = running.service_addrs() else { panic!("two were added") };
    let mut eve = connect(second);
    eve.write_all(&frame(b"hm")).unwrap();
    assert_eq!(heard(&mut eve), b"\x07hm");
    let mut ann = connect(first);
    ann.write_all(&frame(b"first")).unwrap();
    assert_eq!(heard(&mut ann), b"\0first");
    let mut bob = connect(first);
    bob.write_all(&frame(b"hello")).unwrap();
    assert_eq!(heard(&mut bob), b"\0hello");
    assert_eq!(heard(&mut ann), b"\0hello");

    let mut player = Client::native(running.local_addr());
    player.join_or_create(RequestNumber(1), "");
    player.until_joined(RequestNumber(1)).unwrap();
    assert_eq!(running.stats().total().connections, 4);

    bob.write_all(&[frame(b""), frame(b"never")].concat()).unwrap();
    assert_eq!(heard(&mut bob), b"\0", "what was written before the end arrives");
    assert_eq!(bob.read(&mut [0; 8]).unwrap(), 0);
    running.shutdown();
    let mut rest = Vec::new();
    ann.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, frame(b"\0"));
}

/// A request for a WebSocket at a path, and what is sent after it at once.
fn websocket(address: SocketAddr, path: &str, then: &[u8]) -> TcpStream {
    let mut socket = connect(address);
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    socket.write_all(&[request.as_bytes(), then].concat()).unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).unwrap();
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "));
    socket
}

/// A masked binary message.
fn message(payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    playfield_websocket::encode(&mut out, Opcode::Binary, payload, Some([1, 2, 3, 4]));
    out
}

#[test]
pub(crate) fn a_service_is_reached_by_its_address_and_by_websocket() {
    let running = Server::new(config(&[("shards", "1")]))
        .service_and_path(ANY_PORT.into(), "/chat", Chat::of)
        .service_at_path("/other", |_| Chat::of(7))
        .start()
        .unwrap();
    let &[address] = running.service_addrs() else { panic!("one has an address") };
    let mut ann = connect(address);
    ann.write_all(&frame(b"first")).unwrap();
    assert_eq!(heard(&mut ann), b"\0first");
    let halves = [&frame(b"hello")[..6], &frame(b"hello")[6..]];
    let said = [message(halves[0]), message(halves[1])].concat();
    let mut bob = websocket(running.local_addr(), "/chat", &said);
    let mut came = [0; 2 + 4 + 6];
    bob.read_exact(&mut came).unwrap();
    assert_eq!(came[..], [&[0x82, 10][..], &frame(b"\0hello")].concat());
    assert_eq!(heard(&mut ann), b"\0hello");
    let mut eve = websocket(running.local_addr(), "/other", &message(&frame(b"hm")));
    let mut came = [0; 2 + 4 + 3];
    eve.read_exact(&mut came).unwrap();
    assert_eq!(came[6..], *b"\x07hm");
    running.shutdown();
    let mut rest = Vec::new();
    bob.read_to_end(&mut rest).unwrap();
    assert_eq!(rest[..4], [0x88, rest.len() as u8 - 2, 3, 0xE9], "1001: {rest:?}");
}

#[test]
pub(crate) fn a_path_that_is_no_path_or_taken_is_refused_at_the_start() {
    let longest = format!("/{}", "x".repeat(1_023));
    let too_long = format!("{longest}x");
    for (paths, expected) in [
        (vec!["chat"], "must begin with a slash"),
        (vec!["/ch at"], "no characters that URLs encode"),
        (vec!["/chat?a"], "no characters that URLs encode"),
        (vec!["/chat", "/chat"], "two services have the path"),
        (vec![&*too_long], "has 1025 bytes; 1024 are the most"),
    ] {
        let server = Server::new(config(&[]));
        let server =
            paths.iter().fold(server, |server, &path| server.service_at_path(path, Chat::of));
        let Err(error) = server.start() else { panic!("{paths:?} were taken") };
        assert!(error.to_string().contains(expected), "{error}");
    }
    Server::new(config(&[])).service_at_path(longest, Chat::of).start().unwrap().shutdown();
}

#[test]
pub(crate) fn a_node_may_have_services_only_and_every_shard_has_its_own_value() {
    let settings = [("shards", "2"), ("listen", "192.0.2.1:1")]; // an address that can't be listened on
    let running =
        Server::new(config(&settings)).service(ANY_PORT.into(), Chat::of).start().unwrap();
    assert_eq!(running.service_addrs(), [running.local_addr()]);
    // Which shard accepts a client is the system's choice; among so many, both do.
    let mut seen = [0; 2];
    let mut clients = Vec::new();
    for _ in 0..64 {
        let mut client = connect(running.local_addr());
        client.write_all(&frame(b"")).unwrap();
        let shard = heard(&mut client)[0];
        seen[usize::from(shard)] += 1;
        clients.push(client);
    }
    assert!(seen.iter().all(|&count| count > 0), "{seen:?}");
    running.shutdown();
}

#[test]
fn much_at_once_comes_back_whole_and_in_order() {
    let running =
        Server::new(config(&[("shards", "1"), ("limits.session.outbox_bytes.high", "1000")]))
            .service(ANY_PORT.into(), Chat::of)
            .start()
            .unwrap();
    let mut client = connect(running.local_addr());
    let (mut said, mut expected) = (Vec::new(), Vec::new());
    for number in 0_u32..200_000 {
        let body = &[7; 40][..number as usize % 37 + 1];
        said.extend(frame(body));
        expected.extend(frame(&[&[0], body].concat()));
    }
    let mut writer = client.try_clone().unwrap();
    let writes = std::thread::spawn(move || {
        writer.write_all(&said).unwrap();
        writer.shutdown(Shutdown::Write).unwrap();
    });
    let mut came = Vec::new();
    client.read_to_end(&mut came).unwrap();
    writes.join().unwrap();
    assert!(came == expected, "{} bytes came of {}", came.len(), expected.len());
    running.shutdown();
}

/// Sends back what it hears.
struct Echo;

impl Service for Echo {
    type Connection = ();
    type Codec = NativeFrames;

    fn codec(&self) -> NativeFrames {
        NativeFrames::new()
    }

    fn connected(&mut self, _: SocketAddr, _: &mut Peer<Self>) {}

    fn received(&mut self, _: &mut (), frame: Frame<'_>, peer: &mut Peer<Self>) -> Result {
        Ok(peer.reply(frame.body)?)
    }
}

#[test]
pub(crate) fn many_who_say_much_at_the_same_time_each_get_their_own_back() {
    let running =
        Server::new(config(&[("shards", "1")])).service(ANY_PORT.into(), |_| Echo).start().unwrap();
    let mut clients: Vec<_> = (0..64).map(|_| connect(running.local_addr())).collect();
    // Far more in all than is replied before the first replies are written.
    let said = |number: usize| frame(&[number as u8; 60]).repeat(300);
    for _ in 0..10 {
        for (number, client) in clients.iter_mut().enumerate() {
            client.write_all(&said(number)).unwrap();
        }
        for (number, client) in clients.iter_mut().enumerate() {
            let expected = said(number);
            let mut came = vec![0; expected.len()];
            client.read_exact(&mut came).unwrap();
            assert!(came == expected, "client {number}");
        }
    }
    running.shutdown();
}

#[test]
fn what_keeps_a_service_from_listening_is_said() {
    let taken = Server::new(config(&[])).service(ANY_PORT.into(), Chat::of).start().unwrap();
    let address = taken.local_addr();
    let Err(error) = Server::new(config(&[])).service(address, Chat::of).start() else {
        panic!("the port is taken")
    };
    assert!(error.to_string().starts_with(&format!("service 0 at {address}: ")), "{error}");

    let crowd = (0..65)
        .fold(Server::new(config(&[])), |server, _| server.service(ANY_PORT.into(), Chat::of));
    let Err(error) = crowd.start() else { panic!("one too many") };
    assert_eq!(error.to_string(), "65 services are too many; there may be 64");
}
