//! Why a room, or its host, said no.

use std::fmt;
use std::time::Duration;

use playfield_wire::{ErrorCode, excerpt};

/// What a room's callbacks return.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The longest text of an [`Error`], in bytes: what a client sent is quoted in some, and is not to
/// come back in full.
pub const ERROR_TEXT_BYTES_MAX: usize = 512;

/// What stands for the rest.
const ELLIPSIS: &str = "…";

/// A refusal, as the player will read it: a code for programs, a text for people.
///
/// `Err("the deck is empty")?` makes one with the code `refused`; [`Error::with_code`] gives it a
/// code of the room's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: ErrorCode,
    text: String,
    retry_after_ms: Option<u32>,
}

impl Error {
    /// A refusal with the given code. A text past [`ERROR_TEXT_BYTES_MAX`] is cut off there.
    pub fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        let mut text = text.into();
        if text.len() > ERROR_TEXT_BYTES_MAX {
            text.truncate(excerpt(&text, ERROR_TEXT_BYTES_MAX - ELLIPSIS.len()).len());
            text.push_str(ELLIPSIS);
        }
        Self { code, text, retry_after_ms: None }
    }

    /// A room's own code, from 1000 up; smaller ones are raised by 1000, since those below belong
    /// to the protocol.
    pub fn with_code(code: u16, text: impl Into<String>) -> Self {
        Self::new(ErrorCode::Room(if code < 1000 { code + 1000 } else { code }), text)
    }

    /// The same, with how long to wait before asking again: rounded up to milliseconds, at most
    /// 49 days.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        let ms = wait.as_nanos().div_ceil(1_000_000);
        self.retry_after_ms = Some(u32::try_from(ms).unwrap_or(u32::MAX));
        self
    }

    /// How long to wait before asking again, in milliseconds, if that is known.
    pub fn retry_after_ms(&self) -> Option<u32> {
        self.retry_after_ms
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        for bytes in 505..520 {
            let error = Error::new(
                ErrorCode::Refused,
                format!("{}{}", "a".repeat(bytes % 2), "é".repeat(bytes / 2)),
            );
            assert_eq!(error.text().ends_with('…'), bytes > ERROR_TEXT_BYTES_MAX, "{bytes}");
            assert!(error.text().len() <= ERROR_TEXT_BYTES_MAX);
        }
    }
}
