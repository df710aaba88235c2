//! Whole values, encoded and decoded in each format.

use std::collections::BTreeMap;

use playfield_wire::excerpt;
use playfield_wire::reader::Reader;
use playfield_wire::schema::Type;
use playfield_wire::tree::{TreeWriter, read_value};
use playfield_wire::{DecodeError, Format, json, writer};
use serde_json::{Map, Value};

use crate::{Key, PlayerId, digest};

/// An atomic value, which is sent whole: a message, a reply, options, a leaf of a state. Derive it:
/// `#[derive(Data)]`.
///
/// ```
/// use playfield_state::{Data, Format};
///
/// #[derive(Data, PartialEq, Debug)]
/// enum Move {
///     Pass,
///     Play { card: u8, onto: Option<u16> },
/// }
///
/// let play = Move::Play { card: 7, onto: None };
/// let mut body = Vec::new();
/// play.write(Format::Json, &mut body);
/// assert_eq!(body, br#"{"Play":{"card":7,"onto":null}}"#);
/// assert_eq!(Move::read(Format::Json, &body), Ok(play));
/// ```
///
/// It is the same for everyone who gets it, so its fields have no policy:
///
/// ```compile_fail
/// #[derive(playfield_state::State, playfield_state::Data, Default)]
/// struct Card {
///     #[sync(owner)]
///     face: u8,
/// }
/// ```
///
/// In `packed` every value takes at least one byte (a struct without fields is one zero byte). So a
/// count of elements can be checked against the bytes left before anything is allocated.
#[diagnostic::on_unimplemented(
    message = "`{Self}` can't be sent as a value",
    note = "derive it: `#[derive(Data)]` (or `#[derive(Message)]` for a message of its own)"
)]
pub trait Data: Sized {
    /// Its shape.
    fn schema() -> Type;

    /// Appends it in `packed`.
    fn encode(&self, out: &mut Vec<u8>);

    /// Reads what [`encode`](Self::encode) wrote.
    ///
    /// # Errors
    /// Anything that doesn't match the schema.
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError>;

    /// Writes it as a tree, in JSON or MessagePack.
    fn to_tree(&self, out: TreeWriter<'_>);

    /// Reads it from a tree, given as a JSON value (see
    /// [`msgpack::read_value`](playfield_wire::msgpack::read_value) for MessagePack).
    ///
    /// # Errors
    /// Anything that doesn't match the schema.
    fn from_json(value: &Value) -> Result<Self, DecodeError>;

    /// Returns whether both are sent as the same bytes. This is not `==`: a NaN is the same as itself, and
    /// `-0.0` differs from `0.0`.
    fn same(&self, other: &Self) -> bool {
        let (mut one, mut two) = (Vec::new(), Vec::new());
        self.encode(&mut one);
        other.encode(&mut two);
        one == two
    }

    /// Its digest: equal for values that are sent as the same bytes.
    fn digest(&self) -> u64 {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        digest::of_bytes(&bytes)
    }

    /// Appends it in the given format.
    fn write(&self, format: Format, out: &mut Vec<u8>) {
        match format.tree() {
            None => self.encode(out),
            Some(format) => self.to_tree(TreeWriter::new(format, out)),
        }
    }

    /// Reads a whole payload; no byte may be left over. In formats of trees an empty payload reads
    /// as `null`.
    ///
    /// # Errors
    /// Anything that doesn't match the schema.
    fn read(format: Format, payload: &[u8]) -> Result<Self, DecodeError> {
        match format.tree() {
            None => {
                let mut reader = Reader::new(payload);
                let value = Self::decode(&mut reader)?;
                reader.finish()?;
                Ok(value)
            }
            Some(format) => Self::from_json(&read_value(format, payload)?),
        }
    }
}

/// The error for a value that doesn't match the schema.
pub(crate) fn unexpected(wanted: &'static str, got: &Value) -> DecodeError {
    let mut shown = got.to_string();
    if shown.len() > 40 {
        shown.truncate(excerpt(&shown, 40).len());
        shown.push('…');
    }
    DecodeError::other(format!("expected {wanted}, found {shown}"))
}

/// The name and the value of an object's only member. For generated code.
pub fn only_member(value: &Value) -> Option<(&str, &Value)> {
    let members = value.as_object().filter(|members| members.len() == 1)?;
    members.iter().next().map(|(name, value)| (name.as_str(), value))
}

/// The members of an object; `None` for `null`, in which all fields are absent: the client was
/// built when there were none. For generated code, as are the functions below.
///
/// # Errors
/// If it is anything else.
pub fn members(value: &Value) -> Result<Option<&Map<String, Value>>, DecodeError> {
    match value {
        Value::Object(members) => Ok(Some(members)),
        Value::Null => Ok(None),
        other => Err(unexpected("an object", other)),
    }
}

/// A member. An absent one reads as `null`, which an option reads as `None` and a collection as
/// empty.
#[must_use]
pub fn member<'a>(members: Option<&'a Map<String, Value>>, name: &str) -> &'a Value {
    members.and_then(|members| members.get(name)).unwrap_or(&Value::Null)
}

