//! A save as JSON, for people and their tools.

use std::sync::Arc;

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;
use playfield_wire::schema::{Field, Form, Type};
use serde_json::{Map, Value};

use super::header::Header;
use super::kept::{Column, step_to};
use super::{Kept, LoadError, Node, layout, skim};
use crate::walk::{KeyShape, Plain};

/// Returns the content of a save as JSON, whatever type was saved: the save describes its types
/// itself. Values look as in a copy in [`json`](crate::JsonMirror); a struct without fields is
/// `null`. A field `name` that the build which saved it lacked, and [kept](crate::Kept), is
/// `name (unknown)`; what has no names of fields is then the member `known` beside it.
///
/// ```
/// use playfield_state::{State, save, saved_as_json};
/// use serde_json::json;
///
/// #[derive(State, Default)]
/// struct Table {
///     round: u32,
///     #[sync(hidden)]
///     deck: playfield_state::List<u8>,
/// }
///
/// let table = Table { round: 2, deck: [7, 9].into_iter().collect() };
/// assert_eq!(saved_as_json(&save(&table))?, json!({ "round": 2, "deck": [7, 9] }));
/// # Ok::<_, playfield_state::LoadError>(())
/// ```
///
/// # Errors
/// If the bytes are not a whole, undamaged save.
pub fn saved_as_json(bytes: &[u8]) -> Result<Value, LoadError> {
    let header = Header::read(bytes)?;
    let stored = layout::read(bytes, header.schema()).map_err(LoadError::of)?;
    let body = header.body();
    let mut reader = Reader::new(&bytes[..body.end]);
    reader.take(body.start).map_err(LoadError::of)?;
    let (columns, root) = Kept::of_save(bytes, &header)?.into_parts();
    let beside = Beside { bytes, columns: &columns, node: &root };
    let whole = shown(&stored.of, &mut reader, beside).and_then(|value| {
        reader.finish()?;
        Ok(value)
    });
    whole.map_err(|error| {
        let place = skim::place(&stored.of, bytes, body, error.offset());
        LoadError::Invalid { place, error }
    })
}

type Shown = Result<Value, DecodeError>;

/// Fields kept beside a value, and inside it.
#[derive(Clone, Copy)]
struct Beside<'a> {
    /// The bytes of the value's reader.
    bytes: &'a [u8],
    columns: &'a [Arc<Column>],
    node: &'a Node,
}

impl Beside<'_> {
    fn at(self, step: &[u8]) -> Self {
        Self { node: self.node.at(step), ..self }
    }
}

/// Reads one value. The depth of types in a save is limited, so this may recurse.
fn shown(of: &Type, reader: &mut Reader<'_>, kept: Beside<'_>) -> Shown {
    Ok(match of {
        Type::Option(of) => match reader.bool()? {
            true => shown(of, reader, kept)?,
            false => Value::Null,
        },
        Type::List(of) => {
            let count = reader.count()?;
            items(of, count, reader, kept)?
        }
        Type::Array(of, length) => items(of, *length, reader, kept)?,
        Type::Map(key, of) => {
            let count = reader.count()?;
            let key = KeyShape::of(key).ok_or_else(|| no_key(reader))?;
            let mut entries = Map::new();
            for _ in 0..count {
                let start = reader.offset();
                let name = key.read(reader)?.name;
                let step = &kept.bytes[start..reader.offset()];
                entries.insert(name, shown(of, reader, kept.at(step))?);
            }
            Value::Object(entries)
        }
        Type::Set(key) => {
            let count = reader.count()?;
            let key = KeyShape::of(key).ok_or_else(|| no_key(reader))?;
            let names = (0..count).map(|_| Ok((key.read(reader)?.name, Value::Bool(true))));
            Value::Object(names.collect::<Result<_, DecodeError>>()?)
        }
        Type::Struct(of) if of.fields.is_empty() => {
            let value = plain(&Type::Unit, reader)?;
            with_kept(value, kept)?
        }
        Type::Struct(of) => fields(&of.fields, reader, kept)?,
        Type::Enum(of) => {
            let at = reader.offset();
            let number = reader.varint()?;
            let variant = usize::try_from(number).ok().and_then(|place| of.variants.get(place));
            let Some(variant) = variant else {
                let text = format!("{number} is not a variant of {}", of.name);
                return Err(DecodeError::new(at, text));
            };
            let name = variant.name.to_string();
            let kept = kept.at(name.as_bytes());
            match &*variant.fields {
                [] if kept.node.is_empty() => Value::String(name),
                of => Value::Object(Map::from_iter([(name, fields(of, reader, kept)?)])),
            }
        }
        of => plain(of, reader)?,
    })
}

fn items(of: &Type, count: usize, reader: &mut Reader<'_>, kept: Beside<'_>) -> Shown {
    let item = |index| shown(of, reader, kept.at(&step_to(index)));
    (0..count).map(item).collect::<Result<_, _>>().map(Value::Array)
}

fn fields(of: &[Field], reader: &mut Reader<'_>, kept: Beside<'_>) -> Shown {
    let mut values = Vec::with_capacity(of.len());
    for field in of {
        values.push(shown(&field.of, reader, kept.at(field.name.as_bytes()))?);
    }
    let value = match Form::of(of) {
        Form::Nothing => Value::Null,
        Form::One => values.pop().unwrap_or_default(),
        Form::Tuple => Value::Array(values),
        Form::Named => {
            let names = of.iter().map(|field| field.name.to_string());
            Value::Object(names.zip(values).collect())
        }
    };
    with_kept(value, kept)
}

/// Adds what is kept beside a struct.
fn with_kept(value: Value, kept: Beside<'_>) -> Shown {
    let mut members = Map::new();
    for (column, bytes) in kept.node.fields() {
        let Column { name, of, .. } = &*kept.columns[column];
        let inside = Beside { bytes, ..kept.at(name.as_bytes()) };
        let mut reader = Reader::new(bytes);
        // Where it is wrong is not a byte of the save.
        let value = shown(of, &mut reader, inside).and_then(|value| {
            reader.finish()?;
            Ok(value)
        });
        members.insert(format!("{name} (unknown)"), value.map_err(DecodeError::without_offset)?);
    }
    Ok(match value {
        value if members.is_empty() => value,
        Value::Object(mut known) => {
            known.extend(members);
            Value::Object(known)
        }
        value => {
            members.insert("known".into(), value);
            Value::Object(members)
        }
    })
}

fn plain(of: &Type, reader: &mut Reader<'_>) -> Shown {
    let at = reader.offset();
    let plain =
        Plain::of(of).ok_or_else(|| DecodeError::new(at, "a value without parts was expected"))?;
    Ok(plain.read(reader)?.0)
}

fn no_key(reader: &Reader<'_>) -> DecodeError {
    DecodeError::new(reader.offset(), "a map has keys of a type that no key has")
}
