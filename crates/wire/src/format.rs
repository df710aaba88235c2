//! The formats in which a message can be written.

use std::fmt;

/// The encoding of messages as bytes. A client names one in its `hello`; it holds for both
/// directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Schema-driven binary, the default of every SDK.
    #[default]
    Packed,
    /// Self-describing binary (<https://msgpack.org>): the same trees as [`Json`](Self::Json), in
    /// fewer bytes.
    Msgpack,
    /// Readable text, for debugging and for a browser with no SDK.
    Json,
}

/// A format in which a value says itself what it is: a tree of objects, arrays, texts and numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TreeFormat {
    /// MessagePack.
    Msgpack,
    /// JSON.
    Json,
}

impl Format {
    /// All formats, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Packed, Self::Msgpack, Self::Json];

    /// The format with this number, or `None` if this crate does not speak it.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Packed),
            1 => Some(Self::Msgpack),
            2 => Some(Self::Json),
            _ => None,
        }
    }

    /// The number that stands for this format in `hello`.
    #[must_use]
    pub fn number(self) -> u8 {
        match self {
            Self::Packed => 0,
            Self::Msgpack => 1,
            Self::Json => 2,
        }
    }

    /// The format's name, as in configuration and logs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Packed => "packed",
            Self::Msgpack => "msgpack",
            Self::Json => "json",
        }
    }

    /// The format as one of trees, which `packed` is not.
    #[must_use]
    pub fn tree(self) -> Option<TreeFormat> {
        match self {
            Self::Packed => None,
            Self::Msgpack => Some(TreeFormat::Msgpack),
            Self::Json => Some(TreeFormat::Json),
        }
    }

    /// Whether messages are text, and not binary.
    #[must_use]
    pub fn is_text(self) -> bool {
        self == Self::Json
    }
}

impl From<TreeFormat> for Format {
    fn from(format: TreeFormat) -> Self {
        match format {
            TreeFormat::Msgpack => Self::Msgpack,
            TreeFormat::Json => Self::Json,
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
            assert_eq!(format, Format::ALL.get(usize::from(number)).copied(), "{number}");
            if let Some(format) = format {
                assert_eq!(format.number(), number);
            }
        }
    }

    #[test]
    fn a_format_of_trees_is_a_format() {
        for format in Format::ALL {
            assert!(format.tree().is_none_or(|tree| Format::from(tree) == format));
        }
    }
}
