//! The identity of a player inside one room.

use std::fmt;

/// A player's number inside one room. It counts from 1 in the order of the requests to join, and is
/// never reused in that room.
///
/// It outlives the player's connection. In JSON, and as a key of a map there, it is written in
/// decimal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlayerId(pub u64);

impl fmt::Display for PlayerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
