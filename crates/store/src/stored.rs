//! Parts that the stores share.

use playfield_room::{StoreError, StoreErrorKind, Stored};
use tokio::sync::oneshot::Receiver;

use crate::queue::Name;

pub(crate) fn named(room_type: &str, key: &str) -> Name {
    (room_type.into(), key.into())
}

/// The outcome, once it is there.
pub(crate) fn stored<T: Send + 'static>(outcome: Receiver<Result<T, StoreError>>) -> Stored<T> {
    Box::pin(async move {
        let stopped = |_| StoreError::new(StoreErrorKind::Other, "the store has stopped");
        outcome.await.map_err(stopped)?
    })
}
