//! Rooms and sessions of another process go on in the shards of this one.

mod room;
mod session;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use playfield_room::LeaveReason;
use playfield_room::frozen::Frozen;
use playfield_state::{Data, Format};
use playfield_wire::RoomNumber;

use super::freeze::Frozen as FrozenShards;
use super::parts::{HOSTED, HostedPart, MEMBERS, MemberPart, Place, SessionPart, SessionRoomPart};
use crate::addresses::Address;
use crate::channel::frozen::ChannelPart;
use crate::channel::home_of;
use crate::room_id::RoomId;
use crate::shard::Shard;
use crate::shard::keys::{ConnectionKey, Seat};
pub(crate) use room::ThawedRoom;

/// The rooms and sessions that go on.
#[derive(Debug, Default)]
pub(crate) struct Thawed {
    pub(crate) rooms: usize,
    pub(crate) sessions: usize,
    /// The places of connections that were passed on, in the order of their sessions.
    pub(crate) connections: Vec<(u16, ConnectionKey)>,
}

/// The place of a session.
#[derive(Clone)]
struct Sits {
    place: Place,
    /// Its connection goes on.
    is_open: bool,
    address: Arc<Address>,
}

/// A seat that a thawed session has in a thawed room.
struct Seated {
    shard: u16,
    connection: ConnectionKey,
    number: RoomNumber,
    seat: Seat,
}

/// Lets rooms and sessions go on here. Nothing is served before the shards run.
///
/// # Errors
/// The text names the room that can't be read, and the field.
pub(crate) fn thaw(shards: &mut [Shard], frozen: &FrozenShards) -> Result<Thawed, String> {
    let FrozenShards { rooms, sessions, channels } = frozen;
    for bytes in channels {
        let part = ChannelPart::read(Format::Packed, bytes)
            .map_err(|error| format!("a channel can't be read: {error}"))?;
        let home = home_of(&part.name, shards.len());
        shards[usize::from(home)].thaw_channel(part);
    }
    let mut thawing = Thawing { shards, places: HashMap::new(), seated: Vec::new() };
    let (mut joined, mut connections) = (Vec::new(), Vec::new());
    for bytes in sessions {
        let part = SessionPart::read(Format::Packed, bytes)
            .map_err(|error| format!("a session can't be read: {error}"))?;
        let is_open = part.connection.is_some();
        let of = thawing.session(part)?;
        if is_open {
            connections.push((of.0.shard as u16, of.0.key()));
        }
        joined.push(of);
    }
    let mut all = rooms.iter().map(|bytes| read_room(bytes)).collect::<Result<Vec<_>, _>>()?;
    // The oldest first, as they were created.
    all.sort_by_key(|(_, hosted, _)| hosted.age);
    for (frozen, hosted, members) in all {
        let (id, name) = (frozen.room_id().to_owned(), frozen.room_type().to_owned());
        let thawed = thawing.room(&frozen, hosted, members);
        thawed.map_err(|error| format!("room {id} of the type {name:?}: {error}"))?;
    }
    thawing.seat(&joined);
    Ok(Thawed { rooms: rooms.len(), sessions: sessions.len(), connections })
}

type RoomParts<'a> = (Frozen<'a>, HostedPart, Vec<MemberPart>);

fn read_room(bytes: &[u8]) -> Result<RoomParts<'_>, String> {
    let frozen = Frozen::read(bytes).map_err(|error| error.to_string())?;
    let part = |number| frozen.host_part(number).unwrap_or_default();
    let failed = |error| format!("room {}, the host's parts: {error}", frozen.room_id());
    let hosted = HostedPart::read(Format::Packed, part(HOSTED)).map_err(failed)?;
    let members = Vec::<MemberPart>::read(Format::Packed, part(MEMBERS)).map_err(failed)?;
    Ok((frozen, hosted, members))
}

struct Thawing<'a> {
    shards: &'a mut [Shard],
    /// The new places of sessions, by those that they had.
    places: HashMap<Place, Sits>,
    seated: Vec<Seated>,
}

/// The rooms that a session had joined.
type Joined = (Place, Vec<SessionRoomPart>);

impl Thawing<'_> {
    /// The shard with this number, or if there are fewer now, another.
    fn shard(&self, shard: u32, other: usize) -> usize {
        let shard = shard as usize;
        if shard < self.shards.len() { shard } else { other % self.shards.len() }
    }

    fn session(&mut self, part: SessionPart) -> Result<Joined, String> {
        let (before, rooms) = (part.place, part.rooms.clone());
        let (number, is_open) = (part.number, part.connection.is_some());
        let at = self.shard(before.shard, number as usize);
        let shard = &mut self.shards[at];
        let thawed = shard.thaw_session(part);
        let (key, address) = thawed.ok_or_else(|| format!("the session {number} is not valid"))?;
        let place = Place::new(at as u16, key);
        self.places.insert(before, Sits { place, is_open, address });
        Ok((place, rooms))
    }

    fn room(
        &mut self,
        frozen: &Frozen<'_>,
        hosted: HostedPart,
        members: Vec<MemberPart>,
    ) -> Result<(), String> {
        let id = RoomId::parse(frozen.room_id()).ok_or("the id is not valid")?;
        let at = self.shard(hosted.shard, id.fraction(self.shards.len()));
        let shard = &mut self.shards[at];
        let seated = shard.thaw_room(id, frozen, hosted, members, &self.places)?;
        self.seated.extend(seated);
        Ok(())
    }

    /// Tells sessions their seats. Of a room that is not here any more, a session hears that it has
    /// left it.
    fn seat(&mut self, joined: &[Joined]) {
        for Seated { shard, connection, number, seat } in std::mem::take(&mut self.seated) {
            let shard = &mut self.shards[usize::from(shard)];
            if let Some(room) =
                shard.sessions.get_mut(connection).and_then(|session| session.room_mut(number))
            {
                room.seat = Some(seat);
            }
        }
        for (place, _) in joined {
            self.shards[place.shard as usize].leave_lost_rooms(place.key());
        }
    }
}

impl Shard {
    /// Takes in a channel, unless no rule here is for it, or there are too many.
    fn thaw_channel(&mut self, part: ChannelPart) {
        let Ok(rule) = self.env.node.channel_rule(&part.name).map(Arc::clone) else { return };
        let thawed = self.topics.channels.home.thaw(part, &rule, self.env.now);
        if thawed.is_err() {
            log::warn!("limits.channels.total: a channel of the process before is left out");
        }
    }

    /// The first thing that a shard does that was thawed: its rooms learn that they go on. Players
    /// whose sessions did not outlive their connections leave, and those whose copies are behind
    /// are lined up for snapshots.
    pub(crate) fn go_on_thawed(&mut self, now: Duration) {
        self.begin(now);
        self.topics.devices.go_on(&Arc::clone(&self.env.node));
        for ThawedRoom { key, gone, behind } in std::mem::take(&mut self.thawed) {
            self.host.call(&mut below!(self), key, |room, at, out| room.moved(at, out));
            for player in gone {
                self.host.call(&mut below!(self), key, |room, at, out| {
                    room.leave(at, player, LeaveReason::ConnectionLost, out);
                });
            }
            for member in behind {
                self.host.resync(&mut below!(self), key, member);
            }
        }
        self.settle();
    }
}
