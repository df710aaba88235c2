//! Views of a node for operators, and the questions to shards behind them.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

pub use playfield_room::recording::{Recorded, RecordedKind};
use playfield_room::{Operation, Player, Result, RoomSummary};
use playfield_state::PlayerId;
use tokio::sync::oneshot::{self, Receiver, Sender};

use crate::directory::RoomOrder;
use crate::room_id::RoomId;
use crate::sought::Sought;
use crate::sys::with_process_table;

/// A room in the list of an [`Operator`](super::Operator). Private rooms are among them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperatedRoom {
    /// Its id.
    pub id: String,
    /// The name of its type.
    pub room_type: String,
    /// The number of its shard.
    pub shard: u16,
    /// Its players, its key, its metadata.
    pub summary: RoomSummary,
    /// The time and bytes that it takes; `None` if its shard did not say in time.
    pub load: Option<RoomLoad>,
}

/// The time and bytes that a room takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomLoad {
    /// The longest of its regular syncs in the last five to ten seconds. `None` if it rested, or
    /// syncs only when it asks for it.
    pub longest: Option<RoomCost>,
    /// The most that a tick, a sync or a timer was late, in the last one to two seconds.
    pub late_max: Duration,
    /// Syncs that it has missed because its shard was late.
    pub syncs_missed: u64,
    /// Bytes of the payloads that its players have sent.
    pub bytes_in: u64,
    /// Bytes of the messages written for its players, before framing and compression.
    pub bytes_out: u64,
    /// Bytes in per second, between the last two looks of operators that were a second apart; at
    /// the first look, since the room began.
    pub bytes_in_per_s: u64,
    /// Bytes out per second, likewise.
    pub bytes_out_per_s: u64,
}

/// The time that a regular sync of a room took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RoomCost {
    /// Its ticks and timers since the sync before.
    pub ticks: Duration,
    /// Comparing its state with what was synced before.
    pub sync: Duration,
    /// Writing patches for all its players.
    pub patches: Duration,
}

impl RoomOrder {
    /// The value that it compares, if only the shards know it.
    pub(super) fn by_load(self) -> Option<fn(&RoomLoad) -> u64> {
        match self {
            Self::Oldest | Self::Newest | Self::MostPlayers => None,
            Self::Slowest => Some(|load| {
                let RoomCost { ticks, sync, patches } = load.longest.unwrap_or_default();
                (ticks + sync + patches).as_micros() as u64
            }),
            Self::Latest => Some(|load| load.late_max.as_micros() as u64),
            Self::MostBytes => Some(|load| load.bytes_in_per_s + load.bytes_out_per_s),
        }
    }
}

/// Puts the first `most` into an order by load, the highest first; those without an answer last.
pub(super) fn sort_by_load<T>(
    rooms: &mut [(T, Option<RoomLoad>)],
    load: fn(&RoomLoad) -> u64,
    most: usize,
) {
    let sorted = rooms.len().min(most);
    rooms[..sorted].sort_by_key(|(_, of)| Reverse(of.as_ref().map(load)));
}

/// Keeps the first `most`.
pub(super) fn sort_found(players: &mut Vec<FoundPlayer>, text: &Sought, most: usize) {
    players.sort_by_cached_key(|FoundPlayer { player, room_id, .. }| {
        (Match::of(text, player), player.name().to_lowercase(), room_id.clone(), player.id())
    });
    players.truncate(most);
}

/// A room at one moment.
#[derive(Clone, Debug)]
pub struct Inspection {
    /// The name of its type.
    pub room_type: String,
    /// Its players, in the order in which they joined.
    pub players: Vec<Player>,
    /// Its players, its key, its metadata.
    pub summary: RoomSummary,
    /// The version of its last sync.
    pub version: u64,
    /// The time for which it has existed.
    pub age: Duration,
    /// Ticks and syncs per second.
    pub rates: (u32, u32),
    /// The time and bytes that it takes.
    pub load: RoomLoad,
    /// True while it is recorded in a file; `None` if it can't be.
    pub recording: Option<bool>,
    /// Its inputs go into the journal.
    pub is_journaled: bool,
    /// Its state as it is now, also what no player sees, as a [save](playfield_state::save).
    pub whole: Option<Vec<u8>>,
    /// The viewer's view at the last sync: a snapshot in `json`.
    pub view: Option<Vec<u8>>,
    /// The room's last messages, in and out, if they were asked for: up to 200 since the first such
    /// inspection. Recording ends 10 s after the last.
    pub messages: Vec<Recorded>,
}

/// An inspection that a shard is asked for.
pub(crate) struct Inspect {
    pub(crate) room: RoomId,
    pub(crate) viewer: Option<PlayerId>,
    /// Messages are wanted.
    pub(crate) records: bool,
    pub(crate) answer: Answering<Inspection>,
}

/// A request to a shard for the loads of many of its rooms: one for each, `None` if it is gone.
pub(crate) struct Survey {
    pub(crate) rooms: Vec<RoomId>,
    pub(crate) answer: Answering<Vec<Option<RoomLoad>>>,
}

/// A player whose name or user an operator looked for.
#[derive(Clone, Debug)]
pub struct FoundPlayer {
    /// The id of the room.
    pub room_id: String,
    /// The name of the room's type.
    pub room_type: String,
    /// The player.
    pub player: Player,
}

/// Players that an [`Operator`](super::Operator) has found.
#[derive(Clone, Debug, Default)]
pub struct FoundPlayers {
    /// The players: those whose name or user is the text itself first, then by name.
    pub players: Vec<FoundPlayer>,
    /// More follow.
    pub has_more: bool,
    /// All shards have answered in time.
    pub is_complete: bool,
}

/// The degree to which a player fits what is sought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Match {
    /// The name or the user is the text.
    Exact,
    /// The text is in one of them.
    Part,
}

impl Match {
    pub(crate) fn of(text: &Sought, player: &Player) -> Option<Self> {
        let texts = || [Some(player.name()), player.user()].into_iter().flatten();
        if !texts().any(|of| text.is_in(of)) {
            return None;
        }
        Some(if texts().any(|of| text.is(of)) { Self::Exact } else { Self::Part })
    }
}

/// A request to a shard to search some of its rooms for `limit` players whose name or user is the
/// text, and as many where one contains it.
pub(crate) struct Search {
    pub(crate) rooms: Vec<RoomId>,
    pub(crate) text: Arc<Sought>,
    pub(crate) limit: usize,
    pub(crate) answer: Answering<Vec<FoundPlayer>>,
}

/// An operation that a shard is asked for.
pub(crate) struct Operate {
    pub(crate) room: RoomId,
    pub(crate) operation: Operation,
    pub(crate) answer: Answering<()>,
}

/// The channel for an answer to an operator.
pub(crate) struct Answering<T>(Sender<Result<T>>);

impl<T: Send + 'static> Answering<T> {
    pub(crate) fn new() -> (Self, Receiver<Result<T>>) {
        let (sender, receiver) = oneshot::channel();
        (Self(sender), receiver)
    }

    pub(crate) fn answer(self, answer: Result<T>) {
        // This wakes the runtime that waits. Who asked may have gone.
        with_process_table(move || drop(self.0.send(answer)));
    }
}
