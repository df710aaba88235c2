//! Finds shards that do not finish their turn, and requests from outside that get no answer. A
//! handler that never returns can't be stopped, but it can be reported.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::clock::Clock;
use crate::node::Node;
use crate::stats::{Called, Published};

/// Checks all shards periodically.
pub(crate) struct Watchdog {
    pub(crate) node: Arc<Node>,
    pub(crate) published: Vec<Arc<Published>>,
    pub(crate) clock: Clock,
}

/// Ends a watchdog's thread.
#[derive(Default)]
pub(crate) struct Leash {
    ended: Mutex<bool>,
    changed: Condvar,
}

impl Leash {
    pub(crate) fn end(&self) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits; false once it is over.
    pub(crate) fn holds_for(&self, time: Duration) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(ended, time, |ended| !*ended);
        !*waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Watchdog {
    /// Watches until the leash ends.
    pub(crate) fn run(&self, leash: &Leash) {
        let limit = self.node.config.timeouts.watchdog;
        let pause = (limit / 4).min(self.node.config.timeouts.ask / 4);
        while leash.holds_for(pause) {
            self.look(self.clock.now(), limit);
            self.node.asks.expire(Instant::now());
        }
    }

    fn describe(&self, called: Called) -> String {
        match called {
            Called::Nothing => "no room and no service was called".into(),
            Called::Authenticator => "the authenticator was called last; it must not block".into(),
            Called::Fleet => "the fleet was called last; it must not block".into(),
            Called::Room(number) => {
                let name = self.node.room_types.get(usize::from(number)).map_or("", |of| &of.name);
                format!("a room of the type {name:?} was called last")
            }
            Called::Service(number) => format!("service {number} was called last"),
        }
    }

    fn look(&self, now: Duration, limit: Duration) {
        for (index, published) in self.published.iter().enumerate() {
            let pulse = &published.pulse;
            let began_ms = pulse.turn_began_ms.load(Ordering::Relaxed);
            let busy_ms = if began_ms == 0 {
                0
            } else {
                (now.as_millis() as u64 + 1).saturating_sub(began_ms)
            };
            let is_stuck = u128::from(busy_ms) > limit.as_millis();
            let was_stuck = pulse.stuck.swap(is_stuck, Ordering::Relaxed);
            if is_stuck && !was_stuck {
                let called = self.describe(pulse.called());
                log::error!("shard {index} has been busy with one turn for {busy_ms} ms; {called}");
            } else if was_stuck && !is_stuck {
                log::warn!("shard {index} has finished its long turn");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use super::Watchdog;

    use crate::auth::Guests;
    use crate::clock::{Clock, Pace};
    use crate::config::Config;
    use crate::node::Node;

    use crate::stats::{Called, Published, Watch};

    #[test]
    fn a_turn_that_takes_too_long_is_noticed_until_it_ends() {
        let guests = Box::new(Guests { name_bytes_max: 64 });
        let config = Config::default();
        let node = Node::new(config, 1, Vec::new(), guests, None, [0; 32]);
        let node = Arc::new(node);
        let published = Arc::new(Published::default());
        let clock = Clock::start(Pace::default(), Duration::ZERO);
        let watchdog = Watchdog { node, published: vec![Arc::clone(&published)], clock };
        let look = |now_ms: u64| {
            watchdog.look(Duration::from_millis(now_ms), Duration::from_millis(100));
            published.pulse.stuck.load(Ordering::Relaxed)
        };
        assert!(!look(1000), "between turns");
        published.pulse.turn_began_ms.store(1001, Ordering::Relaxed);
        assert!(!look(1100));
        assert!(look(1101));
        published.pulse.turn_began_ms.store(0, Ordering::Relaxed);
        assert!(!look(1102));
    }

    #[test]
    fn it_reports_whose_code_was_called_last() {
        let published = Arc::new(Published::default());
        let watch = Watch(Arc::clone(&published));
        let called = || published.pulse.called();
        assert_eq!(called(), Called::Nothing);
        for number in [0, 1, u16::MAX - 1] {
            watch.enters(number);
            assert_eq!(called(), Called::Room(number));
            watch.enters_service(number);
            assert_eq!(called(), Called::Service(number));
        }
        watch.enters_authenticator();
        assert_eq!(called(), Called::Authenticator);
        watch.enters_fleet();
        assert_eq!(called(), Called::Fleet);
        published.pulse.rest();
        assert_eq!(called(), Called::Nothing);
    }
}
