//! Sends every message back, over blocking sockets with a thread for each connection.
//!
//! Run with a port: `cargo run -p playfield-websocket --example echo_server -- 9001`. Without one, or with 0,
//! the system picks. The address is printed.

use std::{
    env,
    error::Error,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    thread,
};

use playfield_websocket::{
    Decoder, Item, Limits, Opcode, Role, encode, encode_close,
    handshake::{Head, HeadLimits, accept, parse_request, reject},
};

/// Conformance suites send messages of 16 MiB.
const MESSAGE_BYTES_MAX: usize = 64 << 20;

/// Bytes that arrived and are not yet used.
type Buffer = Vec<u8>;

fn main() -> Result<(), Box<dyn Error>> {
    let port = env::args().nth(1).map_or(Ok(0), |port| port.parse::<u16>())?;
    let listener = TcpListener::bind(("127.0.0.1", port))?;
    println!("{}", listener.local_addr()?);
    for socket in listener.incoming() {
        let socket = socket?;
        thread::spawn(move || {
            if let Err(error) = serve(socket) {
                eprintln!("{error}");
            }
        });
    }
    Ok(())
}

fn serve(mut socket: TcpStream) -> Result<(), Box<dyn Error>> {
    let mut input = Buffer::new();
    if shake_hands(&mut socket, &mut input)? {
        echo(&mut socket, &mut input)?;
    }
    Ok(())
}

/// Answers the request; true if the connection is a WebSocket now, with `input` what followed the request.
fn shake_hands(socket: &mut TcpStream, input: &mut Buffer) -> Result<bool, Box<dyn Error>> {
    loop {
        let mut out = Vec::new();
        let head_bytes = match parse_request(input, &HeadLimits::default()) {
            Ok(Head::Partial) => {
                if !read_more(socket, input)? {
                    return Ok(false);
                }
                continue;
            }
            Ok(Head::Complete(request)) => match &request.upgrade {
                Some(upgrade) => {
                    accept(&mut out, upgrade, None)?;
                    Some(request.head_bytes)
                }
                None => {
                    reject(&mut out, 426, "this is a WebSocket server");
                    None
                }
            },
            Err(error) => {
                reject(&mut out, error.status(), &error.to_string());
                None
            }
        };
        socket.write_all(&out)?;
        input.drain(..head_bytes.unwrap_or_default());
        return Ok(head_bytes.is_some());
    }
}

fn echo(socket: &mut TcpStream, input: &mut Buffer) -> Result<(), Box<dyn Error>> {
    let mut decoder = Decoder::new(Role::Server, Limits { message_bytes_max: MESSAGE_BYTES_MAX });
    let mut out = Vec::new();
    loop {
        let mut used = 0;
        let mut closed = false;
        while !closed {
            let decoded = match decoder.decode(&mut input[used..]) {
                Ok(decoded) => decoded,
                Err(error) => {
                    encode_close(&mut out, error.close_code(), &error.to_string(), None);
                    closed = true;
                    continue;
                }
            };
            if decoded.consumed == 0 {
                break;
            }
            used += decoded.consumed;
            match decoded.item {
                None | Some(Item::Pong(_)) => {}
                Some(Item::Text(text)) => encode(&mut out, Opcode::Text, text.as_bytes(), None),
                Some(Item::Binary(bytes)) => encode(&mut out, Opcode::Binary, bytes, None),
                Some(Item::Ping(payload)) => encode(&mut out, Opcode::Pong, payload, None),
                Some(Item::Close(close)) => {
                    encode_close(&mut out, close.map_or(1005, |close| close.code), "", None);
                    closed = true;
                }
            }
        }
        socket.write_all(&out)?;
        out.clear();
        input.drain(..used);
        if closed || !read_more(socket, input)? {
            return Ok(());
        }
    }
}

/// Waits for bytes; false when the peer will send none.
fn read_more(socket: &mut TcpStream, input: &mut Buffer) -> Result<bool, Box<dyn Error>> {
    let mut chunk = [0; 16 << 10];
    let count = socket.read(&mut chunk)?;
    input.extend_from_slice(&chunk[..count]);
    Ok(count != 0)
}
