//! Reading objects: an object is taken apart into the raw text of the members that the protocol knows.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{parse_base64, parse_u64};
use crate::error::{DecodeError, Kind};

/// Declares the members that messages may have: a message's `type` may come after its other members, so all that
/// could belong to it are kept until it is known.
macro_rules! members {
    ($($member:ident $name:literal,)*) => {
        /// A member of a message, or of an object within one.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Member { $(#[doc = $name] $member,)* }

        impl Member {
            const NAMES: &[&str] = &[$($name,)*];

            fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$member),)*
                    _ => None,
                }
            }
        }
    };
}

members! {
    Base "base",
    Capacity "capacity",
    Code "code",
    Epoch "epoch",
    Filter "filter",
    Fingerprint "fingerprint",
    Format "format",
    HeartbeatMs "heartbeat_ms",
    Id "id",
    Limit "limit",
    Locked "locked",
    MaxMessageBytes "max_message_bytes",
    Message "message",
    Metadata "metadata",
    Name "name",
    Digest "digest",
    Nonce "nonce",
    Ops "ops",
    Options "options",
    Payload "payload",
    Player "player",
    Players "players",
    Private "private",
    Protocol "protocol",
    Request "request",
    Resume "resume",
    Room "room",
    RoomType "room_type",
    Rooms "rooms",
    Schema "schema",
    Schemas "schemas",
    Sequence "sequence",
    Session "session",
    State "state",
    SyncHz "sync_hz",
    Text "text",
    TickHz "tick_hz",
    Token "token",
    Type "type",
    Version "version",
}

impl Member {
    fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// The known members of one object, as raw JSON. Of members with one name the last counts.
pub(crate) struct Members<'a> {
    object: &'a str,
    values: [Option<&'a RawValue>; Member::NAMES.len()],
    message: Place,
}

/// Where the message lies, so that errors within it can name their offset.
#[derive(Clone, Copy)]
struct Place {
    address: usize,
}

impl Place {
    /// The offset of `part`, which borrows from the message.
    fn offset_of(self, part: &str) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.address)
    }
}

impl<'a> Members<'a> {
    /// Takes a whole message apart.
    pub(crate) fn of_message(body: &'a [u8]) -> Result<Self, DecodeError> {
        let text =
            std::str::from_utf8(body).map_err(|error| DecodeError::of(error.valid_up_to(), Kind::NotUtf8))?;
        let place = Place { address: text.as_ptr() as usize };
        Self::of_object(text, place, "a message")
    }

    fn of_object(object: &'a str, message: Place, what: &'static str) -> Result<Self, DecodeError> {
        let values = parse(object, MembersVisitor { what }).map_err(|error| {
            let offset = message.offset_of(object) + offset_of_error(object, &error);
            DecodeError::new(offset, reason(&error))
        })?;
        Ok(Self { object, values, message })
    }

