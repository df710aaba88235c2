//! Rooms without types, in JSON: for tools, and for programs that learn at run time what a room is.

use playfield_state::JsonMirror;
use playfield_wire::DecodeError;
use playfield_wire::Format;
use playfield_wire::message::MessageRef;
use serde_json::Value;

use crate::Error;
use crate::connection::{Connection, Door, Kind, Room, RoomEvent};

/// A room of any type, whose state, messages and events are JSON. Its connection has to be of the format `json`.
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
    type Mirror = JsonMirror;
}

impl Connection {
    /// Enters a room that exists.
    ///
    /// # Errors
    /// If the node or the room refuses, the connection is not of the format `json`, or it is over.
    ///
    /// # Cancel safety
    /// The room is left again, should it be entered.
    pub async fn join_dynamic(&self, id: &str) -> Result<Room<Dynamic>, Error> {
        self.check_json()?;
        self.enter(Door::Join { id: id.to_owned() }, None).await
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
        self.check_json()?;
        self.enter(Door::Create { room_type: room_type.to_owned(), private, options: to_text(options) }, None)
            .await
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
        self.check_json()?;
        self.enter(Door::JoinOrCreate { room_type: room_type.to_owned(), options: to_text(options) }, None)
            .await
    }

    fn check_json(&self) -> Result<(), Error> {
        match self.format() {
            Format::Json => Ok(()),
            Format::Packed => Err(Error::usage(
                "a dynamic room needs a connection of the format json: connect(url).format(Format::Json)",
            )),
        }
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
        let reply = self.request_raw(0, name.to_owned().into(), to_text(Some(message))).await?;
        parse(&reply).map_err(|error| Error::payload("the reply", error))
    }

    /// Sends the message called `name`, which is not answered. If the room refuses it, [`next_event`](Self::next_event) says so.
    ///
    /// # Errors
    /// If this client is no longer in the room.
    ///
    /// # Cancel safety
    /// The message is sent if it was queued, or not at all.
    pub async fn send(&self, name: &str, message: &Value) -> Result<(), Error> {
        self.send_raw(0, name.to_owned().into(), to_text(Some(message))).await
    }
}

impl RoomEvent<Dynamic> {
    /// The event's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.message {
            MessageRef::Name(name) => name,
            // In JSON, which dynamic rooms speak, events go by their names.
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
