//! The clients: all in one process on one core, which reads, checks and timestamps messages.

mod check;
mod client;
mod pacer;
mod socket;
mod window;

use std::io;
use std::time::{Duration, Instant};

use mio::{Events, Interest, Poll, Token};

use self::client::{Client, Entry, Room};
use self::pacer::Pacer;
use self::socket::{Cutter, Piece, Socket, put_pong};
use self::window::Window;
use super::case::Case;
use super::hosted::Hosted;
use crate::clock::{delayed, pin, process_cpu};
use crate::limits::raise_descriptors;
use crate::tls::end::Settings;

/// How many connections are in progress at once: fewer than any server's backlog.
const CONNECTING_MAX: usize = 128;

/// The run is aborted after this long without progress.
const PATIENCE: Duration = Duration::from_secs(20);

/// More than a client receives in many periods.
const BUFFER_BYTES: usize = 256 << 10;

/// The delay between reading the server's clock and starting the measurement. It lets this loop
/// recover from the pause that the reading causes.
const CALM: Duration = Duration::from_millis(200);

/// How often, and at what interval, rooms are asked how many inputs they handled before missing
/// ones count as lost.
const COUNTS: u32 = 20;
const COUNT_EVERY: Duration = Duration::from_millis(100);

/// The result of a run.
#[derive(Debug)]
pub(super) struct Outcome {
    pub(super) clients: usize,
    pub(super) seconds: f64,
    /// Messages per second of the slowest client.
    pub(super) hz_slowest: f64,
    pub(super) messages: u64,
    pub(super) bytes: u64,
    pub(super) compared: u64,
    pub(super) interval_ms_p50: f64,
    pub(super) interval_ms_p99: f64,
    /// The server's share of one core.
    pub(super) server_core: f64,
    pub(super) driver_core: f64,
    /// The share of time in which the server was runnable but something else ran.
    pub(super) server_delayed: f64,
    pub(super) driver_delayed: f64,
    pub(super) rss_mb: f64,
    pub(super) inputs_sent: u64,
    /// How many of them the rooms report as handled.
    pub(super) inputs_handled: u64,
    /// Connections that ended early or were refused.
    pub(super) lost: u64,
    pub(super) failure: Option<String>,
}

/// The peer of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// A Playfield server.
    Playfield,
    /// The baseline, which sends this many bytes at a time.
    Baseline { bytes: usize },
}

impl Peer {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Playfield => "playfield",
            Self::Baseline { .. } => "baseline",
        }
    }
}

struct Driver<'a> {
    case: &'a Case,
    peer: Peer,
    tls: Option<Settings>,
    poll: Poll,
    clients: Vec<Client>,
    rooms: Vec<Room>,
    window: Window,
    /// Clients that have not received the server's handshake response.
    connecting: usize,
    /// Clients that have joined their rooms.
    ready: usize,
    lost: u64,
    corrupt_one: bool,
    buffer: Vec<u8>,
    out: Vec<u8>,
}

/// Starts a server and runs a case against it.
///
/// # Errors
/// `InvalidData` if a message is wrong before the measurement begins; other kinds if clients can't
/// join.
pub(super) fn run(case: &Case, peer: Peer, corrupt_one: bool) -> io::Result<Outcome> {
    pin(super::DRIVER_CORE)?;
    raise_descriptors();
    let mut server = Hosted::start(&case.server_arguments(peer))?;
    let mut driver = Driver::new(case, peer, corrupt_one)?;
    driver.fill(&server)?;
    driver.measure(&mut server)
}

impl<'a> Driver<'a> {
    fn new(case: &'a Case, peer: Peer, corrupt_one: bool) -> io::Result<Self> {
        let workload = case.workload();
        let tls = case.transport.is_secure() && peer == Peer::Playfield;
        Ok(Self {
            case,
            peer,
            tls: tls.then(Settings::new).transpose()?,
            poll: Poll::new()?,
            clients: Vec::with_capacity(case.clients()),
            rooms: (0..case.rooms).map(|_| Room::new(&workload)).collect(),
            window: Window::default(),
            connecting: 0,
            ready: 0,
            lost: 0,
            corrupt_one,
            buffer: vec![0; BUFFER_BYTES],
            out: Vec::new(),
        })
    }

