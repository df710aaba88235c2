//! A kind of room that a node can create, whatever its state.

use playfield_state::{Format, State};
use playfield_wire::schema::{RoomSchema, fingerprint};

use crate::core::RoomCore;
use crate::message::Declared;
use crate::{AnyRoom, Error, Room};

/// What a new room is given.
#[derive(Clone, Debug)]
pub struct Birth<'a> {
    /// The room's id, unique in the node.
    pub id: String,
    /// Seeds the room's generator.
    pub seed: u64,
    /// Not listed, not matched.
    pub private: bool,
    /// The options, encoded in `format`; empty for the default.
    pub options: &'a [u8],
    /// The format of the options.
    pub format: Format,
}

/// A kind of room: its name, its schema's fingerprint, and how to make one.
#[derive(Clone, Debug)]
pub struct RoomType {
    /// The name clients ask for.
    pub name: String,
    /// Of its state, messages and events.
    pub fingerprint: u64,
    /// The most players one such room seats.
    pub capacity: u32,
    /// Makes a room. `bad_payload` when the options can't be decoded; otherwise the room's own refusal.
    pub create: fn(Birth<'_>) -> Result<Box<dyn AnyRoom>, Error>,
}

impl RoomType {
    /// Rooms of type `R`, under a name.
    pub fn of<R: Room>(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            fingerprint: fingerprint(&schema::<R>()),
            capacity: R::SETTINGS.capacity,
            create: RoomCore::<R>::create,
        }
    }
}

/// The schema of a room type: its state, messages and events.
pub fn schema<R: Room>() -> RoomSchema {
    let mut schema = RoomSchema { state: <R as State>::schema(), messages: Vec::new(), events: Vec::new() };
    <R as Declared>::declare(&mut schema);
    schema
}
