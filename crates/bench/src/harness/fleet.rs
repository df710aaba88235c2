//! Many scripted clients on one thread, with one event loop.
//!
//! The fleet connects, reads into one buffer, keeps incomplete messages and what sockets do not
//! take, and waits. What clients say, and whether what they hear is right, is up to the [`Script`].

mod links;

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::ops::Range;
use std::time::{Duration, Instant};

use mio::{Events, Poll};
use playfield_client::poll::Tls;

pub(crate) use self::links::Links;
use super::source::Source;

/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest time between two looks at the clock.
const TURN: Duration = Duration::from_millis(100);
/// The longest time between two looks at what a slow client may read.
const SLOW_TURN: Duration = Duration::from_millis(2);
const READ_BYTES: usize = 256 << 10;
/// The most that is read from a client before the others, the script and the caller get their turn.
/// A server that sends as fast as this thread reads would keep them waiting forever.
const TURN_BYTES: usize = 1 << 20;

/// The behavior of clients. An error of any method is one client's fault.
pub(crate) trait Script {
    /// A client is connected.
    fn opened(&mut self, _client: usize, _links: &mut Links) -> io::Result<()> {
        Ok(())
    }

    /// Bytes have arrived, after those that were not handled the last time. Returns how many are
    /// handled now.
    fn receive(&mut self, client: usize, input: &mut [u8], links: &mut Links) -> io::Result<usize>;

    /// A client's socket takes more.
    fn writable(&mut self, _client: usize, _links: &mut Links) -> io::Result<()> {
        Ok(())
    }

    /// Sends what is due by now. Returns how long the loop may wait.
    fn due(&mut self, _links: &mut Links) -> io::Result<Duration> {
        Ok(TURN)
    }

    /// A client has lost its connection, or can't connect. An error ends the run.
    fn lost(&mut self, client: usize, why: io::Error, _links: &mut Links) -> io::Result<Next> {
        Err(io::Error::new(why.kind(), format!("client {client}: {why}")))
    }

    /// A number that changes as long as the run makes progress.
    fn progress(&self) -> u64;
}

/// The fate of a client without a connection.
pub(crate) enum Next {
    Stay,
    /// Connects again, as soon as it can.
    Connect,
}

/// A loop over clients with one script.
pub(crate) struct Fleet<S> {
    pub(crate) script: S,
    pub(crate) links: Links,
    /// The error that ended the run.
    pub(crate) fault: Option<String>,
    poll: Poll,
    events: Events,
    buffer: Vec<u8>,
}

impl<S: Script> Fleet<S> {
    /// Clients of this server, over TLS if there are settings for it.
    pub(crate) fn new(
        script: S,
        server: SocketAddr,
        source: Source,
        tls: Option<Tls>,
    ) -> io::Result<Self> {
        let poll = Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let links = Links {
            registry,
            server,
            source,
            tls,
            all: Vec::new(),
            again: Vec::new(),
            unfinished: Vec::new(),
            unread: Vec::new(),
            slow: Vec::new(),
            ready: 0,
            now: Instant::now(),
        };
        Ok(Self {
            script,
            links,
            fault: None,
            poll,
            events: Events::with_capacity(1024),
            buffer: vec![0; 2 * READ_BYTES],
        })
    }

    /// Connects clients, so many at once, and waits until all of them are ready.
    pub(crate) fn connect(&mut self, clients: Range<usize>, at_once: usize) {
        self.links.ready = 0;
        let all = clients.len();
        for (opened, client) in clients.enumerate() {
            if let Err(error) = self.open(client) {
                self.fail(&error);
            }
            self.until(|_, links| links.ready.saturating_add(at_once) > opened);
        }
        self.until(|_, links| links.ready >= all);
    }

    /// Continues until this is so, there is a fault, or nothing changes any more.
    pub(crate) fn until(&mut self, is_so: impl Fn(&S, &Links) -> bool) {
        let mut ends = Instant::now() + PATIENCE;
        while self.fault.is_none() && !is_so(&self.script, &self.links) {
            let before = (self.script.progress(), self.links.ready);
            self.turn(TURN);
            if before != (self.script.progress(), self.links.ready) {
                ends = self.links.now + PATIENCE;
            } else if self.links.now > ends {
                self.fail(&io::Error::new(ErrorKind::TimedOut, "nothing comes any more"));
            }
        }
    }

    /// Reads the output that an ended server has sent, until all connections are closed.
    pub(crate) fn drain(&mut self) {
        let ends = Instant::now() + PATIENCE;
        while self.fault.is_none() && self.links.open_count() > 0 {
            self.links.read_all();
            self.turn(TURN);
            if self.links.now > ends {
                self.fail(&io::Error::new(ErrorKind::TimedOut, "connections stay open"));
            }
        }
    }

    /// Continues for this long.
    pub(crate) fn run(&mut self, time: Duration) {
        let ends = Instant::now() + time;
        while self.fault.is_none() && Instant::now() < ends {
            self.turn(ends.saturating_duration_since(Instant::now()).min(TURN));
        }
    }

