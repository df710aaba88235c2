//! Parts common to the messages of both directions.

pub(crate) mod field;
pub(crate) mod form;
pub(crate) mod owned;
#[macro_use]
mod table;

use std::borrow::Cow;

pub use form::{FieldForm, Form, MessageForm};

use crate::Format;

/// One of a room type's messages or events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageRef<'a> {
    /// Its position in the room type's declaration: the form in `packed`.
    Index(u32),
    /// Its name: the form in `msgpack` and `json`.
    Name(Cow<'a, str>),
}

impl MessageRef<'_> {
    /// The index.
    ///
    /// # Panics
    /// If this is a name. A decoded message has the form of its format; the writers in
    /// [`client`](crate::client) and [`server`](crate::server) take both.
    pub(crate) fn index(&self) -> u32 {
        match self {
            Self::Index(index) => *index,
            Self::Name(name) => panic!("{} needs the index of message {name:?}", Format::Packed),
        }
    }

    /// The name.
    ///
    /// # Panics
    /// If this is an index.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Name(name) => name,
            Self::Index(index) => panic!("json and msgpack need the name of message {index}"),
        }
    }
}
