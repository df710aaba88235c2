//! Tickets into rooms, and a control that signs them.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use playfield::Server;
use playfield::identity::{KeyError, Keys, Signer, Ticket, Tickets};
use playfield::prelude::*;

use crate::control::Request;

/// Of signatures that prove nothing: everybody may ask for one.
const SECRET: &[u8] = b"the secret of the scenario server, which everybody knows";

/// The validity of tickets.
const VALID: Duration = Duration::from_secs(600);

/// Lets players in by tickets.
pub(crate) fn checked(server: Server) -> Server {
    match Keys::secret(SECRET) {
        Ok(keys) => server.tickets(Tickets::new(keys)),
        // Without a key, the node refuses tickets, and scenarios say so.
        Err(_) => server,
    }
}

/// `/ticket/TYPE/KEY/NAME`: a ticket into the room of this type that has this key, for a player of
/// this name.
pub(crate) fn sign(request: &Request) -> Result<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let of = |name| request.param(name).unwrap_or_default();
    let ticket = || {
        let expires = now.saturating_add(VALID).as_secs();
        let ticket = Ticket::by_key(of("type"), of("key"), expires)?.name(of("name"));
        Signer::secret(SECRET)?.ticket(&ticket)
    };
    ticket().map_err(|error: KeyError| Error::from(error.to_string()))
}