/// The values of fields without names, of which there are `count`. There may be fewer, if the
/// client was built when there were fewer fields; anything but an array is then the only one.
///
/// # Errors
/// If there are more.
pub fn elements(value: &Value, count: usize) -> Result<&[Value], DecodeError> {
    match value {
        Value::Array(elements) if elements.len() <= count => Ok(elements),
        Value::Array(elements) => Err(DecodeError::other(format!(
            "expected an array of {count}, found one of {}",
            elements.len()
        ))),
        one => Ok(std::slice::from_ref(one)),
    }
}

/// The value of the field at `place`. An absent one reads as `null`.
#[must_use]
pub fn element(elements: &[Value], place: usize) -> &Value {
    elements.get(place).unwrap_or(&Value::Null)
}

/// The elements of a list. `null` has none.
pub(crate) fn items(value: &Value) -> Result<&[Value], DecodeError> {
    match value {
        Value::Array(items) => Ok(items),
        Value::Null => Ok(&[]),
        other => Err(unexpected("an array", other)),
    }
}

/// Returns whether both are the same bytes. Empty slices are not compared: their pointer may dangle, and a
/// vectorized `memcmp` of 0 bytes there can take 150 ns.
#[inline]
pub(crate) fn same_bytes(one: &[u8], two: &[u8]) -> bool {
    one.len() == two.len() && (one.is_empty() || one == two)
}

macro_rules! unsigned {
    ($($int:ty, $of:ident;)*) => {$(
        impl Data for $int {
            fn schema() -> Type {
                Type::$of
            }
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                writer::put_varint(out, u64::from(*self));
            }
            #[inline]
            fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                let at = reader.offset();
                let value = reader.varint()?;
                Self::try_from(value).map_err(|_| DecodeError::new(at, format!("{value} is past the range of {}", stringify!($int))))
            }
            fn to_tree(&self, out: TreeWriter<'_>) {
                out.u64(u64::from(*self));
            }
            #[inline]
            fn same(&self, other: &Self) -> bool {
                self == other
            }
            #[inline]
            fn digest(&self) -> u64 {
                digest::of_word(u64::from(*self))
            }
            fn from_json(value: &Value) -> Result<Self, DecodeError> {
                json::as_u64(value)
                    .and_then(|value| Self::try_from(value).ok())
                    .ok_or_else(|| unexpected(concat!("a whole number in the range of ", stringify!($int)), value))
            }
        }
    )*};
}

macro_rules! signed {
    ($($int:ty, $of:ident;)*) => {$(
        impl Data for $int {
            fn schema() -> Type {
                Type::$of
            }
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                writer::put_zigzag(out, i64::from(*self));
            }
            #[inline]
            fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                let at = reader.offset();
                let value = reader.zigzag()?;
                Self::try_from(value).map_err(|_| DecodeError::new(at, format!("{value} is past the range of {}", stringify!($int))))
            }
            fn to_tree(&self, out: TreeWriter<'_>) {
                out.i64(i64::from(*self));
            }
            #[inline]
            fn same(&self, other: &Self) -> bool {
                self == other
            }
            #[inline]
            fn digest(&self) -> u64 {
                digest::of_word(i64::from(*self).cast_unsigned())
            }
            fn from_json(value: &Value) -> Result<Self, DecodeError> {
                json::as_i64(value)
                    .and_then(|value| Self::try_from(value).ok())
                    .ok_or_else(|| unexpected(concat!("a whole number in the range of ", stringify!($int)), value))
            }
        }
    )*};
}

