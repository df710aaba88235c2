//! The gate at which the shards of a node stop together, and go on or end.
//!
//! The thread that upgrades the node names a stage and the shards follow. In each stage that has
//! mail between shards, rounds tell when none is under way any more: a shard reports a round once
//! it has handled all its mail and sent its own, and whether there was any. When no shard had any,
//! all is still.

use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::shard::frozen::Frozen;

/// The stage that the shards are to reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Stage {
    /// Everything runs.
    #[default]
    Open,
    /// Nothing is accepted or read.
    Draining,
    /// No room runs. What was asked of rooms is done.
    Stopped,
    /// The rooms are written.
    Written,
    /// The sessions are, and the shards wait.
    Collected,
}

impl Stage {
    fn of(number: u8) -> Self {
        [Self::Open, Self::Draining, Self::Stopped, Self::Written, Self::Collected]
            .into_iter()
            .find(|stage| *stage as u8 == number)
            .unwrap_or_default()
    }
}

/// The share of a shard in what is handed over.
pub(crate) struct Collected {
    /// Its rooms and sessions, or why there are none.
    pub(crate) frozen: Result<Frozen, String>,
    /// The sockets that listen, and the service that each is for.
    pub(crate) listeners: Vec<(TcpListener, Option<u16>)>,
    /// The open connections that are passed on, in the order of the sessions that say so.
    pub(crate) connections: Vec<TcpStream>,
}

#[derive(Default)]
pub(crate) struct Gate {
    stage: AtomicU8,
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Default)]
struct Inner {
    is_upgrading: bool,
    /// The number of upgrades that have begun.
    begun: u64,
    round: u64,
    /// The last round that each shard has reported.
    reported: Vec<u64>,
    /// Set if a shard had mail in this round.
    moved: bool,
    /// The shards that have work in flight while they drain.
    busy: Vec<bool>,
    /// The shards for whose rooms the store has a save since before that.
    unsaved: Vec<bool>,
    collected: Vec<Option<Collected>>,
    /// Called if the node is stopped in the meantime.
    on_stop: Option<Box<dyn FnOnce() + Send>>,
    /// The outcome, once there is one: another process has taken over, or has not.
    is_over: Option<bool>,
}

