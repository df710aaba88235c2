//! Errors in packets.

use std::fmt;

/// Bytes that are not the expected packet, or a value that doesn't fit the packet to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketError {
    offset: usize,
    field: &'static str,
    kind: PacketErrorKind,
}

/// The kind of a [`PacketError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PacketErrorKind {
    /// The bytes end before the value does.
    Truncated {
        /// The value: `u16`, `bytes`, …
        expected: &'static str,
        /// The bytes left.
        remain: usize,
    },
    /// A length or a count is greater than the bytes left allow.
    PastEnd {
        /// The announced number of bytes, or of elements of a list.
        announced: u64,
        /// The bytes left.
        remain: usize,
    },
    /// Bytes are left after the end.
    Trailing {
        /// The number of bytes left.
        remain: usize,
    },
    /// A bool is neither 0 nor 1.
    Bool {
        /// The byte.
        value: u8,
    },
    /// A varint has more bytes than it needs, or more bits than allowed.
    Varint,
    /// A text is not UTF-8, from this byte on.
    NotUtf8,
    /// The padding of a text is not all zeros.
    Padding {
        /// The byte in the padding.
        value: u8,
    },
    /// A padded text to be written contains a zero, which would end it.
    ZeroInText,
    /// A value to be written is longer than its prefix allows.
    TooLong {
        /// Its length: bytes, or elements of a list.
        length: usize,
        /// The maximum length.
        max: usize,
    },
    /// The packet has another opcode.
    Opcode {
        /// The expected opcode.
        expected: u64,
        /// The opcode that was received.
        got: u64,
    },
}

impl PacketError {
    /// Creates an error at this offset, for types that implement
    /// [`PacketField`](super::PacketField) themselves.
    #[cold]
    #[must_use]
    pub const fn new(offset: usize, field: &'static str, kind: PacketErrorKind) -> Self {
        Self { offset, field, kind }
    }

    /// The offset of the error in the packet, in bytes.
    #[must_use]
    pub const fn offset(&self) -> usize {
        self.offset
    }

    /// The field that the last [`at`](super::PacketReader::at) named; empty if none was named.
    #[must_use]
    pub const fn field(&self) -> &'static str {
        self.field
    }

    /// Returns the kind of error.
    #[must_use]
    pub const fn kind(&self) -> PacketErrorKind {
        self.kind
    }
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at byte {}", self.offset)?;
        if !self.field.is_empty() {
            write!(f, ", field {}", self.field)?;
        }
        f.write_str(": ")?;
        match self.kind {
            PacketErrorKind::Truncated { expected, remain } => {
                write!(f, "{expected} was expected, {remain} bytes remain")
            }
            PacketErrorKind::PastEnd { announced, remain } => {
                write!(f, "a length of {announced} was announced, {remain} bytes remain")
            }
            PacketErrorKind::Trailing { remain } => {
                write!(f, "the end was expected, {remain} bytes remain")
            }
            PacketErrorKind::Bool { value } => write!(f, "a bool is 0 or 1, not {value}"),
            PacketErrorKind::Varint => {
                f.write_str("a varint is not in its shortest form, or too large")
            }
            PacketErrorKind::NotUtf8 => f.write_str("a text is not UTF-8"),
            PacketErrorKind::Padding { value } => {
                write!(f, "a text must be padded with zeros, not {value:#04x}")
            }
            PacketErrorKind::ZeroInText => f.write_str(
                "a padded text ends at its first zero: remove the zero, or send a length",
            ),
            PacketErrorKind::TooLong { length, max } => {
                write!(f, "a length of {length} is greater than {max}, the maximum here")
            }
            PacketErrorKind::Opcode { expected, got } => {
                write!(f, "expected the packet {expected:#x}, found {got:#x}")
            }
        }
    }
}

impl std::error::Error for PacketError {}
