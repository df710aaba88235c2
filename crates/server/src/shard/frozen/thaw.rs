//! Rooms and sessions of another process go on in the shards of this one.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use playfield_room::frozen::Frozen;
use playfield_room::{AnyRoom, Error, LeaveReason, Link, PlayerId, Thaw, panic_text};
use playfield_session::{Log, Passage, Received, SentHistory, SyncHistory};
use playfield_state::{Data, Format};
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, RequestNumber, RoomNumber};

use super::freeze::Frozen as FrozenShards;
use super::parts::{
    BeatPart, FramingPart, HOSTED, HostedPart, MEMBERS, MemberPart, Place, SessionPart,
    SessionRoomPart, read, time,
};
use crate::addresses::{Address, Tally};
use crate::channel::frozen::ChannelPart;
use crate::channel::home_of;
use crate::device;
use crate::directory::Kept;
use crate::directory::keys::Key as RoomKeyText;
use crate::room_id::RoomId;
use crate::shard::Shard;
use crate::shard::allowance::Allowance;
use crate::shard::connection::patience::Patience;
use crate::shard::connection::transport::Input;
use crate::shard::connection::{Connection, Phase};
use crate::shard::frames::Stay;
use crate::shard::keys::{ConnectionKey, Seat, link};
use crate::shard::rooms::link::{MemberLink, RemoteLink};
use crate::shard::rooms::member::{Member, Members};
use crate::shard::rooms::{Hosted, Made};
use crate::shard::session::resumption::{Presence, Resumption};
use crate::shard::session::{Allowances, Session, SessionRoom};
use crate::shard::work::{Founder, Host};
use crate::users;

/// The time in which clients come back before their rooms hear that they were away. Graces count
/// from its end.
const RETURN_WAIT: Duration = Duration::from_secs(5);

/// The rooms and sessions that go on.
#[derive(Debug, Default)]
pub(crate) struct Thawed {
    pub(crate) rooms: usize,
    pub(crate) sessions: usize,
    /// The places of connections that were passed on, in the order of their sessions; `None` of one
    /// whose client has to come back after all.
    pub(crate) connections: Vec<Option<(u16, ConnectionKey)>>,
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
    let mut all = Vec::new();
    for bytes in rooms {
        all.push(read_room(bytes)?);
    }
    // The members that have all that they were to be sent.
    let members = all.iter().flat_map(|(_, _, members)| members);
    let up_to_date = members
        .filter(|member| !member.lagging && !member.wants_snapshot)
        .map(|member| (member.session, member.number))
        .collect::<HashSet<_>>();
    let mut thawing = Thawing { shards, places: HashMap::new(), seated: Vec::new() };
    let (mut joined, mut connections) = (Vec::new(), Vec::new());
    for bytes in sessions {
        let mut part = SessionPart::read(Format::Packed, bytes)
            .map_err(|error| format!("a session can't be read: {error}"))?;
        let was_open = part.connection.is_some();
        let place = part.place;
        if !part.rooms.iter().all(|room| up_to_date.contains(&(place, room.number))) {
            part.connection = None;
        }
        let is_open = part.connection.is_some();
        let of = thawing.session(part)?;
        if was_open {
            connections.push(is_open.then(|| (of.0.shard as u16, of.0.key())));
        }
        joined.push(of);
    }
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

