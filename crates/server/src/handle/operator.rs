//! Operation of a node: inspecting its rooms, and acting on them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use playfield_room::{Error, Operation, Result};
use playfield_state::{Format, JsonExchange, PlayerId};
use playfield_wire::ErrorCode;
use playfield_wire::schema::RoomSchema;
use playfield_wire::tree::TreeWriter;
use serde_json::Value;
use tokio::sync::oneshot::Receiver;
use tokio::time::{Instant, timeout_at};

use super::NodeHandle;
use super::operated::{
    Answering, FoundPlayers, Inspect, Inspection, Operate, OperatedRoom, RoomLoad, Search, Survey,
    sort_by_load, sort_found,
};
use crate::config::Config;
use crate::directory::{Overview, RoomOrder};
use crate::room_id::RoomId;
use crate::shard::mail::ShardMail;
use crate::sought::Sought;

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
        self.node.shared.rooms_addr.get().copied()
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

    /// Records a room from now on, with the last minutes that are kept of it, until this is called
    /// with `false` or the room ends. The log names the file, in the folder `recordings.folder`.
    ///
    /// # Errors
    /// `refused` if recordings have no folder, or the type of the room is never recorded; or as
    /// [`inspect`](Self::inspect).
    pub async fn record(&self, room_id: &str, records: bool) -> Result<()> {
        self.operate(room_id, Operation::Record(records)).await
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
        answer_of(shard, answered).await
    }
}

/// Waits for a shard's answer.
pub(super) async fn answer_of<T>(shard: u16, answered: Receiver<Result<T>>) -> Result<T> {
    match tokio::time::timeout(ANSWER_WITHIN, answered).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) => Err(crate::asks::shard_failed(shard)),
        Err(_) => {
            let text = format!("shard {shard}, where the room is, did not answer within 5 s");
            Err(Error::new(ErrorCode::Timeout, text))
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
