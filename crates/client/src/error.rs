//! The error of the client.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use playfield_state::ShapeError;
use playfield_websocket::handshake::HandshakeError;
use playfield_wire::schema::{Incompatible, SchemaError};
use playfield_wire::{DecodeError, ErrorCode};

use crate::ending::Ending;
use crate::session::{CommandError, Failure, Unusable, UrlError};

/// Why a command to a connection or a room failed. The methods distinguish the kinds of failure.
///
/// ```
/// use playfield_client::Error;
///
/// fn report(error: &Error) {
///     if error.is_closed() {
///         println!("connect again: {error}");
///     } else if error.is_refused() {
///         println!("refused with {:?}: {}", error.code(), error.text());
///     } else {
///         println!("{error}");
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Error {
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Refused {
        code: ErrorCode,
        text: String,
        retry_after: Option<Duration>,
    },
    Left {
        code: ErrorCode,
        text: String,
    },
    /// This client had to leave the room.
    Unusable(Box<Error>),
    Closed(Ending),
    Unreachable {
        address: String,
        source: Arc<io::Error>,
    },
    /// The room is at another node, which this client has not come to.
    Elsewhere(String),
    NoToken(Arc<dyn std::error::Error + Send + Sync>),
    #[cfg(feature = "tls")]
    Insecure {
        address: String,
        why: String,
        is_untrusted: bool,
    },
    Handshake(HandshakeError),
    Payload {
        what: &'static str,
        source: DecodeError,
    },
    Incompatible(Incompatible),
    Schema(SchemaError),
    Shape(ShapeError),
    NoSchema {
        room_type: String,
        waited: Duration,
    },
    Command(CommandError),
    Lost,
    Missed {
        events: u64,
    },
    LostEvents {
        events: u64,
    },
    MissedChanges {
        changes: u64,
    },
    Usage(String),
}

impl Error {
    pub(crate) fn refused(code: ErrorCode, text: impl Into<String>) -> Self {
        Self { kind: Kind::Refused { code, text: text.into(), retry_after: None } }
    }

    /// The node refuses the connection.
    pub(crate) fn turned_away(
        code: ErrorCode,
        text: impl Into<String>,
        retry_after: Option<Duration>,
    ) -> Self {
        Self { kind: Kind::Refused { code, text: text.into(), retry_after } }
    }

    pub(crate) fn left(code: ErrorCode, text: impl Into<String>) -> Self {
        Self { kind: Kind::Left { code, text: text.into() } }
    }

    /// This client leaves the room because of this error.
    pub(crate) fn unusable(why: Self) -> Self {
        Self { kind: Kind::Unusable(Box::new(why)) }
    }

    /// The session could not be resumed.
    pub(crate) fn new_session() -> Self {
        let text = "the node no longer had the session when the connection was restored; \
                    join the room again";
        Self::left(ErrorCode::ConnectionLost, text)
    }

    /// The node took too long to answer.
    pub(crate) fn no_answer(address: &str, timeout: Duration) -> Self {
        let text = format!("the node did not answer within {timeout:?}");
        Self::unreachable(address, io::Error::new(io::ErrorKind::TimedOut, text))
    }

    /// The function that gives the token failed.
    pub(crate) fn no_token(source: Box<dyn std::error::Error + Send + Sync>) -> Self {
        Self { kind: Kind::NoToken(source.into()) }
    }

    /// Returns the end of the connection, if that is the error.
    pub(crate) fn into_ending(self) -> Option<Ending> {
        match self.kind {
            Kind::Closed(ending) => Some(ending),
            _ => None,
        }
    }

    pub(crate) fn closed(ending: Ending) -> Self {
        Self { kind: Kind::Closed(ending) }
    }

    pub(crate) fn unreachable(address: &str, source: io::Error) -> Self {
        Self { kind: Kind::Unreachable { address: address.to_owned(), source: Arc::new(source) } }
    }

    /// The room is at another node, which this client has not come to.
    pub(crate) fn elsewhere(text: String) -> Self {
        Self { kind: Kind::Elsewhere(text) }
    }

    /// Returns whether no answer came, since there was no connection, or it has ended.
    pub(crate) fn is_unanswered(&self) -> bool {
        #[cfg(feature = "tls")]
        if matches!(self.kind, Kind::Insecure { .. }) {
            return true;
        }
        self.is_unreachable() || self.is_closed()
    }

    /// The TLS handshake failed.
    #[cfg(feature = "tls")]
    pub(crate) fn insecure(address: &str, why: String, is_untrusted: bool) -> Self {
        Self { kind: Kind::Insecure { address: address.to_owned(), why, is_untrusted } }
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

    /// Returns whether the node or the room refused. [`code`](Self::code) and [`text`](Self::text)
    /// say why; the connection is unaffected.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        matches!(self.kind, Kind::Refused { .. })
    }

