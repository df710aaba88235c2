//! A setting that is not shown.

use std::fmt;

/// The shortest secret, in characters.
const LENGTH_MIN: usize = 16;

/// A text that is shown nowhere: it is written as `hidden`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Reads one; otherwise says why not.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        if text.chars().any(|letter| !letter.is_ascii_graphic()) {
            return Err("it has a space, or a character that no header can hold".into());
        }
        if text.len() < LENGTH_MIN {
            return Err(format!("it has {} characters; {LENGTH_MIN} is the least", text.len()));
        }
        Ok(Self(text.to_owned()))
    }

    /// The text itself; empty if there is none.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "" } else { "hidden" })
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({self})")
    }
}
