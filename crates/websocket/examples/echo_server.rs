//! Echoes every message, over blocking sockets with one thread per connection.
//!
//! Run with a port: `cargo run -p playfield-websocket --example echo_server -- 9001`. Without a
//! port, or with 0, the system picks one. The address is printed.

#[path = "common/mod.rs"]
mod common;

use std::env;
use std::error::Error;
use std::io::Write as _;
use std::net::{TcpListener, TcpStream};
use std::thread;

use common::{Buffer, MESSAGE_BYTES_MAX, echo, read_more};
use playfield_websocket::handshake::{Head, HeadLimits, accept, parse_request, reject};
use playfield_websocket::{Decoder, Deflate, Deflater, DeflaterOptions, Direction, Limits, Role};

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
    let Some(deflate) = shake_hands(&mut socket, &mut input)? else { return Ok(()) };
    let limits = Limits { message_bytes_max: MESSAGE_BYTES_MAX, ..Limits::default() };
    let mut deflater =
        deflate.map(|agreed| Deflater::new(Role::Server, &agreed, DeflaterOptions::default()));
    let decoder = match &deflate {
        Some(agreed) => Decoder::with_deflate(Role::Server, limits, agreed),
        None => Decoder::new(Role::Server, limits),
    };
    Ok(echo(&mut socket, &mut input, decoder, deflater.as_mut(), || None)?)
}

/// Answers the request. If it upgrades the connection, returns the negotiated compression, and
/// `input` holds what followed the request.
fn shake_hands(
    socket: &mut TcpStream,
    input: &mut Buffer,
) -> Result<Option<Option<Deflate>>, Box<dyn Error>> {
    let kept = Direction { context_takeover: true, window_bits: 15 };
    loop {
        let mut out = Vec::new();
        let accepted = match parse_request(input, &HeadLimits::default()) {
            Ok(Head::Partial) => {
                if !read_more(socket, input)? {
                    return Ok(None);
                }
                continue;
            }
            Ok(Head::Complete(request)) => match &request.upgrade {
                Some(upgrade) => {
                    let agreed = upgrade.deflate(&Deflate { server: kept, client: kept });
                    accept(&mut out, upgrade, None, agreed.as_ref())?;
                    Some((request.head_bytes, agreed.map(|agreed| *agreed.deflate())))
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
        return Ok(accepted.map(|(head_bytes, deflate)| {
            input.drain(..head_bytes);
            deflate
        }));
    }
}
