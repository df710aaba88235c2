//! Tickets, as a node checks them.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ring::digest::{SHA256, digest};

use crate::claims::{Head, check_audience, check_time};
use crate::jwt::LEEWAY_S;
use crate::keys::Keys;
use crate::refused::{Refused, RefusedKind};
use crate::ticket_claims::{Place, TICKET_LIFE_MAX, Ticket, is_ticket};
use crate::used::{Mark, NotUsed, Used};

/// The maximum number of used tickets that are remembered, unless set.
pub const TICKETS_USED_MAX: usize = 1_000_000;

/// Accepts tickets: which keys verify them, and which were used. A copy shares what was used.
///
/// Used tickets are remembered until they expire. Past [`used_max`](Self::used_max), further
/// tickets are refused. A restart forgets them, an upgrade does not, and
/// other nodes don't know them.
#[derive(Clone, Debug)]
pub struct Tickets {
    keys: Keys,
    audience: Vec<String>,
    used: Arc<Mutex<Used>>,
    used_max: usize,
    leeway_s: u64,
}

/// The rights of a ticket's bearer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The room.
    pub place: Place,
    /// The user that it is for; `None` if anyone may use it.
    pub user: Option<String>,
    /// The display name in the room, if the ticket has one.
    pub name: Option<String>,
    /// The seat or role, if the ticket has one.
    pub seat: Option<String>,
    mark: Mark,
    expires: u64,
}

impl Tickets {
    /// Accepts tickets that one of these keys has signed.
    #[must_use]
    pub fn new(keys: Keys) -> Self {
        Self {
            keys,
            audience: Vec::new(),
            used: Arc::default(),
            used_max: TICKETS_USED_MAX,
            leeway_s: LEEWAY_S,
        }
    }

    /// Requires this audience (`aud`). Called again, accepts either. Nodes that share keys need
    /// different audiences: otherwise a ticket could be used once at each node.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.audience.push(audience.into());
        self
    }

    /// Sets how much the clocks of backend and node may differ: a ticket is accepted for so long
    /// after `exp`, and before `nbf`. Default: 30 s. Whole seconds count.
    #[must_use]
    pub fn leeway(mut self, leeway: Duration) -> Self {
        self.leeway_s = leeway.as_secs();
        self
    }

    /// Sets the maximum number of used tickets that are remembered. Default: [`TICKETS_USED_MAX`].
    #[must_use]
    pub fn used_max(mut self, used_max: usize) -> Self {
        self.used_max = used_max;
        self
    }

    /// Verifies a ticket at a time, in seconds since 1970, for a session that may belong to a user,
    /// and uses it.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn redeem(&self, ticket: &str, user: Option<&str>, now: u64) -> Result<Pass, Refused> {
        self.verify(ticket, user, now).map_err(Refused::of_ticket)
    }

    fn verify(&self, ticket: &str, user: Option<&str>, now: u64) -> Result<Pass, Refused> {
        let head = Head::read(ticket.as_bytes())?;
        if !is_ticket(&head) {
            return Err(Refused::malformed("this is not a ticket: it has another type (typ)"));
        }
        let claims = self.keys.verify(&head, ticket.as_bytes())?;
        let expires = check_time(&claims, now, self.leeway_s)?;
        let life_max = TICKET_LIFE_MAX.as_secs();
        if expires.saturating_sub(now) > life_max {
            let text = format!("TICKET_LIFE_MAX: the ticket is valid for more than {life_max} s");
            return Err(Refused::new(RefusedKind::Malformed, text));
        }
        check_audience(&claims, &self.audience, "ticket")?;
        let Ticket { place, user: owner, name, seat, nonce, .. } = Ticket::read(&claims, expires)?;
        if user.is_some() && owner.is_some() && owner.as_deref() != user {
            return Err(Refused::new(RefusedKind::Foreign, "the ticket is another user's"));
        }
        let mut mark = Mark::default();
        mark.copy_from_slice(&digest(&SHA256, nonce.as_bytes()).as_ref()[..16]);
        // As long as it is accepted.
        let expires = expires.saturating_add(self.leeway_s);
        let taken = self.used().take(mark, expires, now, self.used_max);
        match taken {
            Ok(()) => Ok(Pass { place, user: owner, name, seat, mark, expires }),
            Err(NotUsed::Again) => {
                Err(Refused::new(RefusedKind::Used, "the ticket was used already"))
            }
            Err(NotUsed::Full) => {
                let text =
                    format!("used_max: {} used tickets have not expired; try again", self.used_max);
                Err(Refused::new(RefusedKind::Full, text))
            }
        }
    }

    /// The ticket can be used again: the room could not be entered.
    pub fn give_back(&self, pass: &Pass) {
        self.used().give_back(pass.mark, pass.expires);
    }

    /// The tickets that were used and may not have expired, as bytes for [`restore`](Self::restore).
    #[must_use]
    pub fn used_so_far(&self) -> Vec<u8> {
        self.used().to_bytes()
    }

    /// Notes tickets that were used elsewhere, such as in the process before this one: what
    /// [`used_so_far`](Self::used_so_far) returned there. What can't be read is passed over.
    pub fn restore(&self, used: &[u8]) {
        self.used().add_bytes(used);
    }

    fn used(&self) -> std::sync::MutexGuard<'_, Used> {
        // Nothing in there can panic half-way through a change.
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
