//! Work that must not run on a shard.

use playfield_room::{Completion, Error, Job, Task};
use tokio::task::AbortHandle;

use crate::auth::Deciding;
use crate::shard::keys::ConnectionKey;
use crate::shard::keys::RoomKey;

/// The room that started background work, and gets its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) shard: u16,
    pub(crate) room: RoomKey,
    /// The room's number for it.
    pub(crate) task: u64,
}

/// A decision that is awaited. Its task ends when this is dropped, if it has not ended before: then
/// the decision is on its way, and is known by its number.
#[derive(Debug, Default)]
pub(crate) struct Underway {
    pub(crate) task: Option<AbortHandle>,
    /// Unique among those of a node; 0 = none.
    pub(crate) decision: u64,
}

impl Drop for Underway {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Begins work that was accepted. If it is dropped, the work never begins.
pub(crate) type Begin = Box<dyn FnOnce() + Send>;

/// Runs work elsewhere. Each ends as mail to the room that began it.
pub(crate) trait Background: Send + Sync {
    /// Starts work that waits.
    ///
    /// # Errors
    /// `busy` if as much is under way as may be.
    fn spawn(&self, origin: Origin, work: Task) -> Result<(), Error>;

    /// The completion of a room's save: its outcome is mail to the room.
    fn completion(&self, origin: Origin) -> Completion;

    /// Queues work that computes.
    ///
    /// # Errors
    /// `busy` if the queue is full.
    fn compute(&self, origin: Origin, job: Job) -> Result<(), Error> {
        self.compute_later(origin, job).map(|begin| begin())
    }

    /// Reserves a place in the queue for a computation that begins later.
    ///
    /// # Errors
    /// Fails like [`compute`](Self::compute).
    fn compute_later(&self, origin: Origin, job: Job) -> Result<Begin, Error>;

    /// Starts to decide who a connection of a shard belongs to. The decision arrives as
    /// [`Authenticated`](crate::shard::mail::ShardMail::Authenticated) with the number of the
    /// returned value, perhaps even if that was dropped before.
    ///
    /// # Errors
    /// `busy` if `limits.queues.authentications` wait already.
    fn decide(
        &self,
        shard: u16,
        connection: ConnectionKey,
        deciding: Deciding,
    ) -> Result<Underway, Error>;
}
