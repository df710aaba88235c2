//! The limits of a node, and how near each is.

use std::sync::atomic::Ordering;

use super::operator::Operator;
use crate::config::{Setting, settings};
use crate::mailbox::Mailbox;
use crate::stats::ShardStats;

/// A limit of a node: a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The setting's name.
    pub name: &'static str,
    /// The setting's value, in its unit.
    pub max: u64,
    /// The present amount, of the whole node or of its fullest shard; `None` if the limit is one of
    /// each client or address, of which the node has no sum.
    pub now: Option<u64>,
    /// How often it was reached since the node's start: the counter of this name, if there is one.
    pub reached: Option<(&'static str, u64)>,
}

/// Limits and the counters of what they have refused, closed or forgotten.
const REACHED: [(&str, &str); 25] = [
    ("connections_max", "connections_refused"),
    ("connections_per_address_max", "connections_refused_by_address"),
    ("handshakes_max", "handshakes_refused"),
    ("sessions_per_address_per_minute_max", "sessions_refused_by_address"),
    ("resumes_per_minute_max", "resumes_refused"),
    ("resumes_per_address_per_minute_max", "resumes_refused_by_address"),
    ("sessions_away_max", "sessions_away_refused"),
    ("resume_bytes_max", "messages_lost"),
    ("authentications_max", "authentications_refused"),
    ("hello_bytes_max", "hellos_too_large"),
    ("messages_per_second_max", "messages_too_fast"),
    ("rate_multiple_max", "closed_too_fast"),
    ("outbox_bytes_max", "closed_too_slow"),
    ("peer_bytes_max", "closed_over_budget"),
    ("rooms_max", "rooms_refused"),
    ("lateness_max_ms", "joins_refused_late"),
    ("busy_max_percent", "rooms_refused_busy"),
    ("rooms_per_session_max", "joins_refused"),
    ("rooms_created_per_minute_max", "creations_refused"),
    ("rooms_created_per_address_per_minute_max", "rooms_refused_by_address"),
    ("joins_per_address_per_minute_max", "joins_refused_by_address"),
    ("keys_missed_per_minute_max", "keys_refused"),
    ("keys_missed_per_address_per_minute_max", "keys_refused_by_address"),
    ("channel_history_bytes_max", "history_evicted"),
    ("http_requests_per_address_max", "http_too_many"),
];

impl Operator<'_> {
    /// The limits of which something is known beside the setting: what there is now, or how often
    /// they were reached. In the order of the settings.
    #[must_use]
    pub fn limits(&self) -> Vec<Limit> {
        let total = self.node.stats().total();
        let counter = |wanted| total.counters().find(|(name, _)| *name == wanted);
        let now = self.now(&total);
        let limit = |setting: &Setting| {
            let name = setting.name;
            let now = now.iter().find(|(of, _)| *of == name).map(|(_, value)| *value);
            let reached = REACHED.iter().find(|(of, _)| *of == name);
            let reached = reached.and_then(|(_, name)| counter(*name));
            let max = self.config().get(name)?.parse().ok()?;
            (now.is_some() || reached.is_some()).then_some(Limit { name, max, now, reached })
        };
        settings().iter().filter_map(limit).collect()
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
            ("connections_max", shared.connections.load(Ordering::Relaxed) as u64),
            ("handshakes_max", handshakes as u64),
            ("peer_bytes_max", peer_bytes as u64),
            ("addresses_max", addresses as u64),
            ("authentications_max", authentications),
            ("http_requests_max", node.requests.load() as u64),
            ("sessions_away_max", total.sessions_away),
            ("rooms_max", total.rooms),
            ("lateness_max_ms", node.directory.lateness().as_millis() as u64),
            ("busy_max_percent", node.directory.busy_percent()),
            ("channels_max", total.channels),
            ("channel_history_bytes_max", node.channel_totals.history_bytes() as u64),
            ("devices_max", total.devices),
            ("asks_max", node.asks.len() as u64),
            ("mailbox_max", fullest.unwrap_or_default() as u64),
            ("tasks_max", tasks),
            ("compute_queue_max", computations),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::REACHED;
    use crate::config::settings;
    use crate::stats::ShardStats;

    #[test]
    fn each_limit_that_is_counted_is_a_setting_with_a_counter() {
        for (limit, counter) in REACHED {
            assert!(settings().iter().any(|setting| setting.name == limit), "{limit}");
            let mut counters = ShardStats::default().counters();
            assert!(counters.any(|(name, _)| name == counter), "{counter}");
        }
    }
}
