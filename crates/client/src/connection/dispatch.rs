//! Delivers what the core reports to the handles that wait for it.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use playfield_state::PlayerId;
use playfield_wire::schema::RoomSchema;
use playfield_wire::server::RoomInfo;
use playfield_wire::{DecodeError, ErrorCode, RequestNumber, RoomNumber};
use tokio::sync::mpsc;

use super::command::{Answer, Command, Enter, Entered, Place, Seat, Signal, Signals};
use super::commands::Commands;
use super::schema_requests::SchemaRequests;
use super::schemas::{Build, Schemas};
use super::sink::{Sink, Translation};
use super::status::{ConnectionEvent, Status};
use crate::Error;
use crate::core::{
    ClientError, Failure, Handler, Joined, NumberMap, OutOfStep, Resumed, RoomEvent, Update,
    Welcome, static_info,
};
use crate::error::Ending;

/// Who waits for what.
pub(super) struct Dispatch {
    /// Waits for the welcome, or for the end if that comes first.
    welcomed: Option<Answer<()>>,
    pub(super) waiting: NumberMap<RequestNumber, Waiting>,
    pub(super) pings: HashMap<u64, Answer<Duration>>,
    pub(super) rooms: NumberMap<RoomNumber, JoinedRoom>,
    /// Rooms to leave, because their handles were dropped, once so many commands were taken.
    pub(super) forsaken: Vec<(RoomNumber, u64)>,
    pub(super) schemas: Schemas,
    pub(super) schema_requests: SchemaRequests,
    /// The time since the connection began.
    pub(super) now: Duration,
    /// Requests to enter a room that wait for the schema of a room type.
    pub(super) unready: Vec<(String, Enter)>,
    /// Requests to enter a room that have the schema they waited for.
    pub(super) ready: Vec<Enter>,
    pub(super) socket_error: Option<io::Error>,
    /// What the handles ask for.
    pub(super) commands: Commands,
    /// How many sends of the session that is over the node has not confirmed.
    unconfirmed: u64,
    /// Counts the sessions of this connection.
    session: u32,
    /// When the connection was lost, and why.
    lost: Option<(Duration, Ending)>,
    /// How long the task has tried to restore the connection, and how the last attempt failed.
    pub(super) gave_up: Option<(Duration, Error)>,
    /// Room types that the hello names.
    named: Vec<String>,
    signals: Arc<Signals>,
    queue: mpsc::WeakSender<Command>,
    ending: Arc<OnceLock<Ending>>,
    status: Arc<Status>,
    /// Why the node said that it ends the connection.
    goodbye: Option<(ErrorCode, String)>,
    /// How long it wants this client to wait.
    pub(super) retry_after: Option<Duration>,
}

/// Who waits for the answer to a request.
pub(super) enum Waiting {
    Enter {
        build: Option<Build>,
        sink: Arc<dyn Sink>,
        answer: Answer<Entered>,
    },
    /// All that wait for the schema of this room type.
    Schema(String),
    /// A handle that asked for a schema.
    ShowSchema(Answer<RoomSchema>),
    Leave(Answer<()>),
    List(Answer<Vec<RoomInfo<'static>>>),
    Reply(Answer<Vec<u8>>),
}

impl Waiting {
    /// Answers with an error. Schemas are handled by [`Dispatch::no_schema`].
    pub(super) fn fail(self, error: Error) {
        match self {
            Self::Enter { answer, .. } => drop(answer.send(Err(error))),
            Self::ShowSchema(answer) => drop(answer.send(Err(error))),
            Self::Leave(answer) => drop(answer.send(Err(error))),
            Self::List(answer) => drop(answer.send(Err(error))),
            Self::Reply(answer) => drop(answer.send(Err(error))),
            Self::Schema(_) => {}
        }
    }
}

/// A room that this session is in.
pub(super) struct JoinedRoom {
    pub(super) sink: Arc<dyn Sink>,
    translation: Translation,
    /// Who waits for the first snapshot.
    entering: Option<(Joined<'static>, Answer<Entered>)>,
    /// What this client was built with, while the node's schema is awaited.
    held: Option<Build>,
}

impl Dispatch {
    pub(super) fn new(
        welcomed: Answer<()>,
        commands: Commands,
        signals: Arc<Signals>,
        queue: mpsc::WeakSender<Command>,
        ending: Arc<OnceLock<Ending>>,
        status: Arc<Status>,
        named: Vec<String>,
        schema_timeout: Duration,
    ) -> Self {
        Self {
            welcomed: Some(welcomed),
            waiting: NumberMap::default(),
            pings: HashMap::new(),
            rooms: NumberMap::default(),
            forsaken: Vec::new(),
            schemas: Schemas::new(named.iter().cloned()),
            schema_requests: SchemaRequests::new(schema_timeout),
            now: Duration::ZERO,
            unready: Vec::new(),
            ready: Vec::new(),
            socket_error: None,
            commands,
            unconfirmed: 0,
            session: 0,
            lost: None,
            gave_up: None,
            named,
            signals,
            queue,
            ending,
            status,
            goodbye: None,
            retry_after: None,
        }
    }

