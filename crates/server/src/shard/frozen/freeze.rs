//! A shard's rooms and sessions become bytes. All of it stays as it is, so that it can go on.

use std::time::Duration;

use playfield_room::frozen::{FreezeError, FrozenWriter};
use playfield_room::{Error, Stage};
use playfield_state::{Bytes, Data};
use playfield_wire::{ErrorCode, RequestNumber};

use super::parts::{
    HOSTED, HostedPart, IdentityPart, MEMBERS, MemberPart, Place, ResumptionPart, SessionPart,
    SessionRoomPart, bytes, nanos,
};
use crate::shard::Shard;
use crate::shard::journaled::Lanes;
use crate::shard::keys::{ConnectionKey, RoomKey};
use crate::shard::rooms::Hosted;
use crate::shard::rooms::host::{Below, RoomHost};
use crate::shard::rooms::link::MemberLink;
use crate::shard::rooms::member::{Member, Standing};
use crate::shard::rooms::sync::Cause;
use crate::shard::session::resumption::Resumption;
use crate::shard::session::switches::Switches;
use crate::shard::session::{Session, SessionRoom};
use crate::shard::work::Founder;

/// The rooms and sessions of a shard, as bytes. A session whose connection is passed on says so.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Frozen {
    pub(crate) rooms: Vec<Vec<u8>>,
    pub(crate) sessions: Vec<Vec<u8>>,
    /// The channels whose home it is.
    pub(crate) channels: Vec<Vec<u8>>,
    /// The schemas that clients use to speak to it.
    pub(crate) schemas: Vec<Vec<u8>>,
    /// The process that had them has ended, and so have its sessions.
    pub(crate) is_recovered: bool,
    /// The time of another clock, at which they were frozen, if they don't go on by the same one.
    pub(crate) at: Option<Duration>,
}

impl Frozen {
    /// Adds those of another shard.
    pub(crate) fn add(&mut self, other: Self) {
        self.rooms.extend(other.rooms);
        self.sessions.extend(other.sessions);
        self.channels.extend(other.channels);
        for schema in other.schemas {
            if !self.schemas.contains(&schema) {
                self.schemas.push(schema);
            }
        }
    }
}

/// The error of joins and of work that can't go on elsewhere.
fn upgrading() -> Error {
    Error::new(ErrorCode::Busy, "the node is being upgraded; try again")
}

impl Shard {
    /// Returns whether work of a room is in flight that can't go on elsewhere.
    pub(crate) fn has_work_in_flight(&self) -> bool {
        let rooms = self.host.rooms.keys().into_iter().filter_map(|key| self.host.rooms.get(key));
        rooms.into_iter().any(|hosted| !hosted.room.in_flight().is_empty())
    }

    /// Returns whether the store still has a save that it had when the shard began to drain for the
    /// upgrade of this number.
    pub(crate) fn waits_for_store(&mut self, upgrade: u64) -> bool {
        let rooms = &self.host.rooms;
        let saving = |key: RoomKey| {
            let hosted = rooms.get(key).filter(|hosted| hosted.room.in_flight().is_saving)?;
            Some((key, hosted.saved))
        };
        if self.saving.0 != upgrade {
            self.saving = (upgrade, rooms.keys().into_iter().filter_map(saving).collect());
        }
        self.saving.1.retain(|of| saving(of.0) == Some(*of));
        !self.saving.1.is_empty()
    }

    /// Does what members wait for, and ends the work in flight: from here on, nothing happens here
    /// but what other shards cause.
    pub(crate) fn stop_rooms(&mut self) {
        self.env.is_frozen = true;
        self.host.do_all_waiting(&mut below!(self));
        for key in self.host.rooms.keys() {
            let is_busy = |hosted: &Hosted| !hosted.room.in_flight().is_empty();
            if self.host.rooms.get(key).is_some_and(is_busy) {
                self.given_up.push(key);
                self.host.call(&mut below!(self), key, |room, at, out| {
                    let form = &mut FrozenWriter::new();
                    if let Err(error) = room.freeze_after(at, &upgrading(), form, out) {
                        log::debug!("a room is busy before an upgrade: {error}");
                    }
                });
            }
        }
        self.settle();
    }

    /// Follows up what other shards have caused meanwhile.
    pub(crate) fn settle_stopped(&mut self) {
        self.host.deliver_local_mail(&mut below!(self));
        self.settle();
        self.settle_journaled();
    }

