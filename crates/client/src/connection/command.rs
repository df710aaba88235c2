//! Commands of the handles to the connection's task, and their way to it.

use std::collections::BTreeSet;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Poll, ready};

use playfield_wire::{RequestNumber, RoomNumber};
use tokio::sync::{Notify, mpsc, oneshot};

use super::status::Status;
use super::task::Task;
use crate::Error;
use crate::ending::Ending;
use crate::session::{
    CommandError, Event, Joined, Reach, Repair, Session, SubscriptionNumber, Translation, server,
};

pub(crate) type Answer<T> = oneshot::Sender<Result<T, Error>>;

/// The task's work for a handle, or the reason why it is not done.
type Act = Box<dyn FnOnce(Result<&mut Task, Error>) + Send>;

/// Something to do for a handle.
pub(crate) struct Command {
    /// The room that it is for.
    pub(super) place: Option<Place>,
    /// Says whether nobody waits for an answer.
    pub(super) is_send: bool,
    act: Act,
}

impl Command {
    /// Something that sends nothing.
    pub(crate) fn new(act: impl FnOnce(&mut Task) + Send + 'static) -> Self {
        Self { is_send: false, ..Self::send(None, act) }
    }

    /// A message without an answer. If the room has ended, its handle knows that.
    pub(crate) fn send(place: Option<Place>, act: impl FnOnce(&mut Task) + Send + 'static) -> Self {
        let act = move |task: Result<&mut Task, Error>| task.map_or((), act);
        Self { place, is_send: true, act: Box::new(act) }
    }

    pub(super) fn carry_out(self, task: &mut Task) {
        (self.act)(Ok(task));
    }

    /// Belongs to a room of an earlier session.
    pub(super) fn fail(self) {
        (self.act)(Err(Error::new_session()));
    }
}

/// A room, by its number in one session. The next session of the connection may use the number for
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Counts the connection's sessions.
    pub(super) session: u32,
    pub(crate) room: RoomNumber,
}

/// The node's answer to a join.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// The room is here.
    Entered(Entered),
    /// The room is at another node than this one, which is connected in this way.
    Redirected(server::Redirect<'static>, Reach),
}

/// A room that was entered, whose first snapshot was applied.
#[derive(Debug)]
pub(crate) struct Entered {
    pub(crate) joined: Joined<'static>,
    pub(crate) seat: Seat,
    pub(crate) translation: Translation,
}

/// A signal that must not wait in the command queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Signal {
    /// The room's handle was dropped, and the queue of commands was full.
    Dropped { place: Place },
    /// The room's copy can't use what it has kept.
    Repair { place: Place, repair: Repair },
    /// The subscription's handle was dropped.
    Unsubscribe { subscription: SubscriptionNumber },
    /// Nobody will answer the command.
    Unanswered { session: u32, command: u64 },
    /// The connection may be dead.
    Suspect,
    /// This client ends the connection, which may be lost: no command is taken then.
    Close,
}

/// The signals that the task has not handled yet: each at most once, so they are bounded by the
/// rooms and their handles.
#[derive(Debug, Default)]
pub(super) struct Signals {
    waiting: Mutex<BTreeSet<Signal>>,
    arrived: Notify,
}

impl Signals {
    pub(super) fn put(&self, signal: Signal) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).insert(signal);
        self.arrived.notify_one();
    }

    /// Takes the signals that are there.
    pub(super) fn take_now(&self) -> BTreeSet<Signal> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Waits for signals, and takes all.
    ///
    /// Cancel safety: safe, no signal is lost.
    pub(super) async fn take(&self) -> BTreeSet<Signal> {
        loop {
            let signals = self.take_now();
            if !signals.is_empty() {
                return signals;
            }
            self.arrived.notified().await;
        }
    }
}

/// A place in a room. Dropping it leaves the room, also while the answer to a join is on its way to
/// a caller that has stopped waiting.
pub(crate) struct Seat {
    pub(super) place: Place,
    pub(super) signals: Arc<Signals>,
    /// The queue of commands, while the connection has a handle.
    pub(super) commands: mpsc::WeakSender<Command>,
}

impl Seat {
    pub(crate) fn place(&self) -> Place {
        self.place
    }

    pub(crate) fn repair(&self, repair: Repair) {
        self.signals.put(Signal::Repair { place: self.place, repair });
    }
}

impl Command {
    /// The room's handle was dropped, after the commands that it queued.
    fn forsake(place: Place) -> Self {
        let act = move |task: &mut Task| task.registry.forsaken.push((place.room, 0));
        Self { is_send: false, ..Self::send(Some(place), act) }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let place = self.place;
        // In the queue the leave keeps its place: after the handle's last sends, and before a
        // command by which the program enters the room again.
        let queue = self.commands.upgrade();
        let is_queued = queue.is_some_and(|queue| queue.try_send(Command::forsake(place)).is_ok());
        if !is_queued {
            self.signals.put(Signal::Dropped { place });
        }
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seat").field("place", &self.place).finish_non_exhaustive()
    }
}