unsigned! { u16, U16; u32, U32; u64, U64; }
signed! { i16, I16; i32, I32; i64, I64; }

impl Data for u8 {
    fn schema() -> Type {
        Type::U8
    }
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }
    #[inline]
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.u8()
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        out.u64(u64::from(*self));
    }
    #[inline]
    fn same(&self, other: &Self) -> bool {
        self == other
    }
    #[inline]
    fn digest(&self) -> u64 {
        digest::of_word((*self).into())
    }
    fn from_json(value: &Value) -> Result<Self, DecodeError> {
        u16::from_json(value)
            .ok()
            .and_then(|wide| Self::try_from(wide).ok())
            .ok_or_else(|| unexpected("a whole number from 0 to 255", value))
    }
}

impl Data for i8 {
    fn schema() -> Type {
        Type::I8
    }
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.cast_unsigned());
    }
    #[inline]
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(reader.u8()?.cast_signed())
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        out.i64(i64::from(*self));
    }
    #[inline]
    fn same(&self, other: &Self) -> bool {
        self == other
    }
    #[inline]
    fn digest(&self) -> u64 {
        digest::of_word(i64::from(*self).cast_unsigned())
    }
    fn from_json(value: &Value) -> Result<Self, DecodeError> {
        i16::from_json(value)
            .ok()
            .and_then(|wide| Self::try_from(wide).ok())
            .ok_or_else(|| unexpected("a whole number from -128 to 127", value))
    }
}

macro_rules! float {
    ($($float:ident, $of:ident, $put:ident;)*) => {$(
        impl Data for $float {
            fn schema() -> Type {
                Type::$of
            }
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                writer::$put(out, *self);
            }
            #[inline]
            fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
                reader.$float()
            }
            fn to_tree(&self, out: TreeWriter<'_>) {
                out.$float(*self);
            }
            #[inline]
            fn same(&self, other: &Self) -> bool {
                self.to_bits() == other.to_bits()
            }
            #[inline]
            fn digest(&self) -> u64 {
                digest::of_word(self.to_bits().into())
            }
            fn from_json(value: &Value) -> Result<Self, DecodeError> {
                json::as_f64(value).map(|value| value as $float).ok_or_else(|| unexpected("a number", value))
            }
        }
    )*};
}

float! { f32, F32, put_f32; f64, F64, put_f64; }

impl Data for bool {
    fn schema() -> Type {
        Type::Bool
    }
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        writer::put_bool(out, *self);
    }
    #[inline]
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.bool()
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        out.bool(*self);
    }
    #[inline]
    fn same(&self, other: &Self) -> bool {
        self == other
    }
    #[inline]
    fn digest(&self) -> u64 {
        digest::of_word((*self).into())
    }
    fn from_json(value: &Value) -> Result<Self, DecodeError> {
        value.as_bool().ok_or_else(|| unexpected("true or false", value))
    }
}

impl Data for String {
    fn schema() -> Type {
        Type::Text
    }
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        writer::put_text(out, self);
    }
    #[inline]
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(reader.text()?.to_owned())
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        out.text(self);
    }
    #[inline]
    fn same(&self, other: &Self) -> bool {
        same_bytes(self.as_bytes(), other.as_bytes())
    }
    #[inline]
    fn digest(&self) -> u64 {
        digest::of_bytes(self.as_bytes())
    }
    fn from_json(value: &Value) -> Result<Self, DecodeError> {
        value.as_str().map(str::to_owned).ok_or_else(|| unexpected("a text", value))
    }
}

