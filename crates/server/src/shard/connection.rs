//! One connection: how it speaks, what came of an unfinished frame, what is still to be written.

use std::time::Duration;

use playfield_websocket::{Decoder, Opcode, encode, encode_close, encode_with};
use playfield_wire::server::ServerMessage;
use playfield_wire::{ErrorCode, Format, framing};

use super::join::JoinJob;
use super::session::Session;
use super::{Action, Net, RoomAddress};
use crate::slab::Key;

/// How long a connection that is being closed has to take what it is still owed.
const LINGER: Duration = Duration::from_secs(2);

/// An idle one is this and a session: its buffers are there only while they hold something.
pub(crate) struct Connection {
    pub(super) transport: Transport,
    pub(super) session: Option<Box<Session>>,
    /// Bytes that came and are not handled: part of a frame, or what waits while the connection is held up.
    pub(super) input: Vec<u8>,
    outbox: Vec<u8>,
    written: usize,
    pub(super) born: Duration,
    /// When something last came.
    pub(super) heard: Duration,
    dirty: bool,
    /// The last write did not take all.
    pub(super) blocked: bool,
    /// What came last is not whole.
    pub(super) hung_up: bool,
    /// The mailbox of this shard is full: nothing is handled until it isn't.
    pub(super) waits_for: Option<usize>,
    pub(super) end: End,
    /// It is to go to another shard with its first join.
    pub(super) moving: Option<Box<(usize, JoinJob)>>,
    /// Rooms elsewhere that may send the next patch when this connection has drained.
    pub(super) credits: Vec<(RoomAddress, u64)>,
}

/// How far its end has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It is open.
    Open,
    /// What it is owed is still written, until the deadline; nothing is read.
    Flushing(Duration),
    /// The peer was told that nothing more comes, and may say its own end until the deadline.
    Lingering(Duration),
}

/// How it speaks.
pub(super) enum Transport {
    /// Its first bytes have not come.
    Unknown,
    Native,
    Http,
    WebSocket(Decoder),
}

/// Outboxes that are empty serve again, the one that was used last first: it is still in the processor's cache.
#[derive(Default)]
pub(super) struct Pool {
    buffers: Vec<Vec<u8>>,
    /// Of all of them together.
    bytes: usize,
}

/// What a pool holds at most; enough for all that a shard sends in a turn that was late.
const POOL_BYTES_MAX: usize = 8 << 20;
const POOLED_BYTES_MAX: usize = 64 << 10;

impl Connection {
    pub(super) fn new(now: Duration) -> Self {
        Self {
            transport: Transport::Unknown,
            session: None,
            input: Vec::new(),
            outbox: Vec::new(),
            written: 0,
            born: now,
            heard: now,
            dirty: false,
            blocked: false,
            hung_up: false,
            waits_for: None,
            end: End::Open,
            moving: None,
            credits: Vec::new(),
        }
    }

    /// What is still to be written.
    pub(crate) fn unsent(&self) -> usize {
        self.outbox.len() - self.written
    }

    /// Puts one message into the outbox, framed for the transport.
    pub(super) fn put(&mut self, format: Format, write: impl FnOnce(&mut Vec<u8>)) {
        match self.transport {
            Transport::WebSocket(_) => {
                let opcode = if format == Format::Json { Opcode::Text } else { Opcode::Binary };
                encode_with(&mut self.outbox, opcode, None, write);
            }
            Transport::Native | Transport::Unknown | Transport::Http => {
                framing::write_frame_with(&mut self.outbox, write);
            }
        }
    }

    /// Raw bytes.
    pub(super) fn put_raw(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.outbox);
    }

    /// Where the outbox ends, to [`take_back`](Self::take_back) what is put after it.
    pub(super) fn mark(&self) -> usize {
        self.outbox.len()
    }

    pub(super) fn take_back(&mut self, mark: usize) {
        self.outbox.truncate(mark);
    }

    /// The format its messages are in; before the hello, that of the transport's plainest client.
    pub(super) fn format(&self) -> Format {
        self.session.as_ref().map_or(Format::Packed, |session| session.format)
    }

    pub(super) fn is_open(&self) -> bool {
        self.end == End::Open
    }

    /// Whether what comes is to be handled now.
    pub(super) fn takes_input(&self, high: usize) -> bool {
        self.is_open()
            && self.moving.is_none()
            && self.waits_for.is_none()
            && (self.unsent() <= high || !self.blocked)
    }
}

impl Net {
    pub(super) fn connection(&mut self, key: Key) -> Option<&mut Connection> {
        self.connections.get_mut(key)
    }

    /// Puts one message to a connection, and sees to it that it is written this turn.
    pub(super) fn put(&mut self, key: Key, format: Format, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(connection) = self.connections.get_mut(key).filter(|connection| connection.is_open()) else {
            return;
        };
        self.pool.equip(connection);
        connection.put(format, write);
        Self::mark_dirty(&mut self.dirty, connection, key);
    }

    /// A message to a client in its own format.
    pub(super) fn say(&mut self, key: Key, message: &ServerMessage<'_>) {
        let Some(format) = self.connections.get(key).map(Connection::format) else { return };
        self.put(key, format, |out| message.encode(format, out));
    }