/// A subscription that the node has answered. Dropping it unsubscribes.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(super) subscription: SubscriptionNumber,
    pub(super) signals: Arc<Signals>,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.signals.put(Signal::Unsubscribe { subscription: self.subscription });
    }
}

/// A command that expects an answer. Dropping it unanswered reports that to the node.
#[derive(Debug)]
pub(crate) struct Obligation {
    pub(crate) session: u32,
    pub(crate) command: u64,
    pub(super) signals: Arc<Signals>,
    pub(super) is_fulfilled: bool,
}

impl Obligation {
    /// The command is answered.
    pub(crate) fn fulfill(&mut self) {
        self.is_fulfilled = true;
    }
}

impl Drop for Obligation {
    fn drop(&mut self) {
        if !self.is_fulfilled {
            let (session, command) = (self.session, self.command);
            self.signals.put(Signal::Unanswered { session, command });
        }
    }
}

/// A handle's end of the queue of commands.
#[derive(Clone)]
pub(crate) struct Line {
    pub(super) commands: mpsc::Sender<Command>,
    /// The end of the connection, once it has ended.
    pub(super) ending: Arc<OnceLock<Ending>>,
    pub(super) handles: Arc<Handles>,
    pub(super) status: Arc<Status>,
}

/// All handles of a connection. Dropping the last wakes the task, even while it takes no
/// commands.
#[derive(Debug)]
pub(super) struct Handles(pub(super) Arc<Signals>);

impl Handles {
    pub(super) fn put(&self, signal: Signal) {
        self.0.put(signal);
    }
}

impl Drop for Handles {
    fn drop(&mut self) {
        self.put(Signal::Close);
    }
}

impl Line {
    /// Queues a command without an answer. Waits while the queue is full.
    pub(crate) async fn put(&self, command: Command) -> Result<(), Error> {
        self.commands.send(command).await.map_err(|_| self.closed())
    }

    /// Queues a command without an answer, unless the connection has ended.
    pub(crate) async fn tell(&self, command: Command) -> Result<(), Error> {
        self.put(command).await?;
        // The task may not have found it in its queue.
        if self.ending.get().is_some() { Err(self.closed()) } else { Ok(()) }
    }

    /// Has the task do something, and waits for the answer that it gives.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        place: Option<Place>,
        act: impl FnOnce(&mut Task, Answer<T>) + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = oneshot::channel();
        let act: Act = Box::new(move |task| match task {
            Ok(task) => act(task, answer),
            Err(error) => drop(answer.send(Err(error))),
        });
        let command = Command { place, is_send: false, act };
        let (mut answered, mut put) = (pin!(answered), pin!(self.put(command)));
        let mut is_put = false;
        poll_fn(|cx| {
            // Also before it is put: an answer that comes at once wakes, and this is polled again after
            // those whose answers came before.
            let polled = answered.as_mut().poll(cx);
            if is_put {
                return polled.map(|answer| answer.unwrap_or_else(|_| Err(self.closed())));
            }
            ready!(put.as_mut().poll(cx))?;
            is_put = true;
            Poll::Pending
        })
        .await
    }

    /// Makes a request, and waits for what `read` takes from the event that answers it.
    pub(crate) async fn request<T: Send + 'static>(
        &self,
        place: Option<Place>,
        make: impl FnOnce(&mut Session) -> Result<RequestNumber, CommandError> + Send + 'static,
        read: impl FnOnce(Event<'_>) -> Option<T> + Send + 'static,
    ) -> Result<T, Error> {
        self.ask(place, move |task, answer| {
            let asked = make(&mut task.client);
            task.wait(asked, answer, move |_, event, answer| {
                // The session lets no other answer through.
                read(event).map(|value| answer.send(Ok(value)).ok());
            });
        })
        .await
    }

    /// Says goodbye, and waits until the connection has ended.
    pub(super) async fn close(self) {
        self.handles.put(Signal::Close);
        // An error means that the connection is closed already.
        let _ = self.put(Command::new(Task::begin_farewell)).await;
        self.until_closed().await;
    }

    /// Waits until the connection has ended.
    pub(super) async fn until_closed(&self) {
        self.commands.closed().await;
    }

    pub(super) fn closed(&self) -> Error {
        Error::closed(self.ending.get().cloned().unwrap_or(Ending::Here))
    }
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line").field("ending", &self.ending.get()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use playfield_wire::RoomNumber;

    use super::{Place, Repair, Signal, Signals};

    #[tokio::test]
    async fn a_signal_waits_once_however_often_it_is_put() {
        let signals = Signals::default();
        let place = Place { session: 0, room: RoomNumber(1) };
        for _ in 0..1000 {
            signals.put(Signal::Repair { place, repair: Repair::Snapshot });
        }
        signals.put(Signal::Dropped { place });
        let taken: Vec<_> = signals.take().await.into_iter().collect();
        let repair = Signal::Repair { place, repair: Repair::Snapshot };
        assert_eq!(taken, [Signal::Dropped { place }, repair]);
    }
}
