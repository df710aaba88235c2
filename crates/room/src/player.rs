//! The players in a room, its creator, and the senders of its messages.

use std::sync::Arc;

use playfield_state::{Format, PlayerId};

use crate::{Claims, Link};

/// A player in a room.
#[derive(Clone, Debug)]
pub struct Player {
    pub(crate) id: PlayerId,
    pub(crate) name: String,
    pub(crate) user: Option<String>,
    pub(crate) claims: Claims,
    pub(crate) seat: Option<String>,
    pub(crate) link: Link,
    pub(crate) format: Format,
    pub(crate) is_connected: bool,
}

impl Player {
    /// The player's number in this room. A room never uses a number twice.
    pub fn id(&self) -> PlayerId {
        self.id
    }

    /// The display name: not unique, may be empty. The client chose it, unless the authenticator or
    /// a ticket did. Names of tokens and tickets are made displayable: invisible characters are
    /// left out, and what exceeds the node's `limits.name_bytes.player` is cut off. A client that
    /// chooses such a name is refused.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The user that the authenticator identified; `None` for a guest.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// Returns whether the player has a connection. One who has lost it keeps the seat for the room's
    /// [grace](crate::Settings::grace_ms).
    pub fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// Returns what the verified token says of the user; empty for a guest.
    pub fn claims(&self) -> &Claims {
        &self.claims
    }

    /// The seat or role that the player's ticket names; `None` without a ticket.
    pub fn seat(&self) -> Option<&str> {
        self.seat.as_deref()
    }
}

/// A room that sent a message, or created another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sender {
    /// Its id.
    pub room_id: String,
    /// The name of its type.
    pub room_type: String,
}

/// The party that had a room created: see [`Context::creator`](crate::Context::creator).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Creator {
    /// A player, by `create` or `join_or_create`.
    Player {
        /// The display name: not unique. The client chose it, unless the authenticator did.
        name: String,
        /// The user that the authenticator identified; `None` for a guest.
        user: Option<String>,
    },
    /// Another room.
    Room(Arc<Sender>),
    /// The program that runs the node, or a test.
    Node,
}

impl Creator {
    /// A player by display name and, unless a guest, the user that the authenticator identified.
    pub fn player(name: impl Into<String>, user: Option<String>) -> Self {
        Self::Player { name: name.into(), user }
    }

    /// The display name of the player: not unique. The client chose it, unless the authenticator
    /// did.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Player { name, .. } => Some(name),
            Self::Room(_) | Self::Node => None,
        }
    }

    /// The user that the authenticator identified; `None` for a guest, a room and the node.
    pub fn user(&self) -> Option<&str> {
        match self {
            Self::Player { user, .. } => user.as_deref(),
            Self::Room(_) | Self::Node => None,
        }
    }

    /// The room, if it was one.
    pub fn room(&self) -> Option<&Sender> {
        match self {
            Self::Room(room) => Some(room),
            Self::Player { .. } | Self::Node => None,
        }
    }
}
