//! The attacks, and what shows that one took effect.

use std::time::Duration;

use super::answers::kind;

/// The actions of attackers.
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
    /// The same sessions come back with a token that they had before, from many addresses, read
    /// nothing, and lose the connection at once.
    Replays,
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
    /// Devices that register again by another connection, which ends the session before.
    TakeOvers,
    /// Requests to the console, most of all for the states of large rooms.
    ConsolePolls,
}

/// The way to count an effect.
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
    /// Sessions that were resumed, by the node's counter, beside the players' own.
    ResumedByNode,
    /// Connections that the node answered with a record of a TLS handshake.
    Flights,
    /// Answers of the console to whole requests.
    Pages,
}

/// The effect that an attack must have caused.
#[derive(Clone, Copy)]
pub(super) struct Effect {
    pub(super) name: &'static str,
    pub(super) count: Count,
    /// The lower bound, per second of an attack by [`CONNECTIONS`].
    per_second_min: f64,
}

/// The number of connections that attack, unless options say otherwise.
pub(super) const CONNECTIONS: usize = 1000;

impl Effect {
    /// The lower bound for an attack of this duration by this many connections.
    pub(super) fn least(&self, time: Duration, connections: usize) -> u64 {
        if matches!(self.count, Count::Nothing) {
            return 0;
        }
        let share = connections as f64 / CONNECTIONS as f64;
        ((self.per_second_min * share * time.as_secs_f64()).ceil() as u64).max(1)
    }
}

/// The number of addresses that a replayed session comes from.
const ADDRESSES_PER_REPLAY: usize = 5;

impl Attack {
    pub(super) const ALL: [(Self, &str); 20] = [
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
        (Self::Replays, "replays"),
        (Self::Bombs, "bombs"),
        (Self::Json, "json"),
        (Self::JsonPairs, "json pairs"),
        (Self::Hellos, "hellos"),
        (Self::Refused, "refused"),
        (Self::Handshakes, "handshakes"),
        (Self::TakeOvers, "take-overs"),
        (Self::ConsolePolls, "console polls"),
        (Self::None, "none, after"),
    ];

    /// The effect that it must have. The bounds are at most half of the least that is measured with
    /// nothing else on the machine, mostly about a fifth.
    pub(super) fn effect(self) -> Effect {
        let (name, count, per_second_min) = match self {
            Self::None => ("none", Count::Nothing, 0.0),
            Self::Pings => ("pongs received", Count::Answers(kind::PONG), 500_000.0),
            Self::Lists => ("lists received", Count::Answers(kind::LISTED), 2000.0),
            Self::Filters => ("lists received", Count::Answers(kind::LISTED), 1500.0),
            Self::Resyncs => ("snapshots received", Count::Answers(kind::SNAPSHOT), 100.0),
            Self::ResyncsAcross => ("snapshots received", Count::SnapshotsAcross, 30.0),
            Self::Replies => ("replies received", Count::Answers(kind::REPLY), 75.0),
            Self::Rooms => ("rooms joined", Count::Answers(kind::JOINED), 300.0),
            Self::Joins => ("snapshots received", Count::Answers(kind::SNAPSHOT), 300.0),
            Self::Resumes => ("sessions resumed", Count::Resumed, 20.0),
            Self::Replays => ("sessions resumed", Count::ResumedByNode, 200.0),
            Self::Bombs => ("messages inflated", Count::Read, 600.0),
            Self::Json => ("messages read", Count::Read, 200.0),
            Self::JsonPairs => ("messages read", Count::Read, 40.0),
            Self::Hellos => ("hellos read", Count::ReadFirst, 7000.0),
            Self::Refused => ("errors received", Count::Answers(kind::ERROR), 6000.0),
            Self::Handshakes => ("answers received", Count::Flights, 1500.0),
            Self::TakeOvers => ("devices registered", Count::Answers(kind::REGISTERED), 1000.0),
            Self::ConsolePolls => ("answers received", Count::Pages, 20.0),
        };
        Effect { name, count, per_second_min }
    }

    /// Returns the number of attackers, if `connections` is the usual number.
    pub(super) fn attackers(self, connections: usize) -> usize {
        match self {
            Self::None => 0,
            // Each has a dozen rooms.
            Self::Resumes => connections.div_ceil(50),
            Self::Replays => connections.div_ceil(ADDRESSES_PER_REPLAY),
            // Fewer than the console serves at once: each one more would end another.
            Self::ConsolePolls => connections.div_ceil(20),
            _ => connections,
        }
    }

    /// Returns the number of addresses that each attacker connects from, in turn.
    pub(super) fn addresses(self) -> usize {
        if self == Self::Replays { ADDRESSES_PER_REPLAY } else { 1 }
    }

    /// Returns whether attackers have a session in many rooms before the attack begins.
    pub(super) fn has_sessions(self) -> bool {
        matches!(self, Self::Resumes | Self::Replays)
    }

    /// Returns the number of the node's shards.
    pub(super) fn shards(self) -> usize {
        if self == Self::ResyncsAcross { 2 } else { 1 }
    }

    /// Returns whether an attacker loses its connection without saying so.
    pub(super) fn resets(self) -> bool {
        self.has_sessions() || self == Self::Handshakes
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Attack, CONNECTIONS};

    #[test]
    fn an_attack_must_have_an_effect_in_proportion_to_its_size() {
        let least = |attack: Attack, connections, seconds| {
            attack.effect().least(Duration::from_secs(seconds), connections)
        };
        assert_eq!(least(Attack::Rooms, CONNECTIONS, 10), 3000);
        assert_eq!(least(Attack::Rooms, CONNECTIONS / 100, 1), 3);
        assert_eq!(least(Attack::Rooms, 0, 1), 1, "no attack has no effect");
        assert_eq!(least(Attack::None, CONNECTIONS, 10), 0);
    }
}