    /// Writes what journaled rooms have noted, and lets go on what has waited for that.
    pub(crate) fn settle_journaled(&mut self) {
        if self.outbound.journaled.is_some() {
            self.begin_journaled();
            self.settle();
            self.host.end_block(&mut below!(self));
        }
    }

    /// Returns whether nothing waits to leave.
    pub(crate) fn is_quiet(&self) -> bool {
        self.outbound.is_empty()
            && self.outbound.local_mail.is_empty()
            && self.sessions.user_posts.is_empty()
            && self.sessions.departing.is_empty()
    }

    /// Writes the rooms. Members are sent what their last sync changes; what they are sent after
    /// that changes no room.
    pub(crate) fn freeze_rooms(&mut self) {
        for key in self.host.rooms.keys() {
            let mut form = FrozenWriter::new();
            match self.host.freeze_room(&mut below!(self), key, &mut form) {
                Ok(()) => self.frozen.push((key, form)),
                Err(FreezeError::Ended) => {}
                Err(error) => {
                    let id = self.host.rooms.get(key).map(|hosted| hosted.id);
                    self.not_frozen = id.map(|id| format!("room {id} can't be frozen: {error}"));
                }
            }
        }
        self.held_mail = Some(Vec::new());
        self.apply_effects();
    }

    /// Returns the rooms that were [written](Self::freeze_rooms), and all sessions whose
    /// connections are passed on or that outlive them. `pass` is asked for each connection that may
    /// be passed on, in the order of the sessions, and returns whether it is.
    ///
    /// # Errors
    /// The room that can't be frozen, and why.
    pub(crate) fn collect_frozen(
        &mut self,
        mut pass: impl FnMut(ConnectionKey) -> bool,
    ) -> Result<Frozen, String> {
        if let Some(why) = self.not_frozen.take() {
            return Err(why);
        }
        let mut rooms = Vec::new();
        for (key, mut form) in std::mem::take(&mut self.frozen) {
            self.write_host_parts(key, &mut form);
            rooms.push(form.finish().map_err(|error| error.to_string())?);
        }
        let keys: Vec<ConnectionKey> = self.sessions.keys().collect();
        let sessions = keys.into_iter().filter_map(|key| {
            let mut part = self.session_part(key)?;
            part.connection = self.connection_part(key).filter(|_| pass(key));
            (part.connection.is_some() || part.resumption.is_some()).then_some(part)
        });
        let sessions = sessions.map(|part| bytes(|out| part.encode(out)).0).collect();
        let channels = self.topics.channels.home.parts();
        let channels = channels.map(|part| bytes(|out| part.encode(out)).0).collect();
        let schemas = self.schema_parts();
        let schemas = schemas.iter().map(|part| bytes(|out| part.encode(out)).0).collect();
        Ok(Frozen { rooms, sessions, channels, schemas, is_recovered: false, at: None })
    }

    /// Goes on as if nothing had happened: the frozen form is of no use.
    pub(crate) fn thaw_here(&mut self) {
        self.env.is_frozen = false;
        self.frozen.clear();
        for key in std::mem::take(&mut self.given_up) {
            self.host.call(&mut below!(self), key, |room, at, out| room.moved(at, out));
        }
        self.settle();
        self.held_mail.take().into_iter().flatten().for_each(|mail| self.mail(mail));
    }

    pub(super) fn write_host_parts(&mut self, key: RoomKey, form: &mut FrozenWriter) {
        let Some(hosted) = self.host.rooms.get_mut(key) else { return };
        let (age, criteria) = self.env.node.directory.facts(hosted.id).unwrap_or_default();
        let founder = match &hosted.founder {
            Founder::Client(host) => Some(host.0.name().into()),
            Founder::Program => None,
        };
        let part = HostedPart {
            shard: self.env.shard.into(),
            age,
            criteria: Bytes(criteria),
            created: nanos(hosted.created),
            epoch: hosted.epoch,
            ticks: hosted.ticks.map(Into::into),
            syncs: hosted.syncs.map(Into::into),
            regular_syncs: hosted.regular_syncs,
            founder,
            sync_awaited: hosted.sync_awaited,
        };
        let (shard, lanes) = (self.env.shard, self.outbound.lanes);
        let live = hosted.members.iter_mut().map(|(_, member)| member);
        let live = live.filter(|member| matches!(member.standing, Standing::Live));
        let members: Vec<MemberPart> =
            live.map(|member| member_part(member, shard, lanes)).collect();
        form.host_part(HOSTED, |out| part.encode(out));
        form.host_part(MEMBERS, |out| members.encode(out));
    }

