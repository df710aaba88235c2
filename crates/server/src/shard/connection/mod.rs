//! Connections as a shard knows them: no sockets, only what came in and what is to go out.

pub(crate) mod address;
pub(crate) mod budget;
pub(crate) mod buffers;
pub(crate) mod carrier;
pub(crate) mod close_codes;
pub(crate) mod deflated;
pub(crate) mod http;
pub(crate) mod input;
pub(crate) mod input_queue;
pub(crate) mod links;
pub(crate) mod message;
pub(crate) mod outbox;
pub(crate) mod patience;
pub(crate) mod share;
pub(crate) mod timeouts;
pub(crate) mod transport;

use std::time::Duration;

use playfield_wire::server::ServerMessage;
use playfield_wire::{Format, RoomNumber};

use crate::addresses::Tally;
use crate::shard::connection::buffers::Outbox;
use crate::shard::connection::http::HandedOver;
use crate::shard::connection::share::Taken;
use crate::shard::connection::timeouts::NO_SLOT;
use crate::shard::connection::transport::{Dialect, Framing, Input};
use crate::shard::keys::ConnectionKey;
use crate::shard::moment::Moment;

pub(crate) use links::{Links, narrowed, unread};

/// One connection. While it is idle it owns no buffer.
pub(crate) struct Connection {
    pub(crate) input: Input,
    pub(crate) dialect: Dialect,
    /// Counts it where it comes from.
    pub(crate) tally: Tally,
    pub(crate) phase: Phase,
    /// Why nothing is read from it at the moment; none, usually.
    pub(crate) pause: Pause,
    /// Whether the last write left bytes behind.
    pub(crate) blocked: bool,
    /// Whether it is in the list of those that have something to be written.
    dirty: bool,
    /// Whether some room skipped a patch while it was blocked.
    pub(crate) lagging: bool,
    /// Whether its session outlives it: what is counted is kept until the client confirms it.
    pub(crate) resumable: bool,
    /// Its client follows redirects to other nodes.
    pub(crate) follows_redirects: bool,
    /// Whether only the log of its session takes output: the session is away, or is being resumed.
    pub(crate) held: bool,
    /// Whether it has output from a room elsewhere, which waits to hear that the output went out.
    pub(crate) owes_receipts: bool,
    /// Whether it was asked for a sign of life.
    pub(crate) pinged: bool,
    /// Set while it waits in the queue of input: what came from it is not known yet.
    pub(crate) unread: bool,
    /// Set if a timeout has come since: it is checked when the input has been read.
    pub(crate) put_off: bool,
    /// Whether its client came without a token, and may only join by tickets that name a user.
    pub(crate) tickets_only: bool,
    /// Set once it has a session.
    pub(crate) has_session: bool,
    /// Set once a device has registered on it.
    pub(crate) is_device: bool,
    /// Whether it will be closed once the rooms have had their turn.
    pub(crate) doomed: bool,
    /// The time of the shard that it took lately.
    pub(crate) taken: Taken,
    /// When it last gave a sign of life.
    pub(crate) heard: Moment,
    /// An upper bound of the bytes that came since.
    pub(in crate::shard) unheard_bytes: u32,
    /// Since when a message of its session is incomplete; never if none is.
    pub(crate) unfinished_since: Moment,
    /// When it is next looked at.
    pub(crate) look_at: Moment,
    /// The slot of the wheel of timeouts in which it comes up next. It may be left behind in later
    /// ones, where it means nothing.
    pub(crate) slot: u64,
    /// Input that is not a whole frame yet, or that came while nothing is read.
    pub(crate) partial: Partial,
    outbox: Option<Box<Outbox>>,
    /// The memory held between its bytes and its socket: the state of TLS, and its buffers.
    pub(crate) layer_bytes: u32,
    /// The bytes of publications that wait for it.
    pub(crate) waiting_bytes: u32,
    /// The unconfirmed bytes that its session keeps.
    pub(crate) logged: u32,
}

/// A change to the socket of a connection.
pub(crate) enum SocketChange {
    /// The socket has a session.
    Greeted(ConnectionKey),
    /// The socket now belongs to another connection, which has none or has lost its own.
    Moved { from: ConnectionKey, to: ConnectionKey },
    /// The socket goes to the control thread, with the facts of its connection.
    HandedOver(ConnectionKey, Box<HandedOver>),
    /// The socket is dropped.
    Dropped(ConnectionKey),
}

