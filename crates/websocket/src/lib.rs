//! RFC 6455 and 7692 as a state machine over byte slices, for servers and clients.
//!
//! Nothing here reads a socket, a clock or a random generator. A [`Decoder`] takes received bytes,
//! unmasks them in place and returns [`Item`]s; a [`StreamDecoder`] returns the bytes of all
//! messages as one stream. The `encode` functions append frames to the caller's buffer, and a
//! [`Deflater`] appends compressed ones. [`handshake`] handles the HTTP upgrade on both sides. The
//! caller generates keys and masks.
//!
//! ```
//! use playfield_websocket::{Decoder, Item, Limits, Opcode, Role, encode};
//!
//! let mut wire = Vec::new();
//! encode(&mut wire, Opcode::Text, b"hello", Some([1, 2, 3, 4])); // a client masks
//!
//! let mut server = Decoder::new(Role::Server, Limits::default());
//! let decoded = server.decode(&mut wire)?;
//! assert_eq!(decoded.item, Some(Item::Text("hello")));
//! # Ok::<(), playfield_websocket::Error>(())
//! ```

mod close;
mod close_finder;
mod decode;
mod deflate;
mod early;
mod encode;
mod error;
mod frame;
pub mod handshake;
mod mask;
mod message;
mod stream;
mod utf8;

pub use close::Close;
pub use close_finder::CloseFinder;
pub use decode::{Decoded, Decoder, Item, Limits};
pub use deflate::{Agreed, Deflate, Deflater, DeflaterOptions, Direction};
pub use encode::{
    FrameParts, begin_frame, encode, encode_close, encode_fragment, encode_with, encode_with_about,
    end_frame,
};
pub use error::Error;
pub use frame::{Mask, Opcode, Role};
pub use stream::{Control, StreamDecoder, Streamed};
