//! Work that must not run on a shard.

use playfield_room::{Error, Job, Task};

use crate::shard::keys::RoomKey;

/// The room that started background work, and gets its result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    pub(crate) shard: u16,
    pub(crate) room: RoomKey,
    /// The room's number for it.
    pub(crate) task: u64,
}

/// Runs work elsewhere. Each ends as mail to the room that began it.
pub(crate) trait Background: Send + Sync {
    /// Starts work that waits.
    ///
    /// # Errors
    /// `busy` if as much is under way as may be.
    fn spawn(&self, origin: Origin, work: Task) -> Result<(), Error>;

    /// Queues work that computes.
    ///
    /// # Errors
    /// `busy` if the queue is full.
    fn compute(&self, origin: Origin, job: Job) -> Result<(), Error>;
}