    /// Whether a place is in the present session.
    pub(super) fn is_now(&self, place: Place) -> bool {
        place.session == self.session
    }

    fn place(&self, room: RoomNumber) -> Place {
        Place { session: self.session, room }
    }

    /// How long the connection was lost, if it was.
    fn away(&mut self) -> Duration {
        self.lost.take().map_or(Duration::ZERO, |(since, _)| self.now.saturating_sub(since))
    }

    /// The schema of a room type will not come: fails all that wait for it.
    pub(super) fn no_schema(&mut self, room_type: &str, error: &Error) {
        self.schema_requests.forget(room_type);
        for (_, enter) in self.unready.extract_if(.., |(waits_for, _)| waits_for == room_type) {
            let _ = enter.answer.send(Err(error.clone()));
        }
        for (room, _) in self.holding(room_type) {
            self.refuse(room, error.clone());
        }
    }

    /// Stops waiting for schemas that the node did not send in time. Later answers are ignored.
    pub(super) fn give_up_schemas(&mut self) {
        for room_type in self.schema_requests.expired(self.now) {
            self.waiting
                .retain(|_, waiting| !matches!(waiting, Waiting::Schema(of) if *of == room_type));
            let error = Error::no_schema(&room_type, self.schema_requests.timeout());
            self.no_schema(&room_type, &error);
        }
    }

    /// The schema of a room type is known: continues all that waited for it.
    fn schema_known(&mut self, room_type: &str) {
        self.schema_requests.answered(self.now, room_type);
        let ready = self.unready.extract_if(.., |(waits_for, _)| waits_for == room_type);
        self.ready.extend(ready.map(|(_, enter)| enter));
        for (room, fingerprint) in self.holding(room_type) {
            let Some(build) = self.rooms.get_mut(&room).and_then(|room| room.held.take()) else {
                continue;
            };
            match self.schemas.translation(room_type, &build, Some(fingerprint)) {
                Ok(translation) => self.translate(room, translation.unwrap_or(Translation::None)),
                Err(error) => self.refuse(room, error),
            }
            self.entered(room);
        }
    }

    /// The rooms of a type that wait for its schema, and their fingerprints.
    fn holding(&self, room_type: &str) -> Vec<(RoomNumber, u64)> {
        let holding = self.rooms.iter().filter_map(|(number, room)| {
            let (_, (joined, _)) = room.held.as_ref().zip(room.entering.as_ref())?;
            (joined.room_type == room_type).then_some((*number, joined.fingerprint))
        });
        holding.collect()
    }

    /// How to read what the node sends for a room.
    fn translate(&mut self, number: RoomNumber, translation: Translation) {
        let Some(room) = self.rooms.get_mut(&number) else { return };
        let player = room.entering.as_ref().map_or(0, |(joined, _)| joined.player);
        match room.sink.translate(&translation, PlayerId(player)) {
            Ok(needs_snapshot) => {
                room.translation = translation;
                if needs_snapshot {
                    self.signals.put(Signal::Resync { place: self.place(number) });
                }
            }
            Err(error) => self.refuse(number, error),
        }
    }

    /// This client can't be in the room: ends it, and leaves it.
    fn refuse(&mut self, room: RoomNumber, error: Error) {
        self.end(room, error);
        self.forsaken.push((room, 0));
    }

    fn end(&mut self, room: RoomNumber, error: Error) {
        if let Some(JoinedRoom { sink, entering, .. }) = self.rooms.remove(&room) {
            sink.end(error.clone());
            if let Some((_, answer)) = entering {
                let _ = answer.send(Err(error));
            }
        }
    }

