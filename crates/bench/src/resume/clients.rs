//! Strict clients: each checks that what it receives continues what it has.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use playfield_session::Received;
use playfield_wire::client::{self, ClientMessage, Hello, Resume, ResumeRoom};
use playfield_wire::framing::{Framing, PREAMBLE, write_frame_with};
use playfield_wire::message::MessageRef;
use playfield_wire::reader::Reader;
use playfield_wire::server::{self, Resumed, ServerMessage};
use playfield_wire::{Format, RequestNumber, RoomNumber};
use socket2::{Domain, Socket, Type};

use super::history::History;
use super::wrong;
use crate::limits::raise_descriptors;
use crate::source::PER_ADDRESS;

/// How many connections are opened between reads.
const OPENED_AT_ONCE: usize = 64;
/// How long to wait for all clients.
const PATIENCE: Duration = Duration::from_secs(60);

const FORMAT: Format = Format::Packed;

/// All clients.
pub(super) struct Clients {
    node: SocketAddr,
    is_resumable: bool,
    poll: Poll,
    all: Vec<Client>,
    pub(super) counts: Counts,
    fault: Option<String>,
    corrupt: bool,
}

/// What all have received.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) events: u64,
    pub(super) patches: u64,
    welcomed: usize,
    joined: usize,
    settled: usize,
}

/// How long it took until all clients were back.
#[derive(Clone, Copy)]
pub(super) struct Returned {
    /// Until each had its welcome.
    pub(super) welcomed: Duration,
    /// Until each had all events and all changes too.
    pub(super) settled: Duration,
}

/// What the clients have received by the time that they are settled.
#[derive(Clone, Copy)]
pub(super) struct Missed {
    /// Events that rooms sent since the cut, by their own count, summed over clients.
    pub(super) events: u64,
    /// The smallest number of those of one client.
    pub(super) events_min: u64,
}

#[derive(Default)]
struct Client {
    stream: Option<TcpStream>,
    input: Vec<u8>,
    token: Vec<u8>,
    received: Received,
    /// The room's number and epoch.
    room: Option<(RoomNumber, u64)>,
    history: History,
    /// How many counted messages it has sent.
    sent: u32,
    /// The room's hour, by the answer to the last request.
    hour: Option<u64>,
    /// It awaits that answer, and what happened until then.
    settles: bool,
    /// It expects the welcome of a resumed session.
    resumes: bool,
}

impl Clients {
    pub(super) fn new(node: SocketAddr, sessions: usize, is_resumable: bool) -> io::Result<Self> {
        raise_descriptors();
        let all = (0..sessions).map(|_| Client::default()).collect();
        let (counts, fault, corrupt) = (Counts::default(), None, false);
        Ok(Self { node, is_resumable, poll: Poll::new()?, all, counts, fault, corrupt })
    }

    pub(super) fn len(&self) -> usize {
        self.all.len()
    }

    /// What was wrong, if anything.
    pub(super) fn take_fault(&mut self) -> Option<String> {
        self.fault.take()
    }

    /// The next event is read with a wrong number.
    pub(super) fn corrupt(&mut self, corrupt: bool) {
        self.corrupt |= corrupt;
    }

    /// Opens all sessions, and waits until each is in a room.
    pub(super) fn open(&mut self) -> io::Result<()> {
        self.connect_all()?;
        self.until(|counts, all| counts.joined == all)
    }

    /// Resets all connections.
    pub(super) fn cut(&mut self) {
        for client in &mut self.all {
            client.stream = None;
            client.input = Vec::new();
            client.history.cut();
        }
    }

    /// Connects again, and waits until each session is resumed and settled.
    pub(super) fn come_back(&mut self) -> io::Result<Returned> {
        (self.counts.welcomed, self.counts.settled) = (0, 0);
        let began = Instant::now();
        self.connect_all()?;
        self.until(|counts, all| counts.welcomed == all)?;
        let welcomed = began.elapsed();
        self.until_settled();
        Ok(Returned { welcomed, settled: began.elapsed() })
    }

