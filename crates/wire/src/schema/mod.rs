//! The shape of a room type's state, messages and events, its fingerprint, its JSON, and whether
//! two schemas are compatible.
//!
//! Two builds whose fingerprints are equal understand each other. It is computed over a text that
//! names exactly what is visible on the wire:
//!
//! ```text
//! state {
//!   round u32
//!   owner hands map<player, list<{
//!     suit u8
//!   }>>
//! }
//! options unit
//! message draw {
//! } -> option<u8>
//! event dealt {
//!   count u32
//! }
//! ```
//!
//! Fields come in their declared order, which is their order in `packed`. Hidden fields, which
//! never leave the server, are left out; so are the names of structs and enums, which matter only
//! to people and generated code.

mod compatibility;
mod error;
mod form;
mod from_json;
mod limits;
mod place;
mod to_json;

use std::borrow::Cow;
use std::fmt::{self, Write};

pub use compatibility::{Incompatible, check_compatible, check_compatible_packed};
pub use error::SchemaError;
pub use form::Form;
pub use from_json::{SCHEMA_BYTES_MAX, TYPE_DEPTH_MAX};

/// The shape of a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Type {
    /// True or false.
    Bool,
    /// An unsigned integer of 8 bits.
    U8,
    /// An unsigned integer of 16 bits.
    U16,
    /// An unsigned integer of 32 bits.
    U32,
    /// An unsigned integer of 64 bits.
    U64,
    /// A signed integer of 8 bits.
    I8,
    /// A signed integer of 16 bits.
    I16,
    /// A signed integer of 32 bits.
    I32,
    /// A signed integer of 64 bits.
    I64,
    /// A float of 32 bits.
    F32,
    /// A float of 64 bits.
    F64,
    /// A text in UTF-8.
    Text,
    /// A byte string.
    Bytes,
    /// A player's number.
    Player,
    /// Nothing at all.
    Unit,
    /// A value or none.
    Option(Box<Type>),
    /// Values in an order.
    List(Box<Type>),
    /// Values, as many as the number says.
    Array(Box<Type>, usize),
    /// Values by key: the key's type, then the value's.
    Map(Box<Type>, Box<Type>),
    /// Keys of a type.
    Set(Box<Type>),
    /// A quantized number.
    Quantized(Box<Quantized>),
    /// Named fields.
    Struct(Struct),
    /// One of several variants.
    Enum(Enum),
}

impl Type {
    /// The word for it in the canonical text and in JSON, if it has nothing in it.
    pub(crate) fn word(&self) -> Option<&'static str> {
        Some(match self {
            Self::Bool => "bool",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::Player => "player",
            Self::Unit => "unit",
            Self::Option(_)
            | Self::List(_)
            | Self::Array(..)
            | Self::Map(..)
            | Self::Set(_)
            | Self::Quantized(_)
            | Self::Struct(_)
            | Self::Enum(_) => return None,
        })
    }

    /// The type for a word.
    pub(crate) fn of_word(word: &str) -> Option<Self> {
        const WORDS: [Type; 15] = [
            Type::Bool,
            Type::U8,
            Type::U16,
            Type::U32,
            Type::U64,
            Type::I8,
            Type::I16,
            Type::I32,
            Type::I64,
            Type::F32,
            Type::F64,
            Type::Text,
            Type::Bytes,
            Type::Player,
            Type::Unit,
        ];
        WORDS.into_iter().find(|of| of.word() == Some(word))
    }

    /// Whether it may be left out: it is an option, or a collection that may be empty.
    #[must_use]
    pub fn may_be_empty(&self) -> bool {
        matches!(self, Self::Option(_) | Self::List(_) | Self::Map(..) | Self::Set(_))
    }

    /// Whether maps and sets may be keyed by it.
    pub(crate) fn is_key(&self) -> bool {
        matches!(
            self,
            Self::Player
                | Self::Text
                | Self::U8
                | Self::U16
                | Self::U32
                | Self::U64
                | Self::I8
                | Self::I16
                | Self::I32
                | Self::I64
        )
    }
}

/// A float that is sent as a number of steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantized {
    /// [`F32`](Type::F32) or [`F64`](Type::F64).
    pub of: Type,
    /// The distance between two adjacent values. The error is at most half of it.
    pub step: f64,
    /// The least and the greatest value.
    pub range: Option<(f64, f64)>,
    /// Whether it is an angle in radians, which wraps.
    pub angle: bool,
}

/// A type with named fields, or a variant of an [`Enum`].
#[derive(Clone, Debug, PartialEq)]
pub struct Struct {
    /// The type's name, or the variant's.
    pub name: Cow<'static, str>,
    /// Its fields, in their order.
    pub fields: Vec<Field>,
}

