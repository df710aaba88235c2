//! Identities of clients, as others have signed them: JSON Web Tokens (RFC 7519), the keys that
//! verify them, and tickets, with which a backend admits a player to a room.
//!
//! Nothing here knows rooms or sessions. A token, keys and the time go in; an identity or a
//! [refusal](Refused) comes out. Only [`Keys`] may have a thread, which re-reads a file or a URL.

mod claims;
mod jwt;
mod key_set;
mod keys;
mod provider;
mod refresh;
mod refused;
mod signer;
mod ticket;
mod ticket_claims;
#[cfg(feature = "url")]
mod url;
mod used;

pub use jwt::{Jwt, USER_BYTES_MAX, Verified};
pub use key_set::{KEYS_MAX, KeyError, SECRET_BYTES_MIN};
pub use keys::{KEYS_BYTES_MAX, Keys, Pace};
pub use refresh::Refreshed;
pub use refused::{Refused, RefusedKind, TOKEN_BYTES_MAX};
pub use signer::Signer;
pub use ticket::{Pass, TICKETS_USED_MAX, Tickets};
pub use ticket_claims::{Place, SEAT_BYTES_MAX, TICKET_LIFE_MAX, Ticket};
