//! The bytes of a running room, by field.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use playfield_room::{Error, Result};
use playfield_state::{ExchangeProfile, FieldCounts, FieldProfile, StateProfile};
use playfield_wire::ErrorCode;

use super::operated::Answering;
use super::operator::Operator;
use crate::room_id::RoomId;
use crate::shard::mail::ShardMail;
use crate::shard::rooms::capture::Captured;
use crate::shard::rooms::capture::CapturedBody;
use crate::shard::rooms::capture::CapturedKind;

/// The longest that a room is profiled.
const PROFILED_MAX: Duration = Duration::from_secs(60);

/// Tells captures of a room apart.
static CAPTURES: AtomicU64 = AtomicU64::new(0);

/// The bytes that a running room sent to a few of its players, by field.
#[derive(Clone, Debug)]
pub struct LiveProfile {
    /// All fields, in the order of the schema.
    pub fields: Vec<FieldProfile>,
    /// The snapshots that were counted: one for each player.
    pub snapshots: FieldCounts,
    /// The patches that were counted.
    pub patches: FieldCounts,
    /// The messages of all its players and their events, in each player's own format, and the time
    /// that messages took. Replies are not counted.
    pub exchange: ExchangeProfile,
    /// The number of players that there were patches for: at most three.
    pub players: usize,
    /// Syncs of the room.
    pub syncs: u64,
    /// The number of syncs that were counted, for each of these players.
    pub counted: u64,
    /// The time that it lasted.
    pub lasted: Duration,
    /// The time that the room's ticks, syncs and patches took.
    pub room_time: Duration,
    /// The time that its shard spent on the profile.
    pub profile_time: Duration,
}

/// A capture that a shard is to begin or to end.
pub(crate) struct Capturing {
    pub(crate) room: RoomId,
    pub(crate) number: u64,
    /// Its length, and the counts of messages. `None` ends it.
    pub(crate) begins: Option<(Duration, ExchangeProfile)>,
    pub(crate) answer: Answering<Captured>,
}

impl Operator<'_> {
    /// Counts by field what a room sends to up to three of its players, for a while of at most 60
    /// s, and by name the messages of all players and their events. If the future is dropped, the
    /// shard goes on until 10 s after that time.
    ///
    /// The shard writes their bodies once more, in `packed`, and takes about 0.5 % of the room's
    /// time for it, and 0.25 ms: the more they take, the more syncs it passes over. It begins with
    /// a snapshot for each player. The bodies are read where this is awaited.
    ///
    /// # Errors
    /// `refused` if it would last longer than 60 s, or the room is being profiled; or as
    /// [`inspect`](Self::inspect).
    pub async fn profile(&self, room_id: &str, lasts: Duration) -> Result<LiveProfile> {
        if lasts > PROFILED_MAX {
            let text = format!("a room is profiled for at most 60 s, not {lasts:?}");
            return Err(Error::new(ErrorCode::Refused, text));
        }
        let number = CAPTURES.fetch_add(1, Ordering::Relaxed);
        let capture = |begins: Option<(Duration, ExchangeProfile)>| {
            self.ask(room_id, move |room, answer| {
                ShardMail::Capture(Box::new(Capturing { room, number, begins, answer }))
            })
        };
        let schema = self.schema(room_id)?;
        // The node's clock may run faster than time.
        let lasts_there = lasts * self.node.shared.pace.speed;
        capture(Some((lasts_there, ExchangeProfile::new(&schema)))).await?;
        tokio::time::sleep(lasts).await;
        let captured = capture(None).await?;
        let unreadable = |text: String| {
            Error::new(ErrorCode::BadPayload, format!("what the room sends can't be read: {text}"))
        };
        let mut profile =
            StateProfile::new(&schema.state).map_err(|error| unreadable(error.to_string()))?;
        for CapturedBody { player, kind, bytes } in &captured.bodies {
            let read = match kind {
                CapturedKind::Snapshot => profile.snapshot(*player, bytes),
                CapturedKind::Patch => profile.patch(*player, bytes),
                CapturedKind::CatchUp => profile.skip_patch(*player, bytes),
            };
            read.map_err(|error| unreadable(error.to_string()))?;
        }
        Ok(LiveProfile {
            fields: profile.fields(),
            snapshots: profile.snapshots(),
            patches: profile.patches(),
            exchange: captured.exchange,
            players: captured.players,
            syncs: captured.syncs,
            counted: captured.captured,
            lasted: captured.lasted,
            room_time: captured.of_room,
            profile_time: captured.spent,
        })
    }
}
