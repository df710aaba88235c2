//! One room and the sessions that move with it, as bytes, while all others of the shard run.
//!
//! To the clients, their connections are lost. They come back by their tokens, and go on at the
//! node where their sessions are by then. If the room does not go on elsewhere, the parcel is put
//! back where it was taken from.

use std::slice;
use std::time::Duration;

use playfield_room::frozen::FrozenWriter;
use playfield_room::{Error, RoomOutput, Stage};
use playfield_state::{Bytes, Data, Format};
use playfield_wire::ErrorCode;

use super::freeze::Frozen;
use super::parts::{bytes, nanos, time};
use super::thaw::{ThawedRoom, check_room, thaw};
use crate::room_id::RoomId;
use crate::shard::Shard;
use crate::shard::keys::{ConnectionKey, MemberKey, RoomKey, link};
use crate::shard::mail::parcel::Parcel;
use crate::shard::rooms::link::MemberLink;
use crate::shard::rooms::member::{Member, Standing};

fn moving() -> Error {
    let text = "the room moves to another node; try again";
    Error::new(ErrorCode::Busy, text).with_retry_after(Duration::from_secs(1))
}

fn immovable(text: impl Into<String>) -> Error {
    Error::new(ErrorCode::Refused, text)
}

impl Shard {
    /// Takes a room out, with the sessions that are in no other. All other members leave it. The
    /// directory has its id and key until someone removes it, or the room is put back.
    ///
    /// # Errors
    /// If it can't move, or is busy. It is as it was then.
    pub(in crate::shard) fn take_out(
        &mut self,
        id: RoomId,
        gives_up: bool,
    ) -> Result<Parcel, Error> {
        let key = self.room_to_move(id)?;
        self.host.deliver_local_mail(&mut below!(self));
        self.host.do_waiting(&mut below!(self), key);
        self.settle();
        let room = &self.host.rooms.get(key).ok_or_else(not_open)?.room;
        if !room.in_flight().is_empty() {
            if !gives_up {
                return Err(moving());
            }
            self.host.call(&mut below!(self), key, |room, at, out| {
                let form = &mut FrozenWriter::new();
                if let Err(error) = room.freeze_after(at, &moving(), form, out) {
                    log::debug!("a room is busy before it moves: {error}");
                }
            });
            self.settle();
        }
        let mut form = FrozenWriter::new();
        if let Err(error) = self.host.freeze_room(&mut below!(self), key, &mut form) {
            if gives_up {
                self.host.call(&mut below!(self), key, |room, at, out| room.moved(at, out));
                self.settle();
            }
            return Err(immovable(format!("room {id} can't be frozen: {error}")));
        }
        self.apply_effects();
        let schemas = self.schema_parts();
        let schemas = schemas.iter().map(|part| bytes(|out| part.encode(out))).collect();
        let sessions = self.part_with_others(key);
        let (room_type, key_text) = self.names_of(key);
        self.write_host_parts(key, &mut form);
        let room = form.finish().map(Bytes).map_err(|error| immovable(error.to_string()))?;

        self.env.node.directory.suspend(id);
        drop(self.host.take_room(key));
        let parts = sessions.iter().filter_map(|key| Some((*key, self.session_part(*key)?)));
        let parts: Vec<_> = parts.collect();
        let numbers: Vec<u64> = parts.iter().map(|(_, part)| part.number).collect();
        self.env.node.moved.leave(&numbers);
        let sessions = parts.iter().map(|(_, part)| bytes(|out| part.encode(out))).collect();
        for (key, _) in parts {
            self.by_outlet(|out| out.close(key, None));
        }
        self.settle();
        let (id, at) = (id.to_string(), nanos(self.env.now));
        Ok(Parcel { id, room_type, key: key_text, at, room, sessions, numbers, schemas })
    }

