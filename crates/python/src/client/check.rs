//! Messages and options are checked against the node's schema before they are sent.

use playfield_client::session::Learned;
use playfield_wire::schema::{Struct, Type};
use serde_json::Value;

/// Checks a message, and writes it as it is sent. The error says what is wrong, and where.
pub(super) fn message(
    learned: &Learned,
    name: &str,
    payload: &[u8],
) -> Result<(u32, Vec<u8>), String> {
    let messages = &learned.schema.messages;
    let Some(message) = messages.iter().find(|message| message.name == name) else {
        let known = messages.iter().map(|message| &*message.name);
        return Err(format!("the room has no message {name:?}; it has {}", list(known)));
    };
    let value = read(payload).map_err(|error| format!("{name}: {error}"))?;
    strange_member(&message.of, &value, name)?;
    learned.exchange.message(name, &value).map_err(|error| format!("{name}: {error}"))
}

/// Checks the options for a new room. The error says what is wrong, and where.
pub(super) fn options(learned: &Learned, payload: &[u8]) -> Result<(), String> {
    let what = "the options";
    let value = read(payload).map_err(|error| format!("{what}: {error}"))?;
    strange_member(&learned.schema.options, &value, what)?;
    learned.exchange.options(&value).map(drop).map_err(|error| format!("{what}: {error}"))
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
