//! Joins whose room may be at another node.

use std::sync::Arc;
use std::time::Duration;

use playfield_cluster::{Peer, Place, Want};
use playfield_room::{Error, SeatFor, split_reservation};
use playfield_wire::{ErrorCode, RequestNumber, RoomNumber, excerpt};

use super::host::Host;
use super::message::{
    NewKey, NewRoom, RoomKey, SeatAnswer, SeatRequest, Wanted, Who, decode, encode,
};
use super::moving::id_key;
use super::{KeyOf, busy};
use crate::directory::keys::{Key, code};
use crate::entropy::Entropy;
use crate::room_id::RoomId;
use crate::shard::keys::ConnectionKey;
use crate::shard::mail::join::{JoinTarget, Reading, RoomSpec};
use crate::tickets::TicketPass;

/// The most nodes that are asked for a key, one after the other: claims change meanwhile.
const TRIES: usize = 3;

/// The most codes drawn to find a free one.
const CODE_TRIES: usize = 16;

/// The time that another node has to answer.
const ANSWER_MAX: Duration = Duration::from_secs(2);

/// The time after which a client may ask again that was answered `busy`.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// A join, while its room is sought.
pub(crate) struct Seek {
    /// The session's shard.
    pub(crate) shard: u16,
    pub(crate) connection: ConnectionKey,
    pub(crate) request: RequestNumber,
    /// The number that the room has in the session.
    pub(crate) number: RoomNumber,
    pub(crate) target: JoinTarget,
    /// The number of times that another room may be picked.
    pub(crate) retries: u8,
    pub(crate) ticket: Option<Box<TicketPass>>,
    pub(crate) who: SeatFor,
    pub(crate) name: String,
}

/// The place of the room that was sought.
#[derive(Debug)]
pub(crate) enum Sought {
    /// At this node: the join goes on here. The key, if one was granted, is to be
    /// [settled](super::Cluster::settled).
    Here(Option<KeyOf>),
    /// At another node, with these URLs. Without a reservation, the client asks there for the same.
    Elsewhere {
        addresses: Arc<[String]>,
        reservation: String,
    },
    Refused(Error),
}

impl Host {
    /// Finds the room of a join.
    pub(super) async fn seek(&self, seek: &mut Seek) -> Sought {
        let asker = Asker { who: seek.who.clone(), name: seek.name.clone() };
        let sought = match &mut seek.target {
            JoinTarget::Room(text) => self.seek_id(text, asker).await,
            JoinTarget::Key(room_type, text) => self.seek_open(*room_type, text, &asker).await,
            JoinTarget::New(spec) => self.seek_new(spec, &asker).await,
            JoinTarget::Any(spec) => self.seek_or_claim(spec, &asker).await,
        };
        match sought {
            // The node of the room checks the ticket.
            Ok(Sought::Elsewhere { addresses, .. }) if seek.ticket.is_some() => {
                Sought::Elsewhere { addresses, reservation: String::new() }
            }
            Ok(sought) => sought,
            Err(error) => Sought::Refused(error),
        }
    }

    /// The room with an id: the slot in it says which node has it.
    async fn seek_id(&self, text: &str, asker: Asker) -> Result<Sought, Error> {
        let reservation = split_reservation(text);
        let id = reservation.map_or(text, |(id, _)| id);
        let not_found = || {
            let text = format!("no room has the id {:?}", excerpt(id, 64));
            Error::new(ErrorCode::RoomNotFound, text)
        };
        let id = RoomId::parse(id).ok_or_else(not_found)?;
        let peer = self.peer(id.slot()).filter(|_| id.slot() != self.cluster.slot());
        if let Some(peer) = peer {
            match self.seek_id_at(&peer, text, &asker).await {
                Err(error) if error.code() == ErrorCode::RoomNotFound => {}
                sought => return sought,
            }
        }
        // It may have moved.
        match self.locate_claim(id_key(id), Want::Find).await.place {
            Place::At(peer) => self.seek_id_at(&peer, text, &asker).await,
            Place::Here { .. } => Ok(Sought::Here(None)),
            Place::Free => Err(not_found()),
            Place::Busy => Err(undecided(text)),
        }
    }

