//! Errors of a session: why a connection ended, and why a command was refused.

use std::fmt;
use std::time::Duration;

use playfield_websocket::handshake::HandshakeError;
use playfield_wire::framing::FrameError;
use playfield_wire::{DecodeError, ErrorCode, PROTOCOL, RequestNumber, RoomNumber};

/// Represents a close frame without a code (RFC 6455, 7.1.5).
const NO_CLOSE_CODE: u16 = 1005;

/// Why a connection ended without a goodbye. It is of no further use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientError {
    /// The WebSocket handshake failed.
    Handshake(HandshakeError),
    /// A WebSocket frame violates RFC 6455, or exceeds the limit.
    WebSocket(playfield_websocket::Error),
    /// A frame announces no bytes, or more than the limit.
    Frame(FrameError),
    /// A message is malformed or of an unknown kind.
    Message(DecodeError),
    /// More than [`UNREADABLE_IN_A_ROW_MAX`](super::UNREADABLE_IN_A_ROW_MAX) messages in a row, on
    /// as many connections, could not be read.
    Unreadable {
        /// The number of messages.
        messages: u32,
        /// The error of the last.
        last: Box<ClientError>,
    },
    /// The node confirms messages that it was not sent.
    NeverSent {
        /// The number of messages that it says it has handled.
        received: u64,
        /// The number of messages sent.
        sent: u64,
    },
    /// A text message came: those of `packed` are binary.
    Text,
    /// The node speaks another version of the protocol.
    Protocol {
        /// The node's version.
        protocol: u64,
    },
    /// A message came before the welcome, or a second welcome came.
    OutOfTurn {
        /// The value that came.
        message: &'static str,
    },
    /// An answer names a request that was never made, or that was answered before.
    UnknownRequest {
        /// The number in the answer.
        request: RequestNumber,
    },
    /// An answer is of the wrong kind for its request.
    WrongAnswer {
        /// The request's number.
        request: RequestNumber,
        /// The value that came.
        answer: &'static str,
    },
    /// A message names a room that this session isn't in.
    UnknownRoom {
        /// The number in the message.
        room: RoomNumber,
        /// The value that came.
        message: &'static str,
    },
    /// The node gave a room the number of another.
    RoomNumberTaken {
        /// The number.
        room: RoomNumber,
    },
    /// More than [`UNUSABLE_IN_A_ROW_MAX`](super::UNUSABLE_IN_A_ROW_MAX) updates in a row could not
    /// be used by a room's copy. Each was reported by
    /// [`Event::OutOfStep`](super::Event::OutOfStep).
    NeverInStep {
        /// The room's number.
        room: RoomNumber,
        /// The number of updates.
        unusable: u32,
    },
    /// An event is missing, or was sent twice.
    EventOutOfOrder {
        /// The room's number.
        room: RoomNumber,
        /// The sequence number that was expected.
        due: u64,
        /// The sequence number that came.
        got: u64,
    },
    /// The node did not answer a ping in time.
    Silent {
        /// The time since the last message.
        silence: Duration,
    },
    /// The node said goodbye to this connection, but another may succeed later: it was full or
    /// busy, it gave up on a silent connection, or it shut down.
    TurnedAway {
        /// Why.
        code: ErrorCode,
        /// Why, for people.
        text: String,
        /// The time that the node wants the client to wait, if it said so.
        retry_after: Option<Duration>,
    },
    /// The node answered the hello by a redirect that this client does not follow: it was one too
    /// many in a row, there was no session to resume, or none of the addresses can be used.
    Redirected {
        /// The addresses of the other node.
        addresses: Vec<String>,
    },
    /// The node did not answer the hello in time.
    NoWelcome {
        /// The time limit.
        limit: Duration,
    },
    /// The transport ended.
    Ended {
        /// The code of the WebSocket close frame, if there was one.
        close_code: Option<u16>,
    },
}

impl ClientError {
    /// The code of the WebSocket close frame to send (RFC 6455, 7.4.1). A code that the node sent
    /// is returned.
    pub(super) fn close_code(&self) -> u16 {
        match self {
            Self::WebSocket(error) => error.close_code(),
            Self::Text => 1003,
            Self::Ended { close_code } => close_code.unwrap_or(NO_CLOSE_CODE),
            Self::Silent { .. }
            | Self::NoWelcome { .. }
            | Self::TurnedAway { .. }
            | Self::Redirected { .. } => 1000,
            Self::Unreadable { last, .. } => last.close_code(),
            _ => 1002,
        }
    }

    /// Returns whether the node sent something that can't be read. It comes again on the next
    /// connection.
    pub(super) fn is_unreadable(&self) -> bool {
        matches!(self, Self::WebSocket(_) | Self::Frame(_) | Self::Message(_) | Self::Text)
    }

