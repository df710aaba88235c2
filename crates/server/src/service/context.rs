//! The context of a service's handlers: the connection that they are called for, all others, and
//! time.

use std::sync::Arc;
use std::time::Duration;

use playfield_room::{AskId, Error, InternalMessage, Message};
use playfield_state::Data;
use playfield_websocket::{Opcode, encode_with_about};
use playfield_wire::framing::{FrameCodec, FrameError};

use crate::asks::ended;
use crate::device::{Device, Place, Registration};
use crate::fleet::device_gone;
use crate::handle::{NodeHandle, read};
use crate::node::Node;
use crate::service::{Closed, Service};
use crate::shard::connection::{Connection, Links};
use crate::shard::keys::ConnectionKey;
use crate::shard::mail::device::DeviceMail;
use crate::shard::topics::devices::{OwnDevice, ShardDevices};

/// Identifies a connection of a service on its shard. Ids are never reused. On another shard, it
/// identifies no connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId {
    pub(crate) shard: u16,
    pub(crate) key: ConnectionKey,
}

/// A room's answer to a request of a service, from [`Context::ask`].
#[derive(Debug)]
pub struct Answered {
    pub(crate) id: AskId,
    pub(crate) reply: Result<Vec<u8>, Error>,
}

impl Answered {
    /// The request, as [`Context::ask`] returned it.
    #[must_use]
    pub fn id(&self) -> AskId {
        self.id
    }

    /// The reply to the request `M`.
    ///
    /// # Errors
    /// The room's refusal, `room_not_found` or `room_closed` if it ended before it answered,
    /// `timeout` after `timeouts.ask`, or `bad_payload` if the request was another than `M`.
    pub fn reply<M: Message>(self) -> Result<M::Reply, Error> {
        read::<M>(self.reply)
    }
}

/// A command for the device that was registered for a connection.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// By which it is answered; `None` if it is a push, which nobody waits for.
    pub id: Option<CommandId>,
    /// The command: the text of a JSON value, or bytes, as the fleet's settings say.
    pub payload: &'a [u8],
}

/// Identifies a request to the device of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommandId {
    pub(crate) connection: ConnectionId,
    pub(crate) number: u64,
}

/// A connection to be closed, and why.
pub(crate) type Leave = (ConnectionKey, Closed);

/// The parts of a shard that a service can access during a call.
pub(crate) struct Reach<'a> {
    pub(crate) shard: u16,
    /// The service's number.
    pub(crate) service: u16,
    pub(crate) now: Duration,
    pub(crate) message_bytes_max: usize,
    pub(crate) outbox_bytes_max: usize,
    pub(crate) outbox_high_bytes: usize,
    pub(crate) connections: &'a mut Links,
    /// Links to be closed after the call.
    pub(crate) leaving: &'a mut Vec<Leave>,
    pub(crate) wake_at: &'a mut Option<Duration>,
    pub(crate) node: Option<&'a NodeHandle>,
    pub(crate) at: &'a Node,
    pub(crate) devices: &'a mut ShardDevices,
}

/// The context that every handler of a service can access.
pub struct Context<'a, S: Service> {
    codec: &'a S::Codec,
    pub(super) reach: Reach<'a>,
    /// The connection that the handler is called for, if it is for one.
    serving: Option<ConnectionKey>,
    /// Each frame to it has to be a message of a WebSocket.
    pub(super) in_messages: bool,
    /// Data for it, which is moved to its outbox when the call ends.
    pub(super) out: Vec<u8>,
    /// Whether it has to be closed.
    pub(super) ends: bool,
    messages_out: u64,
}

impl<'a, S: Service> Context<'a, S> {
    #[inline]
    pub(super) fn new(
        codec: &'a S::Codec,
        serving: Option<ConnectionKey>,
        in_messages: bool,
        reach: Reach<'a>,
    ) -> Self {
        let out = if serving.is_some() { reach.connections.buffer() } else { Vec::new() };
        Self { codec, reach, serving, in_messages, out, ends: false, messages_out: 0 }
    }

