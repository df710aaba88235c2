//! The baseline: reads requests of a known length, and writes a response for each, on one thread.
//! No HTTP server can be cheaper that makes one read and one write per request.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};

/// Every request ends with this, and nothing else in it does.
pub(super) const END: u8 = b'!';

/// As long as a reply of the room, nearly.
pub(super) const RESPONSE: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\n\
    Content-Length: 6\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n\r\n123456";

const LISTENER: Token = Token(usize::MAX);

/// Starts the thread. It ends with the process.
pub(super) fn start() -> io::Result<SocketAddr> {
    let mut listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let address = listener.local_addr()?;
    let poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    thread::spawn(move || {
        if let Err(error) = serve(poll, &listener) {
            eprintln!("the baseline failed: {error}");
        }
    });
    Ok(address)
}

fn serve(mut poll: Poll, listener: &TcpListener) -> io::Result<()> {
    let mut events = Events::with_capacity(1024);
    let mut streams: Vec<TcpStream> = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match poll.poll(&mut events, None) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    let token = Token(streams.len());
                    poll.registry().register(&mut stream, token, Interest::READABLE)?;
                    streams.push(stream);
                }
                continue;
            }
            let stream = &mut streams[event.token().0];
            let Ok(count) = stream.read(&mut buffer) else { continue };
            if buffer[..count].ends_with(&[END]) {
                // One request is under way at a time.
                stream.write_all(RESPONSE)?;
            }
        }
    }
}