    /// Puts a room in, with its sessions.
    ///
    /// # Errors
    /// The text names the field that can't be read, or what is in the way. Nothing of it is here
    /// then.
    pub(in crate::shard) fn put_in(&mut self, parcel: Parcel) -> Result<(), Error> {
        let Parcel { at, room, sessions, numbers, schemas, .. } = parcel;
        let all = |parts: Vec<Bytes>| parts.into_iter().map(|part| part.0).collect();
        let frozen = Frozen {
            rooms: vec![room.0],
            sessions: all(sessions),
            schemas: all(schemas),
            at: Some(time(at)),
            ..Frozen::default()
        };
        if let Err(text) = thaw(slice::from_mut(self), &frozen) {
            for ThawedRoom { key, .. } in std::mem::take(&mut self.thawed) {
                if let Some(hosted) = self.host.take_room(key) {
                    self.env.node.directory.remove(hosted.id);
                }
            }
            for number in numbers {
                if let Some(key) = self.sessions.find(number) {
                    self.by_outlet(|out| out.end_away(key));
                }
            }
            return Err(immovable(text));
        }
        self.env.node.moved.come(&numbers);
        self.go_on_with_rooms();
        Ok(())
    }

    fn room_to_move(&mut self, id: RoomId) -> Result<RoomKey, Error> {
        let key = *self.host.by_id.get(&id).ok_or_else(|| {
            Error::new(ErrorCode::RoomNotFound, format!("no room has the id {id:?}"))
        })?;
        let hosted = self.host.rooms.get_mut(key).ok_or_else(not_open)?;
        if hosted.room.journaled().is_some() {
            let text = "rooms with `durability = journal` can't move to another node";
            return Err(immovable(text));
        }
        if hosted.room.stage() != Stage::Open {
            return Err(not_open());
        }
        if hosted.room.is_paused()
            || hosted.founding
            || !hosted.awaited_by.is_empty()
            || self.env.is_frozen
        {
            return Err(moving());
        }
        Ok(key)
    }

    /// The name of a room's type, and its key.
    fn names_of(&self, key: RoomKey) -> (String, Option<String>) {
        let Some(hosted) = self.host.rooms.get(key) else { return Default::default() };
        let room_type = self.env.node.room_types[usize::from(hosted.room_type)].name.clone();
        (room_type, hosted.room.summary().key.as_deref().map(str::to_owned))
    }

    /// Takes the members out whose sessions stay. Returns the sessions of the others.
    fn part_with_others(&mut self, key: RoomKey) -> Vec<ConnectionKey> {
        let Some(hosted) = self.host.rooms.get_mut(key) else { return Vec::new() };
        let (mut leaving, mut staying): (Vec<ConnectionKey>, Vec<MemberKey>) = Default::default();
        let members: Vec<_> =
            hosted.members.iter_mut().map(|(key, member)| (key, session_of(member))).collect();
        for (member, session) in members {
            match session.filter(|session| self.moves(*session)) {
                Some(session) => leaving.push(session),
                None => staying.push(member),
            }
        }
        let text = "the room has moved to another node; join it again";
        let why = Error::new(ErrorCode::RoomMoved, text);
        for member in staying {
            self.host.call(&mut below!(self), key, |_, _, out| {
                RoomOutput::refused(out, link(member), &moving());
                RoomOutput::removed(out, link(member), &why);
            });
        }
        self.apply_effects();
        leaving
    }

    /// Returns whether a session moves with the only room that it is in.
    fn moves(&self, key: ConnectionKey) -> bool {
        let (Some(connection), Some(session)) = (self.links.get(key), self.sessions.get(key))
        else {
            return false;
        };
        let is_over = connection.doomed || connection.is_closing() || connection.is_device;
        !is_over && session.resumption.is_some() && session.rooms.len() == 1
    }
}

/// Reads a parcel, and tries whether this program can go on with its room.
///
/// # Errors
/// The text names the field that can't be read.
pub(crate) fn check(parcel: &[u8], node: &crate::node::Node) -> Result<Parcel, String> {
    let parcel = Parcel::read(Format::Packed, parcel)
        .map_err(|error| format!("a parcel can't be read: {error}"))?;
    check_room(&parcel.room.0, node)?;
    Ok(parcel)
}

/// The session of a member that may move, if it is on the room's shard.
fn session_of(member: &Member) -> Option<ConnectionKey> {
    match (&member.link, &member.standing) {
        (MemberLink::Local(session), Standing::Live) => Some(*session),
        _ => None,
    }
}

fn not_open() -> Error {
    immovable("the room is about to end")
}
