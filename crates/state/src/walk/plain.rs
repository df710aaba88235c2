//! Numbers, texts and byte strings, whose type is known only at run time.

use playfield_wire::DecodeError;
use playfield_wire::json;
use playfield_wire::reader::Reader;
use playfield_wire::schema::Type;
use serde_json::{Map, Value};

use crate::{Bytes, Data, Key, PlayerId, column};
use playfield_wire::TreeFormat;
use playfield_wire::tree::read_value;

/// A type that contains no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plain {
    Bool,
    U8,
    U16,
    U32,
    U64,
    I8,
    I16,
    I32,
    I64,
    F32,
    F64,
    Text,
    Bytes,
    Player,
    Unit,
}

/// The type of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyShape(Plain);

/// A key as it was read.
pub(crate) struct ReadKey {
    pub(crate) name: String,
    pub(crate) digest: u64,
    pub(crate) player: Option<PlayerId>,
}

/// Evaluates an expression with the type in Rust.
macro_rules! with_type {
    ($plain:expr, $of:ident => $then:expr) => {
        match $plain {
            Plain::Bool => with_type!(@ $of, bool, $then),
            Plain::U8 => with_type!(@ $of, u8, $then),
            Plain::U16 => with_type!(@ $of, u16, $then),
            Plain::U32 => with_type!(@ $of, u32, $then),
            Plain::U64 => with_type!(@ $of, u64, $then),
            Plain::I8 => with_type!(@ $of, i8, $then),
            Plain::I16 => with_type!(@ $of, i16, $then),
            Plain::I32 => with_type!(@ $of, i32, $then),
            Plain::I64 => with_type!(@ $of, i64, $then),
            Plain::F32 => with_type!(@ $of, f32, $then),
            Plain::F64 => with_type!(@ $of, f64, $then),
            Plain::Text => with_type!(@ $of, String, $then),
            Plain::Bytes => with_type!(@ $of, Bytes, $then),
            Plain::Player => with_type!(@ $of, PlayerId, $then),
            Plain::Unit => with_type!(@ $of, (), $then),
        }
    };
    (@ $of:ident, $type:ty, $then:expr) => {{
        type $of = $type;
        $then
    }};
}

/// The same for a key. Any other key is a text.
macro_rules! with_key {
    ($plain:expr, $of:ident => $then:expr) => {
        match $plain {
            Plain::U8 => with_type!(@ $of, u8, $then),
            Plain::U16 => with_type!(@ $of, u16, $then),
            Plain::U32 => with_type!(@ $of, u32, $then),
            Plain::U64 => with_type!(@ $of, u64, $then),
            Plain::I8 => with_type!(@ $of, i8, $then),
            Plain::I16 => with_type!(@ $of, i16, $then),
            Plain::I32 => with_type!(@ $of, i32, $then),
            Plain::I64 => with_type!(@ $of, i64, $then),
            Plain::Player => with_type!(@ $of, PlayerId, $then),
            _ => with_type!(@ $of, String, $then),
        }
    };
}

impl Plain {
    /// The plain type for a schema's type, if it is one.
    pub(crate) fn of(of: &Type) -> Option<Self> {
        Some(match of {
            Type::Bool => Self::Bool,
            Type::U8 => Self::U8,
            Type::U16 => Self::U16,
            Type::U32 => Self::U32,
            Type::U64 => Self::U64,
            Type::I8 => Self::I8,
            Type::I16 => Self::I16,
            Type::I32 => Self::I32,
            Type::I64 => Self::I64,
            Type::F32 => Self::F32,
            Type::F64 => Self::F64,
            Type::Text => Self::Text,
            Type::Bytes => Self::Bytes,
            Type::Player => Self::Player,
            Type::Unit => Self::Unit,
            _ => return None,
        })
    }

    /// Its name in Rust, or that of the like in a schema.
    pub(crate) fn name(self) -> &'static str {
        match self {
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
        }
    }

    /// Reads a value, as JSON, and its digest.
    #[inline]
    #[expect(
        clippy::let_unit_value,
        reason = "the unit type is read and written as the others are"
    )]
    pub(crate) fn read(self, reader: &mut Reader<'_>) -> Result<(Value, u64), DecodeError> {
        with_type!(self, T => {
            let value = T::decode(reader)?;
            let digest = Data::digest(&value);
            Ok((value.into_json(), digest))
        })
    }

    /// Skips a value.
    #[inline]
    pub(crate) fn skip(self, reader: &mut Reader<'_>) -> Result<(), DecodeError> {
        match self {
            Self::Text => reader.text().map(drop),
            Self::Bytes => reader.bytes().map(drop),
            plain => with_type!(plain, T => T::decode(reader).map(drop)),
        }
    }

    /// Reads a column of values.
    pub(crate) fn read_column(
        self,
        reader: &mut Reader<'_>,
        count: usize,
        mut set: impl FnMut(usize, Value, u64),
    ) -> Result<(), DecodeError> {
        with_type!(self, T => T::column(reader, count, |place, value: T| {
            let digest = Data::digest(&value);
            set(place, value.into_json(), digest);
        }))
    }

    /// Appends a value that is given as JSON.
    pub(crate) fn write(self, value: &Value, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        with_type!(self, T => T::from_json(value)?.encode(out));
        Ok(())
    }

    /// Appends the default.
    #[expect(clippy::unit_arg, reason = "the unit type is read and written as the others are")]
    pub(crate) fn write_default(self, out: &mut Vec<u8>) {
        with_type!(self, T => T::default().encode(out));
    }

    /// The digest of the default.
    pub(crate) fn default_digest(self) -> u64 {
        with_type!(self, T => Data::digest(&T::default()))
    }
}

