//! The output that one party was sent in a run of a room.

use playfield_state::{Format, PlayerId};
use serde_json::Value;

use super::log::Moment;
use crate::{Error, Payload};

/// A party that is sent something.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Receiver {
    /// A player, or someone who wants to join.
    Link(u64),
    /// Anyone who lists rooms.
    Listing,
    Channel(String),
    Devices(String),
    /// Another room. No player sees this.
    Room(String),
}

/// All that one party is sent.
#[derive(Default)]
pub(super) struct Transcript {
    /// The display name of a player.
    pub(super) name: String,
    pub(super) player: Option<PlayerId>,
    pub(super) entries: Vec<Entry>,
    /// The number of the player's own inputs.
    pub(super) own: u32,
    /// Waits while the player's connection is cut.
    pub(super) held: Option<Vec<Entry>>,
}

/// A message to a party.
pub(super) struct Entry {
    pub(super) moment: Moment,
    /// The number of the receiver's own inputs before.
    pub(super) own: u32,
    /// The number of earlier inputs, of all parties.
    pub(super) input: usize,
    pub(super) sent: Sent,
}

/// The input that caused an entry need not be the same, since not everyone sees it.
impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        (self.moment, self.own, &self.sent) == (other.moment, other.own, &other.sent)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Sent {
    Joined(PlayerId),
    Refused(Error),
    Removed(Error),
    Body { format: Format, is_snapshot: bool, bytes: Vec<u8> },
    Event { index: u32, format: Format, bytes: Vec<u8> },
    Reply { asked: Asked, format: Format, bytes: Vec<u8> },
    Error { asked: Option<Asked>, message: Option<u32>, error: Error },
    Listing(Value),
    Created(Value),
    Payload(Payload),
    Mail { name: String, bytes: Vec<u8> },
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    /// Its number among the player's inputs.
    pub(super) own: u32,
    pub(super) message: u32,
}

impl Receiver {
    /// The party's name, for people.
    pub(super) fn describe(&self, transcript: &Transcript) -> String {
        match (self, transcript.player) {
            (Self::Link(_), Some(player)) => format!("{} (player {player})", transcript.name),
            (Self::Link(_), None) => format!("{}, who wants to join", transcript.name),
            (Self::Listing, _) => "whoever lists rooms".to_owned(),
            (Self::Channel(channel), _) => format!("the channel {channel:?}"),
            (Self::Devices(of), _) => format!("the devices {of}"),
            (Self::Room(id), _) => format!("the room {id:?}"),
        }
    }
}
