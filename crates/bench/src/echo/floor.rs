//! The baseline: a server that sends frames back, with one read and one write for each socket that
//! is ready, and nothing else. It makes the system calls of a C program with `epoll`, and parses the
//! length before each frame. By WebSocket, it unmasks each message and sends it back.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use socket2::{Domain, Protocol, Socket, Type};

use super::PREFIX_BYTES;
use super::server::report;
use crate::connections::dialogue::upgraded;

const LISTENER: Token = Token(usize::MAX);
const BACKLOG: i32 = 4_096;
const READ_BYTES: usize = 256 << 10;

struct Peer {
    stream: TcpStream,
    /// An incomplete frame.
    partial: Vec<u8>,
    /// What the socket has not taken.
    unsent: Vec<u8>,
}

/// Serves until standard input is closed.
pub(super) fn host(is_websocket: bool) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    let listener = TcpListener::from_std(socket.into());
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        if let Err(error) = serve(listener, is_websocket) {
            eprintln!("the baseline failed: {error}");
        }
    });
    report(port)
}

fn serve(mut listener: TcpListener, is_websocket: bool) -> io::Result<()> {
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut events = Events::with_capacity(1024);
    let mut peers: Vec<Option<Peer>> = Vec::new();
    let mut buffer = vec![0; 2 * READ_BYTES];
    let mut replies = is_websocket.then(Vec::new);
    loop {
        match poll.poll(&mut events, None) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    let interest = Interest::READABLE | Interest::WRITABLE;
                    poll.registry().register(&mut stream, Token(peers.len()), interest)?;
                    let (partial, unsent) = (Vec::new(), Vec::new());
                    peers.push(Some(Peer { stream, partial, unsent }));
                }
                continue;
            }
            let place = &mut peers[event.token().0];
            if let Some(peer) = place
                && !peer.serve(&mut buffer, replies.as_mut())?
            {
                *place = None;
            }
        }
    }
}

impl Peer {
    /// Reads and answers once, or until a read fills the buffer no more. Whether it is still there.
    fn serve(&mut self, buffer: &mut [u8], mut replies: Option<&mut Vec<u8>>) -> io::Result<bool> {
        loop {
            if !self.unsent.is_empty() {
                match self.stream.write(&self.unsent) {
                    Ok(count) => drop(self.unsent.drain(..count)),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                    Err(_) => return Ok(false),
                }
                if !self.unsent.is_empty() {
                    return Ok(true);
                }
            }
            let kept = self.partial.len();
            buffer[..kept].copy_from_slice(&self.partial);
            let count = match self.stream.read(&mut buffer[kept..][..READ_BYTES]) {
                Ok(0) => return Ok(false),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(_) => return Ok(false),
            };
            let input = &mut buffer[..kept + count];
            let (output, whole) = match &mut replies {
                None => {
                    let whole = whole_frames(input);
                    (&input[..whole], whole)
                }
                Some(replies) => {
                    replies.clear();
                    let whole = answer_messages(input, replies);
                    (&replies[..], whole)
                }
            };
            self.partial.clear();
            self.partial.extend_from_slice(&input[whole..]);
            if whole > 0 {
                let written = match self.stream.write(output) {
                    Ok(written) => written,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
                    Err(_) => return Ok(false),
                };
                self.unsent.extend_from_slice(&output[written..]);
            }
            if count < READ_BYTES {
                return Ok(true);
            }
        }
    }
}

/// Appends the answers to the requests for a WebSocket and the masked messages of up to 64 KiB at the
/// front, and says how many bytes these are.
fn answer_messages(input: &[u8], replies: &mut Vec<u8>) -> usize {
    let mut whole = 0;
    loop {
        let left = &input[whole..];
        let (header, length) = match *left {
            [b'G', ..] => {
                let Some(end) = left.windows(4).position(|end| end == b"\r\n\r\n") else { break };
                replies.extend_from_slice(&upgraded());
                whole += end + 4;
                continue;
            }
            [_, 0xFE, high, low, ..] => (8, usize::from(u16::from_be_bytes([high, low]))),
            [_, length @ 0x80..=0xFD, ..] => (6, usize::from(length & 0x7F)),
            _ => break,
        };
        let Some(message) = left.get(..header + length) else { break };
        let (head, payload) = message.split_at(header);
        let (head, key) = head.split_at(header - 4);
        replies.extend_from_slice(&[0x82, head[1] & 0x7F]);
        replies.extend_from_slice(&head[2..]);
        let key: [u8; 8] = std::array::from_fn(|at| key[at % 4]);
        let begin = replies.len();
        replies.extend_from_slice(payload);
        let (words, rest) = replies[begin..].as_chunks_mut::<8>();
        for word in words {
            *word = (u64::from_ne_bytes(*word) ^ u64::from_ne_bytes(key)).to_ne_bytes();
        }
        rest.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
        whole += message.len();
    }
    whole
}

/// How many bytes at the front are whole frames.
fn whole_frames(input: &[u8]) -> usize {
    let mut whole = 0;
    while let Some(prefix) = input[whole..].first_chunk::<PREFIX_BYTES>() {
        let end = whole + PREFIX_BYTES + u32::from_le_bytes(*prefix) as usize;
        if end > input.len() {
            break;
        }
        whole = end;
    }
    whole
}
