//! A frame's header (RFC 6455, 5.2).

use std::fmt;

use crate::Error;

/// The longest payload of a control frame, and the longest length that fits in the header's second
/// byte.
pub(crate) const SHORT_BYTES_MAX: usize = 125;

/// Our side of the connection. It decides whether received frames must be masked (5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Frames come from a client and must be masked.
    Server,
    /// Frames come from a server and must not be masked.
    Client,
}

/// The key to mask a frame with. Clients use `Some` with a new key for each frame, from a strong
/// source of randomness (RFC 6455, 5.3). Servers use `None`.
pub type Mask = Option<[u8; 4]>;

/// The kind of a frame (RFC 6455, 5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Opcode {
    /// Another fragment of the message in progress.
    Continuation,
    /// A text message, or its first fragment.
    Text,
    /// A binary message, or its first fragment.
    Binary,
    /// The sender will send nothing more.
    Close,
    /// Requests a pong with the same payload.
    Ping,
    /// Answers a ping, or serves as an unsolicited heartbeat.
    Pong,
}

impl Opcode {
    /// Whether it is Close, Ping or Pong. Control frames are final, at most 125 bytes long, and
    /// allowed between fragments (5.5).
    pub(crate) fn is_control(self) -> bool {
        match self {
            Self::Close | Self::Ping | Self::Pong => true,
            Self::Continuation | Self::Text | Self::Binary => false,
        }
    }

    pub(crate) fn bits(self) -> u8 {
        match self {
            Self::Continuation => 0x0,
            Self::Text => 0x1,
            Self::Binary => 0x2,
            Self::Close => 0x8,
            Self::Ping => 0x9,
            Self::Pong => 0xA,
        }
    }

    fn from_bits(bits: u8) -> Result<Self, Error> {
        match bits {
            0x0 => Ok(Self::Continuation),
            0x1 => Ok(Self::Text),
            0x2 => Ok(Self::Binary),
            0x8 => Ok(Self::Close),
            0x9 => Ok(Self::Ping),
            0xA => Ok(Self::Pong),
            opcode => Err(Error::ReservedOpcode { opcode }),
        }
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Continuation => "continuation",
            Self::Text => "text",
            Self::Binary => "binary",
            Self::Close => "close",
            Self::Ping => "ping",
            Self::Pong => "pong",
        })
    }
}

/// The first byte of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) fin: bool,
    pub(crate) opcode: Opcode,
    /// The first reserved bit. With permessage-deflate, it marks a compressed message (RFC 7692,
    /// 6).
    pub(crate) rsv1: bool,
}

impl Start {
    /// Parses the first byte and rejects what is invalid regardless of what follows. `deflates`
    /// says whether compressed messages are allowed. Only a message's first frame carries the
    /// compression bit (RFC 7692, 6.1).
    pub(crate) fn parse(byte: u8, deflates: bool) -> Result<Self, Error> {
        let bits = byte >> 4 & 0b111;
        let opcode = Opcode::from_bits(byte & 0x0F);
        let rsv1 = bits == 0b100 && deflates && matches!(opcode, Ok(Opcode::Text | Opcode::Binary));
        if bits != 0 && !rsv1 {
            return Err(Error::ReservedBits { bits });
        }
        let opcode = opcode?;
        let fin = byte & 0x80 != 0;
        if opcode.is_control() && !fin {
            return Err(Error::FragmentedControl { opcode });
        }
        Ok(Self { fin, opcode, rsv1 })
    }
}

/// The rest of a frame's header: the payload's length and where it starts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Length {
    pub(crate) payload_bytes: u64,
    /// The whole header's length, including the first byte and the masking key.
    pub(crate) header_bytes: usize,
    masked: bool,
}

impl Length {
    /// Parses a frame from its second byte. Returns `None` while the length is incomplete. It does
    /// not need the masking key, so an invalid or excessive length is rejected as soon as it is
    /// known.
    pub(crate) fn parse(role: Role, opcode: Opcode, frame: &[u8]) -> Result<Option<Self>, Error> {
        let Some(&byte) = frame.get(1) else { return Ok(None) };
        let masked = byte & 0x80 != 0;
        match (role, masked) {
            (Role::Server, false) => return Err(Error::MaskMissing),
            (Role::Client, true) => return Err(Error::MaskUnexpected),
            (Role::Server, true) | (Role::Client, false) => {}
        }
        let short = byte & 0x7F;
        if opcode.is_control() && usize::from(short) > SHORT_BYTES_MAX {
            return Err(Error::ControlTooLong { opcode });
        }
        let extended = &frame[2..];
        let (payload_bytes, least, length_bytes) = match short {
            126 => match extended.first_chunk() {
                Some(bytes) => (u64::from(u16::from_be_bytes(*bytes)), 126, 2),
                None => return Ok(None),
            },
            127 => match extended.first_chunk() {
                Some(bytes) => (u64::from_be_bytes(*bytes), 1 << 16, 8),
                None => return Ok(None),
            },
            short => (u64::from(short), 0, 0),
        };
        if payload_bytes < least {
            return Err(Error::LengthNotMinimal { bytes: payload_bytes });
        }
        if payload_bytes >> 63 != 0 {
            return Err(Error::LengthTopBit);
        }
        let header_bytes = 2 + length_bytes + if masked { 4 } else { 0 };
        Ok(Some(Self { payload_bytes, header_bytes, masked }))
    }

    /// The masking key of a frame whose header is complete.
    pub(crate) fn mask(&self, frame: &[u8]) -> Mask {
        if self.masked { frame[..self.header_bytes].last_chunk().copied() } else { None }
    }
}
