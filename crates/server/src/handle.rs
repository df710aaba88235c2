//! A handle to a running node, for code outside its rooms.

mod channels;
mod devices;
mod limits;
mod moves;
pub(crate) mod operated;
pub(crate) mod operator;
pub(crate) mod profile;
pub(crate) mod recordings;
mod rooms;
mod users;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use playfield_room::{Error, InternalMessage, Mail, Message, Result};
use playfield_state::{Data, Format};
use playfield_wire::ErrorCode;
use tokio::sync::oneshot::Receiver;

use crate::asks::{self, Answer, Asker};
use crate::control::as_task;
use crate::event_loop::SharedRuntime;
use crate::mailbox::Parcel;
use crate::node::Node;
use crate::pulse::ControlPulse;
use crate::recordings::Recordings;
use crate::room_id::RoomId;
use crate::shard::mail::ShardMail;
use crate::stats::{Published, Stats};
use crate::upgrade::{self, Upgrade, UpgradeError, Upgraded};
pub use devices::Devices;
pub use limits::Limit;
pub use operated::{
    FoundPlayer, FoundPlayers, Inspection, OperatedRoom, Recorded, RecordedKind, RoomCost, RoomLoad,
};
pub use operator::Operator;
pub use profile::LiveProfile;
pub use recordings::RecordingFacts;
pub(crate) use rooms::SEARCHES;
pub use rooms::{AtNode, ListedRoom};
pub use users::Subscriber;

/// Reaches the rooms of a running node from anywhere in its process: from HTTP handlers, services,
/// other threads and other runtimes.
///
/// Clones are cheap and reach the same node. After the node's end, every call fails with
/// `shutting_down`; a handle does not keep a node running.
#[derive(Clone)]
pub struct NodeHandle {
    shared: Arc<SharedRuntime>,
    node: Arc<Node>,
    published: Arc<[Arc<Published>]>,
}

impl NodeHandle {
    pub(crate) fn new(
        shared: Arc<SharedRuntime>,
        node: Arc<Node>,
        published: &[Arc<Published>],
    ) -> Self {
        Self { shared, node, published: published.into() }
    }

