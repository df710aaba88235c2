//! The bare server of baselines: it accepts, reads, answers and does nothing else, with one read
//! and one write for each socket that is ready. It makes the system calls of a C program with
//! `epoll`.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use socket2::{Domain, Protocol, Socket, Type};

use super::machine::{SERVER_CORE, pin};
use super::tables;

const LISTENER: Token = Token(usize::MAX);
const BACKLOG: i32 = 4_096;
const READ_BYTES: usize = 256 << 10;

/// The server's use of what it reads.
pub(crate) trait Answer: Clone + Send + 'static {
    /// Its knowledge of a connection.
    type Peer: Default;

    /// Appends the answer to what was read, after what was not handled the last time. Returns how
    /// much is handled now, and where the answer is.
    fn answer<'a>(
        &'a mut self,
        peer: &mut Self::Peer,
        input: &'a [u8],
        out: &'a mut Vec<u8>,
    ) -> (usize, &'a [u8]);
}

/// Starts a bare server of this process, on the server's core, on as many threads as connections
/// need tables of descriptors. Returns its address.
pub(crate) fn start(answer: &impl Answer, connections: usize) -> io::Result<SocketAddr> {
    pin(SERVER_CORE)?;
    let threads = tables::needed(connections);
    // Keeps the port until every thread listens there.
    let reserved = bound((Ipv4Addr::LOCALHOST, 0).into(), threads > 1)?;
    let address = reserved.local_addr()?.as_socket().ok_or_else(|| io::Error::other("no port"))?;
    if threads == 1 {
        reserved.listen(BACKLOG)?;
        let answer = answer.clone();
        thread::spawn(move || report(serve(TcpListener::from_std(reserved.into()), answer)));
        return Ok(address);
    }
    let (listens, listening) = std::sync::mpsc::sync_channel(threads);
    for number in 0..threads {
        let (answer, listens) = (answer.clone(), listens.clone());
        tables::spawn(format!("bare-{number}"), move || {
            let socket = bound(address, true)?;
            socket.listen(BACKLOG)?;
            // Nobody else waits for it.
            let _ = listens.send(());
            drop(listens);
            report(serve(TcpListener::from_std(socket.into()), answer));
            Ok(())
        })?;
    }
    drop(listens);
    if listening.iter().count() < threads {
        return Err(io::Error::other("the baseline can't listen"));
    }
    Ok(address)
}

/// A listener that blocks, for baselines with loops of their own.
pub(crate) fn listener() -> io::Result<std::net::TcpListener> {
    let socket = bound((Ipv4Addr::LOCALHOST, 0).into(), false)?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(false)?;
    Ok(socket.into())
}

/// Says what went wrong on standard error.
pub(crate) fn report(served: io::Result<()>) {
    if let Err(error) = served {
        eprintln!("the baseline failed: {error}");
    }
}

fn bound(address: SocketAddr, is_shared: bool) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    #[cfg(target_os = "linux")]
    if is_shared {
        socket.set_reuse_address(true)?;
        socket.set_reuse_port(true)?;
    }
    #[cfg(not(target_os = "linux"))]
    let _ = is_shared;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

struct Peer<P> {
    stream: TcpStream,
    /// Bytes that were not handled.
    partial: Vec<u8>,
    /// Bytes that the socket has not taken.
    unsent: Vec<u8>,
    known: P,
}

fn serve<A: Answer>(mut listener: TcpListener, mut answer: A) -> io::Result<()> {
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut events = Events::with_capacity(1024);
    let mut peers: Vec<Option<Peer<A::Peer>>> = Vec::new();
    let mut vacant: Vec<usize> = Vec::new();
    let (mut buffer, mut out) = (vec![0; 2 * READ_BYTES], Vec::new());
    loop {
        match poll.poll(&mut events, None) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    let place = vacant.pop().unwrap_or_else(|| {
                        peers.push(None);
                        peers.len() - 1
                    });
                    let interest = Interest::READABLE | Interest::WRITABLE;
                    poll.registry().register(&mut stream, Token(place), interest)?;
                    let (partial, unsent) = (Vec::new(), Vec::new());
                    peers[place] =
                        Some(Peer { stream, partial, unsent, known: A::Peer::default() });
                }
                continue;
            }
            let place = event.token().0;
            if let Some(peer) = &mut peers[place]
                && peer.serve(&mut answer, &mut buffer, &mut out).is_err()
            {
                peers[place] = None;
                vacant.push(place);
            }
        }
    }
}

impl<P> Peer<P> {
    /// Reads and answers once, or until a read fills the buffer no more. An error is its end.
    fn serve<A: Answer<Peer = P>>(
        &mut self,
        answer: &mut A,
        buffer: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        loop {
            if !self.unsent.is_empty() {
                let count = some(self.stream.write(&self.unsent))?;
                self.unsent.drain(..count);
                if !self.unsent.is_empty() {
                    return Ok(());
                }
            }
            let kept = self.partial.len();
            if buffer.len() < kept + READ_BYTES {
                buffer.resize(kept + READ_BYTES, 0);
            }
            buffer[..kept].copy_from_slice(&self.partial);
            let count = match self.stream.read(&mut buffer[kept..][..READ_BYTES]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                read => some(read)?,
            };
            if count == 0 {
                return Ok(());
            }
            let input = &buffer[..kept + count];
            out.clear();
            let (handled, answer) = answer.answer(&mut self.known, input, out);
            self.partial.clear();
            self.partial.extend_from_slice(&input[handled..]);
            if !answer.is_empty() {
                let written = some(self.stream.write(answer))?;
                self.unsent.extend_from_slice(&answer[written..]);
            }
            if count < READ_BYTES {
                return Ok(());
            }
        }
    }
}

/// Returns the number of bytes read or written: zero if the socket would block.
fn some(done: io::Result<usize>) -> io::Result<usize> {
    match done {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        done => done,
    }
}
