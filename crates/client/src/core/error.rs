//! What ends a connection, and why a command can't be carried out.

use std::fmt;
use std::time::Duration;

use playfield_websocket::handshake::HandshakeError;
use playfield_wire::framing::FrameError;
use playfield_wire::{DecodeError, Format, PROTOCOL};

/// What stands for a close frame without a code, and is written as one (RFC 6455, 7.1.5).
const NO_CLOSE_CODE: u16 = 1005;

/// Why a connection ended otherwise than by a goodbye. Nothing can be done with it any more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientError {
    /// The node did not agree to speak WebSocket.
    Handshake(HandshakeError),
    /// A WebSocket frame breaks RFC 6455, or is past the limit.
    WebSocket(playfield_websocket::Error),
    /// A frame announced no bytes, or more than the limit.
    Frame(FrameError),
    /// A message is malformed or of an unknown kind, and no room is joined, or one has had as much
    /// in a row as it may ([`UNUSABLE_IN_A_ROW_MAX`](super::UNUSABLE_IN_A_ROW_MAX)): then each had
    /// [`Handler::out_of_step`](super::Handler::out_of_step).
    Message(DecodeError),
    /// A text message came where binary was agreed, or the reverse.
    WrongFormat {
        /// What was agreed.
        agreed: Format,
    },
    /// The node speaks another version of the protocol.
    Protocol {
        /// The node's.
        protocol: u64,
    },
    /// A message came before the welcome, or a second welcome.
    OutOfTurn {
        /// What came.
        message: &'static str,
    },
    /// An answer names a request that was never made, or was granted before.
    UnknownRequest {
        /// The number in the answer.
        request: u32,
    },
    /// An answer is not of the kind that the request wants.
    WrongAnswer {
        /// The request's number.
        request: u32,
        /// What came.
        answer: &'static str,
    },
    /// A message names a room that this session isn't in.
    UnknownRoom {
        /// The number in the message.
        room: u32,
        /// What came.
        message: &'static str,
    },
    /// The node gave a room the number of another.
    RoomNumberTaken {
        /// The number.
        room: u32,
    },
    /// More often in a row than [`UNUSABLE_IN_A_ROW_MAX`](super::UNUSABLE_IN_A_ROW_MAX) something
    /// came for a room's copy that it can't use. Each had
    /// [`Handler::out_of_step`](super::Handler::out_of_step).
    NeverInStep {
        /// The room's number.
        room: u32,
        /// How often.
        unusable: u32,
    },
    /// An event is missing, or came twice.
    EventOutOfOrder {
        /// The room's number.
        room: u32,
        /// The sequence number that was due.
        due: u64,
        /// The one that came.
        got: u64,
    },
    /// The node was asked for a sign of life and gave none.
    Silent {
        /// How long nothing has been heard.
        silence: Duration,
    },
    /// The transport ended without a goodbye. On WebSocket, with the code of the close frame if
    /// there was one.
    Ended {
        /// The code of the close frame.
        close_code: Option<u16>,
    },
}

impl ClientError {
    /// The code of the WebSocket close frame that answers it (RFC 6455, 7.4.1): one that came is
    /// answered in kind.
    pub(super) fn close_code(&self) -> u16 {
        match self {
            Self::WebSocket(error) => error.close_code(),
            Self::WrongFormat { .. } => 1003,
            Self::Ended { close_code } => close_code.unwrap_or(NO_CLOSE_CODE),
            Self::Silent { .. } => 1000,
            _ => 1002,
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Handshake(_) => f.write_str("the node did not agree to speak WebSocket"),
            Self::WebSocket(_) => {
                f.write_str("the node sent a WebSocket frame that is not allowed")
            }
            Self::Frame(_) => f.write_str("the node sent a frame that is not allowed"),
            Self::Message(_) => f.write_str("the node sent a message that can't be read"),
            Self::WrongFormat { agreed } => {
                let (got, wanted) =
                    if agreed.is_text() { ("binary", "text") } else { ("text", "binary") };
                write!(f, "the node sent a {got} message; in the format {agreed} they are {wanted}")
            }
            Self::Protocol { protocol } => {
                write!(
                    f,
                    "the node speaks version {protocol} of the protocol, this client {PROTOCOL}"
                )
            }
            Self::OutOfTurn { message } => write!(f, "the node sent {message} out of turn"),
            Self::UnknownRequest { request } => {
                write!(f, "the node answered the request {request}, which was never made")
            }
            Self::WrongAnswer { request, answer } => {
                write!(
                    f,
                    "the node answered the request {request} by {answer}, which is no answer to it"
                )
            }
            Self::UnknownRoom { room, message } => {
                write!(f, "the node sent {message} for room {room}, which this client isn't in")
            }
            Self::RoomNumberTaken { room } => {
                write!(f, "the node gave the number {room} to two rooms")
            }
            Self::NeverInStep { room, unusable } => write!(
                f,
                "the node sent {unusable} snapshots and patches in a row for room {room} that this client can't use; \
                 was it built with the same room?"
            ),
            Self::EventOutOfOrder { room, due, got } => {
                write!(f, "the node sent event {got} of room {room}, {due} was due")
            }
            Self::Silent { silence } => {
                write!(
                    f,
                    "the node has been silent for {silence:?}, though it was asked for a sign of life"
                )
            }
            Self::Ended { close_code: None } => {
                f.write_str("the connection ended without a goodbye")
            }
            Self::Ended { close_code: Some(code) } => {
                write!(
                    f,
                    "the node closed the WebSocket with the code {code} and without a goodbye"
                )
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
            _ => None,
        }
    }
}

/// Why a command was not carried out. Nothing was sent, and the connection is as before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CommandError {
    /// The connection has ended, or this client has said goodbye.
    Closed,
    /// This client isn't in the room, perhaps no longer.
    NotJoined {
        /// The room's number.
        room: u32,
    },
    /// The message is longer than the node takes.
    TooLarge {
        /// The message's bytes, or those of its payload if that alone is too long.
        bytes: usize,
        /// The longest message that the node takes.
        bytes_max: usize,
    },
    /// As many requests, or pings, as may be are waiting for their answers.
    Busy {
        /// How many that is.
        waiting: usize,
    },
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the connection is closed"),
            Self::NotJoined { room } => write!(f, "this client is not in room {room}"),
            Self::TooLarge { bytes, bytes_max } => {
                write!(f, "the message has {bytes} bytes, the node takes {bytes_max}")
            }
            Self::Busy { waiting } => {
                write!(
                    f,
                    "{waiting} requests are waiting for their answers; try again when some have come"
                )
            }
        }
    }
}

impl std::error::Error for CommandError {}
