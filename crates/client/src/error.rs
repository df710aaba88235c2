//! What can go wrong for a user of the client on tokio.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use playfield_state::ShapeError;
use playfield_websocket::handshake::HandshakeError;
use playfield_wire::schema::{Incompatible, SchemaError};
use playfield_wire::{DecodeError, ErrorCode};

use crate::core::{ClientError, CommandError, Failure};

/// Why something that was asked of a connection or a room did not happen.
#[derive(Clone, Debug)]
pub struct Error {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Refused { code: ErrorCode, text: String },
    Left { code: ErrorCode, text: String },
    Closed(Ending),
    Unreachable { address: String, source: Arc<io::Error> },
    Handshake(HandshakeError),
    Payload { what: &'static str, source: DecodeError },
    Incompatible(Incompatible),
    Schema(SchemaError),
    Shape(ShapeError),
    NoSchema { room_type: String, waited: Duration },
    Command(CommandError),
    Lost,
    Missed { events: u64 },
    LostEvents { events: u64 },
    MissedChanges { changes: u64 },
    Usage(String),
}

/// How a connection ended.
#[derive(Clone, Debug)]
pub(crate) enum Ending {
    /// This client said goodbye, or all its handles were dropped.
    Here,
    /// The node said goodbye.
    Goodbye { code: ErrorCode, text: String },
    /// The socket failed.
    Socket(Arc<io::Error>),
    /// The node broke the protocol, or fell silent.
    Broken(ClientError),
}

impl Error {
    pub(crate) fn refused(code: ErrorCode, text: impl Into<String>) -> Self {
        Self { kind: Kind::Refused { code, text: text.into() } }
    }

    pub(crate) fn left(code: ErrorCode, text: impl Into<String>) -> Self {
        Self { kind: Kind::Left { code, text: text.into() } }
    }

    pub(crate) fn closed(ending: Ending) -> Self {
        Self { kind: Kind::Closed(ending) }
    }

    pub(crate) fn unreachable(address: &str, source: io::Error) -> Self {
        Self { kind: Kind::Unreachable { address: address.to_owned(), source: Arc::new(source) } }
    }

    pub(crate) fn payload(what: &'static str, source: DecodeError) -> Self {
        Self { kind: Kind::Payload { what, source } }
    }

    pub(crate) fn incompatible(error: Incompatible) -> Self {
        Self { kind: Kind::Incompatible(error) }
    }

    pub(crate) fn schema(error: SchemaError) -> Self {
        Self { kind: Kind::Schema(error) }
    }

    pub(crate) fn shape(error: ShapeError) -> Self {
        Self { kind: Kind::Shape(error) }
    }

    pub(crate) fn no_schema(room_type: &str, waited: Duration) -> Self {
        Self { kind: Kind::NoSchema { room_type: room_type.to_owned(), waited } }
    }

    pub(crate) fn missed(events: u64) -> Self {
        Self { kind: Kind::Missed { events } }
    }

    pub(crate) fn lost_events(events: u64) -> Self {
        Self { kind: Kind::LostEvents { events } }
    }

    pub(crate) fn missed_changes(changes: u64) -> Self {
        Self { kind: Kind::MissedChanges { changes } }
    }

    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Self { kind: Kind::Usage(text.into()) }
    }

