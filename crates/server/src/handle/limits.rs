//! The limits of a node, and how near each is.

use std::sync::atomic::Ordering;

use super::operator::Operator;
use crate::config::limit_keys;
use crate::mailbox::Mailbox;
use crate::stats::ShardStats;

/// A limit of a node: a setting, a part of one, or a field of [`Tuning`](crate::config::Tuning).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Its name, such as `limits.connections.total`.
    pub name: &'static str,
    /// Its value: a number, that of a rate, or a time in milliseconds.
    pub max: u64,
    /// The present amount, of the whole node or of its fullest shard; `None` if the limit is one of
    /// each client or address, of which the node has no sum.
    pub now: Option<u64>,
    /// The number of times it was reached since the node's start: the counter of this name, if
    /// there is one.
    pub reached: Option<(&'static str, u64)>,
}

/// Limits and the counters of what they have refused, closed or forgotten.
const REACHED: [(&str, &str); 25] = [
    ("limits.connections.total", "connections_refused"),
    ("limits.connections.per_address", "connections_refused_by_address"),
    ("limits.handshakes.total", "handshakes_refused"),
    ("limits.address.sessions", "sessions_refused_by_address"),
    ("tuning.resumes", "resumes_refused"),
    ("limits.address.resumes", "resumes_refused_by_address"),
    ("limits.sessions_away.total", "sessions_away_refused"),
    ("limits.session.resume_bytes", "messages_lost"),
    ("limits.queues.authentications", "authentications_refused"),
    ("tuning.hello_bytes", "hellos_too_large"),
    ("limits.session.messages", "messages_too_fast"),
    ("tuning.rate_multiple", "closed_too_fast"),
    ("limits.session.outbox_bytes.max", "closed_too_slow"),
    ("limits.memory.total", "closed_over_budget"),
    ("limits.rooms", "rooms_refused"),
    ("rooms.lateness", "joins_refused_late"),
    ("rooms.busy_percent", "rooms_refused_busy"),
    ("limits.session.rooms", "joins_refused"),
    ("limits.session.rooms_created", "creations_refused"),
    ("limits.address.rooms_created", "rooms_refused_by_address"),
    ("limits.address.joins", "joins_refused_by_address"),
    ("limits.session.keys_missed", "keys_refused"),
    ("limits.address.keys_missed", "keys_refused_by_address"),
    ("limits.history_bytes.total", "history_evicted"),
    ("http.requests.per_address", "http_too_many"),
];

impl Operator<'_> {
    /// The limits of which something is known beside the setting: what there is now, or how often
    /// they were reached. In the order of the settings.
    #[must_use]
    pub fn limits(&self) -> Vec<Limit> {
        let total = self.node.stats().total();
        let counter = |wanted| total.counters().find(|(name, _)| *name == wanted);
        let now = self.now(&total);
        let limit = |name: &'static str| {
            let now = now.iter().find(|(of, _)| *of == name).map(|(_, value)| *value);
            let reached = REACHED.iter().find(|(of, _)| *of == name);
            let reached = reached.and_then(|(_, name)| counter(*name));
            let max = match name {
                "limits.memory.total" => self.node.node.addresses.memory_max() as u64,
                _ => self.config().limit(name)?,
            };
            (now.is_some() || reached.is_some()).then_some(Limit { name, max, now, reached })
        };
        limit_keys().filter_map(limit).collect()
    }

    /// The present amounts of what is limited for the whole node.
    fn now(&self, total: &ShardStats) -> [(&'static str, u64); 17] {
        let (node, shared) = (&self.node.node, &self.node.shared);
        let (handshakes, peer_bytes, addresses) = node.addresses.load();
        let fullest = shared.mailboxes.iter().map(Mailbox::len).max();
        let [tasks, computations, authentications] =
            [&shared.work.tasks, &shared.work.computations, &shared.work.authentications]
                .map(|count| count.load(Ordering::Relaxed) as u64);
        [
            ("limits.connections.total", shared.connections.load(Ordering::Relaxed) as u64),
            ("limits.handshakes.total", handshakes as u64),
            ("limits.memory.total", peer_bytes as u64),
            ("tuning.addresses", addresses as u64),
            ("limits.queues.authentications", authentications),
            ("http.requests.total", node.requests.load() as u64),
            ("limits.sessions_away.total", total.sessions_away),
            ("limits.rooms", total.rooms),
            ("rooms.lateness", node.directory.lateness().as_millis() as u64),
            ("rooms.busy_percent", node.directory.busy_percent()),
            ("limits.channels.total", total.channels),
            ("limits.history_bytes.total", node.channel_totals.history_bytes() as u64),
            ("limits.devices", total.devices),
            ("limits.queues.asks", node.asks.len() as u64),
            ("limits.queues.mail", fullest.unwrap_or_default() as u64),
            ("limits.queues.tasks", tasks),
            ("limits.queues.computations", computations),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::REACHED;
    use crate::config::limit_keys;
    use crate::stats::ShardStats;

    #[test]
    fn each_limit_that_is_counted_can_be_set_and_has_a_counter() {
        for (limit, counter) in REACHED {
            assert!(limit_keys().any(|key| key == limit), "{limit}");
            let mut counters = ShardStats::default().counters();
            assert!(counters.any(|(name, _)| name == counter), "{counter}");
        }
    }
}
