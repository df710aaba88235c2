//! Rooms without types, in JSON: for tools, and for programs that learn at run time what a room is.

use std::sync::Arc;

use playfield_state::{DynamicMirror, JsonExchange, JsonMirror, PlayerId, ShapeError};
use playfield_wire::DecodeError;
use playfield_wire::Format;
use playfield_wire::message::MessageRef;
use playfield_wire::schema::RoomSchema;
use serde_json::Value;

use crate::connection::{Build, Connection, Door, Kind, Room, RoomEvent};
use crate::{ChangeMirror, Error, Mirror};

/// A room of any type, whose state, messages and events are JSON to the program. On a connection of the format `packed` the node is asked for the room's
/// schema, and all that comes and goes is read and written by it.
///
/// ```no_run
/// # async fn example() -> Result<(), playfield_client::Error> {
/// use playfield_client::{Format, connect};
/// use serde_json::json;
///
/// let connection = connect("ws://127.0.0.1:7350").format(Format::Json).await?;
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
}

/// The copy of a [`Dynamic`] room.
#[derive(Debug, Default)]
pub struct DynamicCopy(Of);

#[derive(Debug)]
enum Of {
    Json(JsonMirror),
    Packed(Box<Learnt>),
}

/// What a schema says of a room.
#[derive(Debug)]
struct Learnt {
    mirror: DynamicMirror,
    /// The same without a copy in it.
    empty: DynamicMirror,
    exchange: Arc<JsonExchange>,
}

impl Default for Of {
    fn default() -> Self {
        Self::Json(JsonMirror::new())
    }
}

impl DynamicCopy {
    fn exchange(&self) -> Option<Arc<JsonExchange>> {
        match &self.0 {
            Of::Json(_) => None,
            Of::Packed(learnt) => Some(Arc::clone(&learnt.exchange)),
        }
    }
}

impl Mirror for DynamicCopy {
    type State = Value;

    fn state(&self) -> &Value {
        match &self.0 {
            Of::Json(mirror) => mirror.state(),
            Of::Packed(learnt) => learnt.mirror.state(),
        }
    }

    fn snapshot(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        match &mut self.0 {
            Of::Json(mirror) => mirror.snapshot(body),
            Of::Packed(learnt) => learnt.mirror.snapshot(body),
        }
    }

    fn patch(&mut self, body: &[u8]) -> Result<(), DecodeError> {
        match &mut self.0 {
            Of::Json(mirror) => mirror.patch(body),
            Of::Packed(learnt) => learnt.mirror.patch(body),
        }
    }

    /// By a schema there is none that is sure: it tells no defaults, which have a part in a digest.
    fn digest(&self) -> Option<u64> {
        None
    }

    fn learn(&mut self, schema: &RoomSchema, player: PlayerId) -> Result<(), ShapeError> {
        let empty = DynamicMirror::new(&schema.state, player)?;
        let exchange = Arc::new(JsonExchange::new(schema)?);
        self.0 = Of::Packed(Box::new(Learnt { mirror: empty.clone(), empty, exchange }));
        Ok(())
    }

    fn event_in_json(&self, number: u32, payload: &[u8]) -> Option<Result<(String, Vec<u8>), DecodeError>> {
        let read = self.exchange()?;
        Some(read.event(number, payload).map(|(name, event)| (name.to_owned(), to_text(Some(&event)))))
    }

    fn watcher(&self, player: PlayerId) -> Option<Box<dyn ChangeMirror>> {
        match &self.0 {
            Of::Json(mirror) => mirror.watcher(player),
            Of::Packed(learnt) => Some(Box::new(learnt.empty.clone())),
        }
    }
}

impl Connection {
    /// Enters a room that exists.
    ///
    /// # Errors
    /// If the node or the room refuses, the node does not tell a schema that can be read, or the connection is over.
    ///
    /// # Cancel safety
    /// The room is left again, should it be entered.
    pub async fn join_dynamic(&self, id: &str) -> Result<Room<Dynamic>, Error> {
        self.enter(Door::Join { id: id.to_owned() }, self.any_build()).await
    }

    /// Creates a room and enters it. A private one is neither listed nor entered by `join_or_create`. Without options it
    /// has its type's default.
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
        let door = Door::Create { room_type: room_type.to_owned(), private, options: to_text(options) };
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
        let door = Door::JoinOrCreate { room_type: room_type.to_owned(), options: to_text(options) };
        self.enter(door, self.any_build()).await
    }

    /// In JSON there is nothing to learn.
    fn any_build(&self) -> Option<Build> {
        (self.format() == Format::Packed).then_some(Build::Any)
    }
}

impl Room<Dynamic> {
    /// Sends the message called `name`, and waits for the reply.
    ///
    /// # Errors
    /// If the node or the room refuses, or this client is no longer in the room.
    ///
    /// # Cancel safety
    /// Once it is queued the message is sent, and its reply is passed over.
    pub async fn request(&self, name: &str, message: &Value) -> Result<Value, Error> {
        let Some(exchange) = self.look(DynamicCopy::exchange) else {
            let reply = self.request_raw(0, name.to_owned().into(), to_text(Some(message))).await?;
            return parse(&reply).map_err(|error| Error::payload("the reply", error));
        };
        let (number, payload) = written(&exchange, name, message)?;
        let reply = self.request_raw(number, name.to_owned().into(), payload).await?;
        exchange.reply(number, &reply).map_err(|error| Error::payload("the reply", error))
    }

    /// Sends the message called `name`, which is not answered. If the room refuses it, [`next_event`](Self::next_event) says so.
    ///
    /// # Errors
    /// If this client is no longer in the room.
    ///
    /// # Cancel safety
    /// The message is sent if it was queued, or not at all.
    pub async fn send(&self, name: &str, message: &Value) -> Result<(), Error> {
        let (number, payload) = match self.look(DynamicCopy::exchange) {
            Some(exchange) => written(&exchange, name, message)?,
            None => (0, to_text(Some(message))),
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
            // They are told in JSON, in which events go by their names.
            MessageRef::Index(_) => "",
        }
    }

    /// The event itself.
    ///
    /// # Errors
    /// If it is not JSON.
    pub fn value(&self) -> Result<Value, Error> {
        parse(&self.payload).map_err(|error| Error::payload("the event", error))
    }
}

fn written(exchange: &JsonExchange, name: &str, message: &Value) -> Result<(u32, Vec<u8>), Error> {
    exchange.message(name, message).map_err(|error| Error::payload("the message", error))
}

fn to_text(value: Option<&Value>) -> Vec<u8> {
    value.map_or_else(Vec::new, |value| value.to_string().into_bytes())
}

/// What the protocol leaves out is `null`.
fn parse(payload: &[u8]) -> Result<Value, DecodeError> {
    if payload.is_empty() {
        return Ok(Value::Null);
    }
    serde_json::from_slice(payload).map_err(|error| DecodeError::new(error.column(), error.to_string()))
}
