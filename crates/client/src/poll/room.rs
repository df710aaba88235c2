//! A room that a polled connection is in: its copy, its events, and how its messages are written.

use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use playfield_state::PlayerId;
use playfield_wire::message::MessageRef;
use playfield_wire::server;
use serde_json::Value;

use super::QueueLimits;
use crate::Error;
use crate::room::{Changes, Deliver, Dynamic, DynamicCopy, Kind, RawEvent, Shared};
use crate::session::{Joined, Learned, Repair, RoomCopy, Translation, Unusable};

/// A room without types: values are JSON. Clones are the same room.
#[derive(Clone, Debug)]
pub struct Room {
    shared: Arc<Shared<DynamicCopy>>,
    learned: Arc<OnceLock<Arc<Learned>>>,
}

/// An event of a room, or why something of it failed.
#[derive(Debug)]
pub enum RoomNews {
    /// An event.
    Event {
        /// Its name.
        name: String,
        /// Its number in this room, from 1.
        sequence: u64,
        /// The version of the copy that holds everything synced before the event.
        version: u64,
        /// Its payload.
        payload: EventPayload,
    },
    /// Events were missed, or a message without a reply was refused.
    Failed(Error),
    /// This client is no longer in the room. This is the last.
    Ended(Error),
}

/// The payload of an event.
#[derive(Debug)]
pub enum EventPayload {
    /// A JSON value.
    Value(Value),
    /// In `packed`, checked by the room's schema.
    Packed(Vec<u8>),
}

impl Room {
    /// A room that is to be [entered](crate::session::Session::enter), which keeps this many events.
    #[must_use]
    pub fn new(limits: QueueLimits) -> Self {
        let shared = Arc::new(Shared::new(Dynamic::mirror(), limits));
        Self { shared, learned: Arc::default() }
    }

    /// The copy, for the session.
    #[must_use]
    pub fn copy(&self) -> Box<dyn RoomCopy + Send> {
        Box::new(Arc::clone(&self.shared))
    }

    /// The room was entered: how to read and write its messages and events.
    pub fn entered(&self, translation: &Translation) {
        if let Translation::Learned(learned) = translation {
            let _ = self.learned.set(Arc::clone(learned));
        }
    }

    fn learned(&self) -> Result<&Learned, Error> {
        let learned = self.learned.get().map(|learned| &**learned);
        learned.ok_or_else(|| Error::usage("the room is not entered yet"))
    }

