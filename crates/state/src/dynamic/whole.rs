//! Values that travel whole, by a schema: enums and what is in them, messages, replies, options.

use playfield_wire::DecodeError;
use playfield_wire::reader::Reader;
use playfield_wire::schema::{Field, Policy, Type};
use playfield_wire::writer;
use serde_json::{Map, Value};

use super::ShapeError;
use super::plain::{KeyShape, Plain};
use super::shape::Measure;
use crate::data::unexpected;

/// The shape of a value that travels whole.
#[derive(Clone, Debug)]
pub(crate) enum Whole {
    Plain(Plain),
    Option(Box<Whole>),
    List(Box<Whole>),
    Array(Box<Whole>, usize),
    Map(KeyShape, Box<Whole>),
    Struct(Fields),
    Enum(String, Vec<(String, Fields)>),
}

/// The fields of a struct or of a variant.
#[derive(Clone, Debug)]
pub(crate) struct Fields {
    form: Form,
    of: Vec<(String, Whole)>,
}

/// How fields stand in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// There are none: `null`.
    Nothing,
    /// One without a name: as itself.
    One,
    /// Several without names: an array.
    Tuple,
    /// An object.
    Named,
}

impl Whole {
    pub(crate) fn of(of: &Type, measure: &mut Measure) -> Result<Self, ShapeError> {
        measure.within(|measure| {
            if let Some(plain) = Plain::of(of) {
                measure.place()?;
                return Ok(Self::Plain(plain));
            }
            let boxed = |of, measure: &mut Measure| Self::of(of, measure).map(Box::new);
            Ok(match of {
                Type::Option(inner) => {
                    Self::Option(measure.apart(|measure| boxed(inner, measure))?)
                }
                Type::List(inner) => Self::List(measure.apart(|measure| boxed(inner, measure))?),
                Type::Map(key, value) => {
                    let key = KeyShape::of(key).ok_or_else(|| ShapeError::key(key))?;
                    Self::Map(key, measure.apart(|measure| boxed(value, measure))?)
                }
                Type::Array(inner, length) => {
                    Self::Array(measure.times(*length, |measure| boxed(inner, measure))?, *length)
                }
                Type::Struct(inner) => Self::Struct(Fields::of(&inner.fields, measure)?),
                Type::Enum(inner) if inner.variants.is_empty() => {
                    return Err(ShapeError::Empty { name: inner.name.clone().into_owned() });
                }
                Type::Enum(inner) => {
                    let variants = inner.variants.iter().enumerate().map(|(place, variant)| {
                        // The first is the default; the others stand in no value that nobody sent.
                        let fields = |measure: &mut Measure| Fields::of(&variant.fields, measure);
                        let fields =
                            if place == 0 { fields(measure) } else { measure.apart(fields) };
                        Ok((variant.name.clone().into_owned(), fields?))
                    });
                    let variants = variants.collect::<Result<_, ShapeError>>()?;
                    Self::Enum(inner.name.clone().into_owned(), variants)
                }
                other => return Err(ShapeError::not_whole(other)),
            })
        })
    }

    /// Reads a value, as JSON.
    pub(crate) fn read(&self, reader: &mut Reader<'_>) -> Result<Value, DecodeError> {
        Ok(match self {
            Self::Plain(plain) => plain.read(reader)?.0,
            Self::Option(inner) => match reader.bool()? {
                true => inner.read(reader)?,
                false => Value::Null,
            },
            Self::List(inner) => {
                let count = reader.count()?;
                Value::Array((0..count).map(|_| inner.read(reader)).collect::<Result<_, _>>()?)
            }
            Self::Array(inner, length) => {
                Value::Array((0..*length).map(|_| inner.read(reader)).collect::<Result<_, _>>()?)
            }
            Self::Map(key, value) => {
                let mut members = Map::new();
                for _ in 0..reader.count()? {
                    let at = reader.offset();
                    let key = key.read(reader)?;
                    if members.insert(key.name, value.read(reader)?).is_some() {
                        return Err(DecodeError::new(at, "a key came twice in one map"));
                    }
                }
                Value::Object(members)
            }
            Self::Struct(fields) => {
                if fields.form == Form::Nothing {
                    Plain::Unit.read(reader)?;
                }
                fields.read(reader)?
            }
            Self::Enum(name, variants) => {
                let at = reader.offset();
                let number = reader.varint()?;
                let variant = usize::try_from(number).ok().and_then(|number| variants.get(number));
                let (variant, fields) = variant.ok_or_else(|| {
                    DecodeError::new(at, format!("{number} is no variant of {name}"))
                })?;
                match fields.form {
                    Form::Nothing => Value::String(variant.clone()),
                    _ => Value::Object(Map::from_iter([(variant.clone(), fields.read(reader)?)])),
                }
            }
        })
    }

