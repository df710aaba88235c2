//! A type of this build, as a save is read for it.

use playfield_wire::schema::{Enum, Field, Type};

use super::saved::put_empty;
use super::{Saved, SavedField};

/// A type of this build: with the defaults of its fields, or, in a whole, without.
#[derive(Clone, Copy)]
pub(super) enum Here<'a> {
    Saved(&'a Saved),
    Whole(&'a Type),
}

/// What a [`Here`] is made of.
pub(super) enum Parts<'a> {
    Option(Here<'a>),
    List(Here<'a>),
    Array(Here<'a>, usize),
    Map(&'a Type, Here<'a>),
    Set(&'a Type),
    Struct(Fields<'a>),
    Enum(&'a Enum),
    Plain(&'a Type),
}

/// The fields of a struct, or of a variant.
#[derive(Clone, Copy)]
pub(super) enum Fields<'a> {
    Saved(&'a [SavedField]),
    Whole(&'a [Field]),
}

impl<'a> Here<'a> {
    pub(super) fn parts(self) -> Parts<'a> {
        match self {
            Self::Saved(Saved::Whole(of)) => Self::Whole(of).parts(),
            Self::Saved(Saved::Option(of)) => Parts::Option(Self::Saved(of)),
            Self::Saved(Saved::List(of)) => Parts::List(Self::Saved(of)),
            Self::Saved(Saved::Array(of, length)) => Parts::Array(Self::Saved(of), *length),
            Self::Saved(Saved::Map(key, of)) => Parts::Map(key, Self::Saved(of)),
            Self::Saved(Saved::Set(key)) => Parts::Set(key),
            Self::Saved(Saved::Struct(_, fields)) => Parts::Struct(Fields::Saved(fields)),
            Self::Whole(Type::Option(of)) => Parts::Option(Self::Whole(of)),
            Self::Whole(Type::List(of)) => Parts::List(Self::Whole(of)),
            Self::Whole(Type::Array(of, length)) => Parts::Array(Self::Whole(of), *length),
            Self::Whole(Type::Map(key, of)) => Parts::Map(key, Self::Whole(of)),
            Self::Whole(Type::Set(key)) => Parts::Set(key),
            Self::Whole(Type::Struct(of)) => Parts::Struct(Fields::Whole(&of.fields)),
            Self::Whole(Type::Enum(of)) => Parts::Enum(of),
            // No type in memory is quantized: its step is an attribute of a field.
            Self::Whole(Type::Quantized(of)) => Self::Whole(&of.of).parts(),
            Self::Whole(plain) => Parts::Plain(plain),
        }
    }

    /// The type alone.
    pub(super) fn schema(self) -> Type {
        match self {
            Self::Saved(of) => of.schema(),
            Self::Whole(of) => of.clone(),
        }
    }

    /// Appends an empty value.
    pub(super) fn put_empty(self, out: &mut Vec<u8>) {
        match self {
            Self::Saved(of) => of.put_empty(out),
            Self::Whole(of) => put_empty(of, out),
        }
    }
}

impl<'a> Fields<'a> {
    pub(super) fn len(self) -> usize {
        match self {
            Self::Saved(fields) => fields.len(),
            Self::Whole(fields) => fields.len(),
        }
    }

    pub(super) fn position(self, name: &str) -> Option<usize> {
        match self {
            Self::Saved(fields) => fields.iter().position(|field| field.name == name),
            Self::Whole(fields) => fields.iter().position(|field| field.name == name),
        }
    }

    pub(super) fn of(self, place: usize) -> Here<'a> {
        match self {
            Self::Saved(fields) => Here::Saved(&fields[place].of),
            Self::Whole(fields) => Here::Whole(&fields[place].of),
        }
    }

    /// Appends the value of a field that the save lacks.
    pub(super) fn put_default(self, place: usize, out: &mut Vec<u8>) {
        match self {
            Self::Saved(fields) => fields[place].put_default(out),
            Self::Whole(fields) => put_empty(&fields[place].of, out),
        }
    }
}
