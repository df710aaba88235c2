//! The player under attack: checks its copy of the room, and notes when patches arrive, or loses
//! its connection and comes back.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use playfield_session::Received;
use playfield_state::Mirror;
use playfield_wire::client::{self, ClientMessage, Hello, Resume, ResumeRoom};
use playfield_wire::framing::{Framing, PREAMBLE};
use playfield_wire::message::MessageRef;
use playfield_wire::reader::Reader;
use playfield_wire::server::{self, Resumed, ServerMessage};
use playfield_wire::{Format, RequestNumber, RoomNumber};
use socket2::SockRef;

use super::intervals::Intervals;
use super::script::frame;
use super::server::Watched;

/// The time to wait for a patch before the watch fails.
const PATIENCE: Duration = Duration::from_secs(30);
/// The least number of intervals in a second. With fewer, the player was not served, and the watch
/// goes on.
const INTERVALS_PER_SECOND_MIN: f64 = 1.0;

const FORMAT: Format = Format::Packed;

/// A player in a room that changes 20 times a second.
pub(super) struct Victim {
    node: SocketAddr,
    stream: TcpStream,
    input: Vec<u8>,
    copy: Mirror<Watched>,
    /// Of the copy; `None` before the first snapshot.
    version: Option<u64>,
    /// Names the session for a return.
    token: Vec<u8>,
    /// The part of the node's messages that counts for a return.
    received: Received,
    /// The number of the room in the session, and its epoch.
    room: (RoomNumber, u64),
    /// The number of the last request.
    requests: u32,
    /// The tick that the room says is its last.
    last_tick: Option<u64>,
    /// The client expects the welcome of a resumed session.
    returns: bool,
    corrupt: bool,
    /// The time until the first snapshot was there.
    pub(super) join_ms: f64,
    /// The number of messages that it has sent.
    pub(super) sent: u64,
    /// When the last patch arrived.
    last: Option<Instant>,
    /// The waits for patches.
    pub(super) intervals: Intervals,
    /// The fault, if there was one.
    pub(super) fault: Option<String>,
}

impl Victim {
    /// Joins the room, and waits for its state.
    pub(super) fn join(
        node: SocketAddr,
        room: &str,
        resumable: bool,
        corrupt: bool,
    ) -> io::Result<Self> {
        let connected = Instant::now();
        let mut victim = Self {
            node,
            stream: connect(node)?,
            input: Vec::new(),
            copy: Mirror::new(),
            version: None,
            token: Vec::new(),
            received: Received::default(),
            room: (RoomNumber(0), 0),
            requests: 1,
            last_tick: None,
            returns: false,
            corrupt,
            join_ms: 0.0,
            sent: 0,
            last: None,
            intervals: Intervals::default(),
            fault: None,
        };
        let hello = Hello { resumable, ..Hello::new(FORMAT) };
        let join =
            ClientMessage::Join(client::Join { request: RequestNumber(1), room: room.into() });
        victim.open(&[ClientMessage::Hello(hello), join])?;
        while victim.version.is_none() && victim.fault.is_none() {
            victim.read(false)?;
        }
        victim.join_ms = connected.elapsed().as_secs_f64() * 1e3;
        Ok(victim)
    }

    /// Records for `time` when patches arrive, and on until enough have arrived.
    pub(super) fn watch(&mut self, time: Duration) -> io::Result<()> {
        let least = (INTERVALS_PER_SECOND_MIN * time.as_secs_f64()).ceil() as u64;
        let began = Instant::now();
        while (began.elapsed() < time || self.intervals.patches < least) && self.fault.is_none() {
            self.read(true)?;
        }
        // The wait since the last patch counts too. Otherwise a stalled node would look even.
        if let Some(last) = self.last {
            self.intervals.end(Instant::now() - last);
        }
        Ok(())
    }

    /// Loses its connection without a word, comes back with its token and its copy, and waits until
    /// a patch of the copy has arrived. How long that took.
    pub(super) fn come_back(&mut self) -> io::Result<Duration> {
        SockRef::from(&self.stream).set_linger(Some(Duration::ZERO))?;
        let began = Instant::now();
        // Closes the other connection.
        self.stream = connect(self.node)?;
        self.input.clear();
        let (room, epoch) = self.room;
        let version = self.version.unwrap_or_default();
        let resume = Resume {
            token: self.token.clone().into(),
            received: self.received.count(),
            rooms: vec![ResumeRoom { room, epoch, version }],
        };
        let hello = Hello { resumable: true, resume: Some(resume), ..Hello::new(FORMAT) };
        self.returns = true;
        self.open(&[ClientMessage::Hello(hello)])?;
        while (self.returns || self.version == Some(version)) && self.fault.is_none() {
            self.read(false)?;
        }
        Ok(began.elapsed())
    }