    /// Asks each room which hour it is, and waits until each client has every event and every change
    /// up to then.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        self.counts.settled = 0;
        self.all.iter_mut().try_for_each(Client::ask)?;
        self.until_settled();
        Ok(())
    }

    fn until_settled(&mut self) {
        if let Err(error) = self.until(|counts, all| counts.settled == all) {
            self.fault.get_or_insert(error.to_string());
        }
    }

    /// What settled clients missed since the last cut.
    pub(super) fn missed(&self) -> Missed {
        let events = self
            .all
            .iter()
            .map(|client| client.hour.map_or(0, |hour| client.history.events_since_cut(hour)));
        Missed { events: events.clone().sum(), events_min: events.min().unwrap_or(0) }
    }

    /// Receives for so long.
    pub(super) fn run(&mut self, time: Duration) -> io::Result<()> {
        let ends = Instant::now() + time;
        while Instant::now() < ends {
            self.receive(Duration::from_millis(10))?;
        }
        Ok(())
    }

    /// Acknowledges everything received, so that the node can drop it.
    pub(super) fn acknowledge(&mut self) -> io::Result<()> {
        self.all.iter_mut().try_for_each(Client::acknowledge)?;
        self.run(Duration::from_millis(200))
    }

    fn connect_all(&mut self) -> io::Result<()> {
        for number in 0..self.all.len() {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
            let address = Ipv4Addr::new(127, 0, 0, 1 + (number / PER_ADDRESS) as u8);
            socket.bind(&SocketAddr::from((address, 0)).into())?;
            socket.connect(&self.node.into())?;
            // A reset instead of an orderly end: a lost connection says nothing.
            socket.set_linger(Some(Duration::ZERO))?;
            socket.set_nonblocking(true)?;
            let mut stream = TcpStream::from_std(socket.into());
            self.poll.registry().register(&mut stream, Token(number), Interest::READABLE)?;
            let client = &mut self.all[number];
            stream.write_all(&client.opening(self.is_resumable))?;
            client.stream = Some(stream);
            if number % OPENED_AT_ONCE == 0 {
                self.receive(Duration::ZERO)?;
            }
        }
        Ok(())
    }

    fn until(&mut self, is_done: impl Fn(&Counts, usize) -> bool) -> io::Result<()> {
        let ends = Instant::now() + PATIENCE;
        while !is_done(&self.counts, self.all.len()) && self.fault.is_none() {
            if Instant::now() > ends {
                let Counts { welcomed, joined, settled, .. } = self.counts;
                let text = format!(
                    "after {PATIENCE:?}, of {} clients {welcomed} are welcomed, {joined} have \
                     joined, and {settled} have all that happened",
                    self.all.len()
                );
                return Err(io::Error::new(ErrorKind::TimedOut, text));
            }
            self.receive(Duration::from_millis(10))?;
        }
        Ok(())
    }

    fn receive(&mut self, wait: Duration) -> io::Result<()> {
        let mut events = Events::with_capacity(4096);
        match self.poll.poll(&mut events, Some(wait)) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        let mut buffer = vec![0; 64 << 10];
        for event in &events {
            let number = event.token().0;
            let read = self.all[number].read(&mut buffer, &mut self.counts, &mut self.corrupt);
            if let Err(error) = read {
                self.fault.get_or_insert(format!("client {number}: {error}"));
            }
        }
        Ok(())
    }
}

impl Client {
    /// The hello, and in a new session the request for a room.
    fn opening(&mut self, is_resumable: bool) -> Vec<u8> {
        let mut out = PREAMBLE.to_vec();
        let rooms = self.room.map(|(room, epoch)| ResumeRoom {
            room,
            epoch,
            version: self.history.version,
        });
        let resume = (!self.token.is_empty()).then(|| Resume {
            token: self.token.clone().into(),
            received: self.received.count(),
            rooms: rooms.into_iter().collect(),
        });
        self.resumes = resume.is_some();
        let hello = Hello { resumable: is_resumable, resume, ..Hello::new(FORMAT) };
        say(&mut out, &ClientMessage::Hello(hello));
        if !self.resumes {
            self.sent += 1;
            let join = ClientMessage::JoinOrCreate(client::JoinOrCreate {
                request: RequestNumber(self.sent),
                room_type: "clock".into(),
                key: None,
                options: &[],
            });
            say(&mut out, &join);
        }
        out
    }

