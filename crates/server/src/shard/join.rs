//! How a client gets into a room, wherever that is.

use playfield_room::{Birth, Entrant, Error, Link, Result};
use playfield_wire::server::ServerMessage;
use playfield_wire::{ErrorCode, Format};

use super::mail::{Arrival, Newcomer, RoomAddress, ShardMail};
use super::outlet::RoomOutlet;
use super::rooms::{Home, Member, Stage};
use super::session::{Seat, duplicate};
use super::{Action, Shard, entropy};
use crate::directory::Place;
use crate::slab::Key;

/// What a client asks for.
pub(super) enum Wish<'a> {
    Join { id: &'a str },
    Create { room_type: &'a str, private: bool, options: &'a [u8] },
    JoinOrCreate { room_type: &'a str, options: &'a [u8] },
}

/// A join on its way to the room's shard.
#[derive(Debug)]
pub(crate) struct JoinJob {
    pub(super) request: u32,
    pub(super) id: String,
    /// The directory has promised a seat.
    pub(super) promised: bool,
    /// How to make the room, if it is not there.
    pub(super) birth: Option<Conception>,
}

/// What a room that is not there yet is to be.
#[derive(Debug)]
pub(super) struct Conception {
    room_type: String,
    private: bool,
    options: Vec<u8>,
    format: Format,
}

impl Shard {
    /// Finds the room's place, and goes there.
    pub(super) fn wish(&mut self, key: Key, request: u32, wish: Wish<'_>) {
        let rooms_max = self.node.config.rooms_per_session_max;
        let Some(session) = self.net.session(key) else { return };
        if session.unanswered.contains(&request) {
            return self.refuse(key, Some(request), None, &duplicate(request));
        }
        if session.seats.len() + session.unanswered.len() >= rooms_max {
            let text = format!("a session is in at most rooms_per_session_max = {rooms_max} rooms");
            return self.refuse(key, Some(request), None, &Error::new(ErrorCode::Limit, text));
        }
        let format = session.format;
        match self.find_place(request, wish, format) {
            Ok((place, job)) => self.go(key, place, job),
            Err(error) => self.refuse(key, Some(request), None, &error),
        }
    }

    fn find_place(&self, request: u32, wish: Wish<'_>, format: Format) -> Result<(Place, JoinJob)> {
        let directory = &self.node.directory;
        let (room_type, private, options) = match wish {
            Wish::Join { id } => {
                let place = directory.find(id)?;
                let job = JoinJob { request, id: place.id.clone(), promised: false, birth: None };
                return Ok((place, job));
            }
            Wish::Create { room_type, private, options } => (room_type, Some(private), options),
            Wish::JoinOrCreate { room_type, options } => (room_type, None, options),
        };
        let of = self.node.types.get(room_type).ok_or_else(|| {
            let shown: String = room_type.chars().take(64).collect();
            Error::new(ErrorCode::UnknownRoomType, format!("this node has no rooms of type {shown:?}"))
        })?;
        let place = match private {
            Some(private) => directory.place(room_type, of.capacity, private, room_id())?,
            None => directory.match_or_place(room_type, of.capacity, room_id)?,
        };
        let birth = Conception {
            room_type: room_type.to_owned(),
            private: private.unwrap_or(false),
            options: options.to_vec(),
            format,
        };
        let job = JoinJob { request, id: place.id.clone(), promised: true, birth: Some(birth) };
        Ok((place, job))
    }

