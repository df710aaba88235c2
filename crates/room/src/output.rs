//! What a room gives out while it runs: the one door between a room and whoever hosts it.

use std::future::Future;
use std::pin::Pin;

use crate::{Error, InternalMessage, Mail};

/// The host's name for one seat: where it sends what that player is owed. A room only hands it
/// back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Link(pub u64);

/// An event on its way to one player.
#[derive(Clone, Copy, Debug)]
pub struct EventHeader {
    /// The event's position in the room type's declaration.
    pub index: u32,
    /// Its declared name.
    pub name: &'static str,
    /// The room's version when it was raised.
    pub version: u64,
}

/// Work that waits (I/O, timers of the outside world). It ends as an internal message to the room.
pub type Task = Pin<Box<dyn Future<Output = InternalMessage> + Send>>;

/// Work that computes. It ends as an internal message to the room.
pub type Job = Box<dyn FnOnce() -> InternalMessage + Send>;

/// Where a room's output goes. The host implements it; calls come in the order in which the room
/// acted.
///
/// Payloads are in the format that the seat's [`Entrant`](crate::Entrant) named.
pub trait RoomOutput {
    /// The answer to a player's request.
    fn reply(&mut self, link: Link, request: u32, payload: &[u8]);

    /// A refusal: of a request, or, where `request` is `None`, of a send.
    fn error(&mut self, link: Link, request: Option<u32>, error: &Error);

    /// An event for one player.
    fn event(&mut self, link: Link, event: EventHeader, payload: &[u8]);

    /// The room took this player out (kicked, closed, failed). The link is not used again.
    fn removed(&mut self, link: Link, why: &Error);

    /// Starts background work. `task` comes back in [`Mail::Done`], or in [`Mail::Lost`] if the
    /// work panicked.
    ///
    /// # Errors
    /// `busy` if no more may be under way.
    fn spawn(&mut self, task: u64, work: Task) -> Result<(), Error>;

    /// Queues work on the bounded pool for computation.
    ///
    /// # Errors
    /// `busy` when the pool's queue is full; the job is dropped.
    fn compute(&mut self, task: u64, job: Job) -> Result<(), Error>;

    /// Sends mail to another room, by its id. Mail to a room that does not exist is answered by the
    /// host if it asks for an answer, and dropped otherwise.
    fn post(&mut self, to: &str, mail: Mail);
}
