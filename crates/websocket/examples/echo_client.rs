//! Runs all cases of the Autobahn suite's fuzzing server, over blocking sockets: echoes every
//! message.
//!
//! Run with its URL: `cargo run -p playfield-websocket --example echo_client --
//! ws://127.0.0.1:9001`.

#[path = "common/mod.rs"]
mod common;

use std::collections::hash_map::RandomState;
use std::env;
use std::error::Error;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::Write as _;
use std::net::TcpStream;

use common::{Buffer, MESSAGE_BYTES_MAX, echo, read_more};
use playfield_websocket::handshake::{ClientHandshake, HeadLimits, Response};
use playfield_websocket::{
    Decoder, Deflate, Deflater, DeflaterOptions, Direction, Item, Limits, Role,
};

const AGENT: &str = "playfield";

fn main() -> Result<(), Box<dyn Error>> {
    let url = env::args()
        .nth(1)
        .ok_or("pass the URL of the fuzzing server, such as ws://127.0.0.1:9001")?;
    let address =
        url.strip_prefix("ws://").ok_or("the URL must begin with ws://")?.trim_end_matches('/');
    let count: u32 = only_text(address, "/getCaseCount")?.parse()?;
    for case in 1..=count {
        // A failed case does not affect the next one.
        if let Err(error) = run(address, &format!("/runCase?case={case}&agent={AGENT}")) {
            eprintln!("case {case}: {error}");
        }
    }
    run(address, &format!("/updateReports?agent={AGENT}"))
}

/// Connects and echoes messages until the server closes.
fn run(address: &str, target: &str) -> Result<(), Box<dyn Error>> {
    let (mut socket, mut input, deflate) = connect(address, target)?;
    let limits = Limits { message_bytes_max: MESSAGE_BYTES_MAX, ..Limits::default() };
    let mut deflater =
        deflate.map(|agreed| Deflater::new(Role::Client, &agreed, DeflaterOptions::default()));
    let decoder = match &deflate {
        Some(agreed) => Decoder::with_deflate(Role::Client, limits, agreed),
        None => Decoder::new(Role::Client, limits),
    };
    let random = RandomState::new();
    let mut drawn = 0;
    let mask = || {
        drawn += 1;
        let mut hasher = random.build_hasher();
        hasher.write_u64(drawn);
        Some((hasher.finish() as u32).to_ne_bytes())
    };
    Ok(echo(&mut socket, &mut input, decoder, deflater.as_mut(), mask)?)
}

/// The only text message that the server sends on a connection.
fn only_text(address: &str, target: &str) -> Result<String, Box<dyn Error>> {
    let (mut socket, mut input, _) = connect(address, target)?;
    let mut decoder = Decoder::new(Role::Client, Limits::default());
    loop {
        if let Some(Item::Text(text)) = decoder.decode(&mut input)?.item {
            return Ok(text.to_owned());
        }
        if !read_more(&mut socket, &mut input)? {
            return Err("the server closed without sending a text".into());
        }
    }
}

fn connect(
    address: &str,
    target: &str,
) -> Result<(TcpStream, Buffer, Option<Deflate>), Box<dyn Error>> {
    let mut socket = TcpStream::connect(address)?;
    let kept = Direction { context_takeover: true, window_bits: 15 };
    let random = RandomState::new().build_hasher().finish();
    let key = u128::from(random).to_ne_bytes();
    let handshake = ClientHandshake::new(address, target, key, &[], &[])?
        .with_deflate(Deflate { server: kept, client: kept });
    socket.write_all(handshake.request())?;
    let mut input = Buffer::new();
    loop {
        if let Response::Complete { head_bytes, deflate, .. } =
            handshake.parse_response(&input, &HeadLimits::default())?
        {
            input.drain(..head_bytes);
            return Ok((socket, input, deflate));
        }
        if !read_more(&mut socket, &mut input)? {
            return Err("the server closed before it answered the handshake".into());
        }
    }
}
