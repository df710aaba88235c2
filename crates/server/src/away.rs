//! Sessions that wait for their clients to come back: how many there may be, and which shard those
//! that have moved are on.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::addresses::Address;
use crate::config::Config;
use crate::counted::add_below;
use crate::memory::shrink_map;

/// Sessions of a node that may be resumed, shared by its shards.
pub(crate) struct AwaySessions {
    count: AtomicUsize,
    count_max: usize,
    shards: u16,
    /// The shard of each session that is not on the one that opened it.
    moved: Mutex<HashMap<u64, u16>>,
    /// The number of clients that have asked for a session.
    asked: AtomicU64,
}

impl AwaySessions {
    /// For a node with this many shards.
    pub(crate) fn new(config: &Config, shards: usize) -> Self {
        Self {
            count: AtomicUsize::new(0),
            shards: u16::try_from(shards.max(1)).unwrap_or(u16::MAX),
            count_max: config.limits.sessions_away.total,
            moved: Mutex::default(),
            asked: AtomicU64::new(0),
        }
    }

    /// The place of a client that asks for its session in the order of all that did. Those for one
    /// session may overtake each other on their way to its shard.
    pub(crate) fn next_place(&self) -> u64 {
        self.asked.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Counts a session whose connection was lost.
    ///
    /// # Errors
    /// The setting by which it may not be kept.
    pub(crate) fn enter(&self, address: &Address) -> Result<(), &'static str> {
        if !address.keeps_away() {
            return Err("limits.sessions_away.per_address");
        }
        if !add_below(&self.count, self.count_max) {
            address.ends_away();
            return Err("limits.sessions_away.total");
        }
        Ok(())
    }

    /// Counts a session that comes from another process without a connection. No limit ends it.
    pub(crate) fn thaw(&self, address: &Address) {
        self.count.fetch_add(1, Ordering::Relaxed);
        address.keeps_away_anyway();
    }

    /// A session that was counted was resumed, or has ended.
    pub(crate) fn leave(&self, address: &Address) {
        self.count.fetch_sub(1, Ordering::Relaxed);
        address.ends_away();
    }

    /// The shard of a session that was opened on `home`. A process that had more shards may have
    /// opened it: if it did not come here, no shard has it.
    pub(crate) fn shard_of(&self, session: u64, home: u16) -> u16 {
        lock(&self.moved).get(&session).copied().unwrap_or(home % self.shards)
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
    use std::time::Duration;

    use super::AwaySessions;
    use crate::addresses::{Address, Addresses};
    use crate::config::{Config, Quota};

    #[test]
    fn so_many_may_be_away_in_all_and_from_one_address_and_one_more_may_not() {
        let mut config = Config::default();
        config.limits.sessions_away = Quota { total: 4, per_address: 2 };
        let away = AwaySessions::new(&config, 3);
        let addresses = Addresses::new(&config);
        let at = |address: &str| addresses.at(address.parse().unwrap(), Duration::ZERO);
        let (one, other) = (at("2001:db8::1"), at("10.0.0.1"));
        let enters = |address: &Address| away.enter(address).is_ok();
        assert!(enters(&one) && enters(&at("2001:db8::ffff")));
        let of_one = Err("limits.sessions_away.per_address");
        assert_eq!(away.enter(&one), of_one, "the same network of 64 bits");
        assert!(enters(&other) && enters(&other));
        assert_eq!(away.enter(&at("10.0.0.2")), Err("limits.sessions_away.total"), "four in all");
        away.leave(&one);
        assert!(enters(&at("10.0.0.2")));
        for address in [&one, &other, &other, &at("10.0.0.2")] {
            away.leave(address);
        }
        assert!((0..2).all(|_| enters(&one)) && (0..2).all(|_| enters(&other)));
    }

    #[test]
    fn a_session_is_on_the_shard_that_opened_it_until_it_moves() {
        let away = AwaySessions::new(&Config::default(), 3);
        assert_eq!((away.shard_of(7, 2), away.shard_of(7, 5)), (2, 2), "there are three");
        away.moved(7, 2, 0);
        assert_eq!(away.shard_of(7, 2), 0);
        away.moved(7, 2, 2);
        assert_eq!(away.shard_of(7, 2), 2);
        assert!(away.moved.lock().unwrap().is_empty());
    }
}
