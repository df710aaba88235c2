//! Schemas to JSON.
//!
//! Members come in a fixed order, so that two texts can be compared:
//!
//! ```json
//! {
//!   "fingerprint": "11112705466371834637",
//!   "state": {"struct": "Table", "fields": [
//!     {"name": "round", "type": "u32"},
//!     {"name": "hands", "policy": "owner", "type": {"map": {"list": "u8"}, "key": "player"}}
//!   ]},
//!   "options": "unit",
//!   "messages": [{"name": "Draw", "type": "unit", "reply": {"option": "u8"}}],
//!   "events": []
//! }
//! ```

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{
    Enum, EventSchema, Field, MessageSchema, Policy, Quantized, RoomSchema, Struct, Type,
    fingerprint,
};
use crate::json::INTEGER_MAX;

impl RoomSchema {
    /// The schema as JSON, on one line. Hidden fields are left out, since clients never get them.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("its numbers are finite and its keys are texts")
    }

    /// The same, over several lines with indents.
    #[must_use]
    pub fn to_json_pretty(&self) -> String {
        serde_json::to_string_pretty(self).expect("its numbers are finite and its keys are texts")
    }
}

impl Serialize for RoomSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(5))?;
        match fingerprint(self) {
            small @ 0..=INTEGER_MAX => object.serialize_entry("fingerprint", &small)?,
            large => object.serialize_entry("fingerprint", &large.to_string())?,
        }
        object.serialize_entry("state", &self.state)?;
        object.serialize_entry("options", &self.options)?;
        object.serialize_entry("messages", &self.messages)?;
        object.serialize_entry("events", &self.events)?;
        object.end()
    }
}

impl Serialize for MessageSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(3))?;
        object.serialize_entry("name", &*self.name)?;
        object.serialize_entry("type", &self.of)?;
        object.serialize_entry("reply", &self.reply)?;
        object.end()
    }
}

impl Serialize for EventSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(2))?;
        object.serialize_entry("name", &*self.name)?;
        object.serialize_entry("type", &self.of)?;
        object.end()
    }
}

impl Serialize for Type {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(word) = self.word() {
            return serializer.serialize_str(word);
        }
        let mut object = serializer.serialize_map(None)?;
        match self {
            Self::Option(inner) => object.serialize_entry("option", inner)?,
            Self::List(inner) => object.serialize_entry("list", inner)?,
            Self::Array(inner, length) => {
                object.serialize_entry("array", inner)?;
                object.serialize_entry("length", length)?;
            }
            Self::Map(key, value) => {
                object.serialize_entry("map", value)?;
                object.serialize_entry("key", key)?;
            }
            Self::Set(key) => object.serialize_entry("set", key)?,
            Self::Quantized(inner) => {
                let Quantized { of, step, range, angle } = &**inner;
                object.serialize_entry("quantized", of)?;
                object.serialize_entry("step", step)?;
                if let Some((least, most)) = range {
                    object.serialize_entry("range", &[least, most])?;
                }
                if *angle {
                    object.serialize_entry("angle", angle)?;
                }
            }
            Self::Struct(Struct { name, fields }) => {
                object.serialize_entry("struct", &**name)?;
                object.serialize_entry("fields", &Fields(fields))?;
            }
            Self::Enum(Enum { name, variants }) => {
                object.serialize_entry("enum", &**name)?;
                object.serialize_entry("variants", &Variants(variants))?;
            }
            plain => unreachable!("{plain:?} is a word"),
        }
        object.end()
    }
}

/// The fields that are sent to clients.
struct Fields<'a>(&'a [Field]);

impl Serialize for Fields<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().filter(|field| field.policy != Policy::Hidden))
    }
}

impl Serialize for Field {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("name", &*self.name)?;
        match self.policy {
            Policy::Everyone | Policy::Hidden => {}
            Policy::Owner => object.serialize_entry("policy", "owner")?,
            Policy::View => object.serialize_entry("policy", "view")?,
        }
        if let Some(default_digest) = self.default_digest {
            object.serialize_entry("default_digest", &format_args!("{default_digest:016x}"))?;
        }
        object.serialize_entry("type", &self.of)?;
        object.end()
    }
}

struct Variants<'a>(&'a [Struct]);

impl Serialize for Variants<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(Variant))
    }
}

struct Variant<'a>(&'a Struct);

impl Serialize for Variant<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_map(Some(2))?;
        object.serialize_entry("name", &*self.0.name)?;
        object.serialize_entry("fields", &Fields(&self.0.fields))?;
        object.end()
    }
}
