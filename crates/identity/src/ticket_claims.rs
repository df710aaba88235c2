//! The content of a ticket, as its claims.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::{Map, Value};

use crate::claims::{Head, text};
use crate::jwt::USER_BYTES_MAX;
use crate::key_set::KeyError;
use crate::refused::{Refused, RefusedKind};

/// The type of a ticket, in its header (`typ`): nobody can log in with a ticket, or join with a
/// token (RFC 8725, 3.11).
pub(crate) const TICKET_TYPE: &str = "playfield-ticket";

/// The longest time from now that a ticket may be valid.
pub const TICKET_LIFE_MAX: Duration = Duration::from_secs(60 * 60);

/// The longest text for a seat, in bytes.
pub const SEAT_BYTES_MAX: usize = 128;

/// The longest room type, key and name, in bytes. The node limits them further.
const TEXT_BYTES_MAX: usize = 1024;

/// The longest nonce (`jti`), in bytes.
const NONCE_BYTES_MAX: usize = 128;

pub(crate) fn is_ticket(head: &Head) -> bool {
    head.kind.as_deref() == Some(TICKET_TYPE)
}

/// The room that a ticket is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The room of this type that has this key.
    Key {
        /// The room type.
        room_type: String,
        /// The key, or the code.
        key: String,
    },
    /// The room with this id.
    Id(String),
}

/// Lets one player into one room, once. A backend makes it and [signs](crate::Signer::ticket) it;
/// the player hands its text to the node in place of a room's id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub(crate) place: Place,
    pub(crate) user: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) seat: Option<String>,
    pub(crate) audience: Option<String>,
    /// In seconds since 1970.
    pub(crate) expires: u64,
    pub(crate) nonce: String,
}

impl Ticket {
    /// A ticket for the room of a type that has a key, valid until a time in seconds since 1970:
    /// at most [`TICKET_LIFE_MAX`] from when it is used.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn by_key(
        room_type: impl Into<String>,
        key: impl Into<String>,
        expires: u64,
    ) -> Result<Self, KeyError> {
        Self::new(Place::Key { room_type: room_type.into(), key: key.into() }, expires)
    }

    /// A ticket for the room with an id.
    ///
    /// # Errors
    /// As [`by_key`](Self::by_key).
    pub fn by_id(room: impl Into<String>, expires: u64) -> Result<Self, KeyError> {
        Self::new(Place::Id(room.into()), expires)
    }

    fn new(place: Place, expires: u64) -> Result<Self, KeyError> {
        let mut nonce = [0; 16];
        SystemRandom::new().fill(&mut nonce).map_err(|_| KeyError::new("no random numbers"))?;
        let nonce = URL_SAFE_NO_PAD.encode(nonce);
        let [user, name, seat, audience] = [const { None }; 4];
        Ok(Self { place, user, name, seat, audience, expires, nonce })
    }

    /// The user it is for. Without one, anyone can use it.
    #[must_use]
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.user = Some(user.into());
        self
    }

    /// The display name that the player has in the room.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// The seat or role, which the room sees.
    #[must_use]
    pub fn seat(mut self, seat: impl Into<String>) -> Self {
        self.seat = Some(seat.into());
        self
    }

    /// The node, or group of nodes, that it is for: see
    /// [`Tickets::audience`](crate::Tickets::audience).
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audience = Some(audience.into());
        self
    }

    /// Its unique id (`jti`); random, unless set.
    #[must_use]
    pub fn nonce(mut self, nonce: impl Into<String>) -> Self {
        self.nonce = nonce.into();
        self
    }

    pub(crate) fn claims(&self) -> Map<String, Value> {
        let mut claims = Map::new();
        let mut put = |name: &str, value: &str| claims.insert(name.into(), value.into());
        match &self.place {
            Place::Key { room_type, key } => {
                put("room_type", room_type);
                put("key", key);
            }
            Place::Id(id) => {
                put("room", id);
            }
        }
        let optional = [
            ("sub", &self.user),
            ("name", &self.name),
            ("seat", &self.seat),
            ("aud", &self.audience),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                put(name, value);
            }
        }
        put("jti", &self.nonce);
        claims.insert("exp".into(), self.expires.into());
        claims
    }

    /// Reads the claims of a ticket that expires at `expires`.
    pub(crate) fn read(claims: &Map<String, Value>, expires: u64) -> Result<Self, Refused> {
        let get = |name: &str, bytes_max| text(claims, name, bytes_max);
        let place = match (get("room", TEXT_BYTES_MAX)?, get("key", TEXT_BYTES_MAX)?) {
            (Some(id), None) => Place::Id(id),
            (None, Some(key)) => {
                let room_type = get("room_type", TEXT_BYTES_MAX)?;
                let room_type = room_type.ok_or_else(|| Refused::claim_needed("room_type"))?;
                Place::Key { room_type, key }
            }
            (None, None) => return Err(Refused::claim_needed("key")),
            (Some(_), Some(_)) => {
                let text = "the ticket has both \"room\" and \"key\"; give one";
                return Err(Refused::new(RefusedKind::Malformed, text));
            }
        };
        // It was meant for someone, so it is not for anyone.
        if claims.get("sub").and_then(Value::as_str) == Some("") {
            let text = "\"sub\" is empty: name the user, or leave it out for a ticket for anyone";
            return Err(Refused::new(RefusedKind::Malformed, text));
        }
        Ok(Self {
            place,
            user: get("sub", USER_BYTES_MAX)?,
            name: get("name", TEXT_BYTES_MAX)?,
            seat: get("seat", SEAT_BYTES_MAX)?,
            audience: None,
            expires,
            nonce: get("jti", NONCE_BYTES_MAX)?.ok_or_else(|| Refused::claim_needed("jti"))?,
        })
    }
}