impl Data for PlayerId {
    fn schema() -> Type {
        Type::Player
    }
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
    #[inline]
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        u64::decode(reader).map(Self)
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        self.0.to_tree(out);
    }
    #[inline]
    fn same(&self, other: &Self) -> bool {
        self == other
    }
    #[inline]
    fn digest(&self) -> u64 {
        digest::of_word(self.0)
    }
    fn from_json(value: &Value) -> Result<Self, DecodeError> {
        u64::from_json(value).map(Self)
    }
}

impl Data for () {
    fn schema() -> Type {
        Type::Unit
    }
    #[inline]
    fn encode(&self, out: &mut Vec<u8>) {
        out.push(0);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = reader.offset();
        match reader.u8()? {
            0 => Ok(()),
            other => Err(DecodeError::new(
                at,
                format!("a value without content is the byte 0, not {other}"),
            )),
        }
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        out.null();
    }
    #[inline]
    fn same(&self, other: &Self) -> bool {
        self == other
    }
    fn from_json(value: &Value) -> Result<Self, DecodeError> {
        match value {
            Value::Null => Ok(()),
            Value::Object(members) if members.is_empty() => Ok(()),
            other => Err(unexpected("null", other)),
        }
    }
}

/// In JSON, `null` or the value. So `Some(None)` reads back as `None`.
impl<T: Data> Data for Option<T> {
    fn schema() -> Type {
        Type::Option(Box::new(T::schema()))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        writer::put_bool(out, self.is_some());
        if let Some(value) = self {
            value.encode(out);
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.bool()?.then(|| T::decode(reader)).transpose()
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        match self {
            Some(value) => value.to_tree(out),
            None => out.null(),
        }
    }
    fn same(&self, other: &Self) -> bool {
        match (self, other) {
            (Some(one), Some(two)) => one.same(two),
            (None, None) => true,
            _ => false,
        }
    }
    fn from_json(value: &Value) -> Result<Self, DecodeError> {
        if value.is_null() { Ok(None) } else { T::from_json(value).map(Some) }
    }
}

/// Writes an array of these elements.
pub(crate) fn write_array<T>(
    out: TreeWriter<'_>,
    items: impl ExactSizeIterator<Item = T>,
    mut write: impl FnMut(T, TreeWriter<'_>),
) {
    let mut array = out.array(items.len());
    items.for_each(|item| write(item, array.element()));
    array.end();
}

impl<T: Data> Data for Vec<T> {
    fn schema() -> Type {
        Type::List(Box::new(T::schema()))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        writer::put_varint(out, self.len() as u64);
        for item in self {
            item.encode(out);
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        // Nothing is reserved: the count is at most the bytes left, but an element may be far
        // larger than one byte.
        let count = reader.count()?;
        (0..count).map(|_| T::decode(reader)).collect()
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        write_array(out, self.iter(), T::to_tree);
    }
    fn same(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().zip(other).all(|(one, two)| one.same(two))
    }
    fn from_json(value: &Value) -> Result<Self, DecodeError> {
        items(value)?.iter().map(T::from_json).collect()
    }
}

impl<K: Key, V: Data> Data for BTreeMap<K, V> {
    fn schema() -> Type {
        Type::Map(Box::new(K::schema()), Box::new(V::schema()))
    }
    fn encode(&self, out: &mut Vec<u8>) {
        writer::put_varint(out, self.len() as u64);
        for (key, value) in self {
            key.encode(out);
            value.encode(out);
        }
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = reader.count()?;
        let mut map = Self::new();
        for _ in 0..count {
            let at = reader.offset();
            let key = K::decode(reader)?;
            if map.insert(key, V::decode(reader)?).is_some() {
                return Err(DecodeError::new(at, "a key occurs twice in one map"));
            }
        }
        Ok(map)
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        let mut object = out.object(self.len());
        for (key, value) in self {
            value.to_tree(object.member(&key.name()));
        }
        object.end();
    }
    fn same(&self, other: &Self) -> bool {
        self.len() == other.len()
            && self
                .iter()
                .zip(other)
                .all(|((key, one), (other, two))| key == other && one.same(two))
    }
    fn from_json(value: &Value) -> Result<Self, DecodeError> {
        let members = members(value)?.into_iter().flatten();
        members.map(|(name, value)| Ok((K::parse(name)?, V::from_json(value)?))).collect()
    }
}
