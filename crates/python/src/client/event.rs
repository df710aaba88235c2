//! Events of a session, as objects for Python.

use std::collections::HashMap;

use playfield_client::session::{self, ClientError, Failure, Position, Subscribed, Unusable};
use playfield_wire::message::MessageRef;
use playfield_wire::{ErrorCode, RequestNumber, server};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::copy::RoomCopy;
use super::values::object;

/// A room in a list: id, type, key, players, capacity, whether it is locked, and metadata.
type ListedRoom = (String, String, Option<String>, u32, u32, bool, HashMap<String, String>);

/// Something that happened. Each variant is a class with the fields as attributes. Payloads are as
/// they came: what nobody reads is not decoded.
#[pyclass(frozen, module = "playfield._playfield")]
pub(crate) enum Event {
    Welcome {
        session: u64,
    },
    Lost {
        code: String,
        text: String,
    },
    AttemptFailed {
        text: String,
        is_last: bool,
    },
    Resumed {
        lost: Vec<(Option<u32>, u64)>,
    },
    Weak {
        is_weak: bool,
    },
    NewSession {
        session: u64,
    },
    Unconfirmed {
        sends: u64,
    },
    Goodbye {
        code: String,
        text: String,
    },
    Closed {
        text: Option<String>,
    },
    Pong {
        nonce: u64,
        round_trip: f64,
    },

    Reply {
        request: u32,
        payload: Py<PyBytes>,
    },
    /// Without a code, what was asked for does not match the schema.
    Failed {
        request: u32,
        code: Option<String>,
        text: String,
        retry_after: Option<f64>,
    },
    Listed {
        request: u32,
        rooms: Vec<ListedRoom>,
    },
    /// The room that was asked for is at another node.
    Redirected {
        request: u32,
        addresses: Vec<String>,
        reservation: String,
    },
    Schema {
        request: Option<u32>,
        schema: Py<PyBytes>,
    },

    Joined {
        request: u32,
        room: u32,
        /// The node's information about the room: a dict.
        info: Py<PyAny>,
        copy: Py<RoomCopy>,
    },
    Entered {
        room: u32,
    },
    Unusable {
        room: u32,
        text: String,
    },
    Left {
        room: u32,
        request: Option<u32>,
        code: String,
        text: String,
    },
    Update {
        room: u32,
        version: u64,
    },
    Emitted {
        room: u32,
        number: u32,
        payload: Py<PyBytes>,
    },
    Missed {
        room: u32,
        events: u64,
    },
    Error {
        room: Option<u32>,
        code: String,
        text: String,
    },

    Subscribed {
        subscription: u32,
        position: (u64, u64),
        recovered: bool,
        missed: u64,
        members: u64,
        has_bytes: bool,
    },
    Unsubscribed {
        subscription: u32,
        code: String,
        text: String,
    },
    Publication {
        subscription: u32,
        offset: u64,
        user: Option<String>,
        payload: Py<PyBytes>,
    },
    PublicationsMissed {
        subscription: u32,
        publications: u64,
    },
    Presence {
        subscription: u32,
        sequence: u64,
        joined: bool,
        member: (u64, Option<String>, String),
    },
    Published {
        request: u32,
        offset: u64,
    },
    Members {
        request: u32,
        sequence: u64,
        count: u64,
        members: Vec<(u64, Option<String>, String)>,
    },
    History {
        request: u32,
        position: (u64, u64),
        has_bytes: bool,
        publications: Vec<(u64, Option<String>, Py<PyBytes>)>,
    },

    Registered {
        request: Option<u32>,
        is_new: bool,
        has_bytes: bool,
    },
    Unregistered {
        code: String,
        text: String,
    },
    Command {
        number: Option<u64>,
        payload: Py<PyBytes>,
    },
}

/// The copies of rooms that were asked for, by request.
pub(super) type Copies = HashMap<RequestNumber, RoomCopy>;

