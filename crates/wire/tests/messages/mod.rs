//! Messages of all kinds, made and written by their forms alone: a field that the tables have is in
//! them.

pub(crate) mod any;
pub(crate) mod cases;
mod writing;

use std::fmt::Debug;

use playfield_wire::client::ClientMessage;
use playfield_wire::message::MessageForm;
use playfield_wire::server::ServerMessage;
use playfield_wire::{DecodeError, ErrorCode, Format};

pub(crate) use writing::Written;

/// Messages of either direction.
pub(crate) trait Message: PartialEq + Debug {
    fn forms() -> Vec<MessageForm>;

    /// Reads a message, and writes it again.
    fn again(format: Format, bytes: &[u8]) -> Result<Vec<u8>, DecodeError>;
}

macro_rules! messages {
    ($($of:ident)*) => {$(
        impl Message for $of<'_> {
            fn forms() -> Vec<MessageForm> {
                $of::forms()
            }

            fn again(format: Format, bytes: &[u8]) -> Result<Vec<u8>, DecodeError> {
                let mut out = Vec::new();
                $of::decode(format, bytes)?.encode(format, &mut out);
                Ok(out)
            }
        }
    )*};
}

messages! { ClientMessage ServerMessage }

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Bool(bool),
    /// Of what is no less than the number before it, the difference.
    Number(u64),
    Text(String),
    Bytes(Vec<u8>),
    /// A payload, in the format of the message.
    Raw(Vec<u8>),
    Pairs(Vec<(String, String)>),
    Texts(Vec<String>),
    /// The index in `packed`, the name in trees.
    Message(u32, String),
    Code(ErrorCode),
    Absent,
    List(Vec<Value>),
    Record(Vec<Value>),
}
