//! What the connection's task and the handle of one room share.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use playfield_state::{Pattern, PlayerId};
use playfield_wire::DecodeError;
use playfield_wire::message::MessageRef;
use playfield_wire::schema::RoomSchema;
use tokio::sync::Notify;

use super::changes::{Changes, Listened, Watcher};
use super::copy::SharedCopy;
use crate::core::RoomEvent;
use crate::{Error, Mirror};

/// A room as the connection's task sees it, whatever the type of its state.
pub(super) trait Sink: Send + Sync {
    fn snapshot(&self, version: u64, body: &[u8]) -> Result<(), DecodeError>;
    fn patch(&self, version: u64, body: &[u8]) -> Result<(), DecodeError>;
    /// Whether the copy comes to this digest.
    fn check(&self, digest: u64) -> bool;
    fn event(&self, event: &RoomEvent<'_>);
    /// A `send` came to nothing.
    fn refused(&self, error: Error);
    /// The copy is of this schema, of which it knew nothing, and for this player.
    fn learn(&self, schema: &RoomSchema, player: PlayerId) -> Result<(), Error>;
    /// Nothing more will come.
    fn end(&self, error: Error);
}

/// What both share. The lock is held for as long as one body is applied or one event taken, never
/// while waiting.
#[derive(Debug)]
pub(super) struct Shared<M> {
    inner: Mutex<Inner<M>>,
    /// The copy changed, or the room ended.
    changed: Notify,
    /// An event came, or the room ended.
    arrived: Notify,
    events_max: usize,
}

#[derive(Debug)]
struct Inner<M> {
    copy: SharedCopy<M>,
    /// Tells what changes; there is none while nobody listens.
    watcher: Option<Watcher>,
    /// The changes of the copy that `changed` has told of.
    changes_told: u64,
    events: VecDeque<Arrived>,
    events_missed: u64,
    ended: Option<Error>,
}

#[derive(Debug)]
enum Arrived {
    Event(RawEvent),
    Refused(Error),
}

/// An event as it came.
#[derive(Debug)]
pub(super) struct RawEvent {
    pub(super) message: MessageRef<'static>,
    pub(super) sequence: u64,
    pub(super) version: u64,
    pub(super) payload: Vec<u8>,
}

impl<M: Mirror> Shared<M> {
    pub(super) fn new(mirror: M, events_max: usize) -> Self {
        let inner = Inner {
            copy: SharedCopy::new(mirror),
            watcher: None,
            changes_told: 1,
            events: VecDeque::new(),
            events_missed: 0,
            ended: None,
        };
        Self {
            inner: Mutex::new(inner),
            changed: Notify::new(),
            arrived: Notify::new(),
            events_max,
        }
    }

    /// Works on the copy, then tells whoever waits for a change of it.
    pub(super) fn with_copy<T>(&self, work: impl FnOnce(&mut SharedCopy<M>) -> T) -> T {
        let mut inner = self.lock();
        let before = inner.copy.changes();
        let result = work(&mut inner.copy);
        let changed = inner.copy.changes() != before;
        drop(inner);
        if changed {
            self.changed.notify_waiters();
        }
        result
    }

    /// Waits for a change of the copy that was not told of yet. `Err` if the room ended.
    pub(super) async fn changed(&self) -> Result<(), Error> {
        loop {
            // Made before looking, so that no notice falls between.
            let notified = self.changed.notified();
            {
                let mut inner = self.lock();
                let changes = inner.copy.changes();
                if changes > inner.changes_told {
                    inner.changes_told = changes;
                    return Ok(());
                }
                if let Some(error) = &inner.ended {
                    return Err(error.clone());
                }
            }
            notified.await;
        }
    }

    /// Waits for the next event. `Err` if some were missed, a send was refused, or the room ended.
    pub(super) async fn next_event(&self) -> Result<RawEvent, Error> {
        loop {
            let notified = self.arrived.notified();
            {
                let mut inner = self.lock();
                let missed = std::mem::take(&mut inner.events_missed);
                if missed > 0 {
                    return Err(Error::missed(missed));
                }
                match inner.events.pop_front() {
                    Some(Arrived::Event(event)) => return Ok(event),
                    Some(Arrived::Refused(error)) => return Err(error),
                    None => {}
                }
                if let Some(error) = &inner.ended {
                    return Err(error.clone());
                }
            }
            notified.await;
        }
    }

