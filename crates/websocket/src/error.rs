//! Errors in received frames.

use std::fmt;

use crate::Opcode;

/// A frame that violates RFC 6455 or the decoder's limits. Close the connection with
/// [`close_code`](Error::close_code) and stop reading from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A reserved bit is set, and no negotiated extension defines it for this frame (5.2).
    ReservedBits {
        /// RSV1, RSV2 and RSV3 as a number from 1 to 7; RSV3 is the lowest bit.
        bits: u8,
    },
    /// The opcode is not assigned (5.2).
    ReservedOpcode {
        /// 3 to 7 or 11 to 15.
        opcode: u8,
    },
    /// A control frame is fragmented (5.5).
    FragmentedControl {
        /// The kind of control frame.
        opcode: Opcode,
    },
    /// A control frame's payload is longer than 125 bytes (5.5).
    ControlTooLong {
        /// The kind of control frame.
        opcode: Opcode,
    },
    /// A length is not encoded in the fewest possible bytes (5.2).
    LengthNotMinimal {
        /// The length.
        bytes: u64,
    },
    /// A 64-bit length has its top bit set (5.2).
    LengthTopBit,
    /// A client's frame is not masked (5.1).
    MaskMissing,
    /// A server's frame is masked (5.1).
    MaskUnexpected,
    /// A continuation frame arrived while no message was in progress (5.4).
    ContinuationUnexpected,
    /// A text or binary frame arrived before the fragmented message was complete (5.4).
    ContinuationExpected {
        /// The opcode that arrived.
        opcode: Opcode,
    },
    /// A text message arrived where messages are the bytes of a stream.
    TextUnexpected,
    /// A compressed message is not valid DEFLATE data, or is truncated (RFC 7692, 7.2.2).
    InvalidDeflate,
    /// A text message is not UTF-8 (8.1).
    InvalidText,
    /// A Close payload is one byte long, but a close code has two (5.5.1).
    TruncatedCloseCode,
    /// A close code that must not be sent in a frame (7.4).
    InvalidCloseCode {
        /// The code.
        code: u16,
    },
    /// A Close frame's reason is not UTF-8 (5.5.1).
    InvalidCloseReason,
    /// A message is longer than [`Limits::message_bytes_max`](crate::Limits::message_bytes_max).
    MessageTooLarge {
        /// The message's length so far, in bytes: received fragments plus the announced length of
        /// the current frame.
        bytes: u64,
        /// The limit.
        bytes_max: usize,
    },
    /// A frame's payload is longer than
    /// [`Limits::frame_bytes_max`](crate::Limits::frame_bytes_max).
    FrameTooLarge {
        /// Its length, in bytes.
        bytes: u64,
        /// The limit.
        bytes_max: usize,
    },
}

impl Error {
    /// The code to close the connection with (RFC 6455, 7.4.1): 1002 for a protocol violation, 1003
    /// for text where bytes are expected, 1007 for invalid UTF-8 or invalid compressed data, 1009 for
    /// a frame or message over its limit.
    pub fn close_code(&self) -> u16 {
        match self {
            Self::InvalidText | Self::InvalidCloseReason => 1007,
            Self::InvalidDeflate => 1007,
            Self::TextUnexpected => 1003,
            Self::MessageTooLarge { .. } | Self::FrameTooLarge { .. } => 1009,
            Self::ReservedBits { .. }
            | Self::ReservedOpcode { .. }
            | Self::FragmentedControl { .. }
            | Self::ControlTooLong { .. }
            | Self::LengthNotMinimal { .. }
            | Self::LengthTopBit
            | Self::MaskMissing
            | Self::MaskUnexpected
            | Self::ContinuationUnexpected
            | Self::ContinuationExpected { .. }
            | Self::TruncatedCloseCode
            | Self::InvalidCloseCode { .. } => 1002,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ReservedBits { bits } => {
                write!(
                    f,
                    "reserved bits {bits:03b} are set in a frame, but no negotiated extension \
                     defines them; send zeros"
                )
            }
            Self::ReservedOpcode { opcode } => {
                write!(f, "opcode {opcode:#x} is not assigned by RFC 6455")
            }
            Self::FragmentedControl { opcode } => {
                write!(f, "a {opcode} frame is fragmented; control frames must be final")
            }
            Self::ControlTooLong { opcode } => {
                write!(f, "a {opcode} frame is longer than 125 bytes; send a shorter payload")
            }
            Self::LengthNotMinimal { bytes } => {
                write!(f, "a length of {bytes} bytes is not encoded in the shortest form")
            }
            Self::LengthTopBit => f.write_str("a 64-bit length has its top bit set"),
            Self::MaskMissing => f.write_str("a frame from a client is not masked"),
            Self::MaskUnexpected => f.write_str("a frame from a server is masked"),
            Self::ContinuationUnexpected => {
                f.write_str("a continuation frame arrived while no message was in progress")
            }
            Self::ContinuationExpected { opcode } => {
                write!(f, "a {opcode} frame arrived before the previous message was complete")
            }
            Self::TextUnexpected => {
                f.write_str("a text message arrived where only bytes are understood; send binary")
            }
            Self::InvalidDeflate => {
                f.write_str("a compressed message is not valid DEFLATE data, or is truncated")
            }
            Self::InvalidText => f.write_str("a text message is not valid UTF-8"),
            Self::TruncatedCloseCode => {
                f.write_str("a close frame's payload is one byte long; a close code has two")
            }
            Self::InvalidCloseCode { code } => {
                write!(f, "close code {code} must not be sent in a frame")
            }
            Self::InvalidCloseReason => {
                f.write_str("the reason in a close frame is not valid UTF-8")
            }
            Self::MessageTooLarge { bytes, bytes_max } => {
                write!(
                    f,
                    "a message of at least {bytes} bytes exceeds the limit of {bytes_max}; \
                     send smaller messages"
                )
            }
            Self::FrameTooLarge { bytes, bytes_max } => {
                write!(
                    f,
                    "a frame of {bytes} bytes exceeds the limit of {bytes_max}; send it in \
                     fragments"
                )
            }
        }
    }
}

impl std::error::Error for Error {}
