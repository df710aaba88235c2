//! Checks whether readers accept a schema.

use super::place::Place;
use super::{RoomSchema, SCHEMA_BYTES_MAX, SchemaError, Struct, TYPE_DEPTH_MAX, Type};

impl RoomSchema {
    /// The schema as JSON, as [`to_json`](Self::to_json) writes it, if
    /// [`from_json`](Self::from_json) would accept it: if it is not nested deeper than
    /// [`TYPE_DEPTH_MAX`] and not longer than [`SCHEMA_BYTES_MAX`].
    ///
    /// # Errors
    /// [`SchemaError::TooDeep`] and [`SchemaError::TooLong`].
    pub fn to_json_in_limits(&self) -> Result<String, SchemaError> {
        check_depth(&self.state, &Place::root("state"), 0)?;
        check_depth(&self.options, &Place::root("options"), 0)?;
        let messages = Place::root("messages");
        for message in &self.messages {
            let place = messages.named(&message.name);
            check_depth(&message.of, &place, 0)?;
            check_depth(&message.reply, &place.reply(), 0)?;
        }
        let events = Place::root("events");
        for event in &self.events {
            check_depth(&event.of, &events.named(&event.name), 0)?;
        }
        let text = self.to_json();
        if text.len() > SCHEMA_BYTES_MAX {
            return Err(SchemaError::TooLong { bytes: text.len() });
        }
        Ok(text)
    }
}

/// Checks a type at this nesting depth. It recurses no deeper than the limit.
fn check_depth(of: &Type, place: &Place<'_>, depth: usize) -> Result<(), SchemaError> {
    if depth == TYPE_DEPTH_MAX {
        return Err(SchemaError::TooDeep { place: place.to_string() });
    }
    match of {
        Type::Option(inner) => check_depth(inner, place, depth + 1),
        Type::List(inner) | Type::Array(inner, _) | Type::Map(_, inner) => {
            check_depth(inner, &place.each(), depth + 1)
        }
        Type::Struct(of) => check_fields(of, place, depth),
        Type::Enum(of) => of
            .variants
            .iter()
            .try_for_each(|variant| check_fields(variant, &place.named(&variant.name), depth)),
        _ => Ok(()),
    }
}

fn check_fields(of: &Struct, place: &Place<'_>, depth: usize) -> Result<(), SchemaError> {
    of.shown().try_for_each(|field| check_depth(&field.of, &place.named(&field.name), depth + 1))
}