    /// The version of the copy; 0 if there is none.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.shared.with_copy(|copy| copy.version())
    }

    /// The copy for a reader. It is frozen until the last of these is dropped, and
    /// [`settle`](Self::settle) is called.
    #[must_use]
    pub fn read(&self) -> Arc<DynamicCopy> {
        self.shared.with_copy(|copy| copy.read())
    }

    /// Applies the updates that waited for readers. Returns what the session is to
    /// [repair](crate::session::Session::repair), if one could not be applied.
    #[must_use]
    pub fn settle(&self) -> Option<Repair> {
        self.shared.with_copy(|copy| copy.repair())
    }

    /// Reports changes of the copy from now on.
    ///
    /// # Errors
    /// If this client is no longer in the room.
    pub fn changes(&self, joined: &Joined<'_>) -> Result<Changes, Error> {
        self.shared.listen(PlayerId(joined.player), None, || {})
    }

    /// The next change, if there is one.
    pub fn next_change(changes: &mut Changes) -> Option<Result<crate::Change, Error>> {
        now(changes.next())
    }

    /// Takes an event of the node.
    pub fn put(&self, event: &server::Event<'_>) {
        self.shared.event(event);
    }

    /// A message without a reply was refused by the node.
    pub fn put_refusal(&self, error: &server::Error<'_>) {
        self.shared.failed(Error::refused(error.code, &*error.text));
    }

    /// A message without a reply was not sent.
    pub fn put_failure(&self, error: Error) {
        self.shared.failed(error);
    }

    /// The node had to forget this many events.
    pub fn put_lost(&self, events: u64) {
        self.shared.failed(Error::lost_events(events));
    }

    /// This client was removed from the room, or has left it.
    pub fn left(&self, left: &server::Left<'_>) {
        self.shared.end(Error::left(left.code, &*left.text));
    }

    /// This client can't be in the room. Returns why.
    pub fn unusable(&self, why: Unusable) -> Error {
        let error = Error::from(why);
        self.shared.end(Error::unusable(error.clone()));
        error
    }

    /// The room was of an earlier session.
    pub fn end_session(&self) {
        self.shared.end(Error::new_session());
    }

    /// The connection has ended.
    pub fn close(&self, error: Error) {
        self.shared.end(error);
    }

    /// Why this client is no longer in the room, if so.
    #[must_use]
    pub fn ended(&self) -> Option<Error> {
        self.shared.ended()
    }

    /// The error of a command to a room of an earlier session.
    #[must_use]
    pub fn new_session() -> Error {
        Error::new_session()
    }

    /// The number of an event. `None` if the room has none with this name.
    ///
    /// # Errors
    /// If the room is not entered yet.
    pub fn event_number(&self, name: &str) -> Result<Option<u32>, Error> {
        let events = &self.learned()?.schema.events;
        Ok(events.iter().position(|event| event.name == name).map(|number| number as u32))
    }

    /// The next event, if there is one. Events that this client's schema does not have are left
    /// out. The payloads of events whose numbers are `packed` stay as they came.
    #[must_use]
    pub fn next(&self, packed: &[u32]) -> Option<RoomNews> {
        loop {
            match now(self.shared.next_event())? {
                Ok(event) => {
                    if let Some(news) = self.read_event(event, packed) {
                        return Some(news);
                    }
                }
                Err(error) if error.is_left() || error.is_closed() => {
                    return Some(RoomNews::Ended(error));
                }
                Err(error) => return Some(RoomNews::Failed(error)),
            }
        }
    }

    /// Returns whether [`next`](Self::next) takes an event whose number is one of `packed`.
    #[must_use]
    pub fn is_next_packed(&self, packed: &[u32]) -> bool {
        self.shared.is_next(
            |event| matches!(event.message, MessageRef::Index(index) if packed.contains(&index)),
        )
    }

    fn read_event(&self, event: RawEvent, packed: &[u32]) -> Option<RoomNews> {
        let RawEvent { message, sequence, version, payload } = event;
        let (Ok(learned), MessageRef::Index(index)) = (self.learned(), message) else {
            return None;
        };
        let exchange = &learned.exchange;
        let read = match packed.contains(&index) {
            true => exchange
                .check_event(index, &payload)
                .map(|name| (name, EventPayload::Packed(payload))),
            false => exchange
                .event(index, &payload)
                .map(|(name, value)| (name, EventPayload::Value(value))),
        };
        Some(match read {
            Ok((name, payload)) => {
                RoomNews::Event { name: name.to_owned(), sequence, version, payload }
            }
            Err(error) => RoomNews::Failed(Error::payload("an event", error)),
        })
    }

    /// A message's index and payload.
    ///
    /// # Errors
    /// If the room has no such message, or it has another type.
    pub fn message(&self, name: &str, message: &Value) -> Result<(u32, Vec<u8>), Error> {
        let written = self.learned()?.exchange.message(name, message);
        written.map_err(|error| Error::payload("the message", error))
    }

    /// The index of a message whose payload is in `packed`.
    ///
    /// # Errors
    /// If the room has no such message, or the payload is not one.
    pub fn packed_message(&self, name: &str, payload: &[u8]) -> Result<u32, Error> {
        let checked = self.learned()?.exchange.check_message(name, payload);
        checked.map_err(|error| Error::payload("the message", error))
    }

    /// Checks the reply, in `packed`, to the message with this index.
    ///
    /// # Errors
    /// If it is none.
    pub fn check_reply(&self, index: u32, payload: &[u8]) -> Result<(), Error> {
        let checked = self.learned()?.exchange.check_reply(index, payload);
        checked.map_err(|error| Error::payload("the reply", error))
    }

    /// The reply to the message with this index.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn reply(&self, index: u32, payload: &[u8]) -> Result<Value, Error> {
        let read = self.learned()?.exchange.reply(index, payload);
        read.map_err(|error| Error::payload("the reply", error))
    }
}

/// The output of a future, if it is there.
fn now<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}
