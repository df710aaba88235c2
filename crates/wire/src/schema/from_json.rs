//! Reading schemas from untrusted JSON.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::place::Place;
use super::{
    Enum, EventSchema, Field, MessageSchema, Policy, Quantized, RoomSchema, SchemaError, Struct,
    Type, fingerprint,
};
use crate::json;

/// The maximum length of a schema, in bytes of its JSON.
pub const SCHEMA_BYTES_MAX: usize = 1 << 20;

/// The maximum nesting depth of types in a schema.
pub const TYPE_DEPTH_MAX: usize = 24;

type Object = Map<String, Value>;

impl RoomSchema {
    /// Reads what [`to_json`](Self::to_json) wrote.
    ///
    /// # Errors
    /// If it is not a valid schema, or the fingerprint does not match the content. The error names
    /// the place.
    pub fn from_json(text: &[u8]) -> Result<Self, SchemaError> {
        if text.len() > SCHEMA_BYTES_MAX {
            return Err(SchemaError::TooLong { bytes: text.len() });
        }
        let value: Value = serde_json::from_slice(text)
            .map_err(|error| SchemaError::Json { why: error.to_string() })?;
        let root = Place::root("the schema");
        let schema = object(&value, &root)?;
        let stated = member(schema, "fingerprint", &root)?;
        let stated = json::as_u64(stated)
            .ok_or_else(|| unexpected("an integer from 0 to 2^64 - 1", stated, &root))?;

        let place = Place::root("state");
        let state = read_type(member(schema, "state", &root)?, &place, 0)?;
        if !matches!(state, Type::Struct(_)) {
            return Err(unexpected("a struct", &schema["state"], &place));
        }
        let options = read_type(member(schema, "options", &root)?, &Place::root("options"), 0)?;
        let messages =
            named(schema, "messages", &root, &Place::root("messages"), |name, object, place| {
                Ok(MessageSchema {
                    name: name.into(),
                    of: read_type(member(object, "type", place)?, place, 0)?,
                    reply: read_type(member(object, "reply", place)?, &place.reply(), 0)?,
                })
            })?;
        let events =
            named(schema, "events", &root, &Place::root("events"), |name, object, place| {
                Ok(EventSchema {
                    name: name.into(),
                    of: read_type(member(object, "type", place)?, place, 0)?,
                })
            })?;
        let schema = Self { state, options, messages, events };
        match fingerprint(&schema) {
            own if own == stated => Ok(schema),
            own => Err(SchemaError::Fingerprint { stated, own }),
        }
    }
}

impl Type {
    /// Reads a type that was serialized.
    ///
    /// # Errors
    /// If it is not a valid type. The error names the place.
    pub fn from_json(text: &[u8]) -> Result<Self, SchemaError> {
        if text.len() > SCHEMA_BYTES_MAX {
            return Err(SchemaError::TooLong { bytes: text.len() });
        }
        let value: Value = serde_json::from_slice(text)
            .map_err(|error| SchemaError::Json { why: error.to_string() })?;
        read_type(&value, &Place::root("the type"), 0)
    }
}

/// Reads a type at this nesting depth.
fn read_type(value: &Value, place: &Place<'_>, depth: usize) -> Result<Type, SchemaError> {
    if depth == TYPE_DEPTH_MAX {
        return Err(SchemaError::TooDeep { place: place.to_string() });
    }
    if let Some(word) = value.as_str() {
        return Type::of_word(word).ok_or_else(|| unexpected("the word for a type", value, place));
    }
    let of = object(value, place)?;
    let inner = |value, place: &Place<'_>| read_type(value, place, depth + 1).map(Box::new);
    if let Some(value) = of.get("option") {
        return Ok(Type::Option(inner(value, place)?));
    }
    if let Some(value) = of.get("list") {
        return Ok(Type::List(inner(value, &place.each())?));
    }
    if let Some(value) = of.get("array") {
        let length = member(of, "length", place)?;
        let number =
            length.as_u64().and_then(|length| u32::try_from(length).ok()).filter(|&n| n > 0);
        let number =
            number.ok_or_else(|| unexpected("a length from 1 to 2^32 - 1", length, place))?;
        return Ok(Type::Array(inner(value, &place.each())?, number as usize));
    }
    if let Some(value) = of.get("map") {
        let key = read_key(member(of, "key", place)?, &place.key())?;
        return Ok(Type::Map(Box::new(key), inner(value, &place.each())?));
    }
    if let Some(value) = of.get("set") {
        return read_key(value, &place.key()).map(|key| Type::Set(Box::new(key)));
    }
    if let Some(value) = of.get("quantized") {
        return read_quantized(of, value, place);
    }
    if let Some(name) = of.get("struct") {
        let name = text(name, place)?.to_owned().into();
        return Ok(Type::Struct(Struct { name, fields: read_fields(of, place, depth)? }));
    }
    if let Some(name) = of.get("enum") {
        let name = text(name, place)?.to_owned().into();
        let variants = named(of, "variants", place, place, |name, variant, place| {
            Ok(Struct { name: name.into(), fields: read_fields(variant, place, depth)? })
        })?;
        if variants.is_empty() {
            return Err(unexpected("at least one variant", &of["variants"], place));
        }
        return Ok(Type::Enum(Enum { name, variants }));
    }
    Err(unexpected("a type", value, place))
}

