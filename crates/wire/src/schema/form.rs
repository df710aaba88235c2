//! The form of a struct's fields in JSON and MessagePack, in a value that is sent as a whole.

use super::Field;

/// The form of a struct, or of a variant, in a message, a reply, an event, options or an enum. In a
/// state, every struct is an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// No fields: `null`.
    Nothing,
    /// One field without a name: the field itself.
    One,
    /// Several fields without names: an array.
    Tuple,
    /// Named fields: an object.
    Named,
}

impl Form {
    /// The form of these fields.
    #[must_use]
    pub fn of(fields: &[Field]) -> Self {
        // The name of a field without a name is its position, which no named field can have.
        match fields {
            [] => Self::Nothing,
            [first, ..] if first.name != "0" => Self::Named,
            [_] => Self::One,
            _ => Self::Tuple,
        }
    }
}
