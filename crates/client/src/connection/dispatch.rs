//! From what the core tells to the handles that wait for it.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use playfield_wire::server::RoomInfo;
use playfield_wire::{DecodeError, ErrorCode};
use tokio::sync::mpsc;

use super::command::{Answer, Entered, Seat, Signal};
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
    pub(super) rooms: NumberMap<Inside>,
    /// Rooms to leave, for whom there is no handle any more.
    pub(super) forsaken: Vec<u32>,
    pub(super) socket_error: Option<io::Error>,
    signals: mpsc::UnboundedSender<Signal>,
    ending: Arc<OnceLock<Ending>>,
    /// Why the node said that it ends the connection.
    parting: Option<(ErrorCode, String)>,
}

/// Who waits for the answer to a request.
pub(super) enum Waiting {
    Enter { fingerprint: Option<u64>, sink: Arc<dyn Sink>, answer: Answer<Entered> },
    Leave(Answer<()>),
    List(Answer<Vec<RoomInfo<'static>>>),
    Reply(Answer<Vec<u8>>),
}

/// A room that this session is in.
pub(super) struct Inside {
    pub(super) sink: Arc<dyn Sink>,
    /// Who waits for the first snapshot.
    entering: Option<(Joined<'static>, Answer<Entered>)>,
}

impl Dispatch {
    pub(super) fn new(
        welcomed: Answer<()>,
        signals: mpsc::UnboundedSender<Signal>,
        ending: Arc<OnceLock<Ending>>,
    ) -> Self {
        Self {
            welcomed: Some(welcomed),
            waiting: NumberMap::default(),
            pings: HashMap::new(),
            rooms: NumberMap::default(),
            forsaken: Vec::new(),
            socket_error: None,
            signals,
            ending,
            parting: None,
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
        let Some(Waiting::Enter { fingerprint, sink, answer }) = self.waiting.remove(&request) else {
            return;
        };
        if fingerprint.is_none_or(|fingerprint| fingerprint == joined.fingerprint) {
            let entering = Some((joined.to_static(), answer));
            self.rooms.insert(joined.room, Inside { sink, entering });
        } else {
            let text = format!(
                "the node's rooms of type {:?} are of another build than this client's",
                joined.room_type
            );
            let _ = answer.send(Err(Error::refused(ErrorCode::SchemaMismatch, text)));
            self.forsaken.push(joined.room);
        }
    }

    fn listed(&mut self, request: u32, rooms: &[RoomInfo<'_>]) {
        if let Some(Waiting::List(answer)) = self.waiting.remove(&request) {
            let _ = answer.send(Ok(rooms.iter().map(static_info).collect()));
        }
    }

    fn left(&mut self, room: u32, request: Option<u32>, code: ErrorCode, text: &str) {
        if let Some(Inside { sink, entering }) = self.rooms.remove(&room) {
            sink.end(Error::left(code, text));
            if let Some((_, answer)) = entering {
                let _ = answer.send(Err(Error::left(code, text)));
            }
        }
        if let Some(Waiting::Leave(answer)) = request.and_then(|request| self.waiting.remove(&request)) {
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
            None => {}
        }
    }

    fn event(&mut self, event: &RoomEvent<'_>) {
        if let Some(inside) = self.rooms.get(&event.room) {
            inside.sink.event(event);
        }
    }

    fn snapshot(&mut self, room: u32, version: u64, body: &[u8]) -> Result<(), DecodeError> {
        let Some(inside) = self.rooms.get_mut(&room) else { return Ok(()) };
        inside.sink.snapshot(version, body)?;
        if let Some((joined, answer)) = inside.entering.take() {
            let seat = Seat { room, signals: self.signals.clone() };
            let _ = answer.send(Ok(Entered { joined, seat }));
        }
        Ok(())
    }

    fn patch(&mut self, room: u32, version: u64, body: &[u8]) -> Result<(), DecodeError> {
        self.rooms.get(&room).map_or(Ok(()), |inside| inside.sink.patch(version, body))
    }

    fn check(&mut self, room: u32, digest: u64) -> bool {
        self.rooms.get(&room).is_none_or(|inside| inside.sink.check(digest))
    }

    fn out_of_step(&mut self, room: u32, why: &OutOfStep) {
        // The core sees to anything else.
        let OutOfStep::Snapshot(error) = why else { return };
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
            (None | Some(ClientError::Ended { .. }), Some((code, text)), _) => Ending::Goodbye { code, text },
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
        self.waiting.clear();
        self.pings.clear();
    }
}
