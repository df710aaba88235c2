//! Sessions that wait for their clients to come back: how many there may be, and where those are that
//! changed their shard.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::config::Config;
use crate::memory::shrink_map;
use crate::network::Network;

/// What the shards of a node know together of sessions that may be resumed.
pub(crate) struct AwaySessions {
    count: AtomicUsize,
    count_max: usize,
    per_address_max: usize,
    by_address: Mutex<HashMap<Network, usize>>,
    /// The shard of each session that is not on the one that opened it.
    moved: Mutex<HashMap<u64, u16>>,
}

impl AwaySessions {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            count: AtomicUsize::new(0),
            count_max: config.sessions_away_max,
            per_address_max: config.sessions_away_per_address_max,
            by_address: Mutex::default(),
            moved: Mutex::default(),
        }
    }

    /// Counts a session whose connection was lost. Whether it may be kept.
    pub(crate) fn enter(&self, address: Network) -> bool {
        if self.count.fetch_add(1, Ordering::Relaxed) < self.count_max {
            let mut by_address = lock(&self.by_address);
            let here = by_address.entry(address).or_default();
            if *here < self.per_address_max {
                *here += 1;
                return true;
            }
            if *here == 0 {
                by_address.remove(&address);
            }
        }
        self.count.fetch_sub(1, Ordering::Relaxed);
        false
    }

    /// A session that was counted was resumed, or has ended.
    pub(crate) fn leave(&self, address: Network) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        let mut by_address = lock(&self.by_address);
        if let Some(here) = by_address.get_mut(&address) {
            *here -= 1;
            if *here == 0 {
                by_address.remove(&address);
                shrink_map(&mut by_address);
            }
        }
    }

    /// The shard of a session that was opened on `home`.
    pub(crate) fn shard_of(&self, session: u64, home: u16) -> u16 {
        lock(&self.moved).get(&session).copied().unwrap_or(home)
    }

    /// A session that was opened on `home` is on `shard` from here on.
    pub(crate) fn moved(&self, session: u64, home: u16, shard: u16) {
        let mut moved = lock(&self.moved);
        if home == shard {
            moved.remove(&session);
            shrink_map(&mut moved);
        } else {
            moved.insert(session, shard);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing in here can panic half-way through a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::AwaySessions;
    use crate::config::Config;
    use crate::network::Network;

    fn network(address: &str) -> Network {
        Network::of(address.parse::<IpAddr>().unwrap())
    }

    #[test]
    fn so_many_may_be_away_in_all_and_from_one_address_and_one_more_may_not() {
        let config =
            Config { sessions_away_max: 4, sessions_away_per_address_max: 2, ..Config::default() };
        let away = AwaySessions::new(&config);
        let (one, other) = (network("2001:db8::1"), network("10.0.0.1"));
        assert!(away.enter(one) && away.enter(network("2001:db8::ffff")));
        assert!(!away.enter(one), "the same network of 64 bits");
        assert!(away.enter(other) && away.enter(other));
        assert!(!away.enter(network("10.0.0.2")), "four in all");
        away.leave(one);
        assert!(away.enter(network("10.0.0.2")));
        for address in [one, other, other, network("10.0.0.2")] {
            away.leave(address);
        }
        assert!(away.by_address.lock().unwrap().is_empty());
    }

    #[test]
    fn a_session_is_on_the_shard_that_opened_it_until_it_moves() {
        let away = AwaySessions::new(&Config::default());
        assert_eq!(away.shard_of(7, 2), 2);
        away.moved(7, 2, 0);
        assert_eq!(away.shard_of(7, 2), 0);
        away.moved(7, 2, 2);
        assert_eq!(away.shard_of(7, 2), 2);
        assert!(away.moved.lock().unwrap().is_empty());
    }
}
