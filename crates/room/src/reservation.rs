//! Seats that a room keeps for players who are about to join.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use playfield_state::__rt::Value;
use playfield_state::{Data, Format};
use playfield_wire::reader::Reader;
use playfield_wire::schema::Type;
use playfield_wire::tree::TreeWriter;
use playfield_wire::{DecodeError, ErrorCode};

use crate::frozen::parts::{self, Time, Who};
use crate::{Error, Player, Result};

/// The longest time that a seat can be reserved.
pub const RESERVATION_MAX: Duration = Duration::from_secs(60 * 60);

/// A seat that a room keeps for one player, for a while. It is text, to be handed to the player, in
/// an event or a reply for example, and to be passed in place of the room's id when they join.
///
/// Joining with it is one step, which does not fail for lack of room or because the room is locked.
/// It counts once, for the player it is for, and until its time has run out; after that the seat is
/// free for others. The room's own [`join`](crate::Room::join) may still refuse, which uses it up.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reservation(String);

impl Reservation {
    pub(crate) fn new(room_id: &str, secret: &str) -> Self {
        Self(format!("{room_id}{SEPARATOR}{secret}"))
    }

    /// The text that is passed in place of the room's id.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id of the room.
    pub fn room_id(&self) -> &str {
        split(&self.0).map_or(&self.0, |(room_id, _)| room_id)
    }
}

impl fmt::Display for Reservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Between the room's id and the secret.
const SEPARATOR: char = '.';

/// The room's id and the secret in the text of a reservation; `None` if it is none.
pub fn split(text: &str) -> Option<(&str, &str)> {
    text.split_once(SEPARATOR)
}

/// A reservation is a text wherever it is sent.
impl Data for Reservation {
    fn schema() -> Type {
        String::schema()
    }
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        String::decode(reader).map(Self)
    }
    fn read(format: Format, bytes: &[u8]) -> Result<Self, DecodeError> {
        String::read(format, bytes).map(Self)
    }
    fn to_tree(&self, out: TreeWriter<'_>) {
        self.0.to_tree(out);
    }
    fn same(&self, other: &Self) -> bool {
        self == other
    }
    fn digest(&self) -> u64 {
        self.0.digest()
    }
    fn from_json(value: &Value) -> Result<Self, DecodeError> {
        String::from_json(value).map(Self)
    }
}

/// The user or the name that a seat is reserved for. `&Player` converts into it: into the user, or
/// for a guest into the name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SeatFor {
    /// A player with this display name. Anyone can choose a name, so the reservation must be told
    /// to them alone.
    Name(String),
    /// The user that the authenticator identified.
    User(String),
}

impl SeatFor {
    fn is(&self, name: &str, user: Option<&str>) -> bool {
        match self {
            Self::Name(of) => of == name,
            Self::User(of) => user == Some(of),
        }
    }
}

impl From<&Player> for SeatFor {
    fn from(player: &Player) -> Self {
        match player.user() {
            Some(user) => Self::User(user.to_owned()),
            None => Self::Name(player.name().to_owned()),
        }
    }
}

/// A seat that is reserved in a room that is about to be created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservedSeat {
    /// The secret in the reservation.
    pub secret: String,
    /// The user or the name that it is for.
    pub who: SeatFor,
    /// For how long, from the room's creation.
    pub wait: Duration,
}

/// The reserved seats of a room, by their secrets.
#[derive(Debug, Default)]
pub(crate) struct Reserved(BTreeMap<String, (SeatFor, Duration)>);

impl Reserved {
    pub(crate) fn count(&self) -> u32 {
        self.0.len() as u32
    }

    pub(crate) fn insert(&mut self, secret: String, who: SeatFor, until: Duration) {
        self.0.insert(secret, (who, until));
    }

    pub(crate) fn freeze(&self) -> parts::Reserved {
        let reservation =
            |(secret, (who, until)): (&String, &(SeatFor, Duration))| parts::Reservation {
                secret: secret.clone(),
                who: match who {
                    SeatFor::Name(name) => Who::Name(name.clone()),
                    SeatFor::User(user) => Who::User(user.clone()),
                },
                until: Time(*until),
            };
        parts::Reserved { seats: self.0.iter().map(reservation).collect() }
    }

    pub(crate) fn thaw(frozen: parts::Reserved) -> Self {
        let reserved = |parts::Reservation { secret, who, until: Time(until) }| {
            let who = match who {
                Who::Name(name) => SeatFor::Name(name),
                Who::User(user) => SeatFor::User(user),
            };
            (secret, (who, until))
        };
        Self(frozen.seats.into_iter().map(reserved).collect())
    }

    /// Uses the reservation with this secret.
    pub(crate) fn take(
        &mut self,
        secret: &str,
        name: &str,
        user: Option<&str>,
        now: Duration,
    ) -> Result<()> {
        let bad = |text| Err(Error::new(ErrorCode::BadReservation, text));
        match self.0.get(secret) {
            Some((who, _)) if !who.is(name, user) => bad("the reservation is another player's"),
            Some((_, until)) if *until > now => {
                self.0.remove(secret);
                Ok(())
            }
            _ => bad("the reservation was used or has run out"),
        }
    }

    /// Frees the seats whose time has run out.
    pub(crate) fn expire(&mut self, now: Duration) {
        self.0.retain(|_, (_, until)| *until > now);
    }

    /// When the next seat is to be freed.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.0.values().map(|(_, until)| *until).min()
    }

    /// When the last seat is to be freed.
    pub(crate) fn last_due(&self) -> Option<Duration> {
        self.0.values().map(|(_, until)| *until).max()
    }
}

/// Checks for how long a seat is to be reserved.
pub(crate) fn check_wait(wait: Duration) -> Result<()> {
    if wait <= RESERVATION_MAX {
        return Ok(());
    }
    let text = format!("RESERVATION_MAX: a seat is reserved for at most {RESERVATION_MAX:?}");
    Err(Error::new(ErrorCode::Limit, text))
}
