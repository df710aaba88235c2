//! A custom protocol: frames with a length of four bytes, little endian, each sent back as it is.
//!
//! `cargo run --bin echo` serves it on 127.0.0.1:7400; `cargo run --bin echo -- ADDRESS`
//! elsewhere.

use std::net::SocketAddr;
use std::process::ExitCode;

use playfield::service::{Frame, NativeFrames, Peer, Result, Service};
use playfield::{Config, Server};

/// The service. Each shard has a value of its own, so it needs no lock.
struct Echo;

impl Service for Echo {
    type Connection = (); // what is kept for each client: nothing
    type Codec = NativeFrames; // how the byte stream is cut into frames

    fn codec(&self) -> NativeFrames {
        NativeFrames::new()
    }

    fn connected(&mut self, _: SocketAddr, _: &mut Peer<Self>) {}

    #[inline] // into the loop over the frames of a read
    fn received(&mut self, _: &mut (), frame: Frame<'_>, peer: &mut Peer<Self>) -> Result {
        Ok(peer.reply(frame.body)?)
    }
}

/// `Server::run` reads its settings from the command line. A program with a command line of its own
/// calls `start`.
fn main() -> ExitCode {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7400".to_owned());
    match serve(&address) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{address}: {error}");
            ExitCode::FAILURE
        }
    }
}

fn serve(address: &str) -> std::result::Result<(), Box<dyn std::error::Error>> {
    let address: SocketAddr = address.parse()?;
    let running = Server::new().service(address, |_shard| Echo).start(Config::default())?;
    println!("listening on {}", running.local_addr());
    Ok(running.wait()?)
}
