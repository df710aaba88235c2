//! From the schema that a node has to the one that a client was built with, and back.
//!
//! A node speaks to everyone as its own schema says, so that what all see is encoded once. A client
//! that was built with an older one turns what comes into what it knows: bodies of snapshots and
//! patches, replies and events; and what it says into what the node knows: messages and options.
//! This is done from the bytes alone, in one pass and without the copy: fields that the client does
//! not know are read and left out, masks and numbers of variants are those of the other side, and
//! slots, indices and keys stay.

mod column;
mod list;
mod map;
mod plan;
mod walk;

use playfield_wire::DecodeError;
use playfield_wire::schema::{Incompatible, RoomSchema, Type, check_compatible};

use crate::Part;
use plan::Plan;
use walk::Walk;

/// Turns what a node and a client that was built with an older schema say to each other from one
/// schema into the other, in the format `packed`.
///
/// Every method appends to `out`; after an error, what it appended is of no use. What is read costs
/// no more than its own length, times what the schemas make of it; an order of a list, and after it
/// moves, up to some microseconds for each byte.
#[derive(Debug)]
pub struct Transcoder {
    state: Plan,
    /// `None` if the client has nothing to say.
    options: Option<Plan>,
    messages: Vec<Message>,
    /// By the node's numbers.
    events: Vec<Option<Event>>,
}

#[derive(Debug)]
struct Message {
    number: u32,
    of: Plan,
    reply: Plan,
}

#[derive(Debug)]
struct Event {
    number: u32,
    of: Plan,
}

impl Transcoder {
    /// Between a node and a client.
    ///
    /// # Errors
    /// If the node's schema has not [grown](check_compatible) from the client's.
    pub fn new(node: &RoomSchema, client: &RoomSchema) -> Result<Self, Incompatible> {
        check_compatible(node, client)?;
        let messages = client.messages.iter().filter_map(|message| {
            let number = node.messages.iter().position(|other| other.name == message.name)?;
            let of_node = &node.messages[number];
            let of = Plan::of_value(&message.of, &of_node.of);
            Some(Message {
                number: number as u32,
                of,
                reply: Plan::of_value(&of_node.reply, &message.reply),
            })
        });
        let events = node.events.iter().map(|event| {
            let number = client.events.iter().position(|other| other.name == event.name)?;
            Some(Event {
                number: number as u32,
                of: Plan::of_value(&event.of, &client.events[number].of),
            })
        });
        let has_options = client.options != Type::Unit;
        Ok(Self {
            state: Plan::of_state(&node.state, &client.state),
            options: has_options.then(|| Plan::of_value(&client.options, &node.options)),
            messages: messages.collect(),
            events: events.collect(),
        })
    }

    /// The body of a snapshot, to the client.
    ///
    /// # Errors
    /// Anything but what the node's schema says.
    pub fn snapshot(&self, body: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        self.body(body, out, |walk, plan| walk.whole(plan, Part::Shared))
    }

    /// The body of a patch, to the client.
    ///
    /// # Errors
    /// Anything but what the node's schema says. Whether the patch fits the copy, the copy says.
    pub fn patch(&self, body: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
        self.body(body, out, |walk, plan| walk.patch(plan, Part::Shared))
    }

    fn body<'a>(
        &self,
        body: &'a [u8],
        out: &'a mut Vec<u8>,
        shared: impl FnOnce(&mut Walk<'a>, &Plan) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        let mut walk = Walk::new(body, out);
        shared(&mut walk, &self.state)?;
        if !walk.reader.is_empty() {
            walk.patch(&self.state, Part::Owned)?;
        }
        walk.reader.finish()
    }

    /// A message, to the node: of the client's number, which becomes the node's.
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

    /// An event, to the client: of the node's number, which becomes the client's. `None` if the
    /// client was not built with it.
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

fn value(plan: &Plan, payload: &[u8], out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let mut walk = Walk::new(payload, out);
    walk.whole(plan, Part::Shared)?;
    walk.reader.finish()
}