/// Whether a connection is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// In use, with a session or before one.
    Open,
    /// Lost: its session waits here for another.
    Away,
    /// Ends when its outbox is empty and its client has gone, or at the given time. On WebSocket,
    /// nothing more is written to the transport's end before the client's Close has come.
    Closing { by: Moment, written: bool, hung_up: bool, skipped: u32 },
}

/// Why nothing is read from a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pause {
    /// Too much waits to be read by the client.
    pub(crate) outbox: bool,
    /// A mailbox is full that its messages go to.
    pub(crate) mailbox: bool,
    /// A room elsewhere has not done yet what was sent to it.
    pub(crate) acts: bool,
    /// Whether it was served for long enough, so that others come first.
    pub(crate) turn: bool,
    /// Whether the user of a ticket is being decided about.
    pub(crate) ticket: bool,
    /// Set while its client waits for the authenticator.
    pub(crate) greeting: bool,
    /// Set while it is about to leave for another shard.
    pub(crate) departure: bool,
}

impl Pause {
    /// Returns whether nothing stops reading.
    #[inline]
    fn is_none(self) -> bool {
        let Self { outbox, mailbox, acts, turn, ticket, greeting, departure } = self;
        // It is asked for each message: one branch for all.
        !(outbox | mailbox | acts | turn | ticket | greeting | departure)
    }
}

/// Bytes that wait to be handled. Most of the time there are none.
#[derive(Default)]
#[expect(clippy::box_collection, reason = "an idle connection keeps one word")]
pub(crate) struct Partial(Option<Box<Vec<u8>>>);

impl Partial {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.as_deref().is_none_or(Vec::is_empty)
    }

    pub(crate) fn len(&self) -> usize {
        self.as_slice().len()
    }

    pub(crate) fn as_slice(&self) -> &[u8] {
        self.0.as_deref().map_or(&[], Vec::as_slice)
    }

    pub(crate) fn capacity(&self) -> usize {
        self.0.as_deref().map_or(0, Vec::capacity)
    }

    pub(crate) fn take(&mut self) -> Vec<u8> {
        self.0.take().map_or(Vec::new(), |bytes| *bytes)
    }

    pub(crate) fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.0.get_or_insert_default().extend_from_slice(bytes);
    }
}

impl From<Vec<u8>> for Partial {
    fn from(bytes: Vec<u8>) -> Self {
        Self((!bytes.is_empty()).then(|| Box::new(bytes)))
    }
}

/// The facts of a connection by which its messages are read.
#[derive(Clone, Copy)]
pub(in crate::shard) struct Speaker {
    pub(in crate::shard) format: Format,
    /// Whether messages are counted, and confirmed to the client.
    pub(in crate::shard) is_counted: bool,
    pub(in crate::shard) is_device: bool,
    pub(in crate::shard) tickets_only: bool,
}

/// Whether a message has to arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A message that has to arrive exactly once, and is about this room.
    Counted(Option<RoomNumber>),
    /// A message that another replaces if it is lost.
    Fleeting,
}

impl Kind {
    /// The kind of a message, which is about this room.
    pub(crate) fn of(message: &ServerMessage<'_>, room: Option<RoomNumber>) -> Self {
        if message.is_counted() { Self::Counted(room) } else { Self::Fleeting }
    }
}

impl Connection {
    pub(crate) fn new(now: Duration, input: Input, tally: Tally) -> Self {
        Self {
            input,
            dialect: Dialect::FIRST,
            tally,
            phase: Phase::Open,
            pause: Pause::default(),
            blocked: false,
            dirty: false,
            lagging: false,
            resumable: false,
            follows_redirects: false,
            held: false,
            owes_receipts: false,
            pinged: false,
            unread: false,
            put_off: false,
            tickets_only: false,
            has_session: false,
            is_device: false,
            doomed: false,
            taken: Taken::default(),
            heard: now.into(),
            unheard_bytes: 0,
            unfinished_since: Moment::NEVER,
            look_at: Moment::NEVER,
            slot: NO_SLOT,
            partial: Partial::default(),
            outbox: None,
            layer_bytes: 0,
            waiting_bytes: 0,
            logged: 0,
        }
    }

    pub(crate) fn is_closing(&self) -> bool {
        matches!(self.phase, Phase::Closing { .. })
    }

    /// Returns whether it was lost, and only its session is left.
    pub(crate) fn is_away(&self) -> bool {
        self.phase == Phase::Away
    }

