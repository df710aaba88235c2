//! The knowledge of a node that belongs to none of its rooms and sessions: how much of their rates
//! addresses have used, and which tickets were used.

use std::time::Duration;

use playfield_state::{Bytes, Data, Format};

use crate::addresses::AddressRates;
use crate::node::Node;

#[derive(Data, Debug, Default)]
pub(super) struct Known {
    rates: Vec<AddressRates>,
    /// The used tickets, in the form of the [checker](crate::TicketChecker).
    tickets: Bytes,
}

impl Known {
    /// The knowledge of this node now, as bytes.
    #[cfg(target_os = "linux")]
    pub(super) fn of(node: &Node, now: Duration) -> Vec<u8> {
        let tickets = node.tickets.as_ref().map(|checker| checker.used());
        let rates = node.addresses.rates(now);
        let mut out = Vec::new();
        Self { rates, tickets: Bytes(tickets.unwrap_or_default()) }.encode(&mut out);
        out
    }

    /// Adds what was [written](Self::of) to what a node knows.
    ///
    /// # Errors
    /// If the bytes are something else.
    pub(super) fn restore(bytes: &[u8], node: &Node, now: Duration) -> Result<(), String> {
        let known = Self::read(Format::Packed, bytes)
            .map_err(|error| format!("what the node knows can't be read: {error}"))?;
        for rates in known.rates {
            node.addresses.restore(&rates, now);
        }
        if let Some(checker) = &node.tickets {
            checker.restore(&known.tickets.0);
        }
        Ok(())
    }
}
