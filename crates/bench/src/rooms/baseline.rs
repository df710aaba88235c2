//! The baseline: the cost of a case's system calls alone.
//!
//! One thread holds all connections and writes as many bytes as a patch has to each of them, `hz`
//! times per second, in slices spread over the period. If clients send inputs, it reads them. No
//! server that makes one write per client can be cheaper.

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

/// The maximum number of slices per period. With fewer rooms there are fewer slices, since a server
/// wakes up at most once per room.
const SLICES_MAX: u32 = 50;

const BACKLOG: i32 = 4_096;

/// The connections and the state needed to serve them.
struct Baseline {
    streams: Vec<TcpStream>,
    payload: Vec<u8>,
    slices: u32,
    hz: u32,
    /// Set if there are inputs to read.
    inputs: Option<Inputs>,
}

struct Inputs {
    poll: Poll,
    events: Events,
    buffer: Vec<u8>,
}

/// Serves the clients of a case, once all are connected, until standard input is closed.
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
            eprintln!("the baseline server failed: {error}");
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
                // Deadlines are absolute: a late slice does not delay the following ones.
                self.wait(due)?;
                due += slice;
                let share = |number: usize| self.streams.len() * number / self.slices as usize;
                let streams = share(number)..share(number + 1);
                for stream in &mut self.streams[streams] {
                    // A connection that is not writable misses this turn, as it would miss a patch.
                    let _ = stream.write(&self.payload);
                }
            }
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "waiting for the next slice is this thread's job"
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
                // The bytes are not needed, and a disconnected client is ignored.
                let _ = self.streams[event.token().0].read(buffer);
            }
            if pause.is_zero() {
                return Ok(());
            }
        }
    }
}
