//! Clients that speak an earlier schema of a room type than this process, which has taken over.
//!
//! The node sends such a client this process's `schema`: at once if the client is in such a room,
//! or else before anything that says by which schema this process speaks. Until the client confirms
//! it, the client's messages use the earlier schema, and are converted.

use std::borrow::Cow;
use std::sync::Arc;

use playfield_state::Transcoder;
use playfield_wire::message::MessageRef;
use playfield_wire::schema::RoomSchema;
use playfield_wire::server::ServerMessage;
use playfield_wire::{DecodeError, Format, RoomNumber};

use crate::shard::keys::ConnectionKey;
use crate::shard::session::outlet::Outlet;
use crate::shard::session::{Session, SessionRoom};

/// A schema that an earlier process used.
#[derive(Debug)]
pub(crate) struct Earlier {
    pub(crate) room_type: String,
    pub(crate) fingerprint: u64,
    pub(crate) json: String,
    pub(crate) schema: RoomSchema,
}

/// A change of the schema of a room type, which the client has not confirmed.
#[derive(Debug)]
pub(crate) struct Switch {
    /// The number of the `schema` that tells the client: among the counted messages of the session,
    /// or if the session ends with its connection, among its unasked schemas. `None` before that.
    pub(crate) at: Option<u64>,
    pub(crate) from: Arc<Earlier>,
    /// The rooms of the type in which the session was then.
    pub(crate) rooms: Vec<RoomNumber>,
    /// Converts messages to the next schema of the type; `None` if that is not compatible.
    pub(crate) by: Option<Arc<Transcoder>>,
}

impl Switch {
    fn is_untold_of(&self, room_type: &str) -> bool {
        self.at.is_none() && self.from.room_type == room_type
    }

    fn by(&self) -> Result<&Transcoder, DecodeError> {
        let text = "the node was upgraded to an incompatible schema";
        self.by.as_deref().ok_or_else(|| DecodeError::other(text))
    }
}

/// The changes that the client has not confirmed, oldest first.
#[derive(Debug)]
pub(crate) struct Switches(Vec<Switch>);

/// The number and the payload of a message.
pub(in crate::shard) type Converted<'a> = (u32, Cow<'a, [u8]>);

impl Switches {
    pub(crate) fn new(switches: Vec<Switch>) -> Option<Box<Self>> {
        (!switches.is_empty()).then(|| Box::new(Self(switches)))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Switch> {
        self.0.iter()
    }

    /// A message to a room, as this process reads it: its number and its payload. `None` if the
    /// client speaks this process's schema there.
    fn convert<'a>(
        &self,
        room: RoomNumber,
        number: u32,
        payload: &'a [u8],
    ) -> Option<Result<Converted<'a>, DecodeError>> {
        let mut switches = self.0.iter().filter(|of| of.rooms.contains(&room)).peekable();
        switches.peek()?;
        Some(switches.try_fold((number, Cow::Borrowed(payload)), |(number, payload), switch| {
            let mut converted = Vec::new();
            let number = switch.by()?.message(number, &payload, &mut converted)?;
            Ok((number, converted.into()))
        }))
    }
}

impl Session {
    /// The changes of schemas that its client has not confirmed.
    pub(in crate::shard) fn switches(&self) -> Option<&Switches> {
        self.extras()?.switches.as_deref()
    }