impl Struct {
    /// The fields that some player may see, in their order.
    pub fn shown(&self) -> impl Iterator<Item = &Field> {
        self.fields.iter().filter(|field| field.policy != Policy::Hidden)
    }
}

/// A type with several variants, each of which has fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Enum {
    /// The type's name.
    pub name: Cow<'static, str>,
    /// Its variants, in their order.
    pub variants: Vec<Struct>,
}

/// A field of a [`Struct`].
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// The field's name.
    pub name: Cow<'static, str>,
    /// The players who see it.
    pub policy: Policy,
    /// The digest of its default, with maps and sets empty, unless it follows from the type. This
    /// value has no weight in the digest of a copy. Only a field that not everyone sees has one.
    pub default_digest: Option<u64>,
    /// The shape of its value.
    pub of: Type,
}

/// The players who see a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// Every player.
    #[default]
    Everyone,
    /// The player it belongs to.
    Owner,
    /// The players for whom a function returns true. For a map, it decides for each entry.
    View,
    /// No player: it never leaves the server.
    Hidden,
}

/// Everything that a room type and its clients exchange.
#[derive(Clone, Debug, PartialEq)]
pub struct RoomSchema {
    /// The room's state.
    pub state: Type,
    /// The options for creating a room.
    pub options: Type,
    /// The messages that clients may send, in the declared order.
    pub messages: Vec<MessageSchema>,
    /// The events that the room may raise, in the declared order.
    pub events: Vec<EventSchema>,
}

/// A message that clients send.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageSchema {
    /// Its name in `json`.
    pub name: Cow<'static, str>,
    /// The message.
    pub of: Type,
    /// Its reply.
    pub reply: Type,
}

/// An event that a room raises.
#[derive(Clone, Debug, PartialEq)]
pub struct EventSchema {
    /// Its name in `json`.
    pub name: Cow<'static, str>,
    /// The event.
    pub of: Type,
}

/// The fingerprint of a schema: FNV-1a with 64 bits over its [canonical
/// text](RoomSchema::canonical_text).
#[must_use]
pub fn fingerprint(schema: &RoomSchema) -> u64 {
    fnv1a_64(schema.canonical_text().as_bytes())
}

/// FNV-1a with 64 bits, as its authors publish it (offset basis 14695981039346656037, prime
/// 1099511628211).
fn fnv1a_64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

impl RoomSchema {
    /// The text that the fingerprint is computed over, with one line for each field so that two
    /// texts can be compared.
    #[must_use]
    pub fn canonical_text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("writing to a String can't fail");
        text
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        out.write_str("state ")?;
        write_type(out, &self.state, 0)?;
        out.write_str("\noptions ")?;
        write_type(out, &self.options, 0)?;
        for message in &self.messages {
            write!(out, "\nmessage {} ", Name(&message.name))?;
            write_type(out, &message.of, 0)?;
            out.write_str(" -> ")?;
            write_type(out, &message.reply, 0)?;
        }
        for event in &self.events {
            write!(out, "\nevent {} ", Name(&event.name))?;
            write_type(out, &event.of, 0)?;
        }
        out.write_char('\n')
    }
}

fn write_type(out: &mut String, of: &Type, depth: usize) -> fmt::Result {
    match of {
        Type::Option(inner) => write_generic(out, "option", &[inner], depth),
        Type::List(inner) => write_generic(out, "list", &[inner], depth),
        Type::Array(inner, length) => {
            out.write_str("array<")?;
            write_type(out, inner, depth)?;
            write!(out, ", {length}>")
        }
        Type::Set(key) => write_generic(out, "set", &[key], depth),
        Type::Quantized(inner) => write_quantized(out, inner),
        Type::Map(key, value) => write_generic(out, "map", &[key, value], depth),
        Type::Struct(inner) => write_fields(out, inner, depth),
        Type::Enum(inner) => write_variants(out, inner, depth),
        plain => out.write_str(plain.word().unwrap_or_default()),
    }
}

fn write_generic(out: &mut String, word: &str, of: &[&Type], depth: usize) -> fmt::Result {
    write!(out, "{word}<")?;
    for (index, inner) in of.iter().enumerate() {
        if index > 0 {
            out.write_str(", ")?;
        }
        write_type(out, inner, depth)?;
    }
    out.write_char('>')
}

fn write_quantized(out: &mut String, of: &Quantized) -> fmt::Result {
    write_type(out, &of.of, 0)?;
    match of.range {
        _ if of.angle => write!(out, " angle by {:?}", of.step),
        Some((least, most)) => write!(out, " from {least:?} to {most:?} by {:?}", of.step),
        None => write!(out, " by {:?}", of.step),
    }
}

