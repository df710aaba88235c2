//! A node without rooms: it redirects joins to the node that has them.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use playfield::Format;
use playfield_wire::client::{self, ClientMessage};
use playfield_wire::framing::{Framing, PREAMBLE, write_frame};
use playfield_wire::server::{Pong, Redirect, ServerMessage, Welcome};
use playfield_wire::{PROTOCOL, RequestNumber};

/// The room of this id is at a node that can't be reached.
const GONE: &str = "gone";

/// Listens on a free port until the process ends. Returns the address.
pub(super) fn open(rooms: SocketAddr) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // An error is the end of the connection.
            thread::spawn(move || serve(stream, rooms));
        }
    });
    Ok(address)
}

fn serve(mut stream: TcpStream, rooms: SocketAddr) -> io::Result<()> {
    let mut preamble = [0; PREAMBLE.len()];
    stream.read_exact(&mut preamble)?;
    let (mut unread, mut bytes) = (Vec::new(), [0; 4096]);
    loop {
        let framing = Framing { message_bytes_max: 1 << 20 };
        while let Some(frame) = framing.decode(&unread).map_err(io::Error::other)? {
            let heard = ClientMessage::decode(Format::Packed, frame.body);
            if let Some(said) = answer(&heard.map_err(io::Error::other)?, rooms) {
                let (mut body, mut out) = (Vec::new(), Vec::new());
                said.encode(Format::Packed, &mut body);
                write_frame(&mut out, &body);
                stream.write_all(&out)?;
            }
            let consumed = frame.consumed;
            unread.drain(..consumed);
        }
        match stream.read(&mut bytes)? {
            0 => return Ok(()),
            length => unread.extend_from_slice(&bytes[..length]),
        }
    }
}

fn answer(heard: &ClientMessage<'_>, rooms: SocketAddr) -> Option<ServerMessage<'static>> {
    let redirect = |request: RequestNumber, address: String, reservation: String| {
        let (addresses, reservation) = (vec![address.into()], reservation.into());
        Some(ServerMessage::Redirect(Redirect { request, addresses, reservation }))
    };
    let there = format!("tcp://{rooms}");
    match heard {
        ClientMessage::Hello(_) => Some(ServerMessage::Welcome(Welcome {
            protocol: PROTOCOL,
            session: 1,
            max_message_bytes: 1 << 20,
            ..Welcome::default()
        })),
        ClientMessage::Ping(ping) => {
            Some(ServerMessage::Pong(Pong { nonce: ping.nonce, time_us: 0 }))
        }
        ClientMessage::Join(client::Join { request, room }) if room == GONE => {
            redirect(*request, "tcp://127.0.0.1:1".into(), room.to_string())
        }
        // An id takes the place of a reservation.
        ClientMessage::Join(join) => redirect(join.request, there, join.room.to_string()),
        ClientMessage::JoinByKey(join) => redirect(join.request, there, String::new()),
        ClientMessage::JoinOrCreate(join) => redirect(join.request, there, String::new()),
        ClientMessage::Create(create) => redirect(create.request, there, String::new()),
        _ => None,
    }
}
