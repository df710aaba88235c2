//! Messages and options are checked against the node's schema before they are sent.

use std::sync::Arc;

use playfield_client::session::Learned;
use playfield_state::JsonExchange;
use playfield_wire::DecodeError;
use playfield_wire::schema::{RoomSchema, Struct, Type, fingerprint};
use serde_json::Value;

use super::values::Shape;

/// The schema of a type of rooms.
#[derive(Debug)]
pub(crate) struct Checker {
    pub(crate) fingerprint: u64,
    learned: Arc<Learned>,
}

impl Checker {
    /// Reads a schema. The error says what is wrong with it.
    pub(crate) fn new(text: &[u8]) -> Result<Self, String> {
        let schema = RoomSchema::from_json(text).map_err(|error| error.to_string())?;
        let exchange = JsonExchange::new(&schema).map_err(|error| error.to_string())?;
        Ok(Self::of(Arc::new(Learned { schema: Arc::new(schema), exchange })))
    }

    /// A schema that the session has learned.
    pub(crate) fn of(learned: Arc<Learned>) -> Self {
        Self { fingerprint: fingerprint(&learned.schema), learned }
    }

    fn schema(&self) -> &RoomSchema {
        &self.learned.schema
    }

    /// The schema as JSON.
    pub(crate) fn text(&self) -> String {
        self.schema().to_json()
    }

    /// Checks a message, and writes it as it is sent. The error says what is wrong, and where.
    pub(crate) fn message(&self, name: &str, payload: &[u8]) -> Result<(u32, Vec<u8>), String> {
        let messages = &self.schema().messages;
        let Some(message) = messages.iter().find(|message| message.name == name) else {
            let known = messages.iter().map(|message| &*message.name);
            return Err(format!("the room has no message {name:?}; it has {}", list(known)));
        };
        let value = read(payload).map_err(|error| format!("{name}: {error}"))?;
        strange_member(&message.of, &value, name)?;
        let written = self.learned.exchange.message(name, &value);
        written.map_err(|error| format!("{name}: {error}"))
    }

    /// Checks the options for a new room.
    pub(crate) fn options(&self, payload: &[u8]) -> Result<(), String> {
        if payload.is_empty() {
            return Ok(());
        }
        let value = read(payload).map_err(|error| format!("the options: {error}"))?;
        strange_member(&self.schema().options, &value, "the options")?;
        self.learned
            .exchange
            .options(&value)
            .map(drop)
            .map_err(|error| format!("the options: {error}"))
    }
}

impl Checker {
    pub(super) fn state(&self) -> Shape<'_> {
        Shape::Of(&self.schema().state)
    }

    /// The name of the event with this number.
    pub(super) fn event_name(&self, index: u32) -> Option<&str> {
        let event = self.schema().events.get(usize::try_from(index).ok()?);
        event.map(|event| &*event.name)
    }

    /// The payload of an event, and its shape.
    pub(super) fn event(
        &self,
        name: &str,
        payload: &[u8],
    ) -> Result<(Value, Option<Shape<'_>>), DecodeError> {
        let events = &self.schema().events;
        let Some(at) = events.iter().position(|event| event.name == *name) else {
            return Err(DecodeError::other(format!("the room has no event {name:?}")));
        };
        let (_, value) = self.learned.exchange.event(at as u32, payload)?;
        Ok((value, Some(Shape::Of(&events[at].of))))
    }

    /// The reply to a message, and its shape.
    pub(super) fn reply(
        &self,
        message: &str,
        payload: &[u8],
    ) -> Result<(Value, Option<Shape<'_>>), DecodeError> {
        let messages = &self.schema().messages;
        let Some(at) = messages.iter().position(|known| known.name == *message) else {
            return Err(DecodeError::other(format!("the room has no message {message:?}")));
        };
        let value = self.learned.exchange.reply(at as u32, payload)?;
        Ok((value, Some(Shape::Of(&messages[at].reply))))
    }
}

fn read(payload: &[u8]) -> Result<Value, String> {
    serde_json::from_slice(payload).map_err(|error| error.to_string())
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// An error if a member of an object is not a field, or a field without a default is absent. A node
/// ignores the former; a program that misspells a name wants to know.
fn strange_member(of: &Type, value: &Value, place: &str) -> Result<(), String> {
    match (of, value) {
        (Type::Struct(of), value) => strange_field(of, value, place),
        (Type::Option(of), value) if !value.is_null() => strange_member(of, value, place),
        (Type::List(of) | Type::Array(of, _), Value::Array(elements)) => {
            let mut elements = elements.iter().enumerate();
            elements.try_for_each(|(at, element)| {
                strange_member(of, element, &format!("{place}[{at}]"))
            })
        }
        (Type::Map(_, of), Value::Object(members)) => {
            let mut members = members.iter();
            members
                .try_for_each(|(key, value)| strange_member(of, value, &format!("{place}[{key}]")))
        }
        (Type::Enum(of), Value::Object(members)) => members.iter().try_for_each(|(name, value)| {
            let variant = of.variants.iter().find(|variant| variant.name == *name);
            variant
                .map_or(Ok(()), |variant| strange_field(variant, value, &format!("{place}.{name}")))
        }),
        _ => Ok(()),
    }
}

fn strange_field(of: &Struct, value: &Value, place: &str) -> Result<(), String> {
    // The fields of a tuple are numbered, and its JSON is an array, except for a single field.
    if let [field] = &*of.fields
        && field.name == "0"
    {
        return strange_member(&field.of, value, place);
    }
    if let Value::Array(elements) = value {
        let mut pairs = of.fields.iter().zip(elements);
        return pairs.try_for_each(|(field, value)| {
            strange_member(&field.of, value, &format!("{place}.{}", field.name))
        });
    }
    let Value::Object(members) = value else { return Ok(()) };
    let is_field = |name: &String| of.fields.iter().any(|field| field.name == *name);
    if let Some(strange) = members.keys().find(|name| !is_field(name)) {
        let known = list(of.fields.iter().map(|field| &*field.name));
        return Err(format!("{place} has no field {strange:?}; its fields: {known}"));
    }
    of.fields.iter().try_for_each(|field| match members.get(&*field.name) {
        Some(value) => strange_member(&field.of, value, &format!("{place}.{}", field.name)),
        None if matches!(field.of, Type::Option(_)) => Ok(()),
        None => Err(format!("{place} lacks its field {:?}", field.name)),
    })
}
