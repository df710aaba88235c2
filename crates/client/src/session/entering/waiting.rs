//! Rooms and requests that wait for a schema of the node.

use std::mem;

use playfield_wire::client::{self, ClientMessage};
use playfield_wire::{ErrorCode, RequestNumber, RoomNumber, server};

#[cfg(doc)]
use crate::session::Event;
use crate::session::protocol::Protocol;
use crate::session::requests::Asked;
use crate::session::{CommandError, Failure, Session, Translation, Unusable};

impl Session {
    /// Asks for the schema of a room type. Answered by [`Event::Schema`].
    ///
    /// # Errors
    /// Same as for all [commands](Self::join).
    pub fn schema(&mut self, room_type: &str) -> Result<RequestNumber, CommandError> {
        let request = self.protocol.ask_schema(room_type)?;
        self.protocol.entering.shown.insert(request, room_type.to_owned());
        Ok(request)
    }
}

impl Protocol {
    /// The answer to a request for a schema, or a schema that follows the welcome. Returns whether
    /// the program has to hear of it.
    pub(in crate::session) fn schema(&mut self, schema: &server::Schema<'_>) -> bool {
        let server::Schema { request, room_type, schema } = schema;
        // The request says which room type it is, whatever the answer says.
        if let Some(asked) = request.and_then(|request| self.entering.asked.remove(&request)) {
            self.entering.schemas.store(&asked, schema);
            self.schema_known(&asked);
            return false;
        }
        if let Some(asked) = request.and_then(|request| self.entering.shown.remove(&request)) {
            self.entering.schemas.store(&asked, schema);
            self.schema_known(&asked);
        }
        if request.is_none() {
            self.switch(room_type, schema);
            if self.entering.schemas.store_unasked(room_type, schema) {
                self.schema_known(room_type);
            }
        }
        true
    }

    /// The schema of a room type is known: continues all that waited for it.
    fn schema_known(&mut self, room_type: &str) {
        self.entering.schema_requests.answered(self.pulse.now(), room_type);
        let ready = self.entering.unready.extract_if(.., |(waits_for, ..)| waits_for == room_type);
        self.entering.ready.extend(ready.map(|(_, request, target)| (request, target)));
        for room in self.awaiting(room_type) {
            let Some((granted, _)) = self.rooms.granted(room) else { continue };
            let Some(build) = granted.awaits.take() else { continue };
            let fingerprint = Some(granted.fingerprint);
            let speech = self.entering.schemas.speech(granted, &build);
            self.rooms.speak(room, speech);
            match self.entering.schemas.translation(room_type, &build, fingerprint) {
                Ok(translation) => self.translate(room, translation.unwrap_or(Translation::None)),
                Err(why) => self.unusable(room, why),
            }
            self.tell_entered(room);
        }
    }

    /// The rooms of a type that wait for its schema.
    fn awaiting(&self, room_type: &str) -> Vec<RoomNumber> {
        self.rooms.awaiting(|granted| granted.awaits.is_some() && granted.room_type == room_type)
    }

    /// A request has failed. Returns whether it was one for a schema, not of the program's making.
    pub(in crate::session) fn schema_failed(
        &mut self,
        request: RequestNumber,
        failure: &Failure<'_>,
    ) -> bool {
        self.entering.entries.remove(&request);
        self.entering.shown.remove(&request);
        let Some(room_type) = self.entering.asked.remove(&request) else { return false };
        let requests = &mut self.entering.schema_requests;
        let is_asked_again = match failure {
            Failure::Refused {
                code: ErrorCode::Limit | ErrorCode::TooFast, retry_after, ..
            } => requests.too_often(self.pulse.now(), &room_type, *retry_after),
            Failure::Lost => requests.lost(&room_type),
            _ => false,
        };
        if !is_asked_again {
            self.no_schema(&room_type, &failure.to_static());
        }
        true
    }

    /// The schema of a room type will not come: fails all that wait for it.
    fn no_schema(&mut self, room_type: &str, failure: &Failure<'static>) {
        self.entering.schema_requests.forget(room_type);
        let waiting =
            self.entering.unready.extract_if(.., |(waits_for, ..)| waits_for == room_type);
        for (_, request, _) in waiting.collect::<Vec<_>>() {
            self.requests.forget(request);
            self.failed(request, failure.clone());
        }
        for room in self.awaiting(room_type) {
            self.unusable(room, Unusable::from(failure.clone()));
        }
    }

    /// Asks for the schemas that rooms wait for, continues what waited for one, and fails what has
    /// waited too long.
    pub(super) fn follow_schemas(&mut self) {
        if !self.welcomed || !self.is_open() || self.resumption.is_full() {
            return;
        }
        for (request, target) in mem::take(&mut self.entering.ready) {
            self.send_ready(request, target);
        }
        let now = self.pulse.now();
        while let Some(room_type) = self.entering.schema_requests.next(now) {
            match self.ask_schema(&room_type) {
                Ok(request) => drop(self.entering.asked.insert(request, room_type)),
                Err(error) => self.no_schema(&room_type, &Failure::NotSent(error)),
            }
        }
        for room_type in self.entering.schema_requests.expired(now) {
            let waited = self.entering.schema_requests.timeout();
            self.entering.asked.retain(|_, asked| *asked != room_type);
            let why = Unusable::NoSchema { room_type: room_type.clone(), waited };
            self.no_schema(&room_type, &Failure::Unusable(why));
        }
    }

    fn ask_schema(&mut self, room_type: &str) -> Result<RequestNumber, CommandError> {
        let room_type = room_type.into();
        self.ask(Asked::Schema, |request| {
            ClientMessage::Schema(client::Schema { request, room_type })
        })
    }
}
