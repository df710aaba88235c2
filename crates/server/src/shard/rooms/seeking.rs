//! Joins whose room may be at another node, on the session's shard.

use std::sync::Arc;

use playfield_room::{Error, SeatFor};
use playfield_wire::server::{self, ServerMessage};
use playfield_wire::{ErrorCode, RequestNumber, RoomNumber};

use crate::addresses::Pace;
use crate::cluster::Cluster;
use crate::cluster::seeking::{Seek, Sought};
use crate::node::Node;
use crate::room_id::RoomId;
use crate::shard::allowance::Rate;
use crate::shard::keys::ConnectionKey;
use crate::shard::mail::join::JoinTarget;
use crate::shard::rooms::founding::shutting_down;
use crate::shard::rooms::joining::give_back;
use crate::shard::session::SessionRoom;
use crate::shard::session::outlet::Outlet;
use crate::tickets::TicketPass;

/// Returns whether the room of a join may be at another node: this one does not know it, and
/// others can tell.
pub(super) fn may_be_elsewhere(node: &Node, cluster: &Cluster, target: &JoinTarget) -> bool {
    let has_key = |room_type, key: &str| node.directory.has_key(room_type, key);
    match target {
        JoinTarget::Room(text) => {
            let id = playfield_room::split_reservation(text).map_or(&**text, |(id, _)| id);
            // A room with the slot of this node may have moved.
            RoomId::parse(id).is_some_and(|id| node.directory.find(id).is_none())
        }
        JoinTarget::Key(room_type, key) => !has_key(*room_type, key),
        JoinTarget::New(spec) if spec.key.is_none() && !spec.code => !cluster.takes_next(),
        JoinTarget::New(spec) | JoinTarget::Any(spec) => match &spec.key {
            Some(key) => !has_key(spec.room_type, &key.text),
            None => spec.code,
        },
    }
}