    /// Joins here, moves there, or sends a letter.
    fn go(&mut self, key: Key, place: Place, job: JoinJob) {
        if place.shard == self.index {
            return self.join_here(key, job);
        }
        let request = job.request;
        let Some(connection) = self.net.connection(key) else { return };
        let Some(session) = connection.session.as_deref_mut() else { return };
        if session.seats.is_empty() && session.unanswered.is_empty() && !session.moved {
            session.moved = true;
            connection.moving = Some(Box::new((place.shard, job)));
            self.net.actions.push(Action::Move(key));
            return;
        }
        if self.node.mailboxes.is_full(place.shard, self.net.letters[place.shard].len()) {
            self.give_up(&job);
            let error = Error::new(ErrorCode::Busy, "the room's shard has too much waiting; try again");
            return self.refuse(key, Some(request), None, &error);
        }
        let Some(session) = self.net.session(key) else { return };
        session.unanswered.insert(request);
        session.last_number += 1;
        let newcomer = Newcomer {
            home: Home::Elsewhere { shard: self.index, connection: key },
            number: session.last_number,
            format: session.format,
            identity: session.identity.clone(),
            schemas: session.schemas.clone(),
        };
        self.net.letters[place.shard].push(ShardMail::Join { newcomer, job });
    }

    /// Takes a connection out, to be handed to another shard.
    pub(crate) fn depart(&mut self, key: Key) -> Option<(usize, Arrival)> {
        let connection = self.net.connections.get(key)?;
        connection.moving.as_ref()?;
        let mut connection = self.net.connections.remove(key)?;
        self.net.sessions -= 1;
        let (shard, job) = *connection.moving.take()?;
        Some((shard, Arrival { connection, job }))
    }

    /// Takes a connection in, and goes on with what it said before.
    pub(crate) fn arrived(&mut self, arrival: Arrival) -> Key {
        let Arrival { connection, job } = arrival;
        let key = self.net.connections.insert(connection);
        self.net.sessions += 1;
        self.net.timeouts.set(self.now, key);
        self.join_here(key, job);
        self.net.touch(key);
        self.pump(key);
        key
    }

    /// Joins a room of this shard, from a connection of this shard.
    fn join_here(&mut self, key: Key, job: JoinJob) {
        let Some(session) = self.net.session(key) else { return self.give_up(&job) };
        session.last_number += 1;
        let newcomer = Newcomer {
            home: Home::Here(key),
            number: session.last_number,
            format: session.format,
            identity: session.identity.clone(),
            schemas: session.schemas.clone(),
        };
        let number = newcomer.number;
        let request = job.request;
        match self.admit(newcomer, job) {
            Ok((room, member, player)) => {
                if let Some(session) = self.net.session(key) {
                    let address = RoomAddress { shard: self.index, room };
                    session.seats.push(Seat { number, address, member, player });
                }
            }
            Err(error) => self.refuse(key, Some(request), None, &error),
        }
    }

    /// Lets someone into a room of this shard, which is made if it is not there.
    pub(super) fn admit(
        &mut self,
        newcomer: Newcomer,
        job: JoinJob,
    ) -> Result<(Key, u64, playfield_room::PlayerId)> {
        let admitted = self.try_admit(newcomer, &job);
        // The seat that is taken is known before the promise of it ends: so nobody is sent here in between.
        if let Ok((room, ..)) = admitted {
            self.publish(room);
        }
        self.give_up(&job);
        admitted
    }

    /// The promise of a seat is kept, or not needed any more.
    fn give_up(&self, job: &JoinJob) {
        if job.promised {
            self.node.directory.arrived(&job.id);
        }
    }

