//! From what the core tells to the handles that wait for it.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use playfield_wire::schema::RoomSchema;
use playfield_wire::server::RoomInfo;
use playfield_wire::{DecodeError, ErrorCode};
use tokio::sync::mpsc;

use super::command::{Answer, Enter, Entered, Seat, Signal};
use super::joined_room::JoinedRoom;
use super::schema_requests::SchemaRequests;
use super::schemas::{Build, Fit, Schemas};
use super::shared::Sink;
use crate::Error;
use crate::core::{
    ClientError, Failure, Handler, Joined, NumberMap, OutOfStep, RoomEvent, Welcome, static_info,
};
use crate::error::Ending;

/// Who waits for what.
pub(super) struct Dispatch {
    /// Told of the welcome, or of the end if that comes first.
    pub(super) welcomed: Option<Answer<()>>,
    pub(super) waiting: NumberMap<Waiting>,
    pub(super) pings: HashMap<u64, Answer<Duration>>,
    pub(super) rooms: NumberMap<JoinedRoom>,
    /// Rooms to leave, for whom there is no handle any more.
    pub(super) forsaken: Vec<u32>,
    pub(super) schemas: Schemas,
    pub(super) schema_requests: SchemaRequests,
    /// The time since the connection began, as it was last told.
    pub(super) now: Duration,
    /// Wishes that wait for the schema of a room type.
    pub(super) unready: Vec<(String, Enter)>,
    /// Wishes that waited, and can be followed now.
    pub(super) ready: Vec<Enter>,
    pub(super) socket_error: Option<io::Error>,
    signals: mpsc::UnboundedSender<Signal>,
    ending: Arc<OnceLock<Ending>>,
    /// Why the node said that it ends the connection.
    parting: Option<(ErrorCode, String)>,
}

/// Who waits for the answer to a request.
pub(super) enum Waiting {
    Enter {
        build: Option<Build>,
        sink: Arc<dyn Sink>,
        answer: Answer<Entered>,
    },
    /// Those who wait for the schema of this room type.
    Schema(String),
    /// Who wants to see a schema.
    Told(Answer<RoomSchema>),
    Leave(Answer<()>),
    List(Answer<Vec<RoomInfo<'static>>>),
    Reply(Answer<Vec<u8>>),
}

impl Dispatch {
    pub(super) fn new(
        welcomed: Answer<()>,
        signals: mpsc::UnboundedSender<Signal>,
        ending: Arc<OnceLock<Ending>>,
        named: impl IntoIterator<Item = String>,
        schema_timeout: Duration,
    ) -> Self {
        Self {
            welcomed: Some(welcomed),
            waiting: NumberMap::default(),
            pings: HashMap::new(),
            rooms: NumberMap::default(),
            forsaken: Vec::new(),
            schemas: Schemas::new(named),
            schema_requests: SchemaRequests::new(schema_timeout),
            now: Duration::ZERO,
            unready: Vec::new(),
            ready: Vec::new(),
            socket_error: None,
            signals,
            ending,
            parting: None,
        }
    }

    /// The node does not tell the schema of a room type: whoever waits for it can't enter.
    pub(super) fn no_schema(&mut self, room_type: &str, error: &Error) {
        self.schema_requests.forget(room_type);
        for (_, wish) in self.unready.extract_if(.., |(waits_for, _)| waits_for == room_type) {
            let _ = wish.answer.send(Err(error.clone()));
        }
        for room in self.holding(room_type) {
            self.refuse(room, error.clone());
        }
    }

    /// The node was waited for as long as may be. Should it answer later, nobody listens.
    pub(super) fn give_up_schemas(&mut self) {
        for room_type in self.schema_requests.expired(self.now) {
            self.waiting
                .retain(|_, waiting| !matches!(waiting, Waiting::Schema(of) if *of == room_type));
            let error = Error::no_schema(&room_type, self.schema_requests.timeout());
            self.no_schema(&room_type, &error);
        }
    }

    /// The schema of a room type is known: what waited for it goes on.
    fn schema_known(&mut self, room_type: &str) {
        self.schema_requests.answered(self.now, room_type);
        let ready = self.unready.extract_if(.., |(waits_for, _)| waits_for == room_type);
        self.ready.extend(ready.map(|(_, wish)| wish));
        for room in self.holding(room_type) {
            let Some(inside) = self.rooms.get_mut(&room) else { continue };
            let (Some(held), Some((joined, _))) = (&inside.held, &inside.entering) else {
                continue;
            };
            let transcoder =
                match self.schemas.fit(room_type, &held.build, Some(joined.fingerprint)) {
                    Fit::Grown(transcoder) => Some(transcoder),
                    Fit::Learned(schema) => match inside.learn(&schema) {
                        Ok(()) => None,
                        Err(error) => {
                            self.refuse(room, error);
                            continue;
                        }
                    },
                    Fit::Not(error) => {
                        self.refuse(room, error);
                        continue;
                    }
                    // A room of the same schema holds nothing, and an answer that tells nothing is
                    // an error.
                    Fit::Same | Fit::Unknown => continue,
                };
            if inside.release(transcoder) {
                let _ = self.signals.send(Signal::Resync { room });
            }
            self.entered(room);
        }
    }

