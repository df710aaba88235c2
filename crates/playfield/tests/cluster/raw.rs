//! A client that shows what a node sends.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use playfield_wire::Format;
use playfield_wire::client::{ClientMessage, Hello, Resume};
use playfield_wire::server::ServerMessage;

/// The time after which a test fails that waits for a message.
const PATIENCE: Duration = Duration::from_secs(60);

/// A connection to a node, by native framing.
pub(crate) struct Raw(TcpStream);

impl Raw {
    /// Connects to a URL such as `tcp://127.0.0.1:7350`.
    pub(crate) fn connect(url: &str) -> Self {
        let address = url.strip_prefix("tcp://").unwrap();
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"PF1\n").unwrap();
        Self(stream)
    }

    /// Connects, and says hello as a client that follows redirects.
    pub(crate) fn hello(url: &str, name: &str, resume: Option<Resume<'static>>) -> Self {
        let mut raw = Self::connect(url);
        raw.send(&ClientMessage::Hello(Hello {
            name: name.into(),
            resumable: true,
            redirects: true,
            resume,
            ..Hello::new(Format::Packed)
        }));
        raw
    }

    pub(crate) fn send(&mut self, message: &ClientMessage<'_>) {
        let mut body = Vec::new();
        message.encode(Format::Packed, &mut body);
        let mut frame = (body.len() as u32).to_le_bytes().to_vec();
        frame.extend(body);
        self.0.write_all(&frame).unwrap();
    }

    /// The next message of the node but schemas, states, acknowledgments and pings.
    pub(crate) fn next(&mut self) -> ServerMessage<'static> {
        loop {
            let mut length = [0; 4];
            self.0.read_exact(&mut length).unwrap();
            let mut body = vec![0; u32::from_le_bytes(length) as usize];
            self.0.read_exact(&mut body).unwrap();
            // A test's messages live as long as it does.
            let body: &'static [u8] = body.leak();
            match ServerMessage::decode(Format::Packed, body).unwrap() {
                ServerMessage::Snapshot(_)
                | ServerMessage::Patch(_)
                | ServerMessage::Schema(_)
                | ServerMessage::Ack(_)
                | ServerMessage::Ping(_) => {}
                message => return message,
            }
        }
    }
}
