//! Messages and events of a measured room, counted and timed in its node.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use playfield_server::{LiveProfile, NodeHandle, RoomOrder};
use playfield_state::{ExchangeProfile, MessageProfile};
use playfield_wire::schema::RoomSchema;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::node::shard_cpu;
use crate::run::WARM_UP;

/// The time after which the node looks again for the room that is to be profiled.
const LOOK: Duration = Duration::from_millis(20);
/// Numbers of each message or event.
const NUMBERS: usize = 4;

/// Messages of players and events, as the node counted and timed them for a part of the run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Exchange {
    /// The length of that part, in the time of the room.
    pub lasted: Duration,
    /// Syncs of the room.
    pub syncs: u64,
    /// The messages.
    pub messages: Vec<Exchanged>,
    /// The events.
    pub events: Vec<Exchanged>,
}

/// A message or an event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchanged {
    /// Its name.
    pub name: String,
    /// Number sent. An event for five players counts five times.
    pub count: u64,
    /// Bytes of events that several players were sent.
    pub shared: u64,
    /// All other bytes.
    pub own: u64,
    /// The time of decoding and handling messages, in nanoseconds.
    pub ns: u64,
}

impl Exchange {
    /// Something in a sync, for each player.
    #[must_use]
    pub fn per_sync(&self, count: u64) -> f64 {
        count as f64 / self.syncs.max(1) as f64
    }

    /// The messages for programs.
    pub(crate) fn messages_json(&self, players: usize) -> Value {
        self.json(&self.messages, players)
    }

    /// The events for programs.
    pub(crate) fn events_json(&self, players: usize) -> Value {
        self.json(&self.events, players)
    }

    fn json(&self, of: &[Exchanged], players: usize) -> Value {
        let seconds = self.lasted.as_secs_f64() * players as f64;
        let sent = of.iter().filter(|of| of.count > 0);
        sent.map(|of| {
            json!({
                "name": of.name,
                "per_player_s": of.count as f64 / seconds,
                "bytes_per_player_s": (of.shared + of.own) as f64 / seconds,
                "shared_bytes_per_player_s": of.shared as f64 / seconds,
                "bytes_per_sync": self.per_sync(of.shared + of.own),
                "ns_per_sync": self.per_sync(of.ns),
                "ns_each": of.ns as f64 / of.count as f64,
            })
        })
        .collect()
    }

    /// Reads the numbers that a node reports, with the names that it has printed.
    pub(crate) fn read(names: &str, numbers: &[u64]) -> Option<Self> {
        let names: Value = serde_json::from_str(names).ok()?;
        let list = |of: &str| names[of].as_array().cloned().unwrap_or_default();
        let (messages, events) = (list("messages"), list("events"));
        let ([lasted, syncs], rest) = numbers.split_first_chunk()?;
        let (rows, []) = rest.as_chunks::<NUMBERS>() else { return None };
        if rows.len() != messages.len() + events.len() {
            return None;
        }
        let row = |(name, [count, shared, own, ns]): (&Value, &[u64; NUMBERS])| Exchanged {
            name: name.as_str().unwrap_or_default().to_owned(),
            count: *count,
            shared: *shared,
            own: *own,
            ns: *ns,
        };
        let (of_messages, of_events) = rows.split_at(messages.len());
        Some(Self {
            lasted: Duration::from_nanos(*lasted),
            syncs: *syncs,
            messages: messages.iter().zip(of_messages).map(row).collect(),
            events: events.iter().zip(of_events).map(row).collect(),
        })
    }
}

/// The names of a room type's messages and events, in one word.
pub(crate) fn names(schema: &RoomSchema) -> String {
    let messages = schema.messages.iter().map(|message| &*message.name).collect::<Vec<_>>();
    let events = schema.events.iter().map(|event| &*event.name).collect::<Vec<_>>();
    json!({ "messages": messages, "events": events }).to_string().replace(' ', "\\u0020")
}

