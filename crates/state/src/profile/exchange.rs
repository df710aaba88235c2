//! Bytes of messages, replies and events, by name.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use playfield_wire::DecodeError;
use playfield_wire::schema::RoomSchema;

use super::StateProfile;
use crate::walk::ShapeError;
use crate::{PlayerId, digest};

/// The versions for which it is known who was sent which event.
const EVENT_VERSIONS: u64 = 64;

/// Counts the bytes of everything that a room and its players exchange: of the state by field, of
/// messages, replies and events by name. All are in `packed`.
///
/// What surrounds bodies and payloads is not in it: the headers of the protocol, frames, checks and
/// pings.
#[derive(Debug)]
pub struct RoomProfile {
    /// The state.
    pub state: StateProfile,
    /// Messages, replies and events.
    pub exchange: ExchangeProfile,
}

impl RoomProfile {
    /// Creates an empty profile of a room with this schema.
    ///
    /// # Errors
    /// If no state can have the type in the schema.
    pub fn new(schema: &RoomSchema) -> Result<Self, ShapeError> {
        let state = StateProfile::new(&schema.state)?;
        Ok(Self { state, exchange: ExchangeProfile::new(schema) })
    }
}

/// Counts the bytes of messages, replies and events, by name.
#[derive(Clone, Debug, Default)]
pub struct ExchangeProfile {
    messages: Vec<MessageProfile>,
    replies: Vec<MessageProfile>,
    events: Vec<MessageProfile>,
    /// The events of the last versions.
    sent: BTreeMap<(u64, u32, u64), Sent>,
}

/// The cost of a message, a reply or an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageProfile {
    /// The name of the message or the event.
    pub name: String,
    /// The number sent, and the bytes.
    pub counts: MessageCounts,
}

/// The number and the bytes of payloads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageCounts {
    /// Number sent. An event for five players counts five times.
    pub count: u64,
    /// Bytes of events that several players were sent at the same version. 0 for messages and
    /// replies.
    pub shared: u64,
    /// All other bytes.
    pub own: u64,
    /// The time that a node took to decode and handle messages; zero where nobody measured it.
    pub time: Duration,
}

impl MessageCounts {
    /// All bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.shared + self.own
    }
}

/// To whom an event was sent.
#[derive(Clone, Debug)]
enum Sent {
    To(PlayerId),
    ToSeveral,
}

impl ExchangeProfile {
    /// Creates an empty profile of a room with this schema.
    #[must_use]
    pub fn new(schema: &RoomSchema) -> Self {
        let empty = |name: &Cow<'_, str>| MessageProfile {
            name: name.clone().into_owned(),
            counts: MessageCounts::default(),
        };
        let messages = || schema.messages.iter().map(|message| empty(&message.name)).collect();
        Self {
            messages: messages(),
            replies: messages(),
            events: schema.events.iter().map(|event| empty(&event.name)).collect(),
            sent: BTreeMap::new(),
        }
    }

    /// The number of the message with this name.
    #[must_use]
    pub fn number(&self, name: &str) -> Option<u32> {
        let at = self.messages.iter().position(|message| message.name == name)?;
        u32::try_from(at).ok()
    }

    /// Counts a message of a player.
    ///
    /// # Errors
    /// If the room has no message with that number.
    pub fn message(&mut self, number: u32, payload: &[u8]) -> Result<(), DecodeError> {
        let counts = counts(&mut self.messages, number, "message")?;
        counts.count += 1;
        counts.own += payload.len() as u64;
        Ok(())
    }

    /// Adds the time that a node took for a message.
    ///
    /// # Errors
    /// If the room has no message with that number.
    pub fn took(&mut self, number: u32, time: Duration) -> Result<(), DecodeError> {
        counts(&mut self.messages, number, "message")?.time += time;
        Ok(())
    }

    /// Counts the reply to the message with that number.
    ///
    /// # Errors
    /// If the room has no message with that number.
    pub fn reply(&mut self, number: u32, payload: &[u8]) -> Result<(), DecodeError> {
        let counts = counts(&mut self.replies, number, "message")?;
        counts.count += 1;
        counts.own += payload.len() as u64;
        Ok(())
    }

    /// Counts an event for a player. It is shared if another player is sent the same event at the
    /// same version, not more than 64 versions later than others.
    ///
    /// # Errors
    /// If the room has no event with that number.
    pub fn event(
        &mut self,
        player: PlayerId,
        version: u64,
        number: u32,
        payload: &[u8],
    ) -> Result<(), DecodeError> {
        let counts = counts(&mut self.events, number, "event")?;
        let bytes = payload.len() as u64;
        counts.count += 1;
        let key = (version, number, digest::of_bytes(payload));
        match self.sent.get_mut(&key) {
            None => {
                counts.own += bytes;
                self.sent.insert(key, Sent::To(player));
            }
            Some(Sent::To(other)) if *other == player => counts.own += bytes,
            Some(Sent::ToSeveral) => counts.shared += bytes,
            Some(first) => {
                *first = Sent::ToSeveral;
                counts.own -= bytes;
                counts.shared += 2 * bytes;
            }
        }
        let kept = version.saturating_sub(EVENT_VERSIONS);
        while self.sent.first_entry().is_some_and(|first| first.key().0 < kept) {
            self.sent.pop_first();
        }
        Ok(())
    }

    /// The messages of players, in the order of the schema.
    #[must_use]
    pub fn messages(&self) -> &[MessageProfile] {
        &self.messages
    }

    /// The replies to messages, in the order of the schema.
    #[must_use]
    pub fn replies(&self) -> &[MessageProfile] {
        &self.replies
    }

    /// The events, in the order of the schema.
    #[must_use]
    pub fn events(&self) -> &[MessageProfile] {
        &self.events
    }
}

fn counts<'a>(
    of: &'a mut [MessageProfile],
    number: u32,
    kind: &str,
) -> Result<&'a mut MessageCounts, DecodeError> {
    let found = of.get_mut(number as usize).map(|profile| &mut profile.counts);
    found.ok_or_else(|| {
        DecodeError::other(format!("the room has no {kind} with the number {number}"))
    })
}
