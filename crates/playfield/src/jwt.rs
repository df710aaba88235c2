//! Sessions by JSON Web Tokens, and rooms by tickets.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use playfield_identity::{Jwt, Place, Refused, Tickets, Verified};
use playfield_room::{Claims, Error, visible};
use playfield_server::{
    Authenticator, Decision, Guests, Identity, TicketChecker, TicketPass, TicketRoom,
};
use playfield_wire::ErrorCode;
use playfield_wire::client::Hello;
use playfield_wire::excerpt;

/// Opens sessions for clients with a valid token.
pub(crate) struct JwtAuthenticator {
    pub(crate) jwt: Arc<Jwt>,
    pub(crate) name_bytes_max: usize,
    /// Clients without a token may join by a ticket.
    pub(crate) or_ticket: bool,
}

impl Authenticator for JwtAuthenticator {
    fn authenticate(&self, hello: &Hello<'_>) -> Decision {
        let name_bytes_max = self.name_bytes_max;
        if self.or_ticket && hello.token.is_empty() {
            return Guests { name_bytes_max }.admit(&hello.name).map(ticket_holder).into();
        }
        let refused = match self.jwt.verify(&hello.token, now()) {
            Ok(verified) => return Ok(identity(verified, name_bytes_max)).into(),
            Err(refused) => refused,
        };
        let Some(refreshed) = self.jwt.refresh_after(&refused) else {
            return Err(error(&refused)).into();
        };
        let (jwt, token) = (Arc::clone(&self.jwt), hello.token.clone().into_owned());
        Decision::later(async move {
            refreshed.await;
            let verified = jwt.verify(&token, now()).map_err(|refused| error(&refused))?;
            Ok(identity(verified, name_bytes_max))
        })
    }
}

/// Admits clients with a valid ticket.
pub(crate) struct SignedTickets {
    pub(crate) tickets: Tickets,
    pub(crate) name_bytes_max: usize,
}

impl TicketChecker for SignedTickets {
    fn redeem(&self, ticket: &str, user: Option<&str>) -> Result<TicketPass, Error> {
        let pass = self.tickets.redeem(ticket, user, now()).map_err(|refused| {
            // `unauthorized` would end the connection.
            let code = match refused.code() {
                ErrorCode::Unauthorized => ErrorCode::BadTicket,
                other => other,
            };
            Error::new(code, refused.to_string())
        })?;
        let tickets = self.tickets.clone();
        Ok(TicketPass {
            room: match pass.place.clone() {
                Place::Id(id) => TicketRoom::Id(id),
                Place::Key { room_type, key } => TicketRoom::Key { room_type, key },
            },
            user: pass.user.clone(),
            name: pass.name.clone().map(|name| shown(name, self.name_bytes_max)),
            seat: pass.seat.clone(),
            give_back: Box::new(move || tickets.give_back(&pass)),
        })
    }

    fn used(&self) -> Vec<u8> {
        self.tickets.used_so_far()
    }

    fn restore(&self, used: &[u8]) {
        self.tickets.restore(used);
    }
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

fn error(refused: &Refused) -> Error {
    Error::new(refused.code(), refused.to_string())
}

fn ticket_holder(guest: Identity) -> Identity {
    Identity { tickets_only: true, ..guest }
}

fn identity(verified: Verified, name_bytes_max: usize) -> Identity {
    let Verified { user, name, claims } = verified;
    Identity {
        name: shown(name, name_bytes_max),
        user: Some(user),
        claims: Claims::new(claims),
        tickets_only: false,
    }
}

/// A name that can be displayed: users choose theirs where they log in, by other rules. If it has
/// to be changed, that is logged.
pub(crate) fn shown(name: String, bytes_max: usize) -> String {
    let shown = excerpt(visible(&name).trim(), bytes_max).trim_end().to_owned();
    if shown != name {
        let name = excerpt(&name, 256);
        log::info!(
            "the name {name:?} of a token or ticket is shown as {shown:?}: limits.name_bytes.player"
        );
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn names_of_tokens_are_made_displayable() {
        assert_eq!(shown(" A\u{202E}nn \u{7}".into(), 64), "Ann");
        assert_eq!(shown("Zo\u{eb} x".into(), 4), "Zo\u{eb}");
        assert_eq!(shown("Zo\u{eb}".into(), 3), "Zo");
    }
}
