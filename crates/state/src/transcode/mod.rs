//! Converts between a node's schema and the one that a client was built with.
//!
//! A node writes by its own schema for all clients, so that what everyone sees is encoded once. A
//! client that was built with an older schema converts what it receives (bodies of snapshots and
//! patches, replies, events) to its own schema, and what it sends (messages, options) to the
//! node's. It also keeps the node's copy, since the node's digests refer to that.

use std::fmt;
use std::sync::Arc;

use playfield_wire::DecodeError;
use playfield_wire::schema::{Incompatible, RoomSchema, Type, check_compatible_packed};

use crate::walk::{Shape, ShapeError, Walk};
use crate::{DynamicMirror, PlayerId};

/// Converts what a node and a client with an older schema send each other from one schema to the
/// other, in the format `packed`.
///
/// Every method appends to `out`. After an error, what it appended is invalid. The time is
/// proportional to the length of the body, except for orders of a list and moves after them, which
/// may take a few microseconds per byte.
#[derive(Debug)]
pub struct Transcoder {
    state: Arc<Shape>,
    /// `None` if the client sends no options.
    options: Option<Shape>,
    messages: Vec<Message>,
    /// Indexed by the node's numbers.
    events: Vec<Option<Event>>,
}

#[derive(Debug)]
struct Message {
    number: u32,
    of: Shape,
    reply: Shape,
}

#[derive(Debug)]
struct Event {
    number: u32,
    of: Shape,
}

impl Transcoder {
    /// Creates the converter between a node and a client.
    ///
    /// # Errors
    /// If the node's schema is not [compatible](check_compatible_packed) with the client's, or a
    /// schema has a type that no room can have.
    pub fn new(node: &RoomSchema, client: &RoomSchema) -> Result<Self, TranscoderError> {
        check_compatible_packed(node, client)?;
        let mut messages = Vec::new();
        for message in &client.messages {
            let number = node.messages.iter().position(|other| other.name == message.name);
            let Some(number) = number else { continue };
            let of_node = &node.messages[number];
            messages.push(Message {
                number: number as u32,
                of: Shape::turning_atomic(&message.of, &of_node.of)?,
                reply: Shape::turning_atomic(&of_node.reply, &message.reply)?,
            });
        }
        let mut events = Vec::new();
        for event in &node.events {
            let number = client.events.iter().position(|other| other.name == event.name);
            let event = number.map(|number| {
                let of = Shape::turning_atomic(&event.of, &client.events[number].of)?;
                Ok::<_, ShapeError>(Event { number: number as u32, of })
            });
            events.push(event.transpose()?);
        }
        let options = (client.options != Type::Unit)
            .then(|| Shape::turning_atomic(&client.options, &node.options))
            .transpose()?;
        let state = Arc::new(Shape::turning_root(&node.state, &client.state)?);
        Ok(Self { state, options, messages, events })
    }

    /// Creates the converter for the bodies of one player.
    pub fn state(&self, viewer: PlayerId) -> StateTranscoder {
        StateTranscoder { copy: DynamicMirror::turning(Arc::clone(&self.state), viewer) }
    }

    /// Converts a message to the node's schema. Returns the node's number for it.
    ///
    /// # Errors
    /// If the payload doesn't match the client's schema.
    pub fn message(
        &self,
        number: u32,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<u32, DecodeError> {
        let message = self.declared(number)?;
        value(&message.of, payload, out)?;
        Ok(message.number)
    }

    /// Converts the reply to the message with this client number to the client's schema.
    ///
    /// # Errors
    /// If the payload doesn't match the node's schema.
    pub fn reply(&self, number: u32, payload: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        value(&self.declared(number)?.reply, payload, out)
    }

    /// Converts an event to the client's schema. Returns the client's number for it, or `None` if
    /// the client was not built with it.
    ///
    /// # Errors
    /// If the payload doesn't match the node's schema.
    pub fn event(
        &self,
        number: u32,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<u32>, DecodeError> {
        let event = self.events.get(number as usize);
        let event =
            event.ok_or_else(|| DecodeError::other(format!("no event has the number {number}")))?;
        let Some(event) = event else { return Ok(None) };
        value(&event.of, payload, out)?;
        Ok(Some(event.number))
    }

    /// Converts options to the node's schema. Appends nothing if the client has none, or gave none.
    ///
    /// # Errors
    /// If the payload doesn't match the client's schema.
    pub fn options(&self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        match &self.options {
            Some(options) if !payload.is_empty() => value(options, payload, out),
            _ => Ok(()),
        }
    }

    fn declared(&self, number: u32) -> Result<&Message, DecodeError> {
        let message = self.messages.get(number as usize);
        message.ok_or_else(|| DecodeError::other(format!("no message has the number {number}")))
    }
}

/// Appends the converted atomic value. No byte may be left over.
fn value(shape: &Shape, payload: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
    Walk::new(payload, PlayerId(0), None).turning(payload, out).atomic(shape).map(drop)
}

/// Converts the bodies of snapshots and patches for one player to an older schema.
///
/// It holds the node's copy, so its digest is comparable with the node's.
#[derive(Clone, Debug)]
pub struct StateTranscoder {
    copy: DynamicMirror,
}

impl StateTranscoder {
    /// Appends the body of a snapshot, converted to the client's schema.
    ///
    /// # Errors
    /// If the body doesn't match the node's schema. The copy is unchanged.
    pub fn snapshot(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        self.copy.turn_snapshot(body, out)
    }

    /// Appends the body of a patch, converted to the client's schema.
    ///
    /// # Errors
    /// If the body doesn't match the node's schema or the copy. Patches are then rejected until the
    /// next snapshot.
    pub fn patch(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        self.copy.turn_patch(body, out)
    }

    /// The digest of the node's copy. `None` if there is no copy: before the first snapshot, and
    /// after a rejected patch.
    pub fn digest(&self) -> Option<u64> {
        (!self.copy.state().is_null()).then(|| self.copy.digest())
    }
}

/// Why a client can't be served by a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TranscoderError {
    /// The node's schema is not compatible with the client's.
    Incompatible(Incompatible),
    /// A schema has a type that no room can have.
    Shape(ShapeError),
}

impl From<Incompatible> for TranscoderError {
    fn from(error: Incompatible) -> Self {
        Self::Incompatible(error)
    }
}

impl From<ShapeError> for TranscoderError {
    fn from(error: ShapeError) -> Self {
        Self::Shape(error)
    }
}

impl fmt::Display for TranscoderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Incompatible(error) => error.fmt(f),
            Self::Shape(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TranscoderError {}
