//! A kind of room that a node can create, whatever its state.

use std::sync::Arc;

use playfield_state::{Data, Format, State};
use playfield_wire::schema::{RoomSchema, SchemaError, fingerprint};

use crate::core::RoomCore;
use crate::message::Declared;
use crate::{AnyRoom, Creator, Error, Room, Settings};

/// What a new room is given.
#[derive(Clone, Debug)]
pub struct Birth<'a> {
    /// The room's id, unique in the node.
    pub id: String,
    /// Seeds the room's generator.
    pub seed: u64,
    /// Its rates and limits: those of its type.
    pub settings: Settings,
    /// Not listed, not matched.
    pub private: bool,
    /// The options, encoded in `format`; empty for the default.
    pub options: &'a [u8],
    /// The format of the options.
    pub format: Format,
    /// The player who asked for the room; `None` if it was created for another reason.
    pub creator: Option<Creator>,
}

/// A kind of room: its name, its schema, its rates and limits, and how to make one.
///
/// The same room can be served under several names at different rates:
/// `RoomType { settings: Settings { tick_hz: 60, ..usual.settings }, ..usual }`.
#[derive(Clone, Debug)]
pub struct RoomType {
    /// The name clients ask for.
    pub name: String,
    /// Of its state, messages and events.
    pub fingerprint: u64,
    /// The schema itself, as JSON: clients that were built with another are told it.
    pub schema: Arc<str>,
    /// Rates and limits; at first those that the attribute `room` gave.
    pub settings: Settings,
    /// Makes a room. `bad_payload` when the options can't be decoded; otherwise the room's own
    /// refusal.
    pub create: fn(Birth<'_>) -> Result<Box<dyn AnyRoom>, Error>,
}

impl RoomType {
    /// Rooms of type `R`, under a name.
    ///
    /// # Panics
    /// If clients could not read its schema: types in it lie deeper within each other than
    /// [`TYPE_DEPTH_MAX`](playfield_wire::schema::TYPE_DEPTH_MAX), or its JSON is longer than
    /// [`SCHEMA_BYTES_MAX`](playfield_wire::schema::SCHEMA_BYTES_MAX). Both follow from the types
    /// alone, so no node is ever started with such a room.
    pub fn of<R: Room>(name: &str) -> Self {
        let schema = schema::<R>();
        let text = schema.to_json_in_limits().unwrap_or_else(|error| {
            panic!("the room type {name:?} can't be served, since clients could not read its schema: {error}. {}", mend(&error))
        });
        Self {
            name: name.to_owned(),
            fingerprint: fingerprint(&schema),
            schema: text.into(),
            settings: R::SETTINGS,
            create: RoomCore::<R>::create,
        }
    }
}

/// What to do about a schema that is past a limit.
fn mend(error: &SchemaError) -> &'static str {
    match error {
        SchemaError::TooLong { .. } => {
            "A type stands in a schema once for each field that is of it: let fewer fields be of the largest types, or make several rooms of it"
        }
        _ => "Keep what lies that deep in a map at the root, and where it was the key",
    }
}

/// The schema of a room type: its state, options, messages and events.
///
/// # Panics
/// If types in it hold each other, so that it has no end. (One that holds itself doesn't compile.)
pub fn schema<R: Room>() -> RoomSchema {
    let mut schema = RoomSchema {
        state: <R as State>::schema(),
        options: <R::Options as Data>::schema(),
        messages: Vec::new(),
        events: Vec::new(),
    };
    <R as Declared>::declare(&mut schema);
    schema
}
