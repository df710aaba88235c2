//! Who waits for what: rooms, requests and subscriptions. `handling` delivers to them.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use playfield_wire::schema::RoomSchema;
use playfield_wire::server::RoomInfo;
use playfield_wire::{RequestNumber, RoomNumber};
use tokio::sync::mpsc;

use super::command::{Answer, Command, Entered, Place, Seat, Signals, Subscription};
use super::commands::Commands;
use super::status::Status;
use crate::Error;
use crate::channel::{self, History, Members};
use crate::device::Incoming;
use crate::ending::Fate;
use crate::error::Ending;
use crate::queue::Queue;
use crate::room::Deliver;
use crate::session::{Joined, NumberMap, SubscriptionNumber, Translation};

/// Who waits for what.
pub(super) struct Dispatch {
    /// Waits for the welcome, or for the end if that comes first.
    pub(super) welcomed: Option<Answer<()>>,
    pub(super) waiting: NumberMap<RequestNumber, Waiting>,
    pub(super) pings: HashMap<u64, Answer<Duration>>,
    pub(super) rooms: NumberMap<RoomNumber, JoinedRoom>,
    pub(super) subscriptions: HashMap<SubscriptionNumber, Subscribed>,
    /// Where commands to this device go. Its handle may be gone.
    pub(super) device: Weak<Queue<Incoming>>,
    /// Whether they are bytes.
    pub(super) device_has_bytes: bool,
    /// Rooms to leave once this many commands were taken, because their handles were dropped.
    pub(super) forsaken: Vec<(RoomNumber, u64)>,
    /// The time since the connection began.
    pub(super) now: Duration,
    /// What the handles ask for.
    pub(super) commands: Commands,
    /// How many sends of the session that is over the node has not confirmed.
    pub(super) unconfirmed: u64,
    /// Counts the sessions of this connection.
    pub(super) session: u32,
    /// When the connection was lost.
    pub(super) lost_at: Option<Duration>,
    pub(super) fate: Fate,
    pub(super) signals: Arc<Signals>,
    queue: mpsc::WeakSender<Command>,
    pub(super) ending: Arc<OnceLock<Ending>>,
    pub(super) status: Arc<Status>,
}

/// Who waits for the answer to a request.
pub(super) enum Waiting {
    Enter {
        room: Arc<dyn Deliver>,
        answer: Answer<Entered>,
    },
    /// A handle that asked for a schema.
    ShowSchema(Answer<RoomSchema>),
    Leave(Answer<()>),
    List(Answer<Vec<RoomInfo<'static>>>),
    Reply(Answer<Vec<u8>>),
    Published(Answer<u64>),
    Members(Answer<Members>),
    History(Answer<History>),
    Register {
        commands: Arc<Queue<Incoming>>,
        answer: Answer<(bool, bool)>,
    },
}

impl Waiting {
    /// Answers with an error.
    pub(super) fn fail(self, error: Error) {
        match self {
            Self::Enter { answer, .. } => drop(answer.send(Err(error))),
            Self::ShowSchema(answer) => drop(answer.send(Err(error))),
            Self::Leave(answer) => drop(answer.send(Err(error))),
            Self::List(answer) => drop(answer.send(Err(error))),
            Self::Reply(answer) => drop(answer.send(Err(error))),
            Self::Published(answer) => drop(answer.send(Err(error))),
            Self::Members(answer) => drop(answer.send(Err(error))),
            Self::History(answer) => drop(answer.send(Err(error))),
            Self::Register { answer, .. } => drop(answer.send(Err(error))),
        }
    }
}

/// A subscription to a channel.
pub(super) struct Subscribed {
    pub(super) subscriber: Arc<channel::Shared>,
    /// Who waits for the node's first answer.
    pub(super) beginning: Option<Answer<Subscription>>,
    /// As of the last answer.
    pub(super) epoch: u64,
    pub(super) is_bytes: bool,
}

/// A room that this session is in.
pub(super) struct JoinedRoom {
    pub(super) room: Arc<dyn Deliver>,
    /// Who waits for the first snapshot.
    pub(super) entering: Option<(Joined<'static>, Answer<Entered>)>,
}

impl Dispatch {
    #[expect(clippy::too_many_arguments, reason = "they are its parts")]
    pub(super) fn new(
        welcomed: Answer<()>,
        commands: Commands,
        signals: Arc<Signals>,
        queue: mpsc::WeakSender<Command>,
        ending: Arc<OnceLock<Ending>>,
        status: Arc<Status>,
        fate: Fate,
    ) -> Self {
        Self {
            welcomed: Some(welcomed),
            waiting: NumberMap::default(),
            pings: HashMap::new(),
            rooms: NumberMap::default(),
            subscriptions: HashMap::new(),
            device: Weak::new(),
            device_has_bytes: false,
            forsaken: Vec::new(),
            now: Duration::ZERO,
            commands,
            unconfirmed: 0,
            session: 0,
            lost_at: None,
            fate,
            signals,
            queue,
            ending,
            status,
        }
    }

    /// Whether a place is in the present session.
    pub(super) fn is_now(&self, place: Place) -> bool {
        place.session == self.session
    }

    /// A message without an answer was taken, or it was refused, as one that is too long is. Then it
    /// counts as not confirmed.
    pub(super) fn note_send(&mut self, is_taken: bool) {
        self.unconfirmed += u64::from(!is_taken);
    }

    /// Whether this is the number of the present session.
    pub(super) fn is_session(&self, session: u32) -> bool {
        session == self.session
    }

    fn place(&self, room: RoomNumber) -> Place {
        Place { session: self.session, room }
    }

    /// How long the connection was lost, if it was.
    pub(super) fn away(&mut self) -> Duration {
        self.lost_at.take().map_or(Duration::ZERO, |since| self.now.saturating_sub(since))
    }

    /// This client can't be in the room, and leaves it.
    pub(super) fn refuse(&mut self, number: RoomNumber, error: Error) {
        let is_entering = self.rooms.get(&number).is_some_and(|room| room.entering.is_some());
        self.end(number, if is_entering { error } else { Error::unusable(error) });
    }

    pub(super) fn end(&mut self, room: RoomNumber, error: Error) {
        if let Some(JoinedRoom { room, entering }) = self.rooms.remove(&room) {
            room.end(error.clone());
            if let Some((_, answer)) = entering {
                let _ = answer.send(Err(error));
            }
        }
    }

    /// Commands go to another handle from now on, or to none.
    pub(super) fn replace_device(&mut self, commands: Weak<Queue<Incoming>>) {
        if let Some(before) = std::mem::replace(&mut self.device, commands).upgrade() {
            before.end();
        }
    }

    /// Answers the handle that enters a room: its copy is there.
    pub(super) fn entered(&mut self, number: RoomNumber, translation: Translation) {
        let place = self.place(number);
        if let Some(room) = self.rooms.get_mut(&number)
            && let Some((joined, answer)) = room.entering.take()
        {
            let (signals, commands) = (Arc::clone(&self.signals), self.queue.clone());
            let seat = Seat { place, signals, commands };
            let _ = answer.send(Ok(Entered { joined, seat, translation }));
        }
    }
}
