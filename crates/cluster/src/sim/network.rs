//! The ways of messages: each keeps their order, and may be cut or slow.

use crate::random::Random;
use crate::sim::faults::SECOND;

/// A way of messages from or to a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the engine.
    ToEngine,
    /// From the engine.
    FromEngine,
    /// To the store.
    ToStore,
    /// From the store.
    FromStore,
    /// To clients.
    ToClients,
    /// From clients.
    FromClients,
    /// To other nodes.
    ToNodes,
    /// From other nodes.
    FromNodes,
}

const WAYS: [Way; 8] = [
    Way::ToEngine,
    Way::FromEngine,
    Way::ToStore,
    Way::FromStore,
    Way::ToClients,
    Way::FromClients,
    Way::ToNodes,
    Way::FromNodes,
];

impl Way {
    pub(super) fn random(random: &mut Random) -> Self {
        WAYS[random.below(WAYS.len() as u64) as usize]
    }

    fn back(self) -> Self {
        WAYS[self as usize ^ 1]
    }
}

/// The ways from and to one host.
#[derive(Debug, Default)]
pub(super) struct Network {
    links: [Link; WAYS.len()],
}

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    cut_until: u64,
    slow_until: u64,
    slow_by: u64,
    /// The arrival of the last message.
    last: u64,
}

impl Network {
    pub(super) fn cut(&mut self, way: Way, both: bool, until: u64) {
        let link = &mut self.links[way as usize];
        link.cut_until = link.cut_until.max(until);
        if both {
            self.cut(way.back(), false, until);
        }
    }

    pub(super) fn slow(&mut self, way: Way, by: u64, until: u64) {
        let link = &mut self.links[way as usize];
        (link.slow_until, link.slow_by) = (until, by);
    }

    /// Returns the time at which a message that is sent now arrives, unless it is lost.
    pub(super) fn arrival(&mut self, now: u64, way: Way, random: &mut Random) -> Option<u64> {
        let link = &mut self.links[way as usize];
        let bits = random.next();
        let mut at = now + 200 + bits % 1800;
        if now < link.slow_until {
            at += random.below(link.slow_by);
        }
        if now < link.cut_until {
            // Sent again by the transport when the way is back, unless it gives up before.
            if bits >> 32 & 1 == 0 || link.cut_until > now + 40 * SECOND {
                return None;
            }
            at += link.cut_until - now;
        }
        link.last = link.last.max(at);
        Some(link.last)
    }
}
