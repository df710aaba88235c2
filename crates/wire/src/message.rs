//! What messages of both directions have in common.

use std::borrow::Cow;

use crate::Format;

/// Which of a room type's messages or events is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageRef<'a> {
    /// Its position in the room type's declaration: the form in `packed`.
    Index(u32),
    /// Its name: the form in `msgpack` and `json`.
    Name(Cow<'a, str>),
}

impl MessageRef<'_> {
    /// The pair that the writers take, of which each format uses one half.
    ///
    /// # Panics
    /// If this is not the form that `format` carries. A message that was decoded has the form of
    /// its format; to write any format from one place, use the writers, which take number and name.
    pub(crate) fn parts(&self, format: Format) -> (u32, &str) {
        match (self, format) {
            (Self::Index(index), Format::Packed) => (*index, ""),
            (Self::Name(name), Format::Msgpack | Format::Json) => (0, name),
            (Self::Name(name), Format::Packed) => {
                panic!("packed needs the number of message {name:?}")
            }
            (Self::Index(index), Format::Msgpack | Format::Json) => {
                panic!("{format} needs the name of message {index}")
            }
        }
    }
}