    /// An error if the run has a fault.
    pub(crate) fn check(&mut self) -> io::Result<()> {
        let wrong = |text| io::Error::new(ErrorKind::InvalidData, text);
        self.fault.take().map_or(Ok(()), |fault| Err(wrong(fault)))
    }

    fn fail(&mut self, error: &io::Error) {
        self.fault.get_or_insert(error.to_string());
    }

    fn turn(&mut self, wait: Duration) {
        if let Err(error) = self.try_turn(wait) {
            self.fail(&error);
        }
    }

    fn try_turn(&mut self, wait: Duration) -> io::Result<()> {
        self.links.now = Instant::now();
        let unfinished = std::mem::take(&mut self.links.unfinished);
        let unread = std::mem::take(&mut self.links.unread);
        unread.iter().for_each(|client| self.links.all[*client].is_unread = false);
        let slow = std::mem::take(&mut self.links.slow);
        let wait = if unfinished.is_empty() && unread.is_empty() { wait } else { Duration::ZERO };
        let wait = if slow.is_empty() { wait } else { wait.min(SLOW_TURN) };
        let wait = self.script.due(&mut self.links)?.min(wait);
        match self.poll.poll(&mut self.events, Some(wait)) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        self.links.now = Instant::now();
        let events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        for event in &events {
            let client = event.token().0;
            let done = self.act(client, event.is_readable(), event.is_writable());
            self.settle(client, done)?;
        }
        self.events = events;
        for client in unfinished {
            let done = self.act(client, false, true);
            self.settle(client, done)?;
        }
        for client in unread.into_iter().chain(slow) {
            if self.links.all[client].is_unread {
                continue; // An event had it read enough for this turn.
            }
            let done = self.act(client, true, false);
            self.settle(client, done)?;
        }
        for client in std::mem::take(&mut self.links.again) {
            self.open(client)?;
        }
        Ok(())
    }

    /// Connects a client. Where the connection is there at once, it begins at once.
    fn open(&mut self, client: usize) -> io::Result<()> {
        let opened = self.links.open(client).and_then(|()| self.act(client, false, false));
        self.settle(client, opened)
    }

    /// Closes the connection of a client that failed, and does what its script says.
    fn settle(&mut self, client: usize, done: io::Result<()>) -> io::Result<()> {
        let Err(error) = done else { return Ok(()) };
        self.links.close(client);
        if let Next::Connect = self.script.lost(client, error, &mut self.links)? {
            self.links.again.push(client);
        }
        Ok(())
    }

    fn act(&mut self, client: usize, is_readable: bool, is_writable: bool) -> io::Result<()> {
        let Self { script, links, .. } = self;
        let link = &mut links.all[client];
        let Some(stream) = &mut link.stream else { return Ok(()) };
        if !link.is_connected {
            if !stream.is_connected()? {
                return Ok(());
            }
            link.is_connected = true;
            script.opened(client, links)?;
        }
        if is_readable {
            self.read(client)?;
        }
        let Self { script, links, .. } = self;
        // Input may need an answer of TLS.
        if (is_writable || links.tls.is_some())
            && let Some(stream) = &mut links.all[client].stream
            && stream.write(&[])?
        {
            script.writable(client, links)?;
        }
        Ok(())
    }

    fn read(&mut self, client: usize) -> io::Result<()> {
        let Self { script, links, buffer, .. } = self;
        let mut left = TURN_BYTES;
        loop {
            let link = &mut links.all[client];
            if left == 0 {
                if !std::mem::replace(&mut link.is_unread, true) {
                    links.unread.push(client);
                }
                return Ok(());
            }
            let Some(stream) = &mut link.stream else { return Ok(()) };
            let most = link.pace.as_mut().map_or(READ_BYTES, |pace| pace.left(links.now));
            let most = most.min(READ_BYTES).min(left);
            if most == 0 {
                if !links.slow.contains(&client) {
                    links.slow.push(client);
                }
                return Ok(());
            }
            let kept = link.partial.len();
            if buffer.len() < kept + READ_BYTES {
                buffer.resize(kept + READ_BYTES, 0);
            }
            buffer[..kept].copy_from_slice(&link.partial);
            let count = match stream.read(&mut buffer[kept..][..most]) {
                Ok(0) => {
                    let text = "the server closed the connection";
                    return Err(io::Error::new(ErrorKind::UnexpectedEof, text));
                }
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            left -= count;
            let is_drained = stream.is_drained(count, most);
            if let Some(pace) = &mut link.pace {
                pace.took(count);
            }
            let connections = link.connections;
            let handled = script.receive(client, &mut buffer[..kept + count], links)?;
            let link = &mut links.all[client];
            if link.connections != connections || link.stream.is_none() {
                return Ok(());
            }
            link.partial.clear();
            link.partial.extend_from_slice(&buffer[handled..kept + count]);
            if is_drained {
                return Ok(());
            }
        }
    }
}

/// An error about what was received.
pub(crate) fn wrong(text: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests;
