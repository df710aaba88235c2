//! The room that a client asks for.

use playfield_wire::RequestNumber;
use playfield_wire::client::{self, ClientMessage};

use crate::session::Creation;
#[cfg(doc)]
use crate::session::Session;

/// The room to enter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// An existing room.
    Join {
        /// Its id, or a reservation or a ticket for it.
        id: String,
    },
    /// The room of a type that has this key. The case of a code does not matter.
    JoinByKey {
        /// The room type.
        room_type: String,
        /// The key, or the code.
        key: String,
    },
    /// A new room.
    Create {
        /// The room type.
        room_type: String,
        /// The settings for creating it.
        creation: Creation,
        /// The options, as for [`Session::enter`].
        options: Vec<u8>,
    },
    /// Any room of a type that is not full, or a new one.
    JoinOrCreate {
        /// The room type.
        room_type: String,
        /// The key of the room; without one, any without a key.
        key: Option<String>,
        /// The options of a new room, as for [`Session::enter`].
        options: Vec<u8>,
    },
}

impl Target {
    /// The room type and the options, if the room may be created.
    pub(super) fn creates(&mut self) -> Option<(&str, &mut Vec<u8>)> {
        match self {
            Self::Join { .. } | Self::JoinByKey { .. } => None,
            Self::Create { room_type, options, .. }
            | Self::JoinOrCreate { room_type, options, .. } => Some((room_type, options)),
        }
    }

    pub(super) fn message(&self, request: RequestNumber) -> ClientMessage<'_> {
        match self {
            Self::Join { id } => ClientMessage::Join(client::Join { request, room: id.into() }),
            Self::JoinByKey { room_type, key } => ClientMessage::JoinByKey(client::JoinByKey {
                request,
                room_type: room_type.into(),
                key: key.into(),
            }),
            Self::Create { room_type, creation, options } => {
                ClientMessage::Create(client::Create {
                    request,
                    room_type: room_type.into(),
                    private: creation.private,
                    code: creation.code,
                    key: creation.key.as_deref().map(Into::into),
                    options,
                })
            }
            Self::JoinOrCreate { room_type, key, options } => {
                ClientMessage::JoinOrCreate(client::JoinOrCreate {
                    request,
                    room_type: room_type.into(),
                    key: key.as_deref().map(Into::into),
                    options,
                })
            }
        }
    }
}
