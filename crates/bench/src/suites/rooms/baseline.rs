//! The baseline: the cost of a case's system calls alone.
//!
//! One thread holds all connections and writes as many bytes as a patch has to each of them, `hz`
//! times per second, in slices spread over the period. If clients send inputs, it reads them. No
//! server that makes one write per client can be cheaper.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::Options;

/// The maximum number of slices per period. With fewer rooms there are fewer slices, since a server
/// wakes up at most once per room.
const SLICES_MAX: u32 = 50;

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

/// Serves the clients of a case on this listener, once all are connected.
pub(super) fn serve(listener: &TcpListener, case: &Options) -> io::Result<()> {
    Baseline::accept(listener, case)?.serve()
}

impl Baseline {
    fn accept(listener: &TcpListener, case: &Options) -> io::Result<Self> {
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
        Ok(Self { streams, payload: vec![b'x'; case.bytes], slices, hz: case.hz, inputs })
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