    pub(super) fn session_part(&self, key: ConnectionKey) -> Option<SessionPart> {
        let connection = self.links.get(key)?;
        if connection.doomed || connection.is_closing() {
            return None;
        }
        // A device that owes answers registers again, by a new session.
        let device = match self.topics.devices.get(key) {
            Some(own) => Some(own.registration()?.into()),
            None => None,
        };
        let session = self.sessions.get(key)?;
        let is_joined = |room: &&SessionRoom| room.request.is_none() && room.seat.is_some();
        let joined = session.rooms.iter().filter(is_joined).map(|room| SessionRoomPart {
            number: room.number.0,
            id: room.id.to_string(),
            joined_at: room.joined_at,
        });
        let asked = session.rooms.iter().filter_map(|room| room.request);
        let ticket = session.extras().and_then(|extras| extras.ticket.as_deref());
        let refused = asked.chain(ticket.map(|ticket| ticket.request)).map(|request| request.0);
        let switches = session.switches();
        let of = session.allowances();
        let allowances = [of.creations, of.misses, of.lists, of.schemas, of.resumes, of.snapshots];
        Some(SessionPart {
            place: Place::new(self.env.shard, key),
            number: session.number,
            format: connection.dialect.format.number(),
            address: connection.tally.address().name().into(),
            identity: session.identity().map(IdentityPart::from),
            ticket_users: ticket_users(session),
            rooms_numbered: session.extras().map_or(0, |extras| extras.rooms_numbered),
            allowances: allowances.map(|of| of.remaining(Duration::ZERO)).to_vec(),
            rooms: joined.collect(),
            refused: refused.collect(),
            heard: nanos(connection.heard.time()),
            resumption: session.resumption.as_ref().map(resumption_part),
            connection: None,
            device,
            switches: switches.into_iter().flat_map(Switches::iter).map(Into::into).collect(),
            unasked_schemas: session.extras().map_or(0, |extras| extras.unasked_schemas),
        })
    }
}

fn resumption_part(resumption: &Resumption) -> ResumptionPart {
    ResumptionPart {
        home: resumption.home.into(),
        generation: resumption.generation,
        resumes: resumption.resumes,
        confirmed: resumption.confirmed,
        received: bytes(|out| resumption.received.freeze(out)),
        log: bytes(|out| resumption.log.freeze(out)),
        away_since: resumption.away_since().filter(|_| resumption.is_told()).map(nanos),
    }
}

fn ticket_users(session: &Session) -> Vec<String> {
    let users = session.extras().map_or(&[][..], |extras| &extras.ticket_users);
    users.iter().map(|user| user.to_string()).collect()
}

fn member_part(member: &Member, shard: u16, lanes: Lanes) -> MemberPart {
    let session = match &member.link {
        MemberLink::Local(key) => Place::new(shard, *key),
        MemberLink::Remote(link) => Place::new(lanes.shard(link.shard), link.connection()),
    };
    MemberPart {
        session,
        number: member.number.0,
        player: member.player,
        format: member.format.number(),
        is_resumable: member.is_resumable,
        sent: member.sent,
        clean: member.clean,
        lagging: member.lagging,
        wants_snapshot: member.wants_snapshot,
        snapshots: member.snapshots.remaining(Duration::ZERO),
        events: member.events,
        unanswered: member.unanswered.iter().map(|request: &RequestNumber| request.0).collect(),
    }
}

impl RoomHost {
    /// Writes a room, and sends its members what it changed since the last sync.
    pub(super) fn freeze_room(
        &mut self,
        below: &mut Below<'_>,
        key: RoomKey,
        form: &mut FrozenWriter,
    ) -> Result<(), FreezeError> {
        let is_open = |hosted: &Hosted| hosted.room.stage() == Stage::Open;
        if !self.rooms.get(key).is_some_and(is_open) {
            return Err(FreezeError::Ended);
        }
        if let Some(hosted) = self.rooms.get_mut(key) {
            // This sync counts as a regular one, so that all copies are of the same version again.
            hosted.regular_syncs += 1;
        }
        let mut frozen = Ok(());
        self.sync_room_by(below, key, Cause::Last, |room, at, out| {
            frozen = room.freeze(at, form, out);
        });
        if let Some(Hosted { room, members, .. }) = self.rooms.get_mut(key) {
            // The others still lack what was not sent to them meanwhile.
            let version = room.version();
            members.iter_mut().for_each(|(_, member)| member.lagging &= member.clean < version);
        }
        frozen
    }
}