    /// Bytes that are no message: a handshake, a page.
    pub(super) fn put_raw(&mut self, key: Key, write: impl FnOnce(&mut Vec<u8>)) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        self.pool.equip(connection);
        connection.put_raw(write);
        Self::mark_dirty(&mut self.dirty, connection, key);
    }

    /// A WebSocket control frame.
    pub(super) fn put_control(&mut self, key: Key, opcode: Opcode, payload: &[u8]) {
        self.put_raw(key, |out| encode(out, opcode, payload, None));
    }

    pub(super) fn mark_dirty(dirty: &mut Vec<Key>, connection: &mut Connection, key: Key) {
        if !connection.dirty && !connection.blocked {
            connection.dirty = true;
            dirty.push(key);
        }
    }

    /// Says why, says goodbye, and closes.
    pub(super) fn fail(&mut self, key: Key, code: ErrorCode, text: &str) {
        let Some(format) = self.connections.get(key).map(Connection::format) else { return };
        self.fail_in(key, format, code, text);
    }

    pub(super) fn fail_in(&mut self, key: Key, format: Format, code: ErrorCode, text: &str) {
        let error = ServerMessage::Error { request: None, room: None, code, text: text.into() };
        self.put(key, format, |out| error.encode(format, out));
        self.goodbye(key, format, code, text);
    }

    /// Says goodbye, and closes.
    pub(super) fn goodbye(&mut self, key: Key, format: Format, code: ErrorCode, text: &str) {
        let goodbye = ServerMessage::Goodbye { code, text: text.into() };
        self.put(key, format, |out| goodbye.encode(format, out));
        let websocket = self
            .connections
            .get(key)
            .is_some_and(|connection| matches!(connection.transport, Transport::WebSocket(_)));
        if websocket {
            let close = close_code(code);
            self.put_raw(key, |out| encode_close(out, close, &code.name(), None));
        }
        self.finish(key);
    }

    /// Closes a connection when it has taken what it is owed.
    pub(super) fn finish(&mut self, key: Key) {
        let deadline = self.now + LINGER;
        let Some(connection) = self.connections.get_mut(key).filter(|connection| connection.is_open()) else {
            return;
        };
        connection.end = End::Flushing(deadline);
        connection.input = Vec::new();
        connection.moving = None;
        let written = connection.unsent() == 0;
        self.timeouts.set(deadline, key);
        if written {
            self.flushed(key);
        }
    }

    /// All that a connection was owed is written.
    fn flushed(&mut self, key: Key) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if let End::Flushing(deadline) = connection.end {
            connection.end = End::Lingering(deadline);
            let action = if connection.hung_up { Action::Close(key) } else { Action::ShutDown(key) };
            self.actions.push(action);
        }
    }
}

/// What the event loop asks and tells of connections.
impl super::Shard {
    /// The bytes that are to be written next.
    pub(crate) fn unsent(&self, key: Key) -> &[u8] {
        self.net.connections.get(key).map_or(&[], |connection| &connection.outbox[connection.written..])
    }

    /// So many of them were written; fewer than all means that the socket takes no more for now.
    pub(crate) fn wrote(&mut self, key: Key, count: usize) {
        let Some(connection) = self.net.connections.get_mut(key) else { return };
        self.net.stats.bytes_out += count as u64;
        connection.dirty = false;
        connection.written += count;
        let was_blocked =
            std::mem::replace(&mut connection.blocked, connection.written < connection.outbox.len());
        if connection.blocked {
            // What was written is dropped when it is more than what waits, so that a slow reader's outbox stays small.
            if connection.written > connection.outbox.len() / 2 {
                connection.outbox.drain(..connection.written);
                connection.written = 0;
            }
            return;
        }
        connection.written = 0;
        self.net.pool.strip(connection);
        self.net.flushed(key);
        if was_blocked {
            self.drained(key);
        }
    }

    /// Whether bytes that come would be handled now.
    pub(crate) fn takes_input(&self, key: Key) -> bool {
        let connection = self.net.connections.get(key);
        connection.is_some_and(|connection| {
            connection.takes_input(self.node.config.outbox_high_bytes)
                || matches!(connection.end, End::Lingering(_) | End::Flushing(_))
        })
    }
}

impl Pool {
    /// Gives a connection a buffer to write into, if it has none.
    pub(super) fn equip(&mut self, connection: &mut Connection) {
        if connection.outbox.capacity() == 0
            && let Some(buffer) = self.buffers.pop()
        {
            self.bytes -= buffer.capacity();
            connection.outbox = buffer;
        }
    }

    /// Takes an empty buffer back.
    fn strip(&mut self, connection: &mut Connection) {
        let mut buffer = std::mem::take(&mut connection.outbox);
        buffer.clear();
        let bytes = buffer.capacity();
        if (1..=POOLED_BYTES_MAX).contains(&bytes) && self.bytes + bytes <= POOL_BYTES_MAX {
            self.bytes += bytes;
            self.buffers.push(buffer);
        }
    }
}

/// The WebSocket close code (RFC 6455, 7.4) that comes nearest.
fn close_code(code: ErrorCode) -> u16 {
    match code {
        ErrorCode::ShuttingDown => 1001,
        ErrorCode::BadMessage
        | ErrorCode::WrongFormat
        | ErrorCode::HelloExpected
        | ErrorCode::UnsupportedProtocol => 1002,
        ErrorCode::TooLarge => 1009,
        ErrorCode::Internal => 1011,
        ErrorCode::Left => 1000,
        _ => 1008,
    }
}