    /// Answers the handle that enters a room, once its copy is there.
    fn entered(&mut self, number: RoomNumber) {
        let place = self.place(number);
        if let Some(room) = self.rooms.get_mut(&number)
            && room.held.is_none()
            && room.sink.has_copy()
            && let Some((joined, answer)) = room.entering.take()
        {
            let (signals, commands) = (Arc::clone(&self.signals), self.queue.clone());
            let seat = Seat { place, signals, commands };
            let translation = room.translation.clone();
            let _ = answer.send(Ok(Entered { joined, seat, translation }));
        }
    }
}

// An answer may find nobody, as the caller may have stopped waiting. That is never an error.
impl Handler for Dispatch {
    fn welcome(&mut self, _: &Welcome<'_>) {
        self.status.connected();
        if let Some(welcomed) = self.welcomed.take() {
            let _ = welcomed.send(Ok(()));
        }
    }

    fn connection_lost(&mut self, error: &ClientError) {
        // An error that announced a goodbye was not followed by one.
        (self.goodbye, self.retry_after) = (None, None);
        let ending = Ending::lost(error, self.socket_error.take());
        self.status.report(ConnectionEvent::Lost { error: Error::closed(ending.clone()) });
        self.lost = Some((self.now, ending));
    }

    fn resumed(&mut self, resumed: &Resumed<'_>) {
        let (away, lost) = (self.away(), resumed.lost.to_vec());
        self.status.report(ConnectionEvent::Resumed { away, lost });
    }

    fn new_session(&mut self, _: &Welcome<'_>) {
        let rooms: Vec<RoomNumber> = self.rooms.keys().copied().collect();
        for room in rooms {
            self.end(room, Error::new_session());
        }
        self.session += 1;
        self.forsaken.clear();
        // The node may be another build by now.
        self.schemas = Schemas::new(self.named.iter().cloned());
        let away = self.away();
        // The handles know by now that their rooms have ended: no more is sent to them.
        let unsent = self.commands.end_session(self.session);
        let unconfirmed = std::mem::take(&mut self.unconfirmed) + unsent;
        self.status.report(ConnectionEvent::NewSession { away, unconfirmed });
    }

    fn unconfirmed(&mut self, sends: u64) {
        self.unconfirmed = sends;
    }

    fn joined(&mut self, request: RequestNumber, joined: &Joined<'_>) {
        let Some(Waiting::Enter { build, sink, answer }) = self.waiting.remove(&request) else {
            return;
        };
        self.schemas.joined(&joined.room_type, joined.fingerprint);
        let entering = Some((joined.to_static(), answer));
        let room = JoinedRoom { sink, translation: Translation::None, entering, held: None };
        let room = self.rooms.entry(joined.room).insert_entry(room).into_mut();
        let Some(build) = build else { return };
        match self.schemas.translation(&joined.room_type, &build, Some(joined.fingerprint)) {
            Ok(Some(translation)) => self.translate(joined.room, translation),
            Ok(None) => {
                room.sink.hold();
                room.held = Some(build);
                self.schema_requests.ask(self.now, &joined.room_type);
            }
            Err(error) => self.refuse(joined.room, error),
        }
    }

    fn schema(&mut self, request: Option<RequestNumber>, room_type: &str, schema: &[u8]) {
        match request.and_then(|request| self.waiting.remove(&request)) {
            Some(Waiting::ShowSchema(answer)) => {
                let _ = answer.send(RoomSchema::from_json(schema).map_err(Error::schema));
            }
            // The request says which room type it is, whatever the answer says.
            Some(Waiting::Schema(asked)) => {
                self.schemas.store(&asked, schema);
                self.schema_known(&asked);
            }
            _ => {
                if self.schemas.store_unasked(room_type, schema) {
                    self.schema_known(room_type);
                }
            }
        }
    }