    /// Notes a sign of life.
    #[inline]
    pub(crate) fn lives(&mut self, now: impl Into<Moment>) {
        self.heard = now.into();
        self.unheard_bytes = 0;
        self.pinged = false;
    }

    /// A message came. Returns the facts by which it is read.
    #[inline]
    pub(in crate::shard) fn hears(&mut self, now: Moment) -> Speaker {
        if self.has_session {
            self.unfinished_since = Moment::NEVER;
            self.lives(now);
        }
        Speaker {
            format: self.dialect.format,
            is_counted: self.resumable,
            is_device: self.is_device,
            tickets_only: self.tickets_only,
        }
    }

    /// Takes over the transport of another connection: what waits to be read and to be written, and
    /// in which framing.
    pub(crate) fn take_transport(&mut self, other: &mut Self) {
        self.input = std::mem::replace(&mut other.input, Input::InUse);
        self.dialect.framing = other.dialect.framing;
        self.follows_redirects = other.follows_redirects;
        self.partial = std::mem::take(&mut other.partial);
        self.outbox = std::mem::take(&mut other.outbox);
        self.layer_bytes = std::mem::take(&mut other.layer_bytes);
        self.unfinished_since = std::mem::replace(&mut other.unfinished_since, Moment::NEVER);
        self.blocked = std::mem::take(&mut other.blocked);
        self.pause.outbox = std::mem::take(&mut other.pause.outbox);
        std::mem::swap(&mut self.tally, &mut other.tally);
    }

    /// Returns whether frames can still be read from it, up to a Close.
    pub(crate) fn awaits_close(&self) -> bool {
        matches!(self.input, Input::WebSocket(_) | Input::Closing(_))
    }

    /// Returns whether its input is handled now.
    pub(crate) fn takes_input(&self) -> bool {
        self.phase == Phase::Open && self.pause.is_none()
    }

    /// Returns whether its client has yet to send the rest of a message.
    pub(in crate::shard) fn is_unfinished(&self) -> bool {
        let is_begun = match &self.input {
            Input::Native | Input::Service(_, None) | Input::WebSocket(None) => {
                !self.partial.is_empty()
            }
            Input::Service(_, Some(carrier)) => !self.partial.is_empty() || carrier.is_unfinished(),
            Input::WebSocket(Some(decoder)) => !self.partial.is_empty() || decoder.is_unfinished(),
            _ => false,
        };
        is_begun && self.takes_input()
    }

    /// Returns whether it is the connection of this service.
    pub(crate) fn is_served_by(&self, service: u16) -> bool {
        matches!(self.input, Input::Service(number, _) if number == service)
    }

    /// Returns whether it belongs to a service, by WebSocket.
    pub(crate) fn is_in_messages(&self) -> bool {
        matches!(self.input, Input::Service(_, Some(_)))
    }

    /// Returns whether what is written to it has to be in messages of a WebSocket.
    pub(crate) fn is_websocket(&self) -> bool {
        matches!(self.dialect.framing, Framing::WebSocket(_))
    }

    /// Returns the memory that its buffers take.
    #[cfg(test)]
    pub(crate) fn buffered(&self) -> usize {
        self.partial.capacity() + self.outbox_capacity()
    }

    /// The bytes that wait to be written.
    #[inline]
    pub(crate) fn unsent_bytes(&self) -> &[u8] {
        self.outbox.as_deref().map_or(&[], |outbox| &outbox.bytes[outbox.written..])
    }

    /// Has these bytes wait to be written, where none do.
    pub(crate) fn set_unsent(&mut self, bytes: Vec<u8>) {
        self.outbox = (!bytes.is_empty()).then(|| Box::new(Outbox { bytes, written: 0 }));
    }

    /// The number of bytes that wait to be written.
    #[inline]
    pub(crate) fn unsent(&self) -> usize {
        self.outbox.as_deref().map_or(0, |outbox| outbox.bytes.len() - outbox.written)
    }

    /// Returns the memory that its outbox takes. A buffer that is about to be written may be larger
    /// than what is in it, since others have filled it before; that is not the client's doing, and
    /// ends [as soon as the client is slow](Links::wrote).
    fn outbox_capacity(&self) -> usize {
        let bytes = |outbox: &Outbox| match self.blocked {
            true => outbox.bytes.capacity(),
            false => outbox.bytes.len(),
        };
        self.outbox.as_deref().map_or(0, bytes)
    }
}
