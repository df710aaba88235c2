//! Messages, replies, events and options, converted by a schema that is known only at run time.

use playfield_wire::DecodeError;
use playfield_wire::schema::{RoomSchema, Type};
use serde_json::Value;

use crate::PlayerId;
use crate::walk::{Shape, ShapeError, Walk};

/// Converts the messages, replies, events and options of a room between JSON and `packed`, by the
/// room's schema.
///
/// ```
/// use playfield_state::JsonExchange;
/// use playfield_wire::schema::{MessageSchema, RoomSchema, Struct, Type};
/// use serde_json::json;
///
/// let schema = RoomSchema {
///     state: Type::Struct(Struct { name: "Counter".into(), fields: vec![] }),
///     options: Type::Unit,
///     messages: vec![MessageSchema { name: "add".into(), of: Type::I64, reply: Type::Text }],
///     events: vec![],
/// };
/// let exchange = JsonExchange::new(&schema)?;
/// assert_eq!(exchange.message("add", &json!(-2))?, (0, vec![3]));
/// assert_eq!(exchange.reply(0, b"\x02ok")?, json!("ok"));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct JsonExchange {
    options: Shape,
    messages: Vec<(String, Shape, Shape)>,
    events: Vec<(String, Shape)>,
}

impl JsonExchange {
    /// Creates the converter for a room with this schema.
    ///
    /// # Errors
    /// If the schema has a type that no message can have.
    pub fn new(schema: &RoomSchema) -> Result<Self, ShapeError> {
        let whole = |of: &Type| Shape::atomic(of);
        let messages = schema
            .messages
            .iter()
            .map(|message| {
                Ok((message.name.clone().into_owned(), whole(&message.of)?, whole(&message.reply)?))
            })
            .collect::<Result<_, _>>()?;
        let events = schema
            .events
            .iter()
            .map(|event| Ok((event.name.clone().into_owned(), whole(&event.of)?)))
            .collect::<Result<_, _>>()?;
        Ok(Self { options: whole(&schema.options)?, messages, events })
    }

    /// Returns the number of a message, and the message in `packed`.
    ///
    /// # Errors
    /// If the room has no message with that name, or the value has another type.
    pub fn message(&self, name: &str, value: &Value) -> Result<(u32, Vec<u8>), DecodeError> {
        let (number, shape) = self.named(name)?;
        let mut payload = Vec::new();
        shape.write(value, &mut payload)?;
        Ok((number, payload))
    }

    /// Checks a message in `packed`. Returns its number.
    ///
    /// # Errors
    /// If the room has no message with that name, or the payload has another type.
    pub fn check_message(&self, name: &str, payload: &[u8]) -> Result<u32, DecodeError> {
        let (number, shape) = self.named(name)?;
        shape.check(payload)?;
        Ok(number)
    }

    fn named(&self, name: &str) -> Result<(u32, &Shape), DecodeError> {
        let number = self.messages.iter().position(|(known, ..)| known == name);
        let number = number
            .ok_or_else(|| DecodeError::other(format!("the room has no message {name:?}")))?;
        Ok((number as u32, &self.messages[number].1))
    }

    /// Returns the name of a message, and the message as JSON.
    ///
    /// # Errors
    /// If the room has no message with that number, or the payload has another type.
    pub fn message_value(&self, number: u32, payload: &[u8]) -> Result<(&str, Value), DecodeError> {
        let message = self.messages.get(number as usize);
        let (name, message, _) = message.ok_or_else(|| {
            DecodeError::other(format!("the room has no message with the number {number}"))
        })?;
        Ok((name, read(message, payload)?))
    }

    /// The name of a message; `None` if the room has none with that number.
    #[must_use]
    pub fn message_name(&self, number: u32) -> Option<&str> {
        self.messages.get(number as usize).map(|(name, ..)| name.as_str())
    }

    /// Converts the reply to a message.
    ///
    /// # Errors
    /// If the room has no message with that number, or the reply has another type.
    pub fn reply(&self, number: u32, payload: &[u8]) -> Result<Value, DecodeError> {
        read(self.reply_to(number)?, payload)
    }

    /// Checks the reply to a message.
    ///
    /// # Errors
    /// As [`reply`](Self::reply).
    pub fn check_reply(&self, number: u32, payload: &[u8]) -> Result<(), DecodeError> {
        self.reply_to(number)?.check(payload)
    }

    fn reply_to(&self, number: u32) -> Result<&Shape, DecodeError> {
        let message = self.messages.get(number as usize);
        message.map(|(_, _, reply)| reply).ok_or_else(|| {
            DecodeError::other(format!("the room has no message with the number {number}"))
        })
    }

    /// Returns the number of an event, and the event in `packed`.
    ///
    /// # Errors
    /// If the room has no event with that name, or the value has another type.
    pub fn event_payload(&self, name: &str, value: &Value) -> Result<(u32, Vec<u8>), DecodeError> {
        let number = self.events.iter().position(|(known, _)| known == name);
        let number =
            number.ok_or_else(|| DecodeError::other(format!("the room has no event {name:?}")))?;
        let mut payload = Vec::new();
        self.events[number].1.write(value, &mut payload)?;
        Ok((number as u32, payload))
    }

    /// The name of an event; `None` if the room has none with that number.
    #[must_use]
    pub fn event_name(&self, number: u32) -> Option<&str> {
        self.events.get(number as usize).map(|(name, _)| name.as_str())
    }

    /// Returns the name of an event, and the event as JSON.
    ///
    /// # Errors
    /// If the room has no event with that number, or the payload has another type.
    pub fn event(&self, number: u32, payload: &[u8]) -> Result<(&str, Value), DecodeError> {
        let (name, event) = self.numbered_event(number)?;
        Ok((name, read(event, payload)?))
    }

    /// Checks an event in `packed`. Returns its name.
    ///
    /// # Errors
    /// As [`event`](Self::event).
    pub fn check_event(&self, number: u32, payload: &[u8]) -> Result<&str, DecodeError> {
        let (name, event) = self.numbered_event(number)?;
        event.check(payload)?;
        Ok(name)
    }

    fn numbered_event(&self, number: u32) -> Result<(&str, &Shape), DecodeError> {
        let event = self.events.get(number as usize);
        event.map(|(name, event)| (&**name, event)).ok_or_else(|| {
            DecodeError::other(format!("the room has no event with the number {number}"))
        })
    }

    /// Converts the options for creating a room.
    ///
    /// # Errors
    /// If they have another type.
    pub fn options(&self, value: &Value) -> Result<Vec<u8>, DecodeError> {
        let mut payload = Vec::new();
        self.options.write(value, &mut payload)?;
        Ok(payload)
    }
}

/// Reads a whole payload; no byte may be left over.
fn read(of: &Shape, payload: &[u8]) -> Result<Value, DecodeError> {
    // An atomic value has no owner.
    Walk::new(payload, PlayerId(0), None).atomic(of)
}