    /// Returns whether the node can't be reached, or did not answer while connecting. If it is
    /// another node of a cluster, to which a join was redirected, the [code](Self::code) is
    /// `unreachable`.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self.kind, Kind::Unreachable { .. } | Kind::Elsewhere(_))
    }

    /// Returns whether this client is not in the room: it left, was removed, or the room ended.
    /// [`code`](Self::code) says which. A client also leaves a room whose state it can't read.
    #[must_use]
    pub fn is_left(&self) -> bool {
        matches!(
            self.kind,
            Kind::Left { .. } | Kind::Unusable(_) | Kind::Command(CommandError::NotJoined { .. })
        )
    }

    /// Returns whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        matches!(self.kind, Kind::Closed(_) | Kind::Command(CommandError::Closed))
    }

    /// Returns whether the node's room type is incompatible with this client's. The message names
    /// the first difference.
    #[must_use]
    pub fn is_incompatible(&self) -> bool {
        matches!(self.kind, Kind::Incompatible(_))
    }

    /// Returns whether the function that gives the token failed, or took too long; see
    /// [`Connect::token_by`](crate::Connect::token_by).
    #[must_use]
    pub fn is_token_missing(&self) -> bool {
        matches!(self.kind, Kind::NoToken(_))
    }

    /// Returns whether the node's TLS certificate was not accepted: it is expired, for another
    /// name, or from an unknown issuer. Another attempt will fail too.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn is_untrusted(&self) -> bool {
        matches!(self.kind, Kind::Insecure { is_untrusted: true, .. })
    }

    /// Returns whether the node did not send a room's schema in time; see
    /// [`Connect::timeout`](crate::Connect::timeout).
    #[must_use]
    pub fn is_timed_out(&self) -> bool {
        matches!(self.kind, Kind::NoSchema { .. })
    }

    /// Returns whether the answer was lost: the connection was lost, and the node had to forget the
    /// answer, or no longer had the session. It is unknown whether the node did what was asked.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        matches!(self.kind, Kind::Lost)
    }

    /// Returns whether events or changes were missed: because they were not taken out in time,
    /// because the node had to forget them while the connection was lost, or because a copy had to
    /// be replaced.
    #[must_use]
    pub fn is_missed(&self) -> bool {
        matches!(
            self.kind,
            Kind::Missed { .. } | Kind::LostEvents { .. } | Kind::MissedChanges { .. }
        )
    }

    /// Returns the number of events or changes that were [missed](Self::is_missed); 0 if that is
    /// unknown, because a copy had to be replaced, or if this is another error.
    #[must_use]
    pub fn missed_count(&self) -> u64 {
        match self.kind {
            Kind::Missed { events } | Kind::LostEvents { events } => events,
            Kind::MissedChanges { changes } => changes,
            _ => 0,
        }
    }

    /// Returns the time to wait before asking again, if a request was refused because a rate was
    /// exceeded, or before connecting again, if the node refused the connection and said so. The
    /// client itself waits that long before it connects again.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match &self.kind {
            Kind::Refused { retry_after, .. }
            | Kind::Closed(Ending::Goodbye { retry_after, .. }) => *retry_after,
            Kind::Closed(Ending::GaveUp { last, .. }) => last.retry_after(),
            _ => None,
        }
    }

    /// The code that the node or the room gave.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        match &self.kind {
            Kind::Refused { code, .. }
            | Kind::Left { code, .. }
            | Kind::Closed(Ending::Goodbye { code, .. }) => Some(*code),
            Kind::Closed(Ending::GaveUp { last, .. }) => last.code(),
            Kind::Elsewhere(_) => Some(ErrorCode::Unreachable),
            Kind::Incompatible(_) => Some(ErrorCode::SchemaMismatch),
            Kind::Command(CommandError::TooLarge { .. }) => Some(ErrorCode::TooLarge),
            Kind::Command(CommandError::Busy { .. }) => Some(ErrorCode::Busy),
            Kind::Command(CommandError::NotJoined { .. }) => Some(ErrorCode::NotJoined),
            _ => None,
        }
    }

    /// The explanation that the node or the room gave; may be empty.
    #[must_use]
    pub fn text(&self) -> &str {
        match &self.kind {
            Kind::Refused { text, .. }
            | Kind::Left { text, .. }
            | Kind::Closed(Ending::Goodbye { text, .. })
            | Kind::Elsewhere(text)
            | Kind::Usage(text) => text,
            Kind::Closed(Ending::GaveUp { last, .. }) => last.text(),
            _ => "",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Refused { code, text, .. } => with_text(f, "refused", *code, text),
            Kind::Left { code, text } => with_text(f, "no longer in the room", *code, text),
            Kind::Unusable(why) => write!(f, "this client has left the room: {why}"),
            Kind::Closed(Ending::Here) => f.write_str("this client closed the connection"),
            Kind::Closed(Ending::Goodbye { code, text, .. }) => {
                with_text(f, "the node ended the connection", *code, text)
            }
            Kind::Closed(Ending::Socket(_)) => f.write_str("the connection was lost"),
            Kind::Closed(Ending::Broken(error)) => error.fmt(f),
            Kind::Closed(Ending::Unwelcome(ending)) => {
                let ending = Self::closed((**ending).clone());
                write!(
                    f,
                    "{ending} before the node answered: it may have refused it, as one connection \
                     too many"
                )
            }
            Kind::Closed(Ending::GaveUp { lost, tried, last }) => {
                let lost = Self::closed((**lost).clone());
                write!(f, "{lost}; the client has tried to connect again for {tried:?}: {last}")
            }
            Kind::Unreachable { address, .. } => write!(f, "{address} can't be reached"),
            Kind::NoToken(source) => {
                write!(f, "the function that gives the token failed: {source}")
            }
            #[cfg(feature = "tls")]
            Kind::Insecure { address, why, .. } => write!(f, "{address}: {why}"),
            Kind::Handshake(_) => f.write_str("the URL is invalid for WebSocket"),
            Kind::Payload { what, .. } => {
                write!(
                    f,
                    "{what} can't be read as its type; \
                     check that client and node have the same room type"
                )
            }
            Kind::Incompatible(error) => error.fmt(f),
            Kind::Shape(_) => f.write_str("the node's schema is not valid for a room"),
            Kind::Schema(_) => f.write_str("the node's schema can't be read"),
            Kind::NoSchema { room_type, waited } => write!(
                f,
                "the node did not send the schema of the room type {room_type:?} \
                 within {waited:?}; try again, or set a longer timeout"
            ),
            Kind::Command(error) => error.fmt(f),
            Kind::Lost => f.write_str(
                "the answer was lost with the connection: it is unknown whether this was done",
            ),
            Kind::LostEvents { events } => {
                write!(f, "{events} events were lost while the connection was lost")
            }
            Kind::Missed { events } => {
                write!(f, "{events} events were dropped because they were not taken out in time")
            }
            Kind::MissedChanges { changes: 0 } => {
                f.write_str("changes were missed because the copy had to be replaced by a snapshot")
            }
            Kind::MissedChanges { changes } => {
                write!(f, "{changes} changes were dropped because they were not taken out in time")
            }
            Kind::Elsewhere(text) | Kind::Usage(text) => f.write_str(text),
        }
    }
}