/// Profiles all rooms of a node at once, once all their players are there. Returns where the
/// numbers of the first one will be; of rounds, the CPU time of shards without profiles and with
/// them, in nanoseconds.
pub(crate) fn watch(node: NodeHandle, players: u32, profiles: Profiles) -> Arc<Mutex<Vec<u64>>> {
    let numbers = Arc::new(Mutex::new(Vec::new()));
    let found = Arc::clone(&numbers);
    let watching = thread::Builder::new().name("profile".into()).spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().ok()?;
        runtime.block_on(async {
            let rooms = rooms(&node, players, profiles.rooms).await;
            for number in 0..profiles.rounds {
                let times = round(&node, &rooms, profiles, number % 2 == 1).await?;
                found.lock().unwrap_or_else(PoisonError::into_inner).extend(times);
            }
            if profiles.rounds == 0 {
                let profile = profile(&node, &rooms, profiles).await?;
                *found.lock().unwrap_or_else(PoisonError::into_inner) = numbers_of(&profile);
            }
            Some(())
        })
    });
    // Without the thread there are no numbers, which the other end reports.
    drop(watching);
    numbers
}

/// Profiles of the rooms of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Profiles {
    /// Number of rooms.
    pub(crate) rooms: usize,
    /// Length of each, in milliseconds.
    pub(crate) ms: u64,
    /// Rounds, each with one period without profiles and one with them, as long. With 0,
    /// there is one profile of each room, and its numbers count.
    pub(crate) rounds: u32,
}

/// The rooms, once all their players are there.
async fn rooms(node: &NodeHandle, players: u32, count: usize) -> Vec<String> {
    let rooms = loop {
        let order = RoomOrder::MostPlayers;
        let (_, rooms) = node.operator().rooms(None, "", order, 0, count).await;
        if rooms.len() == count && rooms.iter().all(|room| room.summary.players >= players) {
            break rooms;
        }
        tokio::time::sleep(LOOK).await;
    };
    tokio::time::sleep(WARM_UP).await;
    rooms.into_iter().map(|room| room.id).collect()
}

/// The CPU time of shards without profiles and with them.
async fn round(
    node: &NodeHandle,
    rooms: &[String],
    profiles: Profiles,
    is_first: bool,
) -> Option<[u64; 2]> {
    let mut times = [0; 2];
    for is_profiled in [is_first, !is_first] {
        let [before, ..] = shard_cpu();
        if is_profiled {
            profile(node, rooms, profiles).await?;
        } else {
            tokio::time::sleep(Duration::from_millis(profiles.ms)).await;
        }
        let [after, ..] = shard_cpu();
        times[usize::from(is_profiled)] = after - before;
    }
    Some(times)
}

/// Profiles the rooms at once. Returns the profile of one.
async fn profile(node: &NodeHandle, rooms: &[String], profiles: Profiles) -> Option<LiveProfile> {
    let mut running = JoinSet::new();
    for room in rooms {
        let (node, room) = (node.clone(), room.clone());
        let lasts = Duration::from_millis(profiles.ms);
        running.spawn(async move { node.operator().profile(&room, lasts).await.ok() });
    }
    let mut all = running.join_all().await;
    all.pop()?
}

fn numbers_of(profile: &LiveProfile) -> Vec<u64> {
    let exchange: &ExchangeProfile = &profile.exchange;
    let row = |MessageProfile { counts, .. }: &MessageProfile| {
        [counts.count, counts.shared, counts.own, counts.time.as_nanos() as u64]
    };
    let rows = exchange.messages().iter().chain(exchange.events()).flat_map(row);
    [profile.lasted.as_nanos() as u64, profile.syncs].into_iter().chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Exchange;

    #[test]
    fn the_numbers_have_the_names_of_the_room_type() {
        let names = r#"{"messages":["Steer","Say"],"events":["Said"]}"#;
        let numbers = [2_000_000_000, 40, 10, 0, 90, 5_000, 0, 0, 0, 0, 6, 12, 3, 0];
        let exchange = Exchange::read(names, &numbers).unwrap();
        assert_eq!((exchange.lasted, exchange.syncs), (Duration::from_secs(2), 40));
        let (steer, said) = (&exchange.messages[0], &exchange.events[0]);
        assert_eq!((steer.name.as_str(), steer.count, steer.ns), ("Steer", 10, 5_000));
        assert_eq!((said.name.as_str(), said.shared, said.own), ("Said", 12, 3));
        let messages = exchange.messages_json(5);
        assert_eq!(messages.as_array().unwrap().len(), 1, "what was not sent is left out");
        assert_eq!(messages[0]["per_player_s"], 1.0);
        assert_eq!(messages[0]["ns_each"], 500.0);
        assert_eq!(Exchange::read(names, &numbers[1..]), None);
    }
}