    async fn seek_id_at(&self, peer: &Peer, text: &str, asker: &Asker) -> Result<Sought, Error> {
        if split_reservation(text).is_some() {
            // The seat is reserved there already.
            let (addresses, reservation) = (Arc::clone(&peer.addresses), text.to_owned());
            return Ok(Sought::Elsewhere { addresses, reservation });
        }
        let sought = self.ask_for_seat(peer, asker, Wanted::Id(text.to_owned())).await?;
        sought.ok_or_else(|| {
            let text = format!("no room has the id {:?}", excerpt(text, 64));
            Error::new(ErrorCode::RoomNotFound, text)
        })
    }

    /// The open room with a key or code.
    async fn seek_open(&self, room_type: u16, text: &str, asker: &Asker) -> Result<Sought, Error> {
        let found = self.find(room_type, text, asker).await?;
        found.ok_or_else(|| {
            let text = format!("no room of this type has the key {:?}", excerpt(text, 64));
            Error::new(ErrorCode::RoomNotFound, text)
        })
    }

    /// The room that a text names: a code counts before a key that a user chose.
    async fn find(
        &self,
        room_type: u16,
        text: &str,
        asker: &Asker,
    ) -> Result<Option<Sought>, Error> {
        if let Some(code) = code::spelled(text) {
            let found = self.find_exactly(room_type, &code.text, true, asker).await?;
            if found.is_some() {
                return Ok(found);
            }
        }
        self.find_exactly(room_type, text, false, asker).await
    }

    async fn find_exactly(
        &self,
        room_type: u16,
        text: &str,
        is_code: bool,
        asker: &Asker,
    ) -> Result<Option<Sought>, Error> {
        for _ in 0..TRIES {
            let located = self.locate(room_type, text, Want::Find).await?;
            let peer = match located.place {
                _ if is_code && !located.is_code => return Ok(None),
                Place::Here { .. } => return Ok(Some(Sought::Here(None))),
                Place::At(peer) => peer,
                Place::Free | Place::Busy => return Ok(None),
            };
            let (room_type, key) = (self.type_name(room_type), text.to_owned());
            let wanted = Wanted::Key(RoomKey { room_type, key });
            let seat = self.ask_for_seat(&peer, asker, wanted).await?;
            if seat.is_some() {
                return Ok(seat);
            }
        }
        Ok(None)
    }

    /// The room with a key, or the right to create it.
    async fn seek_or_claim(&self, spec: &mut RoomSpec, asker: &Asker) -> Result<Sought, Error> {
        let Some(Key { text, .. }) = spec.key.clone() else { return Ok(Sought::Here(None)) };
        let spelled = match spec.reading {
            Reading::Undecided => code::spelled(&text),
            Reading::Code(_) | Reading::Literal => None,
        };
        let elsewhere = self.choose(spec.room_type);
        if (spelled.is_some() || elsewhere.is_some())
            && let Some(found) = self.find(spec.room_type, &text, asker).await?
        {
            return Ok(found);
        }
        if let Some(code) = spelled
            && self.is_persistent(spec.room_type)
        {
            // A save may have the code.
            spec.reading = spec.key.replace(code).map_or(Reading::Undecided, Reading::Code);
        }
        let is_code = matches!(spec.reading, Reading::Code(_));
        let key = spec.key.as_ref().map_or(text, |key| Arc::clone(&key.text));
        let new_key = if is_code { NewKey::Spelled } else { NewKey::Chosen };
        let wanted = Wanted::New(self.new_room(spec, new_key(key.to_string()), asker));
        if let Some(peer) = elsewhere
            && let Some(seat) = self.ask_for_seat(&peer, asker, wanted.clone()).await?
        {
            return Ok(seat);
        }
        for _ in 0..TRIES {
            let located = self.locate(spec.room_type, &key, Want::Claim { is_code }).await?;
            let peer = match located.place {
                Place::Here { .. } => return Ok(self.grant(spec.room_type, &key)),
                Place::At(peer) => peer,
                Place::Free | Place::Busy => break,
            };
            if let Some(seat) = self.ask_for_seat(&peer, asker, wanted.clone()).await? {
                return Ok(seat);
            }
        }
        Err(undecided(&key))
    }

