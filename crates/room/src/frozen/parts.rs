//! The content of the parts of a frozen room. A part never changes: a later build that has more to
//! say adds a part.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use playfield_state::__rt::{Reader, Value};
use playfield_state::{Bytes, Data, PlayerId, TreeWriter};
use playfield_wire::DecodeError;
use playfield_wire::schema::Type;

use crate::{CreatedBy, Durability, Isolated, OnePerUser, Record};

/// The parts, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    About = 1,
    Settings = 2,
    Clock = 3,
    Random = 4,
    /// The messages that timers and saves hold.
    Messages = 5,
    Timers = 6,
    Seats = 7,
    Reserved = 8,
    Replies = 9,
    Work = 10,
    Rates = 11,
    /// Only of a room that is saved.
    Saving = 12,
    /// A save.
    State = 13,
    /// The bytes that [`Tracker::put_slots`](playfield_state::Tracker::put_slots) wrote.
    Slots = 14,
    /// Work in flight. Only of a room that is recorded: it goes on in a replay, which has the
    /// outcome.
    Pending = 15,
    /// More of it: players who wait to join, and the save that is being opened again.
    Held = 16,
    /// Only of a fork.
    Fork = 17,
    /// The saves that the store may have. Only of a journaled room.
    Saves = 18,
}

impl Part {
    const ALL: [Self; 18] = [
        Self::About,
        Self::Settings,
        Self::Clock,
        Self::Random,
        Self::Messages,
        Self::Timers,
        Self::Seats,
        Self::Reserved,
        Self::Replies,
        Self::Work,
        Self::Rates,
        Self::Saving,
        Self::State,
        Self::Slots,
        Self::Pending,
        Self::Held,
        Self::Fork,
        Self::Saves,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::About => "about",
            Self::Settings => "settings",
            Self::Clock => "clock",
            Self::Random => "random",
            Self::Messages => "messages",
            Self::Timers => "timers",
            Self::Seats => "seats",
            Self::Reserved => "reserved",
            Self::Replies => "replies",
            Self::Work => "work",
            Self::Rates => "rates",
            Self::Saving => "saving",
            Self::State => "state",
            Self::Slots => "slots",
            Self::Pending => "pending",
            Self::Held => "held",
            Self::Fork => "fork",
            Self::Saves => "saves",
        }
    }
}

/// The name of the part with this number.
pub(super) fn name(number: u8) -> &'static str {
    match Part::ALL.iter().find(|part| **part as u8 == number) {
        Some(part) => part.name(),
        None if super::HOST_PARTS.contains(&number) => "host",
        None => "unknown",
    }
}

/// Instead of slots, for a state that may have changed since the last sync: the slots of no state.
pub(crate) const NO_SLOTS: [u8; 8] = [0; 8];

/// Numbers that a room counts are below this, and so are its seconds.
const NUMBER_MAX: u64 = 1 << 60;

/// Checks a number that a room counts.
pub(crate) fn check_number(number: u64) -> Result<(), String> {
    if number < NUMBER_MAX {
        return Ok(());
    }
    Err(format!("the number {number} is past any that a room reaches"))
}

/// A time: whole seconds, then nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) Duration);

impl Data for Time {
    fn schema() -> Type {
        <[u64; 2]>::schema()
    }

    fn encode(&self, out: &mut Vec<u8>) {
        [self.0.as_secs(), self.0.subsec_nanos().into()].encode(out);
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = reader.offset();
        let [seconds, nanos] = <[u64; 2]>::decode(reader)?;
        match u32::try_from(nanos) {
            Ok(nanos) if nanos < 1_000_000_000 => Ok(Self(Duration::new(seconds, nanos))),
            _ => Err(DecodeError::new(at, format!("{nanos} ns are more than a second"))),
        }
    }

    fn to_tree(&self, out: TreeWriter<'_>) {
        [self.0.as_secs(), self.0.subsec_nanos().into()].to_tree(out);
    }

    fn from_json(_: &Value) -> Result<Self, DecodeError> {
        Err(DecodeError::other("a frozen room is never JSON"))
    }
}

#[derive(Data, Debug, Default)]
pub(crate) struct About {
    pub(crate) id: String,
    pub(crate) room_type: String,
    pub(crate) key: Option<String>,
    pub(crate) is_code: bool,
    pub(crate) private: bool,
    pub(crate) locked: bool,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) creator: Creator,
}

#[derive(Data, Debug, Default)]
pub(crate) enum Creator {
    #[default]
    Node,
    Player {
        name: String,
        user: Option<String>,
    },
    Room(Sender),
}

#[derive(Data, Debug)]
pub(crate) struct Sender {
    pub(crate) room_id: String,
    pub(crate) room_type: String,
}

impl From<&crate::Sender> for Sender {
    fn from(sender: &crate::Sender) -> Self {
        Self { room_id: sender.room_id.clone(), room_type: sender.room_type.clone() }
    }
}

impl From<Sender> for crate::Sender {
    fn from(sender: Sender) -> Self {
        Self { room_id: sender.room_id, room_type: sender.room_type }
    }
}

