//! Operation of a node: inspecting its rooms, and acting on them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use playfield_room::{Error, Operation, Player, Result, RoomSummary};
use playfield_state::{Format, JsonExchange, PlayerId};
use playfield_wire::ErrorCode;
use playfield_wire::schema::RoomSchema;
use playfield_wire::tree::TreeWriter;
use serde_json::Value;
use tokio::sync::oneshot::{self, Receiver, Sender};
use tokio::time::{Instant, timeout_at};

use super::NodeHandle;
use crate::config::Config;
use crate::directory::{Overview, RoomOrder};
use crate::room_id::RoomId;
use crate::shard::mail::ShardMail;
pub use crate::shard::rooms::record::Recorded;
pub use crate::shard::rooms::record::RecordedKind;
use crate::sought::Sought;
use crate::sys::with_process_table;

/// About how many players a shard looks through at a time.
const PLAYERS_PER_LOOK: usize = 10_000;
/// The time that a shard may take to answer an operator.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// The most rooms that are put into an order by load.
const SURVEYED_MAX: usize = 10_000;

/// A node as its operators see it: see [`NodeHandle::operator`].
#[derive(Clone, Copy, Debug)]
pub struct Operator<'a> {
    pub(super) node: &'a NodeHandle,
}

/// A room in the list of an [`Operator`]. Private rooms are among them.
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
    fn by_load(self) -> Option<fn(&RoomLoad) -> u64> {
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
fn sort_by_load<T>(rooms: &mut [(T, Option<RoomLoad>)], load: fn(&RoomLoad) -> u64, most: usize) {
    let sorted = rooms.len().min(most);
    rooms[..sorted].sort_by_key(|(_, of)| Reverse(of.as_ref().map(load)));
}

/// Keeps the first `most`.
fn sort_found(players: &mut Vec<FoundPlayer>, text: &Sought, most: usize) {
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
    /// Whether messages are wanted.
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

/// Players that an [`Operator`] has found.
#[derive(Clone, Debug, Default)]
pub struct FoundPlayers {
    /// The players: those whose name or user is the text itself first, then by name.
    pub players: Vec<FoundPlayer>,
    /// Whether there are more.
    pub has_more: bool,
    /// Whether all shards have answered in time.
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

impl NodeHandle {
    /// The node as its operators see it: with private rooms, and whole states. For consoles; what
    /// it returns is not for players.
    #[must_use]
    pub fn operator(&self) -> Operator<'_> {
        Operator { node: self }
    }
}

impl<'a> Operator<'a> {
    /// The settings in force.
    #[must_use]
    pub fn config(&self) -> &'a Config {
        &self.node.node.config
    }

    /// The address that clients of rooms connect to, if the node listens for them.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.node.shared.rooms_addr
    }

    /// Returns whether they may connect with TLS.
    #[must_use]
    pub fn has_tls(&self) -> bool {
        self.node.shared.tls.is_some()
    }

    /// The names of the room types, each with its schema as JSON.
    pub fn schemas(&self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.node.node.room_types.iter().map(|of| (of.name.as_str(), &*of.schema))
    }

    /// Rooms of one type or of all whose id, key or metadata contain a text: `limit` of them after
    /// the first `skip`, and how many there are.
    ///
    /// An order by load asks all shards. Past 10,000 rooms it is one of the 10,000 with the most
    /// players, and the others follow them.
    pub async fn rooms(
        &self,
        room_type: Option<&str>,
        containing: &str,
        order: RoomOrder,
        skip: usize,
        limit: usize,
    ) -> (usize, Vec<OperatedRoom>) {
        let node = &self.node.node;
        let room_type = match room_type.map(|name| node.room_type(name)) {
            Some(None) => return (0, Vec::new()),
            Some(known) => known,
            None => None,
        };
        let overview =
            |order, skip, limit| node.directory.overview(room_type, containing, order, skip, limit);
        let (count, rooms) = match order.by_load() {
            Some(load) if skip < SURVEYED_MAX => {
                let (count, rooms) =
                    overview(order, 0, SURVEYED_MAX.max(skip.saturating_add(limit)));
                let loads = self.survey(&rooms).await;
                let mut rooms: Vec<_> = rooms.into_iter().zip(loads).collect();
                sort_by_load(&mut rooms, load, SURVEYED_MAX);
                (count, rooms.into_iter().skip(skip).take(limit).collect::<Vec<_>>())
            }
            _ => {
                let (count, rooms) = overview(order, skip, limit);
                let loads = self.survey(&rooms).await;
                (count, rooms.into_iter().zip(loads).collect())
            }
        };
        let shown = |(Overview { listing, shard }, load): (Overview, _)| OperatedRoom {
            id: listing.id.to_string(),
            room_type: node.room_types[usize::from(listing.room_type)].name.clone(),
            shard,
            summary: listing.summary,
            load,
        };
        (count, rooms.into_iter().map(shown).collect())
    }

    /// The loads of these rooms. Each shard is asked once, all at the same time.
    async fn survey(&self, rooms: &[Overview]) -> Vec<Option<RoomLoad>> {
        let mut by_shard: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        for (place, room) in rooms.iter().enumerate() {
            by_shard.entry(room.shard).or_default().push(place);
        }
        let mut asked = Vec::new();
        for (shard, places) in by_shard {
            let (answer, answered) = Answering::new();
            let rooms = places.iter().map(|place| rooms[*place].listing.id).collect();
            let survey = Survey { rooms, answer };
            if self.node.post(shard, ShardMail::Survey(Box::new(survey))).is_ok() {
                asked.push((places, answered));
            }
        }
        let mut loads = vec![None; rooms.len()];
        let by = Instant::now() + ANSWER_WITHIN;
        for (places, answered) in asked {
            if let Ok(Ok(Ok(found))) = timeout_at(by, answered).await {
                for (place, load) in places.into_iter().zip(found) {
                    loads[place] = load;
                }
            }
        }
        loads
    }

    /// Players in rooms whose name or user contains a text, in upper or lower case: `limit` of
    /// them.
    ///
    /// It asks all shards, which look through about 10,000 players at a time. Shards that do not
    /// answer within 5 s are left out.
    pub async fn find_players(&self, text: &str, limit: usize) -> FoundPlayers {
        let text = Arc::new(Sought::new(text));
        let mut left = self.node.node.directory.peopled(PLAYERS_PER_LOOK);
        let (mut players, mut is_complete) = (Vec::new(), true);
        let by = Instant::now() + ANSWER_WITHIN;
        while !left.is_empty() {
            let mut asked = Vec::new();
            left.retain(|shard, groups| {
                let Some(rooms) = groups.pop() else { return false };
                let (answer, answered) = Answering::new();
                let search = Search { rooms, text: Arc::clone(&text), limit: limit + 1, answer };
                // If it can't be posted, nobody answers.
                let _ = self.node.post(*shard, ShardMail::Search(Box::new(search)));
                asked.push((*shard, answered));
                true
            });
            for (shard, answered) in asked {
                if let Ok(Ok(Ok(found))) = timeout_at(by, answered).await {
                    players.extend(found);
                } else {
                    is_complete = false;
                    left.remove(&shard);
                }
            }
            // Keeps what is sorted below small.
            sort_found(&mut players, &text, limit + 1);
        }
        let has_more = players.len() > limit;
        players.truncate(limit);
        FoundPlayers { players, has_more, is_complete }
    }

    /// Returns a room as it is now, as one of its players sees it, and, if `records`, the messages
    /// that have lately gone in and out.
    ///
    /// # Errors
    /// `room_not_found`, `busy` if the mailbox of the room's shard is full, `timeout` if the shard
    /// does not answer within 5 s, or `shutting_down`.
    pub async fn inspect(
        &self,
        room_id: &str,
        viewer: Option<PlayerId>,
        records: bool,
    ) -> Result<Inspection> {
        self.ask(room_id, |room, answer| {
            ShardMail::Inspect(Box::new(Inspect { room, viewer, records, answer }))
        })
        .await
    }

    /// Removes a player from a room, with a text for them.
    ///
    /// # Errors
    /// `refused` if the room has no such player, or as [`inspect`](Self::inspect).
    pub async fn kick(&self, room_id: &str, player: PlayerId, text: &str) -> Result<()> {
        self.operate(room_id, Operation::Kick { player, text: text.into() }).await
    }

    /// Refuses further players, or lets them join again.
    ///
    /// # Errors
    /// As [`inspect`](Self::inspect).
    pub async fn lock(&self, room_id: &str, locked: bool) -> Result<()> {
        self.operate(room_id, Operation::Lock(locked)).await
    }

    /// Sends an event, given as JSON, to one player of a room or to all.
    ///
    /// # Errors
    /// `bad_payload` if the room has no such event, or its type is another; `refused` if it has no
    /// such player, or as [`inspect`](Self::inspect).
    pub async fn emit(
        &self,
        room_id: &str,
        event: &str,
        value: &Value,
        to: Option<PlayerId>,
    ) -> Result<()> {
        let bad = |text: String| Error::new(ErrorCode::BadPayload, text);
        let schema = self.schema(room_id)?;
        let exchange = JsonExchange::new(&schema).map_err(|error| bad(error.to_string()))?;
        let (number, packed) =
            exchange.event_payload(event, value).map_err(|error| bad(error.to_string()))?;
        // As the type writes it.
        let (_, value) = exchange.event(number, &packed).map_err(|error| bad(error.to_string()))?;
        let payloads = Format::ALL.map(|format| match format.tree() {
            None => packed.clone(),
            Some(format) => {
                let mut payload = Vec::new();
                TreeWriter::new(format, &mut payload).value(&value);
                payload
            }
        });
        self.operate(room_id, Operation::Emit { event: number, payloads, to }).await
    }

    /// The schema of a room.
    pub(super) fn schema(&self, room_id: &str) -> Result<RoomSchema> {
        let (id, _) = self.node.place(room_id)?;
        let room_type = self.node.node.directory.find(id).map(|place| place.room_type);
        let of = room_type.and_then(|number| self.node.node.room_types.get(usize::from(number)));
        let text = of.map(|of| of.schema.as_bytes()).unwrap_or_default();
        RoomSchema::from_json(text)
            .map_err(|error| Error::new(ErrorCode::BadPayload, error.to_string()))
    }

    async fn operate(&self, room_id: &str, operation: Operation) -> Result<()> {
        self.ask(room_id, |room, answer| {
            ShardMail::Operate(Box::new(Operate { room, operation, answer }))
        })
        .await
    }

    pub(super) async fn ask<T>(
        &self,
        room_id: &str,
        mail: impl FnOnce(RoomId, Answering<T>) -> ShardMail,
    ) -> Result<T>
    where
        T: Send + 'static,
    {
        let (id, shard) = self.node.place(room_id)?;
        let (answer, answered) = Answering::new();
        self.node.post(shard, mail(id, answer))?;
        match tokio::time::timeout(ANSWER_WITHIN, answered).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => Err(crate::asks::shard_failed(shard)),
            Err(_) => {
                let text = format!("shard {shard}, where the room is, did not answer within 5 s");
                Err(Error::new(ErrorCode::Timeout, text))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RoomLoad, RoomOrder, sort_by_load};

    #[test]
    fn rooms_past_the_most_that_are_sorted_follow_the_others() {
        let load = |bytes_out_per_s| Some(RoomLoad { bytes_out_per_s, ..RoomLoad::default() });
        let mut rooms = [("a", load(1)), ("b", None), ("c", load(3)), ("d", load(9))];
        sort_by_load(&mut rooms, RoomOrder::MostBytes.by_load().unwrap(), 3);
        assert_eq!(rooms.map(|(name, _)| name), ["c", "a", "b", "d"]);
    }
}
