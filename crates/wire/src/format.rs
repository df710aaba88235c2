//! The formats in which a message can be written.

use std::fmt;

/// How messages are written as bytes. A client names one in its `hello`; it holds for both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Schema-driven binary, the default of every SDK.
    #[default]
    Packed,
    /// Readable text, for debugging and for a browser with no SDK.
    Json,
}

impl Format {
    /// The format with this number, or `None` if this crate does not speak it (1, `msgpack`, is reserved).
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Packed),
            2 => Some(Self::Json),
            _ => None,
        }
    }

    /// The number that stands for this format in `hello`.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Packed => 0,
            Self::Json => 2,
        }
    }

    /// The format's name, as in configuration and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Packed => "packed",
            Self::Json => "json",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Format;

    #[test]
    fn numbers_and_formats_agree() {
        for number in 0..=u8::MAX {
            let format = Format::from_number(number);
            assert_eq!(format.is_some(), number == 0 || number == 2, "{number}");
            if let Some(format) = format {
                assert_eq!(format.number(), number);
            }
        }
    }
}
