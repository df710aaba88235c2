//! Clients that open connections, a bounded number at a time.

use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use crate::tls::end::{End, Settings};

/// How many connections are being opened at once.
const UNDER_WAY: usize = 32;

/// The longest time without progress on any of them.
const PATIENCE: Duration = Duration::from_secs(20);

/// One connection.
pub(crate) struct Visit {
    stream: TcpStream,
    tls: Option<End>,
    unsent: Vec<u8>,
    /// What came and was not taken yet.
    pub(crate) input: Vec<u8>,
}

/// All connections of one measurement.
pub(crate) struct Visits {
    poll: Poll,
    events: Events,
    buffer: Vec<u8>,
    address: SocketAddr,
    settings: Option<Settings>,
    pub(crate) open: Vec<Option<Visit>>,
}

/// What a client has heard so far.
pub(crate) enum Progress {
    /// More has to come.
    Waits,
    /// The connection has served its purpose, and is closed.
    Leaves,
    /// It has served its purpose, and stays.
    Stays,
}

impl Visits {
    /// Clients of this server, over TLS if there are settings for it.
    pub(crate) fn new(address: SocketAddr, settings: Option<Settings>) -> io::Result<Self> {
        let buffer = vec![0; 64 << 10];
        let events = Events::with_capacity(1024);
        Ok(Self { poll: Poll::new()?, events, buffer, address, settings, open: Vec::new() })
    }

    /// Opens `connections`, and sends what `first` returns for each. `heard` gets everything
    /// received on a connection, and decides what becomes of it.
    pub(crate) fn run(
        &mut self,
        connections: usize,
        mut first: impl FnMut(usize) -> Vec<u8>,
        mut heard: impl FnMut(usize, &mut Vec<u8>) -> io::Result<Progress>,
    ) -> io::Result<()> {
        let (start, end) = (self.open.len(), self.open.len() + connections);
        let mut done = 0;
        while done < connections {
            while self.open.len() < end && self.open.len() - start - done < UNDER_WAY {
                let number = self.open.len();
                let visit = self.connect(number, &first(number))?;
                self.open.push(Some(visit));
            }
            done += self.turn(&mut heard)?;
        }
        Ok(())
    }

    /// Sends something on every open connection, and waits until each has heard enough.
    pub(crate) fn ask_all(
        &mut self,
        mut ask: impl FnMut(usize) -> Vec<u8>,
        mut heard: impl FnMut(usize, &mut Vec<u8>) -> io::Result<Progress>,
    ) -> io::Result<()> {
        let mut waiting = 0;
        for (number, visit) in self.open.iter_mut().enumerate() {
            if let Some(visit) = visit {
                visit.send(&ask(number))?;
                waiting += 1;
            }
        }
        while waiting > 0 {
            waiting -= self.turn(&mut heard)?;
        }
        Ok(())
    }

    fn connect(&mut self, number: usize, first: &[u8]) -> io::Result<Visit> {
        let stream = std::net::TcpStream::connect(self.address)?;
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        let mut stream = TcpStream::from_std(stream);
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut stream, Token(number), interest)?;
        let tls = self.settings.as_ref().map(End::new).transpose()?;
        let mut visit = Visit { stream, tls, unsent: Vec::new(), input: Vec::new() };
        visit.send(first)?;
        Ok(visit)
    }

    /// Reads what came; how many connections have served their purpose with it.
    fn turn(
        &mut self,
        heard: &mut impl FnMut(usize, &mut Vec<u8>) -> io::Result<Progress>,
    ) -> io::Result<usize> {
        match self.poll.poll(&mut self.events, Some(PATIENCE)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(0),
            result => result?,
        }
        if self.events.is_empty() {
            return Err(io::Error::new(ErrorKind::TimedOut, "the server does not answer"));
        }
        let mut done = 0;
        for event in &self.events {
            let number = event.token().0;
            let Some(visit) = &mut self.open[number] else { continue };
            if !visit.read(&mut self.buffer)? {
                continue;
            }
            match heard(number, &mut visit.input)? {
                Progress::Waits => {}
                Progress::Leaves => {
                    self.open[number] = None;
                    done += 1;
                }
                Progress::Stays => done += 1,
            }
        }
        Ok(done)
    }
}

impl Visit {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        match &mut self.tls {
            Some(tls) => tls.seal(bytes, &mut self.unsent)?,
            None => self.unsent.extend_from_slice(bytes),
        }
        self.flush()
    }

    fn flush(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.stream.write(&self.unsent) {
                Ok(written) => drop(self.unsent.drain(..written)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.unsent = Vec::new();
        Ok(())
    }

    /// Writes and reads what there is. Whether something has come.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<bool> {
        let before = self.input.len();
        loop {
            match self.stream.read(buffer) {
                Ok(0) if self.input.len() > before => return Ok(true),
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => match &mut self.tls {
                    Some(tls) => tls.open(&buffer[..count], &mut self.input)?,
                    None => self.input.extend_from_slice(&buffer[..count]),
                },
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.send(&[])?;
        Ok(self.input.len() > before)
    }
}
