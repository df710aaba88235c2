//! Finds threads that are stuck: shards that do not finish their turn, and the control thread, if it
//! gives no sign of life. A handler that never returns can't be stopped, but it can be reported.
//! Requests from outside that get no answer are ended.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use playfield_wire::excerpt;

use crate::event_loop::SharedRuntime;
use crate::node::Node;
use crate::pulse::{Called, Pulse};
use crate::stats::Published;

/// Checks the threads periodically.
pub(crate) struct Watchdog {
    pub(crate) node: Arc<Node>,
    pub(crate) published: Vec<Arc<Published>>,
    pub(crate) shared: Arc<SharedRuntime>,
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
            self.look(self.shared.clock.now(), limit);
            self.node.asks.expire(Instant::now());
        }
    }

    fn describe(&self, called: Called) -> String {
        match called {
            Called::Nothing => "no code of the program was called".into(),
            Called::Authenticator => "the authenticator was called last; it must not block".into(),
            Called::Fleet => "the fleet was called last; it must not block".into(),
            Called::Room(number) => {
                let name = self.node.room_types.get(usize::from(number)).map_or("", |of| &of.name);
                format!("a room of the type {name:?} was called last")
            }
            Called::Service(number) => format!("service {number} was called last"),
            Called::Handler => format!(
                "the HTTP handler of {:?} was called last; it must not block: give what takes long \
                 to spawn_blocking",
                excerpt(&self.shared.control_pulse.request(), 128)
            ),
            Called::Task => "background work was called last; it must not block: give what takes \
                             long to cx.compute or spawn_blocking"
                .into(),
        }
    }

    fn look(&self, now: Duration, limit: Duration) {
        for (index, published) in self.published.iter().enumerate() {
            let pulse = &published.pulse;
            match change(pulse, now, limit) {
                Some(Change::Stuck { ms }) => {
                    let called = self.describe(pulse.called());
                    log::error!("shard {index} has been busy with one turn for {ms} ms; {called}");
                }
                Some(Change::GoesOn) => log::warn!("shard {index} has finished its long turn"),
                None => {}
            }
        }
        let pulse = &self.shared.control_pulse.pulse;
        match change(pulse, now, limit) {
            Some(Change::Stuck { ms }) => {
                let called = self.describe(pulse.called());
                log::error!(
                    "the control thread has been busy for {ms} ms, so HTTP, background tasks and \
                     authenticators wait; {called}"
                );
            }
            Some(Change::GoesOn) => log::warn!("the control thread goes on"),
            None => {}
        }
        self.ask_for_life(now);
    }

    /// Asks the control thread for a sign of life, unless it owes one.
    fn ask_for_life(&self, now: Duration) {
        let pulse = &self.shared.control_pulse.pulse;
        if pulse.turn_began_ms.load(Ordering::Relaxed) == 0
            && let Some(runtime) = self.shared.control.get()
        {
            pulse.turn_began_ms.store(now_ms(now), Ordering::Relaxed);
            let shared = Arc::clone(&self.shared);
            runtime.spawn(async move { shared.control_pulse.pulse.rest() });
        }
    }
}

/// News of a thread.
enum Change {
    /// The thread has been busy for so long.
    Stuck { ms: u64 },
    /// The thread is no longer stuck.
    GoesOn,
}

fn change(pulse: &Pulse, now: Duration, limit: Duration) -> Option<Change> {
    let began_ms = pulse.turn_began_ms.load(Ordering::Relaxed);
    let ms = if began_ms == 0 { 0 } else { now_ms(now).saturating_sub(began_ms) };
    let is_stuck = u128::from(ms) > limit.as_millis();
    match (pulse.stuck.swap(is_stuck, Ordering::Relaxed), is_stuck) {
        (false, true) => Some(Change::Stuck { ms }),
        (true, false) => Some(Change::GoesOn),
        _ => None,
    }
}

/// A time as [`Pulse::turn_began_ms`] has it.
fn now_ms(now: Duration) -> u64 {
    now.as_millis() as u64 + 1
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;
    use std::time::Duration;

    use super::change;
    use crate::pulse::Pulse;

    #[test]
    fn a_turn_that_takes_too_long_is_noticed_until_it_ends() {
        let pulse = Pulse::default();
        let look = |now_ms: u64| {
            let _ = change(&pulse, Duration::from_millis(now_ms), Duration::from_millis(100));
            !pulse.is_well()
        };
        assert!(!look(1000), "between turns");
        pulse.turn_began_ms.store(1001, Ordering::Relaxed);
        assert!(!look(1100));
        assert!(look(1101));
        pulse.rest();
        assert!(!look(1102));
    }
}
