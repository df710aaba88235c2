//! What can be wrong with frames that arrive.

use std::fmt;

use crate::Opcode;

/// A frame that RFC 6455 or the decoder's limits forbid. The connection has to be closed with
/// [`close_code`](Error::close_code) and no more of its bytes read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A reserved bit is set and no extension in use gives it a meaning there (5.2). The three bits
    /// stand in the low bits.
    ReservedBits {
        /// RSV1, RSV2 and RSV3 as a number from 1 to 7.
        bits: u8,
    },
    /// The opcode is not assigned (5.2).
    ReservedOpcode {
        /// 3 to 7 or 11 to 15.
        opcode: u8,
    },
    /// A control frame is not final (5.5).
    FragmentedControl {
        /// Which control frame.
        opcode: Opcode,
    },
    /// A control frame's payload is longer than 125 bytes (5.5).
    ControlTooLong {
        /// Which control frame.
        opcode: Opcode,
    },
    /// A length is written in more bytes than it needs (5.2).
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
    /// A continuation frame came while no message was in progress (5.4).
    ContinuationUnexpected,
    /// A text or binary frame came in the midst of a fragmented message (5.4).
    ContinuationExpected {
        /// What came.
        opcode: Opcode,
    },
    /// A compressed message is no DEFLATE data, or ends in the midst of it (RFC 7692, 7.2.2).
    InvalidDeflate,
    /// A text message is not UTF-8 (8.1).
    InvalidText,
    /// A Close payload is one byte long, half a code (5.5.1).
    TruncatedCloseCode,
    /// A close code that may not stand in a frame (7.4).
    InvalidCloseCode {
        /// The code.
        code: u16,
    },
    /// A Close frame's reason is not UTF-8 (5.5.1).
    InvalidCloseReason,
    /// A message is longer than [`Limits::message_bytes_max`](crate::Limits::message_bytes_max).
    MessageTooLarge {
        /// The message's bytes as far as they are announced: fragments so far and the frame at
        /// hand.
        bytes: u64,
        /// The limit.
        bytes_max: usize,
    },
    /// A frame's payload is longer than
    /// [`Limits::frame_bytes_max`](crate::Limits::frame_bytes_max).
    FrameTooLarge {
        /// Its length in bytes.
        bytes: u64,
        /// The limit.
        bytes_max: usize,
    },
}

impl Error {
    /// The code to close the connection with (RFC 6455, 7.4.1): 1002 for a broken protocol, 1007
    /// for text that is not UTF-8 and data that is not compressed as it says, 1009 for what is too
    /// large.
    pub fn close_code(&self) -> u16 {
        match self {
            Self::InvalidText | Self::InvalidCloseReason => 1007,
            Self::InvalidDeflate => 1007,
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
                    "reserved bits {bits:03b} are set in a frame; no extension in use gives them a meaning there, send zeros"
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
                write!(f, "a length of {bytes} bytes is not written in the shortest form")
            }
            Self::LengthTopBit => f.write_str("a 64-bit length has its top bit set"),
            Self::MaskMissing => f.write_str("a frame from a client is not masked"),
            Self::MaskUnexpected => f.write_str("a frame from a server is masked"),
            Self::ContinuationUnexpected => {
                f.write_str("a continuation frame came while no message was in progress")
            }
            Self::ContinuationExpected { opcode } => {
                write!(f, "a {opcode} frame came before the last message was complete")
            }
            Self::InvalidDeflate => {
                f.write_str("a compressed message is no DEFLATE data, or is cut short")
            }
            Self::InvalidText => f.write_str("a text message is not UTF-8"),
            Self::TruncatedCloseCode => {
                f.write_str("a close frame holds one byte, half a close code")
            }
            Self::InvalidCloseCode { code } => {
                write!(f, "close code {code} may not be sent in a frame")
            }
            Self::InvalidCloseReason => f.write_str("the reason in a close frame is not UTF-8"),
            Self::MessageTooLarge { bytes, bytes_max } => {
                write!(
                    f,
                    "a message of at least {bytes} bytes is over the limit of {bytes_max}; send less at once"
                )
            }
            Self::FrameTooLarge { bytes, bytes_max } => {
                write!(
                    f,
                    "a frame of {bytes} bytes is over the limit of {bytes_max}; send it in fragments"
                )
            }
        }
    }
}

impl std::error::Error for Error {}
