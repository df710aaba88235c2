//! Refusals, by a room or by its host.

use std::fmt;
use std::time::Duration;

use playfield_wire::{ErrorCode, excerpt};

/// The result of a room's callbacks.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The longest text of an [`Error`], in bytes. Some quote what a client sent, which could be long.
pub const ERROR_TEXT_BYTES_MAX: usize = 512;

/// Ends a text that was cut.
const ELLIPSIS: &str = "…";

/// A refusal as a player receives it: a code for programs, and a text for people.
///
/// A text alone makes one with the code `refused`; [`Error::with_code`] makes one with a code of
/// your own.
///
/// ```
/// use playfield_room::{Error, Result};
///
/// fn draw(deck: &mut Vec<u8>) -> Result<u8> {
///     Ok(deck.pop().ok_or("the deck is empty")?)
/// }
///
/// assert_eq!(draw(&mut Vec::new()), Err(Error::from("the deck is empty")));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    code: ErrorCode,
    text: String,
    retry_after_ms: Option<u32>,
    /// No refusal: the reply comes later.
    is_deferred: bool,
}

/// The refusal of a room whose seats are all taken by players, or kept for others.
pub fn room_full(players: u32, kept: u32) -> Error {
    let players = counted(players, "player");
    let text = match kept {
        0 => format!("the room is full: it has {players}"),
        _ => {
            let kept = counted(kept, "seat");
            format!("the room is full: it has {players}, and keeps {kept} for others")
        }
    };
    Error::new(ErrorCode::RoomFull, text)
}

fn counted(count: u32, what: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{count} {what}{ending}")
}

impl Error {
    /// A refusal with the given code. A text longer than [`ERROR_TEXT_BYTES_MAX`] is cut.
    pub fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        let mut text = text.into();
        if text.len() > ERROR_TEXT_BYTES_MAX {
            text.truncate(excerpt(&text, ERROR_TEXT_BYTES_MAX - ELLIPSIS.len()).len());
            text.push_str(ELLIPSIS);
        }
        Self { code, text, retry_after_ms: None, is_deferred: false }
    }

    /// A refusal with a code of your own, from 1000 up. The protocol has the codes below: 1000 is
    /// added to a smaller one.
    pub fn with_code(code: u16, text: impl Into<String>) -> Self {
        Self::new(ErrorCode::Room(if code < 1000 { code + 1000 } else { code }), text)
    }

    /// Returns the error of a handler that has [deferred](crate::Context::defer) its reply. Without
    /// that, the request is answered with `internal`.
    #[must_use]
    pub fn deferred() -> Self {
        let text = "the handler deferred the reply, and did not keep the request: call cx.defer";
        Self { is_deferred: true, ..Self::new(ErrorCode::Internal, text) }
    }

    pub(crate) fn is_deferred(&self) -> bool {
        self.is_deferred
    }

    /// The same, with how long to wait before asking again: rounded up to milliseconds, at most
    /// 49 days.
    #[must_use]
    pub fn with_retry_after(mut self, wait: Duration) -> Self {
        let ms = wait.as_nanos().div_ceil(1_000_000);
        self.retry_after_ms = Some(u32::try_from(ms).unwrap_or(u32::MAX));
        self
    }

    /// Returns the time to wait before asking again, in milliseconds, if that is known.
    pub fn retry_after_ms(&self) -> Option<u32> {
        self.retry_after_ms
    }

    /// The code, for programs.
    pub fn code(&self) -> ErrorCode {
        self.code
    }

    /// The text, for people.
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
