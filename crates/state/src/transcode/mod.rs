//! From the schema of a node to the one that a client was built with, and back.
//!
//! A node writes by its own schema for all clients, so that what everyone sees is encoded once. A
//! client that was built with an older schema turns what it receives (bodies of snapshots and
//! patches, replies, events) into what it knows, and what it sends (messages, options) into what
//! the node knows. The node's copy is kept beside the client's, for the node's digests are of it.

use std::fmt;
use std::sync::Arc;

use playfield_wire::DecodeError;
use playfield_wire::schema::{Incompatible, RoomSchema, Type, check_compatible};

use crate::walk::{Shape, ShapeError, Walk};
use crate::{DynamicMirror, PlayerId};

/// Turns what a node and a client that was built with an older schema send each other from one
/// schema into the other, in the format `packed`.
///
/// Every method appends to `out`; after an error, what it appended is of no use. The time is
/// proportional to the length of the body, except for orders of a list and moves after them, which
/// take up to some microseconds for each byte.
#[derive(Debug)]
pub struct Transcoder {
    state: Arc<Shape>,
    /// `None` if the client has nothing to say.
    options: Option<Shape>,
    messages: Vec<Message>,
    /// By the node's numbers.
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
    /// Between a node and a client.
    ///
    /// # Errors
    /// If the node's schema is not [compatible](check_compatible) with the client's, or has a type
    /// that no room can have.
    pub fn new(node: &RoomSchema, client: &RoomSchema) -> Result<Self, TranscoderError> {
        check_compatible(node, client)?;
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

    /// What turns the bodies that one player is sent of a room's state.
    pub fn state(&self, viewer: PlayerId) -> StateTranscoder {
        StateTranscoder { copy: DynamicMirror::turning(Arc::clone(&self.state), viewer) }
    }

    /// A message, to the node: the client's number becomes the node's, which is returned.
    ///
    /// # Errors
    /// Anything but what the client's schema says.
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

    /// The reply to the message of the client's number, to the client.
    ///
    /// # Errors
    /// Anything but what the node's schema says.
    pub fn reply(&self, number: u32, payload: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        value(&self.declared(number)?.reply, payload, out)
    }

    /// An event, to the client: the node's number becomes the client's. `None` if the client was not
    /// built with it.
    ///
    /// # Errors
    /// Anything but what the node's schema says.
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

    /// Options, to the node; none if the client knows of none, or gave none.
    ///
    /// # Errors
    /// Anything but what the client's schema says.
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

/// Appends what an atomic value becomes. No byte may be left over.
fn value(shape: &Shape, payload: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
    Walk::new(payload, PlayerId(0), None).turning(payload, out).atomic(shape).map(drop)
}

/// Turns the bodies of snapshots and patches that one player is sent into those of an older schema.
///
/// It holds the node's copy meanwhile, and so has the digest that the node has.
#[derive(Clone, Debug)]
pub struct StateTranscoder {
    copy: DynamicMirror,
}

impl StateTranscoder {
    /// Appends the body of a snapshot by the client's schema.
    ///
    /// # Errors
    /// A body that isn't one of the node's state; the copy is as before.
    pub fn snapshot(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        self.copy.turn_snapshot(body, out)
    }

    /// Appends the body of a patch by the client's schema.
    ///
    /// # Errors
    /// A body that isn't one of the node's state, or doesn't fit the copy. Patches are then refused
    /// until a snapshot comes.
    pub fn patch(&mut self, body: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        self.copy.turn_patch(body, out)
    }

    /// The digest of the node's copy. `None` if there is none: before the first snapshot, and after
    /// a patch that was refused.
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
