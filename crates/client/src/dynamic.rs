//! Rooms without types, as JSON values: for tools, and for programs that learn at run time what a room is.

use playfield_state::JsonMirror;
use playfield_wire::DecodeError;
use playfield_wire::Format;
use playfield_wire::message::MessageRef;
use playfield_wire::tree::{TreeWriter, read_value};
use serde_json::Value;

use crate::Error;
use crate::connection::{Connection, Door, Kind, Room, RoomEvent};

/// A room of any type, whose state, messages and events are JSON values. Its connection has to be of the format `msgpack` or
/// `json`. In `msgpack` a text in base64 may stand for bytes, in either direction.
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
    type Mirror = JsonMirror;

    fn mirror(format: Format) -> JsonMirror {
        // Nobody enters a dynamic room in packed.
        format.tree().map_or_else(JsonMirror::new, JsonMirror::of)
    }
}

impl Connection {
    /// Enters a room that exists.
    ///
    /// # Errors
    /// If the node or the room refuses, the connection is of the format `packed`, or it is over.
    ///
    /// # Cancel safety
    /// The room is left again, should it be entered.
    pub async fn join_dynamic(&self, id: &str) -> Result<Room<Dynamic>, Error> {
        self.check_format()?;
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
        self.check_format()?;
        self.enter(
            Door::Create {
                room_type: room_type.to_owned(),
                private,
                options: written(self.format(), options),
            },
            None,
        )
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
        self.check_format()?;
        self.enter(
            Door::JoinOrCreate { room_type: room_type.to_owned(), options: written(self.format(), options) },
            None,
        )
        .await
    }

    fn check_format(&self) -> Result<(), Error> {
        match self.format() {
            Format::Msgpack | Format::Json => Ok(()),
            Format::Packed => Err(Error::usage(
                "a dynamic room needs a connection of the format msgpack or json: connect(url).format(Format::Msgpack)",
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
        let reply =
            self.request_raw(0, name.to_owned().into(), written(self.format(), Some(message))).await?;
        read(self.format(), &reply).map_err(|error| Error::payload("the reply", error))
    }

    /// Sends the message called `name`, which is not answered. If the room refuses it, [`next_event`](Self::next_event) says so.
    ///
    /// # Errors
    /// If this client is no longer in the room.
    ///
    /// # Cancel safety
    /// The message is sent if it was queued, or not at all.
    pub async fn send(&self, name: &str, message: &Value) -> Result<(), Error> {
        self.send_raw(0, name.to_owned().into(), written(self.format(), Some(message))).await
    }
}

impl RoomEvent<Dynamic> {
    /// The event's name.
    #[must_use]
    pub fn name(&self) -> &str {
        match &self.message {
            MessageRef::Name(name) => name,
            // In the formats that dynamic rooms speak, events go by their names.
            MessageRef::Index(_) => "",
        }
    }

    /// The event itself.
    ///
    /// # Errors
    /// If it is no value of the connection's format.
    pub fn value(&self) -> Result<Value, Error> {
        read(self.format, &self.payload).map_err(|error| Error::payload("the event", error))
    }
}

fn written(format: Format, value: Option<&Value>) -> Vec<u8> {
    let mut out = Vec::new();
    if let (Some(value), Some(format)) = (value, format.tree()) {
        TreeWriter::new(format, &mut out).value(value);
    }
    out
}

/// What the protocol leaves out is `null`.
fn read(format: Format, payload: &[u8]) -> Result<Value, DecodeError> {
    match format.tree() {
        Some(format) => read_value(format, payload),
        None => Err(DecodeError::new(0, "a value in packed can't be read without its type")),
    }
}
