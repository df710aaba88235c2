//! The attacks, and what shows that one took effect.

use std::time::Duration;

use super::answers::kind;

/// What attackers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attack {
    /// Nothing.
    None,
    /// Pings, as fast as the socket accepts them.
    Pings,
    /// Lists of rooms.
    Lists,
    /// Lists with many filters.
    Filters,
    /// Requests for snapshots of a large room.
    Resyncs,
    /// The same, of a room on another shard than the connection.
    ResyncsAcross,
    /// Requests with long replies.
    Replies,
    /// New rooms.
    Rooms,
    /// Joins of a large room, which is left as soon as its snapshot is there.
    Joins,
    /// Sessions in many large rooms that lose their connection and come back without their copies.
    Resumes,
    /// WebSocket messages of maximal length that compress to almost nothing.
    Bombs,
    /// JSON messages of maximal length: one text.
    Json,
    /// JSON messages of maximal length: many short texts.
    JsonPairs,
    /// Connections that say hello and disconnect.
    Hellos,
    /// Connections whose hello is refused.
    Refused,
    /// TLS handshakes that are never finished.
    Handshakes,
}

/// How an effect is counted.
#[derive(Clone, Copy)]
pub(super) enum Count {
    /// Nothing is to be counted.
    Nothing,
    /// Whole messages of this kind that attackers received.
    Answers(u8),
    /// Snapshots of the large room that attackers received, as far as the shard of their connections
    /// has written as many bytes.
    SnapshotsAcross,
    /// Messages that the node read, by its own counter, beside the first of each connection.
    Read,
    /// First messages of connections that the node read, by its own counter.
    ReadFirst,
    /// Times that a session was resumed and received a snapshot of each room.
    Resumed,
    /// Connections that the node answered with a record of a TLS handshake.
    Flights,
}

/// What an attack must have caused.
#[derive(Clone, Copy)]
pub(super) struct Effect {
    pub(super) name: &'static str,
    pub(super) count: Count,
    /// The lower bound, per second of the attack.
    per_second_min: f64,
}

impl Effect {
    /// The lower bound for an attack of this duration.
    pub(super) fn least(&self, time: Duration) -> u64 {
        (self.per_second_min * time.as_secs_f64()).ceil() as u64
    }
}

impl Attack {
    pub(super) const ALL: [(Self, &str); 17] = [
        (Self::None, "none"),
        (Self::Pings, "pings"),
        (Self::Lists, "lists"),
        (Self::Filters, "filters"),
        (Self::Resyncs, "resyncs"),
        (Self::ResyncsAcross, "resyncs across"),
        (Self::Replies, "replies"),
        (Self::Rooms, "rooms"),
        (Self::Joins, "joins"),
        (Self::Resumes, "resumes"),
        (Self::Bombs, "bombs"),
        (Self::Json, "json"),
        (Self::JsonPairs, "json pairs"),
        (Self::Hellos, "hellos"),
        (Self::Refused, "refused"),
        (Self::Handshakes, "handshakes"),
        (Self::None, "none, after"),
    ];

    /// What it must have caused. The bounds are far below what is measured, so that they hold on a
    /// busy machine.
    pub(super) fn effect(self) -> Effect {
        let (name, count, per_second_min) = match self {
            Self::None => ("none", Count::Nothing, 0.0),
            Self::Pings => ("pongs received", Count::Answers(kind::PONG), 1000.0),
            Self::Lists | Self::Filters => ("lists received", Count::Answers(kind::LISTED), 20.0),
            Self::Resyncs | Self::Joins => {
                ("snapshots received", Count::Answers(kind::SNAPSHOT), 5.0)
            }
            Self::ResyncsAcross => ("snapshots received", Count::SnapshotsAcross, 5.0),
            Self::Replies => ("replies received", Count::Answers(kind::REPLY), 5.0),
            Self::Rooms => ("rooms joined", Count::Answers(kind::JOINED), 10.0),
            Self::Resumes => ("sessions resumed", Count::Resumed, 0.5),
            Self::Bombs => ("messages inflated", Count::Read, 10.0),
            Self::Json | Self::JsonPairs => ("messages read", Count::Read, 5.0),
            Self::Hellos => ("hellos read", Count::ReadFirst, 20.0),
            Self::Refused => ("errors received", Count::Answers(kind::ERROR), 20.0),
            Self::Handshakes => ("answers received", Count::Flights, 20.0),
        };
        Effect { name, count, per_second_min }
    }

    /// How many attackers there are, if `connections` is the usual number.
    pub(super) fn attackers(self, connections: usize) -> usize {
        match self {
            Self::None => 0,
            // Each has a dozen rooms.
            Self::Resumes => connections.div_ceil(50),
            _ => connections,
        }
    }

    /// How many shards the node has.
    pub(super) fn shards(self) -> usize {
        if self == Self::ResyncsAcross { 2 } else { 1 }
    }

    /// Whether an attacker loses its connection without saying so.
    pub(super) fn resets(self) -> bool {
        matches!(self, Self::Resumes | Self::Handshakes)
    }
}
