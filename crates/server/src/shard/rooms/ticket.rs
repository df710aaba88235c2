//! Joining with a ticket.

use playfield_room::Error;
use playfield_wire::{ErrorCode, RequestNumber};

use crate::auth::check_user;
use crate::shard::Shard;
use crate::shard::keys::ConnectionKey;
use crate::shard::rooms::join::JoinTarget;
use crate::shard::session::allowance::Rate;
use crate::shard::session::messages::unknown_type;
use crate::tickets::{TicketPass, TicketRoom};

impl Shard {
    /// Joins the room that a ticket names.
    pub(in crate::shard) fn join_by_ticket(
        &mut self,
        key: ConnectionKey,
        request: RequestNumber,
        ticket: &str,
    ) {
        match self.redeem(key, ticket) {
            Ok((target, pass)) => self.join(key, request, target, Some(Box::new(pass))),
            Err(error) => self.refuse_join(key, request, &error),
        }
    }

    fn redeem(
        &mut self,
        key: ConnectionKey,
        ticket: &str,
    ) -> Result<(JoinTarget, TicketPass), Error> {
        let node = &self.delivery.node;
        let bad = |text: &str| Error::new(ErrorCode::BadTicket, text);
        let checker = node.tickets.as_ref().ok_or_else(|| bad("this node accepts no tickets"))?;
        let gone = || Error::new(ErrorCode::Internal, "the session ended");
        let session = self.delivery.connections.session_mut(key).ok_or_else(gone)?;
        // Verifying costs more than most requests.
        let per_minute = node.config.keys_missed_per_minute_max;
        let rate = Rate::per_minute("keys_missed_per_minute_max", per_minute);
        session.allowances().misses.check(self.now, rate)?;
        let redeem = || checker.redeem(ticket, session.user());
        let failed = || Err(Error::new(ErrorCode::Internal, "the check of tickets failed"));
        let redeemed = crate::panics::guard("the check of tickets", redeem).unwrap_or_else(failed);
        let pass = match redeemed {
            Ok(pass) => pass,
            Err(error) => {
                session.allowances_mut().misses.take(self.now, rate);
                return Err(error);
            }
        };
        if let Err(refused) = pass.user.as_deref().map_or(Ok(()), check_user) {
            session.allowances_mut().misses.take(self.now, rate);
            (pass.give_back)();
            return Err(bad(refused.text()));
        }
        if session.is_tickets_only() && pass.user.is_none() {
            session.allowances_mut().misses.take(self.now, rate);
            (pass.give_back)();
            return Err(bad("without a token, only a ticket that names a user (sub) is accepted"));
        }
        let target = match &pass.room {
            TicketRoom::Id(id) => JoinTarget::Room(id.clone()),
            TicketRoom::Key { room_type, key } => match node.room_type(room_type) {
                Some(room_type) => JoinTarget::Key(room_type, key.clone()),
                None => {
                    let error = unknown_type(room_type);
                    (pass.give_back)();
                    return Err(error);
                }
            },
        };
        self.join_users(key, pass.user.as_deref());
        Ok((target, pass))
    }
}
