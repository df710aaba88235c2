//! The connections of a fleet's clients.

use std::io;
use std::net::SocketAddr;
use std::time::Instant;

use mio::{Registry, Token};
use playfield_client::poll::{Stream, Tls};

use crate::harness::pace::Pace;
use crate::harness::source::Source;

/// The connections of all clients.
pub(crate) struct Links {
    pub(super) registry: Registry,
    pub(super) server: SocketAddr,
    pub(super) source: Source,
    pub(super) tls: Option<Tls>,
    pub(super) all: Vec<Link>,
    pub(super) again: Vec<usize>,
    pub(super) unfinished: Vec<usize>,
    /// Clients that have more to read than they may in one turn.
    pub(super) unread: Vec<usize>,
    /// Clients that may read no more now.
    pub(super) slow: Vec<usize>,
    /// The number of clients that have reached what they connected for, by their script.
    pub(crate) ready: usize,
    /// The time of this turn: what is read in it had arrived by then.
    pub(crate) now: Instant,
}

/// The connection of a client.
#[derive(Default)]
pub(super) struct Link {
    pub(super) stream: Option<Stream>,
    pub(super) is_connected: bool,
    /// An incomplete message.
    pub(super) partial: Vec<u8>,
    /// More may be there to read than was in this turn.
    pub(super) is_unread: bool,
    /// The number of connections so far.
    pub(super) connections: usize,
    /// The speed at which it reads, if not as fast as it can.
    pub(super) pace: Option<Pace>,
}

impl Links {
    /// Sends bytes, and keeps those that the socket does not take yet. Returns whether all are
    /// sent.
    #[inline]
    pub(crate) fn send(&mut self, client: usize, bytes: &[u8]) -> io::Result<bool> {
        match &mut self.all[client].stream {
            Some(stream) => stream.write(bytes),
            None => Ok(true),
        }
    }

    /// Returns whether bytes wait for a client's socket.
    #[inline]
    pub(crate) fn is_blocked(&self, client: usize) -> bool {
        self.all[client].stream.as_ref().is_some_and(Stream::is_blocked)
    }

    /// Has a client read so many bytes a second, or as fast as it can.
    pub(crate) fn pace(&mut self, client: usize, bytes_per_second: Option<f64>) {
        self.all[client].pace = bytes_per_second.map(|bytes| Pace::new(bytes, self.now));
    }

    /// Has [`Script::writable`](super::Script::writable) called again in the next turn: this client
    /// has more to send than it may at once, and its socket is not full.
    pub(crate) fn continue_later(&mut self, client: usize) {
        self.unfinished.push(client);
    }

    /// Makes all clients read in the next turn. No event reports an end that arrived with the last
    /// bytes.
    pub(super) fn read_all(&mut self) {
        for (client, link) in self.all.iter_mut().enumerate() {
            if link.stream.is_some() && !std::mem::replace(&mut link.is_unread, true) {
                self.unread.push(client);
            }
        }
    }

    /// Has a client without a connection connect in this turn.
    pub(crate) fn connect(&mut self, client: usize) {
        self.again.push(client);
    }

    /// Closes a connection, if there is one.
    pub(crate) fn close(&mut self, client: usize) {
        let link = &mut self.all[client];
        (link.stream, link.is_connected, link.partial) = (None, false, Vec::new());
    }

    /// Takes a connection out of the loop, and keeps it open.
    pub(crate) fn take(&mut self, client: usize) -> Option<Stream> {
        self.all[client].stream.take()
    }

    /// Returns whether a client has a connection.
    pub(crate) fn is_open(&self, client: usize) -> bool {
        self.all[client].stream.is_some()
    }

    /// Returns the number of clients that have a connection.
    pub(crate) fn open_count(&self) -> usize {
        self.all.iter().filter(|link| link.stream.is_some()).count()
    }

    pub(super) fn open(&mut self, client: usize) -> io::Result<()> {
        if client >= self.all.len() {
            self.all.resize_with(client + 1, Link::default);
        }
        self.close(client);
        let link = &mut self.all[client];
        let mut stream = self.source.connect(self.server, client, link.connections)?;
        link.connections += 1;
        if let Some(tls) = &self.tls {
            stream.secure(tls)?;
        }
        stream.register(&self.registry, Token(client))?;
        link.stream = Some(stream);
        Ok(())
    }
}