impl KeyShape {
    /// The key for a schema's type, if it is one.
    pub(crate) fn of(of: &Type) -> Option<Self> {
        Plain::of(of).map(Self).filter(|Self(plain)| match plain {
            Plain::Bool | Plain::F32 | Plain::F64 | Plain::Bytes | Plain::Unit => false,
            Plain::U8 | Plain::U16 | Plain::U32 | Plain::U64 | Plain::Text | Plain::Player => true,
            Plain::I8 | Plain::I16 | Plain::I32 | Plain::I64 => true,
        })
    }

    pub(crate) fn is_player(self) -> bool {
        self.0 == Plain::Player
    }

    /// Reads a key.
    pub(crate) fn read(self, reader: &mut Reader<'_>) -> Result<ReadKey, DecodeError> {
        with_key!(self.0, K => {
            let key = K::decode(reader)?;
            let name = Key::name(&key).into_owned();
            Ok(ReadKey { name, digest: Data::digest(&key), player: Key::player(&key) })
        })
    }

    /// The entries of a map that is given as JSON, each with the bytes of its key, in the order of
    /// the keys. If two members have the same key, the first one counts.
    pub(crate) fn in_order(
        self,
        members: &Map<String, Value>,
    ) -> Result<Vec<(Vec<u8>, &Value)>, DecodeError> {
        with_key!(self.0, K => {
            let entries = members.iter().map(|(name, value)| Ok((K::parse(name)?, value)));
            let mut entries = entries.collect::<Result<Vec<(K, &Value)>, DecodeError>>()?;
            #[allow(clippy::unnecessary_sort_by, reason = "keys need not be `Copy`")]
            entries.sort_by(|(one, _), (two, _)| one.cmp(two));
            entries.dedup_by(|(one, _), (two, _)| one == two);
            let bytes = |(key, value): (K, _)| {
                let mut bytes = Vec::new();
                key.encode(&mut bytes);
                (bytes, value)
            };
            Ok(entries.into_iter().map(bytes).collect())
        })
    }
}

/// A float of 32 or 64 bits, as JSON.
pub(crate) fn float(value: f64, is_short: bool) -> Value {
    // JSON reads a number without a decimal point as an integer.
    if value.fract() == 0.0 && value.abs() < 1e9 && (value != 0.0 || value.is_sign_positive()) {
        return Value::from(value as i64);
    }
    if !is_short && value.is_finite() && value.fract() != 0.0 {
        return Value::from(value);
    }
    let mut text = Vec::new();
    if is_short {
        json::write_f32(&mut text, value as f32);
    } else {
        json::write_f64(&mut text, value);
    }
    read_value(TreeFormat::Json, &text).expect("a float is written as JSON")
}

/// A value's JSON, and how a column of such values is read.
pub(crate) trait Read: Data + Default {
    fn into_json(self) -> Value;

    fn column(
        reader: &mut Reader<'_>,
        count: usize,
        set: impl FnMut(usize, Self),
    ) -> Result<(), DecodeError> {
        column::get_each(reader, count, set)
    }
}

/// Integers that not every reader of JSON represents exactly become texts.
fn unsigned(value: u64) -> Value {
    if value > json::INTEGER_MAX { Value::String(value.to_string()) } else { value.into() }
}

fn signed(value: i64) -> Value {
    if value.unsigned_abs() > json::INTEGER_MAX {
        Value::String(value.to_string())
    } else {
        value.into()
    }
}

macro_rules! integers {
    ($($of:ty, $into:expr;)*) => {$(
        impl Read for $of {
            #[inline]
            fn into_json(self) -> Value {
                $into(self)
            }
            fn column(
                reader: &mut Reader<'_>,
                count: usize,
                set: impl FnMut(usize, Self),
            ) -> Result<(), DecodeError> {
                column::get(reader, count, set)
            }
        }
    )*};
}

integers! {
    bool, Value::Bool;
    u8, Value::from;
    u16, Value::from;
    u32, Value::from;
    u64, unsigned;
    i8, Value::from;
    i16, Value::from;
    i32, Value::from;
    i64, signed;
    PlayerId, |player: PlayerId| unsigned(player.0);
}

impl Read for f32 {
    fn into_json(self) -> Value {
        float(self.into(), true)
    }
}

impl Read for f64 {
    fn into_json(self) -> Value {
        float(self, false)
    }
}

impl Read for String {
    fn into_json(self) -> Value {
        Value::String(self)
    }
}

impl Read for Bytes {
    fn into_json(self) -> Value {
        Value::String(json::base64(&self))
    }
}

impl Read for () {
    fn into_json(self) -> Value {
        Value::Null
    }
}