fn read_fields(of: &Object, place: &Place<'_>, depth: usize) -> Result<Vec<Field>, SchemaError> {
    named(of, "fields", place, place, |name, field, place| {
        let policy = match field.get("policy") {
            None => Policy::Everyone,
            Some(policy) => match policy.as_str() {
                Some("owner") => Policy::Owner,
                Some("view") => Policy::View,
                _ => return Err(unexpected("the policy \"owner\" or \"view\"", policy, place)),
            },
        };
        let default_digest = field
            .get("default_digest")
            .map(|default_digest| read_default_digest(default_digest, policy, place))
            .transpose()?;
        let of = read_type(member(field, "type", place)?, place, depth + 1)?;
        Ok(Field { name: name.into(), policy, default_digest, of })
    })
}

/// The digest of a default, in the only valid form.
fn read_default_digest(
    default_digest: &Value,
    policy: Policy,
    place: &Place<'_>,
) -> Result<u64, SchemaError> {
    if policy == Policy::Everyone {
        return Err(unexpected(
            "no \"default_digest\" where everyone sees the field",
            default_digest,
            place,
        ));
    }
    let is_digit = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
    default_digest
        .as_str()
        .filter(|text| text.len() == 16 && text.bytes().all(is_digit))
        .and_then(|text| u64::from_str_radix(text, 16).ok())
        .ok_or_else(|| unexpected("a digest of 16 digits from 0 to f", default_digest, place))
}

fn read_key(value: &Value, place: &Place<'_>) -> Result<Type, SchemaError> {
    let key = value.as_str().and_then(Type::of_word).filter(Type::is_key);
    key.ok_or_else(|| unexpected("a player, a text or an integer", value, place))
}

fn read_quantized(of: &Object, float: &Value, place: &Place<'_>) -> Result<Type, SchemaError> {
    let kind = match float.as_str() {
        Some("f32") => Type::F32,
        Some("f64") => Type::F64,
        _ => return Err(unexpected("f32 or f64", float, place)),
    };
    let step = member(of, "step", place)?;
    let step = step
        .as_f64()
        .filter(|step| step.is_finite() && *step > 0.0)
        .ok_or_else(|| unexpected("a step greater than 0", step, place))?;
    let range = match of.get("range") {
        None => None,
        Some(range) => Some(
            read_range(range)
                .ok_or_else(|| unexpected("a least value and then a greatest one", range, place))?,
        ),
    };
    let angle = match of.get("angle") {
        None => false,
        Some(Value::Bool(true)) if range.is_none() => true,
        Some(angle) => return Err(unexpected("true, and no range beside it", angle, place)),
    };
    Ok(Type::Quantized(Box::new(Quantized { of: kind, step, range, angle })))
}

fn read_range(range: &Value) -> Option<(f64, f64)> {
    let [least, most] = range.as_array()?.as_slice() else { return None };
    let (least, most) = (least.as_f64()?, most.as_f64()?);
    (least.is_finite() && most.is_finite() && least < most).then_some((least, most))
}

/// Reads a list of objects with distinct names.
fn named<T>(
    of: &Object,
    list: &'static str,
    place: &Place<'_>,
    inside: &Place<'_>,
    read: impl Fn(String, &Object, &Place<'_>) -> Result<T, SchemaError>,
) -> Result<Vec<T>, SchemaError> {
    let value = member(of, list, place)?;
    let elements = value.as_array().ok_or_else(|| unexpected("a list", value, place))?;
    let mut names = BTreeSet::new();
    elements
        .iter()
        .map(|element| {
            let members = object(element, inside)?;
            let name = text(member(members, "name", inside)?, inside)?;
            let place = inside.named(name);
            if !names.insert(name) {
                return Err(SchemaError::Twice { place: place.to_string() });
            }
            read(name.to_owned(), members, &place)
        })
        .collect()
}

fn object<'a>(value: &'a Value, place: &Place<'_>) -> Result<&'a Object, SchemaError> {
    value.as_object().ok_or_else(|| unexpected("an object", value, place))
}

fn text<'a>(value: &'a Value, place: &Place<'_>) -> Result<&'a str, SchemaError> {
    value.as_str().ok_or_else(|| unexpected("a name", value, place))
}

fn member<'a>(
    of: &'a Object,
    name: &'static str,
    place: &Place<'_>,
) -> Result<&'a Value, SchemaError> {
    of.get(name).ok_or_else(|| SchemaError::Missing { place: place.to_string(), member: name })
}

fn unexpected(expected: &'static str, found: &Value, place: &Place<'_>) -> SchemaError {
    let text = found.to_string();
    let shown = crate::excerpt(&text, 40);
    let found = if shown.len() < text.len() { format!("{shown}…") } else { text };
    SchemaError::Unexpected { place: place.to_string(), expected, found }
}
