//! A kind of room that a node can create.

use std::any::TypeId;
use std::sync::Arc;

use playfield_state::{Data, Format, PlayerId, State, SyncProbe, saved_type};
use playfield_wire::schema::{RoomSchema, SchemaError, Type, fingerprint};

use crate::core::RoomCore;
use crate::frozen::{Frozen, ThawError};
use crate::message::Declared;
use crate::{AnyRoom, Creator, Error, Link, ReservedSeat, Room, Settings, Store};

/// The input from which a new room is created.
#[derive(Clone, Debug)]
pub struct Birth<'a> {
    /// The room's id, unique in the node.
    pub id: String,
    /// The name of its type.
    pub room_type: String,
    /// Its key, if it has one.
    pub key: Option<Arc<str>>,
    /// The origin of the key.
    pub key_origin: KeyOrigin,
    /// Seeds the room's random number generator.
    pub seed: u64,
    /// The rates and limits of its type.
    pub settings: Settings,
    /// Whether it starts private: neither listed nor found by `join_or_create`.
    pub private: bool,
    /// The options, encoded in `format`; empty for the defaults.
    pub options: &'a [u8],
    /// The format of the options.
    pub format: Format,
    /// The party that asked for the room.
    pub creator: Creator,
    /// The store of the room, if its type is [persistent](Settings::persist_s) and it has a key.
    pub store: Option<Arc<dyn Store>>,
    /// The seats that are reserved in it.
    pub seats: Vec<ReservedSeat>,
}

/// The origin of a new room's key, and so the meaning of a save under it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum KeyOrigin {
    /// Someone chose it. If there is a save, the room is made of it; it may be one of a code.
    #[default]
    Chosen,
    /// The host drew it as a code, and the room is new. If there is a save, the room is refused
    /// with `room_exists`, and the host draws another code.
    Drawn,
    /// The key is the code that someone may have meant. If there is no save of a room with a code,
    /// the room is refused with `room_not_found`, and the host takes the key as it was written.
    Spelled,
}

/// The input from which a room goes on that was frozen.
pub struct Thaw<'a> {
    /// The frozen room.
    pub frozen: &'a Frozen<'a>,
    /// The store of the room, if its type is [persistent](Settings::persist_s).
    pub store: Option<Arc<dyn Store>>,
    /// Returns the link of each player.
    pub link: &'a mut dyn FnMut(PlayerId) -> Link,
}

/// Reads options in a format, and encodes the values of those that are criteria.
pub type Criteria = fn(Format, &[u8]) -> Result<Vec<u8>, Error>;

/// A kind of room: its name, its schema, its rates and limits, and how to create one.
///
/// The same room can be served under several names and at different rates: see [`Settings`].
#[derive(Clone, Debug)]
pub struct RoomType {
    /// The name that clients use.
    pub name: String,
    /// The Rust type of the rooms.
    pub rust_type: TypeId,
    /// The fingerprint of its schema.
    pub fingerprint: u64,
    /// The schema as JSON, for clients built with another one.
    pub schema: Arc<str>,
    /// The names of its messages, in the order of their numbers.
    pub messages: Arc<[String]>,
    /// The type of its state in saves, for [`save_differences`](playfield_state::save_differences).
    pub saved: fn() -> Type,
    /// Rates and limits: those in the attribute `room`, unless changed.
    pub settings: Settings,
    /// The values of the options that are criteria, encoded: `join_or_create` finds rooms that have
    /// the same. `None` if the room declares no criteria. It fails with `bad_payload` if the
    /// options are invalid.
    pub criteria: Option<Criteria>,
    /// Creates a room. It fails with `bad_payload` if the options are invalid, or with the room's
    /// own refusal.
    pub create: fn(Birth<'_>) -> Result<Box<dyn AnyRoom>, Error>,
    /// Makes a room of a frozen one of this type, which goes on as if nothing had happened. The
    /// host calls [`AnyRoom::moved`] first. A player's copy of the frozen version gets patches, and
    /// all others need snapshots: see [`AnyRoom::reaches`].
    ///
    /// Fails if the frozen room is of another type or of a build whose types do not fit this
    /// one's, by the rules of [saves](playfield_state::restore), except that every value must be
    /// readable; or if it is not valid.
    pub thaw: fn(Thaw<'_>) -> Result<Box<dyn AnyRoom>, ThawError>,
    /// Measures by field the time of its rooms' syncs, which then take longer.
    pub probe: Option<SyncProbe>,
}

impl RoomType {
    /// Rooms of type `R`, under a name.
    ///
    /// # Panics
    /// If clients could not read its schema: its types are nested deeper than
    /// [`TYPE_DEPTH_MAX`](playfield_wire::schema::TYPE_DEPTH_MAX), or its JSON is longer than
    /// [`SCHEMA_BYTES_MAX`](playfield_wire::schema::SCHEMA_BYTES_MAX). Both depend on the types
    /// alone, so a node with such a room never starts.
    pub fn of<R: Room>(name: &str) -> Self {
        let schema = schema::<R>();
        let text = schema.to_json_in_limits().unwrap_or_else(|error| {
            panic!(
                "clients could not read the schema of the room type {name:?}: {error}. {}",
                remedy(&error)
            )
        });
        Self {
            name: name.to_owned(),
            rust_type: TypeId::of::<R>(),
            fingerprint: fingerprint(&schema),
            schema: text.into(),
            messages: schema.messages.iter().map(|message| message.name.to_string()).collect(),
            saved: saved_type::<R>,
            settings: R::SETTINGS,
            criteria: R::HAS_CRITERIA.then_some(RoomCore::<R>::criteria),
            create: RoomCore::<R>::create,
            thaw: RoomCore::<R>::thaw,
            probe: None,
        }
    }
}

/// Returns the remedy for a schema that exceeds a limit.
fn remedy(error: &SchemaError) -> &'static str {
    match error {
        SchemaError::TooLong { .. } => {
            "The schema repeats a type for each field that has it: use the largest types in fewer \
             fields, or split the room"
        }
        _ => "Move the innermost types to a map at the root of the state, and refer to its keys",
    }
}

/// The schema of a room type: its state, options, messages and events.
///
/// # Panics
/// If types in it contain each other, which would make it infinite. (A type that contains itself
/// does not compile.)
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