fn with_text(f: &mut fmt::Formatter<'_>, what: &str, code: ErrorCode, text: &str) -> fmt::Result {
    let code = code.to_string();
    match text {
        "" if code == what => f.write_str(what),
        "" => write!(f, "{what}: {code}"),
        text if code == what => write!(f, "{what}: {text}"),
        text => write!(f, "{what}: {code}: {text}"),
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            Kind::Closed(Ending::Socket(source)) | Kind::Unreachable { source, .. } => {
                Some(&**source)
            }
            Kind::NoToken(source) => Some(&**source),
            // Its own message was displayed.
            Kind::Closed(Ending::Broken(error)) => error.source(),
            Kind::Closed(Ending::Unwelcome(ending)) => match &**ending {
                Ending::Socket(source) => Some(&**source),
                _ => None,
            },
            Kind::Closed(Ending::GaveUp { last, .. }) => last.source(),
            Kind::Unusable(why) => why.source(),
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
            Failure::Refused { code, text, retry_after } => {
                let (code, text, retry_after) = (*code, text.to_string(), *retry_after);
                Self { kind: Kind::Refused { code, text, retry_after } }
            }
            Failure::Left { code, text } => Self::left(*code, &**text),
            Failure::Lost => Self { kind: Kind::Lost },
            Failure::Closed => CommandError::Closed.into(),
            Failure::Unusable(why) => why.clone().into(),
            Failure::NotSent(error) => (*error).into(),
        }
    }
}

impl From<Unusable> for Error {
    fn from(why: Unusable) -> Self {
        match why {
            Unusable::Incompatible(error) => Self::incompatible(error),
            Unusable::Schema(error) => Self::schema(error),
            Unusable::Shape(error) => Self::shape(error),
            Unusable::NoSchema { room_type, waited } => Self::no_schema(&room_type, waited),
            Unusable::Options(error) => Self::payload("the options", error),
            Unusable::State(error) => Self::payload("the room's state", error),
            Unusable::NotSent(failure) => (&*failure).into(),
        }
    }
}

impl From<UrlError> for Error {
    fn from(error: UrlError) -> Self {
        Self::usage(error.to_string())
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
