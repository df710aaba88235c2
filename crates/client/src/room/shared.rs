//! State that the connection's task and the handle of one room share.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use playfield_state::{Pattern, PlayerId, ShapeError};
use playfield_wire::message::MessageRef;
use playfield_wire::{DecodeError, server};

use super::changes::{Changes, Listened, Listeners};
use super::copy::Copy;
use crate::queue::{EVENT_BYTES, Monitor, QueueLimits};
use crate::session::{RoomCopy, Translation, Update};
use crate::{Error, Mirror};

/// The copy and the events of one room. A lock is held while one update is applied or one event
/// is taken, never while waiting.
#[derive(Debug)]
pub(crate) struct Shared<M> {
    inner: Monitor<Inner<M>>,
    events: Monitor<Events>,
    limits: QueueLimits,
}

#[derive(Debug)]
struct Inner<M> {
    copy: Copy<M>,
    /// The count of the copy's changes that `changed` last returned for.
    changes_seen: u64,
    ended: Option<Error>,
}

#[derive(Debug, Default)]
struct Events {
    waiting: VecDeque<Result<RawEvent, Error>>,
    /// The sum of their costs.
    bytes: usize,
    missed: u64,
    ended: Option<Error>,
}

impl Events {
    fn next(&mut self) -> Option<Result<RawEvent, Error>> {
        let missed = std::mem::take(&mut self.missed);
        if missed > 0 {
            return Some(Err(Error::missed(missed)));
        }
        if let Some(event) = self.waiting.pop_front() {
            self.bytes -= bytes(&event);
            return Some(event);
        }
        self.ended.clone().map(Err)
    }
}

impl<M: Mirror> Inner<M> {
    /// After the end of the room nothing changes, but by what waits for readers.
    fn end_listeners(&mut self) {
        if let Some(error) = &self.ended
            && !self.copy.is_behind()
            && let Some(mut listeners) = self.copy.listeners.take()
        {
            listeners.end(error);
        }
    }
}

/// An event as the node sent it.
#[derive(Debug)]
pub(crate) struct RawEvent {
    pub(crate) message: MessageRef<'static>,
    pub(crate) sequence: u64,
    pub(crate) version: u64,
    pub(crate) payload: Vec<u8>,
}

impl<M: Mirror> Shared<M> {
    pub(crate) fn new(mirror: M, limits: QueueLimits) -> Self {
        let inner = Inner { copy: Copy::new(mirror), changes_seen: 1, ended: None };
        Self { inner: Monitor::new(inner), events: Monitor::new(Events::default()), limits }
    }

    /// Works on the copy, then wakes whoever waits for a change of it.
    pub(crate) fn with_copy<T>(&self, work: impl FnOnce(&mut Copy<M>) -> T) -> T {
        let mut inner = self.inner.lock();
        let before = inner.copy.changes();
        let result = work(&mut inner.copy);
        let is_changed = inner.copy.changes() != before;
        inner.end_listeners();
        drop(inner);
        if is_changed {
            self.inner.notify();
        }
        result
    }

    /// Waits until the copy has changed since the last call. `Err` if the room ended.
    pub(crate) async fn changed(&self) -> Result<(), Error> {
        let take = |inner: &mut Inner<M>| {
            let changes = inner.copy.changes();
            if changes > inner.changes_seen {
                inner.changes_seen = changes;
                return Some(Ok(()));
            }
            inner.ended.clone().map(Err)
        };
        self.inner.wait(take).await
    }

    /// Waits for the next event. `Err` if some were missed, a send failed, or the room ended.
    pub(crate) async fn next_event(&self) -> Result<RawEvent, Error> {
        self.events.wait(Events::next).await
    }

    /// Returns whether the next is an event of this kind.
    #[cfg(feature = "poll")]
    pub(crate) fn is_next(&self, is_so: impl FnOnce(&RawEvent) -> bool) -> bool {
        let events = self.events.lock();
        events.missed == 0 && matches!(events.waiting.front(), Some(Ok(event)) if is_so(event))
    }

    /// Why the room ended, if it has.
    pub(crate) fn ended(&self) -> Option<Error> {
        self.inner.lock().ended.clone()
    }

