//! Writing atomic values from JSON.

use playfield_wire::schema::Form;
use playfield_wire::{DecodeError, writer};
use serde_json::Value;

use super::{Done, Shape, StructShape};
use crate::Data;
use crate::data::{element, elements, items, member, members, unexpected};

impl Shape {
    /// Appends an atomic value that is given as JSON.
    pub(crate) fn write(&self, value: &Value, out: &mut Vec<u8>) -> Done {
        match self {
            Self::Plain(plain) => plain.write(value, out),
            Self::Option(inner) => {
                writer::put_bool(out, !value.is_null());
                if value.is_null() { Ok(()) } else { inner.write(value, out) }
            }
            Self::List(inner) => {
                let elements = items(value)?;
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
                let entries = match members(value)? {
                    Some(members) => map.key.in_order(members)?,
                    None => Vec::new(),
                };
                writer::put_varint(out, entries.len() as u64);
                entries.iter().try_for_each(|(key, value)| {
                    out.extend_from_slice(key);
                    map.value.write(value, out)
                })
            }
            Self::Struct(of) if of.form == Some(Form::Nothing) => {
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
                    // A client writes the name alone where a variant had no fields in its build.
                    variant.name == *name
                        && (variant.form != Some(Form::Nothing) || value.is_none())
                });
                let place = place.ok_or_else(|| {
                    DecodeError::other(format!("{name:?} is not a variant of {}", of.name))
                })?;
                writer::put_varint(out, place as u64);
                of.variants[place].write(value.unwrap_or(&Value::Null), out)
            }
            Self::Present | Self::Steps(..) => unreachable!("only patched values have these"),
        }
    }
}

impl StructShape {
    fn write(&self, value: &Value, out: &mut Vec<u8>) -> Done {
        let mut fields = self.fields.iter();
        match self.form.unwrap_or(Form::Named) {
            Form::Nothing => Ok(()),
            Form::One => self.fields[0].of.write(value, out),
            Form::Tuple => {
                let given = elements(value, self.fields.len())?;
                fields.enumerate().try_for_each(|(place, field)| {
                    field
                        .of
                        .write(element(given, place), out)
                        .map_err(|error| error.in_member(&field.name))
                })
            }
            Form::Named => {
                let given = members(value)?;
                fields.try_for_each(|field| {
                    let value = member(given, &field.name);
                    field.of.write(value, out).map_err(|error| error.in_member(&field.name))
                })
            }
        }
    }
}
