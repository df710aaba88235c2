//! The player under attack: checks its copy of the room, and notes when patches arrive.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use playfield_state::Mirror;
use playfield_wire::client::{ClientMessage, Hello};
use playfield_wire::framing::{Framing, PREAMBLE};
use playfield_wire::message::MessageRef;
use playfield_wire::reader::Reader;
use playfield_wire::server::ServerMessage;
use playfield_wire::{Format, RequestNumber, RoomNumber};

use super::script::frame;
use super::server::Watched;

/// How long to wait for a patch before the watch fails.
const PATIENCE: Duration = Duration::from_secs(30);
/// The least number of intervals in a second. With fewer, the player was not served, and the watch
/// goes on.
const INTERVALS_PER_SECOND_MIN: f64 = 1.0;

const FORMAT: Format = Format::Packed;

/// A player in a room that changes 20 times a second.
pub(super) struct Victim {
    stream: TcpStream,
    input: Vec<u8>,
    copy: Mirror<Watched>,
    /// Of the copy; `None` before the first snapshot.
    version: Option<u64>,
    /// The number of the room in the session.
    room: RoomNumber,
    /// The tick that the room says is its last.
    last_tick: Option<u64>,
    corrupt: bool,
    /// When it connected.
    connected: Instant,
    /// How long it took until the first snapshot was there.
    pub(super) join_ms: f64,
    /// When the last patch arrived.
    last: Option<Instant>,
    /// The times between patches.
    pub(super) intervals_ms: Vec<f64>,
    /// What was wrong, if anything.
    pub(super) fault: Option<String>,
}

impl Victim {
    pub(super) fn join(node: SocketAddr, room: &str, corrupt: bool) -> io::Result<Self> {
        let connected = Instant::now();
        let mut stream = TcpStream::connect(node)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut out = PREAMBLE.to_vec();
        let join = ClientMessage::Join { request: RequestNumber(1), room: room.into() };
        for message in [ClientMessage::Hello(Hello::new(FORMAT)), join] {
            frame(&mut out, FORMAT, &message);
        }
        stream.write_all(&out)?;
        Ok(Self {
            stream,
            input: Vec::new(),
            copy: Mirror::new(),
            version: None,
            room: RoomNumber(0),
            last_tick: None,
            corrupt,
            connected,
            join_ms: 0.0,
            last: None,
            intervals_ms: Vec::new(),
            fault: None,
        })
    }

    /// Records for `time` when patches arrive, and on until enough have arrived.
    pub(super) fn watch(&mut self, time: Duration) -> io::Result<()> {
        let least = (INTERVALS_PER_SECOND_MIN * time.as_secs_f64()).ceil() as usize;
        let began = Instant::now();
        while (began.elapsed() < time || self.intervals_ms.len() < least) && self.fault.is_none() {
            self.read(true)?;
        }
        // The wait since the last patch counts too. Otherwise a stalled node would look even.
        if let Some(last) = self.last {
            let open: Duration = Instant::now() - last;
            if open > Duration::from_millis(50) {
                self.intervals_ms.push(open.as_secs_f64() * 1e3);
            }
        }
        Ok(())
    }

    /// Asks the room for its last tick, and reads until the copy has it.
    pub(super) fn catch_up(&mut self) -> io::Result<()> {
        let mut out = Vec::new();
        let (room, request) = (self.room, RequestNumber(2));
        let message = MessageRef::Index(0);
        let ask = ClientMessage::Request { room, request, message, payload: b"\0" };
        frame(&mut out, FORMAT, &ask);
        self.stream.write_all(&out)?;
        while self.fault.is_none()
            && self.last_tick.is_none_or(|last| self.copy.state().ticks < last)
        {
            self.read(false)?;
        }
        Ok(())
    }

    fn read(&mut self, is_measured: bool) -> io::Result<()> {
        let mut bytes = [0; 64 << 10];
        let count = self.stream.read(&mut bytes)?;
        let now = Instant::now();
        if count == 0 {
            self.fault = Some("the node closed the player's connection".to_owned());
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
                        let interval: Duration = now - last;
                        self.intervals_ms.push(interval.as_secs_f64() * 1e3);
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
        match message {
            ServerMessage::Joined { room, .. } => self.room = room,
            ServerMessage::Snapshot { version, body, .. } => {
                self.copy.snapshot(body).map_err(|error| error.to_string())?;
                if self.version.replace(version).is_none() {
                    self.join_ms = self.connected.elapsed().as_secs_f64() * 1e3;
                }
                self.check_copy(0)?;
            }
            ServerMessage::Patch { base, version, body, .. } => {
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
            ServerMessage::Check { version, digest, .. }
                if self.version != Some(version) || self.copy.digest() != digest =>
            {
                return Err(format!("the digest differs at version {version}"));
            }
            ServerMessage::Reply { payload, .. } => {
                let mut reader = Reader::new(payload);
                self.last_tick = Some(reader.varint().map_err(|error| error.to_string())?);
            }
            ServerMessage::Error { code, text, .. } | ServerMessage::Goodbye { code, text } => {
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