    /// Starts to report changes to a new listener. If a second copy is needed for it, calls `ask`
    /// to ask for the snapshot with which that starts.
    pub(crate) fn listen(
        self: &Arc<Self>,
        player: PlayerId,
        pattern: Option<Pattern>,
        ask: impl FnOnce(),
    ) -> Result<Changes, Error>
    where
        M: Send + Sync + 'static,
    {
        let mut guard = self.inner.lock();
        let Inner { copy, ended, .. } = &mut *guard;
        if let Some(error) = ended {
            return Err(error.clone());
        }
        let has_copy = copy.version() > 0;
        let listeners = match &mut copy.listeners {
            Some(listeners) => listeners,
            None => {
                let second = copy.read().change_reporter(player).map_err(Error::shape)?;
                if second.is_some() {
                    ask();
                }
                copy.listeners.insert(Listeners::new(second, has_copy))
            }
        };
        let queue = listeners.listen(pattern, self.limits.events_max);
        let room: Weak<Self> = Arc::downgrade(self);
        Ok(Changes::new(queue, room))
    }

    fn arrive(&self, event: Result<RawEvent, Error>) {
        let QueueLimits { events_max, event_bytes_max, .. } = self.limits;
        let bytes_max = self.limits.bytes_max();
        self.events.change(|events| {
            events.bytes += bytes(&event);
            events.waiting.push_back(event);
            while let (count, kept) = (events.waiting.len(), events.bytes)
                && ((count > events_max && kept > event_bytes_max)
                    || (count > 1 && kept > bytes_max))
                && let Some(oldest) = events.waiting.pop_front()
            {
                events.bytes -= bytes(&oldest);
                events.missed += oldest.map_or_else(|error| error.missed_count().max(1), |_| 1);
            }
        });
    }
}

/// The cost of an event, or of the refusal of a send.
fn bytes(event: &Result<RawEvent, Error>) -> usize {
    let bytes = match event {
        Ok(RawEvent { message: MessageRef::Name(name), payload, .. }) => name.len() + payload.len(),
        Ok(RawEvent { payload, .. }) => payload.len(),
        Err(error) => error.text().len(),
    };
    EVENT_BYTES + bytes
}

impl<M: Mirror + Send + Sync> Listened for Shared<M> {
    fn forget_gone(&self) {
        let listeners = &mut self.inner.lock().copy.listeners;
        if listeners.as_mut().is_some_and(|all| !all.forget_gone()) {
            *listeners = None;
        }
    }
}

/// The copy, as the session keeps it up to date. After the end of the room it does nothing.
impl<M: Mirror + Send + Sync> RoomCopy for Arc<Shared<M>> {
    fn apply(&mut self, update: &Update<'_>) -> Result<(), DecodeError> {
        if self.ended().is_some() {
            return Ok(());
        }
        self.with_copy(|copy| copy.update(update))
    }

    fn hold(&mut self) {
        self.with_copy(Copy::hold);
    }

    fn translate(
        &mut self,
        translation: &Translation,
        player: PlayerId,
    ) -> Result<bool, ShapeError> {
        let (transcoder, learned) = match translation {
            Translation::None => (None, None),
            Translation::Transcoded(transcoder) => (Some(transcoder.state(player)), None),
            Translation::Learned(learned) => (None, Some(learned)),
        };
        self.with_copy(|copy| {
            copy.translate(transcoder, |mirror| match learned {
                Some(learned) => mirror.set_schema(&learned.schema, player),
                None => Ok(()),
            })?;
            Ok(copy.settle().is_err())
        })
    }

    fn is_filled(&self) -> bool {
        self.inner.lock().copy.changes() > 0
    }

    fn digest_is(&mut self, digest: u64) -> bool {
        self.ended().is_some() || self.with_copy(|copy| copy.check(digest))
    }
}

/// The receiver of a room's events, whatever the type of its state.
pub(crate) trait Deliver: Send + Sync {
    fn event(&self, event: &server::Event<'_>);

    /// A `send` failed, or events were lost.
    fn failed(&self, error: Error);

    /// Nothing more will come.
    fn end(&self, error: Error);
}

impl<M: Mirror + Send + Sync> Deliver for Shared<M> {
    fn event(&self, event: &server::Event<'_>) {
        let server::Event { message, sequence, version, payload, .. } = event.to_static();
        let payload = payload.into_owned();
        self.arrive(Ok(RawEvent { message, sequence, version, payload }));
    }

    fn failed(&self, error: Error) {
        self.arrive(Err(error));
    }

    fn end(&self, error: Error) {
        self.inner.change(|inner| {
            inner.ended.get_or_insert_with(|| error.clone());
            inner.end_listeners();
        });
        self.events.change(|events| {
            events.ended.get_or_insert(error);
        });
    }
}
