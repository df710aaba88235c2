//! The echo server of `make bench-python`: a thread per connection, one write for all that a read
//! has brought. It prints its port, and ends with its standard input.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use playfield_websocket::handshake::{Head, HeadLimits, accept, parse_request};
use playfield_websocket::{Decoder, Item, Limits, Opcode, Role, encode, encode_close};

fn main() -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    println!("{}", listener.local_addr()?.port());
    thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            // A client that breaks the protocol ends its own connection only.
            thread::spawn(move || serve(socket));
        }
    });
    io::copy(&mut io::stdin(), &mut io::sink()).map(drop)
}

fn serve(mut socket: TcpStream) -> io::Result<()> {
    socket.set_nodelay(true)?;
    let mut input = Vec::new();
    let mut chunk = vec![0; 256 << 10];
    loop {
        let bytes = socket.read(&mut chunk)?;
        if bytes == 0 {
            return Ok(());
        }
        input.extend_from_slice(&chunk[..bytes]);
        let head = parse_request(&input, &HeadLimits::default()).map_err(io::Error::other)?;
        let Head::Complete(request) = head else { continue };
        let upgrade = request.upgrade.as_ref().ok_or_else(|| io::Error::other("no upgrade"))?;
        let mut out = Vec::new();
        accept(&mut out, upgrade, None, None).map_err(io::Error::other)?;
        socket.write_all(&out)?;
        let head_bytes = request.head_bytes;
        input.drain(..head_bytes);
        break;
    }
    let mut decoder =
        Decoder::new(Role::Server, Limits { message_bytes_max: 64 << 20, ..Limits::default() });
    let mut out = Vec::new();
    loop {
        let mut used = 0;
        while used < input.len() {
            let decoded = decoder.decode(&mut input[used..]).map_err(io::Error::other)?;
            used += decoded.consumed;
            match decoded.item {
                Some(Item::Text(text)) => encode(&mut out, Opcode::Text, text.as_bytes(), None),
                Some(Item::Binary(bytes)) => encode(&mut out, Opcode::Binary, bytes, None),
                Some(Item::Ping(payload)) => encode(&mut out, Opcode::Pong, payload, None),
                Some(Item::Pong(_)) => {}
                Some(Item::Close(close)) => {
                    encode_close(&mut out, close.map_or(1005, |close| close.code), "", None);
                    return socket.write_all(&out);
                }
                None if decoded.consumed == 0 => break,
                None => {}
            }
        }
        input.drain(..used);
        socket.write_all(&out)?;
        out.clear();
        let bytes = socket.read(&mut chunk)?;
        if bytes == 0 {
            return Ok(());
        }
        input.extend_from_slice(&chunk[..bytes]);
    }
}