    /// The rooms of a type that wait for its schema.
    fn holding(&self, room_type: &str) -> Vec<u32> {
        let waits = |inside: &JoinedRoom| {
            inside.held.is_some()
                && inside.entering.as_ref().is_some_and(|(joined, _)| joined.room_type == room_type)
        };
        self.rooms.iter().filter(|(_, inside)| waits(inside)).map(|(room, _)| *room).collect()
    }

    /// A room that this client can't be in.
    fn refuse(&mut self, room: u32, error: Error) {
        if let Some(JoinedRoom { sink, entering, .. }) = self.rooms.remove(&room) {
            sink.end(error.clone());
            if let Some((_, answer)) = entering {
                let _ = answer.send(Err(error));
            }
            self.forsaken.push(room);
        }
    }

    /// Answers who waits for a room, now that the copy is there.
    fn entered(&mut self, room: u32) {
        let Some(inside) = self.rooms.get_mut(&room) else { return };
        if inside.has_snapshot()
            && let Some((joined, answer)) = inside.entering.take()
        {
            let seat = Seat { room, signals: self.signals.clone() };
            let transcoder = inside.transcoder.clone();
            let _ = answer.send(Ok(Entered { joined, seat, transcoder }));
        }
    }
}

// Whoever asked may have stopped waiting, so that an answer finds nobody is never an error.
impl Handler for Dispatch {
    fn welcome(&mut self, _: &Welcome<'_>) {
        if let Some(welcomed) = self.welcomed.take() {
            let _ = welcomed.send(Ok(()));
        }
    }

    fn joined(&mut self, request: u32, joined: &Joined<'_>) {
        let Some(Waiting::Enter { build, sink, answer }) = self.waiting.remove(&request) else {
            return;
        };
        self.schemas.met(&joined.room_type, joined.fingerprint);
        let mut inside = JoinedRoom::new(sink, joined.to_static(), answer);
        if let Some(build) = build {
            match self.schemas.fit(&joined.room_type, &build, Some(joined.fingerprint)) {
                Fit::Same => {}
                Fit::Grown(transcoder) => inside.turn(transcoder),
                Fit::Learned(schema) => {
                    if let Err(error) = inside.learn(&schema) {
                        self.rooms.insert(joined.room, inside);
                        return self.refuse(joined.room, error);
                    }
                }
                Fit::Unknown => {
                    inside.hold(build);
                    self.schema_requests.ask(self.now, &joined.room_type);
                }
                Fit::Not(error) => {
                    self.rooms.insert(joined.room, inside);
                    return self.refuse(joined.room, error);
                }
            }
        }
        self.rooms.insert(joined.room, inside);
    }

    fn schema(&mut self, request: Option<u32>, room_type: &str, schema: &[u8]) {
        match request.and_then(|request| self.waiting.remove(&request)) {
            Some(Waiting::Told(answer)) => {
                let _ = answer.send(RoomSchema::from_json(schema).map_err(Error::schema));
            }
            // What was asked for counts, whatever the answer calls it.
            Some(Waiting::Schema(asked)) => {
                self.schemas.learn(&asked, schema);
                self.schema_known(&asked);
            }
            _ => {
                if self.schemas.told(room_type, schema) {
                    self.schema_known(room_type);
                }
            }
        }
    }

