//! A kind of room that a node can create, whatever its state.

use std::sync::Arc;

use playfield_state::{Data, Format, State};
use playfield_wire::schema::{RoomSchema, fingerprint};

use crate::core::RoomCore;
use crate::message::Declared;
use crate::{AnyRoom, Error, Room, Settings};

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
    /// Makes a room. `bad_payload` when the options can't be decoded; otherwise the room's own refusal.
    pub create: fn(Birth<'_>) -> Result<Box<dyn AnyRoom>, Error>,
}

impl RoomType {
    /// Rooms of type `R`, under a name.
    pub fn of<R: Room>(name: &str) -> Self {
        let schema = schema::<R>();
        Self {
            name: name.to_owned(),
            fingerprint: fingerprint(&schema),
            schema: schema.to_json().into(),
            settings: R::SETTINGS,
            create: RoomCore::<R>::create,
        }
    }
}

/// The schema of a room type: its state, options, messages and events.
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