    /// Connects all clients and waits until every room is full and every copy is complete.
    fn fill(&mut self, server: &Hosted) -> io::Result<()> {
        let all = self.case.clients();
        let mut progress = (0, Instant::now());
        let mut events = Events::with_capacity(1024);
        while self.ready < all {
            while self.connecting < CONNECTING_MAX && self.clients.len() < all {
                self.connect(server)?;
            }
            self.turn(&mut events, Duration::from_millis(50))?;
            if let Some(failure) = &self.window.failure {
                let (kind, what) = match self.lost {
                    0 => (io::ErrorKind::InvalidData, "a client received wrong data on joining"),
                    _ => (io::ErrorKind::Other, "a client was lost before all had joined"),
                };
                return Err(io::Error::new(kind, format!("{what}: {failure}")));
            }
            let now = (self.clients.len() + self.ready, Instant::now());
            if now.0 > progress.0 {
                progress = now;
            } else if now.1 - progress.1 > PATIENCE {
                let why = format!(
                    "only {} of {all} clients have joined, and none makes progress",
                    self.ready
                );
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
        }
        Ok(())
    }

    fn connect(&mut self, server: &Hosted) -> io::Result<()> {
        let number = self.clients.len();
        let mut socket = Socket::connect(server.address, number, self.tls.as_ref())?;
        let interest = Interest::READABLE | Interest::WRITABLE;
        self.poll.registry().register(&mut socket.stream, Token(number), interest)?;
        let mut client = Client::new(socket, number / self.case.players as usize);
        if self.peer == Peer::Playfield {
            let (cutter, opening) = Cutter::open(self.case.transport, server.address, number)?;
            client.cutter = Some(cutter);
            client.socket.write(&opening)?;
            if matches!(client.cutter, Some(Cutter::Native(_))) {
                client.socket.write(&client::hello(self.case.transport))?;
            }
        }
        self.clients.push(client);
        self.connecting += 1;
        Ok(())
    }

    fn measure(mut self, server: &mut Hosted) -> io::Result<Outcome> {
        let mut events = Events::with_capacity(1024);
        // The baseline receives nothing but inputs, since it does not time out idle clients.
        let is_silent = self.peer != Peer::Playfield && self.case.inputs_hz == 0;
        let mut pacer = if is_silent { Pacer::silent() } else { Pacer::new(self.case) };
        self.turns(&mut events, &mut pacer, self.case.warm_up)?;
        let (server_before, driver_before) =
            (server.stats()?, (process_cpu(), delayed(super::DRIVER_CORE)));
        self.turns(&mut events, &mut pacer, CALM)?;

        let seconds = Duration::from_secs(self.case.seconds.into());
        let expected = self.case.clients() * (self.case.hz * (self.case.seconds + 1)) as usize;
        self.window.open(expected, self.clients.iter_mut().map(|client| &mut client.arrivals));
        let begin = Instant::now();
        self.turns(&mut events, &mut pacer, seconds)?;
        let period = Duration::from_secs(1) / self.case.hz;
        let arrivals = self.clients.iter().map(|client| &client.arrivals);
        let least = self.window.close(Instant::now(), period, arrivals);
        let seconds = begin.elapsed().as_secs_f64();

        let (driver_after, server_after) =
            ((process_cpu(), delayed(super::DRIVER_CORE)), server.stats()?);
        let elapsed = (server_after.at - server_before.at).as_secs_f64();
        let share = |spent: Duration| spent.as_secs_f64() / elapsed;
        let inputs_handled = match self.peer {
            Peer::Playfield => self.inputs_handled(&mut events, pacer.inputs())?,
            Peer::Baseline { .. } => 0,
        };
        let intervals = self.window.intervals_ms();
        Ok(Outcome {
            clients: self.clients.len(),
            seconds,
            hz_slowest: least as f64 / seconds,
            messages: self.window.messages,
            bytes: self.window.bytes,
            compared: self.window.compared,
            interval_ms_p50: intervals.percentile(50.0),
            interval_ms_p99: intervals.percentile(99.0),
            server_core: share(server_after.cpu - server_before.cpu),
            driver_core: share(driver_after.0 - driver_before.0),
            server_delayed: share(server_after.delayed.saturating_sub(server_before.delayed)),
            driver_delayed: share(driver_after.1.saturating_sub(driver_before.1)),
            rss_mb: server_after.resident as f64 / f64::from(1 << 20),
            inputs_sent: pacer.inputs(),
            inputs_handled,
            lost: self.lost,
            failure: self.window.failure,
        })
    }

    /// Asks the rooms how many inputs they handled, until the number equals the inputs sent or
    /// stops growing.
    fn inputs_handled(&mut self, events: &mut Events, sent: u64) -> io::Result<u64> {
        let mut handled = 0;
        for _ in 0..COUNTS {
            if handled == sent {
                break;
            }
            for room in 0..self.rooms.len() {
                let first = room * self.case.players as usize;
                self.out.clear();
                client::count_inputs(
                    self.case.transport,
                    self.clients[first].number,
                    &mut self.out,
                );
                self.write(first);
            }
            self.turns(events, &mut Pacer::silent(), COUNT_EVERY)?;
            handled = self.rooms.iter().map(|room| room.inputs).sum();
        }
        Ok(handled)
    }

    /// Reads, checks and sends what is due, for the given time.
    fn turns(&mut self, events: &mut Events, pacer: &mut Pacer, time: Duration) -> io::Result<()> {
        let end = Instant::now() + time;
        loop {
            let now = Instant::now();
            if now >= end {
                return Ok(());
            }
            while let Some(number) = pacer.due(now, self.clients.len()) {
                self.out.clear();
                pacer.put(self.case.transport, self.clients[number].number, &mut self.out);
                self.write(number);
            }
            self.turn(events, pacer.pause().min(end - now))?;
        }
    }

    /// One iteration of the loop: reads from every readable client.
    fn turn(&mut self, events: &mut Events, timeout: Duration) -> io::Result<()> {
        match self.poll.poll(events, Some(timeout)) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            result => result?,
        }
        // The data arrived before now. The time until this loop reads it is its own, not the
        // server's delay.
        let now = Instant::now();
        for event in events.iter() {
            let number = event.token().0;
            if self.clients[number].lost {
                continue;
            }
            if let Err(what) = self.ready(number, event.is_writable(), now) {
                self.lose(number, what);
            }
        }
        Ok(())
    }