impl From<&crate::Creator> for Creator {
    fn from(creator: &crate::Creator) -> Self {
        match creator {
            crate::Creator::Node => Self::Node,
            crate::Creator::Player { name, user } => {
                Self::Player { name: name.clone(), user: user.clone() }
            }
            crate::Creator::Room(room) => Self::Room((&**room).into()),
        }
    }
}

impl From<Creator> for crate::Creator {
    fn from(creator: Creator) -> Self {
        match creator {
            Creator::Node => Self::Node,
            Creator::Player { name, user } => Self::Player { name, user },
            Creator::Room(room) => Self::Room(Arc::new(room.into())),
        }
    }
}

#[derive(Data, Debug)]
pub(crate) struct Settings {
    tick_hz: u32,
    sync_hz: u32,
    capacity: u32,
    empty_ms: u64,
    closing_ms: u64,
    join_wait_ms: u64,
    joins_waiting_max: u32,
    reply_ms: u64,
    silence_ms: u64,
    round_trip_ms: u64,
    grace_ms: u64,
    persist_s: u32,
    is_created_by_server: bool,
    one_per_user: PerUser,
}

#[derive(Data, Debug)]
enum PerUser {
    Any,
    TakeOver,
    Refuse,
}

impl From<crate::Settings> for Settings {
    fn from(settings: crate::Settings) -> Self {
        let crate::Settings {
            tick_hz,
            sync_hz,
            capacity,
            empty_ms,
            closing_ms,
            join_wait_ms,
            joins_waiting_max,
            reply_ms,
            silence_ms,
            round_trip_ms,
            grace_ms,
            persist_s,
            creation,
            one_per_user,
            // These are up to the host.
            record: _,
            durability: _,
            isolated: _,
        } = settings;
        Self {
            tick_hz,
            sync_hz,
            capacity,
            empty_ms,
            closing_ms,
            join_wait_ms,
            joins_waiting_max,
            reply_ms,
            silence_ms,
            round_trip_ms,
            grace_ms,
            persist_s,
            is_created_by_server: creation == CreatedBy::Server,
            one_per_user: match one_per_user {
                OnePerUser::No => PerUser::Any,
                OnePerUser::TakeOver => PerUser::TakeOver,
                OnePerUser::Refuse => PerUser::Refuse,
            },
        }
    }
}

impl From<Settings> for crate::Settings {
    fn from(settings: Settings) -> Self {
        Self {
            tick_hz: settings.tick_hz,
            sync_hz: settings.sync_hz,
            capacity: settings.capacity,
            empty_ms: settings.empty_ms,
            closing_ms: settings.closing_ms,
            join_wait_ms: settings.join_wait_ms,
            joins_waiting_max: settings.joins_waiting_max,
            reply_ms: settings.reply_ms,
            silence_ms: settings.silence_ms,
            round_trip_ms: settings.round_trip_ms,
            grace_ms: settings.grace_ms,
            persist_s: settings.persist_s,
            creation: match settings.is_created_by_server {
                true => CreatedBy::Server,
                false => CreatedBy::Anyone,
            },
            one_per_user: match settings.one_per_user {
                PerUser::Any => OnePerUser::No,
                PerUser::TakeOver => OnePerUser::TakeOver,
                PerUser::Refuse => OnePerUser::Refuse,
            },
            record: Record::default(),
            durability: Durability::default(),
            isolated: Isolated::default(),
        }
    }
}

#[derive(Data, Debug)]
pub(crate) struct Clock {
    pub(crate) now: Time,
    pub(crate) tick: u64,
    pub(crate) version: u64,
    pub(crate) empty_since: Option<Time>,
}

/// The states of both generators.
#[derive(Data, Debug)]
pub(crate) struct Random {
    pub(crate) room: [u8; 16],
    pub(crate) ids: [u8; 16],
}

/// A message that the room holds, by its declared name. Others are the payloads of such messages.
#[derive(Data, Debug)]
pub(crate) struct MessageType {
    pub(crate) name: String,
    /// Its type, as saves describe types.
    pub(crate) of: Bytes,
}

/// A message of a type in the part `Messages`, by its place there.
#[derive(Data, Debug)]
pub(crate) struct Message {
    pub(crate) of: u32,
    pub(crate) payload: Bytes,
}

#[derive(Data, Debug)]
pub(crate) struct Timers {
    pub(crate) last: u64,
    pub(crate) timers: Vec<Timer>,
}

#[derive(Data, Debug)]
pub(crate) struct Timer {
    pub(crate) number: u64,
    pub(crate) at: Time,
    pub(crate) every: Option<Time>,
    pub(crate) message: Message,
}

#[derive(Data, Debug)]
pub(crate) struct Seats {
    pub(crate) next_player: u64,
    pub(crate) players: Vec<Player>,
    pub(crate) renumbered: BTreeMap<PlayerId, PlayerId>,
}

