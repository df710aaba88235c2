//! Sessions whose connections are lost, and that are resumed.
//!
//! The place of a connection in its shard is where its session lives. A session that loses the
//! connection stays there without one, and members of rooms go on naming it. When its client comes
//! back, the transport of the new connection moves to that place.

use std::sync::Arc;
use std::time::Duration;

use playfield_session::{NotResumed, Token};
use playfield_wire::ErrorCode;
use playfield_wire::server::Resumed;

use crate::addresses::Pace;
use crate::auth::Identity;
use crate::moved::Whereabouts;
use crate::shard::allowance::Rate;
use crate::shard::connection::transport::Input;
use crate::shard::connection::{Connection, Phase, SocketChange};
use crate::shard::keys::{ConnectionKey, Seat};
use crate::shard::mail::join::{Departure, Purpose};
use crate::shard::mail::member::ToMember;
use crate::shard::mail::resume::{Opening, ResumeRequest, Wanted};
use crate::shard::outbound::Effect;
use crate::shard::session::outlet::Outlet;
use crate::shard::session::resumption::{Presence, Resuming};
use crate::shard::work::{Line, Work};

/// The longest time that a client waits for its session while that is on the way to another shard.
const ON_ITS_WAY_MAX: Duration = Duration::from_millis(200);

