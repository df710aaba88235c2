//! Atomic values as JSON: messages, replies, events, options, and what enums hold.

use playfield_wire::reader::Reader;
use playfield_wire::{DecodeError, writer};
use serde_json::{Map, Value};

use crate::Data;
use crate::data::unexpected;
use crate::quantized::Scale;
use crate::walk::{Done, EnumShape, Form, KeyShape, Plain, Shape, Sink, StructShape, Walk, float};

/// Makes values in JSON.
pub(super) struct Json;

impl Sink for Json {
    type Made = Value;
    type Key = String;
    type Entries = Map<String, Value>;
    type Fields = Vec<Value>;

    #[inline]
    fn plain(&mut self, reader: &mut Reader<'_>, of: Plain) -> Result<Value, DecodeError> {
        Ok(of.read(reader)?.0)
    }

    fn steps(&mut self, scale: Scale, is_short: bool, steps: i64) -> Value {
        float(scale.value(steps), is_short)
    }

    fn present(&mut self) -> Value {
        Value::Bool(true)
    }

    fn option(&mut self, inner: Option<Value>) -> Value {
        inner.unwrap_or_default()
    }

    fn items(&mut self, items: Vec<Value>) -> Value {
        Value::Array(items)
    }

    fn key(&mut self, reader: &mut Reader<'_>, of: KeyShape) -> Result<String, DecodeError> {
        Ok(of.read(reader)?.name)
    }

    fn entries(&mut self) -> Map<String, Value> {
        Map::new()
    }

    fn put_entry(
        &mut self,
        entries: &mut Map<String, Value>,
        _: Option<u32>,
        key: String,
        made: Value,
    ) -> bool {
        entries.insert(key, made).is_none()
    }

    fn map(&mut self, entries: Map<String, Value>) -> Value {
        Value::Object(entries)
    }

    fn fields(&mut self, of: &StructShape) -> Vec<Value> {
        Vec::with_capacity(of.fields.len())
    }

    fn put_field(&mut self, fields: &mut Vec<Value>, _: &StructShape, _: usize, made: Value) {
        fields.push(made);
    }

    fn structure(
        &mut self,
        of: &StructShape,
        mut fields: Vec<Value>,
        _: usize,
    ) -> Result<Value, DecodeError> {
        Ok(match of.form {
            Form::Nothing => Value::Null,
            Form::One => fields.pop().unwrap_or_default(),
            Form::Tuple => Value::Array(fields),
            Form::Named => {
                let names = of.fields.iter().map(|field| field.name.clone());
                Value::Object(names.zip(fields).collect())
            }
        })
    }

    fn private(_: &mut Walk<'_, Self>, _: &StructShape, _: &mut Value) -> Done {
        Ok(())
    }

    fn enumeration(walk: &mut Walk<'_, Self>, of: &EnumShape) -> Result<Value, DecodeError> {
        let (place, fields) = walk.variant(of)?;
        let variant = &of.variants[place];
        Ok(match variant.form {
            Form::Nothing => Value::String(variant.name.clone()),
            _ => Value::Object(Map::from_iter([(variant.name.clone(), fields)])),
        })
    }
}

impl Shape {
    /// Appends an atomic value that is given as JSON.
    pub(super) fn write(&self, value: &Value, out: &mut Vec<u8>) -> Done {
        match self {
            Self::Plain(plain) => plain.write(value, out),
            Self::Option(inner) => {
                writer::put_bool(out, !value.is_null());
                if value.is_null() { Ok(()) } else { inner.write(value, out) }
            }
            Self::List(inner) => {
                let elements = value.as_array().ok_or_else(|| unexpected("an array", value))?;
                writer::put_varint(out, elements.len() as u64);
                elements.iter().try_for_each(|element| inner.write(element, out))
            }
            Self::Array(inner, length) => {
                let elements = value.as_array().filter(|elements| elements.len() == *length);
                let elements = elements
                    .ok_or_else(|| unexpected("an array of the length of its type", value))?;
                elements.iter().try_for_each(|element| inner.write(element, out))
            }
            Self::Map(map) => {
                let members = value.as_object().ok_or_else(|| unexpected("an object", value))?;
                let mut entries = Vec::with_capacity(members.len());
                for (name, value) in members {
                    let mut bytes = Vec::new();
                    entries.push((map.key.write(name, &mut bytes)?, bytes, value));
                }
                entries.sort_by(|(one, ..), (two, ..)| one.cmp(two));
                entries.dedup_by(|(one, ..), (two, ..)| one == two);
                writer::put_varint(out, entries.len() as u64);
                entries.iter().try_for_each(|(_, key, value)| {
                    out.extend_from_slice(key);
                    map.value.write(value, out)
                })
            }
            Self::Struct(of) if of.form == Form::Nothing => {
                <()>::from_json(value)?.encode(out);
                Ok(())
            }
            Self::Struct(of) => of.write(value, out),
            Self::Enum(of) => {
                let refused = || unexpected("a variant of an enum", value);
                let (name, value) = match value {
                    Value::String(name) => (name, None),
                    Value::Object(members) if members.len() == 1 => {
                        let (name, value) = members.iter().next().ok_or_else(refused)?;
                        (name, Some(value))
                    }
                    _ => return Err(refused()),
                };
                let place = of.variants.iter().position(|variant| {
                    variant.name == *name && (variant.form == Form::Nothing) == value.is_none()
                });
                let place = place.ok_or_else(|| {
                    DecodeError::other(format!("{name:?} is no variant of {}", of.name))
                })?;
                writer::put_varint(out, place as u64);
                value.map_or(Ok(()), |value| of.variants[place].write(value, out))
            }
            Self::Present | Self::Steps(..) => unreachable!("only patched values have these"),
        }
    }
}

impl StructShape {
    fn write(&self, value: &Value, out: &mut Vec<u8>) -> Done {
        let mut fields = self.fields.iter();
        match self.form {
            Form::Nothing => Ok(()),
            Form::One => self.fields[0].of.write(value, out),
            Form::Tuple => {
                let elements =
                    value.as_array().filter(|elements| elements.len() == self.fields.len());
                let elements = elements
                    .ok_or_else(|| unexpected("an array with one element for each field", value))?;
                fields.zip(elements).try_for_each(|(field, element)| field.of.write(element, out))
            }
            Form::Named => {
                let members = value.as_object().ok_or_else(|| unexpected("an object", value))?;
                fields.try_for_each(|field| {
                    // An absent member reads as null, which an option takes for nothing.
                    let value = members.get(&field.name).unwrap_or(&Value::Null);
                    field.of.write(value, out).map_err(|error| {
                        DecodeError::other(format!("member {:?}: {error}", field.name))
                    })
                })
            }
        }
    }
}
