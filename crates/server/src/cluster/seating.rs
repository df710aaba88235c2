//! Seats for players of other nodes.

use std::sync::Arc;
use std::time::Duration;

use playfield_cluster::{Place, Want};
use playfield_room::{Error, OnePerUser, SeatFor};
use playfield_wire::{ErrorCode, Format, excerpt};

use super::KeyOf;
use super::host::Host;
use super::message::{NewKey, NewRoom, Refusal, RoomKey, SeatAnswer, SeatRequest, Wanted, decode};
use super::seeking::undecided;
use crate::directory::keys::Key;
use crate::handle::{NodeHandle, SEARCHES};
use crate::shard::mail::join::{Reading, RoomSpec};

impl Host {
    /// Answers the request of another node for a seat.
    pub(super) async fn seat(&self, body: &[u8]) -> SeatAnswer {
        let answer = match (decode::<SeatRequest>(body), self.handle()) {
            (Ok(request), Some(handle)) => self.reserve(&handle, request).await,
            (Err(error), _) => Err(Error::new(ErrorCode::Internal, error.to_string())),
            (_, None) => Err(Error::new(ErrorCode::Busy, "the node is about to start; try again")),
        };
        match answer {
            Ok(Some(seat)) => SeatAnswer::Seat(seat),
            Ok(None) => SeatAnswer::NotHere,
            Err(error) => SeatAnswer::Refused(Refusal::from(&error)),
        }
    }

    /// Reserves the seat; `None` if there is no such room.
    async fn reserve(
        &self,
        handle: &NodeHandle,
        request: SeatRequest,
    ) -> Result<Option<String>, Error> {
        let SeatRequest { who, wait_ms, room } = request;
        let id = match room {
            Wanted::Id(id) => id,
            Wanted::Key(RoomKey { room_type, key }) => match handle.find(&room_type, &key) {
                Some(id) => id,
                None => return Ok(None),
            },
            Wanted::New(room) => match self.found(handle, room).await? {
                Some(id) => id,
                None => return Ok(None),
            },
        };
        let (who, wait) = (SeatFor::from(who), Duration::from_millis(wait_ms));
        let is_user = matches!(who, SeatFor::User(_));
        match handle.reserve(&id, who, wait).await {
            Ok(reservation) => Ok(Some(reservation.to_string())),
            // The user's own seat may be the one to take.
            Err(error)
                if is_user && error.code() == ErrorCode::RoomFull && takes_over(handle, &id) =>
            {
                Ok(Some(id))
            }
            Err(error) => Err(error),
        }
    }

    /// A new room, or the one with its key; `None` if another node has the key.
    async fn found(&self, handle: &NodeHandle, room: NewRoom) -> Result<Option<String>, Error> {
        let node = handle.node();
        let room_type = node.room_type(&room.room_type).ok_or_else(|| {
            let name = excerpt(&room.room_type, 64);
            let text = format!("the room's node has no room type {name:?}");
            Error::new(ErrorCode::UnknownRoomType, text)
        })?;
        node.may_create(room_type)?;
        let key = match &room.key {
            NewKey::None => None,
            NewKey::Drawn => Some(self.draw_code(room_type).await?),
            NewKey::Chosen(text) if room.is_new => {
                self.claim_new(room_type, text).await?;
                Some(Key { text: text.as_str().into(), is_code: false })
            }
            NewKey::Chosen(text) | NewKey::Spelled(text) => {
                let is_code = matches!(room.key, NewKey::Spelled(_));
                match self.locate(room_type, text, Want::Claim { is_code }).await?.place {
                    Place::Here { .. } => Some(Key { text: text.as_str().into(), is_code }),
                    Place::At(_) => return Ok(None),
                    Place::Free | Place::Busy => return Err(undecided(text)),
                }
            }
        };
        let granted = key.as_ref().map(|key| KeyOf { room_type, key: Arc::clone(&key.text) });
        if let Some(key) = &granted {
            self.grants.borrow_mut().give(key.clone());
        }
        let searches = if room.is_new || key.is_none() { 0 } else { SEARCHES };
        let founded = match spec(handle, room_type, key, &room) {
            Ok(spec) => handle.found_for(spec, room.creator(), searches).await,
            Err(error) => Err(error),
        };
        if let Some(key) = &granted {
            self.settle(key);
        }
        founded.map(Some)
    }
}

fn spec(
    handle: &NodeHandle,
    room_type: u16,
    key: Option<Key>,
    room: &NewRoom,
) -> Result<RoomSpec, Error> {
    let format = Format::from_number(room.format).ok_or_else(|| {
        let text = format!("the room's node does not know the format {}", room.format);
        Error::new(ErrorCode::Internal, text)
    })?;
    let options = room.options.to_vec();
    let criteria = handle.node().criteria(room_type, format, &options)?;
    let (code, private) = (room.key == NewKey::Drawn, room.private);
    let reading = match (&room.key, &key) {
        (NewKey::Spelled(_), Some(key)) => Reading::Code(key.clone()),
        _ => Reading::Literal,
    };
    Ok(RoomSpec { room_type, key, code, reading, private, criteria, options, format })
}

fn takes_over(handle: &NodeHandle, id: &str) -> bool {
    let node = handle.node();
    let place = crate::room_id::RoomId::parse(id).and_then(|id| node.directory.find(id));
    place.is_some_and(|place| {
        let settings = &node.room_types[usize::from(place.room_type)].settings;
        settings.one_per_user == OnePerUser::TakeOver
    })
}