    /// Whether the node or the room said no. [`code`](Self::code) and [`text`](Self::text) say why;
    /// the connection goes on.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self.kind, Kind::Refused { .. })
    }

    /// Whether this client is no longer in the room: it left, was removed, or the room ended.
    /// [`code`](Self::code) says which.
    #[must_use]
    pub fn is_left(&self) -> bool {
        matches!(self.kind, Kind::Left { .. } | Kind::Command(CommandError::NotJoined { .. }))
    }

    /// Whether the connection is over.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.kind, Kind::Closed(_) | Kind::Command(CommandError::Closed))
    }

    /// Whether the node's rooms of this type are of a build that this client's does not fit. The
    /// text names the first place in which they differ.
    #[must_use]
    pub fn is_incompatible(&self) -> bool {
        matches!(self.kind, Kind::Incompatible(_))
    }

    /// Whether the node did not tell in time what entering a room waited for; see
    /// [`Connect::schema_timeout`](crate::Connect::schema_timeout).
    #[must_use]
    pub fn is_timed_out(&self) -> bool {
        matches!(self.kind, Kind::NoSchema { .. })
    }

    /// Whether the answer may have been lost, since a message of the node could not be read:
    /// whether what was asked was done is not known. The connection goes on, and so does the room,
    /// whose copy is mended.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self.kind, Kind::Lost)
    }

    /// Whether events or changes were missed: because they were not taken out in time, events
    /// because messages of the node could not be read, or changes because a copy had to be mended.
    #[must_use]
    pub fn is_missed(&self) -> bool {
        matches!(
            self.kind,
            Kind::Missed { .. } | Kind::LostEvents { .. } | Kind::MissedChanges { .. }
        )
    }

    /// The code that the node or the room gave.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match &self.kind {
            Kind::Refused { code, .. }
            | Kind::Left { code, .. }
            | Kind::Closed(Ending::Goodbye { code, .. }) => Some(*code),
            Kind::Incompatible(_) => Some(ErrorCode::SchemaMismatch),
            Kind::Command(CommandError::TooLarge { .. }) => Some(ErrorCode::TooLarge),
            Kind::Command(CommandError::Busy { .. }) => Some(ErrorCode::Busy),
            Kind::Command(CommandError::NotJoined { .. }) => Some(ErrorCode::NotJoined),
            _ => None,
        }
    }

    /// What the node or the room said beside the code; empty if it said nothing.
    #[must_use]
    pub fn text(&self) -> &str {
        match &self.kind {
            Kind::Refused { text, .. }
            | Kind::Left { text, .. }
            | Kind::Closed(Ending::Goodbye { text, .. })
            | Kind::Usage(text) => text,
            _ => "",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Refused { code, text } => with_text(f, "refused", *code, text),
            Kind::Left { code, text } => with_text(f, "no longer in the room", *code, text),
            Kind::Closed(Ending::Here) => f.write_str("this client has closed the connection"),
            Kind::Closed(Ending::Goodbye { code, text }) => {
                with_text(f, "the node ended the connection", *code, text)
            }
            Kind::Closed(Ending::Socket(_)) => f.write_str("the connection was lost"),
            Kind::Closed(Ending::Broken(error)) => error.fmt(f),
            Kind::Unreachable { address, .. } => write!(f, "{address} can't be reached"),
            Kind::Handshake(_) => f.write_str("the URL can't be asked for over WebSocket"),
            Kind::Payload { what, .. } => {
                write!(
                    f,
                    "{what} is not of the type it is read as; was this client built with the same room?"
                )
            }
            Kind::Incompatible(error) => error.fmt(f),
            Kind::Shape(_) => f.write_str("the node's schema of the room is none that a room has"),
            Kind::Schema(_) => f.write_str("the node's schema of the room can't be read"),
            Kind::NoSchema { room_type, waited } => write!(
                f,
                "the node did not tell the schema of the room type {room_type:?} within {waited:?}; try again, or wait longer"
            ),
            Kind::Command(error) => error.fmt(f),
            Kind::Lost => f.write_str(
                "a message of the node can't be read, and the answer may have been lost with it: whether this was done is not known",
            ),
            Kind::LostEvents { events } => {
                write!(f, "{events} events were lost in messages of the node that can't be read")
            }
            Kind::Missed { events } => {
                write!(f, "{events} events came faster than they were taken out, and were dropped")
            }
            Kind::MissedChanges { changes: 0 } => {
                f.write_str("changes were missed, since the copy had to be mended by a snapshot")
            }
            Kind::MissedChanges { changes } => {
                write!(f, "{changes} changes came faster than they were taken out, and were dropped")
            }
            Kind::Usage(text) => f.write_str(text),
        }
    }
}

fn with_text(f: &mut fmt::Formatter<'_>, what: &str, code: ErrorCode, text: &str) -> fmt::Result {
    if text.is_empty() { write!(f, "{what}: {code}") } else { write!(f, "{what}: {code}: {text}") }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            Kind::Closed(Ending::Socket(source)) | Kind::Unreachable { source, .. } => {
                Some(&**source)
            }
            // Its own words were shown in place of ours.
            Kind::Closed(Ending::Broken(error)) => error.source(),
            Kind::Handshake(source) => Some(source),
            Kind::Payload { source, .. } => Some(source),
            Kind::Schema(source) => Some(source),
            Kind::Shape(source) => Some(source),
            _ => None,
        }
    }
}

impl From<&Failure<'_>> for Error {
    fn from(failure: &Failure<'_>) -> Self {
        match failure {
            Failure::Refused { code, text, .. } => Self::refused(*code, &**text),
            Failure::Left { code, text } => Self::left(*code, &**text),
            Failure::Lost => Self { kind: Kind::Lost },
            Failure::Closed => CommandError::Closed.into(),
        }
    }
}

impl From<CommandError> for Error {
    fn from(error: CommandError) -> Self {
        Self { kind: Kind::Command(error) }
    }
}

impl From<HandshakeError> for Error {
    fn from(error: HandshakeError) -> Self {
        Self { kind: Kind::Handshake(error) }
    }
}
