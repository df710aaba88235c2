//! What messages of both directions have in common.

use std::borrow::Cow;

/// Which of a room type's messages or events is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageRef<'a> {
    /// Its position in the room type's declaration: the form in `packed`.
    Index(u32),
    /// Its name: the form in `json`.
    Name(Cow<'a, str>),
}

impl MessageRef<'_> {
    /// The pair that the writers take, of which each format uses one half.
    ///
    /// # Panics
    /// If this is not the form that `format` carries. A message that was decoded has the form of its format;
    /// to write either format from one place, use the writers, which take number and name.
    pub(crate) fn parts(&self, format: crate::Format) -> (u32, &str) {
        match (self, format) {
            (Self::Index(index), crate::Format::Packed) => (*index, ""),
            (Self::Name(name), crate::Format::Json) => (0, name),
            (Self::Name(name), crate::Format::Packed) => {
                panic!("packed needs the number of message {name:?}")
            }
            (Self::Index(index), crate::Format::Json) => panic!("JSON needs the name of message {index}"),
        }
    }
}