    /// Takes in a session, with its connection if that is passed on.
    fn thaw_session(&mut self, part: SessionPart) -> Option<(ConnectionKey, Arc<Address>)> {
        let node = Arc::clone(&self.env.node);
        let now = self.env.now;
        let SessionPart { number, resumption, ticket_users, .. } = part;
        let format = Format::from_number(part.format)?;
        let address = node.addresses.named(part.address.name()?, now);
        let identity = match part.identity {
            Some(identity) => identity.identity()?,
            None => crate::auth::Identity::default(),
        };
        let (user, tickets_only) = (identity.user.clone(), identity.tickets_only);
        let home = u16::try_from(resumption.home).ok()?;
        let is_told = resumption.away_since.is_some();
        let since = resumption.away_since.map_or(now + RETURN_WAIT, time);
        let resume_bytes = node.config.limits.session.resume_bytes;
        let mut state = Resumption::new(home);
        state.generation = resumption.generation;
        state.resumes = resumption.resumes;
        state.confirmed = resumption.confirmed;
        state.received = read(&resumption.received, Received::thaw).ok()?;
        state.log = read(&resumption.log, |log| Log::thaw(log, resume_bytes)).ok()?;
        let open = part.connection.map(FramingPart::parts);
        if open.is_none() {
            state.presence = Presence::Away { since: since.into(), is_told };
        }
        for request in part.refused {
            refuse(&mut state, format, RequestNumber(request), resume_bytes);
        }
        let mut session = Session::new(number, identity, Some(state));
        if part.rooms_numbered > 0 {
            session.extras_mut().rooms_numbered = part.rooms_numbered;
        }
        if part.allowances.iter().any(|of| *of != [0, 0]) {
            *session.allowances_mut() = allowances(&part.allowances)?;
        }
        let device = part.device.map(|device| device.registration(user.clone()));
        if !ticket_users.is_empty() {
            let users = ticket_users.iter().map(|user| user.as_str().into());
            session.extras_mut().ticket_users = users.collect();
        }
        session.rooms = part
            .rooms
            .iter()
            .map(|room| {
                let id = RoomId::parse(&room.id)?;
                Some(SessionRoom::joined_before(RoomNumber(room.number), id, room.joined_at))
            })
            .collect::<Option<_>>()?;

        let is_open = open.is_some();
        let mut connection = match open {
            Some((input, framing)) => {
                let mut connection = Connection::new(now, input, Tally::of_open(&address));
                connection.dialect.framing = framing;
                connection
            }
            None => {
                let tally = Tally::without_connection(&address);
                let mut connection = Connection::new(time(part.heard), Input::InUse, tally);
                (connection.phase, connection.held) = (Phase::Away, true);
                connection
            }
        };
        connection.dialect.format = format;
        connection.resumable = true;
        connection.has_session = true;
        connection.tickets_only = tickets_only;
        let key = self.links.insert(connection);
        let place = users::Place { shard: self.env.shard, connection: key, session: number };
        if let Some(user) = &user {
            node.users.thaw(user, place, false);
        }
        for user in &ticket_users {
            node.users.thaw(user, place, true);
        }
        self.sessions.insert(key, Box::new(session));
        self.sessions.count += 1;
        self.sessions.note_resumable(number, key);
        node.away.moved(number, home, self.env.shard);
        self.links.count_bytes(key);
        if is_open {
            self.links.look_at(key, now + node.config.timeouts.heartbeat / 2);
        } else {
            self.sessions.away += 1;
            node.away.thaw(&address);
            self.links.look_at(key, since);
        }
        if let Some(registration) = device {
            let (shard, connection) = (self.env.shard, key.bits());
            let place = device::Place { shard, connection, is_service: false };
            let of = (key, place);
            self.topics.devices.thaw(&node, &mut self.links, of, registration, now);
        }
        Some((key, address))
    }

    /// Takes in a room. Returns the seats of its members.
    fn thaw_room(
        &mut self,
        id: RoomId,
        frozen: &Frozen<'_>,
        part: HostedPart,
        members: Vec<MemberPart>,
        places: &HashMap<Place, Sits>,
    ) -> Result<Vec<Seated>, String> {
        let node = Arc::clone(&self.env.node);
        let room_type = node
            .room_type(frozen.room_type())
            .ok_or("this program has no such room type: is it another program?")?;
        let (mut table, mut by_player, mut places_of) =
            (Members::new(), BTreeMap::new(), Vec::new());
        for of in members {
            let Some(sits) = places.get(&of.session) else { continue };
            let (place, number, player) = (sits.place, RoomNumber(of.number), of.player);
            let link_to = self.link_to(sits, number);
            let member = member(&of, link_to).ok_or("a member is not valid")?;
            let key = table.insert(member);
            by_player.insert(player, key);
            places_of.push((place, number, key));
        }
        let nobody = Link(u64::MAX);
        let mut find = |player: PlayerId| by_player.get(&player).map_or(nobody, |key| link(*key));
        let store = node.store.lend();
        let thaw = node.room_types[usize::from(room_type)].thaw;
        let thawed =
            catch_unwind(AssertUnwindSafe(|| thaw(Thaw { frozen, store, link: &mut find })));
        let room: Box<dyn AnyRoom> = match thawed {
            Ok(thawed) => thawed.map_err(|error| error.to_string())?,
            Err(panic) => return Err(format!("it panicked: {}", panic_text(&*panic))),
        };
        let room = node.record(room, id, room_type);
        let gone = room.players(&mut |_| true).into_iter().map(|player| player.id());
        let gone: Vec<PlayerId> = gone.filter(|player| !by_player.contains_key(player)).collect();

        let summary = room.summary().clone();
        let key = summary.key.clone();
        let kept = Kept {
            room_type,
            shard: self.env.shard,
            key: key.map(|text| RoomKeyText { text, is_code: summary.is_code }),
            criteria: part.criteria.0.into(),
            waiting_max: node.room_types[usize::from(room_type)].settings.joins_waiting_max,
            summary,
        };
        if !node.directory.keep(id, kept) {
            return Err("a room has its id, or its key, already".to_owned());
        }
        let founder = part.founder.and_then(|address| address.name());
        let founder = founder.map(|name| node.addresses.named(name, self.env.now));
        let beat = |beat: Option<BeatPart>| match beat {
            Some(beat) => beat.beat().map(Some).ok_or("a rate is not valid"),
            None => Ok(None),
        };
        let made = Made {
            id,
            room_type,
            room,
            created: time(part.created),
            epoch: part.epoch,
            ticks: beat(part.ticks)?,
            syncs: beat(part.syncs)?,
            founder: founder.map_or(Founder::Program, |of| Founder::Client(Host(of))),
        };
        let mut hosted = Hosted::new(made);
        hosted.members = table;
        hosted.regular_syncs = part.regular_syncs;
        hosted.history =
            read(&part.history, SyncHistory::thaw).map_err(|_| "the history is not valid")?;
        hosted.sync_awaited = part.sync_awaited;
        let room = self.host.host(hosted);
        self.thawed.push((room, gone));
        let shard = self.env.shard;
        let seated = |(place, number, member): (Place, RoomNumber, _)| Seated {
            shard: place.shard as u16,
            connection: place.key(),
            number,
            seat: Seat { shard, room, member },
        };
        Ok(places_of.into_iter().map(seated).collect())
    }

