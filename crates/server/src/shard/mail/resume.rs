//! A request to resume a session, on the way to its shard.

use std::collections::BTreeSet;
use std::time::Duration;

use playfield_session::Token;
use playfield_wire::Format;
use playfield_wire::client::{Resume, ResumeRoom};

use crate::auth::Identity;
use crate::node::Node;
use crate::users::Greeted;

/// A client that wants a session back.
pub(crate) struct ResumeRequest {
    pub(crate) wanted: Wanted,
    /// The data for a new session if the wanted one is over.
    pub(crate) opening: Opening,
    /// When its hello was read.
    pub(crate) at: Duration,
    /// Its place in the order of all hellos that ask for a session.
    pub(crate) order: u64,
}

/// The session that a client wants back, and what the client has received of it.
pub(crate) struct Wanted {
    pub(crate) token: Token,
    pub(crate) received: u64,
    pub(crate) copies: Vec<ResumeRoom>,
}

impl Wanted {
    /// Reads the wish of a hello; `None` if the token is not one of this node.
    pub(crate) fn of(node: &Node, resume: &Resume<'_>) -> Option<Self> {
        let token = node.tokens.verify(&resume.token)?;
        let copies_max = node.config.limits.session.rooms;
        let mut copies: Vec<ResumeRoom> = Vec::new();
        for copy in resume.rooms.iter().take(copies_max) {
            if copies.iter().all(|known| known.room != copy.room) {
                copies.push(*copy);
            }
        }
        Some(Self { token, received: resume.received, copies })
    }
}

/// The data that a session is opened with.
pub(crate) struct Opening {
    pub(crate) format: Format,
    pub(crate) identity: Identity,
    /// Whether the client can resume it.
    pub(crate) resumable: bool,
    /// The room types whose schemas the client does not have.
    pub(crate) mismatches: BTreeSet<u16>,
    pub(crate) greeted: Greeted,
}
