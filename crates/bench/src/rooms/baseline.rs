//! The baseline: what the system calls of a case cost when nothing else is done.
//!
//! One thread holds all connections and writes a patch's number of bytes to each, `hz` times a
//! second, in slices spread over the period; where clients send inputs it reads them. No server
//! that makes one write a client can be cheaper.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use socket2::{Domain, Protocol, Type};

use super::case::Case;
use super::hosted::report;
use crate::clock::pin;
use crate::limits::raise_descriptors;

/// The most slices that a period is cut into: fewer where there are fewer rooms, since a server
/// wakes up once a room at most.
const SLICES_MAX: u32 = 50;

const BACKLOG: i32 = 4_096;

/// The connections, and how they are served.
struct Baseline {
    streams: Vec<TcpStream>,
    payload: Vec<u8>,
    slices: u32,
    hz: u32,
    /// Where there are inputs to read.
    inputs: Option<Inputs>,
}

struct Inputs {
    poll: Poll,
    events: Events,
    buffer: Vec<u8>,
}

/// Serves the clients of a case, once they are all there, until the input ends.
pub(super) fn host(case: &Case, bytes: usize) -> io::Result<()> {
    pin(super::SERVER_CORE)?;
    raise_descriptors();
    let socket = socket2::Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    socket.listen(BACKLOG)?;
    let listener = std::net::TcpListener::from(socket);
    let port = listener.local_addr()?.port();
    let case = case.clone();
    thread::spawn(move || {
        if let Err(error) = Baseline::accept(&listener, &case, bytes).and_then(Baseline::serve) {
            eprintln!("the baseline could not serve: {error}");
        }
    });
    report(port)
}

impl Baseline {
    fn accept(listener: &std::net::TcpListener, case: &Case, bytes: usize) -> io::Result<Self> {
        let mut inputs = match case.inputs_hz {
            0 => None,
            _ => Some(Inputs {
                poll: Poll::new()?,
                events: Events::with_capacity(1024),
                buffer: vec![0; 64 << 10],
            }),
        };
        let mut streams = Vec::with_capacity(case.clients());
        for number in 0..case.clients() {
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(stream);
            if let Some(inputs) = &mut inputs {
                inputs.poll.registry().register(&mut stream, Token(number), Interest::READABLE)?;
            }
            streams.push(stream);
        }
        let slices = case.rooms.clamp(1, SLICES_MAX);
        Ok(Self { streams, payload: vec![b'x'; bytes], slices, hz: case.hz, inputs })
    }

    fn serve(mut self) -> io::Result<()> {
        let slice = Duration::from_secs(1) / (self.hz * self.slices);
        let mut due = Instant::now();
        loop {
            for number in 0..self.slices as usize {
                // Deadlines are absolute: a late slice does not make all that follow late.
                self.wait(due)?;
                due += slice;
                let share = |number: usize| self.streams.len() * number / self.slices as usize;
                let streams = share(number)..share(number + 1);
                for stream in &mut self.streams[streams] {
                    // A connection that takes no more misses this turn, as it would a patch.
                    let _ = stream.write(&self.payload);
                }
            }
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "waiting for the next slice is this thread's work"
    )]
    fn wait(&mut self, due: Instant) -> io::Result<()> {
        let Some(Inputs { poll, events, buffer }) = &mut self.inputs else {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            return Ok(());
        };
        loop {
            let pause = due.saturating_duration_since(Instant::now());
            match poll.poll(events, Some(pause)) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
                _ => {}
            }
            for event in &*events {
                // What is read is nobody's business here, and a client that is gone neither.
                let _ = self.streams[event.token().0].read(buffer);
            }
            if pause.is_zero() {
                return Ok(());
            }
        }
    }
}
