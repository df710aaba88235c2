//! Rooms that continue in another build of the node, which speaks another schema.
//!
//! The program keeps the schema with which it entered the room. This module converts messages in
//! both directions.

use std::sync::Arc;

use playfield_state::{PlayerId, Transcoder};
use playfield_wire::client::{self, ClientMessage, write_request, write_send};
use playfield_wire::message::MessageRef;
use playfield_wire::schema::RoomSchema;
use playfield_wire::{DecodeError, RoomNumber, server};

use super::protocol::Protocol;
use super::schemas::Schema;
use super::{ClientError, Event, FORMAT, Failure, Unusable};

/// No message has this number: the node answers it with an error.
const NO_MESSAGE: u32 = u32::MAX;

/// The schemas by which a room is read and written.
#[derive(Debug)]
pub(super) struct Speech {
    pub(super) room_type: String,
    pub(super) player: PlayerId,
    /// The schema of the program: the node's when the room was entered.
    pub(super) own: Arc<RoomSchema>,
    pub(super) fingerprint: u64,
    /// The node's later schema, if it has changed.
    pub(super) since: Option<Since>,
}

#[derive(Debug)]
pub(super) enum Since {
    By(Arc<Schema>, Arc<Transcoder>),
    /// The program can't use it, and leaves the room.
    Unusable(Unusable),
}

impl Since {
    /// Converts between the schemas of the node and of the program.
    ///
    /// # Errors
    /// The reason why the room is left.
    pub(super) fn by(&self) -> Result<&Transcoder, &Unusable> {
        match self {
            Self::By(_, by) => Ok(by),
            Self::Unusable(why) => Err(why),
        }
    }
}

impl Speech {
    /// Switches to another schema of the node. Returns the converter for messages that are already
    /// written; `None` if the schema has not changed.
    pub(super) fn switch(
        &mut self,
        node: &Arc<Schema>,
    ) -> Result<Option<Arc<Transcoder>>, Unusable> {
        let Self { own, fingerprint, since, .. } = self;
        let (present, schema) = match since {
            None => (*fingerprint, &*own),
            Some(Since::By(present, _)) => (present.fingerprint(), present.schema()),
            Some(Since::Unusable(_)) => return Ok(None),
        };
        if present == node.fingerprint() {
            return Ok(None);
        }
        let written = node.transcoder(present, schema)?;
        *since = Some(Since::By(Arc::clone(node), node.transcoder(*fingerprint, own)?));
        Ok(Some(written))
    }
}

impl Protocol {
    /// The node continues with this schema of a room type. So do this client's rooms of the type,
    /// and what it has sent that is not confirmed.
    pub(super) fn switch(&mut self, room_type: &str, text: &[u8]) {
        self.resumption.heard_unasked_schema();
        let rooms = self.rooms.speaking(room_type);
        let written = self.entering.written(room_type);
        if rooms.is_empty() && written.is_none() {
            return;
        }
        let schema = RoomSchema::from_json(text).map(Schema::shared).map_err(Unusable::Schema);
        let mut switched = Vec::new();
        for room in rooms {
            match schema.clone().and_then(|schema| self.rooms.switch(room, &schema)) {
                Ok(None) => {}
                Ok(Some(by)) => switched.push((Some(room), Some(by))),
                Err(why) => {
                    switched.push((Some(room), None));
                    self.rooms.give_up(room, &why);
                    self.unusable(room, why);
                }
            }
        }
        if let Some((fingerprint, written)) = written {
            let is_other = |schema: &Arc<Schema>| schema.fingerprint() != fingerprint;
            if schema.as_ref().map_or(true, is_other) {
                let by = schema.and_then(|schema| schema.transcoder(fingerprint, &written));
                switched.push((None, by.ok()));
            }
        }
        self.resumption.log.rewrite(|room, body| {
            let (_, by) = switched.iter().find(|(of, _)| *of == room)?;
            rewritten(by.as_deref(), room_type, body)
        });
    }

    /// Reports a reply in the program's form, if the node speaks by another schema.
    pub(super) fn switched_reply(
        &mut self,
        room: RoomNumber,
        index: u32,
        reply: &server::Reply<'_>,
    ) -> Result<bool, ClientError> {
        let request = reply.request;
        let by = match self.rooms.switched(room) {
            None => return Ok(false),
            Some(Ok(by)) => by,
            Some(Err(why)) => {
                let failure = Failure::Unusable(why.clone());
                self.failed(request, failure);
                return Ok(true);
            }
        };
        let mut payload = Vec::new();
        by.reply(index, &reply.payload, &mut payload).map_err(ClientError::Message)?;
        let payload = payload.into();
        self.events.push_back(Event::Reply(server::Reply { request, payload }));
        Ok(true)
    }

    /// Reports an event in the program's form, if the node speaks by another schema. An event that
    /// the program's schema lacks is skipped.
    pub(super) fn switched_event(
        &mut self,
        event: &server::Event<'_>,
    ) -> Result<bool, ClientError> {
        let &server::Event { room, sequence, version, ref message, ref payload } = event;
        let Some(by) = self.rooms.switched(room) else { return Ok(false) };
        let (Ok(by), MessageRef::Index(index)) = (by, message) else { return Ok(true) };
        let mut own = Vec::new();
        let number = by.event(*index, payload, &mut own).map_err(ClientError::Message)?;
        if let Some(number) = number {
            let (message, payload) = (MessageRef::Index(number), own.into());
            let event = server::Event { room, sequence, version, message, payload };
            self.events.push_back(Event::Event(event));
        }
        Ok(true)
    }
}

/// A message to a room, or for a new one, in the earlier schema; `None` for other messages.
fn rewritten(by: Option<&Transcoder>, room_type: &str, body: &[u8]) -> Option<Vec<u8>> {
    let (mut converted, mut out) = (Vec::new(), Vec::new());
    let mut message = ClientMessage::decode(FORMAT, body).ok()?;
    match &mut message {
        ClientMessage::Create(client::Create { room_type: of, options, .. })
        | ClientMessage::JoinOrCreate(client::JoinOrCreate { room_type: of, options, .. })
            if *of == room_type =>
        {
            if options.is_empty() {
                return None;
            }
            match by.map(|by| by.options(options, &mut converted)) {
                Some(Ok(())) => *options = &converted,
                // The node would read others in their place. No room type has this name.
                Some(Err(_)) | None => (*of, *options) = ("".into(), &[]),
            }
            message.encode(FORMAT, &mut out);
            return Some(out);
        }
        _ => {}
    }
    // A message that can't be converted must not be mistaken for another one.
    let mut convert = |message: &MessageRef<'_>, payload: &[u8]| {
        let (Some(by), MessageRef::Index(number)) = (by, message) else { return NO_MESSAGE };
        by.message(*number, payload, &mut converted).unwrap_or_else(|_: DecodeError| {
            converted.clear();
            NO_MESSAGE
        })
    };
    match message {
        ClientMessage::Request(client::Request { room, request, message, payload }) => {
            let number = convert(&message, payload);
            write_request(FORMAT, &mut out, room, request, number, "", &converted);
        }
        ClientMessage::Send(client::Send { room, message, payload }) => {
            let number = convert(&message, payload);
            write_send(FORMAT, &mut out, room, number, "", &converted);
        }
        _ => return None,
    }
    Some(out)
}