impl Outlet<'_> {
    /// Has the cluster find the room of a join. The session counts as entering it.
    pub(super) fn seek(
        &mut self,
        key: ConnectionKey,
        request: RequestNumber,
        target: JoinTarget,
        retries: u8,
        ticket: Option<Box<TicketPass>>,
    ) {
        if let Err(error) = self.may_seek(key, &target) {
            give_back(ticket);
            return self.refuse_join(key, request, &error);
        }
        let Some(cluster) = self.env.node.cluster.clone() else { return };
        let Some(session) = self.sessions.get_mut(key) else { return };
        let of_ticket = ticket.as_ref();
        let user = of_ticket.and_then(|of| of.user.as_deref()).or(session.user());
        let name = of_ticket.and_then(|of| of.name.as_deref()).unwrap_or(session.name()).to_owned();
        let who = match user {
            Some(user) => SeatFor::User(user.to_owned()),
            None => SeatFor::Name(name.clone()),
        };
        let extras = session.extras_mut();
        extras.rooms_numbered += 1;
        let number = RoomNumber(extras.rooms_numbered);
        session.rooms.push(SessionRoom::entering(number, RoomId::NONE, Some(request)));
        let (shard, connection) = (self.env.shard, key);
        let seek = Seek { shard, connection, request, number, target, retries, ticket, who, name };
        if let Err(seek) = cluster.seek(Box::new(seek)) {
            let text = "too many joins wait for other nodes; try again";
            self.sought(*seek, Sought::Refused(Error::new(ErrorCode::Busy, text)));
        }
    }

    /// Checks what would refuse the join here, too.
    fn may_seek(&mut self, key: ConnectionKey, target: &JoinTarget) -> Result<(), Error> {
        let node = &self.env.node;
        let gone = || Error::new(ErrorCode::Internal, "the session ended");
        let session = self.sessions.get_mut(key).ok_or_else(gone)?;
        let limits = &node.config.limits.session;
        if session.rooms.len() >= limits.rooms {
            let text = format!("limits.session.rooms: this session is in {} rooms", limits.rooms);
            return Err(Error::new(ErrorCode::Limit, text));
        }
        if self.env.is_shutting_down {
            return Err(shutting_down());
        }
        if self.env.is_frozen {
            return Err(Error::new(ErrorCode::Busy, "the node is being upgraded; try again"));
        }
        if let JoinTarget::Key(..) = target {
            let rate = Rate::new("limits.session.keys_missed", limits.keys_missed);
            session.allowances().misses.check(self.env.now, rate)?;
            let connection = self.links.get(key).ok_or_else(gone)?;
            return connection.tally.address().check(Pace::MissedKey, self.env.now);
        }
        let Some(spec) = target.spec() else { return Ok(()) };
        node.may_create(spec.room_type).or_else(|error| match target {
            // A room may be there.
            JoinTarget::Any(_) => Ok(()),
            _ => Err(error),
        })?;
        let rate = Rate::new("limits.session.rooms_created", limits.rooms_created);
        session.allowances().creations.check(self.env.now, rate)
    }

    /// The cluster has found the room of a join, or has not.
    pub(in crate::shard) fn sought(&mut self, seek: Seek, sought: Sought) {
        let Seek { connection: key, request, number, target, retries, mut ticket, .. } = seek;
        let is_here =
            self.sessions.get_mut(key).is_some_and(|session| session.remove(number).is_some());
        match sought {
            Sought::Here(granted) => {
                match is_here {
                    true => self.join_here(key, request, target, retries, ticket.take()),
                    false => give_back(ticket.take()),
                }
                if let (Some(key), Some(cluster)) = (granted, &self.env.node.cluster) {
                    cluster.settled(key);
                }
            }
            Sought::Elsewhere { addresses, reservation } => {
                give_back(ticket.take());
                if is_here {
                    self.note_creation(key, &target);
                    self.redirect(key, request, &addresses, reservation);
                }
            }
            Sought::Refused(error) => {
                give_back(ticket.take());
                if is_here {
                    self.note_miss(key, &target, error.code());
                    self.refuse_join(key, request, &error);
                }
            }
        }
        self.links.resumed.push(key);
    }

    /// Counts a room that was created at another node.
    fn note_creation(&mut self, key: ConnectionKey, target: &JoinTarget) {
        let JoinTarget::New(_) = target else { return };
        let limits = &self.env.node.config.limits.session;
        let rate = Rate::new("limits.session.rooms_created", limits.rooms_created);
        if let Some(session) = self.sessions.get_mut(key) {
            session.allowances_mut().creations.take(self.env.now, rate);
        }
        if let Some(connection) = self.links.get(key) {
            connection.tally.address().spend(Pace::Room, self.env.now);
        }
    }

    /// Counts a key that no room has.
    fn note_miss(&mut self, key: ConnectionKey, target: &JoinTarget, code: ErrorCode) {
        if !matches!(target, JoinTarget::Key(..)) || code != ErrorCode::RoomNotFound {
            return;
        }
        let limits = &self.env.node.config.limits.session;
        let rate = Rate::new("limits.session.keys_missed", limits.keys_missed);
        if let Some(session) = self.sessions.get_mut(key) {
            session.allowances_mut().misses.take(self.env.now, rate);
        }
        if let Some(connection) = self.links.get(key) {
            connection.tally.address().spend(Pace::MissedKey, self.env.now);
        }
    }

    /// Sends a client to another node.
    pub(in crate::shard) fn redirect(
        &mut self,
        key: ConnectionKey,
        request: RequestNumber,
        addresses: &Arc<[String]>,
        reservation: String,
    ) {
        if !self.links.get(key).is_some_and(|connection| connection.follows_redirects) {
            let text = format!("the room is at another node: {}", addresses.join(", "));
            return self.send_error(
                key,
                Some(request),
                None,
                &Error::new(ErrorCode::Elsewhere, text),
            );
        }
        self.env.counters.redirects += 1;
        let addresses = addresses.iter().map(|address| address.as_str().into()).collect();
        let reservation = reservation.into();
        let redirect = server::Redirect { request, addresses, reservation };
        self.send(key, &ServerMessage::Redirect(redirect));
    }
}