impl Event {
    /// The event for Python; `None` if it is of no use there.
    pub(super) fn of(
        py: Python<'_>,
        event: session::Event<'_>,
        copies: &mut Copies,
    ) -> PyResult<Option<Self>> {
        use session::Event as Of;
        let bytes = |payload: &[u8]| PyBytes::new(py, payload).unbind();
        let text = |text: Option<std::borrow::Cow<'_, str>>| text.map(String::from);
        let name = |code: ErrorCode| code.name().to_string();
        Ok(Some(match event {
            Of::Update { room, version, .. } => Self::Update { room: room.0, version },
            Of::Event(server::Event {
                room, message: MessageRef::Index(number), payload, ..
            }) => Self::Emitted { room: room.0, number, payload: bytes(&payload) },
            Of::Reply(server::Reply { request, payload }) => {
                Self::Reply { request: request.0, payload: bytes(&payload) }
            }
            Of::Welcome(welcome) => Self::Welcome { session: welcome.session },
            Of::ConnectionLost { error } => {
                let code = match &error {
                    ClientError::TurnedAway { code, .. } => *code,
                    _ => ErrorCode::ConnectionLost,
                };
                Self::Lost { code: name(code), text: error.to_string() }
            }
            Of::AttemptFailed { error, is_last } => {
                Self::AttemptFailed { text: error.to_string(), is_last }
            }
            Of::Resumed(resumed) => {
                let lost = resumed.lost.iter();
                let lost = lost.map(|lost| (lost.room.map(|room| room.0), lost.messages));
                Self::Resumed { lost: lost.collect() }
            }
            Of::Weak { is_weak } => Self::Weak { is_weak },
            Of::NewSession(welcome) => Self::NewSession { session: welcome.session },
            Of::Unconfirmed { sends } => Self::Unconfirmed { sends },
            Of::Goodbye(goodbye) => {
                Self::Goodbye { code: name(goodbye.code), text: goodbye.text.into() }
            }
            Of::Closed { error } => Self::Closed { text: error.map(|error| error.to_string()) },
            Of::Pong { nonce, round_trip } => {
                Self::Pong { nonce, round_trip: round_trip.as_secs_f64() }
            }
            Of::Failed { request, failure } => {
                copies.remove(&request);
                failed(request, &failure)
            }
            Of::Listed(server::Listed { request, rooms }) => {
                let rooms = rooms.into_iter().map(|room| {
                    let metadata = room.metadata.into_iter();
                    let metadata = metadata.map(|(name, value)| (name.into(), value.into()));
                    let (id, room_type) = (room.id.into(), room.room_type.into());
                    let (players, capacity, locked) = (room.players, room.capacity, room.locked);
                    (id, room_type, text(room.key), players, capacity, locked, metadata.collect())
                });
                Self::Listed { request: request.0, rooms: rooms.collect() }
            }
            Of::Schema(server::Schema { request, schema, .. }) => {
                Self::Schema { request: request.map(|of| of.0), schema: bytes(&schema) }
            }
            Of::Joined(joined) => Self::Joined {
                request: joined.request.0,
                room: joined.room.0,
                info: object(py, &joined.to_value(), None)?.unbind(),
                copy: Py::new(py, copies.remove(&joined.request).unwrap_or_default())?,
            },
            Of::Entered { room, .. } => Self::Entered { room: room.0 },
            Of::Unusable { room, why } => Self::Unusable { room: room.0, text: why.to_string() },
            Of::Left(server::Left { request, room, code, text }) => Self::Left {
                room: room.0,
                request: request.map(|request| request.0),
                code: name(code),
                text: text.into(),
            },
            Of::Missed { room, events } => Self::Missed { room: room.0, events },
            // An error that closes the connection is why it ends.
            Of::Error(server::Error { room: None, code, text, .. }) if code.closes() => {
                Self::Goodbye { code: name(code), text: text.into() }
            }
            Of::Error(server::Error { room, code, text, .. }) => {
                let room = room.map(|room| room.0);
                Self::Error { room, code: name(code), text: text.into() }
            }
            Of::Subscribed(subscription, subscribed) => {
                let Subscribed { position, recovered, missed, members, bytes } = subscribed;
                let Position { epoch, offset } = position;
                let (subscription, position) = (subscription.0, (epoch, offset));
                let has_bytes = bytes;
                Self::Subscribed { subscription, position, recovered, missed, members, has_bytes }
            }
            Of::Unsubscribed { subscription, code, text } => {
                Self::Unsubscribed { subscription: subscription.0, code: name(code), text }
            }
            Of::Publication(subscription, publication) => Self::Publication {
                subscription: subscription.0,
                offset: publication.offset,
                user: text(publication.user),
                payload: bytes(&publication.payload),
            },
            Of::PublicationsMissed { subscription, publications } => {
                Self::PublicationsMissed { subscription: subscription.0, publications }
            }
            Of::Presence(subscription, presence) => Self::Presence {
                subscription: subscription.0,
                sequence: presence.sequence,
                joined: presence.joined,
                member: (presence.session, text(presence.user), presence.name.into()),
            },
            Of::Published(server::Published { request, offset, .. }) => {
                Self::Published { request: request.0, offset }
            }
            Of::Members(server::Members { request, sequence, count, members }) => {
                let members = members.into_iter();
                let members = members.map(|of| (of.session, text(of.user), of.name.into()));
                Self::Members { request: request.0, sequence, count, members: members.collect() }
            }
            Of::History(history) => {
                let publications = history.publications.into_iter();
                let publications =
                    publications.map(|past| (past.offset, text(past.user), bytes(&past.payload)));
                Self::History {
                    request: history.request.0,
                    position: (history.epoch, history.offset),
                    has_bytes: history.bytes,
                    publications: publications.collect(),
                }
            }
            Of::Registered { request, is_new, bytes } => {
                let request = request.map(|request| request.0);
                Self::Registered { request, is_new, has_bytes: bytes }
            }
            Of::Unregistered { code, text } => Self::Unregistered { code: name(code), text },
            Of::Command(server::Command { command, payload }) => {
                Self::Command { number: command, payload: bytes(&payload) }
            }
            Of::Redirected(server::Redirect { request, addresses, reservation }) => {
                copies.remove(&request);
                let addresses = addresses.into_iter().map(String::from).collect();
                let reservation = reservation.into();
                Self::Redirected { request: request.0, addresses, reservation }
            }
            Of::Event(_)
            | Of::OutOfStep { .. }
            | Of::Checked { .. }
            | Of::PublicationIgnored { .. } => return Ok(None),
        }))
    }
}

fn failed(request: RequestNumber, failure: &Failure<'_>) -> Event {
    let text = match failure {
        Failure::Refused { text, .. } | Failure::Left { text, .. } => text.to_string(),
        Failure::Lost => "the answer was lost with the connection: it is unknown whether this was \
                          done"
            .to_owned(),
        Failure::Closed => "the session ended before the answer came: it is unknown whether this \
                            was done"
            .to_owned(),
        Failure::Unusable(Unusable::Options(why)) => why.to_string(),
        Failure::Unusable(_) | Failure::NotSent(_) => failure.to_string(),
    };
    let code = match failure {
        Failure::Refused { code, .. } | Failure::Left { code, .. } => Some(*code),
        Failure::Lost | Failure::Closed => Some(ErrorCode::ConnectionLost),
        Failure::Unusable(Unusable::Options(_)) => None,
        Failure::Unusable(_) | Failure::NotSent(_) => Some(ErrorCode::Refused),
    };
    let retry_after = match failure {
        Failure::Refused { retry_after, .. } => retry_after.map(|wait| wait.as_secs_f64()),
        _ => None,
    };
    let code = code.map(|code| code.name().to_string());
    Event::Failed { request: request.0, code, text, retry_after }
}
