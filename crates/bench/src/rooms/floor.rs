//! The floor: what the sends of a tick cost when nothing else is done.
//!
//! One thread holds all connections and writes a patch's number of bytes to each, `hz` times a second, in slices spread over the
//! period. No server that makes one write a client can be cheaper.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{Domain, Protocol, Type};

use super::hosted::report;
use crate::clock::pin;
use crate::limits::raise_descriptors;

/// How many slices a period is cut into.
const SLICES: u32 = 50;

const BACKLOG: i32 = 4_096;

/// Serves `connections`, once they are all there, until the input ends.
pub(super) fn host(connections: usize, bytes: usize, hz: u32) -> io::Result<()> {
    pin(super::SERVER_CORE)?;
    raise_descriptors();
    let socket = socket2::Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    socket.listen(BACKLOG)?;
    let listener = std::net::TcpListener::from(socket);
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        let accepted = (0..connections).map(|_| {
            let (stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            Ok(stream)
        });
        match accepted.collect::<io::Result<Vec<TcpStream>>>() {
            Ok(streams) => send(&streams, bytes, hz),
            Err(error) => eprintln!("the floor could not accept: {error}"),
        }
    });
    report(port)
}

#[expect(clippy::disallowed_methods, reason = "waiting for the next slice is this thread's work")]
fn send(streams: &[TcpStream], bytes: usize, hz: u32) {
    let payload = vec![b'x'; bytes];
    let slice = Duration::from_secs(1) / (hz * SLICES);
    let mut due = Instant::now();
    loop {
        for number in 0..SLICES as usize {
            // Deadlines are absolute: a late slice does not make all that follow late.
            thread::sleep(due.saturating_duration_since(Instant::now()));
            due += slice;
            let share = |number: usize| streams.len() * number / SLICES as usize;
            for mut stream in &streams[share(number)..share(number + 1)] {
                // A connection that takes no more misses this turn, as it would a patch.
                let _ = stream.write(&payload);
            }
        }
    }
}
