//! Rooms and sessions of another process go on in the shards of this one.

mod room;
mod session;

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use playfield_room::frozen::Frozen;
use playfield_room::{Error, LeaveReason, Link, Mail, PlayerId, Thaw, panic_text};
use playfield_state::{Data, Format};
use playfield_wire::reader::Reader;
use playfield_wire::{ErrorCode, RoomNumber};

use super::freeze::Frozen as FrozenShards;
use super::parts::{HOSTED, HostedPart, MEMBERS, MemberPart, Place, SessionPart, Shift};
use super::schemas::{Schemas, SwitchPart};
use crate::addresses::Address;
use crate::channel::frozen::ChannelPart;
use crate::channel::home_of;
use crate::node::Node;
use crate::room_id::RoomId;
use crate::shard::Shard;
use crate::shard::keys::{ConnectionKey, RoomKey, Seat};
use room::MadeRoom;
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

/// With fewer sessions or rooms than this, a thread for each shard takes longer than it saves.
const FOR_THREADS: usize = 200;

/// Lets rooms and sessions go on here. Nothing is served before the shards run.
///
/// # Errors
/// The text names the room that can't be read, and the field.
pub(crate) fn thaw(shards: &mut [Shard], frozen: &FrozenShards) -> Result<Thawed, String> {
    let FrozenShards { rooms, sessions, channels, schemas, is_recovered, at } = frozen;
    for bytes in channels {
        let part = ChannelPart::read(Format::Packed, bytes)
            .map_err(|error| format!("a channel can't be read: {error}"))?;
        let home = home_of(&part.name, shards.len());
        shards[usize::from(home)].thaw_channel(part);
    }
    let mut schemas = match shards.first() {
        Some(shard) => Schemas::read(schemas, &shard.env.node)?,
        None => Schemas::default(),
    };
    let mut sat = thaw_sessions(shards, sessions, *at)?;
    let switches: Vec<_> = sat.iter_mut().map(|sat| std::mem::take(&mut sat.switches)).collect();
    let keys: Vec<Place> = sat.iter().map(|sat| sat.sits.place).collect();
    let open = sat.iter().filter(|sat| sat.sits.is_open);
    let connections = open.map(|sat| (sat.sits.place.shard as u16, sat.sits.place.key())).collect();
    let places = sat.into_iter().map(|sat| (sat.before, sat.sits)).collect();
    let seated = thaw_rooms(shards, rooms, *at, &places, &schemas)?;
    seat(shards, seated, &places);
    if !schemas.is_empty() {
        for (place, before) in keys.into_iter().zip(switches) {
            let shard = shard_at(shards, place.shard);
            shard.switch_schemas(place.key(), before, &mut schemas)?;
        }
    }
    shards.iter_mut().for_each(|shard| shard.is_recovered = *is_recovered);
    Ok(Thawed { rooms: rooms.len(), sessions: sessions.len(), connections })
}

/// The new places of sessions, by those that they had.
type Places = HashMap<Place, Sits>;

/// A session that goes on.
struct Sat {
    /// The number of the session in what is frozen.
    number: usize,
    before: Place,
    sits: Sits,
    /// The changes of schemas that its client has not confirmed.
    switches: Vec<SwitchPart>,
}

/// Returns the sessions in the order in which they are frozen.
fn thaw_sessions(
    shards: &mut [Shard],
    sessions: &[Vec<u8>],
    at: Option<Duration>,
) -> Result<Vec<Sat>, String> {
    let failed = |error| format!("a session can't be read: {error}");
    let mut shares: Vec<Vec<(usize, &[u8])>> = shards.iter().map(|_| Vec::new()).collect();
    for (number, bytes) in sessions.iter().enumerate() {
        let mut reader = Reader::new(bytes);
        let place = Place::decode(&mut reader).map_err(failed)?;
        shares[shard_of(shards, place.shard, number)].push((number, bytes));
    }
    let sat = on_each(shards, shares, |shard, share| {
        let thaw = |(number, bytes)| {
            let mut part = SessionPart::read(Format::Packed, bytes).map_err(failed)?;
            if let Some(at) = at {
                part.shift(Shift::new(at, shard.env.now));
            }
            let switches = std::mem::take(&mut part.switches);
            let (before, is_open) = (part.place, part.connection.is_some());
            let of = part.number;
            let (key, address) =
                shard.thaw_session(part).ok_or_else(|| format!("the session {of} is not valid"))?;
            let place = Place::new(shard.env.shard, key);
            Ok(Sat { number, before, sits: Sits { place, is_open, address }, switches })
        };
        share.into_iter().map(thaw).collect::<Result<Vec<_>, String>>()
    })?;
    let mut sat: Vec<Sat> = sat.into_iter().flatten().collect();
    sat.sort_by_key(|sat| sat.number);
    Ok(sat)
}

fn thaw_rooms(
    shards: &mut [Shard],
    rooms: &[Vec<u8>],
    at: Option<Duration>,
    places: &Places,
    schemas: &Schemas,
) -> Result<Vec<Seated>, String> {
    let mut shares: Vec<Vec<RoomParts<'_>>> = shards.iter().map(|_| Vec::new()).collect();
    for bytes in rooms {
        let (frozen, hosted, members) = read_room(bytes)?;
        let other = RoomId::parse(frozen.room_id()).map_or(0, |id| id.fraction(shards.len()));
        shares[shard_of(shards, hosted.shard, other)].push((frozen, hosted, members));
    }
    let made = on_each(shards, shares, |shard, share| {
        let make = |(frozen, mut hosted, mut members): RoomParts<'_>| {
            if let Some(at) = at {
                let shift = Shift::new(at, shard.env.now);
                hosted.shift(shift);
                members.iter_mut().for_each(|member| member.shift(shift));
            }
            let (id, name) = (frozen.room_id().to_owned(), frozen.room_type().to_owned());
            let made = shard.make_room(&frozen, hosted, members, places, schemas);
            made.map_err(|error| format!("room {id} of the type {name:?}: {error}"))
        };
        share.into_iter().map(make).collect::<Result<Vec<_>, String>>()
    })?;
    let mut made: Vec<MadeRoom> = made.into_iter().flatten().collect();
    // The oldest first, as they were created.
    made.sort_by_key(|made| made.age);
    let mut seated = Vec::new();
    for made in made {
        seated.extend(shard_at(shards, made.shard.into()).take_in(made)?);
    }
    Ok(seated)
}

