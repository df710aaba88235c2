//! Rooms without types, as JSON values: for tools, and for programs that learn a room's type at run
//! time.

use std::borrow::Cow;

use playfield_state::{Change, DynamicMirror, JsonMirror, PlayerId, ShapeError};
use playfield_wire::message::MessageRef;
use playfield_wire::schema::RoomSchema;
use playfield_wire::tree::{TreeWriter, read_value};
use playfield_wire::{DecodeError, Format, TreeFormat};
use serde_json::Value;

use super::{Kind, Payload, Room, RoomEvent};
use crate::connection::Connection;
use crate::session::{Build, Creation, Learned, Target, Translation, UpdateKind};
use crate::{Error, Mirror};

/// The kind of a room whose state, messages and events are JSON values. On a connection in the
/// format `packed` the client asks the node for the room's schema, and reads and writes by it. In
/// `msgpack`, base64 text may represent bytes in either direction.
///
/// ```no_run
/// # async fn example() -> Result<(), playfield_client::Error> {
/// use playfield_client::{Format, connect};
/// use serde_json::json;
///
/// let connection = connect("ws://127.0.0.1:7350").format(Format::Msgpack).await?;
/// let counter = connection.join_or_create_dynamic("counter", None).await?;
/// let reply = counter.request("add", &json!(2)).await?;
/// println!("{reply}, {}", counter.state()["value"]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Dynamic {}

impl Kind for Dynamic {
    type Mirror = DynamicCopy;

    fn mirror(format: Format) -> DynamicCopy {
        // In packed this is a placeholder until the schema is known.
        DynamicCopy(Of::Tree(format.tree().map_or_else(JsonMirror::new, JsonMirror::of)))
    }
}

/// The copy of a [`Dynamic`] room.
#[derive(Debug)]
pub struct DynamicCopy(Of);

#[derive(Debug)]
enum Of {
    Tree(JsonMirror),
    Packed(Box<DynamicMirror>),
}

impl Mirror for DynamicCopy {
    type State = Value;

    fn state(&self) -> &Value {
        match &self.0 {
            Of::Tree(mirror) => mirror.state(),
            Of::Packed(mirror) => mirror.state(),
        }
    }

    fn digest(&self) -> u64 {
        match &self.0 {
            Of::Tree(mirror) => mirror.digest(),
            Of::Packed(mirror) => mirror.digest(),
        }
    }

    fn apply(
        &mut self,
        kind: UpdateKind,
        body: &[u8],
        report: Option<&mut dyn FnMut(Change)>,
    ) -> Result<(), DecodeError> {
        match &mut self.0 {
            Of::Tree(mirror) => mirror.apply(kind, body, report),
            Of::Packed(mirror) => mirror.apply(kind, body, report),
        }
    }

    fn set_schema(&mut self, schema: &RoomSchema, player: PlayerId) -> Result<(), ShapeError> {
        self.0 = Of::Packed(Box::new(DynamicMirror::new(&schema.state, player)?));
        Ok(())
    }
}

/// Dynamic rooms. In `packed`, entering one may take a request for its schema.
impl Connection {
    /// Enters an existing room, by its id, or with a reservation or a ticket for it.
    ///
    /// # Errors
    /// If the node or the room refuses, the node's schema can't be read, or the connection has
    /// ended.
    ///
    /// # Cancel safety
    /// If the room is entered after all, the client leaves it.
    pub async fn join_dynamic(&self, id: &str) -> Result<Room<Dynamic>, Error> {
        self.enter(Target::Join { id: id.to_owned() }, self.any_build()).await
    }

    /// Enters the room of a type that has this key. The case of a code does not matter.
    ///
    /// # Errors
    /// As [`join_dynamic`](Self::join_dynamic).
    ///
    /// # Cancel safety
    /// As [`join_dynamic`](Self::join_dynamic).
    pub async fn join_by_key_dynamic(
        &self,
        room_type: &str,
        key: &str,
    ) -> Result<Room<Dynamic>, Error> {
        let (room_type, key) = (room_type.to_owned(), key.to_owned());
        self.enter(Target::JoinByKey { room_type, key }, self.any_build()).await
    }

    /// Creates a room and enters it. `creation` is a [`Creation`], or just whether the room is
    /// private. Without options the room has its type's default options.
    ///
    /// # Errors
    /// As [`join_dynamic`](Self::join_dynamic).
    ///
    /// # Cancel safety
    /// As [`join_dynamic`](Self::join_dynamic).
    pub async fn create_dynamic(
        &self,
        room_type: &str,
        creation: impl Into<Creation>,
        options: Option<&Value>,
    ) -> Result<Room<Dynamic>, Error> {
        let (room_type, options) = (room_type.to_owned(), self.encode_options(options));
        let creation = creation.into();
        self.enter(Target::Create { room_type, creation, options }, self.any_build()).await
    }

