//! The baseline: accepts, reads and answers with bytes that are made beforehand, and nothing else.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use socket2::{Domain, Protocol, Socket, Type};

use super::server::report;
use super::{Options, SERVER_CORE, tables};
use crate::clock::pin;
use crate::limits::raise_descriptors;

const LISTENER: Token = Token(usize::MAX);
const BACKLOG: i32 = 4_096;

/// Serves until standard input is closed.
pub(super) fn host(options: &Options) -> io::Result<()> {
    pin(SERVER_CORE)?;
    raise_descriptors();
    // Keeps the port until every thread listens there.
    let reserved = bound((Ipv4Addr::LOCALHOST, 0).into())?;
    let address = reserved.local_addr()?.as_socket().ok_or_else(|| io::Error::other("no port"))?;
    let answers = options.dialogue().answers(options.is_resumable);
    let (listens, listening) = std::sync::mpsc::sync_channel(tables::needed(options.count));
    let threads = tables::needed(options.count);
    for number in 0..threads {
        let (answers, listens) = (answers.clone(), listens.clone());
        tables::spawn(format!("bare-{number}"), move || {
            let socket = bound(address)?;
            socket.listen(BACKLOG)?;
            // Nobody else waits for it.
            let _ = listens.send(());
            drop(listens);
            let served = serve(TcpListener::from_std(socket.into()), &answers);
            if let Err(error) = &served {
                eprintln!("the baseline failed: {error}");
            }
            served
        })?;
    }
    drop(listens);
    if listening.iter().count() < threads {
        return Err(io::Error::other("the baseline can't listen"));
    }
    drop(reserved);
    report(address.port(), || [0; 2])
}

fn bound(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    #[cfg(target_os = "linux")]
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn serve(mut listener: TcpListener, answers: &[Vec<u8>]) -> io::Result<()> {
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    let mut events = Events::with_capacity(1024);
    let mut streams: Vec<Option<(TcpStream, u8)>> = Vec::new();
    let mut vacant: Vec<usize> = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match poll.poll(&mut events, Some(Duration::from_secs(1))) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &events {
            if event.token() == LISTENER {
                while let Ok((mut stream, _)) = listener.accept() {
                    stream.set_nodelay(true)?;
                    let place = vacant.pop().unwrap_or_else(|| {
                        streams.push(None);
                        streams.len() - 1
                    });
                    let interest = Interest::READABLE | Interest::WRITABLE;
                    poll.registry().register(&mut stream, Token(place), interest)?;
                    streams[place] = Some((stream, 0));
                }
                continue;
            }
            let place = event.token().0;
            let Some((stream, answered)) = &mut streams[place] else { continue };
            match stream.read(&mut buffer) {
                // One exchange is under way at a time.
                Ok(1..) => {
                    stream.write_all(&answers[usize::from(*answered)])?;
                    *answered = (*answered + 1).min(answers.len() as u8 - 1);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Ok(0) | Err(_) => {
                    streams[place] = None;
                    vacant.push(place);
                }
            }
        }
    }
}