    /// Runs a future on the node's control thread, with its Tokio runtime, until the node ends. It
    /// must not block. Nothing happens after the node's end.
    pub fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = self.shared.control.get() {
            runtime.spawn(as_task(Arc::clone(&self.shared), future));
        }
    }

    /// Replaces this process by a new one of the program: rooms and sessions go on there, and
    /// clients come back to it by themselves. Returns when it serves; the node ends then, and
    /// [`Running::wait`](crate::Running::wait) returns. It may block for `timeouts.upgrade` several
    /// times, so it must not be called on the node's threads.
    ///
    /// # Errors
    /// If the new process can't be started, ends, does not answer in time or refuses, because it is
    /// another program or can't read the state of a room: the text says which. Everything goes on
    /// here then.
    pub fn upgrade(&self, upgrade: &Upgrade) -> std::result::Result<Upgraded, UpgradeError> {
        upgrade::upgrade(&self.shared, &self.node, upgrade)
    }

    /// Returns whether another process has [taken over](Self::upgrade).
    #[must_use]
    pub fn is_replaced(&self) -> bool {
        self.shared.gate.is_over()
    }

    /// The node that it reaches.
    pub(crate) fn node(&self) -> &Node {
        &self.node
    }

    pub(crate) fn shared(&self) -> &Arc<SharedRuntime> {
        &self.shared
    }

    /// The counters of a shard.
    pub(crate) fn published_by(&self, shard: usize) -> Arc<Published> {
        Arc::clone(&self.published[shard])
    }

    /// The heartbeat of the control thread.
    pub(crate) fn control_pulse(&self) -> &ControlPulse {
        &self.shared.control_pulse
    }

    /// The time since the node's start.
    pub(crate) fn now(&self) -> Duration {
        self.shared.clock.now()
    }

    /// Sends a message to a room, which receives it by [`On`](playfield_room::On).
    ///
    /// `Ok` says that it is on its way, in order with all else that this thread sends there. A room
    /// that ends meanwhile does not receive it, which is counted in
    /// [`mail_dropped`](crate::ShardStats::mail_dropped): to know what became of a message,
    /// [`ask`](Self::ask).
    ///
    /// # Errors
    /// `room_not_found`, `busy` if the mailbox of the room's shard is full (`limits.queues.mail`),
    /// `internal` if that shard has failed, or `shutting_down`.
    pub fn tell<M: Message>(&self, room_id: &str, message: &M) -> Result<()> {
        let (id, shard) = self.place(room_id)?;
        let mail = Mail::Told { from: None, message: InternalMessage::of(message) };
        self.post(shard, ShardMail::Post { to: id, mail })
    }

    /// Sends a request to a room, which receives it by [`On`](playfield_room::On). The reply is the
    /// output of the returned future, which needs no particular runtime; or [wait](Asked::wait) for
    /// it.
    ///
    /// The request is sent at once, whether or not the future is polled. Dropping the future
    /// forgets the reply.
    ///
    /// # Errors
    /// The future's output is the room's refusal, or as [`tell`](Self::tell). A room that ends
    /// before it answers is `room_not_found` or `room_closed`. Without an answer for
    /// `timeouts.ask` it is `timeout`, and beyond `limits.queues.asks` unanswered requests `busy`.
    pub fn ask<M: Message>(&self, room_id: &str, message: &M) -> Asked<M> {
        let message = InternalMessage::of(message);
        Pending::new(
            read::<M>,
            self.begin(room_id, |to, ask| ShardMail::Post {
                to,
                mail: Mail::Asked { from: None, ask, message },
            }),
        )
    }

    /// Sends a room something that it answers under a number.
    fn begin(&self, room_id: &str, mail: impl FnOnce(RoomId, u64) -> ShardMail) -> Result<Waiting> {
        let (id, shard) = self.place(room_id)?;
        let waiting = self.wait_for(shard, Duration::ZERO)?;
        self.post(shard, mail(id, waiting.number))?;
        Ok(waiting)
    }

    /// Sends a request of a service, whose answer comes as mail to the service's shard.
    pub(crate) fn ask_for_service(
        &self,
        asker: (u16, u16),
        room_id: &str,
        message: InternalMessage,
    ) -> Result<u64> {
        let (id, shard) = self.place(room_id)?;
        let (own, service) = asker;
        let shared = Arc::clone(&self.shared);
        let post = move |ask, reply| {
            let mail = ShardMail::Answered { service, ask, reply };
            shared.mailboxes[usize::from(own)].push_promised(mail);
        };
        let number = self.node.asks.begin_for(shard, Asker::Service(Box::new(post)))?;
        let mail = Mail::Asked { from: None, ask: number, message };
        let posted = self.post(shard, ShardMail::Post { to: id, mail });
        if posted.is_err() {
            self.node.asks.forget(number);
        }
        posted.map(|()| number)
    }

    /// Expects an answer from a shard, which may take `more` time than usual.
    fn wait_for(&self, shard: u16, more: Duration) -> Result<Waiting> {
        let (number, answer) = self.node.asks.begin(shard, more)?;
        Ok(Waiting { node: Arc::clone(&self.node), number, answer })
    }

    /// Ends a room; its players receive this text. Does not wait for it.
    ///
    /// # Errors
    /// As [`tell`](Self::tell).
    pub fn close(&self, room_id: &str, text: impl Into<String>) -> Result<()> {
        let (id, shard) = self.place(room_id)?;
        self.post(shard, ShardMail::Close { room: id, text: text.into() })
    }

    /// The node's counters, as of each shard's last turn.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let recordings_lost = self.node.recordings.as_ref().map_or(0, Recordings::lost);
        Stats::read(&self.published, &self.shared.control_pulse.pulse, recordings_lost)
    }

    /// Returns whether the node has ended. Every call fails from then on.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.node.asks.has_ended()
    }

    /// The id and the shard of a room.
    fn place(&self, room_id: &str) -> Result<(RoomId, u16)> {
        let not_found = || {
            let id = playfield_wire::excerpt(room_id, 64);
            Error::new(ErrorCode::RoomNotFound, format!("no room has the id {id:?}"))
        };
        let id = RoomId::parse(room_id).ok_or_else(not_found)?;
        Ok((id, self.node.directory.find(id).ok_or_else(not_found)?.shard))
    }

    /// Puts mail into a shard's mailbox.
    pub(crate) fn post(&self, shard: u16, mail: ShardMail) -> Result<()> {
        if self.node.asks.has_ended() {
            return Err(asks::ended());
        }
        let index = usize::from(shard);
        if self.published[index].pulse.failed.load(Ordering::Relaxed) {
            return Err(asks::shard_failed(shard));
        }
        self.shared.mailboxes[index].push(Parcel::Mail(mail)).map_err(|_| {
            let text = "limits.queues.mail: the mailbox of the room's shard is full; try again";
            Error::new(ErrorCode::Busy, text)
        })
    }
}

