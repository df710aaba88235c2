//! Many connections on one event loop, and what comes on each, message by message.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::connections::dialogue::{Dialogue, Frame, wrong};
use crate::source;

/// Who listens to what comes on the connections.
pub(crate) trait Listens {
    /// What came on a connection. Returns what to send back, if anything.
    fn hear(&mut self, client: usize, heard: Frame<'_>) -> io::Result<Option<Rc<[u8]>>>;
}

/// The connections.
pub(crate) struct Crowd {
    server: SocketAddr,
    dialogue: Dialogue,
    /// The second byte of the address that they come from.
    network: u8,
    poll: Poll,
    events: Events,
    clients: Vec<Client>,
    buffer: Vec<u8>,
}

#[derive(Default)]
struct Client {
    stream: Option<TcpStream>,
    /// An incomplete message.
    input: Vec<u8>,
    /// What the socket has not taken yet, from where on.
    unsent: Option<(Rc<[u8]>, usize)>,
}

impl Crowd {
    pub(crate) fn new(server: SocketAddr, dialogue: Dialogue, network: u8) -> io::Result<Self> {
        Ok(Self {
            server,
            dialogue,
            network,
            poll: Poll::new()?,
            events: Events::with_capacity(1024),
            clients: Vec::new(),
            buffer: vec![0; 64 << 10],
        })
    }

    /// Connects a client, for the first time or again, and sends its first bytes.
    pub(crate) fn open(&mut self, client: usize, opening: &Rc<[u8]>) -> io::Result<()> {
        let socket = source::connect(self.server, self.network, client)?;
        socket.set_tcp_nodelay(true)?;
        let mut stream = TcpStream::from_std(socket.into());
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut stream, Token(client), interest)?;
        if client >= self.clients.len() {
            self.clients.resize_with(client + 1, Client::default);
        }
        self.clients[client] = Client { stream: Some(stream), ..Client::default() };
        self.send(client, opening)
    }

    /// Resets a connection.
    pub(crate) fn cut(&mut self, client: usize) {
        self.clients[client] = Client::default();
    }

    /// Sends bytes, now or as soon as the socket takes them.
    pub(crate) fn send(&mut self, client: usize, bytes: &Rc<[u8]>) -> io::Result<()> {
        let client = &mut self.clients[client];
        client.unsent = Some(match client.unsent.take() {
            Some((before, at)) => ([&before[at..], bytes].concat().into(), 0),
            None => (Rc::clone(bytes), 0),
        });
        client.write()
    }

    /// Waits for at most so long, and hands out what has come.
    pub(crate) fn turn(&mut self, wait: Duration, listener: &mut impl Listens) -> io::Result<()> {
        let mut events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        match self.poll.poll(&mut events, Some(wait)) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &events {
            let number = event.token().0;
            self.clients[number].write()?;
            if event.is_readable() {
                self.read(number, listener)?;
            }
        }
        self.events = events;
        Ok(())
    }

    fn read(&mut self, number: usize, listener: &mut impl Listens) -> io::Result<()> {
        let client = &mut self.clients[number];
        loop {
            let Some(stream) = &mut client.stream else { return Ok(()) };
            let count = match stream.read(&mut self.buffer) {
                Ok(0) => return Err(wrong(&format!("client {number} was disconnected"))),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            };
            let mut kept = std::mem::take(&mut client.input);
            let mut rest = &self.buffer[..count];
            if !kept.is_empty() {
                kept.extend_from_slice(rest);
                rest = &kept;
            }
            while let Some((heard, consumed)) = self.dialogue.frame(rest)? {
                if let Some(bytes) = listener.hear(number, heard)? {
                    client.unsent = Some(match client.unsent.take() {
                        Some((before, at)) => ([&before[at..], &bytes].concat().into(), 0),
                        None => (bytes, 0),
                    });
                }
                rest = &rest[consumed..];
            }
            if !rest.is_empty() {
                client.input = rest.to_vec();
            }
            client.write()?;
            // A socket that gave less than it could has no more.
            if count < self.buffer.len() {
                return Ok(());
            }
        }
    }
}

impl Client {
    fn write(&mut self) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        while let Some((bytes, at)) = &mut self.unsent {
            match stream.write(&bytes[*at..]) {
                Ok(count) => *at += count,
                Err(error)
                    if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) =>
                {
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
            if *at >= bytes.len() {
                self.unsent = None;
            }
        }
        Ok(())
    }
}