    fn try_admit(
        &mut self,
        newcomer: Newcomer,
        job: &JoinJob,
    ) -> Result<(Key, u64, playfield_room::PlayerId)> {
        let room = match (self.by_id.get(&job.id), &job.birth) {
            (Some(room), _) => *room,
            (None, Some(birth)) => self.create(&job.id, birth)?,
            (None, None) => return Err(Error::new(ErrorCode::RoomNotFound, "the room has ended")),
        };
        let now = self.now;
        let slot = self
            .rooms
            .get_mut(room)
            .ok_or_else(|| Error::new(ErrorCode::RoomNotFound, "the room has ended"))?;
        let Newcomer { home, number, format, identity, schemas } = newcomer;
        if slot.members.values().any(|member| member.home == home) {
            return Err(Error::new(ErrorCode::AlreadyJoined, "you are in that room"));
        }
        if let Some((_, built)) =
            schemas.iter().find(|(name, built)| *name == slot.of.name && *built != slot.of.fingerprint)
        {
            let text = format!(
                "the client was built with another schema of {:?} (fingerprint {built:x}; this node has {:x})",
                slot.of.name, slot.of.fingerprint
            );
            return Err(Error::new(ErrorCode::SchemaMismatch, text));
        }
        let stage = Stage::Joining { request: job.request, events: Vec::new() };
        let member = slot.members.insert(Member::new(home, number, format, stage));
        let link = Link(member.to_bits());
        let entrant = Entrant { link, format, name: identity.name, user: identity.user };
        let at = now.saturating_sub(slot.born);
        let (inside, mut outlet) = RoomOutlet::split(slot, room, &mut self.net, &self.node);
        let joined = inside.join(at, entrant, &mut outlet);
        self.touch(room);
        let slot = self.rooms.get_mut(room);
        match (joined, slot) {
            (Ok(player), Some(slot)) => {
                if let Some(member) = slot.members.get_mut(member) {
                    member.player = player;
                }
                // A room without regular syncs makes one for each who joins.
                slot.sync_now |= slot.syncs.is_none();
                Ok((room, member.to_bits(), player))
            }
            (Err(error), slot) => {
                if let Some(slot) = slot {
                    slot.members.remove(member);
                }
                Err(error)
            }
            (Ok(_), None) => Err(Error::new(ErrorCode::RoomNotFound, "the room has ended")),
        }
    }

    fn create(&mut self, id: &str, birth: &Conception) -> Result<Key> {
        let of = self.node.types.get(&birth.room_type).cloned();
        let of =
            of.ok_or_else(|| Error::new(ErrorCode::UnknownRoomType, "this node has no rooms of that type"))?;
        let Conception { private, options, format, .. } = birth;
        let seed = u64::from_le_bytes(entropy());
        let made =
            (of.create)(Birth { id: id.to_owned(), seed, private: *private, options, format: *format });
        match made {
            Ok(room) => Ok(self.house(id.to_owned(), of, room)),
            Err(error) => {
                self.node.directory.remove(id);
                Err(error)
            }
        }
    }

    /// What another shard answered to a join from here.
    pub(super) fn joined_elsewhere(&mut self, key: Key, request: u32, result: Result<Box<NewSeat>>) {
        let Some(session) = self.net.session(key) else {
            if let Ok(seat) = result {
                let NewSeat { address, member, .. } = *seat;
                self.net.letters[address.shard].push(ShardMail::Leave { room: address.room, member });
            }
            return;
        };
        session.unanswered.remove(&request);
        match result {
            Ok(seat) => {
                let NewSeat { number, address, member, player } = *seat;
                session.seats.push(Seat { number, address, member, player });
            }
            Err(error) => self.refuse(key, Some(request), None, &error),
        }
    }
}

/// A seat in a room of another shard.
#[derive(Debug)]
pub(crate) struct NewSeat {
    pub(super) number: u32,
    pub(super) address: RoomAddress,
    pub(super) member: u64,
    pub(super) player: playfield_room::PlayerId,
}

/// 16 characters of Crockford's base 32, 80 random bits: nobody guesses the id of a private room.
fn room_id() -> String {
    const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let bytes: [u8; 16] = entropy();
    bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte & 31)])).collect()
}

impl super::Net {
    /// Sees to it that what a connection brought along is written.
    fn touch(&mut self, key: Key) {
        if let Some(connection) = self.connections.get_mut(key)
            && connection.unsent() > 0
        {
            Self::mark_dirty(&mut self.dirty, connection, key);
        }
    }
}

/// Says that a join is done.
pub(super) fn joined<'a>(
    request: u32,
    member: &Member,
    slot: &'a super::rooms::RoomSlot,
) -> ServerMessage<'a> {
    ServerMessage::Joined {
        request,
        room: member.number,
        id: slot.id.as_str().into(),
        room_type: slot.of.name.as_str().into(),
        player: member.player.0,
        epoch: slot.epoch,
        tick_hz: slot.room.tick_hz(),
        sync_hz: slot.room.sync_hz(),
        fingerprint: slot.of.fingerprint,
    }
}