    fn read(
        &mut self,
        buffer: &mut [u8],
        counts: &mut Counts,
        corrupt: &mut bool,
    ) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        loop {
            match stream.read(buffer) {
                Ok(0) => return Err(wrong("the node closed the connection")),
                Ok(count) => self.input.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let framing = Framing { message_bytes_max: 1 << 20 };
        let input = std::mem::take(&mut self.input);
        let mut rest = &input[..];
        while let Some(frame) = framing.decode(rest).map_err(io::Error::other)? {
            self.message(frame.body, counts, corrupt)?;
            rest = &rest[frame.consumed..];
        }
        self.input = rest.to_vec();
        if self.settles && self.hour.is_some_and(|hour| self.history.reaches(hour)) {
            self.settles = false;
            counts.settled += 1;
        }
        if self.received.is_due() { self.acknowledge() } else { Ok(()) }
    }

    /// Asks the room which hour it is.
    fn ask(&mut self) -> io::Result<()> {
        let (Some(stream), Some((room, _))) = (&mut self.stream, self.room) else { return Ok(()) };
        self.sent += 1;
        (self.settles, self.hour) = (true, None);
        let (request, message) = (RequestNumber(self.sent), MessageRef::Index(0));
        let mut out = Vec::new();
        say(
            &mut out,
            &ClientMessage::Request(client::Request { room, request, message, payload: b"\0" }),
        );
        stream.write_all(&out)
    }

    fn acknowledge(&mut self) -> io::Result<()> {
        let Some(stream) = self.stream.as_mut().filter(|_| !self.token.is_empty()) else {
            return Ok(());
        };
        let mut out = Vec::new();
        say(&mut out, &ClientMessage::Ack(client::Ack { received: self.received.acknowledge() }));
        stream.write_all(&out)
    }

    fn message(&mut self, body: &[u8], counts: &mut Counts, corrupt: &mut bool) -> io::Result<()> {
        let message = ServerMessage::decode(FORMAT, body).map_err(io::Error::other)?;
        if message.is_counted() {
            self.received.handled(body.len());
        }
        match message {
            ServerMessage::Welcome(server::Welcome { resume, resumed, .. }) => {
                let is_whole = Resumed { lost: Vec::new(), received: self.sent.into() };
                if self.resumes && resumed.as_ref() != Some(&is_whole) {
                    return Err(wrong(&format!("not resumed as it was: {resumed:?}")));
                }
                counts.welcomed += 1;
                self.token = resume.into_owned();
                if std::mem::take(&mut self.resumes) {
                    self.ask()?;
                }
            }
            ServerMessage::Joined(server::Joined { room, epoch, .. }) => {
                counts.joined += 1;
                self.room = Some((room, epoch));
            }
            ServerMessage::Snapshot(server::Snapshot { version, body, .. }) => {
                self.history.snapshot(version, &body)?;
            }
            ServerMessage::Patch(server::Patch { base, version, body, .. }) => {
                self.history.patch(base, version, &body)?;
                counts.patches += 1;
            }
            ServerMessage::Check(server::Check { version, digest, .. }) => {
                self.history.check(version, digest)?;
            }
            ServerMessage::Event(server::Event { sequence, payload, .. }) => {
                let sequence = sequence + u64::from(std::mem::take(corrupt));
                self.history.event(sequence, &payload)?;
                counts.events += 1;
            }
            ServerMessage::Reply(server::Reply { request, payload }) if request.0 == self.sent => {
                self.hour = Some(Reader::new(&payload).varint().map_err(io::Error::other)?);
            }
            ServerMessage::Error(server::Error { code, text, .. })
            | ServerMessage::Goodbye(server::Goodbye { code, text }) => {
                return Err(wrong(&format!("{code}: {text}")));
            }
            _ => {}
        }
        Ok(())
    }
}

fn say(out: &mut Vec<u8>, message: &ClientMessage<'_>) {
    write_frame_with(out, |out| message.encode(FORMAT, out));
}
