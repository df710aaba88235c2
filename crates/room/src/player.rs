//! Who is in a room, and who created it.

use playfield_state::{Format, PlayerId};

use crate::Link;

/// A player, as the room knows them.
#[derive(Clone, Debug)]
pub struct Player {
    pub(crate) id: PlayerId,
    pub(crate) name: String,
    pub(crate) user: Option<String>,
    pub(crate) link: Link,
    pub(crate) format: Format,
}

impl Player {
    /// The number in this room.
    pub fn id(&self) -> PlayerId {
        self.id
    }

    /// The display name, as the client chose it: not unique.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Who the authenticator says this is; `None` for a guest.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }
}

/// The player who had a room created: see [`Context::creator`](crate::Context::creator).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Creator {
    name: String,
    user: Option<String>,
}

impl Creator {
    /// A player by display name and, unless a guest, the user that the authenticator identified.
    pub fn new(name: impl Into<String>, user: Option<String>) -> Self {
        Self { name: name.into(), user }
    }

    /// The display name, as the client chose it: not unique.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The user that the authenticator identified; `None` for a guest.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }
}