    fn listed(&mut self, request: RequestNumber, rooms: &[RoomInfo<'_>]) {
        if let Some(Waiting::List(answer)) = self.waiting.remove(&request) {
            let _ = answer.send(Ok(rooms.iter().map(static_info).collect()));
        }
    }

    fn left(
        &mut self,
        room: RoomNumber,
        request: Option<RequestNumber>,
        code: ErrorCode,
        text: &str,
    ) {
        self.end(room, Error::left(code, text));
        if let Some(Waiting::Leave(answer)) =
            request.and_then(|request| self.waiting.remove(&request))
        {
            let _ = answer.send(Ok(()));
        }
    }

    fn reply(&mut self, request: RequestNumber, payload: &[u8]) {
        if let Some(Waiting::Reply(answer)) = self.waiting.remove(&request) {
            let _ = answer.send(Ok(payload.to_vec()));
        }
    }

    fn failed(&mut self, request: RequestNumber, failure: &Failure<'_>) {
        if *failure == Failure::Closed {
            // These fail in `closed`, which knows how the connection ended.
            return;
        }
        let error = Error::from(failure);
        match self.waiting.remove(&request) {
            Some(Waiting::Schema(room_type)) => {
                let is_asked_again = match failure {
                    Failure::Refused {
                        code: ErrorCode::Limit | ErrorCode::TooFast,
                        retry_after,
                        ..
                    } => self.schema_requests.too_often(self.now, &room_type, *retry_after),
                    Failure::Lost => self.schema_requests.lost(&room_type),
                    _ => false,
                };
                if !is_asked_again {
                    self.no_schema(&room_type, &error);
                }
            }
            Some(waiting) => waiting.fail(error),
            None => {}
        }
    }

    fn event(&mut self, event: &RoomEvent<'_>) {
        if let Some(room) = self.rooms.get(&event.room) {
            room.sink.event(event);
        }
    }

    fn missed(&mut self, room: RoomNumber, events: u64) {
        if let Some(room) = self.rooms.get(&room) {
            room.sink.failed(Error::lost_events(events));
        }
    }

    fn update(&mut self, number: RoomNumber, update: &Update<'_>) -> Result<(), DecodeError> {
        let Some(room) = self.rooms.get(&number) else { return Ok(()) };
        room.sink.update(update)?;
        if room.entering.is_some() {
            self.entered(number);
        }
        Ok(())
    }

    fn check(&mut self, room: RoomNumber, digest: u64) -> bool {
        self.rooms.get(&room).is_none_or(|room| room.sink.check(digest))
    }

    fn out_of_step(&mut self, room: RoomNumber, why: &OutOfStep) {
        // The core asks for a snapshot in all other cases.
        if let OutOfStep::NoSnapshot(error) = why {
            self.refuse(room, Error::payload("the room's state", error.clone()));
        }
    }

    fn error(&mut self, room: Option<RoomNumber>, code: ErrorCode, text: &str) {
        match room {
            Some(room) => {
                if let Some(room) = self.rooms.get(&room) {
                    room.sink.failed(Error::refused(code, text));
                }
            }
            None if code.closes() => self.goodbye = Some((code, text.to_owned())),
            None => {}
        }
    }

    fn pong(&mut self, nonce: u64, round_trip: Duration) {
        if let Some(answer) = self.pings.remove(&nonce) {
            let _ = answer.send(Ok(round_trip));
        }
    }

    fn retry_after(&mut self, retry_after: Duration) {
        self.retry_after = Some(retry_after);
    }

    fn goodbye(&mut self, code: ErrorCode, text: &str) {
        self.goodbye = Some((code, text.to_owned()));
    }

    fn closed(&mut self, error: Option<&ClientError>) {
        let lost = self.lost.take().zip(self.gave_up.take());
        let ending = match (error, self.goodbye.take()) {
            (Some(_), _) if let Some(((_, lost), (tried, last))) = lost => {
                Ending::GaveUp { lost: Box::new(lost), tried, last: Box::new(last) }
            }
            (None | Some(ClientError::Ended { .. }), Some((code, text))) => {
                Ending::Goodbye { code, text, retry_after: self.retry_after }
            }
            (None, None) => Ending::Here,
            (Some(error), _) => Ending::lost(error, self.socket_error.take()),
        };
        let ending = self.ending.get_or_init(|| ending);
        for room in self.rooms.values() {
            room.sink.end(Error::closed(ending.clone()));
        }
        let (error, unconfirmed) =
            (Error::closed(ending.clone()), self.unconfirmed + self.commands.end());
        self.status.report(ConnectionEvent::Ended { error, unconfirmed });
        if let Some(welcomed) = self.welcomed.take() {
            let error = match ending {
                Ending::Goodbye { code, text, retry_after } => {
                    Error::turned_away(*code, text, *retry_after)
                }
                ending @ (Ending::Socket(_) | Ending::Broken(ClientError::Ended { .. })) => {
                    Error::closed(Ending::Unwelcome(Box::new(ending.clone())))
                }
                ending => Error::closed(ending.clone()),
            };
            let _ = welcomed.send(Err(error));
        }
        // Dropping the answers makes the callers read `ending`.
        self.rooms.clear();
        self.schema_requests.clear();
        self.unready.clear();
        self.ready.clear();
        self.waiting.clear();
        self.pings.clear();
    }
}
