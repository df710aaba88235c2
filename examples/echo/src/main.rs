//! A protocol of one's own: frames of a `u32` length, little endian, and so many bytes, each of
//! which is sent back.

use std::net::SocketAddr;
use std::process::ExitCode;

use playfield::Server;
use playfield::service::{Frame, NativeFrames, Peer, Result, Service};

/// The service. There is one value of it for each shard.
struct Echo;

impl Service for Echo {
    type Connection = (); // nothing is kept for a client
    type Codec = NativeFrames;

    fn codec(&self) -> NativeFrames {
        NativeFrames::new()
    }

    fn connected(&mut self, _: SocketAddr, _: &mut Peer<Self>) {}

    #[inline] // into the loop over the frames of a read
    fn received(&mut self, _: &mut (), frame: Frame<'_>, peer: &mut Peer<Self>) -> Result {
        Ok(peer.reply(frame.body)?)
    }
}

fn main() -> ExitCode {
    Server::new().service(([127, 0, 0, 1], 7400), |_shard| Echo).run()
}