impl Outlet<'_> {
    /// A client with a token of this node wants its session back.
    pub(super) fn request_resume(
        &mut self,
        key: ConnectionKey,
        wanted: Wanted,
        mut opening: Opening,
    ) {
        opening.greeted.instead_of = Some(wanted.token.session);
        let (at, order) = (self.env.now, self.env.node.away.next_place());
        self.send_resume(key, Box::new(ResumeRequest { wanted, opening, at, order }));
    }

    /// Sends a connection to the shard of the session that it wants.
    pub(in crate::shard) fn send_resume(
        &mut self,
        key: ConnectionKey,
        request: Box<ResumeRequest>,
    ) {
        let Token { session, shard: home, .. } = request.wanted.token;
        let target = self.env.node.away.shard_of(session, home);
        if self.links.get(key).is_none() {
            return;
        }
        let purpose = Purpose::Resume(request);
        self.depart(key, Departure { target, purpose });
        if target == self.env.shard {
            self.links.line_up(key, Line::Resumes, Work::Resume(key));
        } else {
            self.sessions.departing.push_back(key);
        }
    }

    /// Sends it there later, since that is not possible now.
    pub(in crate::shard) fn retry_resume(
        &mut self,
        key: ConnectionKey,
        request: Box<ResumeRequest>,
    ) {
        if self.links.get(key).is_none() {
            return;
        }
        let (target, purpose) = (self.env.shard, Purpose::Resume(request));
        self.depart(key, Departure { target, purpose });
        self.sessions.to_resume.push(key);
    }

    /// Lines up clients that could not have their sessions so far.
    pub(in crate::shard) fn retry_resumes(&mut self) {
        for key in std::mem::take(&mut self.sessions.to_resume) {
            self.links.line_up(key, Line::Resumes, Work::Resume(key));
        }
    }

    /// Gives a client that came back its session, or a new one. What it missed comes later, in a
    /// turn of its own.
    pub(in crate::shard) fn resume_for(&mut self, key: ConnectionKey) {
        let began = self.env.stopwatch.read();
        let Some(departure) = self.take_departure(key) else { return };
        let Departure { purpose: Purpose::Resume(request), .. } = departure else { return };
        let Token { session, shard: home, .. } = request.wanted.token;
        let here = self.env.shard;
        if self.env.node.away.shard_of(session, home) != here {
            self.send_resume(key, request);
        } else if let Some(place) = self.sessions.find(session) {
            self.resume(key, place, *request);
            self.charge_since(place, began);
        } else if home != here && self.env.now < request.at + ON_ITS_WAY_MAX {
            self.retry_resume(key, request);
        } else {
            self.resume_elsewhere(key, request);
        }
    }

    /// Sends a client to the node to which its session has moved, once it is there. Opens a new one
    /// if it has not moved.
    fn resume_elsewhere(&mut self, key: ConnectionKey, request: Box<ResumeRequest>) {
        let session = request.wanted.token.session;
        match self.env.node.moved.place_of(session) {
            Some(Whereabouts::OnItsWay) => self.retry_resume(key, request),
            Some(Whereabouts::At(slot)) => self.resume_at(key, *request, slot),
            None if self.follows_redirects(key)
                && self.env.node.seeks_session(session, self.env.shard, key) =>
            {
                // The node that it has left may be gone, so the others are asked.
                let (target, purpose) = (self.env.shard, Purpose::Resume(request));
                self.depart(key, Departure { target, purpose });
            }
            None => self.open_instead(key, request.opening),
        }
    }

    /// All nodes have said whether they have the session that a client wants.
    pub(in crate::shard) fn session_sought(
        &mut self,
        key: ConnectionKey,
        session: u64,
        slot: Option<u16>,
    ) {
        let Some(departure) = self.take_departure(key) else { return };
        match departure.purpose {
            Purpose::Resume(request) if request.wanted.token.session == session => match slot {
                Some(slot) => self.resume_at(key, *request, slot),
                None => self.open_instead(key, request.opening),
            },
            purpose => self.depart(key, Departure { target: departure.target, purpose }),
        }
    }

    fn resume_at(&mut self, key: ConnectionKey, request: ResumeRequest, slot: u16) {
        match self.env.node.urls_of(slot).filter(|_| self.follows_redirects(key)) {
            Some(addresses) => self.redirect_hello(key, &addresses),
            None => self.open_instead(key, request.opening),
        }
    }

    fn follows_redirects(&self, key: ConnectionKey) -> bool {
        self.links.get(key).is_some_and(|connection| connection.follows_redirects)
    }

    /// Opens a new session for a client whose session is over.
    fn open_instead(&mut self, key: ConnectionKey, opening: Opening) {
        let over = opening.greeted.instead_of.and_then(|of| self.env.node.users.why_over(of));
        if let Some(end) = over {
            return self.refuse_hello(key, &end.error);
        }
        match self.links.take_pace(self.env, key, Pace::Session) {
            Ok(()) => self.open_session(key, opening),
            Err(error) => self.refuse_hello(key, &error),
        }
        self.links.resumed.push(key);
    }

    /// Gives the session at `key` the transport of the connection at `from`.
    fn resume(&mut self, from: ConnectionKey, key: ConnectionKey, request: ResumeRequest) {
        let ResumeRequest { wanted: Wanted { token, received, copies }, opening, at: _, order } =
            request;
        let Some(connection) = self.links.get_mut(key) else { return };
        let address = Arc::clone(connection.tally.address());
        let format = connection.dialect.format;
        let is_away = connection.is_away();
        let away = self.env.now.saturating_sub(connection.heard.time());
        let Some(session) = self.sessions.get_mut(key) else { return };
        let Identity { user, tickets_only, .. } = &opening.identity;
        let is_same_user =
            session.user() == user.as_deref() && session.is_tickets_only() == *tickets_only;
        let Some(resumption) = session.resumption.as_mut() else { return };
        if !resumption.takes(token) {
            return self.open_instead(from, opening);
        }
        if !is_same_user {
            let text = "the session belongs to another user";
            return self.fail(from, ErrorCode::Unauthorized, text);
        }
        if format != opening.format {
            let text = format!("the session speaks {format}: resume it in the same format");
            return self.fail(from, ErrorCode::WrongFormat, &text);
        }
        if order < resumption.resumed_by {
            // It waited on its way to this shard. The client has given it up, and come back by
            // another connection since.
            let text = "a later connection has resumed the session";
            return self.goodbye(from, ErrorCode::TakenOver, text, None);
        }
        let rate = Rate::new("tuning.resumes", self.env.node.config.tuning.resumes);
        let mut resumes = session.allowances().resumes;
        if let Err(error) = resumes.check(self.env.now, rate) {
            self.env.counters.resumes_refused += 1;
            return self.refuse_hello(from, &error);
        }
        let Some(resumption) = session.resumption.as_mut() else { return };
        let resumed = resumption.log.resume(received);
        let gone = resumption.log.gone();
        let lost = match resumed {
            Ok(lost) if !session.has_lost_schema(received, gone) => lost,
            Err(NotResumed::NeverSent(error)) => {
                return self.fail(from, ErrorCode::BadMessage, &error.to_string());
            }
            Ok(_) | Err(NotResumed::Forgotten) => {
                if !is_away {
                    self.close_old_transport(key);
                    // It was not counted as away.
                    if let Some(resumption) = self.sessions.resumption(key) {
                        resumption.presence = Presence::Here;
                    }
                }
                self.end_away(key);
                return self.open_instead(from, opening);
            }
        };
        let messages_lost = lost.iter().map(|lost| lost.messages).sum::<u64>();
        if is_away {
            self.end_being_away(&address);
        } else {
            self.close_old_transport(key);
        }

        self.links.move_transport(from, key);
        self.links.remove(from);
        self.links.socket_changes.push_back(SocketChange::Moved { from, to: key });
        let Some(connection) = self.links.get_mut(key) else { return };
        connection.phase = Phase::Open;
        connection.heard = self.env.now.into();
        connection.pinged = false;
        let Some(session) = self.sessions.get_mut(key) else { return };
        let since = self.env.now.saturating_sub(away.min(self.env.node.config.timeouts.reconnect));
        session.credit(since, self.env.now);
        session.has_handled(received);
        resumes.take(self.env.now, rate);
        session.allowances_mut().resumes = resumes;
        let left =
            copies.iter().map(|copy| copy.room).filter(|room| session.has_left(*room)).collect();
        let number = session.number;
        let Some(resumption) = session.resumption.as_mut() else { return };
        resumption.resumed(token);
        resumption.resumed_by = order;
        // What the client has received was acknowledged; the rest is sent again.
        let gone = resumption.log.gone();
        for room in &mut session.rooms {
            if (received + 1..=gone).contains(&room.joined_at) {
                // Its `joined` is among what is lost. The client counts that as received from now
                // on, so this must outlast a connection that is lost before the session goes live.
                room.joined_at = 0;
            }
        }
        resumption.presence = Presence::Resuming(Box::new(Resuming {
            received,
            began: gone + 1,
            sent: gone,
            copies,
            up_to_date: Vec::new(),
            asked: None,
            left,
        }));
        let resumed = Resumed { received: resumption.received.acknowledge(), lost };
        let token = resumption.signed_token(number, &self.env.node);
        self.outbound.effects.push_back(Effect::Resumed(key));
        self.env.counters.sessions_resumed += 1;
        self.env.counters.messages_lost += messages_lost;
        self.welcome(key, number, token, Some(resumed));
        self.links.look_at(key, self.env.now);
        let Some(connection) = self.links.get(key) else { return };
        let address = connection.tally.address().name();
        for seat in self.seats(key) {
            self.tell(seat, ToMember::Resumed { away, address });
        }
        self.go_on_resuming(key);
        self.links.resumed.push(key);
    }

    /// The seats of a session.
    pub(in crate::shard) fn seats(&mut self, key: ConnectionKey) -> Vec<Seat> {
        let session = self.sessions.get_mut(key);
        session.map_or(Vec::new(), |session| {
            session.rooms.iter().filter_map(|room| room.seat).collect()
        })
    }

    /// The client has come back while its old connection seemed open: that one moves to its own
    /// place, and is closed.
    fn close_old_transport(&mut self, key: ConnectionKey) {
        let old = self.part_from_transport(key);
        self.stay_away(key);
        let text = "another connection has resumed the session";
        self.goodbye(old, ErrorCode::TakenOver, text, None);
    }

    /// Moves the transport of a session to a place of its own.
    fn part_from_transport(&mut self, key: ConnectionKey) -> ConnectionKey {
        let connections = &mut self.links;
        let Some(connection) = connections.get(key) else { return key };
        let mut old = Connection::new(self.env.now, Input::InUse, connection.tally.of_nobody());
        old.dialect = connection.dialect;
        let old = connections.insert(old);
        connections.move_transport(key, old);
        self.links.socket_changes.push_back(SocketChange::Moved { from: key, to: old });
        old
    }

    /// The transport of a connection is lost; its socket is dropped. Whether its session is kept.
    pub(in crate::shard) fn lose(&mut self, key: ConnectionKey) -> bool {
        if self.links.get(key).is_some_and(Connection::is_away) {
            // It was lost before, and the socket is about to be dropped.
            return true;
        }
        if !self.may_stay_away(key) {
            return false;
        }
        self.links.socket_changes.push_back(SocketChange::Dropped(key));
        let began = self.env.stopwatch.read();
        self.stay_away(key);
        self.expire_away(key);
        self.charge_since(key, began);
        true
    }

    /// The client has closed the transport in an orderly way, with this code, but without ending
    /// its session. Whether the session is kept.
    pub(in crate::shard) fn lose_orderly(
        &mut self,
        key: ConnectionKey,
        close: (u16, &str),
    ) -> bool {
        if !self.may_stay_away(key) {
            return false;
        }
        let began = self.env.stopwatch.read();
        let old = self.part_from_transport(key);
        self.close(old, Some(close));
        self.stay_away(key);
        self.expire_away(key);
        self.charge_since(key, began);
        true
    }
}
