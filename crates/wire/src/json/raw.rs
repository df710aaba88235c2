//! The raw value of a member of a message, as JSON text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{parse_base64, parse_u64};
use crate::TreeFormat;
use crate::error::{DecodeError, Kind};
use crate::tree::members::{Member, Pair, Raw, Values};

/// The text of one value.
#[derive(Clone, Copy)]
pub(crate) struct RawJson<'a>(&'a str);

impl<'a> RawJson<'a> {
    /// A whole message, not parsed yet.
    pub(crate) fn of_message(body: &'a [u8]) -> Result<Self, DecodeError> {
        let text = std::str::from_utf8(body);
        text.map(Self).map_err(|error| DecodeError::of(error.valid_up_to(), Kind::NotUtf8))
    }
}

impl<'a> Raw<'a> for RawJson<'a> {
    const FORMAT: TreeFormat = TreeFormat::Json;

    fn bytes(self) -> &'a [u8] {
        self.0.as_bytes()
    }

    fn is_null(self) -> bool {
        self.0 == "null"
    }

    fn members(self, what: &'static str) -> Result<Values<Self>, DecodeError> {
        parse(self.0, MembersVisitor { what })
            .map_err(|error| DecodeError::new(offset_of_error(self.0, &error), reason(&error)))
    }

    fn as_u64(self) -> Option<u64> {
        match self.as_text() {
            Some(text) => parse_u64(&text),
            None => parse_u64(self.0),
        }
    }

    fn as_bool(self) -> Option<bool> {
        match self.0 {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    fn as_text(self) -> Option<Cow<'a, str>> {
        if self.0.starts_with('"') { parse(self.0, TextVisitor).ok() } else { None }
    }

    fn as_bytes(self) -> Option<Cow<'a, [u8]>> {
        parse_base64(&self.as_text()?).map(Cow::Owned)
    }

    fn as_pairs(self) -> Option<Vec<Pair<'a>>> {
        parse(self.0, PairsVisitor).ok()
    }

    fn as_elements(self) -> Option<Vec<Self>> {
        parse(self.0, ElementsVisitor).ok()
    }
}

fn parse<'a, S: DeserializeSeed<'a>>(text: &'a str, seed: S) -> serde_json::Result<S::Value> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// The offset of an error within `text`, from its line and column.
fn offset_of_error(text: &str, error: &serde_json::Error) -> usize {
    let lines_before = error.line().saturating_sub(1);
    let line_start: usize = text.split_inclusive('\n').take(lines_before).map(str::len).sum();
    (line_start + error.column().saturating_sub(1)).min(text.len())
}

/// An error's text, without its line and column.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rfind(" at line ") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

struct MembersVisitor {
    what: &'static str,
}

impl<'a> DeserializeSeed<'a> for MembersVisitor {
    type Value = Values<RawJson<'a>>;

    fn deserialize<D: serde::Deserializer<'a>>(
        self,
        deserializer: D,
    ) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for MembersVisitor {
    type Value = Values<RawJson<'a>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as an object", self.what)
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = Values::none();
        while let Some(member) = map.next_key_seed(KeyVisitor)? {
            match member {
                Some(member) => values.set(member, RawJson(map.next_value::<&RawValue>()?.get())),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(values)
    }
}

/// Reads a member's name without keeping it.
struct KeyVisitor;

impl<'a> DeserializeSeed<'a> for KeyVisitor {
    type Value = Option<Member>;

    fn deserialize<D: serde::Deserializer<'a>>(
        self,
        deserializer: D,
    ) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyVisitor {
    type Value = Option<Member>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member's name")
    }

    fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<Self::Value, E> {
        Ok(Member::from_name(name))
    }
}

/// Reads a string, and copies it only if it has escapes.
struct TextVisitor;

impl<'a> DeserializeSeed<'a> for TextVisitor {
    type Value = Cow<'a, str>;

    fn deserialize<D: serde::Deserializer<'a>>(
        self,
        deserializer: D,
    ) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'a> Visitor<'a> for TextVisitor {
    type Value = Cow<'a, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, text: &'a str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

struct PairsVisitor;

impl<'a> DeserializeSeed<'a> for PairsVisitor {
    type Value = Vec<Pair<'a>>;

    fn deserialize<D: serde::Deserializer<'a>>(
        self,
        deserializer: D,
    ) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for PairsVisitor {
    type Value = Vec<Pair<'a>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of strings")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut pairs = Vec::new();
        while let Some(key) = map.next_key_seed(TextVisitor)? {
            pairs.push((key, map.next_value_seed(TextVisitor)?));
        }
        Ok(pairs)
    }
}

struct ElementsVisitor;

impl<'a> DeserializeSeed<'a> for ElementsVisitor {
    type Value = Vec<RawJson<'a>>;

    fn deserialize<D: serde::Deserializer<'a>>(
        self,
        deserializer: D,
    ) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'a> Visitor<'a> for ElementsVisitor {
    type Value = Vec<RawJson<'a>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = list.next_element::<&RawValue>()? {
            elements.push(RawJson(element.get()));
        }
        Ok(elements)
    }
}