    /// The options of a new room, as this process reads them, if the client speaks an earlier
    /// schema of the room type.
    pub(in crate::shard) fn converted_options<'a>(
        &self,
        room_type: &str,
        options: &'a [u8],
    ) -> Option<Result<Cow<'a, [u8]>, DecodeError>> {
        let switches = self.switches().filter(|_| !options.is_empty())?;
        let mut switches = switches.iter().filter(|of| of.from.room_type == room_type).peekable();
        switches.peek()?;
        Some(switches.try_fold(Cow::Borrowed(options), |options, switch| {
            let mut converted = Vec::new();
            switch.by()?.options(&options, &mut converted)?;
            Ok(converted.into())
        }))
    }

    /// Returns whether the client speaks an earlier schema of a room type, as far as is known.
    #[inline]
    pub(in crate::shard) fn speaks_earlier_schema(&self) -> bool {
        self.extras().is_some_and(|extras| extras.switches.is_some())
    }

    /// A message to a room, as this process reads it, if the client speaks an earlier schema there.
    pub(in crate::shard) fn converted<'a>(
        &self,
        room: RoomNumber,
        message: &MessageRef<'_>,
        payload: &'a [u8],
    ) -> Option<Result<Converted<'a>, DecodeError>> {
        let switches = self.switches()?;
        match message {
            MessageRef::Index(number) => switches.convert(room, *number, payload),
            MessageRef::Name(_) => None,
        }
    }

    /// Returns whether a `schema` is among the lost messages after `received`: the client could not
    /// read later messages.
    pub(in crate::shard) fn has_lost_schema(&self, received: u64, gone: u64) -> bool {
        let is_lost =
            |switch: &Switch| switch.at.is_some_and(|at| (received + 1..=gone).contains(&at));
        self.switches().is_some_and(|switches| switches.iter().any(is_lost))
    }

    /// The client has handled this many counted messages, or in a session that ends with its
    /// connection unasked schemas, and uses the schemas among them.
    pub(in crate::shard) fn has_handled(&mut self, received: u64) {
        let Some(extras) = self.extras.as_deref_mut() else { return };
        if let Some(switches) = extras.switches.as_deref_mut() {
            switches.0.retain(|switch| switch.at.is_none_or(|at| at > received));
            if switches.0.is_empty() {
                extras.switches = None;
            }
        }
    }
}

impl Outlet<'_> {
    /// Sends a client this process's schema of a room type, unless it was sent or is the one that
    /// the client uses. Later messages about these rooms use it, beginning with their snapshots.
    pub(in crate::shard) fn switch(
        &mut self,
        key: ConnectionKey,
        room_type: &str,
        rooms: &[RoomNumber],
    ) {
        let is_untold = |switch: &Switch| switch.is_untold_of(room_type);
        let switches = self.sessions.get(key).and_then(Session::switches);
        if !switches.is_some_and(|switches| switches.iter().any(is_untold)) {
            return;
        }
        let Some(number) = self.env.node.room_type(room_type) else { return };
        let at = self.send_unasked_schema(key, number);
        let Some(session) = self.sessions.get_mut(key) else { return };
        if let Some(switches) = session.extras_mut().switches.as_deref_mut() {
            let untold = switches.0.iter_mut().filter(|switch| switch.is_untold_of(room_type));
            untold.for_each(|switch| switch.at = Some(at));
        }
        if session.resumption.is_some() {
            let is_of = |room: &&mut SessionRoom| rooms.contains(&room.number);
            // A client that comes back gets the rest of the room after the schema.
            session.rooms.iter_mut().filter(is_of).for_each(|room| room.joined_at = at);
        }
    }

    /// Like [`switch`](Self::switch), before this `joined`, which has the fingerprint.
    pub(in crate::shard) fn switch_before(&mut self, key: ConnectionKey, joined: &[u8]) {
        if self.sessions.get(key).is_some_and(|session| session.switches().is_some())
            && let Ok(ServerMessage::Joined(joined)) = ServerMessage::decode(Format::Packed, joined)
        {
            self.switch(key, &joined.room_type, &[]);
        }
    }

    /// Sends a schema that the client has not asked for. Returns its number, as an `ack` says it.
    pub(in crate::shard) fn send_unasked_schema(
        &mut self,
        key: ConnectionKey,
        room_type: u16,
    ) -> u64 {
        self.send_schema(key, None, room_type);
        let Some(session) = self.sessions.get_mut(key) else { return 0 };
        if let Some(resumption) = &session.resumption {
            return resumption.log.sent();
        }
        let sent = &mut session.extras_mut().unasked_schemas;
        *sent += 1;
        *sent
    }
}