    /// Returns whether another connection would not help.
    pub(super) fn is_final(&self) -> bool {
        !self.is_unreadable()
            && !matches!(
                self,
                Self::Ended { .. }
                    | Self::NoWelcome { .. }
                    | Self::Silent { .. }
                    | Self::Handshake(_)
                    | Self::TurnedAway { .. }
                    | Self::Redirected { .. }
            )
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handshake(_) => f.write_str("the WebSocket handshake failed"),
            Self::WebSocket(_) => f.write_str("the node sent an invalid WebSocket frame"),
            Self::Frame(_) => f.write_str("the node sent an invalid frame"),
            Self::Message(_) => f.write_str("the node sent a message that can't be read"),
            Self::Unreadable { messages, last } => write!(
                f,
                "{messages} messages in a row can't be read: {last}; check that client and node \
                 are of compatible versions"
            ),
            Self::NeverSent { received, sent } => {
                write!(f, "the node confirmed {received} messages, but only {sent} were sent")
            }
            Self::Text => {
                f.write_str("the node sent a text message, but those of packed are binary")
            }
            Self::Protocol { protocol } => {
                write!(
                    f,
                    "the node speaks protocol version {protocol}, this client version {PROTOCOL}"
                )
            }
            Self::OutOfTurn { message } => write!(f, "the node sent {message} out of turn"),
            Self::UnknownRequest { request } => {
                write!(f, "the node answered request {request}, which is not waiting for an answer")
            }
            Self::WrongAnswer { request, answer } => {
                write!(
                    f,
                    "the node answered request {request} with {answer}, the wrong kind of answer"
                )
            }
            Self::UnknownRoom { room, message } => {
                write!(
                    f,
                    "the node sent {message} for room {room}, but this client is not in that room"
                )
            }
            Self::RoomNumberTaken { room } => {
                write!(f, "the node used the room number {room} for two rooms")
            }
            Self::NeverInStep { room, unusable } => write!(
                f,
                "the node sent {unusable} updates in a row for room {room} that this client can't \
                 use; check that both were built with the same room type"
            ),
            Self::EventOutOfOrder { room, due, got } => {
                write!(f, "the node sent event {got} of room {room}, but event {due} was expected")
            }
            Self::Silent { silence } => {
                write!(f, "the node sent nothing for {silence:?}, and did not answer a ping")
            }
            Self::TurnedAway { code, text, .. } => {
                write!(f, "the node ended the connection: {code}: {text}")
            }
            Self::Redirected { addresses } => write!(
                f,
                "the node redirected the client to {addresses:?}, where it could not go: it \
                 follows 3 redirects in a row, and takes no address that is less secure"
            ),
            Self::NoWelcome { limit } => write!(f, "the node did not answer within {limit:?}"),
            Self::Ended { close_code: None } => {
                f.write_str("the connection ended without a goodbye")
            }
            Self::Ended { close_code: Some(code) } => {
                write!(f, "the node closed the WebSocket with code {code} and without a goodbye")
            }
        }
    }
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Handshake(source) => Some(source),
            Self::WebSocket(source) => Some(source),
            Self::Frame(source) => Some(source),
            Self::Message(source) => Some(source),
            Self::Unreadable { last, .. } => last.source(),
            _ => None,
        }
    }
}

/// Why a command was refused. Nothing was sent, and the connection is unaffected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandError {
    /// The connection has ended, or this client has said goodbye.
    Closed,
    /// This client is not, or no longer, in the room.
    NotJoined {
        /// The room's number.
        room: RoomNumber,
    },
    /// The message is longer than the node accepts.
    TooLarge {
        /// The length of the message, or of its payload if that alone is too long.
        bytes: usize,
        /// The longest message that the node accepts.
        bytes_max: usize,
    },
    /// The upgraded node has another schema of the room, and the message can't be converted to it:
    /// its payload does not match the type of its number.
    BadMessage {
        /// The room's number.
        room: RoomNumber,
        /// The message's number.
        message: u32,
    },
    /// Too many requests, or pings, are waiting for an answer.
    Busy {
        /// The number of those waiting.
        waiting: usize,
    },
    /// Too many messages were sent that the node has not confirmed.
    Unconfirmed {
        /// The size of these messages, in bytes.
        bytes: usize,
    },
    /// The connection is lost, and the node does not keep the session.
    Away,
    /// This client subscribes to the channel already.
    Subscribed,
    /// This client subscribes to as many channels as it may.
    Subscriptions {
        /// The number of subscriptions.
        subscriptions: usize,
    },
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the connection is closed"),
            Self::NotJoined { room } => write!(f, "this client is not in room {room}"),
            Self::TooLarge { bytes, bytes_max } => {
                write!(f, "the message has {bytes} bytes, but the node accepts at most {bytes_max}")
            }
            Self::BadMessage { room, message } => {
                write!(f, "the payload of message {message} to room {room} is not as its type says")
            }
            Self::Busy { waiting } => {
                write!(
                    f,
                    "{waiting} requests are waiting for an answer; try again when some are answered"
                )
            }
            Self::Unconfirmed { bytes } => write!(
                f,
                "{bytes} bytes were sent that the node has not confirmed; try again when it has"
            ),
            Self::Subscribed => f.write_str(
                "this client subscribes to the channel already; use that subscription, or end it",
            ),
            Self::Subscriptions { subscriptions } => write!(
                f,
                "this client subscribes to {subscriptions} channels, which is the most; \
                 end some subscriptions first"
            ),
            Self::Away => f.write_str("the connection is lost; try again when it is restored"),
        }
    }
}

impl std::error::Error for CommandError {}