impl fmt::Debug for NodeHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeHandle").finish_non_exhaustive()
    }
}

/// The reply to a request from [`NodeHandle::ask`], as a future.
pub type Asked<M> = Pending<<M as Message>::Reply>;

/// The answer of a room, or of its shard, as a future: see [`NodeHandle`].
#[must_use = "the answer arrives here, and with it any refusal"]
pub struct Pending<T> {
    state: State,
    read: fn(Answer) -> Result<T>,
}

enum State {
    Refused(Error),
    Waiting(Waiting),
    Done,
}

/// A request that was sent. Dropping it forgets it.
struct Waiting {
    node: Arc<Node>,
    number: u64,
    answer: Receiver<Answer>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.node.asks.forget(self.number);
    }
}

impl<T> Pending<T> {
    fn new(read: fn(Answer) -> Result<T>, begun: Result<Waiting>) -> Self {
        Self { state: begun.map_or_else(State::Refused, State::Waiting), read }
    }

    /// Blocks this thread until the reply is here, for `timeouts.ask` at most.
    ///
    /// Never call it in a room, a service or an asynchronous task: it would stop all others on the
    /// same thread, and the shard that it waits for may be its own.
    ///
    /// # Errors
    /// As [`NodeHandle::ask`].
    ///
    /// # Panics
    /// In an asynchronous task of Tokio; await it there.
    pub fn wait(self) -> Result<T> {
        match self.state {
            State::Refused(error) => Err(error),
            State::Waiting(mut waiting) => {
                let (_, nothing) = tokio::sync::oneshot::channel();
                let answer = std::mem::replace(&mut waiting.answer, nothing);
                (self.read)(answer.blocking_recv().unwrap_or_else(|_| Err(asks::ended())))
            }
            State::Done => Err(asks::ended()),
        }
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let State::Waiting(waiting) = &mut self.state {
            let Poll::Ready(answer) = Pin::new(&mut waiting.answer).poll(cx) else {
                return Poll::Pending;
            };
            self.state = State::Done;
            return Poll::Ready((self.read)(answer.unwrap_or_else(|_| Err(asks::ended()))));
        }
        match std::mem::replace(&mut self.state, State::Done) {
            State::Refused(error) => Poll::Ready(Err(error)),
            _ => panic!("a reply is polled again after it was returned"),
        }
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").finish_non_exhaustive()
    }
}

/// Reads an encoded reply to the request `M`.
pub(crate) fn read<M: Message>(answer: Answer) -> Result<M::Reply> {
    M::Reply::read(Format::Packed, &answer?).map_err(|error| {
        Error::new(ErrorCode::BadPayload, format!("the reply to {}: {error}", M::NAME))
    })
}
