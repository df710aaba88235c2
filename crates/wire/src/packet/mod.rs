//! Custom packets: numbers, texts and bytes in a layout that you choose, in either byte order.
//!
//! Use this for existing protocols, and for payloads that Playfield passes on unread. A
//! [`PacketWriter`] appends to a buffer, and a [`PacketReader`] reads from one and borrows what it
//! can. Every read is checked, and an error names the byte and the field. A struct whose fields
//! follow one another in the packet can derive [`Packet`] (the macro is in `playfield_derive`).
//!
//! ```
//! use playfield_wire::packet::{Little, PacketError, PacketReader, PacketWriter, Prefix};
//!
//! let mut bytes = Vec::new();
//! let mut packet = PacketWriter::<Little>::new(&mut bytes);
//! packet.u16(0x10); // the opcode
//! packet.i32(-7);
//! packet.at("name").text(Prefix::U16, "ann")?;
//!
//! let mut packet = PacketReader::<Little>::new(&bytes);
//! assert_eq!(packet.u16()?, 0x10);
//! assert_eq!(packet.at("id").i32()?, -7);
//! assert_eq!(packet.at("name").text(Prefix::U16)?, "ann");
//! packet.finish()?;
//! # Ok::<(), PacketError>(())
//! ```

mod error;
mod field;
mod forms;
mod number;
mod reader;
mod writer;

pub use error::{PacketError, PacketErrorKind};
pub use field::{Packet, PacketField, Prefixed};
pub use forms::{Padded, Rest, Varint};
pub use number::{Big, Little, Number, Order};
pub use reader::PacketReader;
pub use writer::{Later, PacketWriter};

/// The encoding of the length prefix of a text, of bytes or of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    /// In one byte: up to 255.
    U8,
    /// In two bytes: up to 65,535.
    U16,
    /// In four bytes.
    U32,
    /// In LEB128, in its shortest form: up to 2^32 - 1.
    Varint,
}

impl Prefix {
    /// The largest length that it can express.
    #[must_use]
    pub const fn max(self) -> usize {
        match self {
            Self::U8 => u8::MAX as usize,
            Self::U16 => u16::MAX as usize,
            Self::U32 | Self::Varint => u32::MAX as usize,
        }
    }
}