    /// Why the room ended, if it has.
    pub(super) fn ended(&self) -> Option<Error> {
        self.lock().ended.clone()
    }

    /// Has a body read by the copy that tells what changes, if there is one.
    fn watch(
        &self,
        read: impl FnOnce(&mut Watcher) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        self.lock().watcher.as_mut().map_or(Ok(()), read)
    }

    /// What the copy itself could read can't be told of: that ends the listening, and nothing else.
    fn end_watch(&self, error: DecodeError) {
        if let Some(watcher) = self.lock().watcher.take() {
            watcher.end(&Error::payload("what changed", error));
        }
    }

    /// Begins to listen for changes, from the copy that the next snapshot brings if nobody listens
    /// yet: then `ask` asks for it.
    pub(super) fn listen(
        self: &Arc<Self>,
        player: PlayerId,
        pattern: Option<Pattern>,
        ask: impl FnOnce(),
    ) -> Result<Changes, Error>
    where
        M: Send + Sync + 'static,
    {
        let mut guard = self.lock();
        let inner = &mut *guard;
        if let Some(error) = &inner.ended {
            return Err(error.clone());
        }
        let watcher = match &mut inner.watcher {
            Some(watcher) => watcher,
            none => {
                let mirror = inner.copy.look().watcher(player).ok_or_else(|| {
                    Error::usage("the copy of this room's state can't tell what changes in it")
                })?;
                ask();
                none.insert(Watcher::new(mirror))
            }
        };
        let queue = watcher.listen(pattern, self.events_max);
        let room: Weak<Self> = Arc::downgrade(self);
        Ok(Changes::new(queue, room))
    }

    fn arrive(&self, arrived: Arrived) {
        let mut inner = self.lock();
        if inner.events.len() >= self.events_max {
            inner.events.pop_front();
            inner.events_missed += 1;
        }
        inner.events.push_back(arrived);
        drop(inner);
        self.arrived.notify_waiters();
    }

    fn lock(&self) -> MutexGuard<'_, Inner<M>> {
        // A mirror that panicked in a patch is half changed, as after an error.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M: Mirror + Send + Sync> Listened for Shared<M> {
    fn forget_gone(&self) {
        let mut inner = self.lock();
        if inner.watcher.as_mut().is_some_and(|watcher| !watcher.forget_gone()) {
            inner.watcher = None;
        }
    }
}

impl<M: Mirror + Send + Sync> Sink for Shared<M> {
    fn snapshot(&self, version: u64, body: &[u8]) -> Result<(), DecodeError> {
        self.with_copy(|copy| copy.snapshot(version, body))?;
        if let Err(error) = self.watch(|watcher| watcher.snapshot(body)) {
            self.end_watch(error);
        }
        Ok(())
    }

    fn patch(&self, version: u64, body: &[u8]) -> Result<(), DecodeError> {
        let watched = self.watch(|watcher| watcher.patch(body));
        // What neither can read is mended by a snapshot for both.
        self.with_copy(|copy| copy.patch(version, body))?;
        if let Err(error) = watched {
            self.end_watch(error);
        }
        Ok(())
    }

    fn check(&self, digest: u64) -> bool {
        self.with_copy(|copy| copy.check(digest))
    }

    fn event(&self, event: &RoomEvent<'_>) {
        let RoomEvent { mut message, sequence, version, mut payload, .. } = event.to_static();
        if let MessageRef::Index(number) = message
            && let Some(read) = self.with_copy(|copy| copy.look().event_in_json(number, &payload))
        {
            match read {
                Ok((name, json)) => {
                    (message, payload) = (MessageRef::Name(name.into()), json.into())
                }
                Err(error) => return self.refused(Error::payload("an event", error)),
            }
        }
        self.arrive(Arrived::Event(RawEvent {
            message,
            sequence,
            version,
            payload: payload.into_owned(),
        }));
    }

    fn refused(&self, error: Error) {
        self.arrive(Arrived::Refused(error));
    }

    fn learn(&self, schema: &RoomSchema, player: PlayerId) -> Result<(), Error> {
        self.with_copy(|copy| copy.learn(schema, player)).map_err(Error::shape)
    }

    fn end(&self, error: Error) {
        let mut inner = self.lock();
        let error = inner.ended.get_or_insert(error).clone();
        if let Some(watcher) = inner.watcher.take() {
            watcher.end(&error);
        }
        drop(inner);
        self.changed.notify_waiters();
        self.arrived.notify_waiters();
    }
}
