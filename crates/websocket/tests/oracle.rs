//! An established library as the oracle: each library reads what the other writes, in both roles,
//! and each opens a connection with the other.

use std::io::{self, Cursor, Read, Write};
use std::os::unix::net::UnixStream;
use std::thread;

use playfield_websocket::handshake::{
    ClientHandshake, Head, HeadLimits, Response, accept, parse_request,
};
use playfield_websocket::{
    Close, Decoder, Item, Limits, Mask, Opcode, Role, encode, encode_close, encode_fragment,
};
use proptest::prelude::*;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::protocol::{CloseFrame, Role as TheirRole};
use tungstenite::{Message, WebSocket};

/// A message, before either library writes it.
#[derive(Clone, Debug, PartialEq)]
enum Said {
    Text(String),
    Binary(Vec<u8>),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    Close(Option<(u16, String)>),
}

fn said() -> impl Strategy<Value = Vec<Said>> {
    let short = || proptest::collection::vec(any::<u8>(), 0..126);
    let long = prop_oneof![0..300_usize, 65_000..66_000_usize]
        .prop_flat_map(|bytes| proptest::collection::vec(any::<u8>(), bytes));
    let one = prop_oneof![
        "\\PC{0,80}".prop_map(Said::Text),
        long.prop_map(Said::Binary),
        short().prop_map(Said::Ping),
        short().prop_map(Said::Pong),
    ];
    let code = prop_oneof![1000..=1003_u16, 1007..=1013_u16, 3000..=4999_u16];
    let close = proptest::option::of((code, "[a-zé]{0,60}"));
    (proptest::collection::vec(one, 0..8), close).prop_map(|(mut all, close)| {
        all.push(Said::Close(close));
        all
    })
}

/// A socket in memory: it reads from given bytes and collects written ones.
struct Memory {
    input: Cursor<Vec<u8>>,
    output: Vec<u8>,
}