impl Gate {
    /// The stage that the shards are to reach now.
    #[inline]
    pub(crate) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Acquire) {
            0 => Stage::Open,
            number => Stage::of(number),
        }
    }

    /// Begins an upgrade of a node with this many shards. Returns `false` if one is under way.
    pub(crate) fn begin(&self, shards: usize) -> bool {
        let mut inner = self.lock();
        if std::mem::replace(&mut inner.is_upgrading, true) {
            return false;
        }
        inner.begun += 1;
        inner.reported = vec![inner.round; shards];
        inner.busy = vec![true; shards];
        inner.unsaved = vec![true; shards];
        inner.collected = (0..shards).map(|_| None).collect();
        inner.is_over = None;
        true
    }

    /// Registers `call` for a stop of the node, until this is [forgotten](Self::forget_stop).
    pub(super) fn on_stop(&self, call: impl FnOnce() + Send + 'static) {
        self.lock().on_stop = Some(Box::new(call));
    }

    /// The node is to stop.
    pub(crate) fn stop(&self) {
        let mut inner = self.lock();
        if let Some(call) = inner.on_stop.take() {
            call();
        }
        self.changed.notify_all();
    }

    /// Removes the registered call. Returns `false` if it has already run.
    pub(super) fn forget_stop(&self) -> bool {
        self.lock().on_stop.take().is_some()
    }

    /// Waits until no upgrade is in progress, up to a deadline.
    pub(crate) fn wait_until_ended(&self, by: Instant) {
        let mut inner = self.lock();
        while inner.is_upgrading && inner.is_over.is_none() {
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            inner = self.wait(inner, left);
        }
    }

    pub(crate) fn go_to(&self, stage: Stage) {
        self.stage.store(stage as u8, Ordering::Release);
    }

    /// Waits until all draining shards have finished their work in flight, up to a deadline, or
    /// until the node is to stop.
    pub(super) fn wait_until_drained(&self, by: Instant, wake: &dyn Fn()) {
        self.wait_until(by, wake, |inner| !inner.busy.contains(&true));
    }

    /// Waits until something has happened in turns of the shards, up to a deadline, or until the
    /// node is to stop. Returns whether it has happened.
    pub(super) fn wait_until_done(
        &self,
        by: Instant,
        wake: &dyn Fn(),
        is_done: impl Fn() -> bool,
    ) -> bool {
        self.wait_until(by, wake, |_| is_done());
        is_done()
    }

    fn wait_until(&self, by: Instant, wake: &dyn Fn(), is_done: impl Fn(&Inner) -> bool) {
        loop {
            wake();
            let inner = self.lock();
            let is_told = inner.on_stop.is_none();
            if is_done(&inner) || is_told || Instant::now() >= by {
                return;
            }
            drop(self.wait(inner, Duration::from_millis(2)));
        }
    }

    /// The number of the upgrade.
    pub(crate) fn number(&self) -> u64 {
        self.lock().begun
    }

    pub(crate) fn note_busy(&self, shard: usize, is_busy: bool, is_unsaved: bool) {
        let mut inner = self.lock();
        let Inner { busy, unsaved, .. } = &mut *inner;
        if let Some((busy, unsaved)) = busy.get_mut(shard).zip(unsaved.get_mut(shard)) {
            (*busy, *unsaved) = (is_busy, is_unsaved);
            self.changed.notify_all();
        }
    }

    /// Waits until the store has completed all saves that it had when the shards began to drain, up
    /// to a deadline, or until the node is to stop. Returns whether it has completed them.
    pub(super) fn wait_until_saved(&self, by: Instant, wake: &dyn Fn()) -> bool {
        let is_saved = |inner: &Inner| !inner.unsaved.contains(&true);
        self.wait_until(by, wake, is_saved);
        is_saved(&self.lock())
    }

    /// Waits until no mail is in flight. Returns `false` if the deadline passed, or waiting became
    /// useless.
    pub(super) fn wait_until_still(
        &self,
        by: Instant,
        wake: &dyn Fn(),
        is_of_use: impl Fn() -> bool,
    ) -> bool {
        while is_of_use() {
            let mut inner = self.lock();
            inner.round += 1;
            inner.moved = false;
            let round = inner.round;
            drop(inner);
            wake();
            let mut inner = self.lock();
            while inner.reported.iter().any(|reported| *reported < round) {
                let left = by.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return false;
                }
                inner = self.wait(inner, left);
            }
            if !inner.moved {
                return true;
            }
        }
        false
    }

    /// The round to be reported by a shard, if it has not done so.
    pub(crate) fn round(&self, shard: usize) -> Option<u64> {
        let inner = self.lock();
        inner.reported.get(shard).is_some_and(|of| *of < inner.round).then_some(inner.round)
    }

    pub(crate) fn report(&self, shard: usize, round: u64, moved: bool) {
        let mut inner = self.lock();
        inner.moved |= moved;
        if let Some(reported) = inner.reported.get_mut(shard) {
            *reported = round;
        }
        self.changed.notify_all();
    }

    /// A shard hands over what it has, and waits. Returns whether another process has taken over.
    pub(crate) fn hand_in(&self, shard: usize, collected: Collected) -> bool {
        let mut inner = self.lock();
        if let Some(place) = inner.collected.get_mut(shard) {
            *place = Some(collected);
        }
        self.changed.notify_all();
        let of = inner.begun;
        loop {
            match inner.is_over {
                // This upgrade has failed, as another one has begun.
                _ if inner.begun != of => return false,
                Some(is_over) => return is_over,
                // The wait is short: the thread that upgrades has limits.
                None => inner = self.wait(inner, Duration::from_secs(1)),
            }
        }
    }

    /// Returns whether another process has taken over.
    pub(crate) fn is_over(&self) -> bool {
        self.lock().is_over == Some(true)
    }

    /// Takes what all shards handed in; `None` if some have not in time.
    pub(super) fn take_collected(&self, by: Instant) -> Option<Vec<Collected>> {
        let mut inner = self.lock();
        while inner.collected.iter().any(Option::is_none) {
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return None;
            }
            inner = self.wait(inner, left);
        }
        Some(inner.collected.iter_mut().filter_map(Option::take).collect())
    }

    /// Ends the upgrade: the shards go on, or end if another process has taken over.
    pub(crate) fn end(&self, is_over: bool) {
        let mut inner = self.lock();
        inner.is_over = Some(is_over);
        inner.is_upgrading = is_over;
        // The sockets in there would outlive their connections.
        inner.collected.clear();
        self.go_to(Stage::Open);
        self.changed.notify_all();
    }

    fn wait<'a>(&self, inner: MutexGuard<'a, Inner>, time: Duration) -> MutexGuard<'a, Inner> {
        let waited = self.changed.wait_timeout(inner, time);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Nothing in here can panic half-way through a change.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// Longer than any wait of a test.
    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn it_does_not_wait_for_shards_when_that_is_of_no_use_any_more() {
        let gate = Gate::default();
        assert!(gate.begin(1));
        let rounds = Cell::new(0);
        // The shard has mail in each round.
        let wake = || {
            rounds.set(rounds.get() + 1);
            gate.report(0, gate.round(0).unwrap(), true);
        };
        assert!(!gate.wait_until_still(Instant::now() + LONG, &wake, || rounds.get() < 3));
        assert_eq!(rounds.get(), 3);
    }

    #[test]
    fn a_shard_goes_on_after_a_failed_upgrade_though_another_begins_at_once() {
        let gate = Gate::default();
        assert!(gate.begin(1));
        std::thread::scope(|scope| {
            let (frozen, listeners, connections) = (Err(String::new()), Vec::new(), Vec::new());
            let collected = Collected { frozen, listeners, connections };
            let shard = scope.spawn(|| gate.hand_in(0, collected));
            assert!(gate.take_collected(Instant::now() + LONG).is_some());
            gate.end(false);
            assert!(gate.begin(1));
            assert!(!shard.join().unwrap());
        });
    }

    #[test]
    fn it_waits_until_something_is_done_and_not_once_the_node_stops() {
        let gate = Gate::default();
        assert!(gate.begin(1));
        gate.on_stop(|| {});
        let rounds = Cell::new(0);
        let wake = || rounds.set(rounds.get() + 1);
        assert!(gate.wait_until_done(Instant::now() + LONG, &wake, || rounds.get() == 3));
        assert!(!gate.wait_until_done(Instant::now(), &wake, || false));
        gate.stop();
        assert!(!gate.wait_until_done(Instant::now() + LONG, &wake, || false));
    }
}