    /// The time since the node started, as of the beginning of the turn.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.reach.now
    }

    /// Schedules one call of [`Service::woken`] after this time. A later call replaces an earlier
    /// one.
    pub fn wake_in(&mut self, time: Duration) {
        *self.reach.wake_at = self.reach.now.checked_add(time);
    }

    /// Sends a message to a room of the node, which receives it by [`On`](playfield_room::On). As
    /// [`NodeHandle::tell`].
    ///
    /// # Errors
    /// As [`NodeHandle::tell`].
    pub fn tell<M: Message>(&self, room_id: &str, message: &M) -> Result<(), Error> {
        self.reach.node.ok_or_else(ended)?.tell(room_id, message)
    }

    /// Sends a request to a room of the node, which receives it by [`On`](playfield_room::On). The
    /// answer comes by [`Service::answered`], to the value of the service on this shard.
    ///
    /// # Errors
    /// If the request can't be sent: as [`NodeHandle::tell`], or `busy` at `limits.queues.asks`.
    /// Nothing is answered then.
    pub fn ask<M: Message>(&mut self, room_id: &str, message: &M) -> Result<AskId, Error> {
        let asker = (self.reach.shard, self.reach.service);
        let node = self.reach.node.ok_or_else(ended)?;
        node.ask_for_service(asker, room_id, InternalMessage::of(message)).map(AskId)
    }

    /// Publishes a value in a channel whose payloads are JSON. As [`NodeHandle::publish`].
    ///
    /// # Errors
    /// As [`NodeHandle::publish`].
    pub fn publish(&self, channel: &str, value: &impl Data) -> Result<(), Error> {
        self.reach.node.ok_or_else(ended)?.publish(channel, value)
    }

    /// Publishes bytes in a channel whose payloads are bytes. As [`NodeHandle::publish_bytes`].
    ///
    /// # Errors
    /// As [`NodeHandle::publish_bytes`].
    pub fn publish_bytes(&self, channel: &str, bytes: &[u8]) -> Result<(), Error> {
        self.reach.node.ok_or_else(ended)?.publish_bytes(channel, bytes)
    }

    /// Registers a device for a connection of this service. It is registered until the connection
    /// ends, and is heard whenever something is received on it. For the same id, it changes the
    /// metadata and the tags. Whether no other device had the id.
    ///
    /// Commands for it come by [`Service::command`]. The fleet decides as for sessions, except that
    /// any id may be taken: what clients of the service may be is for the service to check.
    ///
    /// # Errors
    /// The fleet's refusal, `device_taken`, `limit`, or `forbidden` if the node has no fleet;
    /// `unknown_device` if there is no such connection.
    pub fn register(
        &mut self,
        connection: ConnectionId,
        registration: Registration,
    ) -> Result<bool, Error> {
        if !self.serves(connection) && self.waiting(connection).is_none() {
            return Err(device_gone());
        }
        let Reach { shard, now, connections, at, devices, .. } = &mut self.reach;
        let key = connection.key;
        let place = Place { shard: *shard, connection: key.bits(), is_service: true };
        devices.register(at, connections, (key, place), registration, *now)
    }

    /// The device of a connection of this service.
    #[must_use]
    pub fn device(&self, connection: ConnectionId) -> Option<Arc<Device>> {
        if !self.serves(connection) {
            self.waiting(connection)?;
        }
        self.reach.devices.get(connection.key).map(OwnDevice::device)
    }

    /// The device of a connection was heard by other means than its connection.
    pub fn heard(&mut self, connection: ConnectionId) {
        if (self.serves(connection) || self.waiting(connection).is_some())
            && let Some(of) = self.reach.connections.get_mut(connection.key)
            && of.is_device
        {
            of.heard = self.reach.now.into();
            let mail = DeviceMail::Heard { connection: connection.key };
            self.reach.devices.posts.push_back((self.reach.shard, mail));
        }
    }

    /// Answers a request to a device of this service, from [`Service::command`]: the text of a JSON
    /// value, or bytes, as the fleet's settings say. Whether it was waited for.
    pub fn answer(&mut self, id: CommandId, answer: Result<Vec<u8>, Error>) -> bool {
        let Reach { shard, at, devices, .. } = &mut self.reach;
        let Some(fleet) = &at.fleet else { return false };
        let answer = answer
            .and_then(|bytes| fleet.payload(&bytes))
            .map(|payload| payload.as_slice().to_vec());
        let is_here = id.connection.shard == *shard;
        is_here && devices.answer(at, (id.connection.key, id.number), answer)
    }

    /// Writes a frame to any connection of this service on this shard. Returns whether it was
    /// written.
    ///
    /// It is not written if the connection is closed, or if its client is too slow: then more than
    /// `limits.session.outbox_bytes.max` bytes would have been queued, and the connection is
    /// closed.
    ///
    /// # Errors
    /// If no frame can hold such a body.
    pub fn send(&mut self, to: ConnectionId, body: &[u8]) -> Result<bool, FrameError> {
        self.send_with(to, |out| out.extend_from_slice(body))
    }

    /// Like [`send`](Self::send), with the body that `body` appends.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_with(
        &mut self,
        to: ConnectionId,
        body: impl FnOnce(&mut Vec<u8>),
    ) -> Result<bool, FrameError> {
        if self.serves(to) {
            self.reply_with(body)?;
            return Ok(true);
        }
        let Some(connection) = self.other(to) else { return Ok(false) };
        let (waiting, in_messages) = (connection.unsent(), connection.is_websocket());
        // Not directly into the outbox: a service must not change the data queued there.
        let mut frame = self.reach.connections.buffer();
        let written = write_frame(self.codec, &mut frame, in_messages, 0, body);
        let fits = waiting == 0 || waiting + frame.len() <= self.reach.outbox_bytes_max;
        if written.is_ok() && fits {
            self.messages_out += 1;
            self.reach.connections.append(to.key, |out| {
                out.extend_from_slice(&frame);
                true
            });
        }
        self.reach.connections.recycle(frame);
        written?;
        if !fits {
            self.leave(to.key, Closed::TooSlow);
        }
        Ok(fits)
    }

    /// Closes a connection of this service after sending what was written to it. Nothing more is
    /// read from it.
    pub fn close(&mut self, id: ConnectionId) {
        if self.serves(id) {
            self.ends = true;
        } else if self.waiting(id).is_some() {
            self.leave(id.key, Closed::ByService);
        }
    }

    fn serves(&self, id: ConnectionId) -> bool {
        self.serving == Some(id.key) && id.shard == self.reach.shard
    }

    /// Returns the number of bytes that are queued for a connection; `None` if it is closed, or
    /// does not belong to the service.
    fn waiting(&self, id: ConnectionId) -> Option<usize> {
        self.other(id).map(Connection::unsent)
    }

    /// An open connection of the service.
    fn other(&self, id: ConnectionId) -> Option<&Connection> {
        let connection = self.reach.connections.get(id.key)?;
        let is_own = id.shard == self.reach.shard && connection.is_served_by(self.reach.service);
        (is_own && !connection.doomed).then_some(connection)
    }

    fn leave(&mut self, key: ConnectionKey, why: Closed) {
        if let Some(connection) = self.reach.connections.get_mut(key) {
            connection.doomed = true;
            self.reach.leaving.push((key, why));
        }
    }

    /// Ends the call. Returns what was written to its connection, and whether that has to be
    /// closed.
    #[inline]
    pub(super) fn finish(self) -> (Vec<u8>, bool) {
        self.reach.connections.messages_out += self.messages_out;
        (self.out, self.ends)
    }

    #[inline]
    pub(super) fn reply(&mut self, body: &[u8]) -> Result<(), FrameError> {
        self.messages_out += 1;
        if !self.in_messages {
            return self.codec.encode(&mut self.out, body);
        }
        let write = |out: &mut Vec<u8>| out.extend_from_slice(body);
        write_frame(self.codec, &mut self.out, true, body.len(), write)
    }

    #[inline]
    pub(super) fn reply_with(&mut self, body: impl FnOnce(&mut Vec<u8>)) -> Result<(), FrameError> {
        self.messages_out += 1;
        write_frame(self.codec, &mut self.out, self.in_messages, 0, body)
    }
}

/// Appends a frame, within a message of a WebSocket if it has to be in one. Of about `bytes_about`
/// bytes, it is written in place.
#[inline]
fn write_frame<C: FrameCodec>(
    codec: &C,
    out: &mut Vec<u8>,
    in_message: bool,
    bytes_about: usize,
    body: impl FnOnce(&mut Vec<u8>),
) -> Result<(), FrameError> {
    if !in_message {
        return codec.encode_with(out, body);
    }
    let before = out.len();
    let written = encode_with_about(out, Opcode::Binary, None, bytes_about, |out| {
        codec.encode_with(out, body)
    });
    if written.is_err() {
        out.truncate(before);
    }
    written
}
