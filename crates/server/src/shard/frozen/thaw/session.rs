//! A session, and its connection if that is passed on.

use std::sync::Arc;
use std::time::Duration;

use playfield_room::Error;
use playfield_session::{ACK_DELAY, Log, Received};
use playfield_state::Format;
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, RequestNumber, RoomNumber};

use crate::addresses::{Address, Tally};
use crate::device;
use crate::room_id::RoomId;
use crate::shard::Shard;
use crate::shard::allowance::Allowance;
use crate::shard::connection::patience::Patience;
use crate::shard::connection::transport::Input;
use crate::shard::connection::{Connection, Kind, Phase, narrowed};
use crate::shard::frozen::parts::{ResumptionPart, SessionPart, read, time};
use crate::shard::keys::ConnectionKey;
use crate::shard::session::resumption::{Presence, Resumption};
use crate::shard::session::{Allowances, Session, SessionRoom};
use crate::users;

/// The time in which clients come back before their rooms hear that they were away. Graces count
/// from its end.
const RETURN_WAIT: Duration = Duration::from_secs(5);

impl Shard {
    /// Takes in a session, with its connection if that is passed on.
    pub(super) fn thaw_session(
        &mut self,
        part: SessionPart,
    ) -> Option<(ConnectionKey, Arc<Address>)> {
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
        let is_open = part.connection.is_some();
        let away_since = resumption.as_ref().and_then(|of| of.away_since);
        let (is_told, since) = (away_since.is_some(), away_since.map_or(now + RETURN_WAIT, time));
        let mut resumption = match resumption {
            Some(part) => Some(thaw_resumption(part, node.config.limits.session.resume_bytes)?),
            None if is_open => None,
            None => return None,
        };
        let home = resumption.as_ref().map(|resumption| resumption.home);
        let logged = resumption.as_ref().map_or(0, |resumption| narrowed(resumption.log.memory()));
        if let Some(resumption) = resumption.as_mut().filter(|_| !is_open) {
            resumption.presence = Presence::Away { since: since.into(), is_told };
        }
        let mut session = Session::new(number, identity, resumption);
        if part.rooms_numbered > 0 {
            session.extras_mut().rooms_numbered = part.rooms_numbered;
        }
        if part.unasked_schemas > 0 {
            session.extras_mut().unasked_schemas = part.unasked_schemas;
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

        let mut connection = match part.connection {
            Some(open) => open.connection(&node.config, now, Tally::of_open(&address)),
            None => {
                let tally = Tally::without_connection(&address);
                let mut connection = Connection::new(time(part.heard), Input::InUse, tally);
                (connection.phase, connection.held) = (Phase::Away, true);
                connection
            }
        };
        connection.dialect.format = format;
        connection.resumable = home.is_some();
        connection.logged = logged;
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
        if let Some(home) = home {
            self.sessions.note_resumable(number, key);
            node.away.moved(number, home, self.env.shard);
        }
        for request in part.refused {
            self.refuse_thawed(key, RequestNumber(request));
        }
        self.links.count_bytes(key);
        if is_open {
            self.links.look_at(key, now + node.config.timeouts.heartbeat / 2);
            if self.sessions.resumption(key).is_some_and(|of| of.received.is_behind()) {
                self.links.look_by(key, now + ACK_DELAY);
            }
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

    /// Refuses a request that was on its way when the node was frozen.
    fn refuse_thawed(&mut self, key: ConnectionKey, request: RequestNumber) {
        let error = Error::new(ErrorCode::Busy, "the node was upgraded; try again");
        let message = ServerMessage::Error(server::Error {
            request: Some(request),
            room: None,
            code: error.code(),
            text: error.text().into(),
            retry_after_ms: None,
        });
        outlet!(self).send(key, &message);
    }

    /// On the session's shard: finishes the rooms of a thawed session.
    pub(super) fn leave_lost_rooms(&mut self, key: ConnectionKey) {
        let Some(session) = self.sessions.get_mut(key) else { return };
        let (rooms, lost): (Vec<_>, Vec<_>) =
            std::mem::take(&mut session.rooms).into_iter().partition(|room| room.seat.is_some());
        session.rooms = rooms;
        for room in lost {
            let left = ServerMessage::Left(server::Left {
                request: None,
                room: room.number,
                code: ErrorCode::RoomClosed,
                text: "the room ended".into(),
            });
            let kind = Kind::Counted(Some(room.number));
            outlet!(self).write(key, kind, |format, out| left.encode(format, out));
        }
        let node = Arc::clone(&self.env.node);
        let Some(session) = self.sessions.get(key) else { return };
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
}

fn thaw_resumption(part: ResumptionPart, log_bytes_max: usize) -> Option<Resumption> {
    let mut resumption = Resumption::new(u16::try_from(part.home).ok()?);
    resumption.generation = part.generation;
    resumption.resumes = part.resumes;
    resumption.confirmed = part.confirmed;
    resumption.received = read(&part.received, Received::thaw).ok()?;
    resumption.log = read(&part.log, |log| Log::thaw(log, log_bytes_max)).ok()?;
    Some(resumption)
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