    /// Enters any room of a type that is not full and has no key, or a new one with these options.
    ///
    /// # Errors
    /// As [`join_dynamic`](Self::join_dynamic).
    ///
    /// # Cancel safety
    /// As [`join_dynamic`](Self::join_dynamic).
    pub async fn join_or_create_dynamic(
        &self,
        room_type: &str,
        options: Option<&Value>,
    ) -> Result<Room<Dynamic>, Error> {
        let (room_type, options) = (room_type.to_owned(), self.encode_options(options));
        self.enter(Target::JoinOrCreate { room_type, key: None, options }, self.any_build()).await
    }

    /// Enters the room of a type that has this key, or a new one with it and these options.
    ///
    /// # Errors
    /// As [`join_dynamic`](Self::join_dynamic).
    ///
    /// # Cancel safety
    /// As [`join_dynamic`](Self::join_dynamic).
    pub async fn join_or_create_by_key_dynamic(
        &self,
        room_type: &str,
        key: &str,
        options: Option<&Value>,
    ) -> Result<Room<Dynamic>, Error> {
        let (room_type, options) = (room_type.to_owned(), self.encode_options(options));
        let key = Some(key.to_owned());
        self.enter(Target::JoinOrCreate { room_type, key, options }, self.any_build()).await
    }

    /// In packed, options stay JSON until the schema is known.
    fn encode_options(&self, options: Option<&Value>) -> Vec<u8> {
        options.map_or_else(Vec::new, |options| {
            tree(self.format().tree().unwrap_or(TreeFormat::Json), options)
        })
    }

    /// Only packed needs a schema.
    fn any_build(&self) -> Option<Build> {
        (self.format() == Format::Packed).then_some(Build::Any)
    }
}

impl Room<Dynamic> {
    /// Sends the message with this name, and waits for the reply.
    ///
    /// # Errors
    /// If the room has no such message, the node or the room refuses, or this client is no longer
    /// in the room.
    ///
    /// # Cancel safety
    /// Once queued, the message is sent, and its reply is dropped.
    pub async fn request(&self, name: &str, message: &Value) -> Result<Value, Error> {
        let (index, name, payload) = self.encode(name, message)?;
        let reply = self.request_raw(index, name, payload).await?;
        match self.learned() {
            Some(learned) => learned.exchange.reply(index, &reply),
            None => read_value(self.tree_format(), &reply),
        }
        .map_err(|error| Error::payload("the reply", error))
    }

    /// Sends the message with this name, without a reply. If the room refuses it,
    /// [`next_event`](Self::next_event) returns the error.
    ///
    /// # Errors
    /// If the room has no such message, or this client is no longer in the room.
    ///
    /// # Cancel safety
    /// The message is sent if it was queued, or not at all.
    pub async fn send(&self, name: &str, message: &Value) -> Result<(), Error> {
        let (index, name, payload) = self.encode(name, message)?;
        self.send_raw(index, name, payload).await
    }

    /// A message's index, which only packed uses, its name, which the other formats do, and its
    /// payload.
    fn encode(
        &self,
        name: &str,
        message: &Value,
    ) -> Result<(u32, Cow<'static, str>, Vec<u8>), Error> {
        match self.learned() {
            Some(learned) => learned
                .exchange
                .message(name, message)
                .map(|(index, payload)| (index, Cow::Borrowed(""), payload))
                .map_err(|error| Error::payload("the message", error)),
            None => Ok((0, name.to_owned().into(), tree(self.tree_format(), message))),
        }
    }

    /// The node's schema, in packed.
    fn learned(&self) -> Option<&Learned> {
        match &self.entered.translation {
            Translation::Learned(learned) => Some(learned),
            Translation::None | Translation::Transcoded(_) => None,
        }
    }

    fn tree_format(&self) -> TreeFormat {
        self.line.format.tree().unwrap_or(TreeFormat::Json)
    }
}

impl RoomEvent<Dynamic> {
    /// The event's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.message {
            MessageRef::Name(name) => name,
            // Only in packed, where the schema gave it a name.
            MessageRef::Index(_) => "",
        }
    }

    /// The event's payload.
    ///
    /// # Errors
    /// If it is invalid in the connection's format.
    pub fn value(&self) -> Result<Value, Error> {
        match &self.payload {
            Payload::Value(value) => Ok(value.clone()),
            Payload::Bytes(payload) => self.read(payload),
        }
    }

    fn read(&self, payload: &[u8]) -> Result<Value, Error> {
        let format = self.format.tree().unwrap_or(TreeFormat::Json);
        read_value(format, payload).map_err(|error| Error::payload("the event", error))
    }
}

fn tree(format: TreeFormat, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    TreeWriter::new(format, &mut out).value(value);
    out
}
