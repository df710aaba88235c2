//! A room that this session is in, on the way from the connection to the handle.

use std::sync::Arc;

use playfield_state::{PlayerId, StateTranscoder, Transcoder};
use playfield_wire::DecodeError;
use playfield_wire::message::MessageRef;
use playfield_wire::schema::RoomSchema;

use super::command::{Answer, Entered};
use super::schemas::Build;
use super::shared::Sink;
use crate::Error;
use crate::core::{Joined, RoomEvent};

/// How many bytes wait for the node's schema. Past it patches are dropped, and a snapshot is asked
/// for; events are missed.
const HELD_BYTES_MAX: usize = 1 << 20;

pub(super) struct JoinedRoom {
    pub(super) sink: Arc<dyn Sink>,
    /// Who waits for the first snapshot.
    pub(super) entering: Option<(Joined<'static>, Answer<Entered>)>,
    /// What turns the node's schema into this client's, if they differ.
    pub(super) transcoder: Option<Arc<Transcoder>>,
    /// The same for the state, beside the node's copy.
    state: Option<StateTranscoder>,
    /// What waits until the node has told its schema.
    pub(super) held: Option<Held>,
    has_snapshot: bool,
    /// The snapshot that waited for the schema could not be read, and none has come since that can.
    is_unreadable: bool,
}

pub(super) struct Held {
    pub(super) build: Build,
    items: Vec<Item>,
    bytes: usize,
}

enum Item {
    Snapshot { version: u64, body: Vec<u8> },
    Patch { version: u64, body: Vec<u8> },
    Event(RoomEvent<'static>),
}

impl JoinedRoom {
    pub(super) fn new(
        sink: Arc<dyn Sink>,
        joined: Joined<'static>,
        answer: Answer<Entered>,
    ) -> Self {
        Self {
            sink,
            entering: Some((joined, answer)),
            transcoder: None,
            state: None,
            held: None,
            has_snapshot: false,
            is_unreadable: false,
        }
    }

    pub(super) fn snapshot(&mut self, version: u64, body: &[u8]) -> Result<(), DecodeError> {
        if let Some(held) = &mut self.held {
            held.snapshot(version, body);
            return Ok(());
        }
        match &mut self.state {
            None => self.sink.snapshot(version, body)?,
            Some(transcoder) => {
                let mut own = Vec::with_capacity(body.len());
                transcoder.snapshot(body, &mut own)?;
                self.sink.snapshot(version, &own)?;
            }
        }
        (self.has_snapshot, self.is_unreadable) = (true, false);
        Ok(())
    }

    pub(super) fn patch(&mut self, version: u64, body: &[u8]) -> Result<(), DecodeError> {
        if let Some(held) = &mut self.held {
            return held.patch(version, body);
        }
        if self.is_unreadable {
            return Err(DecodeError::new(0, "the snapshot before it could not be read"));
        }
        match &mut self.state {
            None => self.sink.patch(version, body),
            Some(transcoder) => {
                let mut own = Vec::with_capacity(body.len());
                transcoder.patch(body, &mut own)?;
                self.sink.patch(version, &own)
            }
        }
    }

    /// Whether the copy has this digest, as far as can be told. It is that of the node's copy, which
    /// is kept beside one of another schema.
    pub(super) fn check(&self, digest: u64) -> bool {
        match &self.state {
            _ if self.held.is_some() => true,
            Some(state) => state.digest().is_none_or(|own| own == digest),
            None => self.sink.check(digest),
        }
    }

    /// The node's schema differs from this client's.
    pub(super) fn turn(&mut self, transcoder: Arc<Transcoder>) {
        self.state = Some(transcoder.state(self.player()));
        self.transcoder = Some(transcoder);
    }

    fn player(&self) -> PlayerId {
        PlayerId(self.entering.as_ref().map_or(0, |(joined, _)| joined.player))
    }

    pub(super) fn event(&mut self, event: &RoomEvent<'_>) {
        if let Some(held) = &mut self.held {
            if !held.event(event) {
                self.sink.refused(Error::missed(1));
            }
            return;
        }
        let (Some(transcoder), MessageRef::Index(number)) = (&self.transcoder, &event.message)
        else {
            return self.sink.event(event);
        };
        let mut own = Vec::new();
        match transcoder.event(*number, &event.payload, &mut own) {
            Ok(Some(number)) => {
                let message = MessageRef::Index(number);
                self.sink.event(&RoomEvent { message, payload: own.into(), ..*event });
            }
            // This client was not built with it.
            Ok(None) => {}
            Err(error) => self.sink.refused(Error::payload("an event", error)),
        }
    }

    /// The copy is of this schema, of which it knew nothing.
    pub(super) fn learn(&self, schema: &RoomSchema) -> Result<(), Error> {
        self.sink.learn(schema, self.player())
    }

    /// From now on what comes waits.
    pub(super) fn hold(&mut self, build: Build) {
        self.held = Some(Held { build, items: Vec::new(), bytes: 0 });
    }

    /// What waited goes on its way. Says whether the copy needs a snapshot then.
    pub(super) fn release(&mut self, transcoder: Option<Arc<Transcoder>>) -> bool {
        if let Some(transcoder) = transcoder {
            self.turn(transcoder);
        }
        let mut is_out_of_step = false;
        for item in self.held.take().map(|held| held.items).unwrap_or_default() {
            match item {
                Item::Snapshot { version, body } => {
                    self.is_unreadable = self.snapshot(version, &body).is_err();
                    is_out_of_step = self.is_unreadable;
                }
                Item::Patch { version, body } => {
                    is_out_of_step = is_out_of_step || self.patch(version, &body).is_err();
                }
                Item::Event(event) => self.event(&event),
            }
        }
        is_out_of_step
    }

    /// Whether the last snapshot was held, and could not be read. The core took it for one that
    /// could.
    pub(super) fn is_unreadable(&self) -> bool {
        self.is_unreadable
    }

    /// Whether the copy is there.
    pub(super) fn has_snapshot(&self) -> bool {
        self.has_snapshot
    }
}

impl Held {
    fn snapshot(&mut self, version: u64, body: &[u8]) {
        // Whatever waits leads to a version before this one.
        self.items.retain(|item| matches!(item, Item::Event(_)));
        self.bytes = self.items.iter().map(Item::bytes).sum();
        self.put(Item::Snapshot { version, body: body.to_vec() });
    }

    fn patch(&mut self, version: u64, body: &[u8]) -> Result<(), DecodeError> {
        let item = Item::Patch { version, body: body.to_vec() };
        if self.put(item) {
            return Ok(());
        }
        Err(DecodeError::new(0, "too much came before the node had told its schema"))
    }

    fn event(&mut self, event: &RoomEvent<'_>) -> bool {
        self.put(Item::Event(event.to_static()))
    }

    fn put(&mut self, item: Item) -> bool {
        // A snapshot stands for all that came before it, and is held however large it is.
        let bytes = if matches!(item, Item::Snapshot { .. }) { 0 } else { item.bytes() };
        let fits = self.bytes + bytes <= HELD_BYTES_MAX;
        if fits {
            self.bytes += bytes;
            self.items.push(item);
        }
        fits
    }
}

impl Item {
    fn bytes(&self) -> usize {
        let body = match self {
            Self::Snapshot { body, .. } | Self::Patch { body, .. } => body.len(),
            Self::Event(event) => event.payload.len(),
        };
        size_of::<Self>() + body
    }
}
