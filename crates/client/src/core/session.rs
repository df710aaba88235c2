//! The state of one session, and all that the client sends. `receive` handles what it receives.

use std::time::Duration;

use playfield_wire::client::{ClientMessage, Hello, write_request, write_send};
use playfield_wire::{Format, RequestNumber, RoomNumber};

use super::pulse::{Due, Pulse};
use super::requests::{Asked, Requests};
use super::rooms::Rooms;
use super::transport::Outbound;
use super::unreadable::OrphanedRooms;
use super::{ClientError, CommandError, Failure, Handler};

/// The longest message that is ever sent, and the limit before the welcome states the node's.
pub(super) const MESSAGE_BYTES_MAX: usize = 1 << 30;

/// The code of a WebSocket close frame after a goodbye (RFC 6455, 7.4.1).
const NORMAL_CLOSURE: u16 = 1000;

#[derive(Debug)]
pub(super) struct Session {
    format: Format,
    phase: Phase,
    /// The node answered the hello. Commands may be given before that.
    pub(super) welcomed: bool,
    pub(super) outbound: Outbound,
    /// The longest message that the node accepts, in bytes.
    pub(super) bytes_max: usize,
    pub(super) requests: Requests,
    pub(super) rooms: Rooms,
    pub(super) orphaned_rooms: OrphanedRooms,
    pub(super) pulse: Pulse,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Talking,
    /// This client has said goodbye, and waits for the node to close the transport.
    Leaving,
    Finished,
}

impl Session {
    pub(super) fn new(format: Format, outbound: Outbound, requests_max: usize) -> Self {
        Self {
            format,
            phase: Phase::Talking,
            welcomed: false,
            outbound,
            bytes_max: MESSAGE_BYTES_MAX,
            requests: Requests::new(requests_max),
            rooms: Rooms::default(),
            orphaned_rooms: OrphanedRooms::default(),
            pulse: Pulse::default(),
        }
    }

    pub(super) fn format(&self) -> Format {
        self.format
    }

    pub(super) fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// Sends the hello, the first message.
    pub(super) fn hello(&mut self, hello: Hello<'_>) {
        let hello = ClientMessage::Hello(hello);
        let format = self.format;
        // The node has not stated its limit yet.
        let _ = self.outbound.message(usize::MAX, |out| hello.encode(format, out));
    }

    /// Sends a message that expects an answer.
    pub(super) fn ask<'a>(
        &mut self,
        asked: Asked,
        message: impl FnOnce(RequestNumber) -> ClientMessage<'a>,
    ) -> Result<RequestNumber, CommandError> {
        let request = self.reserve()?;
        self.send_message(&message(request))?;
        self.requests.sent(request, asked);
        Ok(request)
    }

    pub(super) fn request(
        &mut self,
        room: RoomNumber,
        index: u32,
        name: &str,
        payload: &[u8],
    ) -> Result<RequestNumber, CommandError> {
        let request = self.reserve()?;
        self.rooms.get(room)?;
        let format = self.format;
        self.write(payload, |out| write_request(format, out, room, request, index, name, payload))?;
        self.requests.sent(request, Asked::Message { room });
        Ok(request)
    }

    pub(super) fn send(
        &mut self,
        room: RoomNumber,
        index: u32,
        name: &str,
        payload: &[u8],
    ) -> Result<(), CommandError> {
        self.check_open()?;
        self.rooms.get(room)?;
        let format = self.format;
        self.write(payload, |out| write_send(format, out, room, index, name, payload))
    }

    /// Sends any message but a user's.
    pub(super) fn send_message(&mut self, message: &ClientMessage<'_>) -> Result<(), CommandError> {
        self.check_open()?;
        let payload = match message {
            ClientMessage::Create { options, .. } | ClientMessage::JoinOrCreate { options, .. } => {
                options
            }
            _ => &[][..],
        };
        let format = self.format;
        self.write(payload, |out| message.encode(format, out))
    }

    pub(super) fn resync(&mut self, room: RoomNumber) -> Result<(), CommandError> {
        self.rooms.wait_for_snapshot(room)?;
        self.send_message(&ClientMessage::Resync { room })
    }

    pub(super) fn ping(&mut self) -> Result<u64, CommandError> {
        self.check_open()?;
        let nonce = self.pulse.ping()?;
        self.send_message(&ClientMessage::Ping { nonce })?;
        Ok(nonce)
    }

    pub(super) fn goodbye(&mut self) {
        // An error means that the connection is closed already.
        if self.send_message(&ClientMessage::Goodbye).is_ok() {
            self.phase = Phase::Leaving;
            self.outbound.close(NORMAL_CLOSURE);
        }
    }

    fn check_open(&self) -> Result<(), CommandError> {
        match self.phase {
            Phase::Talking => Ok(()),
            Phase::Leaving | Phase::Finished => Err(CommandError::Closed),
        }
    }

    fn reserve(&mut self) -> Result<RequestNumber, CommandError> {
        self.check_open()?;
        self.requests.reserve()
    }

    #[inline]
    fn write(
        &mut self,
        payload: &[u8],
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<(), CommandError> {
        let bytes_max = self.bytes_max;
        let too_large = |bytes| CommandError::TooLarge { bytes, bytes_max };
        if payload.len() > bytes_max {
            return Err(too_large(payload.len()));
        }
        self.outbound.message(bytes_max, write).map_err(too_large)?;
        self.pulse.sent();
        Ok(())
    }

    pub(super) fn advance<H: Handler>(&mut self, now: Duration, handler: &mut H) {
        match self.pulse.advance(now) {
            Due::Nothing => {}
            // A ping fails only if the node's limit is too small for any message.
            Due::Ping => {
                let nonce = self.pulse.probe();
                if self.send_message(&ClientMessage::Ping { nonce }).is_err() {
                    self.pulse.sent();
                }
            }
            Due::Silent { silence } => self.finish(Some(ClientError::Silent { silence }), handler),
        }
    }

    /// The node ended the transport, on WebSocket by a close frame.
    pub(super) fn end<H: Handler>(&mut self, close_code: Option<u16>, handler: &mut H) {
        let error = match self.phase {
            Phase::Talking => Some(ClientError::Ended { close_code }),
            Phase::Leaving | Phase::Finished => None,
        };
        self.finish(error, handler);
    }

    /// Ends the session: nothing more is sent or received.
    pub(super) fn finish<H: Handler>(&mut self, error: Option<ClientError>, handler: &mut H) {
        if self.is_finished() {
            return;
        }
        self.phase = Phase::Finished;
        self.outbound.close(error.as_ref().map_or(NORMAL_CLOSURE, ClientError::close_code));
        self.pulse.stop();
        self.rooms.clear();
        self.orphaned_rooms = OrphanedRooms::default();
        for request in self.requests.give_up_all() {
            handler.failed(request, &Failure::Closed);
        }
        handler.closed(error.as_ref());
    }
}