fn write_fields(out: &mut String, of: &Struct, depth: usize) -> fmt::Result {
    out.write_str("{\n")?;
    for field in &of.fields {
        let policy = match field.policy {
            Policy::Everyone => "",
            Policy::Owner => "owner ",
            Policy::View => "view ",
            Policy::Hidden => continue,
        };
        indent(out, depth + 1)?;
        write!(out, "{policy}{} ", Name(&field.name))?;
        write_type(out, &field.of, depth + 1)?;
        if let Some(default_digest) = field.default_digest {
            write!(out, " default_digest {default_digest:016x}")?;
        }
        out.write_char('\n')?;
    }
    indent(out, depth)?;
    out.write_char('}')
}

fn write_variants(out: &mut String, of: &Enum, depth: usize) -> fmt::Result {
    out.write_str("one of {\n")?;
    for variant in &of.variants {
        indent(out, depth + 1)?;
        write!(out, "{} ", Name(&variant.name))?;
        write_fields(out, variant, depth + 1)?;
        out.write_char('\n')?;
    }
    indent(out, depth)?;
    out.write_char('}')
}

fn indent(out: &mut String, depth: usize) -> fmt::Result {
    (0..depth).try_for_each(|_| out.write_str("  "))
}

/// A name: bare if it is a plain word, otherwise quoted, so that a name can't be mistaken for
/// structure.
struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if !self.0.is_empty() && self.0.bytes().all(plain) {
            f.write_str(self.0)
        } else {
            write!(f, "{:?}", self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &'static str, policy: Policy, of: Type) -> Field {
        Field { name: name.into(), policy, default_digest: None, of }
    }

    fn structure(name: &'static str, fields: Vec<Field>) -> Struct {
        Struct { name: name.into(), fields }
    }

    fn table() -> RoomSchema {
        let card = Type::Struct(structure("Card", vec![field("rank", Policy::Everyone, Type::U8)]));
        let phase = Enum {
            name: "Phase".into(),
            variants: vec![
                structure("waiting", vec![]),
                structure("playing", vec![field("turn", Policy::Everyone, Type::Player)]),
            ],
        };
        let hands = Type::Map(Box::new(Type::Player), Box::new(Type::List(Box::new(card.clone()))));
        let state = vec![
            field("phase", Policy::Everyone, Type::Enum(phase)),
            field("hands", Policy::Owner, hands),
            field("deck", Policy::Hidden, Type::List(Box::new(card.clone()))),
        ];
        RoomSchema {
            state: Type::Struct(structure("Table", state)),
            options: Type::Unit,
            messages: vec![MessageSchema {
                name: "draw".into(),
                of: Type::Unit,
                reply: Type::Option(Box::new(card)),
            }],
            events: vec![EventSchema { name: "all done".into(), of: Type::Text }],
        }
    }

    const TABLE: &str = r#"state {
  phase one of {
    waiting {
    }
    playing {
      turn player
    }
  }
  owner hands map<player, list<{
    rank u8
  }>>
}
options unit
message draw unit -> option<{
  rank u8
}>
event "all done" text
"#;

    #[test]
    fn the_canonical_text_shows_what_is_on_the_wire() {
        assert_eq!(table().canonical_text(), TABLE);
    }

    #[test]
    fn the_fingerprint_is_fnv_1a_of_the_text() {
        // Test vectors of the function's authors.
        assert_eq!(fnv1a_64(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a_64(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a_64(b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(fingerprint(&table()), fnv1a_64(TABLE.as_bytes()));
    }

    /// Two builds with different defaults have copies with different digests, so neither mistakes
    /// the other's schema for its own.
    #[test]
    fn a_default_digest_follows_the_type_and_counts() {
        let mut schema = table();
        let Type::Struct(state) = &mut schema.state else { unreachable!("the state is a struct") };
        state.fields[1].default_digest = Some(0xab);
        let text = TABLE.replacen("  }>>\n}", "  }>> default_digest 00000000000000ab\n}", 1);
        assert_eq!(schema.canonical_text(), text);
        assert_ne!(fingerprint(&schema), fingerprint(&table()));
    }

    #[test]
    fn hidden_fields_and_type_names_do_not_count_and_all_else_does() {
        let print = fingerprint(&table());
        let changed = |change: fn(&mut Struct)| {
            let mut schema = table();
            let Type::Struct(state) = &mut schema.state else {
                unreachable!("the state is a struct")
            };
            change(state);
            fingerprint(&schema)
        };
        assert_eq!(changed(|state| state.name = "Board".into()), print);
        assert_eq!(changed(|state| drop(state.fields.pop())), print);
        assert_ne!(changed(|state| state.fields[1].policy = Policy::Everyone), print);
        assert_ne!(changed(|state| state.fields[1].name = "cards".into()), print);
        assert_ne!(changed(|state| state.fields[1].of = Type::Unit), print);
        assert_ne!(changed(|state| state.fields.swap(0, 1)), print);
    }
}
