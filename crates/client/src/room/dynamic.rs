//! Rooms without types, as JSON values: for tools, and for programs that learn a room's type at run
//! time.

use playfield_state::{Change, DynamicMirror, PlayerId, ShapeError};
use playfield_wire::message::MessageRef;
use playfield_wire::schema::RoomSchema;
use playfield_wire::tree::TreeWriter;
use playfield_wire::{DecodeError, TreeFormat};
use serde_json::Value;

use super::{Kind, Payload, Room, RoomEvent};
use crate::connection::Connection;
use crate::session::{Build, Creation, Learned, Target, Translation, UpdateKind};
use crate::{Error, Mirror};

/// The kind of a room whose state, messages and events are JSON values. The client asks the node
/// for the room's schema, and reads and writes by it.
///
/// ```no_run
/// # async fn example() -> Result<(), playfield_client::Error> {
/// use serde_json::json;
///
/// let connection = playfield_client::connect("ws://127.0.0.1:7350").await?;
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

    fn mirror() -> DynamicCopy {
        DynamicCopy(None)
    }
}

/// The copy of a [`Dynamic`] room.
#[derive(Debug)]
pub struct DynamicCopy(Option<Box<DynamicMirror>>);

/// The state before the schema is known.
static NO_STATE: Value = Value::Null;

impl Mirror for DynamicCopy {
    type State = Value;

    fn state(&self) -> &Value {
        self.0.as_ref().map_or(&NO_STATE, |mirror| mirror.state())
    }

    fn digest(&self) -> u64 {
        self.0.as_ref().map_or(0, |mirror| mirror.digest())
    }

    fn apply(
        &mut self,
        kind: UpdateKind,
        body: &[u8],
        report: Option<&mut dyn FnMut(Change)>,
    ) -> Result<(), DecodeError> {
        match &mut self.0 {
            Some(mirror) => mirror.apply(kind, body, report),
            None => Err(DecodeError::other("the schema is unknown")),
        }
    }

    fn set_schema(&mut self, schema: &RoomSchema, player: PlayerId) -> Result<(), ShapeError> {
        self.0 = Some(Box::new(DynamicMirror::new(&schema.state, player)?));
        Ok(())
    }
}

/// Dynamic rooms. Entering one may take a request for its schema.
impl Connection {
    /// Enters an existing room, by its id, or with a reservation or a ticket for it. If the room is
    /// at another node of a cluster, the client connects to that node; see [`Connection`].
    ///
    /// # Errors
    /// If the node or the room refuses, the node's schema can't be read, the room's node can't be
    /// [reached](Error::is_unreachable), or the connection has ended.
    ///
    /// # Cancel safety
    /// If the room is entered after all, the client leaves it.
    pub async fn join_dynamic(&self, id: &str) -> Result<Room<Dynamic>, Error> {
        self.enter_room(Target::Join { id: id.to_owned() }, Build::Any).await
    }

    /// Enters the room of a type that has this key. The case of a code does not matter.
    ///
    /// # Errors
    /// Same as [`join_dynamic`](Self::join_dynamic).
    ///
    /// # Cancel safety
    /// Same as [`join_dynamic`](Self::join_dynamic).
    pub async fn join_by_key_dynamic(
        &self,
        room_type: &str,
        key: &str,
    ) -> Result<Room<Dynamic>, Error> {
        let (room_type, key) = (room_type.to_owned(), key.to_owned());
        self.enter_room(Target::JoinByKey { room_type, key }, Build::Any).await
    }

    /// Creates a room and enters it. `creation` is a [`Creation`], or just whether the room is
    /// private. Without options the room has its type's default options.
    ///
    /// # Errors
    /// Same as [`join_dynamic`](Self::join_dynamic).
    ///
    /// # Cancel safety
    /// Same as [`join_dynamic`](Self::join_dynamic).
    pub async fn create_dynamic(
        &self,
        room_type: &str,
        creation: impl Into<Creation>,
        options: Option<&Value>,
    ) -> Result<Room<Dynamic>, Error> {
        let (room_type, options) = (room_type.to_owned(), encode_options(options));
        let creation = creation.into();
        self.enter_room(Target::Create { room_type, creation, options }, Build::Any).await
    }

    /// Enters any room of a type that is not full and has no key, or a new one with these options.
    ///
    /// # Errors
    /// Same as [`join_dynamic`](Self::join_dynamic).
    ///
    /// # Cancel safety
    /// Same as [`join_dynamic`](Self::join_dynamic).
    pub async fn join_or_create_dynamic(
        &self,
        room_type: &str,
        options: Option<&Value>,
    ) -> Result<Room<Dynamic>, Error> {
        let (room_type, options) = (room_type.to_owned(), encode_options(options));
        self.enter_room(Target::JoinOrCreate { room_type, key: None, options }, Build::Any).await
    }

    /// Enters the room of a type that has this key, or a new one with it and these options.
    ///
    /// # Errors
    /// Same as [`join_dynamic`](Self::join_dynamic).
    ///
    /// # Cancel safety
    /// Same as [`join_dynamic`](Self::join_dynamic).
    pub async fn join_or_create_by_key_dynamic(
        &self,
        room_type: &str,
        key: &str,
        options: Option<&Value>,
    ) -> Result<Room<Dynamic>, Error> {
        let (room_type, options) = (room_type.to_owned(), encode_options(options));
        let key = Some(key.to_owned());
        self.enter_room(Target::JoinOrCreate { room_type, key, options }, Build::Any).await
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
        let (index, payload) = self.encode(name, message)?;
        let reply = self.request_raw(index, payload).await?;
        let value = self.learned()?.exchange.reply(index, &reply);
        value.map_err(|error| Error::payload("the reply", error))
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
        let (index, payload) = self.encode(name, message)?;
        self.send_raw(index, payload).await
    }

    /// A message's index and payload.
    fn encode(&self, name: &str, message: &Value) -> Result<(u32, Vec<u8>), Error> {
        let written = self.learned()?.exchange.message(name, message);
        written.map_err(|error| Error::payload("the message", error))
    }

    /// The node's schema.
    fn learned(&self) -> Result<&Learned, Error> {
        match &self.entered.translation {
            Translation::Learned(learned) => Ok(learned),
            Translation::None | Translation::Transcoded(_) => {
                Err(Error::usage("the room's schema is unknown"))
            }
        }
    }
}

impl RoomEvent<Dynamic> {
    /// The event's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.message {
            MessageRef::Name(name) => name,
            // The schema gave it a name.
            MessageRef::Index(_) => "",
        }
    }

    /// The event's payload.
    ///
    /// # Errors
    /// If it is no value of the type in the schema.
    pub fn value(&self) -> Result<Value, Error> {
        match &self.payload {
            Payload::Value(value) => Ok(value.clone()),
            Payload::Bytes(_) => Err(Error::usage("the room's schema is unknown")),
        }
    }
}

/// Options stay JSON until the schema is known.
fn encode_options(options: Option<&Value>) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(options) = options {
        TreeWriter::new(TreeFormat::Json, &mut out).value(options);
    }
    out
}
