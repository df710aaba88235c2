//! A room as the connection's task sees it, whatever the type of its state.

use std::sync::Arc;

use playfield_state::{JsonExchange, PlayerId, Transcoder};
use playfield_wire::schema::RoomSchema;
use playfield_wire::{DecodeError, ErrorCode, server};

use crate::Error;
use crate::session::{RoomCopy, Subscribed, Update};

/// Where the connection's task delivers what comes for a room.
pub(crate) trait Sink: Send + Sync {
    /// Applies a snapshot or a patch, or keeps it until it can be applied. After the end, does
    /// nothing.
    fn update(&self, update: &Update<'_>) -> Result<(), DecodeError>;

    /// Keeps updates from now on, until [`translate`](Self::translate) says how to read them.
    fn hold(&self);

    /// How to read what the node sends, and for which player. Applies the updates that were kept.
    /// Returns whether the copy now needs a snapshot.
    fn translate(&self, translation: &Translation, player: PlayerId) -> Result<bool, Error>;

    /// Whether a snapshot has been applied.
    fn has_copy(&self) -> bool;

    /// Whether the copy has this digest, as far as can be known.
    fn check(&self, digest: u64) -> bool;

    fn event(&self, event: &server::Event<'_>);

    /// A `send` failed, or events were lost.
    fn failed(&self, error: Error);

    /// Nothing more will come.
    fn end(&self, error: Error);
}

/// The copy of a room, as the session keeps it up to date.
pub(super) struct SinkCopy(pub(super) Arc<dyn Sink>);

impl RoomCopy for SinkCopy {
    fn apply(&mut self, update: &Update<'_>) -> Result<(), DecodeError> {
        self.0.update(update)
    }

    fn digest_is(&mut self, digest: u64) -> bool {
        self.0.check(digest)
    }
}

/// Where the connection's task delivers what comes for a subscription.
pub(crate) trait Subscriber: Send + Sync {
    /// The node has answered, on the present connection.
    fn subscribed(&self, subscribed: &Subscribed);

    fn publication(&self, publication: &server::Publication<'_>, epoch: u64, is_bytes: bool);

    /// The node has dropped publications.
    fn missed(&self, publications: u64);

    fn presence(&self, presence: &server::Presence<'_>);

    /// The node has ended the subscription: nothing more will come.
    fn unsubscribed(&self, code: ErrorCode, text: &str);

    /// The connection has ended: nothing more will come.
    fn end(&self);
}

/// How a client reads and writes what a node of some build sends and expects.
#[derive(Clone, Debug)]
pub(crate) enum Translation {
    /// Both have the same schema, or the format needs none.
    None,
    /// The node's schema is a compatible later one.
    Transcoded(Arc<Transcoder>),
    /// The client takes the node's schema.
    Learned(Arc<Learned>),
}

/// A schema that was learned from the node.
#[derive(Debug)]
pub(crate) struct Learned {
    pub(crate) schema: Arc<RoomSchema>,
    pub(crate) exchange: JsonExchange,
}