    /// Appends a value that is given as JSON.
    pub(crate) fn write(&self, value: &Value, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        match self {
            Self::Plain(Plain::Unit) | Self::Struct(Fields { form: Form::Nothing, .. }) => {
                Plain::Unit.write(value, out)
            }
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
            Self::Map(key, of) => {
                let members = value.as_object().ok_or_else(|| unexpected("an object", value))?;
                let mut entries = Vec::with_capacity(members.len());
                for (name, value) in members {
                    let mut bytes = Vec::new();
                    entries.push((key.write(name, &mut bytes)?, bytes, value));
                }
                entries.sort_by(|(one, ..), (two, ..)| one.cmp(two));
                entries.dedup_by(|(one, ..), (two, ..)| one == two);
                writer::put_varint(out, entries.len() as u64);
                entries.iter().try_for_each(|(_, key, value)| {
                    out.extend_from_slice(key);
                    of.write(value, out)
                })
            }
            Self::Struct(fields) => fields.write(value, out),
            Self::Enum(name, variants) => {
                let refused = || unexpected("a variant of an enum", value);
                let (variant, value) = match value {
                    Value::String(variant) => (variant, None),
                    Value::Object(members) if members.len() == 1 => {
                        let (variant, value) = members.iter().next().ok_or_else(refused)?;
                        (variant, Some(value))
                    }
                    _ => return Err(refused()),
                };
                let place = variants.iter().position(|(name, fields)| {
                    name == variant && (fields.form == Form::Nothing) == value.is_none()
                });
                let place = place.ok_or_else(|| {
                    DecodeError::other(format!("{variant:?} is no variant of {name}"))
                })?;
                writer::put_varint(out, place as u64);
                value.map_or(Ok(()), |value| variants[place].1.write(value, out))
            }
        }
    }

    /// Appends the default: of an enum, its first variant.
    pub(crate) fn write_default(&self, out: &mut Vec<u8>) {
        match self {
            Self::Plain(plain) => plain.write_default(out),
            Self::Option(_) | Self::List(_) | Self::Map(..) => out.push(0),
            Self::Array(inner, length) => (0..*length).for_each(|_| inner.write_default(out)),
            Self::Struct(fields) if fields.form == Form::Nothing => out.push(0),
            Self::Struct(fields) => fields.write_default(out),
            Self::Enum(_, variants) => {
                out.push(0);
                variants[0].1.write_default(out);
            }
        }
    }
}

impl Fields {
    fn of(fields: &[Field], measure: &mut Measure) -> Result<Self, ShapeError> {
        measure.place()?;
        if let Some(field) = fields.iter().find(|field| field.policy != Policy::Everyone) {
            return Err(ShapeError::Policy { field: field.name.clone().into_owned() });
        }
        // Fields without names are called by their places, as no field can be that has a name.
        let form = match fields {
            [] => Form::Nothing,
            [first, ..] if first.name != "0" => Form::Named,
            [_] => Form::One,
            _ => Form::Tuple,
        };
        let of = fields
            .iter()
            .map(|field| Ok((field.name.clone().into_owned(), Whole::of(&field.of, measure)?)))
            .collect::<Result<_, ShapeError>>()?;
        Ok(Self { form, of })
    }

    fn read(&self, reader: &mut Reader<'_>) -> Result<Value, DecodeError> {
        Ok(match self.form {
            Form::Nothing => Value::Null,
            Form::One => self.of[0].1.read(reader)?,
            Form::Tuple => Value::Array(
                self.of.iter().map(|(_, of)| of.read(reader)).collect::<Result<_, _>>()?,
            ),
            Form::Named => {
                let members = self.of.iter().map(|(name, of)| Ok((name.clone(), of.read(reader)?)));
                Value::Object(members.collect::<Result<_, DecodeError>>()?)
            }
        })
    }

    fn write(&self, value: &Value, out: &mut Vec<u8>) -> Result<(), DecodeError> {
        match self.form {
            Form::Nothing => Ok(()),
            Form::One => self.of[0].1.write(value, out),
            Form::Tuple => {
                let elements = value.as_array().filter(|elements| elements.len() == self.of.len());
                let elements = elements
                    .ok_or_else(|| unexpected("an array with one element for each field", value))?;
                self.of
                    .iter()
                    .zip(elements)
                    .try_for_each(|((_, of), element)| of.write(element, out))
            }
            Form::Named => {
                let members = value.as_object().ok_or_else(|| unexpected("an object", value))?;
                self.of.iter().try_for_each(|(name, of)| {
                    // An absent member reads as null, which an option takes for nothing.
                    of.write(members.get(name).unwrap_or(&Value::Null), out)
                        .map_err(|error| error.in_member(name))
                })
            }
        }
    }

    fn write_default(&self, out: &mut Vec<u8>) {
        self.of.iter().for_each(|(_, of)| of.write_default(out));
    }
}