#[derive(Data, Debug)]
pub(crate) struct Player {
    pub(crate) id: PlayerId,
    pub(crate) name: String,
    pub(crate) user: Option<String>,
    /// A JSON object.
    pub(crate) claims: String,
    pub(crate) seat: Option<String>,
    /// The number of the format.
    pub(crate) format: u8,
    pub(crate) is_connected: bool,
}

#[derive(Data, Debug)]
pub(crate) struct Reserved {
    pub(crate) seats: Vec<Reservation>,
}

#[derive(Data, Debug)]
pub(crate) struct Reservation {
    pub(crate) secret: String,
    pub(crate) who: Who,
    pub(crate) until: Time,
}

#[derive(Data, Debug)]
pub(crate) enum Who {
    Name(String),
    User(String),
}

#[derive(Data, Debug)]
pub(crate) struct Replies {
    pub(crate) room: u64,
    pub(crate) last: u64,
    pub(crate) owed: Vec<Owed>,
}

#[derive(Data, Debug)]
pub(crate) struct Owed {
    pub(crate) number: u64,
    /// The name of the request.
    pub(crate) message: String,
    pub(crate) by: Time,
    pub(crate) to: Asker,
}

#[derive(Data, Debug)]
pub(crate) enum Asker {
    Player { id: PlayerId, request: u32 },
    Room { from: Option<Sender>, ask: u64 },
}

/// The requests to other rooms that are not answered, and the background tasks that were given
/// up.
#[derive(Data, Debug)]
pub(crate) struct Work {
    pub(crate) last: u64,
    /// By number, the name of the request.
    pub(crate) asks: BTreeMap<u64, String>,
    /// The names of the messages that would have ended them.
    pub(crate) given_up: Vec<String>,
}

#[derive(Data, Debug)]
pub(crate) struct Rates {
    pub(crate) limiters: Vec<Limiter>,
    pub(crate) absences: Vec<Absence>,
    pub(crate) round_trips: Vec<RoundTrip>,
}

#[derive(Data, Debug)]
pub(crate) struct Limiter {
    pub(crate) player: PlayerId,
    pub(crate) message: u32,
    pub(crate) full_at: u64,
    /// Of a sender who exceeded the rate, or could not send for a while.
    pub(crate) rest: Option<[u64; 3]>,
}

#[derive(Data, Debug)]
pub(crate) struct Absence {
    pub(crate) player: PlayerId,
    pub(crate) since: Time,
    pub(crate) until: Time,
}

#[derive(Data, Debug)]
pub(crate) struct RoundTrip {
    pub(crate) player: PlayerId,
    pub(crate) round_trip: Time,
}

#[derive(Data, Debug)]
pub(crate) struct Saving {
    /// The hash and the length of the save on disk, if that is known.
    pub(crate) on_disk: Option<[u64; 2]>,
    pub(crate) changed_since: Option<Time>,
    pub(crate) failed: Option<Failed>,
    pub(crate) bytes: u64,
    pub(crate) forgotten_at: Option<Time>,
    /// The messages that wait until the state is on disk.
    pub(crate) asked: Vec<Message>,
}

#[derive(Data, Debug)]
pub(crate) struct Failed {
    pub(crate) again: Time,
    pub(crate) why: String,
}

#[derive(Data, Debug, Default)]
pub(crate) struct Pending {
    /// By number, the name of the message that ends the task.
    pub(crate) tasks: BTreeMap<u64, String>,
    /// Of tasks that end with a reply, by number, the number of the reply.
    pub(crate) replying: BTreeMap<u64, u64>,
    /// Only of a room that is saved.
    pub(crate) save: Option<OpenSave>,
}

#[derive(Data, Debug)]
pub(crate) struct OpenSave {
    pub(crate) fence: Option<u64>,
    pub(crate) reopenings: u64,
    pub(crate) in_flight: Option<SaveInFlight>,
}

#[derive(Data, Debug)]
pub(crate) struct SaveInFlight {
    pub(crate) number: u64,
    pub(crate) hash: u64,
    pub(crate) bytes: u64,
    pub(crate) changed_since: Option<Time>,
    pub(crate) asked: Vec<Message>,
}

/// The saves that the store may have.
#[derive(Data, Debug, Default)]
pub(crate) struct Saves {
    /// The hash and the length of each.
    pub(crate) hashes: Vec<[u64; 2]>,
    /// The store may have no save.
    pub(crate) or_none: bool,
    /// The store can have no other save.
    pub(crate) is_all: bool,
}

/// The room is a fork.
#[derive(Data, Clone, Debug)]
pub(crate) struct Fork {
    /// The recording, and the place in it.
    pub(crate) of: String,
}

#[derive(Data, Debug, Default)]
pub(crate) struct Held {
    /// The players who wait to join.
    pub(crate) joins: Vec<Waiting>,
    /// The player held for a task, by the task's number.
    pub(crate) holds: BTreeMap<u64, PlayerId>,
    /// The task that opens the save again.
    pub(crate) reopening: Option<u64>,
}

#[derive(Data, Debug)]
pub(crate) struct Waiting {
    pub(crate) player: Player,
    /// The number of unfinished pieces of work.
    pub(crate) holds: u32,
    pub(crate) by: Time,
}
