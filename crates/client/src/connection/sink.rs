//! A room as the connection's task sees it, whatever the type of its state.

use std::sync::Arc;

use playfield_state::{PlayerId, ShapeError};
use playfield_wire::{DecodeError, ErrorCode, server};

use crate::Error;
use crate::session::{RoomCopy, Subscribed, Translation, Update};

/// Where the connection's task delivers what comes for a room.
pub(crate) trait Sink: Send + Sync {
    /// Applies a snapshot or a patch, or keeps it until it can be applied. After the end, does
    /// nothing.
    fn update(&self, update: &Update<'_>) -> Result<(), DecodeError>;

    /// Keeps updates from now on, until [`translate`](Self::translate) says how to read them.
    fn hold(&self);

    /// How to read what the node sends, and for which player. Applies the updates that were kept.
    /// Returns whether the copy now needs a snapshot.
    fn translate(&self, translation: &Translation, player: PlayerId) -> Result<bool, ShapeError>;

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
pub(crate) struct SinkCopy(pub(crate) Arc<dyn Sink>);

impl RoomCopy for SinkCopy {
    fn apply(&mut self, update: &Update<'_>) -> Result<(), DecodeError> {
        self.0.update(update)
    }

    fn digest_is(&mut self, digest: u64) -> bool {
        self.0.check(digest)
    }

    fn hold(&mut self) {
        self.0.hold();
    }

    fn translate(
        &mut self,
        translation: &Translation,
        player: PlayerId,
    ) -> Result<bool, ShapeError> {
        self.0.translate(translation, player)
    }

    fn is_filled(&self) -> bool {
        self.0.has_copy()
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
