//! The shape of a type in a save.

use std::borrow::Cow;
use std::marker::PhantomData;

use playfield_wire::schema::{Enum, Field, Policy, Struct, Type};
use playfield_wire::writer;

use super::Save;

/// The shape of a value in a save: all of it but skipped fields, by the types in memory, with the
/// defaults of fields that an older save may lack.
#[derive(Clone, Debug)]
pub enum Saved {
    /// A value without parts.
    Plain(Type),
    /// A value or none.
    Option(Box<Saved>),
    /// Values in an order.
    List(Box<Saved>),
    /// Values, as many as the number says.
    Array(Box<Saved>, usize),
    /// Values by key.
    Map(Type, Box<Saved>),
    /// Keys.
    Set(Type),
    /// The name of a struct, and its fields.
    Struct(Cow<'static, str>, Vec<SavedField>),
    /// The name of an enum, and its variants, each with its fields.
    Enum(Cow<'static, str>, Vec<(Cow<'static, str>, Vec<SavedField>)>),
}

/// A field of a struct in a save.
#[derive(Clone, Debug)]
pub struct SavedField {
    /// The field's name.
    pub name: Cow<'static, str>,
    /// Its shape.
    pub of: Saved,
    /// Appends the default of its type, if the type has one.
    pub default: Option<fn(&mut Vec<u8>)>,
}

/// The shape without defaults of fields.
impl From<Type> for Saved {
    fn from(of: Type) -> Self {
        let inner = |of: Box<Type>| Box::new(Self::from(*of));
        let fields = |of: Struct| -> Vec<_> { of.fields.into_iter().map(Into::into).collect() };
        match of {
            Type::Option(of) => Self::Option(inner(of)),
            Type::List(of) => Self::List(inner(of)),
            Type::Array(of, length) => Self::Array(inner(of), length),
            Type::Map(key, of) => Self::Map(*key, inner(of)),
            Type::Set(key) => Self::Set(*key),
            Type::Struct(of) => Self::Struct(of.name.clone(), fields(of)),
            Type::Enum(Enum { name, variants }) => {
                let variant = |of: Struct| (of.name.clone(), fields(of));
                Self::Enum(name, variants.into_iter().map(variant).collect())
            }
            // No type in memory is quantized: its step is an attribute of a field.
            Type::Quantized(of) => Self::from(of.of),
            plain => Self::Plain(plain),
        }
    }
}

impl From<Field> for SavedField {
    fn from(Field { name, of, .. }: Field) -> Self {
        Self { name, of: of.into(), default: None }
    }
}

impl Saved {
    /// The type without defaults.
    pub(super) fn schema(&self) -> Type {
        let structure = |name: &Cow<'static, str>, fields: &[SavedField]| {
            let field = |field: &SavedField| Field {
                name: field.name.clone(),
                policy: Policy::Everyone,
                default_digest: None,
                of: field.of.schema(),
            };
            Struct { name: name.clone(), fields: fields.iter().map(field).collect() }
        };
        match self {
            Self::Plain(of) => of.clone(),
            Self::Option(of) => Type::Option(Box::new(of.schema())),
            Self::List(of) => Type::List(Box::new(of.schema())),
            Self::Array(of, length) => Type::Array(Box::new(of.schema()), *length),
            Self::Map(key, of) => Type::Map(Box::new(key.clone()), Box::new(of.schema())),
            Self::Set(key) => Type::Set(Box::new(key.clone())),
            Self::Struct(name, fields) => Type::Struct(structure(name, fields)),
            Self::Enum(name, variants) => {
                let variants = variants.iter().map(|(name, fields)| structure(name, fields));
                Type::Enum(Enum { name: name.clone(), variants: variants.collect() })
            }
        }
    }

    /// Appends 0, nothing, an empty text or collection, or the first variant of an enum: the value
    /// of a field that an older save lacks, if its type has no default.
    pub(super) fn put_empty(&self, out: &mut Vec<u8>) {
        let put = |fields: &[SavedField], out: &mut Vec<u8>| {
            fields.iter().for_each(|field| field.put_default(out));
        };
        match self {
            Self::Plain(Type::F32) => writer::put_f32(out, 0.0),
            Self::Plain(Type::F64) => writer::put_f64(out, 0.0),
            Self::Array(of, length) => (0..*length).for_each(|_| of.put_empty(out)),
            Self::Struct(_, fields) if !fields.is_empty() => put(fields, out),
            Self::Enum(_, variants) => {
                out.push(0);
                variants.first().into_iter().for_each(|(_, fields)| put(fields, out));
            }
            // One byte 0: a number, `false`, a length, a count, nothing.
            _ => out.push(0),
        }
    }
}

impl SavedField {
    /// Appends the value of this field where an older save lacks it.
    pub(super) fn put_default(&self, out: &mut Vec<u8>) {
        match self.default {
            Some(put) => put(out),
            None => self.of.put_empty(out),
        }
    }
}

/// A type whose default is wanted, if it has one. The macro calls `(&Added::<T>::NEW).default()`,
/// which is [`AddedAsDefault`]'s where the type has one, and otherwise [`AddedByType`]'s.
pub struct Added<T>(PhantomData<T>);

impl<T> Added<T> {
    /// The only value.
    pub const NEW: Self = Self(PhantomData);
}

/// Types that have a default.
pub trait AddedAsDefault {
    /// Appends the default.
    fn default(&self) -> Option<fn(&mut Vec<u8>)>;
}

impl<T: Save + Default> AddedAsDefault for Added<T> {
    fn default(&self) -> Option<fn(&mut Vec<u8>)> {
        Some(|out| T::default().write_save(out))
    }
}

/// All types.
pub trait AddedByType {
    /// Nothing: what is added follows from the type.
    fn default(&self) -> Option<fn(&mut Vec<u8>)>;
}

impl<T> AddedByType for &Added<T> {
    fn default(&self) -> Option<fn(&mut Vec<u8>)> {
        None
    }
}
