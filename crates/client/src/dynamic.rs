//! Rooms without types, as JSON values: for tools, and for programs that learn at run time what a
//! room is.

use std::sync::Arc;

use playfield_state::{DynamicMirror, JsonExchange, JsonMirror, PlayerId, ShapeError};
use playfield_wire::DecodeError;
use playfield_wire::Format;
use playfield_wire::TreeFormat;
use playfield_wire::message::MessageRef;
use playfield_wire::schema::RoomSchema;
use playfield_wire::tree::{TreeWriter, read_value};
use serde_json::Value;

use crate::connection::{Build, Connection, Door, Kind, Room, RoomEvent};
use crate::{ChangeMirror, Error, Mirror};

/// A room of any type, whose state, messages and events are JSON values to the program. On a
/// connection of the format `packed` the node is asked for the room's schema, and all that comes
/// and goes is read and written by it. In `msgpack` a text in base64 may stand for bytes, in either
/// direction.
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
        // In packed it is but a beginning, until the schema is known.
        DynamicCopy(Of::Tree(format.tree().map_or_else(JsonMirror::new, JsonMirror::of)))
    }
}

/// The copy of a [`Dynamic`] room.
#[derive(Debug)]
pub struct DynamicCopy(Of);

#[derive(Debug)]
enum Of {
    Tree(JsonMirror),
    Packed(Box<Learned>),
}

/// What a schema says of a room.
#[derive(Debug)]
struct Learned {
    mirror: DynamicMirror,
    /// The same without a copy in it.
    empty: DynamicMirror,
    exchange: Arc<JsonExchange>,
}

impl DynamicCopy {
    fn exchange(&self) -> Option<Arc<JsonExchange>> {
        match &self.0 {
            Of::Tree(_) => None,
            Of::Packed(learned) => Some(Arc::clone(&learned.exchange)),
        }
    }
}

impl Mirror for DynamicCopy {
    type State = Value;

    fn state(&self) -> &Value {
        match &self.0 {
            Of::Tree(mirror) => mirror.state(),
            Of::Packed(learned) => learned.mirror.state(),
        }
    }

    fn snapshot(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        match &mut self.0 {
            Of::Tree(mirror) => mirror.snapshot(body),
            Of::Packed(learned) => learned.mirror.snapshot(body),
        }
    }

    fn patch(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        match &mut self.0 {
            Of::Tree(mirror) => mirror.patch(body),
            Of::Packed(learned) => learned.mirror.patch(body),
        }
    }

    fn digest(&self) -> Option<u64> {
        match &self.0 {
            Of::Tree(mirror) => Some(mirror.digest()),
            Of::Packed(learned) => Some(learned.mirror.digest()),
        }
    }

    fn learn(&mut self, schema: &RoomSchema, player: PlayerId) -> Result<(), ShapeError> {
        let empty = DynamicMirror::new(&schema.state, player)?;
        let exchange = Arc::new(JsonExchange::new(schema)?);
        self.0 = Of::Packed(Box::new(Learned { mirror: empty.clone(), empty, exchange }));
        Ok(())
    }

    fn event_in_json(
        &self,
        number: u32,
        payload: &[u8],
    ) -> Option<Result<(String, Vec<u8>), DecodeError>> {
        let read = self.exchange()?;
        Some(
            read.event(number, payload)
                .map(|(name, event)| (name.to_owned(), tree(TreeFormat::Json, &event))),
        )
    }

    fn watcher(&self, player: PlayerId) -> Option<Box<dyn ChangeMirror>> {
        match &self.0 {
            Of::Tree(mirror) => mirror.watcher(player),
            Of::Packed(learned) => Some(Box::new(learned.empty.clone())),
        }
    }
}

impl Connection {
    /// Enters a room that exists.
    ///
    /// # Errors
    /// If the node or the room refuses, the node does not tell a schema that can be read, or the
    /// connection is over.
    ///
    /// # Cancel safety
    /// The room is left again, should it be entered.
    pub async fn join_dynamic(&self, id: &str) -> Result<Room<Dynamic>, Error> {
        self.enter(Door::Join { id: id.to_owned() }, self.any_build()).await
    }

