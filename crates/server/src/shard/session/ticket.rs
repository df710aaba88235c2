//! Joining with a ticket.

use std::time::Duration;

use playfield_room::Error;
use playfield_wire::{ErrorCode, RequestNumber};

use crate::auth::{Decided, Decision, Identity, authenticator_failed, check_user};
use crate::background::Underway;
use crate::config::Config;
use crate::panics::guard;
use crate::shard::allowance::Rate;
use crate::shard::keys::ConnectionKey;
use crate::shard::mail::join::JoinTarget;
use crate::shard::session::messages::unknown_type;
use crate::shard::session::outlet::Outlet;
use crate::tickets::{TicketPass, TicketRoom};

/// A verified ticket, as long as `Server::admit` decides about its user.
pub(crate) struct PendingTicket {
    pub(in crate::shard) request: RequestNumber,
    pass: TicketPass,
    /// The [moment](crate::users::Users::moment) at which it was read.
    moment: u64,
    /// When the decision must have come.
    by: Duration,
    underway: Underway,
}

impl PendingTicket {
    pub(in crate::shard) fn give_back(self) {
        (self.pass.give_back)();
    }
}

impl Outlet<'_> {
    /// Joins the room that a ticket names, once its user is admitted.
    pub(in crate::shard) fn join_by_ticket(
        &mut self,
        key: ConnectionKey,
        request: RequestNumber,
        ticket: &str,
    ) {
        let moment = self.env.node.users.moment();
        let pass = match self.redeem(key, ticket) {
            Ok(pass) => pass,
            Err(error) => return self.refuse_join(key, request, &error),
        };
        let by = self.env.now + self.env.node.config.timeouts.hello;
        let mut pending =
            PendingTicket { request, pass, moment, by, underway: Underway::default() };
        let deciding = match self.admit_by_ticket(key, &pending.pass) {
            Decision::Now(decided) => return self.enter_by_ticket(key, pending, decided),
            Decision::Later(deciding) => deciding,
        };
        match self.outbound.background.decide(self.env.shard, key, deciding) {
            Ok(underway) => pending.underway = underway,
            Err(error) => return self.enter_by_ticket(key, pending, Err(error)),
        }
        // What the client sends after it is handled after it.
        let Some(connection) = self.links.get_mut(key) else { return };
        let Some(session) = self.sessions.get_mut(key) else { return };
        session.extras_mut().ticket = Some(Box::new(pending));
        connection.pause.ticket = true;
        self.links.look_at(key, by);
    }

    /// Verifies a ticket, and uses it.
    fn redeem(&mut self, key: ConnectionKey, ticket: &str) -> Result<TicketPass, Error> {
        let node = &self.env.node;
        let bad = |text: &str| Error::new(ErrorCode::BadTicket, text);
        let checker = node.tickets.as_ref().ok_or_else(|| bad("this node accepts no tickets"))?;
        let gone = || Error::new(ErrorCode::Internal, "the session ended");
        let session = self.sessions.get_mut(key).ok_or_else(gone)?;
        // Verifying costs more than most requests.
        let rate = misses(&node.config);
        session.allowances().misses.check(self.env.now, rate)?;
        let redeem = || checker.redeem(ticket, session.user());
        let failed = || Err(Error::new(ErrorCode::Internal, "the check of tickets failed"));
        let pass = match guard("the check of tickets", redeem).unwrap_or_else(failed) {
            Ok(pass) => pass,
            Err(error) => {
                session.allowances_mut().misses.take(self.env.now, rate);
                return Err(error);
            }
        };
        let refused = match pass.user.as_deref() {
            Some(user) => check_user(user).map_err(|error| bad(error.text())),
            None if session.is_tickets_only() => {
                Err(bad("without a token, only a ticket that names a user (sub) is accepted"))
            }
            None => Ok(()),
        };
        match refused {
            Ok(()) => Ok(pass),
            Err(error) => {
                session.allowances_mut().misses.take(self.env.now, rate);
                (pass.give_back)();
                Err(error)
            }
        }
    }

    /// Whether the node admits the user of a ticket. The session's own user was admitted already.
    fn admit_by_ticket(&mut self, key: ConnectionKey, pass: &TicketPass) -> Decision {
        let session = self.sessions.get_mut(key);
        let own = session.as_deref().and_then(|session| session.user());
        let user = pass.user.as_deref().filter(|user| own != Some(*user));
        let (Some(admit), Some(user)) = (&self.env.node.admit, user) else {
            return Ok(Identity::default()).into();
        };
        let name = pass.name.as_deref().or(session.as_deref().map(|session| session.name()));
        let mut identity = Identity::user(user, name.unwrap_or_default());
        identity.tickets_only = true;
        guard("the authenticator", || admit(identity))
            .unwrap_or_else(|| Err(authenticator_failed()).into())
    }

    /// The user of a ticket was decided about. The client may have waited for too long, and may
    /// have sent another ticket since, which this decision is not about.
    pub(in crate::shard) fn ticket_decided(
        &mut self,
        key: ConnectionKey,
        decision: u64,
        decided: Decided,
    ) {
        let Some(connection) = self.links.get_mut(key) else { return };
        let session = self.sessions.get_mut(key);
        let is_it = |pending: &mut Box<PendingTicket>| pending.underway.decision == decision;
        let Some(pending) = session.and_then(|session| session.extras_mut().ticket.take_if(is_it))
        else {
            return;
        };
        connection.pause.ticket = false;
        self.enter_by_ticket(key, *pending, decided);
    }

    /// Refuses a ticket whose user was not decided about in time.
    pub(in crate::shard) fn expire_ticket(&mut self, key: ConnectionKey) {
        let session = self.sessions.get_mut(key);
        let pending = session.and_then(|session| session.extras()?.ticket.as_deref());
        let Some((by, decision)) = pending.map(|of| (of.by, of.underway.decision)) else { return };
        if self.env.now < by {
            return self.links.look_by(key, by);
        }
        let limit = self.env.node.config.timeouts.hello;
        let text = format!("timeouts.hello: the ticket's user was not decided about in {limit:?}");
        self.ticket_decided(key, decision, Err(Error::new(ErrorCode::Timeout, text)));
        self.links.resumed.push(key);
    }

    fn enter_by_ticket(&mut self, key: ConnectionKey, pending: PendingTicket, decided: Decided) {
        let PendingTicket { request, pass, moment, .. } = pending;
        let rate = misses(&self.env.node.config);
        if let (Err(_), Some(session)) = (&decided, self.sessions.get_mut(key)) {
            session.allowances_mut().misses.take(self.env.now, rate);
        }
        let target = decided.and_then(|_| {
            let target = self.target_of(&pass.room)?;
            if let Some(user) = &pass.user {
                self.join_users(key, user, moment)?;
            }
            Ok(target)
        });
        match target {
            Ok(target) => self.join(key, request, target, Some(Box::new(pass))),
            Err(error) => {
                (pass.give_back)();
                self.refuse_join(key, request, &error);
            }
        }
    }

    fn target_of(&self, room: &TicketRoom) -> Result<JoinTarget, Error> {
        match room {
            TicketRoom::Id(id) => Ok(JoinTarget::Room(id.clone())),
            TicketRoom::Key { room_type, key } => {
                let number = self.env.node.room_type(room_type);
                let number = number.ok_or_else(|| unknown_type(room_type))?;
                Ok(JoinTarget::Key(number, key.clone()))
            }
        }
    }
}

/// Returns the rate at which tickets may be refused, and keys missed.
fn misses(config: &Config) -> Rate {
    Rate::new("limits.session.keys_missed", config.limits.session.keys_missed)
}
