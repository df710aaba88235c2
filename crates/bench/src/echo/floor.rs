//! The baseline: a server that sends frames back, with one read and one write for each socket that
//! is ready, and nothing else. It makes the system calls of a C program with `epoll`, and parses the
//! length before each frame.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use socket2::{Domain, Protocol, Socket, Type};

use super::PREFIX_BYTES;
use super::server::report;

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
pub(super) fn host() -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    let listener = TcpListener::from_std(socket.into());
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        if let Err(error) = serve(listener) {
            eprintln!("the baseline failed: {error}");
        }
    });
    report(port)
}

fn serve(mut listener: TcpListener) -> io::Result<()> {
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut events = Events::with_capacity(1024);
    let mut peers: Vec<Option<Peer>> = Vec::new();
    let mut buffer = vec![0; 2 * READ_BYTES];
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
                && !peer.serve(&mut buffer)?
            {
                *place = None;
            }
        }
    }
}

impl Peer {
    /// Reads and answers once, or until a read fills the buffer no more. Whether it is still there.
    fn serve(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
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
            let input = &buffer[..kept + count];
            let whole = whole_frames(input);
            self.partial.clear();
            self.partial.extend_from_slice(&input[whole..]);
            if whole > 0 {
                let written = match self.stream.write(&input[..whole]) {
                    Ok(written) => written,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
                    Err(_) => return Ok(false),
                };
                self.unsent.extend_from_slice(&input[written..whole]);
            }
            if count < READ_BYTES {
                return Ok(true);
            }
        }
    }
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