impl Read for Memory {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.input.read(buffer)
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn theirs(role: TheirRole, input: Vec<u8>) -> WebSocket<Memory> {
    WebSocket::from_raw_socket(Memory { input: Cursor::new(input), output: Vec::new() }, role, None)
}

/// Everything that they read.
fn read_by_them(role: TheirRole, bytes: Vec<u8>) -> Vec<Said> {
    let mut socket = theirs(role, bytes);
    let mut all = Vec::new();
    loop {
        let said = match socket.read() {
            Ok(Message::Text(text)) => Said::Text(text.to_string()),
            Ok(Message::Binary(bytes)) => Said::Binary(bytes.to_vec()),
            Ok(Message::Ping(bytes)) => Said::Ping(bytes.to_vec()),
            Ok(Message::Pong(bytes)) => Said::Pong(bytes.to_vec()),
            Ok(Message::Close(close)) => {
                Said::Close(close.map(|close| (close.code.into(), close.reason.to_string())))
            }
            Ok(Message::Frame(frame)) => panic!("{frame:?}"),
            // After the Close, nothing follows.
            Err(_) => return all,
        };
        all.push(said);
    }
}

/// Everything that we read, in pieces of `piece` bytes.
fn read_by_us(role: Role, bytes: &[u8], piece: usize) -> Vec<Said> {
    let mut decoder = Decoder::new(role, Limits::default());
    let (mut all, mut held) = (Vec::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        held.extend_from_slice(piece);
        loop {
            let decoded = decoder.decode(&mut held).expect("what they wrote");
            let consumed = decoded.consumed;
            all.extend(decoded.item.map(|item| match item {
                Item::Text(text) => Said::Text(text.to_owned()),
                Item::Binary(bytes) => Said::Binary(bytes.to_vec()),
                Item::Ping(bytes) => Said::Ping(bytes.to_vec()),
                Item::Pong(bytes) => Said::Pong(bytes.to_vec()),
                Item::Close(close) => {
                    Said::Close(close.map(|Close { code, reason }| (code, reason.to_owned())))
                }
            }));
            if consumed == 0 {
                break;
            }
            held.drain(..consumed);
        }
    }
    all
}

fn written_by_us(all: &[Said], mask: impl Fn() -> Mask, fragment: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for said in all {
        let (opcode, bytes) = match said {
            Said::Text(text) => (Opcode::Text, text.as_bytes()),
            Said::Binary(bytes) => (Opcode::Binary, &bytes[..]),
            Said::Ping(bytes) => {
                encode(&mut out, Opcode::Ping, bytes, mask());
                continue;
            }
            Said::Pong(bytes) => {
                encode(&mut out, Opcode::Pong, bytes, mask());
                continue;
            }
            Said::Close(Some((code, reason))) => {
                encode_close(&mut out, *code, reason, mask());
                continue;
            }
            Said::Close(None) => {
                encode_close(&mut out, 1005, "", mask());
                continue;
            }
        };
        let mut pieces = bytes.chunks(fragment).peekable();
        let mut opcode = opcode;
        loop {
            let piece = pieces.next().unwrap_or_default();
            let is_last = pieces.peek().is_none();
            encode_fragment(&mut out, opcode, is_last, piece, mask());
            opcode = Opcode::Continuation;
            if is_last {
                break;
            }
        }
    }
    out
}

fn written_by_them(role: TheirRole, all: &[Said]) -> Vec<u8> {
    let mut socket = theirs(role, Vec::new());
    for said in all {
        let message = match said.clone() {
            Said::Text(text) => Message::text(text),
            Said::Binary(bytes) => Message::binary(bytes),
            Said::Ping(bytes) => Message::Ping(bytes.into()),
            Said::Pong(bytes) => Message::Pong(bytes.into()),
            Said::Close(close) => Message::Close(close.map(|(code, reason)| CloseFrame {
                code: CloseCode::from(code),
                reason: reason.into(),
            })),
        };
        socket.send(message).expect("memory accepts everything");
    }
    let _ = socket.flush();
    socket.get_ref().output.clone()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn they_read_what_we_write(all in said(), fragment in 1..70_000_usize, key in any::<[u8; 4]>()) {
        let from_server = written_by_us(&all, || None, fragment.max(100));
        prop_assert_eq!(&read_by_them(TheirRole::Client, from_server), &all);
        let from_client = written_by_us(&all, || Some(key), fragment.max(100));
        prop_assert_eq!(&read_by_them(TheirRole::Server, from_client), &all);
    }

    #[test]
    fn we_read_what_they_write(all in said(), piece in 1..70_000_usize) {
        prop_assert_eq!(&read_by_us(Role::Client, &written_by_them(TheirRole::Server, &all), piece), &all);
        prop_assert_eq!(&read_by_us(Role::Server, &written_by_them(TheirRole::Client, &all), piece), &all);
    }
}

#[test]
fn their_server_accepts_our_handshake_and_we_their_response() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let server = thread::spawn(move || {
        let mut socket = tungstenite::accept(theirs).expect("our request is valid");
        let message = socket.read().expect("a message");
        socket.send(message).expect("it is sent back");
    });
    let handshake = ClientHandshake::new(
        "here:7",
        "/room?a=1",
        [9; 16],
        &[("Origin", "http://here")],
        &["chat"],
    )
    .unwrap();
    ours.write_all(handshake.request()).unwrap();
    let mut input = Vec::new();
    loop {
        read_more(&mut ours, &mut input);
        if let Response::Complete { head_bytes, subprotocol, deflate } =
            handshake.parse_response(&input, &HeadLimits::default()).unwrap()
        {
            assert_eq!((subprotocol, deflate), (None, None));
            input.drain(..head_bytes);
            break;
        }
    }
    let mut frame = Vec::new();
    encode(&mut frame, Opcode::Text, b"hello", Some([1, 2, 3, 4]));
    ours.write_all(&frame).unwrap();
    while read_by_us(Role::Client, &input, 9).is_empty() {
        read_more(&mut ours, &mut input);
    }
    assert_eq!(read_by_us(Role::Client, &input, 9), [Said::Text("hello".to_owned())]);
    server.join().unwrap();
}

/// Reads more input. The peer is not expected to close the connection.
fn read_more(socket: &mut UnixStream, input: &mut Vec<u8>) {
    let mut chunk = [0; 64];
    let count = socket.read(&mut chunk).unwrap();
    assert!(count > 0, "the peer has closed");
    input.extend_from_slice(&chunk[..count]);
}

#[test]
fn our_server_accepts_their_handshake_and_they_our_response() {
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    let client = thread::spawn(move || {
        let (mut socket, response) =
            tungstenite::client("ws://here:7/room?a=1", theirs).expect("our response is valid");
        assert_eq!(response.status().as_u16(), 101);
        socket.send(Message::text("hello")).unwrap();
        assert_eq!(socket.read().unwrap(), Message::text("hello"));
    });
    let mut input = Vec::new();
    let mut open = false;
    loop {
        read_more(&mut ours, &mut input);
        if !open
            && let Head::Complete(request) = parse_request(&input, &HeadLimits::default()).unwrap()
        {
            assert_eq!((request.method, request.target), ("GET", "/room?a=1"));
            let mut out = Vec::new();
            accept(&mut out, &request.upgrade.unwrap(), None, None).unwrap();
            ours.write_all(&out).unwrap();
            let head_bytes = request.head_bytes;
            input.drain(..head_bytes);
            open = true;
        }
        if open && read_by_us(Role::Server, &input, 9) == [Said::Text("hello".to_owned())] {
            let mut out = Vec::new();
            encode(&mut out, Opcode::Text, b"hello", None);
            ours.write_all(&out).unwrap();
            break;
        }
    }
    client.join().unwrap();
}