    /// Creates a room and enters it. A private one is neither listed nor entered by
    /// `join_or_create`. Without options it has its type's default.
    ///
    /// # Errors
    /// As [`join_dynamic`](Self::join_dynamic).
    ///
    /// # Cancel safety
    /// As [`join_dynamic`](Self::join_dynamic).
    pub async fn create_dynamic(
        &self,
        room_type: &str,
        private: bool,
        options: Option<&Value>,
    ) -> Result<Room<Dynamic>, Error> {
        let door = Door::Create {
            room_type: room_type.to_owned(),
            private,
            options: self.options_in_tree(options),
        };
        self.enter(door, self.any_build()).await
    }

    /// Enters any room of a type that has a place, or a new one with these options.
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
        let door = Door::JoinOrCreate {
            room_type: room_type.to_owned(),
            options: self.options_in_tree(options),
        };
        self.enter(door, self.any_build()).await
    }

    /// In packed they are JSON until the schema says what becomes of them.
    fn options_in_tree(&self, options: Option<&Value>) -> Vec<u8> {
        options.map_or_else(Vec::new, |options| {
            tree(self.format().tree().unwrap_or(TreeFormat::Json), options)
        })
    }

    /// Of trees there is nothing to learn.
    fn any_build(&self) -> Option<Build> {
        (self.format() == Format::Packed).then_some(Build::Any)
    }
}

impl Room<Dynamic> {
    /// What says how messages are written in packed. A room is not entered before it is known.
    fn exchange(&self) -> Result<Arc<JsonExchange>, Error> {
        self.look(DynamicCopy::exchange)
            .ok_or_else(|| Error::usage("the schema of this room is not known"))
    }

    /// Sends the message called `name`, and waits for the reply.
    ///
    /// # Errors
    /// If the node or the room refuses, or this client is no longer in the room.
    ///
    /// # Cancel safety
    /// Once it is queued the message is sent, and its reply is passed over.
    pub async fn request(&self, name: &str, message: &Value) -> Result<Value, Error> {
        let Some(format) = self.format().tree() else {
            let exchange = self.exchange()?;
            let (number, payload) = written(&exchange, name, message)?;
            let reply = self.request_raw(number, name.to_owned().into(), payload).await?;
            return exchange
                .reply(number, &reply)
                .map_err(|error| Error::payload("the reply", error));
        };
        let reply = self.request_raw(0, name.to_owned().into(), tree(format, message)).await?;
        read_value(format, &reply).map_err(|error| Error::payload("the reply", error))
    }

    /// Sends the message called `name`, which is not answered. If the room refuses it,
    /// [`next_event`](Self::next_event) says so.
    ///
    /// # Errors
    /// If this client is no longer in the room.
    ///
    /// # Cancel safety
    /// The message is sent if it was queued, or not at all.
    pub async fn send(&self, name: &str, message: &Value) -> Result<(), Error> {
        let (number, payload) = match self.format().tree() {
            Some(format) => (0, tree(format, message)),
            None => written(&*self.exchange()?, name, message)?,
        };
        self.send_raw(number, name.to_owned().into(), payload).await
    }
}

impl RoomEvent<Dynamic> {
    /// The event's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.message {
            MessageRef::Name(name) => name,
            // They are told in trees, in which events go by their names.
            MessageRef::Index(_) => "",
        }
    }

    /// The event itself.
    ///
    /// # Errors
    /// If it is no value of the connection's format.
    pub fn value(&self) -> Result<Value, Error> {
        // What came in packed was turned into JSON.
        let format = self.format.tree().unwrap_or(TreeFormat::Json);
        read_value(format, &self.payload).map_err(|error| Error::payload("the event", error))
    }
}

fn written(exchange: &JsonExchange, name: &str, message: &Value) -> Result<(u32, Vec<u8>), Error> {
    exchange.message(name, message).map_err(|error| Error::payload("the message", error))
}

fn tree(format: TreeFormat, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    TreeWriter::new(format, &mut out).value(value);
    out
}