    /// Asks the room for its last tick, and reads until the copy has it.
    pub(super) fn catch_up(&mut self) -> io::Result<()> {
        self.requests += 1;
        self.last_tick = None;
        let (room, request) = (self.room.0, RequestNumber(self.requests));
        let message = MessageRef::Index(0);
        self.say(&ClientMessage::Request(client::Request {
            room,
            request,
            message,
            payload: b"\0",
        }))?;
        while self.fault.is_none()
            && self.last_tick.is_none_or(|last| self.copy.state().ticks < last)
        {
            self.read(false)?;
        }
        Ok(())
    }

    /// The first messages of a connection.
    fn open(&mut self, messages: &[ClientMessage<'_>]) -> io::Result<()> {
        let mut out = PREAMBLE.to_vec();
        for message in messages {
            frame(&mut out, FORMAT, message);
            self.sent += 1;
        }
        self.stream.write_all(&out)
    }

    fn say(&mut self, message: &ClientMessage<'_>) -> io::Result<()> {
        let mut out = Vec::new();
        frame(&mut out, FORMAT, message);
        self.sent += 1;
        self.stream.write_all(&out)
    }

    fn read(&mut self, is_measured: bool) -> io::Result<()> {
        let mut bytes = [0; 64 << 10];
        let count = self.stream.read(&mut bytes)?;
        let now = Instant::now();
        if count == 0 {
            // The node has said why, if it could.
            self.fault.get_or_insert_with(|| "the node closed the player's connection".to_owned());
        }
        let mut input = std::mem::take(&mut self.input);
        input.extend_from_slice(&bytes[..count]);
        let framing = Framing { message_bytes_max: 1 << 20 };
        let mut rest = &input[..];
        while let Some(frame) = framing.decode(rest).map_err(io::Error::other)? {
            match self.message(frame.body) {
                Ok(false) => {}
                Ok(true) => {
                    if let Some(last) = self.last.replace(now).filter(|_| is_measured) {
                        self.intervals.note(now - last);
                    }
                }
                Err(fault) => {
                    self.fault.get_or_insert(fault);
                }
            }
            rest = &rest[frame.consumed..];
        }
        self.input = rest.to_vec();
        Ok(())
    }

    /// Handles a message. Returns whether it is a patch.
    fn message(&mut self, body: &[u8]) -> Result<bool, String> {
        let message = ServerMessage::decode(FORMAT, body).map_err(|error| error.to_string())?;
        if message.is_counted() {
            self.received.handled(body.len());
        }
        match message {
            ServerMessage::Welcome(server::Welcome { resume, resumed, .. }) => {
                let whole = Resumed { lost: Vec::new(), received: self.requests.into() };
                if std::mem::take(&mut self.returns) && resumed.as_ref() != Some(&whole) {
                    return Err(format!("the player's session came back as {resumed:?}"));
                }
                self.token = resume.into_owned();
            }
            ServerMessage::Joined(server::Joined { room, epoch, .. }) => self.room = (room, epoch),
            ServerMessage::Snapshot(server::Snapshot { version, body, .. }) => {
                self.copy.snapshot(&body).map_err(|error| error.to_string())?;
                self.version = Some(version);
                self.check_copy(0)?;
            }
            ServerMessage::Patch(server::Patch { base, version, body, .. }) => {
                if self.version != Some(base) {
                    return Err(format!("a patch of {base} came to {:?}", self.version));
                }
                let mut body = body.to_vec();
                if std::mem::take(&mut self.corrupt)
                    && let Some(last) = body.last_mut()
                {
                    *last ^= 1;
                }
                let before = self.copy.state().ticks;
                self.copy.patch(&body).map_err(|error| error.to_string())?;
                self.version = Some(version);
                self.check_copy(before + 1)?;
                return Ok(true);
            }
            ServerMessage::Check(server::Check { version, digest, .. })
                if self.version != Some(version) || self.copy.digest() != digest =>
            {
                return Err(format!("the digest differs at version {version}"));
            }
            ServerMessage::Ping(server::Ping { nonce }) => {
                self.say(&ClientMessage::Pong(client::Pong { nonce }))
                    .map_err(|error| error.to_string())?;
            }
            ServerMessage::Reply(server::Reply { payload, .. }) => {
                let mut reader = Reader::new(&payload);
                self.last_tick = Some(reader.varint().map_err(|error| error.to_string())?);
            }
            ServerMessage::Error(server::Error { code, text, .. })
            | ServerMessage::Goodbye(server::Goodbye { code, text }) => {
                return Err(format!("{code}: {text}"));
            }
            _ => {}
        }
        Ok(false)
    }

    /// The copy must be one that the room has had, at this tick or a later one.
    fn check_copy(&self, least: u64) -> Result<(), String> {
        let Watched { ticks, mixed } = *self.copy.state();
        if ticks < least || mixed != Watched::mix(ticks) {
            return Err(format!("the copy is wrong: tick {ticks} of {least}, and {mixed}"));
        }
        Ok(())
    }
}

fn connect(node: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(node)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    Ok(stream)
}