    /// A new room: here, or at a node that has less to do.
    async fn seek_new(&self, spec: &mut RoomSpec, asker: &Asker) -> Result<Sought, Error> {
        if let Some(peer) = self.choose(spec.room_type) {
            let key = match &spec.key {
                Some(key) => NewKey::Chosen(key.text.to_string()),
                None if spec.code => NewKey::Drawn,
                None => NewKey::None,
            };
            let room = NewRoom { is_new: true, ..self.new_room(spec, key, asker) };
            if let Some(seat) = self.ask_for_seat(&peer, asker, Wanted::New(room)).await? {
                return Ok(seat);
            }
        }
        let key = match &spec.key {
            Some(key) => Arc::clone(&key.text),
            None if spec.code => {
                let drawn = self.draw_code(spec.room_type).await?;
                let key = Arc::clone(&drawn.text);
                spec.key = Some(drawn);
                key
            }
            None => return Ok(Sought::Here(None)),
        };
        if !spec.code {
            self.claim_new(spec.room_type, &key).await?;
        }
        Ok(self.grant(spec.room_type, &key))
    }

    /// Claims a key that no room has.
    pub(super) async fn claim_new(&self, room_type: u16, key: &str) -> Result<(), Error> {
        match self.locate(room_type, key, Want::Claim { is_code: false }).await?.place {
            Place::Here { is_new: true } => Ok(()),
            Place::Here { .. } | Place::At(_) => {
                let key = excerpt(key, 64);
                let text = format!("a room of this type has the key {key:?} already");
                Err(Error::new(ErrorCode::RoomExists, text))
            }
            Place::Free | Place::Busy => Err(undecided(key)),
        }
    }

    /// Claims a code that no room has.
    pub(super) async fn draw_code(&self, room_type: u16) -> Result<Key, Error> {
        for _ in 0..CODE_TRIES {
            let drawn = code::from_random(Entropy::System.bytes());
            let want = Want::Claim { is_code: true };
            let place = self.locate(room_type, &drawn.text, want).await?.place;
            if let Place::Here { is_new: true } = place {
                return Ok(drawn);
            }
        }
        Err(Error::new(ErrorCode::RoomExists, "all codes are taken"))
    }

    fn grant(&self, room_type: u16, key: &Arc<str>) -> Sought {
        let key = KeyOf { room_type, key: Arc::clone(key) };
        self.grants.borrow_mut().give(key.clone());
        Sought::Here(Some(key))
    }

    fn new_room(&self, spec: &RoomSpec, key: NewKey, asker: &Asker) -> NewRoom {
        NewRoom {
            room_type: self.type_name(spec.room_type),
            key,
            is_new: false,
            private: spec.private,
            format: spec.format.number(),
            options: spec.options.clone().into(),
            name: asker.name.clone(),
            user: match &asker.who {
                SeatFor::User(user) => Some(user.clone()),
                SeatFor::Name(_) => None,
            },
        }
    }

    /// Asks another node for a seat; `None` if it has no such room.
    async fn ask_for_seat(
        &self,
        peer: &Peer,
        asker: &Asker,
        room: Wanted,
    ) -> Result<Option<Sought>, Error> {
        let wait = self.cluster.redirect_wait;
        let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        let request = SeatRequest { who: Who::from(&asker.who), wait_ms, room };
        let body = match self.ask(peer.slot, ANSWER_MAX, encode(&request)).await {
            Ok(body) => body,
            Err(error) => {
                let text = format!("the room's node, {:?}, {error}; try again", peer.name);
                return Err(busy(text).with_retry_after(RETRY_AFTER));
            }
        };
        match decode(&body) {
            Ok(SeatAnswer::Seat(reservation)) => {
                let addresses = Arc::clone(&peer.addresses);
                Ok(Some(Sought::Elsewhere { addresses, reservation }))
            }
            Ok(SeatAnswer::Refused(refusal)) => Err(refusal.into()),
            Ok(SeatAnswer::NotHere) => Ok(None),
            Err(error) => {
                let text = format!("the room's node, {:?}, answered: {error}", peer.name);
                Err(Error::new(ErrorCode::Internal, text))
            }
        }
    }
}

/// The player whose join it is.
struct Asker {
    who: SeatFor,
    name: String,
}

/// The error of a join by a key whose place changes, or is not known now.
pub(super) fn undecided(key: &str) -> Error {
    let key = excerpt(key, 64);
    let text = format!("which node serves the key {key:?} is not decided now; try again");
    busy(text).with_retry_after(RETRY_AFTER)
}