    fn ready(&mut self, number: usize, writable: bool, now: Instant) -> Result<(), String> {
        let client = &mut self.clients[number];
        if writable {
            client.socket.flush().map_err(|error| error.to_string())?;
            if let Peer::Baseline { .. } = self.peer
                && !client.counted
                && client.socket.stream.peer_addr().is_ok()
            {
                client.counted = true;
                self.ready += 1;
                self.connecting -= 1;
            }
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let result = self.read(number, &mut buffer, now);
        self.buffer = buffer;
        result
    }

    fn read(&mut self, number: usize, buffer: &mut [u8], now: Instant) -> Result<(), String> {
        loop {
            let client = &mut self.clients[number];
            let read = client.socket.read(buffer).map_err(|error| error.to_string())?;
            let (filled, more) = read.ok_or("the server ended the connection")?;
            if filled > 0 {
                self.take(number, &mut buffer[..filled], now)?;
            }
            if !more {
                return Ok(());
            }
        }
    }

    /// Handles the bytes received by one client.
    fn take(&mut self, number: usize, received: &mut [u8], now: Instant) -> Result<(), String> {
        if let Peer::Baseline { bytes } = self.peer {
            let client = &mut self.clients[number];
            let begun = client.begun_bytes + received.len();
            client.begun_bytes = begun % bytes;
            self.window.arrived((begun / bytes) as u64, received.len(), &mut client.arrivals, now);
            return Ok(());
        }
        // Taken out, since a message may borrow from the cutter while it is handled.
        let mut cutter = self.clients[number].cutter.take().ok_or("the client is not open")?;
        let mut at = 0;
        self.out.clear();
        while at < received.len() {
            let Some((length, piece)) = cutter.cut(&mut received[at..])? else { break };
            at += length;
            match piece {
                Piece::Message(message) => self.message(number, message, now)?,
                Piece::Opened => self.out.extend(client::hello(self.case.transport)),
                Piece::Ping(payload) => put_pong(&mut self.out, payload),
                Piece::Other => {}
                Piece::Closed => return Err("the server closed the connection".into()),
            }
        }
        let client = &mut self.clients[number];
        client.cutter = Some(cutter);
        client.socket.keep(&received[at..]);
        if !self.out.is_empty() {
            self.write(number);
        }
        Ok(())
    }

    fn message(&mut self, number: usize, message: &[u8], now: Instant) -> Result<(), String> {
        let damaged;
        let mut message = message;
        if self.corrupt_one && self.window.is_open() && client::is_patch(message) {
            self.corrupt_one = false;
            let mut bytes = message.to_vec();
            bytes[message.len() / 2] ^= 1;
            damaged = bytes;
            message = &damaged;
        }
        let client = &mut self.clients[number];
        let room = &mut self.rooms[client.room];
        let was_seated = client.is_seated();
        let entry = client.take(
            room,
            message,
            self.case.transport,
            &mut self.window,
            &mut self.out,
            now,
        )?;
        if !was_seated && client.is_seated() {
            self.ready += 1;
        }
        match entry {
            Entry::None => {}
            Entry::Welcomed => {
                self.connecting -= 1;
                self.rooms[self.clients[number].room].enter(number, self.case, &mut self.out);
            }
            Entry::Created => {
                let room = self.clients[number].room;
                for waiting in self.rooms[room].take_waiting() {
                    let mut out = Vec::new();
                    self.rooms[room].enter(waiting, self.case, &mut out);
                    self.clients[waiting].socket.write(&out).map_err(|error| error.to_string())?;
                }
            }
        }
        Ok(())
    }

    /// Writes the contents of `out` to a client's socket.
    fn write(&mut self, number: usize) {
        let client = &mut self.clients[number];
        if client.lost {
            return;
        }
        if let Err(error) = client.socket.write(&self.out) {
            self.lose(number, error.to_string());
        }
    }

    fn lose(&mut self, number: usize, what: String) {
        self.clients[number].lost = true;
        self.lost += 1;
        self.window.fail(format!("client {number}: {what}"));
    }
}
