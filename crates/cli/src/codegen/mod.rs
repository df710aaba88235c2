//! Types for clients in other languages, from the schema of a room type.
//!
//! The schema is all that a generator reads, so a running node, a file and the program itself give
//! the same types.

mod names;
mod python;
mod typescript;

#[cfg(test)]
mod tests;

use playfield_wire::schema::RoomSchema;

/// A language that types are generated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    /// For the npm package `playfield`.
    TypeScript,
    /// For the Python package `playfield`.
    Python,
}

impl Language {
    /// All of them.
    pub(crate) const ALL: [Self; 2] = [Self::TypeScript, Self::Python];

    /// The language with this name, as people write it in a command.
    #[must_use]
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|language| language.name() == name)
    }

    /// Its name in a command.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::TypeScript => "typescript",
            Self::Python => "python",
        }
    }

    /// The name of the file for a room type.
    #[must_use]
    pub(crate) fn file(self, room_type: &str) -> String {
        let stem: String = room_type
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' })
            .collect();
        match self {
            Self::TypeScript => format!("{stem}.ts"),
            Self::Python => format!("{stem}.py"),
        }
    }

    /// The types of a room type, as the text of that file.
    #[must_use]
    pub(crate) fn generate(self, room_type: &str, schema: &RoomSchema) -> String {
        match self {
            Self::TypeScript => typescript::generate(room_type, schema),
            Self::Python => python::generate(room_type, schema),
        }
    }
}
