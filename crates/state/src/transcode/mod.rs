//! From the schema of a node to the one that a client was built with, and back.
//!
//! A node writes by its own schema for all clients, so that what everyone sees is encoded once. A
//! client that was built with an older schema turns what it receives (bodies of snapshots and
//! patches, replies, events) into what it knows, and what it sends (messages, options) into what
//! the node knows. It does so from the bytes alone, in one pass and without the copy.

mod bytes;
mod list;

use std::fmt;

use playfield_wire::DecodeError;
use playfield_wire::schema::{Incompatible, RoomSchema, Type, check_compatible};

use crate::Part;
use crate::walk::{Shape, ShapeError, Walk};
use bytes::ByteSink;

/// Turns what a node and a client that was built with an older schema send each other from one
/// schema into the other, in the format `packed`.
///
/// Every method appends to `out`; after an error, what it appended is of no use. The time is
/// proportional to the length of the body, except for orders of a list and moves after them, which
/// take up to some microseconds for each byte.
#[derive(Debug)]
pub struct Transcoder {
    state: Shape,
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
        let state = Shape::turning_state(&node.state, &client.state)?;
        Ok(Self { state, options, messages, events })
    }

    /// The body of a snapshot, to the client.
    ///
    /// # Errors
    /// Anything but what the node's schema says.
    pub fn snapshot(&self, body: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        turn(body, out, |walk| {
            walk.whole(&self.state, Part::Shared)?;
            walk.owned(&self.state, ())
        })
    }

    /// The body of a patch, to the client.
    ///
    /// # Errors
    /// Anything but what the node's schema says. Whether the patch fits the copy is not checked.
    pub fn patch(&self, body: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        turn(body, out, |walk| {
            walk.patch(&self.state, (), Part::Shared)?;
            walk.owned(&self.state, ())
        })
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

fn value(shape: &Shape, payload: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
    turn(payload, out, |walk| walk.whole(shape, Part::Shared))
}

/// Reads a body, of which no byte may be left over, and appends what it becomes.
fn turn<'a>(
    body: &'a [u8],
    out: &'a mut Vec<u8>,
    read: impl FnOnce(&mut Walk<'a, ByteSink<'a>>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    let mut walk = Walk::new(body, ByteSink::new(body, out));
    read(&mut walk)?;
    walk.reader.finish()?;
    walk.sink.finish();
    Ok(())
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