    /// The message's `type`.
    pub(crate) fn message_type(&self) -> Result<Cow<'a, str>, DecodeError> {
        self.text(Member::Type)
    }

    /// The error for a `type` that isn't in the protocol's tables.
    pub(crate) fn unknown_type(&self, name: &str) -> DecodeError {
        let offset = self.offset(Member::Type);
        DecodeError::of(offset, Kind::UnknownType { name: name.chars().take(40).collect() })
    }

    /// The error for a member whose value is not what it should be.
    pub(crate) fn refuse(&self, member: Member, expected: &str) -> DecodeError {
        let offset = self.offset(member);
        DecodeError::new(offset, format!("the member {:?} should be {expected}", member.name()))
    }

    pub(crate) fn offset(&self, member: Member) -> usize {
        let part = self.values[member as usize].map_or(self.object, RawValue::get);
        self.message.offset_of(part)
    }

    /// The raw value of a member that is there and not `null`.
    fn value(&self, member: Member) -> Option<&'a str> {
        self.values[member as usize].map(RawValue::get).filter(|raw| *raw != "null")
    }

    /// The error for a member that is absent or `null` and may not be.
    pub(crate) fn missing(&self, member: Member) -> DecodeError {
        let offset = self.message.offset_of(self.object);
        DecodeError::new(offset, format!("the member {:?} is missing", member.name()))
    }

    /// Any JSON value, as its text; empty if it is absent or `null`.
    pub(crate) fn raw(&self, member: Member) -> &'a [u8] {
        self.value(member).unwrap_or_default().as_bytes()
    }

    pub(crate) fn u64(&self, member: Member) -> Result<u64, DecodeError> {
        self.optional_u64(member)?.ok_or_else(|| self.missing(member))
    }

    pub(crate) fn u32(&self, member: Member) -> Result<u32, DecodeError> {
        self.optional_u32(member)?.ok_or_else(|| self.missing(member))
    }

    pub(crate) fn optional_u64(&self, member: Member) -> Result<Option<u64>, DecodeError> {
        let Some(raw) = self.value(member) else { return Ok(None) };
        let value = match text_of(raw) {
            Some(text) => parse_u64(&text),
            None => parse_u64(raw),
        };
        match value {
            Some(value) => Ok(Some(value)),
            None => Err(self.refuse(member, "an integer from 0 to 2^64 - 1, or one as a decimal string")),
        }
    }

    pub(crate) fn optional_u32(&self, member: Member) -> Result<Option<u32>, DecodeError> {
        let value = self.optional_u64(member)?.map(u32::try_from).transpose();
        value.map_err(|_| self.refuse(member, "an integer from 0 to 2^32 - 1"))
    }

    pub(crate) fn bool(&self, member: Member) -> Result<bool, DecodeError> {
        self.optional_bool(member)?.ok_or_else(|| self.missing(member))
    }

    pub(crate) fn optional_bool(&self, member: Member) -> Result<Option<bool>, DecodeError> {
        match self.value(member) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(self.refuse(member, "true or false")),
        }
    }

    pub(crate) fn text(&self, member: Member) -> Result<Cow<'a, str>, DecodeError> {
        self.optional_text(member)?.ok_or_else(|| self.missing(member))
    }

    pub(crate) fn optional_text(&self, member: Member) -> Result<Option<Cow<'a, str>>, DecodeError> {
        let Some(raw) = self.value(member) else { return Ok(None) };
        match text_of(raw) {
            Some(text) => Ok(Some(text)),
            None => Err(self.refuse(member, "a string")),
        }
    }

    pub(crate) fn bytes(&self, member: Member) -> Result<Vec<u8>, DecodeError> {
        self.optional_bytes(member)?.ok_or_else(|| self.missing(member))
    }

    pub(crate) fn optional_bytes(&self, member: Member) -> Result<Option<Vec<u8>>, DecodeError> {
        let Some(text) = self.optional_text(member)? else { return Ok(None) };
        match parse_base64(&text) {
            Some(bytes) => Ok(Some(bytes)),
            None => Err(self.refuse(member, "a string in base64 with padding")),
        }
    }

    /// An object whose members are all strings. One that comes twice is two pairs, as it is in `packed`.
    pub(crate) fn optional_pairs(&self, member: Member) -> Result<Vec<Pair<'a>>, DecodeError> {
        let Some(raw) = self.value(member) else { return Ok(Vec::new()) };
        parse(raw, PairsVisitor).map_err(|_| self.refuse(member, "an object of strings"))
    }

    pub(crate) fn optional_object(&self, member: Member) -> Result<Option<Members<'a>>, DecodeError> {
        let Some(raw) = self.value(member) else { return Ok(None) };
        Members::of_object(raw, self.message, "an object").map(Some)
    }

    pub(crate) fn list<T>(
        &self,
        member: Member,
        read: impl Fn(&Members<'a>) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        match self.value(member) {
            Some(_) => self.optional_list(member, read),
            None => Err(self.missing(member)),
        }
    }

    /// A list of objects; no elements if it is absent.
    pub(crate) fn optional_list<T>(
        &self,
        member: Member,
        read: impl Fn(&Members<'a>) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let Some(raw) = self.value(member) else { return Ok(Vec::new()) };
        let elements = parse(raw, ElementsVisitor).map_err(|_| self.refuse(member, "a list"))?;
        let element = |raw: &'a RawValue| read(&Members::of_object(raw.get(), self.message, "an object")?);
        elements.into_iter().map(element).collect()
    }
}

/// A key and its value.
pub(crate) type Pair<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The string that `raw` is, if it is one.
fn text_of(raw: &str) -> Option<Cow<'_, str>> {
    if raw.starts_with('"') { parse(raw, TextVisitor).ok() } else { None }
}

fn parse<'a, S: DeserializeSeed<'a>>(text: &'a str, seed: S) -> serde_json::Result<S::Value> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}

/// The offset within `text` of an error, which knows it as line and column.
fn offset_of_error(text: &str, error: &serde_json::Error) -> usize {
    let lines_before = error.line().saturating_sub(1);
    let line_start: usize = text.split_inclusive('\n').take(lines_before).map(str::len).sum();
    (line_start + error.column().saturating_sub(1)).min(text.len())
}

/// What an error says, without its line and column.
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
    type Value = [Option<&'a RawValue>; Member::NAMES.len()];

    fn deserialize<D: serde::Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'a> Visitor<'a> for MembersVisitor {
    type Value = [Option<&'a RawValue>; Member::NAMES.len()];

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} as an object", self.what)
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = [None; Member::NAMES.len()];
        while let Some(member) = map.next_key_seed(KeyVisitor)? {
            match member {
                Some(member) => values[member as usize] = Some(map.next_value()?),
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

    fn deserialize<D: serde::Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
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

    fn deserialize<D: serde::Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
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

    fn deserialize<D: serde::Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
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
    type Value = Vec<&'a RawValue>;

    fn deserialize<D: serde::Deserializer<'a>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'a> Visitor<'a> for ElementsVisitor {
    type Value = Vec<&'a RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = list.next_element()? {
            elements.push(element);
        }
        Ok(elements)
    }
}