    fn link_to(&self, sits: &Sits, number: RoomNumber) -> MemberLink {
        let Sits { place, is_open, address } = sits;
        if place.shard == u32::from(self.env.shard) {
            return MemberLink::Local(place.key());
        }
        let stay = Stay { connection: place.key(), room: number };
        let mut link = RemoteLink::new(place.shard as u16, stay, Arc::clone(address));
        link.held = !is_open;
        MemberLink::Remote(Box::new(link))
    }

    /// On the session's shard: finishes the rooms of a thawed session.
    fn leave_lost_rooms(&mut self, key: ConnectionKey) {
        let Some(connection) = self.links.get(key) else { return };
        let format = connection.dialect.format;
        let resume_bytes = self.env.node.config.limits.session.resume_bytes;
        let Some(session) = self.sessions.get_mut(key) else { return };
        let (rooms, lost): (Vec<_>, Vec<_>) =
            std::mem::take(&mut session.rooms).into_iter().partition(|room| room.seat.is_some());
        session.rooms = rooms;
        let Some(resumption) = session.resumption.as_mut() else { return };
        for room in lost {
            let left = ServerMessage::Left(server::Left {
                request: None,
                room: room.number,
                code: ErrorCode::RoomClosed,
                text: "the room ended".into(),
            });
            resumption.log.push(Some(room.number), resume_bytes, Passage::Held, |out| {
                left.encode(format, out);
            });
        }
        let node = Arc::clone(&self.env.node);
        let numbers: Vec<(RoomNumber, RoomId)> =
            session.rooms.iter().map(|room| (room.number, room.id)).collect();
        for (number, id) in numbers {
            let Some(place) = node.directory.find(id) else { continue };
            let settings = node.room_types[usize::from(place.room_type)].settings;
            if let Some(room) =
                self.sessions.get_mut(key).and_then(|session| session.room_mut(number))
            {
                room.patience = Patience::of(settings);
                room.grace = Duration::from_millis(settings.grace_ms);
            }
            outlet!(self).measure_for(key, number, settings);
        }
    }

    /// The first thing that a shard does that was thawed: its rooms learn that they go on. Players
    /// whose sessions did not outlive their connections leave.
    pub(crate) fn go_on_thawed(&mut self, now: Duration) {
        self.begin(now);
        self.topics.devices.go_on(&Arc::clone(&self.env.node));
        for (key, gone) in std::mem::take(&mut self.thawed) {
            self.host.call(&mut below!(self), key, |room, at, out| room.moved(at, out));
            for player in gone {
                self.host.call(&mut below!(self), key, |room, at, out| {
                    room.leave(at, player, LeaveReason::ConnectionLost, out);
                });
            }
        }
        self.settle();
    }
}

fn refuse(resumption: &mut Resumption, format: Format, request: RequestNumber, bytes_max: usize) {
    let error = Error::new(ErrorCode::Busy, "the node was upgraded; try again");
    let message = ServerMessage::Error(server::Error {
        request: Some(request),
        room: None,
        code: error.code(),
        text: error.text().into(),
        retry_after_ms: None,
    });
    resumption.log.push(None, bytes_max, Passage::Held, |out| message.encode(format, out));
}

fn allowances(parts: &[[u64; 2]]) -> Option<Allowances> {
    let [creations, misses, lists, schemas, resumes, snapshots] = *parts.first_chunk()?;
    let of = |parts| Allowance::with_remaining(parts, Duration::ZERO);
    Some(Allowances {
        creations: of(creations),
        misses: of(misses),
        lists: of(lists),
        schemas: of(schemas),
        resumes: of(resumes),
        snapshots: of(snapshots),
    })
}

fn member(part: &MemberPart, link: MemberLink) -> Option<Member> {
    let format = Format::from_number(part.format)?;
    let snapshots = Allowance::with_remaining(part.snapshots, Duration::ZERO);
    let (number, none) = (RoomNumber(part.number), RequestNumber(0));
    let mut member = Member::entering(link, format, snapshots, number, none, true);
    member.standing = crate::shard::rooms::member::Standing::Live;
    member.player = part.player;
    member.sent = part.sent;
    member.clean = part.clean;
    member.history = read(&part.history, SentHistory::thaw).ok()?;
    member.lagging = part.lagging;
    member.wants_snapshot = part.wants_snapshot;
    member.events = part.events;
    member.unanswered = part.unanswered.iter().copied().map(RequestNumber).collect();
    Some(member)
}
