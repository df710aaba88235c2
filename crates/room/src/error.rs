//! Why a room, or its host, said no.

use std::fmt;

use playfield_wire::ErrorCode;

/// What a room's callbacks return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A refusal, as the player will read it: a code for programs, a text for people.
///
/// `Err("the deck is empty")?` makes one with the code `refused`; [`Error::with_code`] gives it a code of the room's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: ErrorCode,
    text: String,
}

impl Error {
    /// A refusal with the given code.
    pub fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// A room's own code, from 1000 up; smaller ones are raised by 1000, since those below belong to the protocol.
    pub fn with_code(code: u16, text: impl Into<String>) -> Self {
        Self::new(ErrorCode::Room(if code < 1000 { code + 1000 } else { code }), text)
    }

    /// The code that travels.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// The text that travels.
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.text)
    }
}

impl std::error::Error for Error {}

impl From<&str> for Error {
    fn from(text: &str) -> Self {
        Self::new(ErrorCode::Refused, text)
    }
}

impl From<String> for Error {
    fn from(text: String) -> Self {
        Self::new(ErrorCode::Refused, text)
    }
}