/// Tells sessions their seats. Of a room that is not here any more, a session hears that it has
/// left it.
fn seat(shards: &mut [Shard], seated: Vec<Seated>, places: &Places) {
    for Seated { shard, connection, number, seat } in seated {
        let shard = shard_at(shards, shard.into());
        if let Some(room) =
            shard.sessions.get_mut(connection).and_then(|session| session.room_mut(number))
        {
            room.seat = Some(seat);
        }
    }
    for Sits { place, .. } in places.values() {
        shard_at(shards, place.shard).leave_lost_rooms(place.key());
    }
}

/// The shard with this number, or if there are fewer now, another.
fn shard_of(shards: &[Shard], shard: u32, other: usize) -> usize {
    let shard = shard as usize;
    if shard < shards.len() { shard } else { other % shards.len() }
}

/// The shard with a number, of some in a row.
fn shard_at(shards: &mut [Shard], shard: u32) -> &mut Shard {
    let first = shards.first().map_or(0, |shard| shard.env.shard.into());
    &mut shards[shard.saturating_sub(first) as usize]
}

/// Does something for each shard with its share, at the same time if it is much.
fn on_each<T: Send, R: Send>(
    shards: &mut [Shard],
    shares: Vec<Vec<T>>,
    act: impl Fn(&mut Shard, Vec<T>) -> Result<R, String> + Sync,
) -> Result<Vec<R>, String> {
    let count: usize = shares.iter().map(Vec::len).sum();
    let shares = shards.iter_mut().zip(shares);
    if count < FOR_THREADS {
        return shares.map(|(shard, share)| act(shard, share)).collect();
    }
    thread::scope(|scope| {
        let act = &act;
        let threads = shares.map(|(shard, share)| scope.spawn(move || act(shard, share)));
        let threads: Vec<_> = threads.collect();
        let ended = threads.into_iter().map(|thread| thread.join());
        ended.map(|done| done.unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
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

/// Tries whether this program can go on with a room.
///
/// # Errors
/// The text names the room and the field.
pub(super) fn check_room(bytes: &[u8], node: &Node) -> Result<(), String> {
    let (frozen, ..) = read_room(bytes)?;
    let room_type = node.room_type(frozen.room_type()).ok_or_else(|| {
        format!("room type {:?}: this program has no such type", frozen.room_type())
    })?;
    let thaw = node.room_types[usize::from(room_type)].thaw;
    let store = node.store.lend();
    let read = || thaw(Thaw { frozen: &frozen, store, link: &mut |_| Link(u64::MAX) });
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(format!("room {}: {error}", frozen.room_id())),
        Err(panic) => {
            Err(format!("room {}: it panicked: {}", frozen.room_id(), panic_text(&*panic)))
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
        self.go_on_with_rooms();
        self.write_thawed();
    }

    /// Lets thawed rooms go on.
    pub(super) fn go_on_with_rooms(&mut self) {
        for ThawedRoom { key, gone, behind } in std::mem::take(&mut self.thawed) {
            self.host.call(&mut below!(self), key, |room, at, out| room.moved(at, out));
            if self.is_recovered {
                self.go_on_recovered(key, gone);
                continue;
            }
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

    /// A room goes on whose process has ended: what it has asked other rooms is not answered any
    /// more, and its players have lost their connections for good. They keep their seats for their
    /// grace.
    fn go_on_recovered(&mut self, key: RoomKey, players: Vec<PlayerId>) {
        let Some(hosted) = self.host.rooms.get(key) else { return };
        let room_type = &self.env.node.room_types[usize::from(hosted.room_type)];
        let grace = Duration::from_millis(room_type.settings.grace_ms);
        let asks = hosted.room.asks();
        self.host.call(&mut below!(self), key, |room, at, out| {
            for ask in asks {
                let text = "the process ended before the answer came";
                let reply = Err(Error::new(ErrorCode::Internal, text));
                room.mail(at, Mail::Answered { ask, reply }, out);
            }
            players.iter().for_each(|player| room.lost(at, *player, out));
        });
        let at = self.env.now.saturating_add(grace);
        let leave = players.into_iter().map(|player| (at, key, player));
        self.host.left_behind.extend(leave);
        self.host.left_behind.make_contiguous().sort_by_key(|(at, ..)| *at);
    }

    /// Has journaled rooms written whole that could not be when they went on. The journal of this
    /// process counts from then on.
    fn write_thawed(&mut self) {
        let Some(journaled) = &mut self.outbound.journaled else { return };
        for key in self.host.rooms.keys() {
            let Some(hosted) = self.host.rooms.get_mut(key) else { continue };
            if let Some(recorder) = hosted.room.journaled()
                && !recorder.has_whole()
                && let Some(to_write) = &mut journaled.to_write
            {
                to_write.push_back(hosted.id);
            }
        }
    }
}