    fn listed(&mut self, request: u32, rooms: &[RoomInfo<'_>]) {
        if let Some(Waiting::List(answer)) = self.waiting.remove(&request) {
            let _ = answer.send(Ok(rooms.iter().map(static_info).collect()));
        }
    }

    fn left(&mut self, room: u32, request: Option<u32>, code: ErrorCode, text: &str) {
        if let Some(JoinedRoom { sink, entering, .. }) = self.rooms.remove(&room) {
            sink.end(Error::left(code, text));
            if let Some((_, answer)) = entering {
                let _ = answer.send(Err(Error::left(code, text)));
            }
        }
        if let Some(Waiting::Leave(answer)) =
            request.and_then(|request| self.waiting.remove(&request))
        {
            let _ = answer.send(Ok(()));
        }
    }

    fn reply(&mut self, request: u32, payload: &[u8]) {
        if let Some(Waiting::Reply(answer)) = self.waiting.remove(&request) {
            let _ = answer.send(Ok(payload.to_vec()));
        }
    }

    fn failed(&mut self, request: u32, failure: &Failure<'_>) {
        if *failure == Failure::Closed {
            // They are told once it is known how the connection ended.
            return;
        }
        let error = Error::from(failure);
        match self.waiting.remove(&request) {
            Some(Waiting::Enter { answer, .. }) => drop(answer.send(Err(error))),
            Some(Waiting::Leave(answer)) => drop(answer.send(Err(error))),
            Some(Waiting::List(answer)) => drop(answer.send(Err(error))),
            Some(Waiting::Reply(answer)) => drop(answer.send(Err(error))),
            Some(Waiting::Told(answer)) => drop(answer.send(Err(error))),
            Some(Waiting::Schema(room_type)) => {
                let is_asked_again = match failure {
                    Failure::Refused { code: ErrorCode::Limit, text } => {
                        self.schema_requests.too_often(self.now, &room_type, text)
                    }
                    Failure::Lost => self.schema_requests.lost(&room_type),
                    _ => false,
                };
                if !is_asked_again {
                    self.no_schema(&room_type, &error);
                }
            }
            None => {}
        }
    }

    fn event(&mut self, event: &RoomEvent<'_>) {
        if let Some(inside) = self.rooms.get_mut(&event.room) {
            inside.event(event);
        }
    }

    fn missed(&mut self, room: u32, events: u64) {
        if let Some(inside) = self.rooms.get(&room) {
            inside.sink.refused(Error::lost_events(events));
        }
    }

    fn snapshot(&mut self, room: u32, version: u64, body: &[u8]) -> Result<(), DecodeError> {
        let Some(inside) = self.rooms.get_mut(&room) else { return Ok(()) };
        match inside.snapshot(version, body) {
            Ok(()) => self.entered(room),
            // To the core it would be the first; but it was asked for since one that was held could
            // not be read, and a third would be no better.
            Err(error) if inside.is_unreadable() => {
                self.refuse(room, Error::payload("the room's state", error));
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn patch(&mut self, room: u32, version: u64, body: &[u8]) -> Result<(), DecodeError> {
        self.rooms.get_mut(&room).map_or(Ok(()), |inside| inside.patch(version, body))
    }

    fn check(&mut self, room: u32, digest: u64) -> bool {
        self.rooms.get(&room).is_none_or(|inside| inside.check(digest))
    }

    fn out_of_step(&mut self, room: u32, why: &OutOfStep) {
        // The core sees to anything else.
        let OutOfStep::NoSnapshot(error) = why else { return };
        let error = Error::payload("the room's state", error.clone());
        if let Some(inside) = self.rooms.get_mut(&room) {
            inside.sink.end(error.clone());
            if let Some((_, answer)) = inside.entering.take() {
                let _ = answer.send(Err(error));
            }
            self.forsaken.push(room);
        }
    }

    fn error(&mut self, room: Option<u32>, code: ErrorCode, text: &str) {
        match room {
            Some(room) => {
                if let Some(inside) = self.rooms.get(&room) {
                    inside.sink.refused(Error::refused(code, text));
                }
            }
            None if code.closes() => self.parting = Some((code, text.to_owned())),
            None => {}
        }
    }

    fn pong(&mut self, nonce: u64, round_trip: Duration) {
        if let Some(answer) = self.pings.remove(&nonce) {
            let _ = answer.send(Ok(round_trip));
        }
    }

    fn goodbye(&mut self, code: ErrorCode, text: &str) {
        self.parting = Some((code, text.to_owned()));
    }

    fn closed(&mut self, error: Option<&ClientError>) {
        let ending = match (error, self.parting.take(), self.socket_error.take()) {
            (None | Some(ClientError::Ended { .. }), Some((code, text)), _) => {
                Ending::Goodbye { code, text }
            }
            (None, None, _) => Ending::Here,
            (Some(ClientError::Ended { .. }), None, Some(error)) => Ending::Socket(Arc::new(error)),
            (Some(error), _, _) => Ending::Broken(error.clone()),
        };
        let ending = self.ending.get_or_init(|| ending);
        for inside in self.rooms.values() {
            inside.sink.end(Error::closed(ending.clone()));
        }
        if let Some(welcomed) = self.welcomed.take() {
            let error = match ending {
                Ending::Goodbye { code, text } => Error::refused(*code, text),
                ending => Error::closed(ending.clone()),
            };
            let _ = welcomed.send(Err(error));
        }
        // Whoever waits learns from the ending why there is no answer.
        self.rooms.clear();
        self.schema_requests.clear();
        self.unready.clear();
        self.ready.clear();
        self.waiting.clear();
        self.pings.clear();
    }
}
