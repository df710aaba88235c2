//! What a save has of a type.

use std::borrow::Cow;
use std::marker::PhantomData;

use playfield_wire::schema::{Field, Policy, Struct, Type};
use playfield_wire::writer;

use super::Save;

/// The shape of a value in a save: all of it but skipped fields, by the types in memory.
#[derive(Clone, Debug)]
pub enum Saved {
    /// An atomic value.
    Whole(Type),
    /// A value or none.
    Option(Box<Saved>),
    /// Values in an order.
    List(Box<Saved>),
    /// As many values as the number says.
    Array(Box<Saved>, usize),
    /// Values by key.
    Map(Type, Box<Saved>),
    /// Keys.
    Set(Type),
    /// The name of a struct, and its fields.
    Struct(&'static str, Vec<SavedField>),
}

/// A field of a struct in a save.
#[derive(Clone, Debug)]
pub struct SavedField {
    /// The field's name.
    pub name: &'static str,
    /// Its shape.
    pub of: Saved,
    /// Appends the default of its type, if the type has one.
    pub default: Option<fn(&mut Vec<u8>)>,
}

impl Saved {
    /// The same without defaults.
    pub(super) fn schema(&self) -> Type {
        match self {
            Self::Whole(of) => of.clone(),
            Self::Option(of) => Type::Option(Box::new(of.schema())),
            Self::List(of) => Type::List(Box::new(of.schema())),
            Self::Array(of, length) => Type::Array(Box::new(of.schema()), *length),
            Self::Map(key, of) => Type::Map(Box::new(key.clone()), Box::new(of.schema())),
            Self::Set(key) => Type::Set(Box::new(key.clone())),
            Self::Struct(name, fields) => {
                let field = |field: &SavedField| Field {
                    name: Cow::Borrowed(field.name),
                    policy: Policy::Everyone,
                    default_digest: None,
                    of: field.of.schema(),
                };
                let fields = fields.iter().map(field).collect();
                Type::Struct(Struct { name: Cow::Borrowed(name), fields })
            }
        }
    }

    /// Appends the value of a field that an older save lacks, if its type has no default.
    pub(super) fn put_empty(&self, out: &mut Vec<u8>) {
        match self {
            Self::Whole(of) => put_empty(of, out),
            Self::Option(_) | Self::List(_) | Self::Map(..) | Self::Set(_) => out.push(0),
            Self::Array(of, length) => (0..*length).for_each(|_| of.put_empty(out)),
            Self::Struct(_, fields) if fields.is_empty() => out.push(0),
            Self::Struct(_, fields) => fields.iter().for_each(|field| field.put_default(out)),
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

/// Appends 0, nothing, an empty text or collection, or the first variant of an enum.
pub(super) fn put_empty(of: &Type, out: &mut Vec<u8>) {
    match of {
        Type::F32 => writer::put_f32(out, 0.0),
        Type::F64 => writer::put_f64(out, 0.0),
        Type::Array(of, length) => (0..*length).for_each(|_| put_empty(of, out)),
        Type::Struct(of) if of.fields.is_empty() => out.push(0),
        Type::Struct(of) => of.fields.iter().for_each(|field| put_empty(&field.of, out)),
        Type::Enum(of) => {
            out.push(0);
            let first = of.variants.first().into_iter().flat_map(|variant| &variant.fields);
            first.for_each(|field| put_empty(&field.of, out));
        }
        // One byte 0: a number, `false`, a length, a count, nothing.
        _ => out.push(0),
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
